/* Access to the API: the load balancer on every node's loopback address, and the virtual IP of
 * the control-plane nodes. */
#include "node/context.h"

#define FIRST_PRIORITY 200

/* Where the load balancer tells keepalived in plain text whether the local API server is ready. The
 * port is below 1024: while the load balancer is down, only root could answer in its place. */
#define READY_HOST "127.0.0.3"
#define READY_PORT 343L

/* Whether keepalived asks the local load balancer about the API server. */
static bool balancer_knows(const struct context *x)
{
        return needs_met(x, ON_CONTROL_PLANE | WITH_VIP | WITH_BALANCER | WITH_PACKAGES);
}

json_t *api_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        const struct node *n;
        char host[IP_TEXT + 2];
        struct str annotation CLEANUP(str_release) = { 0 };
        json_t *v = json_object(), *servers = json_array();
        for (size_t i = 0; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));) {
                const char *address =
                        arena_printf(x->arena, "%s:%ld", ip_host(&n->ip[0], host), c->api.port);
                json_t *o = json_object();
                json_put(o, "name", n->name);
                json_object_set_new(o, "address", json_string_nocheck(address));
                json_array_append_new(servers, o);
                str_addf(&annotation, "%s%s=%s", annotation.len ? "," : "", n->name, address);
        }
        json_object_set_new(v, "port", json_integer(c->api.port));
        json_object_set_new(v, "local_port", json_integer(c->api.local_port));
        json_put(v, "ca", API_CA);
        json_put(v, "url", node_api_url(x));
        json_put(v, "ready", arena_printf(x->arena, READY_HOST ":%ld", READY_PORT));
        json_object_set_new(v, "servers", servers);
        json_put(v, "annotation", str_text(&annotation));
        if (needs_met(x, ON_CONTROL_PLANE | WITH_BALANCER | WITH_PACKAGES))
                json_put(v, "own",
                        arena_printf(
                                x->arena, "%s:%ld", ip_host(&x->node->ip[0], host), c->api.port));
        json_object_set_new(v, "watched", json_boolean(balancer_knows(x)));
        return v;
}

/* The sum of the VIP's last two numbers (IPv6: its last two groups), mapped to 1–255. */
static long router_id(const struct cluster *c, const struct ip *vip)
{
        const uint8_t *b = vip->b;
        unsigned sum = vip->family == 4
                               ? (unsigned)b[2] + b[3]
                               : ((unsigned)b[12] << 8 | b[13]) + ((unsigned)b[14] << 8 | b[15]);
        return c->api.virtual_router_id ? c->api.virtual_router_id : (long)((sum + 254) % 255 + 1);
}

/* The load balancer checks the API server anyway, and querying it each second costs a tenth of a
 * check over TLS. Without it, keepalived queries the API server itself and verifies its
 * certificate, so that another program on its port does not get the virtual IP. Images of
 * keepalived have curl or openssl. */
static const char *check_command(const struct context *x, int family)
{
        const char *ip = family == 6 ? "::1" : "127.0.0.1",
                   *host = family == 6 ? "[::1]" : "127.0.0.1";
        long port = x->cluster->api.port;
        if (balancer_knows(x))
                return arena_printf(x->arena,
                        "/bin/bash -c 'grep -q yes </dev/tcp/" READY_HOST "/%ld'", READY_PORT);
        const char *curl = arena_printf(x->arena,
                "curl -sf --cacert " API_CA " --max-time 4 -o /dev/null https://%s:%ld/readyz",
                host, port);
        if (!(x->with & WITH_STATIC_BALANCERS))
                return arena_printf(x->arena, "/usr/bin/%s", curl);
        return arena_printf(x->arena,
                "/bin/sh -c '%s || (echo GET /readyz HTTP/1.0; echo) | openssl s_client -quiet -verify_return_error -verify_ip %s -CAfile " API_CA
                " -connect %s:%ld 2>/dev/null | grep -q 200.OK'",
                curl, ip, host, port);
}

/* The other nodes of the virtual IP; *place is this node's position among all, from 0. */
static json_t *peer_values(const struct context *x, int family, long *place)
{
        const struct node *n;
        char text[IP_TEXT];
        json_t *list = json_array();
        long at = 0;
        for (size_t i = 0; (n = cluster_next(x->cluster, ROLE_CONTROL_PLANE, &i)); at++) {
                if (n == x->node)
                        *place = at;
                else
                        json_add(list, ip_format(node_ip(n, family), text));
        }
        return list;
}

json_t *vip_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        struct ip vip = { 0 };
        char text[IP_TEXT];
        long place = 0;
        json_t *v = json_object();
        if (!ip_parse(c->api.vip, &vip))
                abort(); /* T_ADDRESS */
        json_t *peers = peer_values(x, vip.family, &place);
        ip_format(&vip, text);
        struct str annotation CLEANUP(str_release) = { 0 };
        str_addf(&annotation, "%s router %ld priority %ld peers", text, router_id(c, &vip),
                FIRST_PRIORITY - place);
        for (size_t i = 0; i < json_array_size(peers); i++)
                str_addf(&annotation, " %s", json_string_value(json_array_get(peers, i)));
        json_put(v, "annotation", str_text(&annotation));
        json_put(v, "address", arena_printf(x->arena, "%s/%d", text, vip.family == 4 ? 32 : 128));
        json_put(v, "interface", c->api.vip_interface ? c->api.vip_interface : x->facts->interface);
        json_put(v, "check", check_command(x, vip.family));
        /* the load balancer has its own `fall` */
        json_object_set_new(v, "fall", json_integer(balancer_knows(x) ? 2 : 3));
        json_put(v, "source", ip_format(node_ip(x->node, vip.family), text));
        /* VRRP 3, which IPv6 needs, has no password */
        json_put(v, "password", vip.family == 4 ? x->in->identity->vrrp_password : "");
        json_object_set_new(v, "router_id", json_integer(router_id(c, &vip)));
        json_object_set_new(v, "priority",
                json_integer(place < FIRST_PRIORITY - 1 ? FIRST_PRIORITY - place : 1));
        json_object_set_new(v, "peers",
                json_array_size(peers) ? json_pack("{s:O}", "list", peers) : json_false());
        json_decref(peers);
        return v;
}
