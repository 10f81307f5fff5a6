/* Functions that read a Cluster. */
#include "config/cluster.h"
#include "config/scalar.h"

bool version_parse(const char *s, struct version *out)
{
        unsigned v[3];
        s += *s == 'v';
        for (int i = 0; i < 3; i++) {
                size_t len = strspn(s, "0123456789");
                if (!len || len > 5 || (len > 1 && *s == '0') || s[len] != (i < 2 ? '.' : 0))
                        return false;
                v[i] = (unsigned)strtoul(s, NULL, 10);
                s += len + 1;
        }
        *out = (struct version){ v[0], v[1], v[2], NULL };
        return true;
}

int version_compare(const struct version *a, const struct version *b)
{
        if (a->major != b->major)
                return a->major < b->major ? -1 : 1;
        if (a->minor != b->minor)
                return a->minor < b->minor ? -1 : 1;
        return a->patch < b->patch ? -1 : a->patch > b->patch;
}

static int cluster_by_name(const void *a, const void *b)
{
        return strcmp(
                (*(const struct node *const *)a)->name, (*(const struct node *const *)b)->name);
}

void cluster_index(struct cluster *c)
{
        c->by_name = arena_array(c->arena, const struct node *, c->node_count);
        for (size_t i = 0; i < c->node_count; i++)
                c->by_name[i] = &c->nodes[i];
        for (size_t i = 0; i < c->node_count; i++)
                if (c->nodes[i].pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD))
                        c->few_end = i + 1;
        qsort(c->by_name, c->node_count, sizeof(*c->by_name), cluster_by_name);
}

const struct node *cluster_node(const struct cluster *c, const char *name)
{
        if (c->by_name) {
                const struct node key = { .name = name }, *k = &key;
                const struct node **found = c->node_count
                                                    ? bsearch(&k, c->by_name, c->node_count,
                                                              sizeof(*c->by_name), cluster_by_name)
                                                    : NULL;
                return found ? *found : NULL;
        }
        for (size_t i = 0; i < c->node_count; i++)
                if (streq(c->nodes[i].name, name))
                        return &c->nodes[i];
        return NULL;
}

const struct node *cluster_next(const struct cluster *c, unsigned roles, size_t *i)
{
        size_t end = c->few_end && !(roles & ROLE_WORKER) ? c->few_end : c->node_count;
        while (*i < end) {
                const struct node *n = &c->nodes[(*i)++];
                if (n->pool->roles & roles)
                        return n;
        }
        return NULL;
}

size_t cluster_count(const struct cluster *c, unsigned roles)
{
        size_t i = 0, n = 0;
        while (cluster_next(c, roles, &i))
                n++;
        return n;
}

const char *cluster_endpoint_host(const struct cluster *c)
{
        char host[HOST_MAX], buf[IP_TEXT];
        long port;
        size_t i = 0;
        if (c->api.load_balancer && hostport_split(c->api.load_balancer, host, &port))
                return arena_strdup(c->arena, host);
        if (c->api.vip)
                return c->api.vip_name ? c->api.vip_name : c->api.vip;
        if (c->balancer)
                return c->balancer;
        if (c->api.names.n)
                return c->api.names.v[0];
        const struct node *n = cluster_next(c, ROLE_CONTROL_PLANE, &i);
        if (n && n->ip[0].family)
                return arena_strdup(c->arena, ip_format(&n->ip[0], buf));
        return n ? n->address : NULL;
}

long cluster_endpoint_port(const struct cluster *c)
{
        char host[HOST_MAX];
        long port = 0;
        if (c->api.load_balancer && hostport_split(c->api.load_balancer, host, &port) && port)
                return port;
        return c->api.port;
}

/* The default prefix is the issuer, and none for the claim email; "-" is none. */
const char *oidc_username_prefix(struct arena *a, const struct oidc *o)
{
        if (o->username_prefix && *o->username_prefix)
                return streq(o->username_prefix, "-") ? "" : o->username_prefix;
        return o->username_claim && streq(o->username_claim, "email")
                       ? ""
                       : arena_printf(a, "%s#", o->issuer);
}

size_t cluster_dns(const struct cluster *c, struct ip out[2])
{
        size_t n = 0;
        if (c->network.dns)
                return ip_parse(c->network.dns, &out[0]);
        for (size_t i = 0; i < c->network.services.n && n < 2; i++)
                n += cidr_nth(&c->network.services.v[i], 10, &out[n]);
        return n;
}

bool provider_has_hosts(const struct provider *p)
{
        return p->kind == PROVIDER_SSH || p->kind == PROVIDER_TERRAFORM;
}

void strings_add(struct arena *a, struct strings *s, const char *v)
{
        const char **all = arena_array(a, const char *, s->n + 1);
        if (s->n)
                memcpy(all, s->v, s->n * sizeof(*all));
        all[s->n++] = v;
        s->v = all;
}

bool strings_contain(const struct strings *s, const char *v)
{
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->v[i], v))
                        return true;
        return false;
}
