#include "config/fabric.h"

#define FLANNEL_OPTIONS (FABRIC_TAKES_BACKEND | FABRIC_TAKES_MTU | FABRIC_TAKES_INTERFACE)
/* of its address there is one annotation a family: this is the one that it always writes */
#define FLANNEL_UP "flannel.alpha.coreos.com/kube-subnet-manager"

const char *const fabric_names[] = {
        [FABRIC_FLANNEL] = "flannel", [FABRIC_NONE] = "none", [FABRIC_CUSTOM] = "custom", NULL
};

static const struct fabric_row fabric_table[] = {
        [FABRIC_FLANNEL] = { FABRIC_FLANNELD | FABRIC_BRIDGE, FLANNEL_OPTIONS, .needs_proxy = true,
                .up = FLANNEL_UP, .objects = { "flannel.yaml" } },
        [FABRIC_NONE] = { 0 },
        [FABRIC_CUSTOM] = { .options = FABRIC_TAKES_MANIFESTS },
};
_Static_assert(ARRAY_SIZE(fabric_names) == ARRAY_SIZE(fabric_table) + 1, "a name for each row");

const struct fabric_row *fabric_row(enum fabric_kind kind) { return &fabric_table[kind]; }
