#include "agent/reset/traces.h"

#include "base/str.h"

#define NAMES_MAX 6

static const struct trace_row {
        const char *program;
        const char *names[TRACE_COUNT][NAMES_MAX];
} trace_table[] = {
        { "kube-proxy", { [TRACE_LINK] = { "kube-ipvs0", "nodelocaldns" },
                                [TRACE_CHAIN] = { "KUBE-" },
                                [TRACE_SET] = { "KUBE-" },
                                [TRACE_TABLE] = { "kube-proxy" },
                                [TRACE_UNIT] = { "kube-proxy.service" } } },
        { "flannel", { [TRACE_LINK] = { "cni0", "flannel.*", "flannel-v6.*", "flannel-wg*" },
                             [TRACE_CHAIN] = { "FLANNEL-" },
                             [TRACE_TABLE] = { "flannel-ipv4", "flannel-ipv6" },
                             [TRACE_UNIT] = { "flanneld.service" } } },
        { "calico",
                { [TRACE_LINK] = { "vxlan.calico", "vxlan-v6.calico", "wireguard.cali", "cali*" },
                        [TRACE_CHAIN] = { "cali-" },
                        [TRACE_COMMENT] = { "cali:" },
                        [TRACE_SET] = { "cali40", "cali60", "cali4t", "cali6t" },
                        [TRACE_UNIT] = { "calico-node.service" } } },
        { "cilium", { [TRACE_LINK] = { "cilium_*" },
                            [TRACE_CHAIN] = { "CILIUM_" },
                            [TRACE_SET] = { "cilium_node_set_" } } },
        /* its chains begin with KUBE- too */
        { "kube-router",
                { [TRACE_LINK] = { "kube-bridge", "kube-dummy-if" },
                        [TRACE_COMMENT] = { "allow outbound traffic from pods\"",
                                "allow inbound traffic to pods\"",
                                "allow outbound node port traffic on node interface" },
                        [TRACE_SET] = { "kube-router-", "inet6:kube-router-", "inet6:KUBE-" } } },
        { "kube-ovn", { [TRACE_CHAIN] = { "OVN-" }, [TRACE_SET] = { "ovn40", "ovn60" } } },
};

const char *trace_name(enum trace kind, size_t i)
{
        for (size_t row = 0; row < ARRAY_SIZE(trace_table); row++)
                for (size_t k = 0; k < NAMES_MAX && trace_table[row].names[kind][k]; k++)
                        if (i-- == 0)
                                return trace_table[row].names[kind][k];
        return NULL;
}

bool trace_prefix(enum trace kind, const char *name)
{
        const char *known;
        for (size_t i = 0; (known = trace_name(kind, i)); i++)
                if (has_prefix(name, known))
                        return true;
        return false;
}
