/* Admission plugins and the audit log. */
#include "config/rules/rules.h"

/* The plugins of kube-apiserver 1.34 to 1.36, which does not start with unknown ones. */
static const char *const plugins[] = { "AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages",
        "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest", "DefaultIngressClass", "DefaultStorageClass",
        "DefaultTolerationSeconds", "DenyServiceExternalIPs", "EventRateLimit",
        "ExtendedResourceToleration", "ImagePolicyWebhook", "JobValidation",
        "LimitPodHardAntiAffinityTopology", "LimitRanger", "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook", "NamespaceAutoProvision", "NamespaceExists",
        "NamespaceLifecycle", "NodeDeclaredFeatureValidator", "NodeRestriction",
        "OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "PodGroupProtection",
        "PodGroupWorkloadExists", "PodNodeSelector", "PodResizeValidator", "PodSecurity",
        "PodTolerationRestriction", "PodTopologyLabels", "Priority", "ResourceQuota",
        "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition",
        "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook" };

static const struct {
        const char *name, *why, *instead;
} gone_plugins[] = {
        { "PodSecurityPolicy", "was removed in Kubernetes 1.25",
                "use admission.podSecurity: baseline or restricted" },
        { "SecurityContextDeny", "was removed in Kubernetes 1.30",
                "use admission.podSecurity: restricted" },
        { "DenyEscalatingExec", "was removed", "use admission.podSecurity: baseline" },
        { "DenyExecOnPrivileged", "was removed", "use admission.podSecurity: baseline" },
        { "PersistentVolumeLabel", "was removed with the in-tree cloud providers",
                "leave it out: the cloud's CSI driver sets the labels" },
        { "Initializers", "was removed", "use MutatingAdmissionWebhook" },
        { "GenericAdmissionWebhook", "was renamed in Kubernetes 1.9",
                "use ValidatingAdmissionWebhook" },
        { "PodPreset", "was removed in Kubernetes 1.20", "use MutatingAdmissionPolicy" },
};

static void plugin(const struct tree *at, const char *name, struct problems *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(gone_plugins); i++)
                if (streq(name, gone_plugins[i].name)) {
                        problem_add(p, at, NULL, gone_plugins[i].instead, "the plugin %s %s", name,
                                gone_plugins[i].why);
                        return;
                }
        for (size_t i = 0; i < ARRAY_SIZE(plugins); i++)
                if (streq(name, plugins[i]))
                        return;
        const char *near = nearest(name, plugins, ARRAY_SIZE(plugins));
        problem_add(p, at, NULL,
                near ? arena_printf(p->arena, "did you mean %s?", near)
                     : "`kube-apiserver --help` lists them under --enable-admission-plugins",
                "there is no admission plugin \"%s\"", name);
}

static void admission_plugins(const struct cluster *c, struct problems *p)
{
        const struct admission *a = &c->admission;
        const struct tree *enable = rule_find(c, "admission.enable"),
                          *disable = rule_find(c, "admission.disable");
        for (size_t i = 0; i < a->enable.n; i++) {
                if (a->enable.v[i])
                        plugin(rule_item(enable, i), a->enable.v[i], p);
                for (size_t k = 0; a->enable.v[i] && k < a->disable.n && k < 100; k++)
                        if (a->disable.v[k] && streq(a->enable.v[i], a->disable.v[k]))
                                problem_add(p, rule_item(disable, k), NULL,
                                        "keep it in one of the two lists",
                                        "%s is both enabled and disabled", a->disable.v[k]);
        }
        for (size_t i = 0; i < a->disable.n; i++) {
                const char *name = a->disable.v[i];
                if (!name)
                        continue;
                plugin(rule_item(disable, i), name, p);
                if (streq(name, "NodeRestriction"))
                        problem_warn(p, rule_item(disable, i), NULL, "leave it enabled",
                                "without NodeRestriction an attacker on one node can change every other node");
                if (streq(name, "PodSecurity") && a->pod_security != POD_SECURITY_PRIVILEGED)
                        problem_add(p, rule_item(disable, i), NULL,
                                "leave PodSecurity enabled, or leave admission.podSecurity out",
                                "admission.podSecurity has no effect without the plugin PodSecurity");
        }
        rule_duplicates(p, enable, &a->enable, "plugin");
        rule_duplicates(p, disable, &a->disable, "plugin");
        if (a->config_file && rule_find(c, "admission.podSecurity"))
                rule_error(p, c, "admission.podSecurity",
                        "set it in that file, or leave configFile out",
                        "admission.configFile replaces it");
}

static void admission_audit(const struct cluster *c, struct problems *p)
{
        const struct audit *a = &c->audit;
        if (a->policy_file && a->level == AUDIT_NONE && rule_find(c, "audit.level") &&
                !rule_spoiled(p, "audit.level"))
                rule_error(p, c, "audit.policyFile",
                        "leave level out: the policy decides how much is logged",
                        "the level is none, so the policy would not be used");
        else if (a->policy_file && a->level != AUDIT_NONE)
                rule_warn(p, c, "audit.level", "leave level out",
                        "the level has no effect: audit.policyFile decides how much is logged");
}

void rules_admission(struct cluster *c, struct problems *p)
{
        admission_plugins(c, p);
        admission_audit(c, p);
}
