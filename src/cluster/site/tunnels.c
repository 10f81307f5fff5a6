/* The API of a cluster behind a jump host. If no API server can be reached directly, there is a
 * tunnel to each of them, so the API client can use another one when one fails. */
#include "cluster/site/site.h"
#include "deliver/link/tunnel.h"

#define DIRECT_MS 700 /* maximum for a direct connection */
#define PREFIX    "slipway-api-"

void site_tunnels_free(struct site *s)
{
        for (size_t i = 0; i < s->tunnel_count; i++)
                tunnel_free(s->tunnels[i]);
        s->tunnel_count = 0;
        scratch_remove(&s->tunnel_dir);
}

/* ---- open ---- */

static const char *tunnels_why(size_t server, void *arg)
{
        const struct site *s = arg;
        return server < s->tunnel_count ? tunnel_trouble(s->tunnels[server]) : NULL;
}

static void open_one(struct site *s, const struct node *n, size_t i)
{
        char host[IP_TEXT + 2];
        struct member *m = site_member(s, n->name);
        const char *to =
                arena_printf(s->arena, "%s:%ld", ip_host(&n->ip[0], host), s->cluster->api.port);
        s->sockets[i] = arena_printf(s->arena, "%s/%zu", s->tunnel_dir, i);
        s->tunnels[i] = tunnel_open(s->base, &m->machine->target, to, s->sockets[i]);
}

/* A cloud's node may have an address for ssh that its API server does not listen on. */
static bool tunnels_wanted(struct site *s, const struct node *n)
{
        char ip[IP_TEXT];
        if (s->cluster->provider.kind == PROVIDER_LOCAL)
                return false;
        if (s->ops->remote && n->address && !streq(n->address, ip_format(&n->ip[0], ip)))
                return true;
        return tunnel_wanted(&site_member(s, n->name)->machine->target);
}

int site_tunnels(struct site *s, struct kube_target *target, struct error *err)
{
        const struct node **nodes = arena_array(s->arena, const struct node *, s->count + 1);
        size_t n = 0, i = 0;
        for (const struct node *c; (c = cluster_next(s->cluster, ROLE_CONTROL_PLANE, &i));)
                nodes[n++] = c;
        if (!s->tunnel_count) {
                if (!tunnels_wanted(s, nodes[0]) || kube_direct(target, DIRECT_MS))
                        return 0;
                /* not in the state directory: a socket's path has a maximum length */
                if (scratch_make(PREFIX, &s->tunnel_dir, err) < 0)
                        return -err->code;
                s->sockets = arena_array(s->arena, const char *, n);
                s->tunnels = arena_array(s->arena, struct tunnel *, n);
                for (s->tunnel_count = 0; s->tunnel_count < n; s->tunnel_count++)
                        open_one(s, nodes[s->tunnel_count], s->tunnel_count);
        }
        target->sockets = s->sockets;
        target->why = tunnels_why;
        target->arg = s;
        return 0;
}
