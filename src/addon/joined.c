/* kube-proxy and flannel as pods for machines that kubeadm joined, which have no label
 * slipway.dev/pool; on other nodes both are services. The pods get the same configuration. */
#include "addon/addon.h"
#include "addon/impl.h"
#include "base/sha256.h"
#include "node/context.h"
#include "node/template.h"

static void joined_set_digest(json_t *v, const char *const *texts, size_t n)
{
        struct sha256 s;
        char digest[SHA256_HEX];
        sha256_init(&s);
        for (size_t i = 0; i < n; i++)
                sha256_add(&s, texts[i], strlen(texts[i]) + 1);
        sha256_end(&s, digest);
        digest[16] = 0;
        json_put(v, "digest", digest);
}

static const char *joined_node_file(const struct nodespec *node, const char *path)
{
        const struct spec_entry *e = nodespec_find(node, SPEC_FILE, path);
        return e ? e->content : NULL;
}

/* With the addon multus the fabric's configuration is inside its own, and these machines do not
 * have multus. */
static char *joined_conflist(const char *text)
{
        json_auto_t *all = json_loads(text, 0, NULL);
        const json_t *plugin = json_array_get(json_object_get(all, "plugins"), 0),
                     *inside = json_array_get(json_object_get(plugin, "delegates"), 0);
        return inside ? json_dumps(inside, JSON_INDENT(2)) : xstrdup(text);
}

/* With the token of the pod's service account, for the cluster's endpoint. */
static char *proxy_kubeconfig(const struct cluster *c)
{
        char *host CLEANUP(free_p) = endpoint_text(c),
                   *server CLEANUP(free_p) = xasprintf("https://%s", host);
        json_t *o = json_pack(
                "{s:s, s:s, s:[{s:s, s:{s:s, s:s}}], s:[{s:s, s:{s:s, s:s, s:s}}], s:s, s:[{s:s, s:{s:s}}]}",
                "apiVersion", "v1", "kind", "Config", "clusters", "name", "default", "cluster",
                "certificate-authority", "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
                "server", server, "contexts", "name", "default", "context", "cluster", "default",
                "namespace", "default", "user", "default", "current-context", "default", "users",
                "name", "default", "user", "tokenFile",
                "/var/run/secrets/kubernetes.io/serviceaccount/token");
        char *text = json_dumps(o, JSON_INDENT(2));
        json_decref(o);
        return text;
}

static void joined_proxy(const struct cluster *c, const struct catalogue *catalogue,
        const char *config, struct str *out)
{
        json_t *o = json_from_yaml(config), *v = json_object();
        const char *bind = json_string_value(json_object_get(o, "bindAddress"));
        json_object_del(o, "hostnameOverride");
        /* the default, about which kubeadm would warn */
        if (bind && (streq(bind, "0.0.0.0") || streq(bind, "::")))
                json_object_del(o, "bindAddress");
        char *common CLEANUP(free_p) = json_dumps(o, JSON_INDENT(2) | JSON_SORT_KEYS),
                     *kubeconfig CLEANUP(free_p) = proxy_kubeconfig(c);
        json_put(v, "config", common);
        json_put(v, "kubeconfig", kubeconfig);
        json_put(v, "image", catalogue->images[IMG_KUBE_PROXY].name);
        joined_set_digest(v, (const char *const[]){ common, kubeconfig }, 2);
        template_render("joined-proxy.yaml", v, out);
        json_decref(o);
        json_decref(v);
}

static void joined_flannel(const struct cluster *c, const struct catalogue *catalogue,
        const char *cni_conf, const char *net_conf, struct str *out)
{
        const char *interface = c->network.fabric.interface;
        char *iface CLEANUP(free_p) = xasprintf("--iface=%s", interface ? interface : "$(NODE_IP)");
        json_t *v = json_object();
        char *conflist CLEANUP(free_p) = joined_conflist(cni_conf);
        json_put(v, "conflist", conflist);
        json_put(v, "netConf", net_conf);
        json_put(v, "image", catalogue->images[IMG_FLANNEL].name);
        json_put(v, "pluginImage", catalogue->images[IMG_FLANNEL_PLUGIN].name);
        json_put(v, "iface", iface);
        json_put(v, "apiHost", cluster_endpoint_host(c));
        json_object_set_new(v, "apiPort", json_sprintf("%ld", cluster_endpoint_port(c)));
        joined_set_digest(v, (const char *const[]){ conflist, net_conf }, 2);
        template_render("joined-flannel.yaml", v, out);
        json_decref(v);
}

void addon_joined(const struct cluster *c, const struct nodespec *node, struct str *out)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        const char *config = joined_node_file(node, "/var/lib/kube-proxy/config.conf"),
                   *net_conf = joined_node_file(node, "/etc/kube-flannel/net-conf.json"),
                   *conflist = joined_node_file(node, "/etc/kube-flannel/cni-conf.json");
        catalogue_for(&a, &c->kubernetes, &catalogue);
        if (config)
                joined_proxy(c, &catalogue, config, out);
        str_add(out, "\n---\n");
        if (net_conf && conflist)
                joined_flannel(c, &catalogue, conflist, net_conf, out);
}
