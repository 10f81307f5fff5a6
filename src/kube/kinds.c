#include <curl/curl.h>

#include "kube/kinds.h"

#define NS  true
#define ALL false

static const struct row {
        const char *group, *kind, *plural;
        bool namespaced;
} rows[] = {
        { "", "Binding", "bindings", NS },
        { "", "ConfigMap", "configmaps", NS },
        { "", "Endpoints", "endpoints", NS },
        { "", "Event", "events", NS },
        { "", "LimitRange", "limitranges", NS },
        { "", "Namespace", "namespaces", ALL },
        { "", "Node", "nodes", ALL },
        { "", "PersistentVolume", "persistentvolumes", ALL },
        { "", "PersistentVolumeClaim", "persistentvolumeclaims", NS },
        { "", "Pod", "pods", NS },
        { "", "PodTemplate", "podtemplates", NS },
        { "", "ReplicationController", "replicationcontrollers", NS },
        { "", "ResourceQuota", "resourcequotas", NS },
        { "", "Secret", "secrets", NS },
        { "", "Service", "services", NS },
        { "", "ServiceAccount", "serviceaccounts", NS },
        { "admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies",
                ALL },
        { "admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding",
                "mutatingadmissionpolicybindings", ALL },
        { "admissionregistration.k8s.io", "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations", ALL },
        { "admissionregistration.k8s.io", "ValidatingAdmissionPolicy",
                "validatingadmissionpolicies", ALL },
        { "admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings", ALL },
        { "admissionregistration.k8s.io", "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations", ALL },
        { "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", ALL },
        { "apiregistration.k8s.io", "APIService", "apiservices", ALL },
        { "apps", "ControllerRevision", "controllerrevisions", NS },
        { "apps", "DaemonSet", "daemonsets", NS },
        { "apps", "Deployment", "deployments", NS },
        { "apps", "ReplicaSet", "replicasets", NS },
        { "apps", "StatefulSet", "statefulsets", NS },
        { "autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", NS },
        { "batch", "CronJob", "cronjobs", NS },
        { "batch", "Job", "jobs", NS },
        { "certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", ALL },
        { "coordination.k8s.io", "Lease", "leases", NS },
        { "discovery.k8s.io", "EndpointSlice", "endpointslices", NS },
        { "events.k8s.io", "Event", "events", NS },
        { "flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", ALL },
        { "flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration",
                "prioritylevelconfigurations", ALL },
        { "networking.k8s.io", "IPAddress", "ipaddresses", ALL },
        { "networking.k8s.io", "Ingress", "ingresses", NS },
        { "networking.k8s.io", "IngressClass", "ingressclasses", ALL },
        { "networking.k8s.io", "NetworkPolicy", "networkpolicies", NS },
        { "networking.k8s.io", "ServiceCIDR", "servicecidrs", ALL },
        { "node.k8s.io", "RuntimeClass", "runtimeclasses", ALL },
        { "policy", "PodDisruptionBudget", "poddisruptionbudgets", NS },
        { "rbac.authorization.k8s.io", "ClusterRole", "clusterroles", ALL },
        { "rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", ALL },
        { "rbac.authorization.k8s.io", "Role", "roles", NS },
        { "rbac.authorization.k8s.io", "RoleBinding", "rolebindings", NS },
        { "resource.k8s.io", "DeviceClass", "deviceclasses", ALL },
        { "resource.k8s.io", "ResourceClaim", "resourceclaims", NS },
        { "resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", NS },
        { "resource.k8s.io", "ResourceSlice", "resourceslices", ALL },
        { "scheduling.k8s.io", "PriorityClass", "priorityclasses", ALL },
        { "storage.k8s.io", "CSIDriver", "csidrivers", ALL },
        { "storage.k8s.io", "CSINode", "csinodes", ALL },
        { "storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", NS },
        { "storage.k8s.io", "StorageClass", "storageclasses", ALL },
        { "storage.k8s.io", "VolumeAttachment", "volumeattachments", ALL },
        { "storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", ALL },
};

static size_t group_length(const char *api_version)
{
        const char *slash = strchr(api_version, '/');
        return slash ? (size_t)(slash - api_version) : 0;
}

static bool same_group(const char *api_version, const char *group)
{
        size_t n = group_length(api_version);
        return strlen(group) == n && memcmp(api_version, group, n) == 0;
}

struct kind kind_built_in(const char *api_version, const char *kind)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (streq(rows[i].kind, kind) && same_group(api_version, rows[i].group))
                        return (struct kind){ rows[i].plural, rows[i].namespaced };
        return (struct kind){ 0 };
}

static const char *kind_text(const json_t *object, const char *field)
{
        const char *s = json_string_value(json_object_get(object, field));
        return s ? s : "";
}

struct kind kind_of_crds(const json_t *crds, const char *api_version, const char *kind)
{
        const json_t *crd;
        size_t i;
        json_array_foreach(crds, i, crd)
        {
                const json_t *spec = json_object_get(crd, "spec"),
                             *names = json_object_get(spec, "names");
                const char *plural = kind_text(names, "plural");
                if (*plural && same_group(api_version, kind_text(spec, "group")) &&
                        streq(kind_text(names, "kind"), kind))
                        return (struct kind){ plural,
                                streq(kind_text(spec, "scope"), "Namespaced") };
        }
        return (struct kind){ 0 };
}

struct kind kind_of_list(const json_t *list, const char *kind)
{
        const json_t *resources = json_object_get(list, "resources"), *r;
        size_t i;
        json_array_foreach(resources, i, r)
        {
                const char *name = kind_text(r, "name");
                if (*name && !strchr(name, '/') && streq(kind_text(r, "kind"), kind))
                        return (struct kind){ name,
                                json_is_true(json_object_get(r, "namespaced")) };
        }
        return (struct kind){ 0 };
}

static void add_escaped(struct str *s, const char *text)
{
        char *escaped = curl_easy_escape(NULL, text, 0);
        str_addc(s, '/');
        str_add(s, escaped ? escaped : "");
        curl_free(escaped);
}

void kind_root(struct str *s, const char *api_version)
{
        size_t n = group_length(api_version);
        str_add(s, n ? "/apis" : "/api");
        if (n) {
                char *group CLEANUP(free_p) = xstrndup(api_version, n);
                add_escaped(s, group);
        }
        add_escaped(s, n ? api_version + n + 1 : api_version);
}

void kind_path(
        struct str *s, const char *api_version, struct kind kind, const char *ns, const char *name)
{
        kind_root(s, api_version);
        if (kind.namespaced) {
                str_add(s, "/namespaces");
                add_escaped(s, ns && *ns ? ns : "default");
        }
        add_escaped(s, kind.plural);
        add_escaped(s, name);
}

unsigned kind_phase(const char *kind)
{
        static const char *const first[] = { "Namespace", "CustomResourceDefinition" };
        static const char *const last[] = { "Pod", "MutatingWebhookConfiguration",
                "ValidatingWebhookConfiguration", "APIService" };
        for (size_t i = 0; i < ARRAY_SIZE(first); i++)
                if (streq(kind, first[i]))
                        return 0;
        for (size_t i = 0; i < ARRAY_SIZE(last); i++)
                if (streq(kind, last[i]))
                        return 2;
        return 1;
}
