#include "config/fabric.h"

#define OPTIONS (FABRIC_TAKES_BACKEND | FABRIC_TAKES_MTU | FABRIC_TAKES_INTERFACE)
#define WRAPPED (1U << BACKEND_VXLAN)
#define ROUTED  (1U << BACKEND_HOST_GW)
#define SEALED  (1U << BACKEND_WIREGUARD)
/* of its address there is one annotation a family: this is the one that it always writes */
#define FLANNEL_UP "flannel.alpha.coreos.com/kube-subnet-manager"

const char *const fabric_names[] = { [FABRIC_FLANNEL] = "flannel",
        [FABRIC_CANAL] = "canal",
        [FABRIC_CALICO] = "calico",
        [FABRIC_CILIUM] = "cilium",
        [FABRIC_KUBE_OVN] = "kube-ovn",
        [FABRIC_NONE] = "none",
        [FABRIC_CUSTOM] = "custom",
        NULL };

static const struct fabric_row fabric_table[] = {
        [FABRIC_FLANNEL] = { FABRIC_FLANNELD | FABRIC_BRIDGE, OPTIONS, WRAPPED | ROUTED | SEALED,
                .needs_proxy = true, .up = FLANNEL_UP, .objects = { "flannel.yaml" } },
        [FABRIC_CANAL] = { FABRIC_FLANNELD | FABRIC_FELIX, OPTIONS, WRAPPED | ROUTED | SEALED,
                .needs_proxy = true, .policy = true, .up = FLANNEL_UP,
                .objects = { "flannel.yaml", "calico.yaml" } },
        /* its CNI configuration is written when it works, so a Node that is Ready is enough */
        [FABRIC_CALICO] = { FABRIC_FELIX | FABRIC_CALICO_IPAM, OPTIONS, WRAPPED | ROUTED,
                .needs_proxy = true, .policy = true,
                .objects = { "calico.yaml", "calico-ipam.yaml" } },
        [FABRIC_CILIUM] = { .options = OPTIONS,
                .backends = WRAPPED | ROUTED | SEALED,
                .policy = true,
                .replaces_proxy = true,
                .chart = &cilium_chart },
        [FABRIC_KUBE_OVN] = { .options = FABRIC_TAKES_INTERFACE,
                .needs_proxy = true,
                .policy = true,
                .chart = &kube_ovn_chart },
        [FABRIC_NONE] = { 0 },
        [FABRIC_CUSTOM] = { .options = FABRIC_TAKES_MANIFESTS },
};
_Static_assert(ARRAY_SIZE(fabric_names) == ARRAY_SIZE(fabric_table) + 1, "a name for each row");

const struct fabric_row *fabric_row(enum fabric_kind kind) { return &fabric_table[kind]; }
