/* Options that have no effect because of another one. They are refused, so that nobody relies on
 * them. A new case is a row. */
#include "config/fabric.h"
#include "config/rules/rules.h"

static bool idle_is_flatcar(const struct pool *pool)
{
        return pool->os && streq(pool->os, "flatcar");
}

static bool no_flatcar(const struct cluster *c)
{
        for (size_t i = 0; i < c->pools.n; i++)
                if (idle_is_flatcar(&c->pools.v[i]))
                        return false;
        return true;
}

static bool only_flatcar(const struct cluster *c)
{
        for (size_t i = 0; i < c->pools.n; i++)
                if (!idle_is_flatcar(&c->pools.v[i]))
                        return false;
        return c->pools.n;
}

static bool no_fabric_mtu(const struct cluster *c)
{
        return !(cluster_fabric(c)->options & FABRIC_TAKES_MTU);
}
static bool no_fabric_interface(const struct cluster *c)
{
        return !(cluster_fabric(c)->options & FABRIC_TAKES_INTERFACE);
}
static bool host_runtime(const struct cluster *c) { return !c->runtime.managed; }
static bool no_proxy(const struct cluster *c) { return c->network.proxy_mode == PROXY_NONE; }
static bool proxy_pods(const struct cluster *c)
{
        return !no_proxy(c) && c->network.proxy_run == PROXY_RUN_DAEMONSET;
}
static bool own_dns(const struct cluster *c) { return !c->network.manage_dns; }
static bool no_balancer(const struct cluster *c) { return !c->api.local_balancer; }

static const struct {
        const char *path;
        bool (*idle)(const struct cluster *c);
        const char *message, *hint;
} idle_options[] = {
        { "network.fabric.mtu", no_fabric_mtu, "this pod network does not use it",
                "leave it out, and set the MTU in the pod network's own manifests" },
        { "network.fabric.interface", no_fabric_interface, "this pod network does not use it",
                "leave it out, and set the interface in the pod network's own manifests" },
        { "network.proxyRun", no_proxy, "there is no kube-proxy: network.proxyMode is none",
                "leave it out" },
        { "components.kubeProxy", no_proxy, "there is no kube-proxy: network.proxyMode is none",
                "leave it out" },
        { "components.kubeProxy", proxy_pods,
                "kube-proxy is the cluster's own DaemonSet, of which slipway changes only the image",
                "leave it out, and edit the ConfigMap kube-proxy in kube-system" },
        { "network.dnsUpstream", own_dns,
                "the cluster has its own CoreDNS, of which slipway changes only the image",
                "leave it out, and edit the ConfigMap coredns in kube-system" },
        { "runtime.oci", host_runtime,
                "slipway does not change the hosts' own runtime (runtime.managed is false)",
                "leave it out, and configure it in the hosts' own runtime" },
        { "runtime.pause", host_runtime,
                "slipway does not change the hosts' own runtime (runtime.managed is false)",
                "leave it out, and configure it in the hosts' own runtime" },
        { "runtime.dataDir", host_runtime,
                "slipway does not change the hosts' own runtime (runtime.managed is false)",
                "leave it out, and configure it in the hosts' own runtime" },
        { "registry", host_runtime,
                "slipway does not configure the hosts' own runtime (runtime.managed is false)",
                "leave it out, and configure the mirror in the hosts' own runtime" },
        { "api.localPort", no_balancer,
                "there is no load balancer on the nodes: api.localBalancer is false",
                "leave it out, or set api.localBalancer: true" },
        { "os.updates", no_flatcar, "only Flatcar updates itself, and no pool has os: flatcar",
                "set os: flatcar in the pool, or leave it out and use the distribution's own updates (unattended-upgrades, dnf-automatic)" },
        { "os.packages", only_flatcar, "Flatcar has no packages, and every pool has os: flatcar",
                "leave it out, and run the program as a pod" },
};

/* Existing hosts keep the keys they have; only user-data for new machines contains these. */
static void idle_keys(const struct cluster *c, struct problems *p)
{
        if (c->provider.kind == PROVIDER_SSH && c->os.authorized_keys.n &&
                !rule_spoiled(p, "os.authorizedKeys"))
                rule_warn(p, c, "os.authorizedKeys",
                        "add them to ~/.ssh/authorized_keys on the hosts yourself",
                        "`slipway up` does not install keys on existing hosts: they are only in the output of `slipway render --format cloud-init`");
}

void rules_idle(struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(idle_options); i++)
                if (rule_find(c, idle_options[i].path) && !rule_spoiled(p, idle_options[i].path) &&
                        idle_options[i].idle(c))
                        rule_error(p, c, idle_options[i].path, idle_options[i].hint, "%s",
                                idle_options[i].message);
        idle_keys(c, p);
}
