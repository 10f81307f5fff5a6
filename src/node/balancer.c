/* Ways to the API: the balancer on every node's loopback, and the virtual address among control-plane nodes. */
#include "node/context.h"

#define FIRST_PRIORITY 200

static bool anonymous_access(const struct cluster *c)
{
        const struct pairs *f = &c->components.apiserver.flags;
        for (size_t i = 0; i < f->n; i++)
                if (streq(flag_name(f->v[i].key), "anonymous-auth") && streq(f->v[i].value, "false"))
                        return false;
        return true;
}

/* Whether the virtual address goes by what the balancer beside it knows of the API server. Without anonymous access that is not enough. */
static bool balancer_knows(const struct context *x)
{
        return needs_met(x, ON_CONTROL_PLANE | WITH_VIP | WITH_BALANCER | WITH_PACKAGES) && anonymous_access(x->cluster);
}

json_t *api_values(const struct context *x)
{
        const struct cluster *c = x->cluster;
        const struct node *n;
        char host[IP_TEXT + 2];
        struct str annotation CLEANUP(str_release) = { 0 };
        json_t *v = json_object(), *servers = json_array();
        for (size_t i = 0; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));) {
                const char *address = arena_printf(x->arena, "%s:%ld", ip_host(&n->ip[0], host), c->api.port);
                json_t *o = json_object();
                json_put(o, "name", n->name);
                json_object_set_new(o, "address", json_string_nocheck(address));
                json_array_append_new(servers, o);
                str_addf(&annotation, "%s%s=%s", annotation.len ? "," : "", n->name, address);
        }
        json_object_set_new(v, "port", json_integer(c->api.port));
        json_object_set_new(v, "local_port", json_integer(c->api.local_port));
        json_object_set_new(v, "anonymous", json_boolean(anonymous_access(c)));
        json_object_set_new(v, "servers", servers);
        json_put(v, "annotation", str_text(&annotation));
        if (needs_met(x, ON_CONTROL_PLANE | WITH_BALANCER | WITH_PACKAGES))
                json_put(v, "own", arena_printf(x->arena, "%s:%ld", ip_host(&x->node->ip[0], host), c->api.port));
        json_object_set_new(v, "watched", json_boolean(balancer_knows(x)));
        return v;
}

/* The sum of the VIP's last two numbers (of IPv6: of its last two groups), folded into 1–255. */
static long router_id(const struct cluster *c, const struct ip *vip)
{
        const uint8_t *b = vip->b;
        unsigned sum = vip->family == 4 ? (unsigned)b[2] + b[3] : ((unsigned)b[12] << 8 | b[13]) + ((unsigned)b[14] << 8 | b[15]);
        return c->api.virtual_router_id ? c->api.virtual_router_id : (long)((sum + 254) % 255 + 1);
}

/* The balancer has looked already, and asking it costs a tenth of what asking over TLS does, each second on each of them. With anonymous access off only a
 * certificate gets to see whether the API server is ready. In a pod it is the image's business which of curl and wget it has. */
static const char *check_command(const struct context *x, int family)
{
        if (balancer_knows(x))
                return arena_printf(x->arena, "/bin/bash -c 'grep -q yes </dev/tcp/127.0.0.3/%ld'", x->cluster->api.local_port);
        const char *client = anonymous_access(x->cluster)
                                     ? ""
                                     : " --cert /etc/kubernetes/pki/apiserver-kubelet-client.crt --key /etc/kubernetes/pki/apiserver-kubelet-client.key";
        const char *url = arena_printf(x->arena, "https://%s:%ld/readyz", family == 6 ? "[::1]" : "127.0.0.1", x->cluster->api.port);
        const char *curl = arena_printf(x->arena, "curl -sfk --max-time 4 -o /dev/null%s %s", client, url);
        if (x->with & WITH_STATIC_BALANCERS && !*client)
                return arena_printf(x->arena, "/bin/sh -c '%s || wget -q -T 4 --no-check-certificate -O /dev/null %s'", curl, url);
        return arena_printf(x->arena, x->with & WITH_STATIC_BALANCERS ? "/bin/sh -c '%s'" : "/usr/bin/%s", curl);
}

/* Who else may hold the address; *place is this node's among them all, from 0. */
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
        str_addf(&annotation, "%s router %ld priority %ld peers", text, router_id(c, &vip), FIRST_PRIORITY - place);
        for (size_t i = 0; i < json_array_size(peers); i++)
                str_addf(&annotation, " %s", json_string_value(json_array_get(peers, i)));
        json_put(v, "annotation", str_text(&annotation));
        json_put(v, "address", arena_printf(x->arena, "%s/%d", text, vip.family == 4 ? 32 : 128));
        json_put(v, "interface", c->api.vip_interface ? c->api.vip_interface : x->facts->interface);
        json_put(v, "check", check_command(x, vip.family));
        json_object_set_new(v, "fall", json_integer(balancer_knows(x) ? 2 : 3)); /* the balancer has waited already */
        json_put(v, "source", ip_format(node_ip(x->node, vip.family), text));
        json_put(v, "password", vip.family == 4 ? x->in->identity->vrrp_password : ""); /* VRRP 3, which IPv6 needs, has none */
        json_object_set_new(v, "router_id", json_integer(router_id(c, &vip)));
        json_object_set_new(v, "priority", json_integer(place < FIRST_PRIORITY - 1 ? FIRST_PRIORITY - place : 1));
        json_object_set_new(v, "peers", json_array_size(peers) ? json_pack("{s:O}", "list", peers) : json_false());
        json_decref(peers);
        return v;
}
