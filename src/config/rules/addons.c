/* Addons: their values, and what they need of the rest of the file. */
#include "base/ip.h"
#include "config/addon.h"
#include "config/fabric.h"
#include "config/rules/rules.h"

#define OPTIONS_MAX 8 /* of one addon */

static const struct addon_option *option_of(enum addon_id id, const char *name)
{
        for (const struct addon_option *o = addon_options(); o->name; o++)
                if (o->addon == id && streq(o->name, name))
                        return o;
        return NULL;
}

/* "did you mean address?", or the names that there are. */
static const char *options_hint(enum addon_id id, const char *name, struct problems *p)
{
        const char *names[OPTIONS_MAX];
        size_t n = 0;
        struct str all CLEANUP(str_release) = { 0 };
        for (const struct addon_option *o = addon_options(); o->name; o++)
                if (o->addon == id && n < OPTIONS_MAX) {
                        names[n++] = o->name;
                        str_addf(&all, "%s%s", all.len ? ", " : "", o->name);
                }
        const char *near = name ? nearest(name, names, n) : NULL;
        return near ? arena_printf(p->arena, "did you mean %s?", near)
                    : arena_printf(p->arena, "it has: %s", str_text(&all));
}

static bool has_options(enum addon_id id)
{
        for (const struct addon_option *o = addon_options(); o->name; o++)
                if (o->addon == id)
                        return true;
        return false;
}

static void addon_given(const struct addon *a, enum addon_id id, struct problems *p)
{
        tree_each (value, a->values) {
                const struct addon_option *o = option_of(id, value->key);
                const char *why =
                        o && value->kind != TREE_NULL ? option_fault(p->arena, o, value) : NULL;
                if (!o)
                        problem_add_key(p, value, options_hint(id, value->key, p),
                                "%s has no value \"%s\"", a->name, value->key);
                else if (why)
                        problem_add(p, value, NULL,
                                arena_printf(p->arena, "%s, for example %s: %s", o->what, o->name,
                                        o->example),
                                "%s", why);
        }
}

static bool option_given(const struct addon *a, const char *name)
{
        const struct tree *value = tree_get(a->values, name);
        return value && value->kind != TREE_NULL;
}

static void addon_values(const struct addon *a, struct problems *p)
{
        enum addon_id id = addon_named(a->name);
        if (id == ADDON_COUNT || !addon_built_in(id))
                return;
        if (a->values && a->values->kind != TREE_NULL && !has_options(id))
                problem_add(p, a->src, "values",
                        "leave them out; `slipway addons` says which addons are charts",
                        "%s is not a chart, and it has no values", a->name);
        else if (a->values && a->values->kind != TREE_NULL && a->values->kind != TREE_MAP)
                problem_add(p, a->values, NULL, options_hint(id, NULL, p),
                        "the values of an addon must be a map");
        else
                addon_given(a, id, p);
        for (const struct addon_option *o = addon_options(); o->name; o++)
                if (o->addon == id && !o->fallback && !option_given(a, o->name))
                        problem_add(p, a->src, NULL,
                                arena_printf(p->arena, "write {name: %s, values: {%s: %s}}",
                                        a->name, o->name, o->example),
                                "%s needs values.%s: %s", a->name, o->name, o->what);
}

static bool in_any(const struct cidrs *all, const struct ip *ip)
{
        for (size_t i = 0; i < all->n; i++)
                if (cidr_contains(&all->v[i], ip))
                        return true;
        return false;
}

static void addon_cache(const struct cluster *c, const struct addon *a, struct problems *p)
{
        struct ip ip;
        const struct tree *at = tree_get(a->values, "address");
        bool reached = false;
        if (!ip_parse(addon_value(c, ADDON_NODELOCALDNS, "address"), &ip))
                return;
        for (size_t i = 0; i < c->network.pods.n; i++)
                reached |= c->network.pods.v[i].ip.family == ip.family;
        if (c->network.pods.n && !reached)
                problem_add(p, at ? at : a->src, NULL,
                        "give one of their family in values.address, for example fd00:53::10",
                        "pods have no address of the family of the DNS cache's");
        else if (in_any(&c->network.pods, &ip) || in_any(&c->network.services, &ip) ||
                 in_any(&c->network.hosts, &ip))
                problem_add(p, at ? at : a->src, NULL, "use a link-local address: 169.254.20.10",
                        "the address of the DNS cache is in the range of pods, services or hosts");
}

static void addon_scaler(const struct cluster *c, const struct addon *a, struct problems *p)
{
        const char *min = addon_value(c, ADDON_DNS_AUTOSCALER, "min"),
                   *max = addon_value(c, ADDON_DNS_AUTOSCALER, "max");
        if (!cluster_addon(c, ADDON_METRICS_SERVER))
                problem_add(p, a->src, NULL, "add metrics-server to services.addons",
                        "%s reads the load of CoreDNS from metrics-server, which is not in the file",
                        a->name);
        if (strtol(min, NULL, 10) > strtol(max, NULL, 10))
                problem_add(p, a->values, "min", "use a smaller min, or a larger max",
                        "min (%s) is larger than max (%s)", min, max);
}

static void addon_balancer(const struct cluster *c, const struct addon *a, struct problems *p)
{
        struct ip first, last, vip;
        bool has_vip = c->api.vip && ip_parse(c->api.vip, &vip);
        tree_each (range, tree_get(a->values, "addresses")) {
                if (range->kind != TREE_SCALAR || !option_range(range->text, &first, &last))
                        continue;
                if (in_any(&c->network.pods, &first) || in_any(&c->network.services, &first))
                        problem_add(p, range, NULL, "use free addresses of the nodes' network",
                                "these addresses are in the range of pods or services");
                if (has_vip && vip.family == first.family &&
                        memcmp(first.b, vip.b, sizeof(vip.b)) <= 0 &&
                        memcmp(vip.b, last.b, sizeof(vip.b)) <= 0)
                        problem_add(p, range, NULL, "leave it out of the range",
                                "the range contains api.vip (%s)", c->api.vip);
        }
}

/* Whether a chart or manifest of the user may bring a StorageClass. */
static bool storage_may_come(const struct cluster *c)
{
        static const enum addon_id bring[] = { ADDON_LOCAL_PATH, ADDON_CEPH_CSI_RBD,
                ADDON_CEPH_CSI_CEPHFS, ADDON_CINDER_CSI, ADDON_EBS_CSI };
        bool may = c->services.manifests.n;
        for (size_t i = 0; i < ARRAY_SIZE(bring); i++)
                may |= cluster_addon(c, bring[i]);
        for (size_t i = 0; i < c->services.charts.n; i++)
                may |= tree_get(c->services.charts.v[i].src, "chart") != NULL;
        return may;
}

/* Without a StorageClass its pod waits for its volume, and `up` for the pod. */
static void addon_stored(const struct cluster *c, const struct addon *a, struct problems *p)
{
        if (*addon_value(c, addon_named(a->name), "storage") && !storage_may_come(c))
                problem_warn(p, a->src, NULL,
                        "add local-path to services.addons, unless the cluster has one already",
                        "%s needs a default StorageClass, and nothing in the file brings one",
                        a->name);
}

/* Its configuration is around that of the fabric's plugins, which slipway then writes. */
static void addon_multus(const struct cluster *c, const struct addon *a, struct problems *p)
{
        if (!fabric_has(c, FABRIC_FLANNELD) && !fabric_has(c, FABRIC_FELIX))
                problem_add(p, a->src, NULL,
                        "use the fabric flannel, canal or calico, or install multus yourself",
                        "multus runs over flannel, canal and calico, and the fabric is %s",
                        fabric_names[c->network.fabric.kind]);
}

/* Two that would do the same. */
static void addon_clash(const struct cluster *c, const struct addon *a, struct problems *p)
{
        static const struct {
                enum addon_id one, other;
                const char *why;
        } clashes[] = {
                { ADDON_KUBE_VIP, ADDON_METALLB, "would both answer for the same Services" },
                { ADDON_INGRESS, ADDON_TRAEFIK, "would both have the IngressClass traefik" },
                { ADDON_PROMETHEUS, ADDON_KUBE_PROMETHEUS,
                        "would both run node-exporter at port 9100 of every node" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(clashes); i++)
                if (addon_named(a->name) == clashes[i].one && cluster_addon(c, clashes[i].other))
                        problem_add(p, a->src, NULL, "leave one of them out", "%s and %s %s",
                                a->name, addon_names[clashes[i].other], clashes[i].why);
}

void rules_addons(struct cluster *c, struct problems *p)
{
        static const struct {
                enum addon_id id;
                void (*judge)(const struct cluster *c, const struct addon *a, struct problems *p);
        } judges[] = { { ADDON_NODELOCALDNS, addon_cache }, { ADDON_DNS_AUTOSCALER, addon_scaler },
                { ADDON_KUBE_VIP, addon_balancer }, { ADDON_MULTUS, addon_multus },
                { ADDON_REGISTRY, addon_stored }, { ADDON_PROMETHEUS, addon_stored } };
        for (size_t i = 0; i < c->services.addons.n; i++) {
                const struct addon *a = &c->services.addons.v[i];
                size_t before = p->errors;
                addon_values(a, p);
                addon_clash(c, a, p);
                for (size_t k = 0; p->errors == before && k < ARRAY_SIZE(judges); k++)
                        if (addon_named(a->name) == judges[k].id)
                                judges[k].judge(c, a, p);
        }
}
