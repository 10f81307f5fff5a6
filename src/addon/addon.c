#include "addon/addon.h"
#include "addon/impl.h"
#include "base/quote.h"
#include "base/tree.h"
#include "node/template.h"

static void addon_set(json_t *o, const char *key, const char *value)
{
        json_object_set_new(o, key, json_string(value));
}

static char *join_cidrs(const struct cidrs *l)
{
        struct str s = { 0 };
        char text[IP_TEXT + 4];
        for (size_t i = 0; i < l->n; i++)
                str_addf(&s, "%s%s", i ? "," : "", cidr_format(&l->v[i], text));
        return str_take(&s);
}

char *endpoint_text(const struct cluster *c)
{
        const char *host = cluster_endpoint_host(c);
        struct ip ip;
        return xasprintf(ip_parse(host, &ip) && ip.family == 6 ? "[%s]:%ld" : "%s:%ld", host,
                cluster_endpoint_port(c));
}

/* Settings that an API server of kubeadm join --control-plane must share with the others: without
 * the encryption key it could not read Secrets, and would write them unencrypted. It does not start
 * until somebody has copied the key's directory to its machine. */
static json_t *apiserver_configuration(const struct cluster *c)
{
        static const char *const keys = "/etc/kubernetes/encryption";
        json_t *o = json_object(), *args = json_array();
        if (c->certificates.verify_kubelets)
                json_array_append_new(
                        args, json_pack("{s:s, s:s}", "name", "kubelet-certificate-authority",
                                      "value", "/etc/kubernetes/pki/ca.crt"));
        if (c->encryption.provider != ENCRYPTION_NONE) {
                json_array_append_new(
                        args, json_pack("{s:s, s:s}", "name", "encryption-provider-config", "value",
                                      "/etc/kubernetes/encryption/config.yaml"));
                json_object_set_new(o, "extraVolumes",
                        json_pack("[{s:s, s:s, s:s, s:b, s:s}]", "name", "encryption", "hostPath",
                                keys, "mountPath", keys, "readOnly", 1, "pathType", "Directory"));
        }
        if (json_array_size(args))
                json_object_set(o, "extraArgs", args);
        json_decref(args);
        return o;
}

/* The ClusterConfiguration for kubeadm. etcd as a service is external for kubeadm, which does not
 * change it then. */
static json_t *cluster_configuration(const struct cluster *c)
{
        static const char *const algorithms[] = { "ECDSA-P256", "ECDSA-P384", "RSA-2048",
                "RSA-4096" };
        char *pods CLEANUP(free_p) = join_cidrs(&c->network.pods),
                   *services CLEANUP(free_p) = join_cidrs(&c->network.services),
                   *host CLEANUP(free_p) = endpoint_text(c);
        json_t *endpoints = json_array();
        size_t i = 0;
        for (const struct node *n; (n = cluster_next(c, ROLE_ETCD, &i));) {
                char text[IP_TEXT + 2];
                char *url CLEANUP(free_p) = xasprintf("https://%s:2379", ip_host(&n->ip[0], text));
                json_array_append_new(endpoints, json_string(url));
        }
        json_t *o = json_pack(
                "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:{s:{s:o, s:s, s:s, s:s}}, s:{s:s, s:s, s:s}, s:{s:b}}",
                "apiVersion", "kubeadm.k8s.io/v1beta4", "kind", "ClusterConfiguration",
                "certificatesDir", "/etc/kubernetes/pki", "clusterName", c->name,
                "controlPlaneEndpoint", host, "encryptionAlgorithm",
                algorithms[c->certificates.algorithm], "imageRepository", "registry.k8s.io",
                "kubernetesVersion", json_sprintf("v%s", c->kubernetes.text), "apiServer",
                apiserver_configuration(c), "etcd", "external", "endpoints", endpoints, "caFile",
                "/etc/kubernetes/pki/etcd/ca.crt", "certFile",
                "/etc/kubernetes/pki/apiserver-etcd-client.crt", "keyFile",
                "/etc/kubernetes/pki/apiserver-etcd-client.key", "networking", "dnsDomain",
                c->network.domain, "podSubnet", pods, "serviceSubnet", services, "proxy",
                "disabled", c->network.proxy_run == PROXY_RUN_SERVICE);
        if (c->etcd.run == ETCD_RUN_STATIC_POD)
                json_object_set_new(
                        o, "etcd", json_pack("{s:{s:s}}", "local", "dataDir", c->etcd.data_dir));
        return o;
}

/* A kubelet configuration for machines that join with kubeadm: without files and taints of the node
 * it was rendered for, and without what needs kernel settings that slipway does not make there. */
static int common_kubelet(const char *kubelet, struct str *out, struct error *err)
{
        static const char *const own[] = { "tlsCertFile", "tlsPrivateKeyFile", "registerWithTaints",
                "protectKernelDefaults", "providerID" };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct tree *t;
        int r = tree_parse(&a, "kubelet configuration", kubelet, strlen(kubelet), &t, err);
        if (r < 0)
                return r;
        struct str text CLEANUP(str_release) = { 0 };
        tree_json(&text, t);
        json_t *o = json_loads(str_text(&text), 0, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                json_object_del(o, own[i]);
        /* the kubelet requests its serving certificate, which slipway certs approve approves */
        json_object_set_new(o, "serverTLSBootstrap", json_true());
        char *dump CLEANUP(free_p) = json_dumps(o, JSON_INDENT(2) | JSON_SORT_KEYS);
        json_decref(o);
        str_add(out, dump ? dump : "{}");
        return 0;
}

int addon_bootstrap(const struct cluster *c, const struct identity *id, const char *kubelet,
        struct str *out, struct error *err)
{
        struct str common CLEANUP(str_release) = { 0 }, info CLEANUP(str_release) = { 0 };
        char *host CLEANUP(free_p) = endpoint_text(c);
        char *server CLEANUP(free_p) = xasprintf("https://%s", host);
        int r = common_kubelet(kubelet, &common, err);
        if (r < 0)
                return r;
        str_add(&info,
                "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: ");
        quote_yaml(&info, server);
        str_add(&info, "\n    certificate-authority-data: ");
        str_add_base64(&info, id->ca[CA_CLUSTER].bundle, strlen(id->ca[CA_CLUSTER].bundle));
        str_add(&info, "\ncontexts: null\ncurrent-context: \"\"\nusers: null");
        json_t *configuration = cluster_configuration(c), *v = json_object();
        char *dump CLEANUP(free_p) = json_dumps(configuration, JSON_INDENT(2));
        json_decref(configuration);
        addon_set(v, "clusterConfiguration", dump);
        addon_set(v, "kubeletConfiguration", str_text(&common));
        addon_set(v, "clusterInfo", str_text(&info));
        template_render("bootstrap.yaml", v, out);
        json_decref(v);
        return 0;
}

void addon_dns(const struct cluster *c, struct str *out)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        struct ip dns[2];
        char text[IP_TEXT];
        json_t *v = json_object(), *all = json_array();
        size_t n = cluster_dns(c, dns);
        for (size_t i = 0; i < n; i++)
                json_array_append_new(all, json_string(ip_format(&dns[i], text)));
        struct str upstream CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < c->network.dns_upstream.n; i++)
                str_addf(&upstream, "%s%s", i ? " " : "", c->network.dns_upstream.v[i]);
        catalogue_for(&a, &c->kubernetes, &catalogue);
        addon_set(v, "dns", n ? ip_format(&dns[0], text) : "");
        json_object_set_new(v, "dnsAll", all);
        addon_set(v, "familyPolicy", n > 1 ? "RequireDualStack" : "SingleStack");
        addon_set(v, "domain", c->network.domain);
        addon_set(v, "upstream", upstream.len ? str_text(&upstream) : "/etc/resolv.conf");
        addon_set(v, "image", catalogue.images[IMG_COREDNS].name);
        if (!cluster_addon(c, ADDON_DNS_AUTOSCALER)) /* which sets it */
                json_object_set_new(v, "replicas", json_integer(c->node_count > 1 ? 2 : 1));
        else
                json_object_set_new(v, "replicas", json_null());
        /* it is waited for before the controller that initialises nodes is installed */
        json_object_set_new(v, "cloud", json_boolean(cluster_cloud_controller(c)));
        template_render("coredns.yaml", v, out);
        json_decref(v);
}

void addon_verify(const struct cluster *c, const char *service, struct str *out)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        json_t *v = json_object();
        catalogue_for(&a, &c->kubernetes, &catalogue);
        addon_set(v, "image", catalogue.images[IMG_PROBE].name);
        addon_set(v, "service", service);
        template_render("verify.yaml", v, out);
        json_decref(v);
}

void addon_verify_storage(const struct cluster *c, const char *name, const char *verb,
        const char *token, struct str *out)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        catalogue_for(&a, &c->kubernetes, &catalogue);
        json_t *v = json_pack("{s:s, s:s, s:s, s:s}", "image", catalogue.images[IMG_PROBE].name,
                "name", name, "verb", verb, "token", token);
        template_render("verify-storage.yaml", v, out);
        json_decref(v);
}

void addon_verify_ingress(const char *service, struct str *out)
{
        json_t *v = json_pack("{s:s}", "service", service);
        template_render("verify-ingress.yaml", v, out);
        json_decref(v);
}
