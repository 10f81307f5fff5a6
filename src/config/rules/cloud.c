/* cloud.controller and cloud.csi of providers openstack and aws. */
#include "config/addon.h"
#include "config/rules/rules.h"

static void cloud_balancers(const struct cluster *c, struct problems *p)
{
        static const enum addon_id others[] = { ADDON_KUBE_VIP, ADDON_METALLB };
        for (size_t i = 0; i < c->services.addons.n; i++)
                for (size_t k = 0; k < ARRAY_SIZE(others); k++)
                        if (addon_named(c->services.addons.v[i].name) == others[k])
                                problem_add(p, c->services.addons.v[i].src, NULL,
                                        "leave it out, or set cloud.controller: false",
                                        "%s and the cloud's controller would both answer for Services of type LoadBalancer",
                                        c->services.addons.v[i].name);
}

static void cloud_flag(const struct tree *flags, struct problems *p)
{
        tree_each (flag, flags)
                if (flag->key && streq(flag->key + strspn(flag->key, "-"), "cloud-provider"))
                        problem_add_key(p, flag, "leave it out: cloud.controller sets it",
                                "slipway sets the flag cloud-provider itself");
}

static void cloud_flags(const struct cluster *c, struct problems *p)
{
        cloud_flag(rule_find(c, "components.kubelet.flags"), p);
        cloud_flag(rule_find(c, "components.controllerManager.flags"), p);
        for (size_t i = 0; i < c->pools.n; i++)
                cloud_flag(tree_get(tree_get(c->pools.v[i].src, "kubelet"), "flags"), p);
}

void rules_cloud(struct cluster *c, struct problems *p)
{
        const struct provider_aws *aws = &c->provider.aws;
        if (cluster_cloud_controller(c)) {
                cloud_balancers(c, p);
                cloud_flags(c, p);
        }
        if (c->provider.kind == PROVIDER_AWS && (aws->cloud.controller || aws->cloud.csi) &&
                !aws->iam.control)
                problem_add(p, aws->cloud.src, NULL,
                        "set provider.aws.iam.control: managed, or the name of an instance profile",
                        "the controller and the CSI driver have the rights of an instance profile of control-plane nodes, but there is none");
}
