/* One kubeconfig laid onto another. */
#include <jansson.h>

#include "base/quote.h"
#include "base/tree.h"
#include "pki/pki.h"

static void json_p(json_t **j) { json_decref(*j); }

static const struct section {
        const char *list, *inner;
        bool keeps; /* what a person added inside an entry stays */
} sections[] = { { "clusters", "cluster", false }, { "contexts", "context", true }, { "users", "user", false } };

/* ---- YAML as kubectl writes it ---- */

static void add_value(struct str *s, const json_t *v, unsigned indent);

static void add_scalar(struct str *s, const json_t *v)
{
        if (json_is_string(v)) {
                quote_yaml(s, json_string_value(v));
                return;
        }
        char *text CLEANUP(free_p) = json_dumps(v, JSON_ENCODE_ANY);
        str_add(s, text ? text : "null");
}

/* `first`: the cursor stands behind "- ", where the first key goes. */
static void add_map(struct str *s, const json_t *o, unsigned indent, bool first)
{
        const char *key;
        json_t *v;
        json_object_foreach((json_t *)o, key, v)
        {
                str_addf(s, "%*s", first ? 0 : (int)indent, "");
                first = false;
                quote_yaml(s, key);
                str_addc(s, ':');
                add_value(s, v, indent);
        }
}

static void add_list(struct str *s, const json_t *list, unsigned indent)
{
        size_t i;
        json_t *v;
        json_array_foreach(list, i, v)
        {
                str_addf(s, "%*s-", (int)indent, "");
                if (json_is_object(v) && json_object_size(v)) {
                        str_addc(s, ' ');
                        add_map(s, v, indent + 2, true);
                } else {
                        add_value(s, v, indent);
                }
        }
}

/* What comes behind "key:" or "-": on the same line, or on lines of its own. A list stands under its key without an indent. */
static void add_value(struct str *s, const json_t *v, unsigned indent)
{
        if (json_is_object(v) && json_object_size(v)) {
                str_addc(s, '\n');
                add_map(s, v, indent + 2, false);
        } else if (json_is_array(v) && json_array_size(v)) {
                str_addc(s, '\n');
                add_list(s, v, indent);
        } else {
                str_addc(s, ' ');
                add_scalar(s, v);
                str_addc(s, '\n');
        }
}

/* ---- reading ---- */

static bool is_blank(const char *text)
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

static int not_one(const char *name, const char *why, struct error *err)
{
        error_set(err, EINVAL, EXIT_CONFIG, "%s is not a kubeconfig: %s", name, why);
        return error_hint(err, "mend it, or name another file with --kubeconfig");
}

static int read_config(const char *name, const char *text, json_t **out, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str json CLEANUP(str_wipe_release) = { 0 };
        struct tree *t;
        if (is_blank(text)) {
                *out = json_pack("{s:s, s:s}", "apiVersion", "v1", "kind", "Config");
                return 0;
        }
        int r = tree_parse(&a, name, text, strlen(text), &t, err);
        if (r < 0)
                return r;
        tree_json(&json, t);
        json_t *o CLEANUP(json_p) = json_loads(str_text(&json), JSON_DECODE_ANY, NULL);
        if (!json_is_object(o))
                return not_one(name, "it is no map", err);
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
                json_t *list = json_object_get(o, sections[i].list);
                if (list && !json_is_array(list) && !json_is_null(list))
                        return not_one(name, "one of clusters, contexts and users is no list", err);
        }
        *out = TAKE(o);
        return 0;
}

/* ---- merging ---- */

static const char *name_of(const json_t *entry) { return json_string_value(json_object_get(entry, "name")); }

static json_t *find_entry(const json_t *list, const char *name)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *other = name_of(json_array_get(list, i));
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
                json_t *inner = json_object_get(context, "context"), *name = json_object_get(context, "name");
                const char *old = json_string_value(json_object_get(inner, "user"));
                json_t *user = old ? find_entry(users, old) : NULL;
                if (!user)
                        continue;
                json_object_set(user, "name", name);
                json_object_set(inner, "user", name);
        }
}

static void merge_entry(json_t *list, json_t *entry, const struct section *section)
{
        json_t *there = find_entry(list, name_of(entry)), *inner = json_object_get(entry, section->inner);
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
        json_array_foreach(json_object_get(ours, section->list), i, entry) merge_entry(list, entry, section);
}

int kubeconfig_merge(const char *name, const char *theirs, const char *ours, bool use, struct str *out, char **current, struct error *err)
{
        json_t *into CLEANUP(json_p) = NULL, *from CLEANUP(json_p) = NULL;
        int r = read_config(name, theirs, &into, err);
        if (r == 0)
                r = read_config("the cluster's kubeconfig", ours, &from, err);
        if (r < 0)
                return r;
        rename_users(from);
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
                merge_section(into, from, &sections[i]);
        const char *was = json_string_value(json_object_get(into, "current-context"));
        if (use || !was || !*was)
                json_object_set(into, "current-context", json_object_get(from, "current-context"));
        add_map(out, into, 0, true);
        was = json_string_value(json_object_get(into, "current-context"));
        *current = xstrdup(was ? was : "");
        return 0;
}
