/* Fabrics that upstream ships as charts: what of cluster.yaml their values say. */
#include "base/quote.h"
#include "config/addon.h"
#include "config/fabric.h"

#define CHART_TIMEOUT 900

/* key: "value" */
static void chart_text(struct str *s, const char *key, const char *value)
{
        str_addf(s, "%s: ", key);
        quote_yaml(s, value);
        str_addc(s, '\n');
}

/* The range of a family, or NULL. */
static const char *fabric_range(const struct cluster *c, const struct cidrs *list, int family)
{
        char text[IP_TEXT + 4];
        for (size_t i = 0; i < list->n; i++)
                if (list->v[i].ip.family == family)
                        return arena_strdup(c->arena, cidr_format(&list->v[i], text));
        return NULL;
}

/* ---- cilium ---- */

/* Its agents run in the host's network, where each node's own load balancer is. */
static void cilium_api(const struct cluster *c, struct str *s)
{
        bool local = c->api.local_balancer;
        const char *host = local ? "127.0.0.1" : cluster_endpoint_host(c);
        if (!host)
                return;
        chart_text(s, "k8sServiceHost", host);
        str_addf(s, "k8sServicePort: %ld\n", local ? c->api.local_port : cluster_endpoint_port(c));
}

static void cilium_routing(const struct cluster *c, struct str *s)
{
        const char *four = fabric_range(c, &c->network.pods, 4),
                   *six = fabric_range(c, &c->network.pods, 6);
        bool routed = c->network.fabric.backend == BACKEND_HOST_GW;
        str_add(s, routed ? "routingMode: native\nautoDirectNodeRoutes: true\n"
                          : "routingMode: tunnel\ntunnelProtocol: vxlan\n");
        if (routed && four)
                chart_text(s, "ipv4NativeRoutingCIDR", four);
        if (routed && six)
                chart_text(s, "ipv6NativeRoutingCIDR", six);
        if (c->network.fabric.backend == BACKEND_WIREGUARD)
                str_add(s, "encryption: {enabled: true, type: wireguard}\n");
        str_addf(s, "ipv4: {enabled: %s}\nipv6: {enabled: %s}\n", four ? "true" : "false",
                six ? "true" : "false");
}

/* Each node's pods get addresses of its Node's range, as the controller manager assigned it. */
static const char *cilium_values(const struct cluster *c)
{
        struct str s CLEANUP(str_release) = { 0 };
        const struct fabric *f = &c->network.fabric;
        cilium_api(c, &s);
        str_add(&s, "ipam: {mode: kubernetes}\n");
        chart_text(
                &s, "kubeProxyReplacement", c->network.proxy_mode == PROXY_NONE ? "true" : "false");
        cilium_routing(c, &s);
        if (f->mtu)
                str_addf(&s, "MTU: %ld\n", f->mtu);
        if (f->interface)
                chart_text(&s, "devices", f->interface);
        str_addf(&s, "operator: {replicas: %d}\n", c->node_count > 1 ? 2 : 1);
        return arena_strdup(c->arena, str_text(&s));
}

const struct fabric_chart cilium_chart = { "cilium", "https://helm.cilium.io", "cilium", "1.20.2",
        cilium_values };

/* ---- kube-ovn ---- */

static const char *kube_ovn_masters(const struct cluster *c)
{
        struct str s CLEANUP(str_release) = { 0 };
        char text[IP_TEXT];
        size_t i = 0;
        for (const struct node *n; (n = cluster_next(c, ROLE_CONTROL_PLANE, &i));)
                if (n->ip[0].family)
                        str_addf(&s, "%s%s", s.len ? "," : "", ip_format(&n->ip[0], text));
        return arena_strdup(c->arena, str_text(&s));
}

/* Both families are one text, in the order of network.pods. */
static const char *kube_ovn_list(const struct cluster *c, const struct cidrs *list, bool gateways)
{
        struct str s CLEANUP(str_release) = { 0 };
        char text[IP_TEXT + 4];
        struct ip first;
        for (size_t i = 0; i < list->n; i++)
                str_addf(&s, "%s%s", i ? "," : "",
                        !gateways                          ? cidr_format(&list->v[i], text)
                        : cidr_nth(&list->v[i], 1, &first) ? ip_format(&first, text)
                                                           : "");
        return arena_strdup(c->arena, str_text(&s));
}

static const char *kube_ovn_values(const struct cluster *c)
{
        struct str s CLEANUP(str_release) = { 0 };
        const struct cidrs *pods = &c->network.pods;
        const char *interface = c->network.fabric.interface;
        const char *stack = pods->n > 1                            ? "dual_stack"
                            : pods->n && pods->v[0].ip.family == 6 ? "ipv6"
                                                                   : "ipv4";
        chart_text(&s, "MASTER_NODES", kube_ovn_masters(c));
        chart_text(&s, "MASTER_NODES_LABEL", "node-role.kubernetes.io/control-plane=");
        str_add(&s, "networking:\n");
        chart_text(&s, "  NET_STACK", stack);
        chart_text(&s, "  IFACE", interface ? interface : "");
        str_addf(&s, "%s:\n", stack);
        chart_text(&s, "  POD_CIDR", kube_ovn_list(c, pods, false));
        chart_text(&s, "  POD_GATEWAY", kube_ovn_list(c, pods, true));
        chart_text(&s, "  SVC_CIDR", kube_ovn_list(c, &c->network.services, false));
        return arena_strdup(c->arena, str_text(&s));
}

const struct fabric_chart kube_ovn_chart = { "kubeovn", "https://kubeovn.github.io/kube-ovn",
        "kube-ovn", "v1.14.10", kube_ovn_values };

/* ---- the row of services.charts ---- */

void fabric_expand(struct cluster *c)
{
        const struct fabric_chart *f = cluster_fabric(c)->chart;
        struct services *s = &c->services;
        if (!f)
                return;
        services_grow(c, 1);
        services_repository(s, c->network.fabric.src, f->repository, f->url);
        s->charts.v[s->charts.n++] = (struct chart){ .src = c->network.fabric.src,
                .name = fabric_names[c->network.fabric.kind],
                .chart = arena_printf(c->arena, "%s/%s", f->repository, f->chart),
                .version = f->version,
                .namespace = "kube-system",
                .wait = true,
                .atomic = true,
                .fabric = true,
                .values_text = f->values(c),
                .timeout = CHART_TIMEOUT };
}
