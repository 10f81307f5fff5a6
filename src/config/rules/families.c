/* IPv4, IPv6 or both: pods, services and nodes have to agree; and no node stands inside the pods'
 * or services' range. */
#include "config/rules/rules.h"

/* "IPv4 only", "IPv4 and IPv6", "IPv6 before IPv4" */
static const char *families(const struct cidrs *l, const struct cidrs *other)
{
        if (l->n == 1)
                return l->v[0].ip.family == 4 ? "IPv4 only" : "IPv6 only";
        if (other->n == 1)
                return "IPv4 and IPv6";
        return l->v[0].ip.family == 4 ? "IPv4 before IPv6" : "IPv6 before IPv4";
}

static bool one_of_each(
        const struct cluster *c, const char *path, const struct cidrs *l, struct problems *p)
{
        for (size_t i = 1; i < l->n; i++)
                for (size_t j = 0; j < i; j++)
                        if (l->v[i].ip.family == l->v[j].ip.family) {
                                problem_add(p, rule_item(rule_find(c, path), i), NULL,
                                        "use one range, or one of each family for dual-stack",
                                        "there can be only one IPv%u range", l->v[i].ip.family);
                                return false;
                        }
        return true;
}

/* The hint shows the missing ranges, in the order of the one that is written. */
static void ranges_agree(const struct cluster *c, struct problems *p)
{
        const struct network *n = &c->network;
        bool same = n->pods.n == n->services.n, pods_written = rule_find(c, "network.pods"),
             services_written = rule_find(c, "network.services");
        for (size_t i = 0; same && i < n->pods.n; i++)
                same = n->pods.v[i].ip.family == n->services.v[i].ip.family;
        if (same)
                return;
        bool show_services = pods_written || !services_written;
        const struct cidrs *from = show_services ? &n->pods : &n->services;
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < from->n; i++)
                str_addf(&s, "%s%s", i ? ", " : "",
                        from->v[i].ip.family == 4 ? show_services ? "10.96.0.0/16" : "10.244.0.0/16"
                        : show_services           ? "\"fd00:10:96::/112\""
                                                  : "\"fd00:10:244::/56\"");
        const char *hint =
                arena_printf(p->arena, "use the same families in the same order, such as %s: [%s]",
                        show_services ? "services" : "pods", str_text(&s));
        if (services_written)
                rule_error(p, c, "network.services", hint, "services are %s, but pods are %s%s",
                        families(&n->services, &n->pods), families(&n->pods, &n->services),
                        pods_written ? "" : " (the default)");
        else
                rule_error(p, c, "network.pods", hint,
                        "pods are %s, but services are %s (the default)",
                        families(&n->pods, &n->services), families(&n->services, &n->pods));
}

static bool has_family(const struct node *n, unsigned family)
{
        return n->ip[0].family == family || n->ip[1].family == family;
}

/* Written addresses of one host. */
static void host_families(const struct cluster *c, const struct node *n, struct problems *p)
{
        const struct cidrs *pods = &c->network.pods;
        const char *field = n->host->ip.n ? "ip" : "address";
        bool dual = pods->n == 2;
        unsigned first = pods->v[0].ip.family;
        if (n->host->ip.n > 2)
                problem_add(p, n->host->src, "ip", "give at most one of each family",
                        "a node has one or two addresses, got %zu", n->host->ip.n);
        else if (n->host->ip.n == 2 && n->host->ip.v[0].family == n->host->ip.v[1].family)
                problem_add(p, n->host->src, "ip", "give at most one of each family",
                        "both addresses are IPv%u", n->host->ip.v[0].family);
        else if (n->host->ip.n == 2 && !dual)
                problem_add(p, n->host->src, "ip",
                        "add a range of the other family to network.pods and network.services, or leave the second address out",
                        "two addresses are for dual-stack, but the cluster is IPv%u only", first);
        else if (n->ip[0].family && dual && !(has_family(n, 4) && has_family(n, 6)))
                problem_add(p, n->host->src, field,
                        "give both, such as {address: 192.0.2.11, ip: [192.0.2.11, \"2001:db8::11\"]}",
                        "a dual-stack node needs an address of each family, got only IPv%u",
                        n->ip[0].family);
        else if (n->ip[0].family && !dual && n->ip[0].family != first)
                problem_add(p, n->host->src, field,
                        arena_printf(p->arena,
                                "give its IPv%u address under ip, or use IPv%u ranges for pods and services",
                                first, n->ip[0].family),
                        "the node's address is IPv%u, but pods are IPv%u", n->ip[0].family, first);
}

/* Said already, about network.hosts. */
static bool hosts_overlap(const struct cluster *c, const struct cidr *range)
{
        for (size_t i = 0; i < c->network.hosts.n; i++)
                if (cidr_overlaps(&c->network.hosts.v[i], range))
                        return true;
        return false;
}

/* The first node in a wrong place is shown, the others are counted: it is one mistake,
 * not a thousand. */
static void nodes_inside(
        const struct cluster *c, const char *path, const struct cidrs *ranges, struct problems *p)
{
        for (size_t r = 0; r < ranges->n; r++) {
                const struct node *first = NULL;
                struct ip ip = { 0 };
                size_t more = 0;
                for (size_t i = 0; i < c->node_count; i++)
                        for (size_t k = 0; c->nodes[i].host && k < 2; k++)
                                if (c->nodes[i].ip[k].family &&
                                        cidr_contains(&ranges->v[r], &c->nodes[i].ip[k]) &&
                                        !hosts_overlap(c, &ranges->v[r])) {
                                        if (!first) {
                                                first = &c->nodes[i];
                                                ip = c->nodes[i].ip[k];
                                        } else {
                                                more++;
                                        }
                                }
                char address[IP_TEXT], range[IP_TEXT + 4], others[48] = "";
                if (!first)
                        continue;
                if (more)
                        snprintf(others, sizeof(others), ", and so %s %zu more",
                                more == 1 ? "is" : "are", more);
                problem_add(p, first->host->src, first->host->ip.n ? "ip" : "address",
                        arena_printf(p->arena, "set %s to a range that no machine uses", path),
                        "%s is inside %s %s%s%s", ip_format(&ip, address), path,
                        cidr_format(&ranges->v[r], range),
                        rule_find(c, path) ? "" : " (the default)", others);
        }
}

static void nodes_outside(const struct cluster *c, struct problems *p)
{
        const struct cidrs *hosts = &c->network.hosts;
        char text[IP_TEXT];
        for (size_t i = 0; i < c->node_count && hosts->n; i++) {
                const struct node *n = &c->nodes[i];
                for (size_t k = 0; n->host && k < 2 && n->ip[k].family; k++) {
                        bool known = false, in = false;
                        for (size_t h = 0; h < hosts->n; h++) {
                                known |= hosts->v[h].ip.family == n->ip[k].family;
                                in |= cidr_contains(&hosts->v[h], &n->ip[k]);
                        }
                        if (known && !in)
                                problem_add(p, n->host->src, n->host->ip.n ? "ip" : "address",
                                        "correct the address, or add its network to network.hosts",
                                        "%s is not in network.hosts", ip_format(&n->ip[k], text));
                }
        }
}

/* Machines on this computer have an address in each of its networks. */
static void local_family(const struct cluster *c, struct problems *p)
{
        static const char *const path = "provider.local.network";
        const struct cidrs *pods = &c->network.pods, *nets = &c->provider.local.network;
        if (c->provider.kind != PROVIDER_LOCAL || !nets->n || !one_of_each(c, path, nets, p))
                return;
        unsigned family = nets->v[0].ip.family;
        if (pods->n > nets->n)
                rule_error(p, c, rule_find(c, path) ? path : "network.pods",
                        "set provider.local.network to one of each, such as [10.117.0.0/24, \"fd00:117::/112\"]",
                        "dual-stack needs an address of each family, but the machines have only IPv%u",
                        family);
        else if (pods->n < nets->n)
                rule_error(p, c, path,
                        "add a range of the other family to network.pods and network.services, or use one network",
                        "two networks are for dual-stack, but the cluster is IPv%u only",
                        pods->v[0].ip.family);
        else if (pods->n == 1 && pods->v[0].ip.family != family)
                rule_error(p, c, "network.pods",
                        pods->v[0].ip.family == 6
                                ? "set provider.local.network to an IPv6 range, such as \"fd00:117::/112\""
                                : "set provider.local.network to an IPv4 range, such as 10.117.0.0/24",
                        "pods are IPv%u, but the machines are IPv%u", pods->v[0].ip.family, family);
}

void rules_families(struct cluster *c, struct problems *p)
{
        const struct network *n = &c->network;
        if (!n->pods.n || !n->services.n)
                return;
        bool pods = one_of_each(c, "network.pods", &n->pods, p),
             services = one_of_each(c, "network.services", &n->services, p);
        nodes_inside(c, "network.pods", &n->pods, p);
        nodes_inside(c, "network.services", &n->services, p);
        nodes_outside(c, p);
        if (!pods || !services)
                return;
        ranges_agree(c, p);
        local_family(c, p);
        for (size_t i = 0; i < c->node_count; i++)
                if (c->nodes[i].host)
                        host_families(c, &c->nodes[i], p);
}
