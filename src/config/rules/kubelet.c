/* The kubelet's reservations, thresholds and free-form configuration, of the cluster and
 * of each pool. */
#include <ctype.h>

#include "config/rules/rules.h"

/* A Kubernetes quantity: 1.5, 100m, 512Mi, 2e9. Percent where the field takes one. */
static bool quantity(const char *s, bool percent)
{
        static const char *const suffixes[] = { "", "n", "u", "m", "k", "K", "M", "G", "T", "P",
                "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
        size_t digits = 0;
        for (; isdigit((unsigned char)*s) || *s == '.'; s++)
                digits += *s != '.';
        if (!digits)
                return false;
        if (percent && streq(s, "%"))
                return true;
        if ((*s == 'e' || *s == 'E') && isdigit((unsigned char)s[1]))
                return strspn(s + 1, "0123456789") == strlen(s + 1);
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
                if (streq(s, suffixes[i]) && !streq(s, "K"))
                        return true;
        return false;
}

static const char *const reserved_keys[] = { "cpu", "memory", "ephemeral-storage", "pid" };
static const char *const signals[] = { "memory.available", "nodefs.available", "nodefs.inodesFree",
        "imagefs.available", "imagefs.inodesFree", "containerfs.available",
        "containerfs.inodesFree", "pid.available", "allocatableMemory.available" };

static const char *list_hint(
        struct problems *p, const char *word, const char *const *names, size_t n)
{
        struct str s CLEANUP(str_release) = { 0 };
        const char *near = nearest(word, names, n);
        if (near)
                return arena_printf(p->arena, "did you mean %s?", near);
        str_add(&s, "use one of ");
        for (size_t i = 0; i < n; i++)
                str_addf(&s, "%s%s", i ? ", " : "", names[i]);
        return arena_strdup(p->arena, str_text(&s));
}

static void kubelet_reserved(
        const struct tree *src, const char *field, const struct pairs *pairs, struct problems *p)
{
        const struct tree *at = tree_get(src, field);
        bool eviction = streq(field, "evictionHard");
        const char *const *names = eviction ? signals : reserved_keys;
        size_t n = eviction ? ARRAY_SIZE(signals) : ARRAY_SIZE(reserved_keys);
        for (size_t i = 0; i < pairs->n; i++) {
                const char *key = pairs->v[i].key, *value = pairs->v[i].value;
                bool known = false;
                if (!key || !value)
                        continue;
                for (size_t k = 0; k < n; k++)
                        known |= streq(key, names[k]);
                if (!known)
                        problem_add_key(p, tree_get(at, key), list_hint(p, key, names, n),
                                "the kubelet cannot %s \"%s\"", eviction ? "evict by" : "reserve",
                                key);
                else if (!quantity(value, eviction))
                        problem_add(p, at, key,
                                eviction ? "use an amount or a percentage, such as 200Mi or 10%"
                                         : "use an amount, such as 100m or 512Mi",
                                "\"%s\" is not an amount of %s", value, key);
        }
}

/* Fields of KubeletConfiguration that slipway writes from other parts of the file, or that the node
 * does not work without. */
static const struct {
        const char *field, *instead;
} owned_config[] = {
        { "apiVersion", "leave it out: only fields of KubeletConfiguration belong here" },
        { "kind", "leave it out: only fields of KubeletConfiguration belong here" },
        { "authentication",
                "leave it out: the API server and the kubelet authenticate each other with certificates" },
        { "authorization", "leave it out: the kubelet asks the API server" },
        { "cgroupDriver", "leave it out: slipway detects it on the machine" },
        { "clusterDNS", "use network.dns" },
        { "clusterDomain", "use network.domain" },
        { "containerRuntimeEndpoint", "use runtime" },
        { "evictionHard", "use kubelet.evictionHard" },
        { "featureGates", "use featureGates" },
        { "kubeReserved", "use kubelet.kubeReserved" },
        { "maxPods", "use kubelet.maxPods" },
        { "port", "leave it out: the API server expects 10250" },
        { "staticPodPath",
                "leave it out: the control plane's manifests are in /etc/kubernetes/manifests" },
        { "systemReserved", "use kubelet.systemReserved" },
        { "tlsCertFile", "leave it out: slipway issues the kubelet's certificate" },
        { "tlsPrivateKeyFile", "leave it out: slipway issues the kubelet's certificate" },
};

static void config(const struct kubelet_options *k, struct problems *p)
{
        if (k->config && k->config->kind != TREE_MAP && k->config->kind != TREE_NULL)
                problem_add(p, k->config, NULL,
                        "write fields of KubeletConfiguration, such as {imageGCHighThresholdPercent: 80}",
                        "the kubelet's configuration must be a map of fields");
        for (size_t i = 0; i < ARRAY_SIZE(owned_config); i++) {
                const struct tree *at = tree_get(k->config, owned_config[i].field);
                if (at)
                        problem_add_key(p, at, owned_config[i].instead,
                                "slipway sets the kubelet's %s itself", owned_config[i].field);
        }
}

/* Pods beyond the node's range would wait for an address for ever. */
static void max_pods(const struct cluster *c, const struct kubelet_options *k, struct problems *p)
{
        const struct network *n = &c->network;
        long bits = 0;
        for (size_t i = 0; i < n->pods.n; i++)
                if (n->pods.v[i].ip.family == 4 && n->node_mask > 0)
                        bits = 32 - n->node_mask;
        if (!bits || !k->max_pods)
                return;
        /* the network's own address, the bridge's and the broadcast */
        long room = (1L << bits) - 3;
        if (k->max_pods > room)
                problem_add(p, k->src, "maxPods",
                        arena_printf(
                                p->arena, "use at most %ld, or a smaller network.nodeMask", room),
                        "a node's pod range of /%ld has addresses for %ld pods, got %ld",
                        n->node_mask, room, k->max_pods);
}

static void options(const struct cluster *c, const struct kubelet_options *k, struct problems *p)
{
        if (!k->src)
                return;
        kubelet_reserved(k->src, "systemReserved", &k->system_reserved, p);
        kubelet_reserved(k->src, "kubeReserved", &k->kube_reserved, p);
        kubelet_reserved(k->src, "evictionHard", &k->eviction_hard, p);
        config(k, p);
        max_pods(c, k, p);
}

void rules_kubelet(struct cluster *c, struct problems *p)
{
        options(c, &c->components.kubelet, p);
        for (size_t i = 0; i < c->pools.n; i++)
                options(c, &c->pools.v[i].kubelet, p);
}
