/* Reading back: every resource that the API serves is listed at the restored revision, and the
 * number of objects is compared with the number of keys in the snapshot. Listing decodes (and
 * decrypts) every object, which a count of keys would not prove. */
#include "cluster/etcd/drill/drill.h"

#define PAGE    500
#define PATIENT 300000 /* milliseconds */

static void drill_count_over(struct drill *d);

/* ---- the keys of each resource ---- */

static const char *special(const char *group, const char *resource)
{
        static const struct {
                const char *group, *resource, *prefix;
        } table[] = {
                { "", "nodes", "minions/" },
                { "", "services", "services/specs/" },
                { "", "endpoints", "services/endpoints/" },
                { "", "replicationcontrollers", "controllers/" },
                { "networking.k8s.io", "ingresses", "ingress/" },
                { "events.k8s.io", "events", "events/" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (streq(table[i].group, group) && streq(table[i].resource, resource))
                        return table[i].prefix;
        return NULL;
}

static size_t keys_with(const struct drill *d, const char *prefix)
{
        size_t n = 0;
        for (size_t i = 0; i < d->key_count; i++)
                n += has_prefix(d->keys[i], prefix);
        return n;
}

/* Custom resources and a few others are stored under their group. */
static const char *prefix_of(const struct drill *d, const char *group, const char *resource)
{
        const char *known = special(group, resource),
                   *grouped = arena_printf(d->site->arena, "%s/%s/", group, resource);
        if (known)
                return known;
        return *group && keys_with(d, grouped) ? grouped
                                               : arena_printf(d->site->arena, "%s/", resource);
}

const char *drill_kind_path(const struct drill_kind *k, const char *query)
{
        struct arena *a = k->drill->site->arena;
        return *k->group ? arena_printf(
                                   a, "/apis/%s/%s/%s?%s", k->group, k->version, k->resource, query)
                         : arena_printf(a, "/api/%s/%s?%s", k->version, k->resource, query);
}

/* ---- listing ---- */

static void on_drill_count_page(const struct kube_reply *reply, void *arg)
{
        struct drill_kind *k = arg;
        struct drill *d = k->drill;
        const json_t *items = json_object_get(reply->body, "items");
        const char *next = json_string_value(
                json_object_get(json_object_get(reply->body, "metadata"), "continue"));
        if (reply->status != 200 || !json_is_array(items)) {
                k->trouble = xstrdup(reply->error ? reply->error : "the answer is no list");
                drill_count_over(d);
                return;
        }
        k->objects += json_array_size(items);
        d->objects += json_array_size(items);
        step_doing(d->step, d->key_count ? (int)(d->objects * 1000 / d->key_count) : -1,
                "%zu objects", d->objects);
        if (!next || !*next) {
                drill_count_over(d);
                return;
        }
        char *query CLEANUP(free_p) = xasprintf("limit=%d&continue=%s", PAGE, next);
        kube_request(d->kube, "GET", drill_kind_path(k, query), NULL, NULL, PATIENT,
                on_drill_count_page, k);
}

static void list_all(struct drill *d)
{
        char *query CLEANUP(free_p) =
                xasprintf("limit=%d&resourceVersion=%" PRId64 "&resourceVersionMatch=Exact", PAGE,
                        d->revision);
        d->open = d->kind_count + 1;
        for (size_t i = 0; i < d->kind_count; i++)
                kube_request(d->kube, "GET", drill_kind_path(&d->kinds[i], query), NULL, NULL,
                        PATIENT, on_drill_count_page, &d->kinds[i]);
        drill_count_over(d);
}

/* ---- discovery ---- */

static bool has_verb(const json_t *resource, const char *verb)
{
        size_t i;
        const json_t *v;
        json_array_foreach(json_object_get(resource, "verbs"), i, v)
        {
                if (json_is_string(v) && streq(json_string_value(v), verb))
                        return true;
        }
        return false;
}

static bool known_prefix(const struct drill *d, const char *prefix)
{
        for (size_t i = 0; i < d->kind_count; i++)
                if (streq(d->kinds[i].prefix, prefix))
                        return true;
        return false;
}

static void add_kind(struct drill *d, const char *group, const char *version, const char *resource)
{
        const char *prefix = prefix_of(d, group, resource);
        /* generated on request, not stored */
        if (!*group && streq(resource, "componentstatuses"))
                return;
        /* the same objects in another group or version */
        if (known_prefix(d, prefix))
                return;
        if (d->kind_count == d->kind_cap)
                d->kinds = xrealloc(d->kinds,
                        (d->kind_cap = d->kind_cap ? d->kind_cap * 2 : 64) * sizeof(*d->kinds));
        struct arena *a = d->site->arena;
        d->kinds[d->kind_count++] =
                (struct drill_kind){ d, arena_strdup(a, group), arena_strdup(a, version),
                        arena_strdup(a, resource), prefix, keys_with(d, prefix), 0, -1, NULL };
}

static void on_resources(const struct kube_reply *reply, void *arg)
{
        struct drill *d = arg;
        const char *gv = json_string_value(json_object_get(reply->body, "groupVersion")),
                   *slash = gv ? strchr(gv, '/') : NULL;
        char *group CLEANUP(free_p) = slash ? xstrndup(gv, (size_t)(slash - gv)) : xstrdup("");
        size_t i;
        const json_t *r;
        json_array_foreach(
                json_object_get(reply->status == 200 && gv ? reply->body : NULL, "resources"), i, r)
        {
                const char *name = json_string_value(json_object_get(r, "name"));
                if (name && !strchr(name, '/') && has_verb(r, "list") && has_verb(r, "get"))
                        add_kind(d, group, slash ? slash + 1 : gv, name);
        }
        if (--d->open == 0)
                list_all(d);
}

static void on_drill_count_groups(const struct kube_reply *reply, void *arg)
{
        struct drill *d = arg;
        size_t i;
        const json_t *g;
        json_array_foreach(
                json_object_get(reply->status == 200 ? reply->body : NULL, "groups"), i, g)
        {
                size_t k;
                const json_t *v;
                /* not only the preferred version: some resources exist only in older ones */
                json_array_foreach(json_object_get(g, "versions"), k, v)
                {
                        const char *gv = json_string_value(json_object_get(v, "groupVersion"));
                        char *path CLEANUP(free_p) = xasprintf("/apis/%s", gv ? gv : "");
                        d->open++;
                        kube_request(d->kube, "GET", path, NULL, NULL, PATIENT, on_resources, d);
                }
        }
        if (--d->open == 0)
                list_all(d);
}

void step_drill_count(struct step *s)
{
        struct drill *d = s->arg;
        d->step = s;
        d->open = 2;
        kube_request(d->kube, "GET", "/api/v1", NULL, NULL, PATIENT, on_resources, d);
        kube_request(d->kube, "GET", "/apis", NULL, NULL, PATIENT, on_drill_count_groups, d);
}

/* ---- the result ---- */

static bool is_own(const char *key)
{
        static const char *const own[] = { "ranges/", "masterleases/", "peerserverleases/",
                "health" };
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (has_prefix(key, own[i]))
                        return true;
        return false;
}

static bool is_served(const struct drill *d, const char *key)
{
        for (size_t i = 0; i < d->kind_count; i++)
                if (has_prefix(key, d->kinds[i].prefix))
                        return true;
        return false;
}

static size_t differences(struct drill *d, struct str *first)
{
        size_t n = 0;
        for (size_t i = 0; i < d->kind_count; i++) {
                const struct drill_kind *k = &d->kinds[i];
                if (!k->trouble && k->keys == k->objects)
                        continue;
                if (n++ == 0)
                        str_addf(first, "%s: %zu in the snapshot, %zu read back%s%s", k->resource,
                                k->keys, k->objects, k->trouble ? ": " : "",
                                k->trouble ? k->trouble : "");
        }
        for (size_t i = 0; i < d->key_count; i++) {
                if (is_own(d->keys[i])) {
                        d->own++;
                } else if (!is_served(d, d->keys[i])) {
                        str_addf(&d->orphans, "%s\n", d->keys[i]);
                        if (n++ == 0)
                                str_addf(first, "no API serves the key /registry/%s", d->keys[i]);
                }
        }
        return n;
}

static void drill_count_over(struct drill *d)
{
        struct str first CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (--d->open)
                return;
        struct step *s = TAKE(d->step);
        size_t wrong = differences(d, &first);
        if (!s)
                return;
        if (!wrong) {
                step_changed(s,
                        "%zu objects of %zu kinds read back, and %zu keys of the API server's own",
                        d->objects, d->kind_count, d->own);
                step_done(s, NULL);
                return;
        }
        error_set(&err, EBADMSG, EXIT_UNHEALTHY, "not everything reads back (%zu differences): %s",
                wrong, str_text(&first));
        error_hint(&err,
                "take another snapshot and drill it; kubectl get of that kind in the live cluster says whether it reads there");
        step_done(s, &err);
}
