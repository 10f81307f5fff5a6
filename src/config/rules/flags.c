/* Flags of the components that slipway sets from another field, that would break the cluster, or
 * that no longer exist. */
#include "config/rules/rules.h"

enum component_bit {
        APISERVER = 1,
        MANAGER = 2,
        SCHEDULER = 4,
        KUBELET = 8,
        PROXY = 16,
        ETCD = 32,
        KUBE = 31,
        SERVERS = 7
};

struct flag_row {
        const char *flag; /* a * at the end stands for any rest */
        unsigned components;
        const char *hint;
};

#define BY_CERTIFICATES \
        "leave it out: slipway issues the certificates; set your own CA under certificates"
#define BY_POOLS "leave it out: slipway derives it from the pools with the role etcd"

/* Set by slipway from what the rest of the file says. */
/* clang-format off */
static const struct flag_row owned[] = {
        { "feature-gates", KUBE, "use featureGates" },
        { "kubeconfig", MANAGER | SCHEDULER | KUBELET | PROXY, "leave it out: slipway writes the kubeconfig" },
        { "authentication-kubeconfig", SERVERS, "leave it out: slipway writes the kubeconfig" },
        { "authorization-kubeconfig", SERVERS, "leave it out: slipway writes the kubeconfig" },
        { "bootstrap-kubeconfig", KUBELET, "leave it out: slipway writes the kubeconfig" },
        { "master", MANAGER | SCHEDULER | PROXY, "use api.loadBalancer, api.vip or api.names" },
        { "client-ca-file", SERVERS | KUBELET, BY_CERTIFICATES },
        { "tls-cert-file", SERVERS | KUBELET, BY_CERTIFICATES "; add further names under api.names" },
        { "tls-private-key-file", SERVERS | KUBELET, BY_CERTIFICATES },
        { "requestheader-*", APISERVER | MANAGER, BY_CERTIFICATES },
        { "proxy-client-*", APISERVER, BY_CERTIFICATES },
        { "kubelet-client-*", APISERVER, BY_CERTIFICATES },
        { "kubelet-certificate-authority", APISERVER, "use certificates.verifyKubelets" },
        { "etcd-cafile", APISERVER, BY_CERTIFICATES },
        { "etcd-certfile", APISERVER, BY_CERTIFICATES },
        { "etcd-keyfile", APISERVER, BY_CERTIFICATES },
        { "etcd-servers", APISERVER, BY_POOLS },
        { "service-account-key-file", APISERVER, BY_CERTIFICATES },
        { "service-account-signing-key-file", APISERVER, BY_CERTIFICATES },
        { "service-account-private-key-file", MANAGER, BY_CERTIFICATES },
        { "root-ca-file", MANAGER, BY_CERTIFICATES },
        { "cluster-signing-*-file", MANAGER, BY_CERTIFICATES },
        { "secure-port", APISERVER, "use api.port" },
        { "secure-port", MANAGER | SCHEDULER, "leave it out: health checks use the default port" },
        { "advertise-address", APISERVER, "use ip of the host" },
        { "service-cluster-ip-range", APISERVER | MANAGER, "use network.services" },
        { "cluster-cidr", MANAGER | PROXY, "use network.pods" },
        { "allocate-node-cidrs", MANAGER, "leave it out: nodes get their pod ranges from network.pods" },
        { "node-cidr-mask-size", MANAGER, "use network.nodeMask" },
        { "node-cidr-mask-size-ipv4", MANAGER, "use network.nodeMask" },
        { "node-cidr-mask-size-ipv6", MANAGER, "use network.nodeMaskV6" },
        { "cluster-name", MANAGER, "use metadata.name" },
        { "encryption-provider-config", APISERVER, "use encryption" },
        { "audit-policy-file", APISERVER, "use audit.policyFile" },
        { "audit-log-path", APISERVER, "use audit.path" },
        { "audit-log-maxage", APISERVER, "use audit.maxAge" },
        { "audit-log-maxbackup", APISERVER, "use audit.maxBackups" },
        { "audit-log-maxsize", APISERVER, "use audit.maxSize" },
        { "enable-admission-plugins", APISERVER, "use admission.enable" },
        { "disable-admission-plugins", APISERVER, "use admission.disable" },
        { "admission-control-config-file", APISERVER, "use admission.configFile" },
        { "oidc-issuer-url", APISERVER, "use auth.oidc.issuer" },
        { "oidc-*", APISERVER, "use auth.oidc" },
        { "authorization-config", APISERVER, "use authorization-mode: the two exclude each other" },
        { "config", KUBELET, "use kubelet.config for its fields" },
        { "config", PROXY, "use network.proxyMode, or the flag of the field" },
        { "config-dir", KUBELET, "use kubelet.config for its fields" },
        { "container-runtime-endpoint", KUBELET, "use runtime" },
        { "image-service-endpoint", KUBELET, "use runtime" },
        { "cgroup-driver", KUBELET, "leave it out: slipway detects it on the machine" },
        { "hostname-override", KUBELET | PROXY, "use name of the host" },
        { "node-ip", KUBELET, "use ip of the host" },
        { "node-labels", KUBELET, "use labels of the pool or the host" },
        { "register-with-taints", KUBELET, "use taints of the pool or the host" },
        { "cluster-dns", KUBELET, "use network.dns" },
        { "cluster-domain", KUBELET, "use network.domain" },
        { "max-pods", KUBELET, "use kubelet.maxPods" },
        { "system-reserved", KUBELET, "use kubelet.systemReserved" },
        { "kube-reserved", KUBELET, "use kubelet.kubeReserved" },
        { "eviction-hard", KUBELET, "use kubelet.evictionHard" },
        { "pod-manifest-path", KUBELET, "leave it out: the control plane's manifests are in /etc/kubernetes/manifests" },
        { "anonymous-auth", KUBELET, "leave it out: the API server and the kubelet authenticate each other with certificates" },
        { "authorization-mode", KUBELET, "leave it out: the kubelet asks the API server" },
        { "cert-dir", KUBELET, BY_CERTIFICATES },
        { "proxy-mode", PROXY, "use network.proxyMode" },
        { "name", ETCD, "use name of the host" },
        { "data-dir", ETCD, "use etcd.dataDir" },
        { "quota-backend-bytes", ETCD, "use etcd.quota" },
        { "heartbeat-interval", ETCD, "use etcd.heartbeat" },
        { "election-timeout", ETCD, "use etcd.election" },
        { "listen-*-urls", ETCD, BY_POOLS },
        { "advertise-client-urls", ETCD, BY_POOLS },
        { "initial-*", ETCD, BY_POOLS },
        { "discovery*", ETCD, BY_POOLS },
        { "force-new-cluster", ETCD, "use `slipway etcd recover` when a quorum is lost" },
        { "cert-file", ETCD, BY_CERTIFICATES },
        { "key-file", ETCD, BY_CERTIFICATES },
        { "trusted-ca-file", ETCD, BY_CERTIFICATES },
        { "client-cert-auth", ETCD, BY_CERTIFICATES },
        { "auto-tls", ETCD, BY_CERTIFICATES },
        { "peer-*", ETCD, BY_CERTIFICATES },
};

/* Flags that were removed: `why` ends the sentence "--flag …". */
static const struct gone_flag {
        const char *flag;
        unsigned components;
        const char *why, *hint;
} gone_flags[] = {
        { "basic-auth-file", APISERVER, "was removed in Kubernetes 1.19", "use auth.users (certificates) or auth.oidc" },
        { "token-auth-file", APISERVER, "is refused: a static token cannot be revoked without restarting every API server",
                "use auth.users (certificates) or auth.oidc" },
        { "insecure-port", APISERVER, "was removed in Kubernetes 1.24", "leave it out: the API has only its TLS port, api.port" },
        { "insecure-bind-address", APISERVER, "was removed in Kubernetes 1.24", "leave it out: the API has only its TLS port, api.port" },
        { "admission-control", APISERVER, "was replaced in Kubernetes 1.10", "use admission.enable and admission.disable" },
        { "experimental-encryption-provider-config", APISERVER, "was renamed in Kubernetes 1.13", "use encryption" },
        { "kubelet-https", APISERVER, "was removed", "leave it out: it is always https" },
        { "etcd-quorum-read", APISERVER, "was removed", "leave it out: every read is a quorum read" },
        { "enable-swagger-ui", APISERVER, "was removed", "leave it out; /openapi/v3 describes the API" },
        { "target-ram-mb", APISERVER, "was removed", "leave it out, or use max-requests-inflight" },
        { "apiserver-count", APISERVER, "was removed", "leave it out: API servers find each other by leases" },
        { "audit-dynamic-configuration", APISERVER, "was removed in Kubernetes 1.19", "use audit.policyFile" },
        { "service-account-api-audiences", APISERVER, "was renamed in Kubernetes 1.13", "use api-audiences" },
        { "cloud-config", SERVERS | KUBELET, "was for the in-tree cloud providers, removed in Kubernetes 1.31",
                "give the file to the cloud's controller manager, which helm or kubectl installs" },
        { "cloud-provider", APISERVER, "was for the in-tree cloud providers, removed in Kubernetes 1.31",
                "leave it out; install the cloud's controller manager with helm or kubectl" },
        { "master-service-namespace", APISERVER | KUBELET, "was removed", "leave it out" },
        { "port", APISERVER | MANAGER | SCHEDULER, "was removed in Kubernetes 1.24", "leave it out: there is only the TLS port" },
        { "address", MANAGER | SCHEDULER, "was removed in Kubernetes 1.24", "use bind-address" },
        { "pod-eviction-timeout", MANAGER, "was removed in Kubernetes 1.27",
                "use default-not-ready-toleration-seconds and default-unreachable-toleration-seconds of components.apiserver" },
        { "enable-taint-manager", MANAGER, "was removed in Kubernetes 1.27", "leave it out: it is always on" },
        { "experimental-cluster-signing-duration", MANAGER, "was renamed", "use cluster-signing-duration" },
        { "horizontal-pod-autoscaler-use-rest-clients", MANAGER, "was removed", "leave it out: it is always so" },
        { "horizontal-pod-autoscaler-upscale-delay", MANAGER, "was removed", "use behavior of the HorizontalPodAutoscaler" },
        { "horizontal-pod-autoscaler-downscale-delay", MANAGER, "was removed", "use horizontal-pod-autoscaler-downscale-stabilization" },
        { "policy-config-file", SCHEDULER, "was removed in Kubernetes 1.23", "use profiles of a KubeSchedulerConfiguration" },
        { "policy-configmap", SCHEDULER, "was removed in Kubernetes 1.23", "use profiles of a KubeSchedulerConfiguration" },
        { "use-legacy-policy-config", SCHEDULER, "was removed in Kubernetes 1.23", "use profiles of a KubeSchedulerConfiguration" },
        { "algorithm-provider", SCHEDULER, "was removed", "use profiles of a KubeSchedulerConfiguration" },
        { "container-runtime", KUBELET, "was removed in Kubernetes 1.27", "use runtime: containerd or cri-o" },
        { "pod-infra-container-image", KUBELET, "was removed in Kubernetes 1.35", "use runtime.pause" },
        { "network-plugin", KUBELET, "was removed with dockershim in Kubernetes 1.24", "use network.fabric" },
        { "cni-bin-dir", KUBELET, "was removed with dockershim in Kubernetes 1.24", "leave it out: the runtime looks in /opt/cni/bin" },
        { "cni-conf-dir", KUBELET, "was removed with dockershim in Kubernetes 1.24", "leave it out: the runtime looks in /etc/cni/net.d" },
        { "docker*", KUBELET, "was removed with dockershim in Kubernetes 1.24", "use runtime: containerd" },
        { "image-pull-progress-deadline", KUBELET, "was removed with dockershim in Kubernetes 1.24", "leave it out: the runtime decides" },
        { "rkt-*", KUBELET, "was removed with rkt in Kubernetes 1.11", "use runtime: containerd" },
        { "dynamic-config-dir", KUBELET, "was removed in Kubernetes 1.24", "use components.kubelet.config, or kubelet.config of the pool" },
        { "cadvisor-port", KUBELET, "was removed in Kubernetes 1.12", "leave it out: the kubelet serves /metrics/cadvisor" },
        { "api-servers", KUBELET, "was removed", "use api.loadBalancer, api.vip or api.names" },
        { "require-kubeconfig", KUBELET, "was removed", "leave it out" },
        { "allow-privileged", KUBELET, "was removed in Kubernetes 1.15", "use admission.podSecurity" },
        { "non-masquerade-cidr", KUBELET, "was removed with dockershim in Kubernetes 1.24", "leave it out: the pod network decides" },
        { "experimental-fail-swap-on", KUBELET, "was removed", "use failSwapOn under kubelet.config" },
        { "resource-container", PROXY, "was removed", "leave it out" },
        { "proxy-port-range", PROXY, "was removed with the userspace mode in Kubernetes 1.26", "leave it out" },
        { "udp-timeout", PROXY, "was removed with the userspace mode in Kubernetes 1.26", "use conntrack-udp-timeout" },
        { "enable-v2", ETCD, "was removed in etcd 3.6", "leave it out: Kubernetes uses v3" },
        { "proxy*", ETCD, "was removed in etcd 3.6", "leave it out: every node has its own load balancer" },
        { "debug", ETCD, "was removed in etcd 3.5", "use log-level: debug" },
        { "log-package-levels", ETCD, "was removed in etcd 3.5", "use log-level" },
};
/* clang-format on */

/* Values that break the cluster, of flags that may otherwise be set. */
static const struct {
        const char *flag;
        unsigned components;
        const char *value, *why, *hint;
} bad_values[] = {
        { "anonymous-auth", APISERVER, "false",
                "would fail the health checks of haproxy, keepalived and the kubelet, which send no credentials",
                "leave it out: anonymous requests can only read health and version" },
        { "allow-privileged", APISERVER, "false",
                "would keep kube-proxy and the pod network from running",
                "use admission.podSecurity to keep other pods from being privileged" },
        { "enable-bootstrap-token-auth", APISERVER, "false", "would keep new nodes from joining",
                "leave it out" },
        { "leader-elect", MANAGER | SCHEDULER, "false",
                "would let several instances be active at the same time", "leave it out" },
        { "use-service-account-credentials", MANAGER, "false",
                "would give every controller all rights", "leave it out" },
        { "register-node", KUBELET, "false", "would keep the node out of the cluster",
                "leave it out" },
        { "rotate-certificates", KUBELET, "false", "would let the kubelet's certificate expire",
                "leave it out" },
        { "unsafe-no-fsync", ETCD, "true", "could lose the cluster's state in a power cut",
                "leave it out" },
        { "strict-reconfig-check", ETCD, "false", "would let a change of members lose the quorum",
                "leave it out" },
};

/* A pattern with one * anywhere. */
static bool matches(const char *pattern, const char *flag)
{
        const char *star = strchr(pattern, '*');
        if (!star)
                return streq(pattern, flag);
        size_t head = (size_t)(star - pattern), tail = strlen(star + 1);
        return strlen(flag) >= head + tail && strncmp(pattern, flag, head) == 0 &&
               has_suffix(flag, star + 1);
}

static bool flag_gone(
        const struct tree *at, const char *flag, unsigned component, struct problems *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(gone_flags); i++)
                if (gone_flags[i].components & component && matches(gone_flags[i].flag, flag)) {
                        problem_add_key(
                                p, at, gone_flags[i].hint, "--%s %s", flag, gone_flags[i].why);
                        return true;
                }
        if (component == ETCD && has_prefix(flag, "experimental-")) {
                problem_add_key(p, at,
                        arena_printf(p->arena,
                                "use %s, or feature-gates if it became a feature gate",
                                flag + strlen("experimental-")),
                        "--%s lost the prefix experimental- in etcd 3.6", flag);
                return true;
        }
        return false;
}

static bool flag_owned(
        const struct tree *at, const char *flag, unsigned component, struct problems *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(owned); i++)
                if (owned[i].components & component && matches(owned[i].flag, flag)) {
                        problem_add_key(p, at, owned[i].hint, "slipway sets --%s itself", flag);
                        return true;
                }
        return false;
}

static bool list_has(const char *list, const char *word)
{
        size_t n = strlen(word);
        for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
                if (strncmp(s, word, n) == 0 && (!s[n] || s[n] == ','))
                        return true;
        return false;
}

/* Version skew: a component may behave as an older minor, three at most, and never as
 * a newer one. */
static void emulated(const struct cluster *c, const struct tree *at, const char *flag,
        const char *value, struct problems *p)
{
        const char *number = strrchr(value, '=') ? strrchr(value, '=') + 1 : value;
        unsigned major, minor;
        if (c->kubernetes.major != 1)
                return;
        if (sscanf(number, "%u.%u", &major, &minor) != 2)
                problem_add(p, at, NULL, "write major.minor, such as 1.35", "%s is not a version",
                        value);
        else if (major != 1 || minor > c->kubernetes.minor || minor + 3 < c->kubernetes.minor)
                problem_add(p, at, NULL,
                        arena_printf(p->arena, "use 1.%u to 1.%u", c->kubernetes.minor - 3,
                                c->kubernetes.minor),
                        "--%s %s is too far from Kubernetes %u.%u", flag, value,
                        c->kubernetes.major, c->kubernetes.minor);
}

static void flag_value(const struct cluster *c, const struct tree *at, const struct pair *f,
        unsigned component, struct problems *p)
{
        const char *flag = f->key, *value = f->value ? f->value : "";
        for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++)
                if (bad_values[i].components & component && streq(flag, bad_values[i].flag) &&
                        streq(value, bad_values[i].value))
                        problem_add(p, at, NULL, bad_values[i].hint, "--%s=%s %s", flag, value,
                                bad_values[i].why);
        if (component & (MANAGER | KUBELET) && streq(flag, "cloud-provider") &&
                !streq(value, "external") && *value)
                problem_add(p, at, NULL,
                        "use external, and install the cloud controller manager with helm or kubectl",
                        "the in-tree cloud provider %s was removed in Kubernetes 1.31", value);
        if (component == APISERVER && streq(flag, "authorization-mode") &&
                !(list_has(value, "Node") && list_has(value, "RBAC")))
                problem_add(p, at, NULL, "use Node,RBAC, followed by others if needed",
                        "the modes Node (for kubelets) and RBAC are required, got %s", value);
        if (component & SERVERS &&
                (streq(flag, "emulated-version") || streq(flag, "min-compatibility-version")))
                emulated(c, at, flag, value, p);
}

static void check(const struct cluster *c, const struct tree *src, const struct pairs *flags,
        unsigned component, struct problems *p)
{
        const struct tree *map = tree_get(src, "flags");
        for (size_t i = 0; map && i < flags->n; i++) {
                const char *flag = flags->v[i].key;
                const struct tree *at = flag ? tree_get(map, flag) : NULL;
                if (!at)
                        continue;
                if (flag[0] == '-')
                        problem_add_key(p, at,
                                arena_printf(p->arena, "write %s", flag + strspn(flag, "-")),
                                "flags are written without leading dashes, got %s", flag);
                else if (
                        strspn(flag,
                                "abcdefghijklmnopqrstuvwxyz0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZ") !=
                        strlen(flag))
                        problem_add_key(p, at, "write it as in --help, with dashes between words",
                                "%s is not a valid flag name", flag);
                else if (!flag_gone(at, flag, component, p) && !flag_owned(at, flag, component, p))
                        flag_value(c, at, &flags->v[i], component, p);
        }
}

void rules_flags(struct cluster *c, struct problems *p)
{
        const struct components *k = &c->components;
        check(c, k->apiserver.src, &k->apiserver.flags, APISERVER, p);
        check(c, k->controller_manager.src, &k->controller_manager.flags, MANAGER, p);
        check(c, k->scheduler.src, &k->scheduler.flags, SCHEDULER, p);
        check(c, k->kube_proxy.src, &k->kube_proxy.flags, PROXY, p);
        check(c, k->etcd.src, &k->etcd.flags, ETCD, p);
        check(c, k->kubelet.src, &k->kubelet.flags, KUBELET, p);
        for (size_t i = 0; i < c->pools.n; i++)
                check(c, c->pools.v[i].kubelet.src, &c->pools.v[i].kubelet.flags, KUBELET, p);
}
