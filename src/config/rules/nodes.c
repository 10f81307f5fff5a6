/* Nodes: names and addresses, each used once. Everything here is linear in the number of nodes. */
#include <ctype.h>

#include "base/index.h"
#include "config/rules/rules.h"

/* The node that has the key already, or NULL, and now `n` has it. */
static const struct node *seen_add(struct index *seen, const char *key, const struct node *n)
{
        return index_put(seen, key, (void *)(uintptr_t)n);
}

static const struct tree *node_at(const struct node *n)
{
        return n->host && n->host->src ? n->host->src : n->pool->src;
}

/* RFC 1123: labels of lower-case letters, digits and dashes, which neither begin nor end
 * with a dash. */
static bool subdomain(const char *s)
{
        for (const char *label = s;;) {
                size_t n = strcspn(label, ".");
                if (!n || label[0] == '-' || label[n - 1] == '-')
                        return false;
                for (size_t i = 0; i < n; i++)
                        if (!islower((unsigned char)label[i]) &&
                                !isdigit((unsigned char)label[i]) && label[i] != '-')
                                return false;
                if (!label[n])
                        return true;
                label += n + 1;
        }
}

static void nodes_node_name(
        struct index *names, const struct node *n, bool said, struct problems *p)
{
        const struct tree *at = node_at(n);
        const char *field = n->host ? n->host->name ? "name" : "address" : "name";
        /* the pool or the host has no name: said already */
        if (!n->name || !*n->name || *n->name == '-' || !at)
                return;
        if (strlen(n->name) > 63)
                problem_add(p, at, field,
                        n->host ? "give the host a name, such as {name: w1, address: …}"
                                : "use a shorter name for the pool",
                        "the node's name would be %s, which has %zu characters (at most 63 are allowed)",
                        n->name, strlen(n->name));
        else if (!subdomain(n->name))
                problem_add(p, at, field,
                        "give the host a name of lower-case letters, digits and dashes, such as {name: w1, address: …}",
                        "the node's name would be %s, which is not a valid node name", n->name);
        const struct node *first = seen_add(names, n->name, n);
        /* the same address, or the same pool name, gives the same name: said already */
        if (first && n->host && !(said && !n->host->name))
                problem_add(p, at, field, "give each node its own name",
                        "the node name \"%s\" is already used %s", n->name,
                        rule_where(p, node_at(first), at));
}

/* One ssh address may stand for several machines behind forwarded ports; the pair may not. */
static bool node_address(
        const struct cluster *c, struct index *addresses, const struct node *n, struct problems *p)
{
        const struct host *h = n->host;
        if (!h || !h->address || !*h->address)
                return false;
        char *key = arena_printf(
                p->arena, "%s %ld", h->address, h->port ? h->port : c->provider.ssh.port);
        for (char *k = key; *k; k++)
                *k = (char)tolower((unsigned char)*k);
        const struct node *first = seen_add(addresses, key, n);
        if (first)
                problem_add(p, h->src, "address", "list each machine once",
                        "the address %s is already used %s", h->address,
                        rule_where(p, node_at(first), h->src));
        return first;
}

const char *host_ip_fault(const struct ip *ip)
{
        static const struct {
                const char *range, *why;
        } table[] = {
                { "0.0.0.0/8", "is not a machine's address" },
                { "127.0.0.0/8", "is a loopback address" },
                { "169.254.0.0/16", "is a link-local address" },
                { "224.0.0.0/4", "is a multicast address" },
                { "240.0.0.0/4", "is a reserved address" },
                { "::/128", "is not a machine's address" },
                { "::1/128", "is a loopback address" },
                { "fe80::/10", "is a link-local address" },
                { "ff00::/8", "is a multicast address" },
                { "::ffff:0:0/96", "is an IPv4 address written as IPv6" },
        };
        struct cidr c;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (cidr_parse(table[i].range, &c, NULL) && cidr_contains(&c, ip))
                        return table[i].why;
        return NULL;
}

static void node_ips(struct index *ips, const struct node *n, bool said, struct problems *p)
{
        char text[IP_TEXT];
        for (size_t i = 0; i < 2 && n->ip[i].family; i++) {
                const struct tree *at = node_at(n);
                const char *field = n->host && n->host->ip.n ? "ip" : "address",
                           *why = host_ip_fault(&n->ip[i]);
                ip_format(&n->ip[i], text);
                if (why)
                        problem_add(p, at, field,
                                "use the address by which the other nodes reach it", "%s %s", text,
                                why);
                const struct node *first = seen_add(ips, arena_strdup(p->arena, text), n);
                if (first && !said)
                        problem_add(p, at, field, "each node needs its own address",
                                "the address %s is already used %s", text,
                                rule_where(p, node_at(first), at));
        }
}

void rules_nodes(struct cluster *c, struct problems *p)
{
        struct index names CLEANUP(index_release) = { 0 }, addresses CLEANUP(index_release) = { 0 },
                           ips CLEANUP(index_release) = { 0 };
        for (size_t i = 0; i < c->node_count; i++) {
                const struct node *n = &c->nodes[i];
                bool said = node_address(c, &addresses, n, p);
                if (n->host)
                        node_ips(&ips, n, said, p);
                nodes_node_name(&names, n, said, p);
        }
}
