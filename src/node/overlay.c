/* Configuration as trees: the user's fields merged into what a template made, written as YAML. */
#include "base/print.h"
#include "node/context.h"
#include "base/quote.h"

void json_overlay(json_t *base, json_t *over)
{
        const char *key;
        json_t *v;
        void *next;
        json_object_foreach_safe(over, next, key, v)
        {
                json_t *old = json_object_get(base, key);
                if (json_is_null(v))
                        json_object_del(base, key);
                else if (json_is_object(old) && json_is_object(v))
                        json_overlay(old, v);
                else
                        json_object_set_nocheck(base, key, v);
        }
}

json_t *json_from_tree(const struct tree *t)
{
        struct str text CLEANUP(str_release) = { 0 };
        json_error_t e;
        tree_json(&text, t);
        json_t *v = json_loadb(str_text(&text), text.len, JSON_DECODE_ANY, &e);
        if (!v)
                abort(); /* tree_json writes JSON */
        return v;
}

json_t *json_from_yaml(const char *text)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        if (tree_parse(&a, "template", text, strlen(text), &t, &err) < 0) {
                print_err("%s\n", err.message);
                abort();
        }
        return json_from_tree(t);
}

/* ---- YAML ---- */

static void yaml_value(const json_t *v, struct str *out, unsigned depth);

static void yaml_indent(struct str *out, unsigned depth)
{
        str_addf(out, "%*s", (int)depth * 2, "");
}

static void yaml_map(const json_t *v, struct str *out, unsigned depth)
{
        const char *key;
        json_t *child;
        bool first = true;
        json_object_foreach((json_t *)(uintptr_t)v, key, child)
        {
                if (!first || !out->len || out->data[out->len - 1] == '\n')
                        yaml_indent(out, depth);
                first = false;
                quote_yaml(out, key);
                str_addc(out, ':');
                bool nested = (json_is_object(child) && json_object_size(child)) ||
                              (json_is_array(child) && json_array_size(child));
                str_addc(out, nested ? '\n' : ' ');
                yaml_value(child, out, json_is_array(child) ? depth : depth + 1);
        }
}

static void yaml_list(const json_t *v, struct str *out, unsigned depth)
{
        for (size_t i = 0; i < json_array_size(v); i++) {
                const json_t *child = json_array_get(v, i);
                yaml_indent(out, depth);
                str_add(out, json_is_array(child) && json_array_size(child) ? "-\n" : "- ");
                yaml_value(child, out, depth + 1);
        }
}

static void yaml_value(const json_t *v, struct str *out, unsigned depth)
{
        if (json_is_object(v) && json_object_size(v)) {
                yaml_map(v, out, depth);
                return;
        }
        if (json_is_array(v) && json_array_size(v)) {
                yaml_list(v, out, depth);
                return;
        }
        if (json_is_string(v)) {
                quote_yaml(out, json_string_value(v));
        } else {
                char *text =
                        json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
                str_add(out, text ? text : "null");
                free(text);
        }
        str_addc(out, '\n');
}

void yaml_from_json(const json_t *v, struct str *out) { yaml_value(v, out, 0); }

/* ---- flags as fields ---- */

const struct flag_field *flag_field_find(const struct flag_field *table, size_t n, const char *flag)
{
        for (size_t i = 0; i < n; i++)
                if (streq(table[i].flag, flag))
                        return &table[i];
        return NULL;
}

/* Durations as in Go: 1h30m, 250ms; a number without a unit is nanoseconds. */
static json_int_t nanoseconds(const char *v)
{
        static const struct {
                const char *unit;
                json_int_t n;
        } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
                { "m", 60000000000 }, { "h", 3600000000000 } };
        json_int_t sum = 0;
        while (*v) {
                char *end;
                double d = strtod(v, &end);
                size_t len = strspn(end, "nusmh"), i = 0;
                while (i < ARRAY_SIZE(units) &&
                        (strlen(units[i].unit) != len || strncmp(units[i].unit, end, len)))
                        i++;
                if (end == v || (i == ARRAY_SIZE(units) && len))
                        break;
                if (d < 0 || d * (double)(len ? units[i].n : 1) > 9e18)
                        break;
                sum += (json_int_t)(d * (double)(len ? units[i].n : 1));
                v = end + len;
        }
        return sum;
}

static json_t *flag_field_list(const char *value)
{
        json_t *list = json_array();
        for (const char *p = value; *p;) {
                size_t n = strcspn(p, ",");
                if (n)
                        json_array_append_new(list, json_stringn_nocheck(p, n));
                p += n + (p[n] == ',');
        }
        return list;
}

static json_t *flag_field_value(enum field_kind kind, const char *value)
{
        char *end;
        long long n = strtoll(value, &end, 10);
        switch (kind) {
        case FIELD_NUMBER:
                /* anything else is left to the program to refuse */
                return *value && !*end ? json_integer(n) : json_string_nocheck(value);
        case FIELD_BOOL:
                return streq(value, "true") || streq(value, "false")
                               ? json_boolean(streq(value, "true"))
                               : json_string_nocheck(value);
        case FIELD_LIST:
                return flag_field_list(value);
        case FIELD_NANOSECONDS:
                return json_integer(nanoseconds(value));
        default:
                return json_string_nocheck(value);
        }
}

void flag_field_set(json_t *config, const struct flag_field *f, const char *value)
{
        const char *path = f->path ? f->path : f->flag;
        for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
                char *key CLEANUP(free_p) = xstrndup(path, (size_t)(dot - path));
                json_t *child = json_object_get(config, key);
                if (!json_is_object(child))
                        json_object_set_new(config, key, child = json_object());
                config = child;
        }
        json_object_set_new_nocheck(config, path, flag_field_value(f->kind, value));
}
