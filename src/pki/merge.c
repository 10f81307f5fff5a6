/* Merges one kubeconfig into another. */
#include <jansson.h>

#include "base/quote.h"
#include "base/tree.h"
#include "pki/pki.h"

static void json_p(json_t **j) { json_decref(*j); }

static const struct section {
        const char *list, *inner;
        bool keeps; /* other fields of an entry stay */
} sections[] = { { "clusters", "cluster", false }, { "contexts", "context", true },
        { "users", "user", false } };

/* ---- YAML as kubectl writes it ---- */

static void yaml_add_value(struct str *s, const json_t *v, unsigned indent);

static void yaml_add_scalar(struct str *s, const json_t *v)
{
        if (json_is_string(v)) {
                quote_yaml(s, json_string_value(v));
                return;
        }
        char *text CLEANUP(free_p) = json_dumps(v, JSON_ENCODE_ANY);
        str_add(s, text ? text : "null");
}

/* `first`: the first key goes on the current line, behind "- ". */
static void yaml_add_map(struct str *s, const json_t *o, unsigned indent, bool first)
{
        const char *key;
        json_t *v;
        json_object_foreach((json_t *)o, key, v)
        {
                str_addf(s, "%*s", first ? 0 : (int)indent, "");
                first = false;
                quote_yaml(s, key);
                str_addc(s, ':');
                yaml_add_value(s, v, indent);
        }
}

static void yaml_add_list(struct str *s, const json_t *list, unsigned indent)
{
        size_t i;
        json_t *v;
        json_array_foreach(list, i, v)
        {
                str_addf(s, "%*s-", (int)indent, "");
                if (json_is_object(v) && json_object_size(v)) {
                        str_addc(s, ' ');
                        yaml_add_map(s, v, indent + 2, true);
                } else {
                        yaml_add_value(s, v, indent);
                }
        }
}

/* The value behind "key:" or "-": on the same line, or on lines of its own. A list is not indented
 * under its key. */
static void yaml_add_value(struct str *s, const json_t *v, unsigned indent)
{
        if (json_is_object(v) && json_object_size(v)) {
                str_addc(s, '\n');
                yaml_add_map(s, v, indent + 2, false);
        } else if (json_is_array(v) && json_array_size(v)) {
                str_addc(s, '\n');
                yaml_add_list(s, v, indent);
        } else {
                str_addc(s, ' ');
                yaml_add_scalar(s, v);
                str_addc(s, '\n');
        }
}

/* ---- reading ---- */

static bool merge_is_blank(const char *text)
{
        while (*text) {
                text += strspn(text, " \t\r\n");
                if (*text == '#')
                        text += strcspn(text, "\n");
                else if (*text)
                        return false;
        }
        return true;
}

static int merge_not_kubeconfig(const char *name, const char *why, struct error *err)
{
        error_set(err, EINVAL, EXIT_CONFIG, "%s is not a kubeconfig: %s", name, why);
        return error_hint(err, "correct it, or name another file with --kubeconfig");
}

static int merge_read(const char *name, const char *text, json_t **out, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str json CLEANUP(str_wipe_release) = { 0 };
        struct tree *t;
        if (merge_is_blank(text)) {
                *out = json_pack("{s:s, s:s}", "apiVersion", "v1", "kind", "Config");
                return 0;
        }
        int r = tree_parse(&a, name, text, strlen(text), &t, err);
        if (r < 0)
                return r;
        tree_json(&json, t);
        json_t *o CLEANUP(json_p) = json_loads(str_text(&json), JSON_DECODE_ANY, NULL);
        if (!json_is_object(o))
                return merge_not_kubeconfig(name, "it is not a map", err);
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
                json_t *list = json_object_get(o, sections[i].list);
                if (list && !json_is_array(list) && !json_is_null(list))
                        return merge_not_kubeconfig(
                                name, "one of clusters, contexts and users is not a list", err);
        }
        *out = TAKE(o);
        return 0;
}

/* ---- merging ---- */

static const char *merge_entry_name(const json_t *entry)
{
        return json_string_value(json_object_get(entry, "name"));
}

static json_t *merge_find_entry(const json_t *list, const char *name)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *other = merge_entry_name(json_array_get(list, i));
                if (other && streq(other, name))
                        return json_array_get(list, i);
        }
        return NULL;
}

/* USER becomes USER@CLUSTER, in the users and in the contexts that name them. */
static void rename_users(json_t *ours)
{
        const json_t *users = json_object_get(ours, "users");
        size_t i;
        json_t *context;
        json_array_foreach(json_object_get(ours, "contexts"), i, context)
        {
                json_t *inner = json_object_get(context, "context"),
                       *name = json_object_get(context, "name");
                const char *old = json_string_value(json_object_get(inner, "user"));
                json_t *user = old ? merge_find_entry(users, old) : NULL;
                if (!user)
                        continue;
                json_object_set(user, "name", name);
                json_object_set(inner, "user", name);
        }
}

static void merge_entry(json_t *list, json_t *entry, const struct section *section)
{
        json_t *there = merge_find_entry(list, merge_entry_name(entry)),
               *inner = json_object_get(entry, section->inner);
        json_t *old = json_object_get(there, section->inner);
        if (!there)
                json_array_append(list, entry);
        else if (section->keeps && json_is_object(old))
                json_object_update(old, inner);
        else
                json_object_set(there, section->inner, inner);
}

static void merge_section(json_t *theirs, const json_t *ours, const struct section *section)
{
        json_t *list = json_object_get(theirs, section->list), *entry;
        size_t i;
        if (!json_is_array(list)) {
                list = json_array();
                json_object_set_new(theirs, section->list, list);
        }
        json_array_foreach(json_object_get(ours, section->list), i, entry)
                merge_entry(list, entry, section);
}

int kubeconfig_merge(const char *name, const char *theirs, const char *ours, bool use,
        struct str *out, char **current, struct error *err)
{
        json_t *into CLEANUP(json_p) = NULL, *from CLEANUP(json_p) = NULL;
        int r = merge_read(name, theirs, &into, err);
        if (r == 0)
                r = merge_read("the cluster's kubeconfig", ours, &from, err);
        if (r < 0)
                return r;
        rename_users(from);
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
                merge_section(into, from, &sections[i]);
        const char *was = json_string_value(json_object_get(into, "current-context"));
        if (use || !was || !*was)
                json_object_set(into, "current-context", json_object_get(from, "current-context"));
        yaml_add_map(out, into, 0, true);
        was = json_string_value(json_object_get(into, "current-context"));
        *current = xstrdup(was ? was : "");
        return 0;
}
