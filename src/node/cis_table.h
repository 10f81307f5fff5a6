/* The table of controls, included by cis.c only. Numbers and meaning are those of the benchmark,
 * not the titles. */
#define MANIFESTS  "/etc/kubernetes/manifests/"
#define APISERVER  MANIFESTS "kube-apiserver.yaml"
#define MANAGER    MANIFESTS "kube-controller-manager.yaml"
#define SCHEDULER  MANIFESTS "kube-scheduler.yaml"
#define ETCD_POD   MANIFESTS "etcd.yaml"
#define ETCD_FILE  "/etc/etcd/etcd.yaml"
#define KUBELET    "/var/lib/kubelet/config.yaml"
#define PROXY      "/var/lib/kube-proxy/config.conf"
#define ENCRYPTION "/etc/kubernetes/encryption/config.yaml"
#define AUTHN      "/etc/kubernetes/authentication/config.yaml"
#define DATA_DIR   "" /* etcd.dataDir */

enum cis_test {
        IS_MODE,  /* the file has no bits beyond `value` */
        IS_OWNER, /* it belongs to `value` */
        FLAG_IS,  /* of a static pod: `what` is `value` */
        FLAG_HAS, /* its list has `value` */
        FLAG_LACKS,
        FLAG_SET,
        FLAG_UNSET,
        FLAG_MIN,  /* a number of at least `value` */
        FIELD_IS,  /* of a YAML file: the field `what` is `value` */
        FIELD_NOT, /* another value, or not set */
        FIELD_SET,
        ETCD_IS, /* `what` is flag|field: of the static pod or of the file */
        ETCD_NOT,
        ETCD_SET,
        MANUAL, /* `value`: what to check by hand */
};

/* clang-format off */
static const struct control {
        const char *id, *title;
        enum cis_test test;
        const char *path, *what, *value;
} controls[] = {
        { "1.1.1", "API server manifest: mode", IS_MODE, APISERVER, NULL, "600" },
        { "1.1.2", "API server manifest: owner", IS_OWNER, APISERVER, NULL, "root:root" },
        { "1.1.3", "controller manager manifest: mode", IS_MODE, MANAGER, NULL, "600" },
        { "1.1.4", "controller manager manifest: owner", IS_OWNER, MANAGER, NULL, "root:root" },
        { "1.1.5", "scheduler manifest: mode", IS_MODE, SCHEDULER, NULL, "600" },
        { "1.1.6", "scheduler manifest: owner", IS_OWNER, SCHEDULER, NULL, "root:root" },
        { "1.1.7", "etcd manifest: mode", IS_MODE, ETCD_POD, NULL, "600" },
        { "1.1.8", "etcd manifest: owner", IS_OWNER, ETCD_POD, NULL, "root:root" },
        { "1.1.11", "etcd data directory: mode", IS_MODE, DATA_DIR, NULL, "700" },
        { "1.1.12", "etcd data directory: owner", IS_OWNER, DATA_DIR, NULL, "etcd:etcd" },
        { "1.1.13", "administrators' kubeconfigs: mode", IS_MODE, "/etc/kubernetes/*admin.conf", NULL, "600" },
        { "1.1.14", "administrators' kubeconfigs: owner", IS_OWNER, "/etc/kubernetes/*admin.conf", NULL, "root:root" },
        { "1.1.15", "scheduler.conf: mode", IS_MODE, "/etc/kubernetes/scheduler.conf", NULL, "600" },
        { "1.1.16", "scheduler.conf: owner", IS_OWNER, "/etc/kubernetes/scheduler.conf", NULL, "root:root" },
        { "1.1.17", "controller-manager.conf: mode", IS_MODE, "/etc/kubernetes/controller-manager.conf", NULL, "600" },
        { "1.1.18", "controller-manager.conf: owner", IS_OWNER, "/etc/kubernetes/controller-manager.conf", NULL, "root:root" },
        { "1.1.19", "/etc/kubernetes/pki: owner", IS_OWNER, "/etc/kubernetes/pki/*", NULL, "root:root" },
        { "1.1.20", "certificates in /etc/kubernetes/pki: mode", IS_MODE, "/etc/kubernetes/pki/*.crt", NULL, "600" },
        { "1.1.21", "keys in /etc/kubernetes/pki: mode", IS_MODE, "/etc/kubernetes/pki/*.key", NULL, "600" },
        { "1.2.1", "anonymous requests only for health and cluster-info", FIELD_SET, AUTHN, "anonymous.conditions", NULL },
        { "1.2.2", "no static token file", FLAG_UNSET, APISERVER, "token-auth-file", NULL },
        { "1.2.3", "DenyServiceExternalIPs", MANUAL, APISERVER, NULL, "admission.enable: [DenyServiceExternalIPs] where no Service needs externalIPs" },
        { "1.2.4", "API server has a client certificate for kubelets", FLAG_SET, APISERVER, "kubelet-client-certificate", NULL },
        { "1.2.5", "API server verifies kubelets", FLAG_SET, APISERVER, "kubelet-certificate-authority", NULL },
        { "1.2.6", "authorization is not AlwaysAllow", FLAG_LACKS, APISERVER, "authorization-mode", "AlwaysAllow" },
        { "1.2.7", "authorization mode Node", FLAG_HAS, APISERVER, "authorization-mode", "Node" },
        { "1.2.8", "authorization mode RBAC", FLAG_HAS, APISERVER, "authorization-mode", "RBAC" },
        { "1.2.9", "EventRateLimit", MANUAL, APISERVER, NULL, "admission.enable and admission.configFile, with limits that suit the cluster" },
        { "1.2.10", "no AlwaysAdmit", FLAG_LACKS, APISERVER, "enable-admission-plugins", "AlwaysAdmit" },
        { "1.2.11", "AlwaysPullImages", MANUAL, APISERVER, NULL, "admission.enable: [AlwaysPullImages] where tenants share nodes; pods then need the registry to start" },
        { "1.2.12", "ServiceAccount", FLAG_LACKS, APISERVER, "disable-admission-plugins", "ServiceAccount" },
        { "1.2.13", "NamespaceLifecycle", FLAG_LACKS, APISERVER, "disable-admission-plugins", "NamespaceLifecycle" },
        { "1.2.14", "NodeRestriction", FLAG_HAS, APISERVER, "enable-admission-plugins", "NodeRestriction" },
        { "1.2.15", "API server: no profiling", FLAG_IS, APISERVER, "profiling", "false" },
        { "1.2.16", "audit log", FLAG_SET, APISERVER, "audit-log-path", NULL },
        { "1.2.17", "audit log: 30 days", FLAG_MIN, APISERVER, "audit-log-maxage", "30" },
        { "1.2.18", "audit log: 10 files", FLAG_MIN, APISERVER, "audit-log-maxbackup", "10" },
        { "1.2.19", "audit log: 100 MB a file", FLAG_MIN, APISERVER, "audit-log-maxsize", "100" },
        { "1.2.21", "service accounts are looked up", FLAG_LACKS, APISERVER, "service-account-lookup", "false" },
        { "1.2.22", "service account key", FLAG_SET, APISERVER, "service-account-key-file", NULL },
        { "1.2.23", "API server has a client certificate for etcd", FLAG_SET, APISERVER, "etcd-certfile", NULL },
        { "1.2.24", "API server's certificate", FLAG_SET, APISERVER, "tls-cert-file", NULL },
        { "1.2.25", "client CA", FLAG_SET, APISERVER, "client-ca-file", NULL },
        { "1.2.26", "etcd CA", FLAG_SET, APISERVER, "etcd-cafile", NULL },
        { "1.2.27", "encryption in etcd", FLAG_SET, APISERVER, "encryption-provider-config", NULL },
        { "1.2.28", "encryption provider for writing", FIELD_NOT, ENCRYPTION, "resources.0.providers.0.identity", "{}" },
        { "1.2.29", "API server: strong ciphers", FLAG_SET, APISERVER, "tls-cipher-suites", NULL },
        { "1.3.1", "terminated pods", MANUAL, MANAGER, NULL, "components.controllerManager.flags: {terminated-pod-gc-threshold: N}; the default is 12500" },
        { "1.3.2", "controller manager: no profiling", FLAG_IS, MANAGER, "profiling", "false" },
        { "1.3.3", "a service account for each controller", FLAG_IS, MANAGER, "use-service-account-credentials", "true" },
        { "1.3.4", "service account signing key", FLAG_SET, MANAGER, "service-account-private-key-file", NULL },
        { "1.3.5", "root CA for pods", FLAG_SET, MANAGER, "root-ca-file", NULL },
        { "1.3.6", "kubelets' server certificates rotate", FLAG_LACKS, MANAGER, "feature-gates", "RotateKubeletServerCertificate=false" },
        { "1.3.7", "controller manager listens on the loopback", FLAG_IS, MANAGER, "bind-address", "127.0.0.1" },
        { "1.4.1", "scheduler: no profiling", FLAG_IS, SCHEDULER, "profiling", "false" },
        { "1.4.2", "scheduler listens on the loopback", FLAG_IS, SCHEDULER, "bind-address", "127.0.0.1" },
        { "2.1", "etcd: server certificate", ETCD_SET, ETCD_FILE, "cert-file|client-transport-security.cert-file", NULL },
        { "2.2", "etcd: client certificates are required", ETCD_IS, ETCD_FILE, "client-cert-auth|client-transport-security.client-cert-auth", "true" },
        { "2.3", "etcd: no self-signed server certificates", ETCD_NOT, ETCD_FILE, "auto-tls|client-transport-security.auto-tls", "true" },
        { "2.4", "etcd: peer certificate", ETCD_SET, ETCD_FILE, "peer-cert-file|peer-transport-security.cert-file", NULL },
        { "2.5", "etcd: peer certificates are required", ETCD_IS, ETCD_FILE, "peer-client-cert-auth|peer-transport-security.client-cert-auth", "true" },
        { "2.6", "etcd: no self-signed peer certificates", ETCD_NOT, ETCD_FILE, "peer-auto-tls|peer-transport-security.auto-tls", "true" },
        { "2.7", "etcd has its own CA", ETCD_SET, ETCD_FILE, "trusted-ca-file|client-transport-security.trusted-ca-file", NULL },
        { "3.1.1", "no client certificates for users", MANUAL, APISERVER, NULL, "auth.oidc instead of auth.users: a certificate cannot be revoked" },
        { "3.1.2", "no service account tokens for users", MANUAL, APISERVER, NULL, "auth.oidc" },
        { "3.1.3", "no bootstrap tokens for users", MANUAL, APISERVER, NULL, "slipway token list" },
        { "3.2.1", "audit policy", FLAG_SET, APISERVER, "audit-policy-file", NULL },
        { "3.2.2", "audit policy covers what matters", MANUAL, APISERVER, NULL, "audit.policyFile if metadata of every request is not enough" },
        { "4.1.1", "kubelet's unit: mode", IS_MODE, "/etc/systemd/system/kubelet.service*", NULL, "600" },
        { "4.1.2", "kubelet's unit: owner", IS_OWNER, "/etc/systemd/system/kubelet.service*", NULL, "root:root" },
        { "4.1.3", "kube-proxy's kubeconfig: mode", IS_MODE, "/var/lib/kube-proxy/kubeconfig.conf", NULL, "600" },
        { "4.1.4", "kube-proxy's kubeconfig: owner", IS_OWNER, "/var/lib/kube-proxy/kubeconfig.conf", NULL, "root:root" },
        { "4.1.5", "kubelet.conf: mode", IS_MODE, "/etc/kubernetes/kubelet.conf", NULL, "600" },
        { "4.1.6", "kubelet.conf: owner", IS_OWNER, "/etc/kubernetes/kubelet.conf", NULL, "root:root" },
        { "4.1.7", "client CA: mode", IS_MODE, "/etc/kubernetes/pki/ca.crt", NULL, "600" },
        { "4.1.8", "client CA: owner", IS_OWNER, "/etc/kubernetes/pki/ca.crt", NULL, "root:root" },
        { "4.1.9", "kubelet's configuration: mode", IS_MODE, KUBELET, NULL, "600" },
        { "4.1.10", "kubelet's configuration: owner", IS_OWNER, KUBELET, NULL, "root:root" },
        { "4.2.1", "kubelet: no anonymous requests", FIELD_IS, KUBELET, "authentication.anonymous.enabled", "false" },
        { "4.2.2", "kubelet: authorization is not AlwaysAllow", FIELD_NOT, KUBELET, "authorization.mode", "AlwaysAllow" },
        { "4.2.3", "kubelet: client CA", FIELD_SET, KUBELET, "authentication.x509.clientCAFile", NULL },
        { "4.2.4", "kubelet: no read-only port", FIELD_NOT, KUBELET, "readOnlyPort", "10255" },
        { "4.2.5", "kubelet: idle streams end", FIELD_NOT, KUBELET, "streamingConnectionIdleTimeout", "0s" },
        { "4.2.6", "kubelet keeps its iptables chains", FIELD_NOT, KUBELET, "makeIPTablesUtilChains", "false" },
        { "4.2.7", "no --hostname-override", MANUAL, KUBELET, NULL, "slipway sets it, so that a node's name does not change with the host name" },
        { "4.2.8", "kubelet: events are not dropped", FIELD_NOT, KUBELET, "eventRecordQPS", "-1" },
        { "4.2.9", "kubelet's certificate", FIELD_SET, KUBELET, "tlsCertFile", NULL },
        { "4.2.10", "kubelet's client certificate rotates", FIELD_NOT, KUBELET, "rotateCertificates", "false" },
        { "4.2.11", "kubelet's server certificate", FIELD_NOT, KUBELET, "featureGates.RotateKubeletServerCertificate", "false" },
        { "4.2.12", "kubelet: strong ciphers", FIELD_SET, KUBELET, "tlsCipherSuites", NULL },
        { "4.2.13", "kubelet: limit of processes per pod", FIELD_SET, KUBELET, "podPidsLimit", NULL },
        { "4.3.1", "kube-proxy's metrics on the loopback", FIELD_NOT, PROXY, "metricsBindAddress", "0.0.0.0" },
        { "5.1", "roles and accounts", MANUAL, APISERVER, NULL, "RBAC objects of the cluster: check them yourself" },
        { "5.2", "admission of pods", MANUAL, APISERVER, NULL, "admission.podSecurity: baseline refuses pods that otherwise only cause a warning; labels of a namespace override it" },
        { "5.3", "network policies", MANUAL, APISERVER, NULL, "flannel enforces none: use network.fabric: canal or calico, and write policies for your namespaces" },
        { "5.4", "secrets", MANUAL, APISERVER, NULL, "mount them as files instead of environment variables; consider an external secret store" },
        { "5.7", "namespaces, seccomp, security contexts", MANUAL, APISERVER, NULL, "seccompDefault gives every pod the runtime's profile; the rest is in the pods' manifests" },
};
/* clang-format on */
