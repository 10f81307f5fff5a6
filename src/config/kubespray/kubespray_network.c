/* The endpoint and the networks. */
#include "config/kubespray/kubespray_impl.h"

/* What Kubespray takes when nothing is written: the running cluster has these,
 * not slipway's defaults. */
#define SPRAY_PODS      "10.233.64.0/18"
#define SPRAY_SERVICES  "10.233.0.0/18"
#define SPRAY_PODS6     "fd85:ee78:d8a6:8607::1:0000/112"
#define SPRAY_SERVICES6 "fd85:ee78:d8a6:8607::1000/116"
#define SPRAY_MASK6     "120"

static bool dual_stack(struct spray *k)
{
        return spray_true(k, "ipv6_stack") || spray_true(k, "enable_dual_stack_networks");
}

/* The range as slipway wants it, or NULL (and noted) when it is none. */
static const char *range(struct spray *k, const char *var, const char *def, int family)
{
        const char *text = spray_text(k, var);
        struct cidr c;
        char buf[IP_TEXT + 4];
        if (!cidr_parse(text ? text : def, &c, NULL) || c.ip.family != family) {
                spray_note(k,
                        "%s was %s, which is not an IPv%d network; this is Kubespray's default",
                        var, text, family);
                cidr_parse(def, &c, NULL);
        }
        return arena_strdup(k->arena, cidr_format(&c, buf));
}

static void kubespray_network_ranges(struct spray *k, const char *field, const char *var,
        const char *def, const char *var6, const char *def6)
{
        const char *v[2];
        struct strings s = { 0, v };
        bool dual = dual_stack(k), v4 = !spray_var(k, "ipv4_stack") || spray_true(k, "ipv4_stack");
        if (v4 || !dual)
                v[s.n++] = range(k, var, def, 4);
        if (dual)
                v[s.n++] = range(k, var6, def6, 6);
        if (s.n == 1)
                spray_field(k, field, v[0]);
        else
                spray_words(k, field, &s);
}

/* Fabrics that slipway does not install. Flannel is written in their place, so that the file works
 * as it is. */
static const struct {
        const char *plugin, *what;
} other_fabrics[] = {
        { "weave", "Weave Net was archived in 2024; flannel replaces it" },
        { "contiv", "Contiv was archived; flannel replaces it" },
        { "romana", "Romana was archived; flannel replaces it" },
        { "kube-router",
                "slipway does not install it: to keep it, use fabric: {name: custom, manifests: [kube-router.yaml]}" },
        { "ovn4nfv", "it is no longer developed; flannel replaces it" },
        { "macvlan",
                "slipway does not install it: to keep it, use fabric: {name: custom, manifests: [macvlan.yaml]}" },
        { "multus",
                "multus needs another pod network underneath: flannel here, and add the addon multus (services.addons)" },
};

/* backend and mtu: NULL for the default. */
static void kubespray_network_write(
        struct spray *k, const char *name, const char *backend, const char *mtu)
{
        struct spray_section section;
        if (!backend && !mtu)
                return spray_field(k, "fabric", name);
        spray_begin(k, &section, "fabric");
        spray_field(k, "name", name);
        if (backend)
                spray_field(k, "backend", backend);
        if (mtu)
                spray_field(k, "mtu", mtu);
        spray_end(k, &section);
}

static void kubespray_network_flannel(struct spray *k, const char *name)
{
        const char *backend = spray_text(k, "flannel_backend_type");
        bool known = backend && (streq(backend, "host-gw") || streq(backend, "wireguard"));
        if (backend && !known && !streq(backend, "vxlan"))
                spray_note(k, "flannel's backend was %s, which was removed; vxlan replaces it",
                        backend);
        kubespray_network_write(k, name, known ? backend : NULL, NULL);
}

static const char *kubespray_network_mtu(struct spray *k, const char *var)
{
        const char *mtu = spray_text(k, var);
        return mtu && *mtu && !mtu[strspn(mtu, "0123456789")] && !streq(mtu, "0") ? mtu : NULL;
}

/* Kubespray's defaults: VXLAN, always. */
static void kubespray_network_calico(struct spray *k)
{
        const char *backend = spray_text(k, "calico_network_backend"),
                   *mode = spray_text(k, "calico_vxlan_mode");
        if (backend && streq(backend, "bird"))
                spray_note(k,
                        "calico's routes came from BGP, which slipway's calico does not have: packets between nodes are wrapped in VXLAN");
        kubespray_network_write(k, "calico",
                mode && !strcasecmp(mode, "CrossSubnet") ? "host-gw" : NULL,
                kubespray_network_mtu(k, "calico_mtu"));
}

static void kubespray_network_cilium(struct spray *k)
{
        const char *mode = spray_text(k, "cilium_tunnel_mode");
        bool routed = mode && (streq(mode, "disabled") || streq(mode, "native"));
        if (mode && streq(mode, "geneve"))
                spray_note(k, "cilium's tunnels were Geneve; VXLAN replaces it");
        if (spray_true(k, "cilium_encryption_enabled"))
                kubespray_network_write(
                        k, "cilium", "wireguard", kubespray_network_mtu(k, "cilium_mtu"));
        else
                kubespray_network_write(k, "cilium", routed ? "host-gw" : NULL,
                        kubespray_network_mtu(k, "cilium_mtu"));
}

static void kubespray_network_fabric(struct spray *k)
{
        const char *plugin = spray_text(k, "kube_network_plugin");
        if (!plugin || streq(plugin, "calico"))
                return kubespray_network_calico(k);
        if (streq(plugin, "cilium"))
                return kubespray_network_cilium(k);
        if (streq(plugin, "kube-ovn"))
                return spray_field(k, "fabric", plugin);
        if (streq(plugin, "flannel") || streq(plugin, "canal"))
                return kubespray_network_flannel(k, plugin);
        if (streq(plugin, "cni") || streq(plugin, "none") || streq(plugin, "custom_cni") ||
                streq(plugin, "cloud")) {
                spray_note(k,
                        "the pod network (%s) was your own: nodes become Ready when you install it",
                        plugin);
                return spray_field(k, "fabric", "none");
        }
        const char *what = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(other_fabrics); i++)
                if (streq(plugin, other_fabrics[i].plugin))
                        what = other_fabrics[i].what;
        spray_note(k, "the pod network was %s: %s", plugin,
                what ? what : "slipway does not know it; flannel replaces it");
        spray_field(k, "fabric", "flannel");
}

static void proxy_mode(struct spray *k)
{
        const char *mode = spray_text(k, "kube_proxy_mode");
        if (spray_true(k, "kube_proxy_remove") || spray_true(k, "cilium_kube_proxy_replacement"))
                mode = "none";
        if (!mode || streq(mode, "iptables"))
                return;
        if (streq(mode, "ipvs")) {
                spray_note(k,
                        "kube-proxy was in IPVS mode, which Kubernetes 1.35 deprecated: nftables replaces it; ipvs still works");
                mode = "nftables";
        } else if (!streq(mode, "nftables") && !streq(mode, "none")) {
                spray_note(k, "kube_proxy_mode was %s, which was removed; iptables is the default",
                        mode);
                return;
        }
        spray_field(k, "proxyMode", mode);
}

static void masks(struct spray *k)
{
        static const struct spray_row row = { "kube_network_node_prefix", "nodeMask", HOW_NUMBER,
                "24", 16, 30 };
        static const struct spray_row row6 = { "kube_network_node_prefix_ipv6", "nodeMaskV6",
                HOW_NUMBER, "64", 48, 124 };
        spray_rows(k, &row, 1);
        if (dual_stack(k) && spray_text(k, row6.var))
                spray_rows(k, &row6, 1);
        else if (dual_stack(k))
                str_addf(k->out, "%*snodeMaskV6: " SPRAY_MASK6 "\n", k->indent, "");
}

void spray_network(struct spray *k)
{
        static const struct spray_row rows[] = {
                { "dns_domain", "domain", HOW_HOST, "cluster.local" },
                { "upstream_dns_servers", "dnsUpstream", HOW_WORDS },
        };
        static const struct spray_row old_domain = { "cluster_name", "domain", HOW_HOST,
                "cluster.local" };
        struct spray_section section;
        spray_begin(k, &section, "network");
        kubespray_network_ranges(
                k, "pods", "kube_pods_subnet", SPRAY_PODS, "kube_pods_subnet_ipv6", SPRAY_PODS6);
        kubespray_network_ranges(k, "services", "kube_service_addresses", SPRAY_SERVICES,
                "kube_service_addresses_ipv6", SPRAY_SERVICES6);
        masks(k);
        if (!spray_var(k, "dns_domain"))
                spray_rows(k, &old_domain, 1);
        spray_rows(k, rows, ARRAY_SIZE(rows));
        kubespray_network_fabric(k);
        proxy_mode(k);
        spray_end(k, &section);
}

/* ---- the endpoint ---- */

static void add_name(struct strings *s, size_t max, const char *name)
{
        if (!name || s->n == max || streq(name, "localhost") || streq(name, "127.0.0.1"))
                return;
        for (size_t i = 0; i < s->n; i++)
                if (!strcasecmp(s->v[i], name))
                        return;
        s->v[s->n++] = name;
}

/* Names that the API's certificate has beside those it always has. */
static void api_names(struct spray *k, const char *endpoint)
{
        struct strings more = spray_list(k, "supplementary_addresses_in_ssl_keys"), s = { 0 };
        size_t max = more.n + 1;
        s.v = arena_array(k->arena, const char *, max);
        const char *domain = spray_text(k, "apiserver_loadbalancer_domain_name");
        if (!domain || !endpoint || !streq(domain, endpoint))
                add_name(&s, max, domain);
        for (size_t i = 0; i < more.n; i++)
                add_name(&s, max, more.v[i]);
        spray_words(k, "names", &s);
}

static const char *vip_of(struct spray *k)
{
        struct ip ip;
        const char *vip =
                spray_true(k, "kube_vip_enabled") ? spray_text(k, "kube_vip_address") : NULL;
        if (vip && !ip_parse(vip, &ip)) {
                spray_note(k, "kube_vip_address was %s, which is not an address", vip);
                return NULL;
        }
        return vip;
}

/* host:port of loadbalancer_apiserver; NULL when there is none, or when it is the VIP. */
static const char *balancer_of(struct spray *k, const char *vip)
{
        const struct tree *lb = spray_var(k, "loadbalancer_apiserver");
        const char *address = spray_scalar(
                k, k->seat[0], tree_get(lb, "address"), "loadbalancer_apiserver.address");
        const char *port =
                spray_scalar(k, k->seat[0], tree_get(lb, "port"), "loadbalancer_apiserver.port");
        struct ip ip;
        if (!address || (vip && streq(address, vip)))
                return NULL;
        bool v6 = ip_parse(address, &ip) && ip.family == 6;
        if (strspn(port ? port : "", "0123456789") != strlen(port ? port : ""))
                port = NULL;
        return arena_printf(
                k->arena, v6 ? "[%s]%s%s" : "%s%s%s", address, port ? ":" : "", port ? port : "");
}

void spray_api(struct spray *k)
{
        static const struct spray_row rows[] = {
                { "kube_apiserver_port", "port", HOW_NUMBER, "6443", 1, 65535 },
        };
        static const struct spray_row interface = { "kube_vip_interface", "vipInterface",
                HOW_TEXT };
        struct spray_section section;
        spray_begin(k, &section, "api");
        const char *vip = vip_of(k), *balancer = balancer_of(k, vip);
        if (vip) {
                spray_comment(k, "held by keepalived instead of kube-vip");
                spray_field(k, "vip", vip);
                spray_rows(k, &interface, 1);
        } else if (balancer)
                spray_field(k, "loadBalancer", balancer);
        if (vip && balancer)
                spray_note(
                        k, "the load balancer %s is left out: the VIP is the endpoint", balancer);
        api_names(k, vip);
        spray_rows(k, rows, ARRAY_SIZE(rows));
        spray_end(k, &section);
}
