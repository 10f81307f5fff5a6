/* Values of the pod network's files. */
#include "base/quote.h"
#include "node/context.h"

json_t *flannel_values(const struct context *x)
{
        static const char *const backends[] = { [BACKEND_VXLAN] = "vxlan",
                [BACKEND_HOST_GW] = "host-gw",
                [BACKEND_WIREGUARD] = "wireguard" };
        const struct network *n = &x->cluster->network;
        const struct ip *v4 = node_ip(x->node, 4), *v6 = node_ip(x->node, 6);
        char text[IP_TEXT + 4];
        struct str args CLEANUP(str_release) = { 0 };
        json_t *v = json_object();
        json_put(v, "backend", backends[n->fabric.backend]);
        json_object_set_new(v, "mtu", json_integer(n->fabric.mtu));
        json_object_set_new(v, "nftables", json_boolean(n->proxy_mode == PROXY_NFTABLES));
        for (size_t i = 0; i < n->pods.n; i++)
                json_put(v, n->pods.v[i].ip.family == 4 ? "network" : "network6",
                        cidr_format(&n->pods.v[i], text));
        /* with dual-stack, flannel finds an interface by its IPv4 address */
        const struct ip *own = n->pods.n > 1 && v4->family == 4 ? v4 : &x->node->ip[0];
        str_add(&args, "--iface=");
        quote_word(&args, n->fabric.interface ? n->fabric.interface : ip_format(own, text));
        if (v4->family == 4 && json_object_get(v, "network"))
                str_addf(&args, " --public-ip=%s", ip_format(v4, text));
        if (v6->family == 6 && json_object_get(v, "network6"))
                str_addf(&args, " --public-ipv6=%s", ip_format(v6, text));
        json_put(v, "args", str_text(&args));
        return v;
}

/* Calico finds the MTU of pods from that of these interfaces; systemd-nspawn's is host0. */
#define HOST_INTERFACES "^((en|wl|ww|sl|ib)[Pcopsvx].*|(eth|wlan|wwan|bond|host).*)"

/* As the addresses of the Node say, with the prefix length that the interface has. */
json_t *calico_values(const struct context *x)
{
        const struct fabric *f = &x->cluster->network.fabric;
        const struct cidrs *pods = &x->cluster->network.pods;
        bool four = false, six = any_ipv6(x->cluster);
        char text[IP_TEXT + 4];
        json_t *v = json_object();
        for (size_t i = 0; i < pods->n; i++) {
                four |= pods->v[i].ip.family == 4;
                json_put(v, pods->v[i].ip.family == 4 ? "pool4" : "pool6",
                        cidr_format(&pods->v[i], text));
        }
        json_object_set_new(v, "ipam", json_boolean(x->with & WITH_CALICO_IPAM));
        json_object_set_new(v, "mtu", json_integer(f->mtu));
        json_put(v, "ipv4", four ? "true" : "false");
        json_put(v, "ipv6", six ? "true" : "false");
        json_put(v, "ip4", four ? "autodetect" : "none");
        json_put(v, "ip6", six ? "autodetect" : "none");
        json_put(v, "method",
                f->interface ? arena_printf(x->arena, "interface=^%s$", f->interface)
                             : "kubernetes-internal-ip");
        json_put(v, "interfaces",
                f->interface ? arena_printf(x->arena, "^%s$", f->interface) : HOST_INTERFACES);
        return v;
}

void calico_link_add(const struct context *x, struct nodespec *s)
{
        if (x->immutable || !needs_met(x, ON_KUBE | WITH_CALICO_IPAM))
                return;
        struct spec_entry *e = nodespec_add(s, SPEC_LINK, CLASS_MUTABLE);
        e->path = "/opt/cni/bin/calico-ipam";
        e->target = "/opt/cni/bin/calico";
}
