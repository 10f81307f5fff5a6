/* Pools → nodes, in file order. A node's name depends on nothing but its own line (or its number
 * within the pool), so that taking one host out of a list renames nobody else.
 *
 * Machines on this computer get their addresses here: the network behind its first ten addresses
 * (.0, .1 this computer, .2 to .9 free for virtual IPs) is cut into eight slices, one a pool in
 * file order: in a /24 pool 0 has .10 to .39, pool 1 .40 to .69. A pool that grows moves nobody,
 * nor does a pool added at the end; the last pool may run on behind its slice to the end of the
 * network. */
#include <ctype.h>

#include "config/rules/rules.h"

#define LOCAL_FIRST 10
#define LOCAL_POOLS 8

static size_t pool_size(const struct pool *p)
{
        if (p->hosts.n)
                return p->hosts.n;
        return p->count > 0 ? (size_t)p->count : 0;
}

/* The next number after `n` that is not taken out. */
static unsigned next_number(const struct pool *p, unsigned n)
{
        for (bool out = true; out;) {
                n++;
                out = false;
                for (size_t i = 0; !out && i < p->without.n; i++)
                        out = p->without.v[i] == (long)n;
        }
        return n;
}

/* The highest number it has: the machines' addresses go so far. */
static size_t last_number(const struct pool *p)
{
        unsigned n = 0;
        if (p->hosts.n || !p->without.n)
                return pool_size(p);
        for (size_t i = 0; i < pool_size(p); i++)
                n = next_number(p, n);
        return n;
}

/* 192.0.2.11 → ip-192-0-2-11; names in lower case, without a final dot. */
static const char *name_from_address(struct arena *a, const char *address)
{
        struct ip ip;
        char text[IP_TEXT];
        char *name;
        if (ip_parse(address, &ip)) {
                ip_format(&ip, text);
                name = arena_printf(a, has_suffix(text, ":") ? "ip-%s0" : "ip-%s", text);
                for (char *p = name; *p; p++)
                        if (*p == '.' || *p == ':')
                                *p = '-';
                return name;
        }
        size_t n = strlen(address);
        name = arena_strndup(a, address, n && address[n - 1] == '.' ? n - 1 : n);
        for (char *p = name; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        return name;
}

void node_set_ips(const struct cluster *c, struct node *n, const struct ip *ips, size_t count)
{
        size_t used = 0;
        for (size_t f = 0; f < c->network.pods.n && f < 2 &&
                           (!f || c->network.pods.v[0].ip.family != c->network.pods.v[1].ip.family);
                f++)
                for (size_t i = 0; i < count; i++)
                        if (ips[i].family == c->network.pods.v[f].ip.family) {
                                n->ip[used++] = ips[i];
                                break;
                        }
        if (!used && count) /* another family than the pods': the rules complain about it */
                n->ip[0] = ips[0];
}

static void expand_host(const struct cluster *c, const struct host *h, struct node *n)
{
        struct ip ip;
        n->host = h;
        n->address = h->address;
        n->name = h->name ? h->name : h->address ? name_from_address(c->arena, h->address) : "";
        if (h->ip.n)
                node_set_ips(c, n, h->ip.v, h->ip.n);
        else if (h->address && ip_parse(h->address, &ip))
                node_set_ips(c, n, &ip, 1);
}

/* How many addresses of provider.local.network a pool has; 0 when the network is too small. */
static uint64_t slice(const struct cidr *net, uint64_t *size)
{
        unsigned bits = cidr_host_bits(net);
        *size = (uint64_t)1 << (bits > 16 ? 16 : bits);
        return *size > 16 ? (*size - 16) / LOCAL_POOLS : 0;
}

static bool local_ip(const struct cluster *c, const struct cidr *net, size_t pool,
        const struct node *n, struct ip *out)
{
        uint64_t size, per = slice(net, &size), at = LOCAL_FIRST + pool * per + n->index - 1;
        return per && pool < LOCAL_POOLS && at < size - 1 &&
               (n->index <= per || pool + 1 == c->pools.n) && cidr_nth(net, at, out);
}

/* slipway connects to the address in the first network. */
static void local_address(const struct cluster *c, size_t pool, struct node *n)
{
        const struct cidrs *nets = &c->provider.local.network;
        struct ip ips[2];
        char text[IP_TEXT];
        size_t found = 0;
        while (found < nets->n && found < ARRAY_SIZE(ips) &&
                local_ip(c, &nets->v[found], pool, n, &ips[found]))
                found++;
        if (!found)
                return;
        node_set_ips(c, n, ips, found);
        n->address = arena_strdup(c->arena, ip_format(&ips[0], text));
}

/* Says why a pool's machines do not fit; the nodes that do not are left without an address. */
static void check_local(
        const struct cluster *c, const struct cidr *net, size_t i, struct problems *p)
{
        const struct pool *pool = &c->pools.v[i];
        bool six = net->ip.family == 6;
        uint64_t size, per = slice(net, &size),
                       room = i + 1 < c->pools.n ? per : size - 1 - LOCAL_FIRST - i * per;
        char text[IP_TEXT + 4];
        if (!per && i == 0)
                rule_error(p, c, "provider.local.network",
                        six ? "use a /120 or larger" : "use a /24 or larger",
                        "%s is too small for machines in %d pools", cidr_format(net, text),
                        LOCAL_POOLS);
        else if (i == LOCAL_POOLS && net == c->provider.local.network.v)
                problem_add(p, pool->src, NULL, "put machines of the same kind into one pool",
                        "provider local has addresses for %d pools, this is the ninth",
                        LOCAL_POOLS);
        else if (per && i < LOCAL_POOLS && last_number(pool) > room)
                problem_add(p, pool->src, "count",
                        six ? "use a larger provider.local.network, such as \"fd00:117::/112\""
                            : "use a larger provider.local.network, such as 10.117.0.0/16",
                        "provider.local.network %s has addresses for %" PRIu64
                        " machines of this pool, got %zu",
                        cidr_format(net, text), room, last_number(pool));
}

void cluster_expand(struct cluster *c, struct problems *p)
{
        const struct cidrs *nets = &c->provider.local.network;
        bool local = c->provider.kind == PROVIDER_LOCAL && nets->n;
        size_t total = 0, made = 0;
        for (size_t i = 0; i < c->pools.n; i++)
                total += pool_size(&c->pools.v[i]);
        if (total > CLUSTER_MAX_NODES) {
                rule_error(p, c, "pools", "make several clusters",
                        "a cluster has at most %d nodes, got %zu", CLUSTER_MAX_NODES, total);
                return;
        }
        c->nodes = arena_array(c->arena, struct node, total ? total : 1);
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                for (size_t k = 0; local && !pool->hosts.n && k < nets->n && k < 2; k++)
                        check_local(c, &nets->v[k], i, p);
                unsigned number = 0;
                for (size_t k = 0; k < pool_size(pool); k++) {
                        struct node *n = &c->nodes[made++];
                        n->pool = pool;
                        n->index = number =
                                pool->hosts.n ? (unsigned)k + 1 : next_number(pool, number);
                        if (pool->hosts.n) {
                                expand_host(c, &pool->hosts.v[k], n);
                                continue;
                        }
                        n->name = arena_printf(
                                c->arena, "%s-%u", pool->name ? pool->name : "", n->index);
                        if (local)
                                local_address(c, i, n);
                }
        }
        c->node_count = made;
}
