/* What is generated from the schema table. The documents themselves are judged elsewhere; here:
 * that nothing of the table is left out. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>

#include "config/schema.h"

static json_t *load_json(void)
{
        struct str s CLEANUP(str_release) = { 0 };
        json_error_t e;
        schema_json(&s);
        json_t *root = json_loads(str_text(&s), 0, &e);
        if (!root)
                fail_msg("%s", e.text);
        return root;
}

static json_t *body_of(json_t *root, const struct schema *s)
{
        json_t *spec = json_object_get(json_object_get(root, "properties"), "spec");
        return s == &cluster_schema ? spec
                                    : json_object_get(json_object_get(root, "$defs"), s->name);
}

/* Every field of the table, with its description and its place in `required`. */
static void check_struct(json_t *root, const struct schema *s)
{
        json_t *body = body_of(root, s);
        if (!body)
                fail_msg("%s is not there", s->name);
        assert_int_equal(json_object_size(json_object_get(body, "properties")), s->count);
        for (const struct field *f = s->fields; f < s->fields + s->count; f++) {
                json_t *field = json_object_get(json_object_get(body, "properties"), f->name), *v;
                bool required = false;
                size_t i;
                if (!field || !json_is_string(json_object_get(field, "description")))
                        fail_msg("%s.%s is missing or not described", s->name, f->name);
                json_array_foreach(json_object_get(body, "required"), i, v) required |=
                        streq(json_string_value(v), f->name);
                if (required != (f->flags & F_REQUIRED && !f->later))
                        fail_msg("%s.%s: required is %d", s->name, f->name, required);
                if (f->later && !json_is_object(json_object_get(field, "not")))
                        fail_msg(
                                "%s.%s is refused, and the JSON Schema takes it", s->name, f->name);
                if (f->sub && !f->later)
                        check_struct(root, f->sub);
        }
}

static void test_json_has_every_field(void **state)
{
        json_t *root = load_json();
        check_struct(root, &cluster_schema);
        json_decref(root);
}

static json_t *field_of(json_t *root, const char *def, const char *name)
{
        json_t *f = json_object_get(
                json_object_get(json_object_get(json_object_get(root, "$defs"), def), "properties"),
                name);
        if (!f)
                fail_msg("%s.%s is not there", def, name);
        return f;
}

static void dumps_as(json_t *v, const char *want)
{
        char *text CLEANUP(free_p) = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        assert_string_equal(text, want);
}

static void test_json_forms(void **state)
{
        json_t *root = load_json();
        dumps_as(json_object_get(field_of(root, "api", "port"), "default"), "6443");
        dumps_as(json_object_get(field_of(root, "api", "port"), "maximum"), "65535");
        dumps_as(json_object_get(field_of(root, "disk", "options"), "default"),
                "[\"defaults\",\"noatime\"]");
        dumps_as(json_object_get(field_of(root, "disk", "filesystem"), "default"), "\"ext4\"");
        dumps_as(json_object_get(field_of(root, "etcd", "snapshots"), "$ref"),
                "\"#/$defs/snapshots\"");
        /* a short form is the scalar or the struct */
        json_t *fabric = json_object_get(field_of(root, "network", "fabric"), "anyOf");
        dumps_as(json_object_get(json_array_get(fabric, 0), "enum"),
                "[\"flannel\",\"canal\",\"calico\",\"cilium\",\"kube-ovn\",\"none\",\"custom\"]");
        dumps_as(json_array_get(fabric, 1), "{\"$ref\":\"#/$defs/fabric\"}");
        /* a default that only stands for "not given" is none */
        assert_null(json_object_get(field_of(root, "pool", "count"), "default"));
        dumps_as(json_object_get(json_object_get(json_object_get(root, "$defs"), "provider"),
                         "maxProperties"),
                "1");
        json_decref(root);
}

static const struct tree *crd_spec(struct arena *a, struct str *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t = NULL;
        schema_crd(text);
        if (tree_parse(a, "crd.yaml", text->data, text->len, &t, &err) < 0)
                fail_msg("%s", err.message);
        const struct tree *version = tree_get(tree_get(t, "spec"), "versions")->first;
        return tree_get(
                tree_get(tree_get(tree_get(version, "schema"), "openAPIV3Schema"), "properties"),
                "spec");
}

/* Every schema in it has a type, or says why not. */
static void structural(const struct tree *t)
{
        if (!tree_get(t, "type") && !tree_get(t, "x-kubernetes-preserve-unknown-fields") &&
                !tree_get(t, "x-kubernetes-int-or-string"))
                fail_msg("crd.yaml:%u: no type", t->line);
        if (tree_get(t, "anyOf") || tree_get(t, "$ref") || tree_get(t, "default"))
                fail_msg("crd.yaml:%u: not structural", t->line);
        tree_each (c, tree_get(t, "properties"))
                structural(c);
        if (tree_get(t, "items"))
                structural(tree_get(t, "items"));
        if (tree_get(t, "additionalProperties"))
                structural(tree_get(t, "additionalProperties"));
}

static void test_crd_is_structural(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree *spec = crd_spec(&a, &text);
        assert_non_null(spec);
        structural(spec);
        assert_int_equal(tree_get(spec, "properties")->count, cluster_schema.count);
}

static void check_docs(const char *text, const struct schema *s)
{
        char *heading CLEANUP(free_p) = xasprintf("\n### %s\n", s->name);
        const char *section = strstr(text, heading),
                   *end = section ? strstr(section + 1, "\n### ") : NULL;
        if (!section)
                fail_msg("%s has no heading", s->name);
        assert_null(strstr(section + 1, heading)); /* once */
        for (const struct field *f = s->fields; f < s->fields + s->count; f++) {
                char *row CLEANUP(free_p) = xasprintf("\n| `%s` | ", f->name);
                const char *at = strstr(section, row);
                if (!at || (end && at > end))
                        fail_msg("%s.%s has no row", s->name, f->name);
                const char *line = strchr(at + 1, '\n'),
                           *says = strstr(at, "**Not implemented yet, and refused**");
                if (!!f->later != (says && says < line))
                        fail_msg("%s.%s: the row does not say whether it is refused", s->name,
                                f->name);
                if (f->sub && !f->later)
                        check_docs(text, f->sub);
        }
}

static void test_docs_have_every_field(void **state)
{
        struct str text CLEANUP(str_release) = { 0 };
        schema_docs(&text);
        check_docs(str_text(&text), &cluster_schema);
        for (size_t i = 0; i < gone_count; i++)
                if (!strstr(text.data, gone_table[i].instead))
                        fail_msg("%s is not said to be gone", gone_table[i].word);
        assert_non_null(strstr(text.data, "| `runtime: docker` | "));
        assert_non_null(strstr(text.data, "| `fabric.backend: udp` | "));
        assert_non_null(strstr(text.data, "| `auth.basicAuth` | "));
        assert_non_null(strstr(text.data, "Short form: `192.0.2.21` for `{address: 192.0.2.21}`."));
}

static void test_same_bytes_every_time(void **state)
{
        static void (*const writers[])(struct str *) = { schema_json, schema_crd, schema_docs };
        for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
                struct str a CLEANUP(str_release) = { 0 }, b CLEANUP(str_release) = { 0 };
                writers[i](&a);
                writers[i](&b);
                assert_string_equal(str_text(&a), str_text(&b));
                assert_true(a.len && a.data[a.len - 1] == '\n');
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_json_has_every_field),
                cmocka_unit_test(test_json_forms),
                cmocka_unit_test(test_crd_is_structural),
                cmocka_unit_test(test_docs_have_every_field),
                cmocka_unit_test(test_same_bytes_every_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
