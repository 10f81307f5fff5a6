/* What differs between objects that are there and objects that are wanted: by name, then field by
 * field. */
#include "addon/service.h"
#include "kube/kinds.h"

#define FIELDS_MAX 12 /* of one object; the rest is counted */
#define VALUE_MAX  60 /* characters of a value */

static const char *diff_text(const json_t *object, const char *field)
{
        const char *s = json_string_value(json_object_get(object, field));
        return s ? s : "";
}

static const char *diff_meta(const json_t *object, const char *field)
{
        return diff_text(json_object_get(object, "metadata"), field);
}

static size_t diff_group(const json_t *object)
{
        const char *api = diff_text(object, "apiVersion"), *slash = strchr(api, '/');
        return slash ? (size_t)(slash - api) : 0;
}

/* Another version of the same group is the same object. */
static bool same_object(const json_t *a, const json_t *b, const char *ns)
{
        const char *na = diff_meta(a, "namespace"), *nb = diff_meta(b, "namespace");
        size_t group = diff_group(a);
        return streq(diff_text(a, "kind"), diff_text(b, "kind")) &&
               streq(diff_meta(a, "name"), diff_meta(b, "name")) &&
               streq(*na ? na : ns, *nb ? nb : ns) && group == diff_group(b) &&
               memcmp(diff_text(a, "apiVersion"), diff_text(b, "apiVersion"), group) == 0;
}

static const json_t *diff_find(const json_t *list, const json_t *object, const char *ns)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o) if (same_object(o, object, ns)) return o;
        return NULL;
}

bool service_cluster_wide(const json_t *object)
{
        struct kind k = kind_built_in(diff_text(object, "apiVersion"), diff_text(object, "kind"));
        return k.plural && !k.namespaced;
}

char *service_object_name(const json_t *object, const char *ns)
{
        const char *its = diff_meta(object, "namespace");
        its = service_cluster_wide(object) ? "" : *its ? its : ns;
        return xasprintf("%s %s%s%s", diff_text(object, "kind"), its, *its ? "/" : "",
                diff_meta(object, "name"));
}

/* ---- fields ---- */

struct fields {
        json_t *list;
        size_t more;
        bool secret; /* values are not shown */
};

static char *diff_value(const json_t *v)
{
        char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
        if (!text)
                return xstrdup("nothing");
        if (strlen(text) > VALUE_MAX)
                memcpy(text + VALUE_MAX - 3, "...", 4);
        return text;
}

/* Of a Secret: kubectl writes its values into an annotation, too. */
static bool diff_hides(const char *path)
{
        static const char *const hidden[] = { "data", "stringData", "metadata.annotations" };
        bool hides = streq(path, "metadata");
        for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
                hides |= has_prefix(path, hidden[i]);
        return hides;
}

static void diff_report(struct fields *f, const char *path, const json_t *a, const json_t *b)
{
        if (json_array_size(f->list) == FIELDS_MAX) {
                f->more++;
                return;
        }
        bool masked = f->secret && diff_hides(path);
        char *was CLEANUP(free_p) = diff_value(a), *is CLEANUP(free_p) = diff_value(b);
        char *line = masked ? xasprintf("%s: %s", path,
                                      !a   ? "added"
                                      : !b ? "removed"
                                           : "changed")
                            : xasprintf("%s: %s → %s", path, was, is);
        json_array_append_new(f->list, json_string(line));
        free(line);
}

static void diff_values(struct fields *f, const char *path, const json_t *a, const json_t *b);

static void diff_maps(struct fields *f, const char *path, const json_t *a, const json_t *b)
{
        const char *key;
        json_t *v;
        json_object_foreach((json_t *)a, key, v)
        {
                char *at CLEANUP(free_p) = xasprintf("%s%s%s", path, *path ? "." : "", key);
                diff_values(f, at, v, json_object_get(b, key));
        }
        json_object_foreach((json_t *)b, key, v)
        {
                char *at CLEANUP(free_p) = xasprintf("%s%s%s", path, *path ? "." : "", key);
                if (!json_object_get(a, key))
                        diff_values(f, at, NULL, v);
        }
}

/* Containers, ports and volumes are known by their names. */
static const json_t *named(const json_t *list, const char *name)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o) if (streq(diff_text(o, "name"), name)) return o;
        return NULL;
}

static bool all_named(const json_t *list)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o) if (!*diff_text(o, "name")) return false;
        return json_array_size(list) > 0;
}

static void diff_lists(struct fields *f, const char *path, const json_t *a, const json_t *b)
{
        bool names = all_named(a) && all_named(b);
        size_t n =
                json_array_size(a) > json_array_size(b) ? json_array_size(a) : json_array_size(b);
        for (size_t i = 0; !names && i < n; i++) {
                char *at CLEANUP(free_p) = xasprintf("%s[%zu]", path, i);
                diff_values(f, at, json_array_get(a, i), json_array_get(b, i));
        }
        for (size_t i = 0; names && i < json_array_size(a); i++) {
                const json_t *v = json_array_get(a, i);
                char *at CLEANUP(free_p) = xasprintf("%s[%s]", path, diff_text(v, "name"));
                diff_values(f, at, v, named(b, diff_text(v, "name")));
        }
        for (size_t i = 0; names && i < json_array_size(b); i++) {
                const json_t *v = json_array_get(b, i);
                char *at CLEANUP(free_p) = xasprintf("%s[%s]", path, diff_text(v, "name"));
                if (!named(a, diff_text(v, "name")))
                        diff_values(f, at, NULL, v);
        }
}

static void diff_values(struct fields *f, const char *path, const json_t *a, const json_t *b)
{
        bool inside = f->secret && (streq(path, "data") || streq(path, "stringData"));
        if (json_equal(a, b))
                return;
        if ((json_is_object(a) && json_is_object(b)) ||
                (inside && (json_is_object(a) || json_is_object(b))))
                diff_maps(f, path, a, b);
        else if (json_is_array(a) && json_is_array(b))
                diff_lists(f, path, a, b);
        else
                diff_report(f, path, a, b);
}

static json_t *diff_fields(const json_t *a, const json_t *b)
{
        struct fields f = { .list = json_array(), .secret = streq(diff_text(b, "kind"), "Secret") };
        diff_values(&f, "", a, b);
        if (f.more) {
                char *line CLEANUP(free_p) = xasprintf("and %zu more", f.more);
                json_array_append_new(f.list, json_string(line));
        }
        return f.list;
}

static void diff_add(
        json_t *out, const char *action, const json_t *object, const char *ns, json_t *fields)
{
        char *name CLEANUP(free_p) = service_object_name(object, ns);
        json_array_append_new(out,
                json_pack("{s:s, s:s, s:o}", "action", action, "object", name, "fields", fields));
}

json_t *service_diff(const json_t *before, const json_t *after, const char *ns)
{
        json_t *out = json_array();
        size_t i;
        const json_t *o, *was;
        json_array_foreach(after, i, o)
        {
                if (!(was = diff_find(before, o, ns)))
                        diff_add(out, "add", o, ns, json_array());
                else if (!json_equal(was, o))
                        diff_add(out, "change", o, ns, diff_fields(was, o));
        }
        json_array_foreach(before, i, o) if (!diff_find(after, o, ns))
                diff_add(out, "remove", o, ns, json_array());
        return out;
}

/* Without what nobody asked for. */
static json_t *diff_wanted(const json_t *object)
{
        static const char *const own[] = { "managedFields", "resourceVersion", "uid", "generation",
                "creationTimestamp" };
        json_t *o = json_deep_copy(object), *meta = json_object_get(o, "metadata");
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                json_object_del(meta, own[i]);
        json_object_del(o, "status");
        return o;
}

void service_diff_live(const json_t *wanted, const json_t *is, const json_t *would, json_t *changes)
{
        size_t i;
        const json_t *o;
        json_array_foreach(wanted, i, o)
        {
                if (!json_is_object(json_array_get(is, i))) {
                        diff_add(changes, "add", o, "", json_array());
                        continue;
                }
                if (!json_is_object(json_array_get(would, i)))
                        continue;
                json_t *a = diff_wanted(json_array_get(is, i)),
                       *b = diff_wanted(json_array_get(would, i));
                if (!json_equal(a, b))
                        diff_add(changes, "change", b, "", diff_fields(a, b));
                json_decref(a);
                json_decref(b);
        }
}

json_t *service_reference(const json_t *object)
{
        const char *ns = diff_meta(object, "namespace");
        json_t *o = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", diff_text(object, "apiVersion"),
                "kind", diff_text(object, "kind"), "metadata", "name", diff_meta(object, "name"));
        if (*ns)
                json_object_set_new(json_object_get(o, "metadata"), "namespace", json_string(ns));
        return o;
}

json_t *service_pruned(const json_t *before, const json_t *after, const char *own, json_t *stay)
{
        json_t *out = json_array();
        size_t i;
        const json_t *o;
        json_array_foreach(before, i, o)
        {
                const char *kind = diff_text(o, "kind");
                bool theirs =
                             streq(kind, "Namespace") && !(own && streq(diff_meta(o, "name"), own)),
                     stays = theirs || streq(kind, "CustomResourceDefinition");
                if (!*kind || !*diff_text(o, "apiVersion") || !*diff_meta(o, "name") ||
                        diff_find(after, o, "default"))
                        continue;
                json_array_append_new(stays ? stay : out, service_reference(o));
        }
        return out;
}
