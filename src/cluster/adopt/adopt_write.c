/* Writes the result as a cluster.yaml. Where slipway's defaults differ from the cluster, an option
 * keeps the cluster's setting. */
#include "cluster/adopt/adopt_files.h"
#include "kube/wait.h"
#include "node/context.h"

/* Flags that rendering sets to the same value from the rest of the file: not written. */
static const char known_apiserver[] =
        " advertise-address allow-privileged audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-path audit-policy-file authorization-mode "
        "client-ca-file enable-bootstrap-token-auth encryption-provider-config etcd-cafile etcd-certfile etcd-keyfile etcd-servers "
        "kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types proxy-client-cert-file "
        "proxy-client-key-file "
        "requestheader-allowed-names "
        "requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers requestheader-username-headers secure-port "
        "service-account-key-file service-account-signing-key-file service-cluster-ip-range tls-cert-file tls-private-key-file ";
static const char known_controller_manager[] =
        " allocate-node-cidrs authentication-kubeconfig authorization-kubeconfig bind-address client-ca-file cluster-cidr cluster-signing-cert-file "
        "cluster-signing-key-file controllers kubeconfig leader-elect requestheader-client-ca-file root-ca-file service-account-private-key-file "
        "service-cluster-ip-range use-service-account-credentials node-cidr-mask-size ";
static const char known_scheduler[] =
        " authentication-kubeconfig authorization-kubeconfig bind-address kubeconfig leader-elect ";
static const char known_etcd[] =
        " advertise-client-urls cert-file client-cert-auth data-dir feature-gates initial-advertise-peer-urls initial-cluster initial-cluster-state key-file "
        "listen-client-urls listen-metrics-urls listen-peer-urls name peer-cert-file peer-client-cert-auth peer-key-file peer-trusted-ca-file snapshot-count "
        "trusted-ca-file watch-progress-notify-interval ";
static const char known_volumes[] =
        " ca-certs etc-ca-certificates k8s-certs usr-local-share-ca-certificates usr-share-ca-certificates etc-pki "
        "etc-pki-ca-trust etc-pki-tls-certs kubeconfig "
        "flexvolume-dir etcd-certs etcd-data ";

static const struct found {
        enum adopt_file file;
        const char *name, *field, *known;
} components[] = {
        { AT_APISERVER, "kube-apiserver", "apiserver", known_apiserver },
        { AT_CONTROLLER_MANAGER, "kube-controller-manager", "controllerManager",
                known_controller_manager },
        { AT_SCHEDULER, "kube-scheduler", "scheduler", known_scheduler },
        { AT_ETCD, "etcd", "etcd", known_etcd },
};

static bool is_known(const char *list, const char *word)
{
        char *padded CLEANUP(free_p) = xasprintf(" %s ", word);
        return strstr(list, padded) != NULL;
}

static const char *adopt_write_text_of(const json_t *o, const char *key)
{
        const char *t = json_string_value(json_object_get(o, key));
        return t ? t : "";
}

/* Refuses a pod that mounts files of the user, because slipway would not provide them. */
static int check_volumes(
        const struct found *c, const json_t *pod, const json_t *flags, struct error *err)
{
        const json_t *v;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(pod, "spec"), "volumes"), i, v)
        {
                if (is_known(known_volumes, adopt_write_text_of(v, "name")) ||
                        adopt_knows_volume(flags, pod, adopt_write_text_of(v, "name")))
                        continue;
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "%s mounts %s (%s), which slipway cannot keep", c->name,
                        adopt_write_text_of(v, "name"),
                        adopt_write_text_of(json_object_get(v, "hostPath"), "path"));
                return error_hint(err,
                        "take the flag that reads it and its entry of extraVolumes out of kubeadm-config, run 'kubeadm init phase control-plane all' there, "
                        "adopt, "
                        "and say in cluster.yaml what it was for (admission.configFile, auth.oidc, components.%s.flags)",
                        c->field);
        }
        return 0;
}

/* Flags that have a field of their own in cluster.yaml. */
static const struct field {
        const char *flag, *section, *inner, *key;
        enum { AS_TEXT, AS_LIST, AS_GATES } as;
} fields[] = {
        { "enable-admission-plugins", "admission", NULL, "enable", AS_LIST },
        { "disable-admission-plugins", "admission", NULL, "disable", AS_LIST },
        { "feature-gates", "featureGates", NULL, NULL, AS_GATES },
        { "oidc-issuer-url", "auth", "oidc", "issuer", AS_TEXT },
        { "oidc-client-id", "auth", "oidc", "clientID", AS_TEXT },
        { "oidc-username-claim", "auth", "oidc", "usernameClaim", AS_TEXT },
        { "oidc-username-prefix", "auth", "oidc", "usernamePrefix", AS_TEXT },
        { "oidc-groups-claim", "auth", "oidc", "groupsClaim", AS_TEXT },
        { "oidc-groups-prefix", "auth", "oidc", "groupsPrefix", AS_TEXT },
        { "oidc-signing-algs", "auth", "oidc", "signingAlgs", AS_LIST },
};

/* The map with that name, created if missing. */
static json_t *section(json_t *in, const char *name)
{
        if (name && !json_object_get(in, name))
                json_object_set_new(in, name, json_object());
        return name ? json_object_get(in, name) : in;
}

static json_t *adopt_write_listed(const char *value)
{
        json_t *out = json_array();
        for (const char *p = value; *p; p += strcspn(p, ","), p += *p == ',')
                if (strncmp(p, "NodeRestriction", strcspn(p, ",")) ||
                        strcspn(p, ",") != strlen("NodeRestriction")) /* always enabled */
                        json_array_append_new(out, json_stringn(p, strcspn(p, ",")));
        return out;
}

static void add_gates(json_t *to, const char *value)
{
        for (const char *p = value; *p; p += strcspn(p, ","), p += *p == ',') {
                size_t n = strcspn(p, "=,"), whole = strcspn(p, ",");
                char *name CLEANUP(free_p) = xstrndup(p, n);
                if (n < whole)
                        json_object_set_new(to, name, json_boolean(has_prefix(p + n + 1, "true")));
        }
}

static bool add_field(json_t *spec, const char *flag, const char *value)
{
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                const struct field *f = &fields[i];
                if (!streq(f->flag, flag))
                        continue;
                json_t *list = f->as == AS_LIST ? adopt_write_listed(value) : NULL;
                if (list && !json_array_size(list)) {
                        json_decref(list);
                        return true;
                }
                json_t *to = section(section(spec, f->section), f->inner);
                if (f->as == AS_GATES)
                        add_gates(to, value);
                else
                        json_object_set_new(to, f->key, list ? list : json_string(value));
                return true;
        }
        return false;
}

/* Writes the component's own flags to spec.components; *all (may be NULL) gets every flag. */
static int add_component(
        struct adopt *a, const struct found *c, json_t *spec, json_t **all, struct error *err)
{
        json_t *pod = adopt_yaml(a, c->name, a->files[c->file], err), *flags = adopt_flags(pod),
               *own = json_object(), *v;
        const char *key;
        int r = !pod ? -err->code : check_volumes(c, pod, flags, err);
        if (r == 0 && c->file == AT_APISERVER)
                r = adopt_audit(a, pod, flags, spec, err);
        if (r == 0 && c->file == AT_APISERVER)
                r = adopt_encryption(a, flags, spec, err);
        json_object_foreach(flags, key, v)
        {
                const char *value = json_string_value(v);
                bool usual = (streq(key, "service-account-issuer") &&
                                     has_prefix(value, "https://kubernetes.default.svc.")) ||
                             streq(key, "cluster-name");
                if (!is_known(c->known, key) && !usual &&
                        !(c->file != AT_ETCD && add_field(spec, key, value)))
                        json_object_set(own, key, v);
        }
        if (c->file == AT_ETCD)
                json_object_set_new(json_object_get(spec, "etcd"), "image",
                        json_string(adopt_write_text_of(
                                json_array_get(
                                        json_object_get(json_object_get(pod, "spec"), "containers"),
                                        0),
                                "image")));
        if (json_object_size(own))
                json_object_set_new(json_object_get(spec, "components"), c->field,
                        json_pack("{s:O}", "flags", own));
        json_decref(own);
        json_decref(pod);
        *all = flags;
        return r;
}

/* slipway's own settings and empty values are not written. */
static void add_kubelet(struct adopt *a, json_t *spec)
{
        static const char ours[] =
                " apiVersion cgroupDriver kind authentication authorization clusterDNS clusterDomain containerRuntimeEndpoint healthzBindAddress healthzPort "
                "rotateCertificates staticPodPath failCgroupV1 resolvConf tlsCertFile tlsPrivateKeyFile serverTLSBootstrap registerWithTaints "
                "oomScoreAdj memorySwap logging containerRuntimeEndpoint crashLoopBackOff imagePullCredentialsVerificationPolicy ";
        struct error err CLEANUP(error_release) = { 0 };
        static const char fields_of_own[] = " systemReserved kubeReserved evictionHard maxPods ";
        json_t *found = adopt_yaml(a, "kubelet", a->files[AT_KUBELET_CONFIG], &err),
               *own = json_object(), *kubelet = json_object(), *v;
        const char *key;
        json_object_foreach(found, key, v)
        {
                const char *t = json_string_value(v);
                bool empty = json_is_null(v) || (t && (!*t || streq(t, "0s"))) ||
                             (json_is_integer(v) && !json_integer_value(v)) ||
                             (json_is_object(v) && !json_object_size(v)) ||
                             (json_is_array(v) && !json_array_size(v));
                if (empty || is_known(ours, key))
                        continue;
                if (streq(key, "featureGates"))
                        json_object_update(section(spec, key), v);
                else
                        json_object_set(is_known(fields_of_own, key) ? kubelet : own, key, v);
        }
        if (json_object_size(own))
                json_object_set(kubelet, "config", own);
        if (json_object_size(kubelet))
                json_object_set(json_object_get(spec, "components"), "kubelet", kubelet);
        json_decref(own);
        json_decref(kubelet);
        json_decref(found);
}

/* ---- nodes ---- */

static bool has_taint(const json_t *node, const char *key)
{
        const json_t *t;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(node, "spec"), "taints"), i,
                t) if (streq(adopt_write_text_of(t, "key"), key)) return true;
        return false;
}

static void add_pool(json_t *pools, const char *name, json_t *roles, json_t *hosts)
{
        if (json_array_size(hosts))
                json_array_append_new(pools,
                        json_pack("{s:s, s:O, s:O}", "name", name, "roles", roles, "hosts", hosts));
        json_decref(roles);
        json_decref(hosts);
}

static const char control_plane[] = "node-role.kubernetes.io/control-plane";

static int add_nodes(struct adopt *a, json_t *spec, struct error *err)
{
        /* control plane only, control plane that accepts pods, workers */
        json_t *hosts[3] = { json_array(), json_array(), json_array() }, *n;
        size_t i;
        int r = 0;
        json_array_foreach(json_object_get(a->nodes, "items"), i, n)
        {
                json_t *labels = json_object_get(json_object_get(n, "metadata"), "labels");
                int kind = !json_object_get(labels, control_plane) ? 2
                           : has_taint(n, control_plane)           ? 0
                                                                   : 1;
                const char *ip = node_internal_ip(n), *name = object_name(n);
                if (!ip)
                        r = error_set(
                                err, EINVAL, EXIT_PREFLIGHT, "node %s has no InternalIP", name);
                else
                        json_array_append_new(
                                hosts[kind], json_pack("{s:s, s:s}", "name", name, "address", ip));
        }
        json_t *pools = json_array();
        add_pool(pools, "control", json_pack("[ss]", "control-plane", "etcd"), hosts[0]);
        add_pool(pools, "control-worker", json_pack("[sss]", "control-plane", "etcd", "worker"),
                hosts[1]);
        add_pool(pools, "worker", json_pack("[s]", "worker"), hosts[2]);
        json_object_set_new(spec, "pools", pools);
        return r;
}

/* ---- network and API ---- */

static json_t *adopt_write_ranges(const char *list)
{
        json_t *out = json_array();
        for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
                json_array_append_new(out, json_stringn(p, strcspn(p, ",")));
        return out;
}

static void add_network(struct adopt *a, json_t *spec, const json_t *manager)
{
        const json_t *net = json_object_get(a->config, "networking");
        const char *pods = adopt_write_text_of(net, "podSubnet"),
                   *services = adopt_write_text_of(net, "serviceSubnet"),
                   *domain = adopt_write_text_of(net, "dnsDomain");
        const char *mask = adopt_flag(manager, "node-cidr-mask-size");
        json_t *o = json_pack("{s:s, s:b}", "fabric", "none", "manageDNS", 0);
        if (*pods)
                json_object_set_new(o, "pods", adopt_write_ranges(pods));
        if (*services)
                json_object_set_new(o, "services", adopt_write_ranges(services));
        if (*domain)
                json_object_set_new(o, "domain", json_string(domain));
        if (mask)
                json_object_set_new(o, "nodeMask", json_integer(strtol(mask, NULL, 10)));
        json_object_set_new(o, "proxyMode", json_string(a->proxy_mode ? a->proxy_mode : "none"));
        if (a->proxy_mode)
                json_object_set_new(o, "proxyRun", json_string("daemonset"));
        if (a->proxy_image)
                json_object_set_new(o, "proxyImage", json_string(a->proxy_image));
        if (a->dns_image)
                json_object_set_new(o, "dnsImage", json_string(a->dns_image));
        json_object_set_new(spec, "network", o);
}

static bool is_first_node(struct adopt *a, const char *host)
{
        struct ip its, asked; /* an IPv6 address can be written in several ways */
        const json_t *n;
        size_t i;
        json_array_foreach(json_object_get(a->nodes, "items"), i, n)
        {
                const char *ip = node_internal_ip(n);
                if (json_object_get(json_object_get(json_object_get(n, "metadata"), "labels"),
                            control_plane))
                        return ip &&
                               (streq(ip, host) || (ip_parse(ip, &its) && ip_parse(host, &asked) &&
                                                           ip_equal(&its, &asked)));
        }
        return false;
}

static void add_api(struct adopt *a, json_t *spec, const json_t *apiserver)
{
        const char *endpoint = a->endpoint, *port = adopt_flag(apiserver, "secure-port");
        const json_t *names = json_object_get(json_object_get(a->config, "apiServer"), "certSANs");
        char host[HOST_MAX];
        long at;
        json_t *o = json_pack("{s:b}", "localBalancer", 0);
        if (!hostport_split(endpoint, host, &at) || !is_first_node(a, host) ||
                json_array_size(names)) /* certificate names are not the nodes' endpoint */
                json_object_set_new(o, "loadBalancer", json_string(endpoint));
        if (port && !streq(port, "6443"))
                json_object_set_new(o, "port", json_integer(strtol(port, NULL, 10)));
        if (json_array_size(names))
                json_object_set(o, "names", (json_t *)(uintptr_t)names);
        json_object_set_new(spec, "api", o);
}

/* kubelets of kubeadm have self-signed serving certificates: the API server must accept them until
 * `up` has given every node its own. */
static void add_certificates(struct adopt *a, json_t *spec, const json_t *apiserver)
{
        static const struct {
                const char *theirs, *ours;
        } names[] = { { "ECDSA-P256", "ecdsa-p256" }, { "RSA-4096", "rsa-4096" },
                { "RSA-3072", "rsa-4096" } };
        const char *algorithm = adopt_write_text_of(a->config, "encryptionAlgorithm"),
                   *ours = "rsa-2048";
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(algorithm, names[i].theirs))
                        ours = names[i].ours;
        json_t *o = json_pack("{s:s}", "algorithm", ours);
        if (!adopt_flag(apiserver, "kubelet-certificate-authority"))
                json_object_set_new(o, "verifyKubelets", json_false());
        json_object_set_new(spec, "certificates", o);
}

static json_t *provider(const struct adopt *a)
{
        json_t *ssh = json_object();
        if (a->target.user)
                json_object_set_new(ssh, "user", json_string(a->target.user));
        if (a->target.key)
                json_object_set_new(ssh, "key", json_string(a->target.key));
        if (a->target.port)
                json_object_set_new(ssh, "port", json_integer(a->target.port));
        if (a->target.options && a->target.options->n) {
                json_t *list = json_array();
                for (size_t i = 0; i < a->target.options->n; i++)
                        json_array_append_new(list, json_string(a->target.options->v[i]));
                json_object_set_new(ssh, "options", list);
        }
        return json_pack("{s:o}", "ssh", ssh);
}

int adopt_write(struct adopt *a, const char *name, struct str *out, struct error *err)
{
        json_t *flags[ARRAY_SIZE(components)] = { 0 };
        json_t *spec = json_pack("{s:s, s:o, s:s, s:{s:s}, s:{s:b}, s:{}}", "kubernetes",
                a->version, "provider", provider(a), "hardening", "kubeadm", "etcd", "run",
                "static-pod", "runtime", "managed", 0, "components");
        int r = add_nodes(a, spec, err);
        for (size_t i = 0; i < ARRAY_SIZE(components) && r == 0; i++)
                r = add_component(a, &components[i], spec, &flags[i], err);
        if (r == 0) {
                const char *dir = adopt_flag(flags[3], "data-dir"),
                           *found = adopt_write_text_of(a->config, "clusterName");
                if (dir && !streq(dir, "/var/lib/etcd"))
                        json_object_set_new(
                                json_object_get(spec, "etcd"), "dataDir", json_string(dir));
                add_kubelet(a, spec);
                add_network(a, spec, flags[1]);
                add_api(a, spec, flags[0]);
                add_certificates(a, spec, flags[0]);
                if (!json_object_size(json_object_get(spec, "components")))
                        json_object_del(spec, "components");
                json_t *doc = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion",
                        "slipway.dev/v1alpha1", "kind", "Cluster", "metadata", "name",
                        name     ? name
                        : *found ? found
                                 : "kubernetes",
                        "spec", spec);
                str_add(out,
                        "# Written by slipway adopt. What was found and need not change is kept as an option.\n");
                yaml_from_json(doc, out);
                json_decref(doc);
        }
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                json_decref(flags[i]);
        json_decref(spec);
        return r;
}
