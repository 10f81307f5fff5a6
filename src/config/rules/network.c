/* The ranges: none may overlap another, and each must hold what is to be put into it. */
#include "config/fabric.h"
#include "config/rules/rules.h"

/* A range somebody wrote or that is a default. `host`: it holds machines, so the other one of a
 * pair has to give way. */
struct range {
        const char *path;
        const struct cidr *cidr;
        const struct tree *at; /* NULL: the default */
        bool host;
};

#define RANGES_MAX 16

static size_t add_ranges(const struct cluster *c, struct range *out, size_t n, const char *path,
        const struct cidrs *list, bool host)
{
        const struct tree *at = rule_find(c, path);
        for (size_t i = 0; i < list->n && i < 4 && n < RANGES_MAX; i++)
                out[n++] = (struct range){ path, &list->v[i], rule_item(at, i), host };
        return n;
}

static size_t collect(const struct cluster *c, struct range *out)
{
        static const char *const local = "provider.local.network", *const vpc =
                                                                           "provider.aws.vpc.cidr";
        size_t n = add_ranges(c, out, 0, "network.hosts", &c->network.hosts, true);
        if (c->provider.kind == PROVIDER_LOCAL)
                n = add_ranges(c, out, n, local, &c->provider.local.network, true);
        if (c->provider.kind == PROVIDER_AWS && c->provider.aws.vpc.cidr.ip.family &&
                !c->provider.aws.vpc.id && n < RANGES_MAX)
                out[n++] =
                        (struct range){ vpc, &c->provider.aws.vpc.cidr, rule_find(c, vpc), true };
        n = add_ranges(c, out, n, "network.pods", &c->network.pods, false);
        return add_ranges(c, out, n, "network.services", &c->network.services, false);
}

/* A range like this one that overlaps nothing, for the hint. */
static const char *free_range(const struct range *like, const struct range *all, size_t n)
{
        static const char *const pods[] = { "10.244.0.0/16", "10.128.0.0/16", "172.16.0.0/16",
                "100.64.0.0/16", "fd00:10:244::/56", "fd00:20:244::/56" };
        static const char *const services[] = { "10.96.0.0/16", "10.32.0.0/16", "172.20.0.0/16",
                "100.96.0.0/16", "fd00:10:96::/112", "fd00:20:96::/112" };
        const char *const *table = streq(like->path, "network.pods") ? pods : services;
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                struct cidr c;
                bool taken =
                        !cidr_parse(table[i], &c, NULL) || c.ip.family != like->cidr->ip.family;
                for (size_t k = 0; k < n; k++)
                        taken |= &all[k] != like && cidr_overlaps(&c, all[k].cidr);
                if (!taken)
                        return table[i];
        }
        return NULL;
}

static void overlap(const struct cluster *c, const struct range *all, size_t n, size_t a, size_t b,
        struct problems *p)
{
        const struct range *written = all[b].at ? &all[b] : &all[a],
                           *other = written == &all[b] ? &all[a] : &all[b];
        const struct range *change = all[a].host ? &all[b] : written;
        const char *suggestion = free_range(change, all, n);
        char one[IP_TEXT + 4], two[IP_TEXT + 4];
        cidr_format(written->cidr, one);
        cidr_format(other->cidr, two);
        const char *hint =
                suggestion ? arena_printf(p->arena, "set %s to a separate range, such as %s",
                                     change->path, suggestion)
                           : NULL;
        const char *where =
                !other->at ? " (the default)"
                : written->at && other->at->file != written->at->file
                        ? arena_printf(p->arena, " (%s)", rule_where(p, other->at, written->at))
                        : "";
        if (written->at)
                problem_add(p, written->at, NULL, hint, "%s overlaps %s %s%s", one, other->path,
                        two, where);
        else
                rule_error(p, c, written->path, hint, "%s (the default) overlaps %s %s%s", one,
                        other->path, two, where);
}

static void overlaps(const struct cluster *c, struct problems *p)
{
        struct range all[RANGES_MAX];
        size_t n = collect(c, all);
        for (size_t b = 1; b < n; b++)
                for (size_t a = 0; a < b; a++)
                        if (!(all[a].host && all[b].host) && all[a].path != all[b].path &&
                                cidr_overlaps(all[a].cidr, all[b].cidr))
                                overlap(c, all, n, a, b, p);
}

static void reserved_ranges(
        const struct cluster *c, const char *path, const struct cidrs *list, struct problems *p)
{
        static const struct {
                const char *range, *what;
        } table[] = { { "127.0.0.0/8", "the loopback" },
                { "169.254.0.0/16", "the link-local range" },
                { "224.0.0.0/3", "the multicast range" }, { "fe80::/10", "the link-local range" },
                { "ff00::/8", "the multicast range" } };
        char text[IP_TEXT + 4];
        struct cidr r;
        for (size_t i = 0; i < list->n; i++)
                for (size_t k = 0; k < ARRAY_SIZE(table); k++)
                        if (cidr_parse(table[k].range, &r, NULL) && cidr_overlaps(&r, &list->v[i]))
                                problem_add(p, rule_item(rule_find(c, path), i), NULL,
                                        "use a private range: part of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or fd00::/8",
                                        "%s overlaps %s %s", cidr_format(&list->v[i], text),
                                        table[k].what, table[k].range);
}

/* Every node with a kubelet gets a piece of nodeMask bits. */
static void pod_room(const struct cluster *c, const struct cidr *pods, size_t index, size_t nodes,
        struct problems *p)
{
        bool six = pods->ip.family == 6;
        const char *field = six ? "nodeMaskV6" : "nodeMask";
        const struct tree *at = rule_item(rule_find(c, "network.pods"), index),
                          *mask_at = tree_get(c->network.src, field);
        long mask = six ? c->network.node_mask6 : c->network.node_mask, bits = mask - pods->bits;
        char text[IP_TEXT + 4];
        cidr_format(pods, text);
        if (!mask)
                return;
        long need = 0;
        while (need < 40 && (uint64_t)1 << need < nodes)
                need++;
        if (bits < 0)
                problem_add(p,
                        mask_at ? mask_at
                        : at    ? at
                                : c->src,
                        NULL,
                        arena_printf(p->arena,
                                "use a network.pods of /%ld or larger, or a %s of at least %ld",
                                mask - need, field, pods->bits + need),
                        "a node's pod range of /%ld (%s) does not fit into %s", mask, field, text);
        else if (bits > 16)
                problem_add(p, at ? at : c->src, at ? NULL : "network.pods",
                        arena_printf(p->arena,
                                "use a smaller range, such as a /%ld, or a smaller %s",
                                mask - 16 + (six ? 8 : 0), field),
                        "%s would be split into more than 65536 ranges of /%ld, which the controller manager refuses",
                        text, mask);
        else if ((uint64_t)1 << bits < nodes)
                problem_add(p, at ? at : c->src, at ? NULL : "network.pods",
                        arena_printf(p->arena, "use a /%ld or larger, or a %s of %ld", mask - need,
                                field, pods->bits + need),
                        "%s has room for %ld node%s with a /%ld each, but the cluster has %zu",
                        text, 1L << bits, bits ? "s" : "", mask, nodes);
}

static void service_room(const struct cluster *c, size_t i, struct problems *p)
{
        const struct cidr *s = &c->network.services.v[i];
        const struct tree *at = rule_item(rule_find(c, "network.services"), i);
        char text[IP_TEXT + 4];
        cidr_format(s, text);
        if (!at)
                return;
        if (cidr_host_bits(s) < 4)
                problem_add(p, at, NULL,
                        s->ip.family == 4 ? "use at least a /28; a /16 leaves room to grow"
                                          : "use at least a /124; a /112 leaves room to grow",
                        "%s has %u addresses, too few for the DNS service, whose address is the tenth",
                        text, 1u << cidr_host_bits(s));
        else if (cidr_host_bits(s) > 20)
                problem_add(p, at, NULL,
                        s->ip.family == 4 ? "use a /12 or smaller, such as a /16"
                                          : "use a /108 or smaller, such as a /112",
                        "%s is too large for services: Kubernetes accepts at most 20 bits of addresses (a /%d)",
                        text, s->ip.family == 4 ? 12 : 108);
}

static void dns_address(const struct cluster *c, struct problems *p)
{
        const struct network *n = &c->network;
        struct ip dns, first;
        char range[IP_TEXT + 4];
        const struct cidr *in = NULL;
        if (!n->dns || !ip_parse(n->dns, &dns) || !n->services.n)
                return;
        for (size_t i = 0; i < n->services.n; i++)
                if (cidr_contains(&n->services.v[i], &dns))
                        in = &n->services.v[i];
        cidr_format(in ? in : &n->services.v[0], range);
        if (!in)
                rule_error(p, c, "network.dns", "leave it out to use the tenth address",
                        "%s is not in network.services %s", n->dns, range);
        else if (ip_equal(&in->ip, &dns))
                rule_error(p, c, "network.dns", "leave it out to use the tenth address",
                        "%s is the network address of %s", n->dns, range);
        else if (cidr_nth(in, 1, &first) && ip_equal(&first, &dns))
                rule_error(p, c, "network.dns", "leave it out to use the tenth address",
                        "%s is the first address of %s, which is reserved for the API (kubernetes.default)",
                        n->dns, range);
        for (size_t i = 0; i < n->dns_upstream.n; i++)
                if (n->dns_upstream.v[i] && streq(n->dns_upstream.v[i], n->dns))
                        problem_add(p, rule_item(rule_find(c, "network.dnsUpstream"), i), NULL,
                                "name a server outside the cluster",
                                "the cluster's DNS would forward queries to itself");
}

static void network_fabric(const struct cluster *c, struct problems *p)
{
        const struct fabric *f = &c->network.fabric;
        const struct fabric_row *row = cluster_fabric(c);
        if (row->options & FABRIC_TAKES_MANIFESTS && !f->manifests.n &&
                !rule_spoiled(p, "network.fabric"))
                rule_error(p, c, "network.fabric.manifests",
                        "list its files, such as fabric: {name: custom, manifests: [calico.yaml]}, or use none and install it yourself",
                        "a custom pod network needs its manifests");
        if (!(row->options & FABRIC_TAKES_MANIFESTS) && f->manifests.n)
                rule_error(p, c, "network.fabric.manifests", "use name: custom, or leave them out",
                        "manifests are used only if the fabric's name is custom");
        if (!(row->options & FABRIC_TAKES_BACKEND) && tree_get(f->src, "backend"))
                rule_error(p, c, "network.fabric.backend", "leave it out",
                        "%s has no backend to choose", fabric_names[f->kind]);
        else if (row->backends && !(row->backends & 1U << f->backend))
                rule_error(p, c, "network.fabric.backend", "use vxlan or host-gw",
                        "%s does not have this backend", fabric_names[f->kind]);
        if (row->needs_proxy && c->network.proxy_mode == PROXY_NONE)
                rule_warn(p, c, "network.proxyMode",
                        "use nftables or iptables; none is for pod networks that replace kube-proxy",
                        "without kube-proxy the addresses of Services do not work, and %s does not replace it",
                        fabric_names[f->kind]);
        if (row->parts & FABRIC_FLANNELD && f->backend == BACKEND_HOST_GW &&
                c->network.hosts.n > 1 &&
                c->network.hosts.v[0].ip.family == c->network.hosts.v[1].ip.family)
                rule_error(p, c, "network.fabric.backend", "use vxlan or wireguard",
                        "host-gw needs all nodes in one network, but network.hosts lists %zu",
                        c->network.hosts.n);
        if (c->network.proxy_mode == PROXY_IPVS && c->kubernetes.minor >= 35)
                rule_warn(p, c, "network.proxyMode", "use nftables",
                        "kube-proxy's ipvs mode is deprecated since Kubernetes 1.35 and will be removed");
}

/* Images are for components that the cluster has of its own (adopted clusters). */
static void images(const struct cluster *c, struct problems *p)
{
        const struct network *n = &c->network;
        if (n->proxy_image && (n->proxy_run == PROXY_RUN_SERVICE || n->proxy_mode == PROXY_NONE))
                rule_error(p, c, "network.proxyImage",
                        "leave it out, or set network.proxyRun: daemonset",
                        "kube-proxy does not run as a pod, so it has no image");
        if (n->dns_image && n->manage_dns)
                rule_error(p, c, "network.dnsImage",
                        "leave it out, or set network.manageDNS: false",
                        "slipway manages CoreDNS and chooses its image");
}

void rules_network(struct cluster *c, struct problems *p)
{
        size_t nodes = 0;
        for (size_t i = 0; i < c->node_count; i++)
                nodes += !!(c->nodes[i].pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER));
        overlaps(c, p);
        reserved_ranges(c, "network.pods", &c->network.pods, p);
        reserved_ranges(c, "network.services", &c->network.services, p);
        for (size_t i = 0; i < c->network.pods.n; i++)
                pod_room(c, &c->network.pods.v[i], i, nodes, p);
        for (size_t i = 0; i < c->network.services.n; i++)
                service_room(c, i, p);
        dns_address(c, p);
        network_fabric(c, p);
        images(c, p);
}
