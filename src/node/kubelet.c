/* The kubelet: its configuration, flags, labels and taints. */
#include "config/addon.h"
#include "node/context.h"
#include "node/template.h"
#include "base/quote.h"

/* ---- labels ---- */

/* NodeRestriction allows a kubelet only these labels of Kubernetes' own prefixes; others are set
 * through the API. */
static bool kubelet_may_set(const char *label)
{
        static const char *const allowed[] = {
                "kubernetes.io/hostname",
                "topology.kubernetes.io/zone",
                "topology.kubernetes.io/region",
                "failure-domain.beta.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/region",
                "beta.kubernetes.io/instance-type",
                "node.kubernetes.io/instance-type",
                "kubernetes.io/os",
                "kubernetes.io/arch",
                "beta.kubernetes.io/os",
                "beta.kubernetes.io/arch",
        };
        const char *slash = strchr(label, '/');
        char domain[256];
        if (!slash || (size_t)(slash - label) >= sizeof(domain))
                return true;
        snprintf(domain, sizeof(domain), ".%.*s", (int)(slash - label), label);
        if (!has_suffix(domain, ".kubernetes.io") && !has_suffix(domain, ".k8s.io"))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
                if (streq(allowed[i], label))
                        return true;
        return has_suffix(domain, ".kubelet.kubernetes.io") ||
               has_suffix(domain, ".node.kubernetes.io");
}

/* What the machine says, unless the file says otherwise. */
static void label_add(struct str *s, const struct pairs *said, const char *key, const char *value)
{
        for (size_t i = 0; i < said->n; i++)
                if (streq(said->v[i].key, key))
                        return;
        if (value)
                str_addf(s, ",%s=%s", key, value);
}

static const char *node_labels(const struct context *x)
{
        static const struct pairs none = { 0 };
        struct pairs all = pairs_over(
                x->arena, &x->node->pool->labels, x->node->host ? &x->node->host->labels : &none);
        struct str s CLEANUP(str_release) = { 0 };
        /* Set at registration, so that pods for joined machines never start on this node. */
        str_addf(&s, POOL_LABEL "=%s", x->node->pool->name);
        label_add(&s, &all, "topology.kubernetes.io/zone", x->facts->zone);
        label_add(&s, &all, "topology.kubernetes.io/region", x->facts->region);
        for (size_t i = 0; i < all.n; i++)
                if (kubelet_may_set(all.v[i].key))
                        str_addf(&s, ",%s=%s", all.v[i].key, all.v[i].value);
        return arena_strdup(x->arena, str_text(&s));
}

/* ---- taints ---- */

static void taint_add(json_t *list, const struct taint *t)
{
        json_t *o = json_object();
        json_put(o, "key", t->key);
        json_put(o, "value", t->value);
        json_put(o, "effect", t->effect);
        json_array_append_new(list, o);
}

static json_t *taint_values(const struct context *x)
{
        static const struct taint control_plane = { "node-role.kubernetes.io/control-plane", "",
                "NoSchedule" };
        const struct pool *p = x->node->pool;
        json_t *list = json_array();
        if (p->roles & ROLE_CONTROL_PLANE && !(p->roles & ROLE_WORKER))
                taint_add(list, &control_plane);
        for (size_t i = 0; i < p->taints.n; i++)
                taint_add(list, &p->taints.v[i]);
        for (size_t i = 0; x->node->host && i < x->node->host->taints.n; i++)
                taint_add(list, &x->node->host->taints.v[i]);
        return json_array_size(list) ? json_pack("{s:o}", "list", list)
                                     : (json_decref(list), json_false());
}

/* ---- flags ---- */

static void arg_add(const struct context *x, struct str *s, const char *name, const char *value)
{
        str_add(s, s->len ? " " : "");
        quote_word(s, arena_printf(x->arena, "--%s=%s", name, value));
}

static const char *kubelet_node_ips(const struct context *x)
{
        char a[IP_TEXT], b[IP_TEXT];
        const struct ip *ip = x->node->ip;
        bool dual = ip[1].family && x->cluster->network.pods.n > 1;
        return arena_printf(x->arena, dual ? "%s,%s" : "%s", ip_format(&ip[0], a),
                dual ? ip_format(&ip[1], b) : "");
}

static const char *kubelet_args(const struct context *x)
{
        const struct pairs user = pairs_over(
                x->arena, &x->cluster->components.kubelet.flags, &x->node->pool->kubelet.flags);
        const char *labels = node_labels(x);
        struct str s CLEANUP(str_release) = { 0 };
        arg_add(x, &s, "hostname-override", x->node->name);
        arg_add(x, &s, "node-ip", kubelet_node_ips(x));
        arg_add(x, &s, "node-labels", labels);
        if (cluster_cloud_controller(x->cluster))
                arg_add(x, &s, "cloud-provider", "external");
        for (size_t i = 0; i < user.n; i++)
                arg_add(x, &s, flag_name(user.v[i].key), user.v[i].value);
        return arena_strdup(x->arena, str_text(&s));
}

/* ---- configuration ---- */

static json_t *pairs_section(
        const struct context *x, const struct pairs *cluster, const struct pairs *pool)
{
        struct pairs all = pairs_over(x->arena, cluster, pool);
        return all.n ? json_pack("{s:o}", "pairs", json_pairs(&all)) : json_false();
}

/* Machines on this computer share its disk, so the kubelet's default percentages (pods
 * are evicted at 15 % free, images removed at 85 % used) would be of the computer's disk:
 * use amounts instead. */
static struct pairs kubelet_eviction(const struct context *x, bool shared)
{
        static struct pair amounts[] = { { "imagefs.available", "1Gi" },
                { "memory.available", "100Mi" }, { "nodefs.available", "1Gi" } };
        const struct pairs *said = &x->cluster->components.kubelet.eviction_hard;
        return shared && !said->n ? (struct pairs){ ARRAY_SIZE(amounts), amounts } : *said;
}

json_t *kubelet_values(const struct context *x)
{
        const struct kubelet_options *c = &x->cluster->components.kubelet,
                                     *p = &x->node->pool->kubelet;
        bool shared = x->cluster->provider.kind == PROVIDER_LOCAL;
        struct pairs evict = kubelet_eviction(x, shared);
        json_t *v = json_object();
        json_object_set_new(v, "shared_disk", json_boolean(shared));
        json_object_set_new(v, "eviction_hard", pairs_section(x, &evict, &p->eviction_hard));
        json_object_set_new(
                v, "kube_reserved", pairs_section(x, &c->kube_reserved, &p->kube_reserved));
        json_object_set_new(
                v, "system_reserved", pairs_section(x, &c->system_reserved, &p->system_reserved));
        json_object_set_new(v, "max_pods",
                json_integer(p->max_pods > 0   ? p->max_pods
                             : c->max_pods > 0 ? c->max_pods
                                               : 0));
        json_object_set_new(v, "provider_id",
                x->facts->provider_id ? json_string(x->facts->provider_id) : json_false());
        json_object_set_new(v, "taints", taint_values(x));
        json_object_set_new(v, "cis", hardening_kubelet(x));
        json_put(v, "args", kubelet_args(x));
        return v;
}

void kubelet_config(const struct context *x, struct str *out)
{
        const struct tree *over[] = { x->cluster->components.kubelet.config,
                x->node->pool->kubelet.config };
        struct str text CLEANUP(str_release) = { 0 };
        template_render("kubelet-config.yaml", x->values, &text);
        if (!over[0] && !over[1]) {
                str_addn(out, str_text(&text), text.len);
                return;
        }
        json_t *config = json_from_yaml(str_text(&text));
        for (size_t i = 0; i < ARRAY_SIZE(over); i++) {
                if (!over[i])
                        continue;
                json_t *o = json_from_tree(over[i]);
                json_overlay(config, o);
                json_decref(o);
        }
        yaml_from_json(config, out);
        json_decref(config);
}
