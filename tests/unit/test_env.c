/* Values from the environment: only listed names, only scalars, types as if they were written, and
 * never in a message. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "config/edit.h"
#include "config/edited.h"
#include "config/minors.h"

#define HEAD \
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: t}\nspec:\n  kubernetes: " KUBERNETES_NEWEST \
        "\n"
#define CONTROL "  pools:\n    - {name: a, roles: [control-plane, etcd], count: 1}\n"

struct loaded {
        struct arena arena;
        struct problems problems;
        struct cluster *c;
        struct str text; /* of the problems */
        int r;
};

static void loaded_release(struct loaded *l)
{
        str_release(&l->text);
        arena_release(&l->arena);
}

static void load(struct loaded *l, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct tree_file file = { "f", text, strlen(text), 0 };
        loaded_release(l);
        *l = (struct loaded){ 0 };
        l->problems.arena = &l->arena;
        l->r = cluster_load_instead(&l->arena, (const char *const[]){ "f" }, 1, &file, 1, false,
                &l->c, &l->problems, &err);
        problems_text(&l->problems, 0, &l->text);
}

static const char *label(const struct loaded *l, const char *key)
{
        const struct pairs *labels = &l->c->pools.v[0].labels;
        for (size_t i = 0; i < labels->n; i++)
                if (streq(labels->v[i].key, key))
                        return labels->v[i].value;
        return NULL;
}

static void has(const struct loaded *l, const char *text)
{
        if (!strstr(str_text((struct str *)&l->text), text))
                fail_msg("no \"%s\" in:\n%s", text, str_text((struct str *)&l->text));
}

static void hasnt(const struct loaded *l, const char *text)
{
        if (strstr(str_text((struct str *)&l->text), text))
                fail_msg("\"%s\" in:\n%s", text, str_text((struct str *)&l->text));
}

static void without_the_list(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        setenv("ENV_A", "x", 1);
        load(&l, HEAD CONTROL "      labels: {}\n");
        load(&l, HEAD
                "  pools: [{name: a, roles: [control-plane, etcd], count: 1, annotations: {k: \"${ENV_A} ${ENV_A:-y}\"}}]\n");
        assert_int_equal(l.r, 0);
        assert_string_equal(l.c->pools.v[0].annotations.v[0].value, "${ENV_A} ${ENV_A:-y}");
}

#define POOL(lines) \
        "  env: [ENV_A, ENV_B]\n  pools:\n    - name: a\n      roles: [control-plane, etcd]\n" lines

static void replaced(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        setenv("ENV_A", "3", 1);
        setenv("ENV_B", "", 1);
        load(&l,
                HEAD POOL("      count: ${ENV_A}\n"
                          "      labels:\n        both: \"${ENV_A}-${ENV_A}\"\n"
                          "        default: ${ENV_B:-d-e}\n        empty: \"${ENV_B}\"\n"
                          "        ${ENV_A}: key\n"
                          "      annotations: {other: \"${ENV_C} $ENV_A $${ENV_A} ${ENV_A x\"}\n"));
        assert_int_equal(l.r, -EINVAL); /* the last is no complete reference, the key no label */
        has(&l, "${ENV_A is not a complete reference");
        has(&l, "write ${ENV_A} or ${ENV_A:-DEFAULT}");
        load(&l, HEAD POOL("      count: ${ENV_A}\n"
                           "      labels:\n        both: \"${ENV_A}-${ENV_A}\"\n"
                           "        default: ${ENV_B:-d-e}\n        empty: \"${ENV_B}\"\n"
                           "      annotations: {other: \"${ENV_C} $ENV_A $${ENV_A}\"}\n"));
        if (l.r < 0)
                fail_msg("%s", str_text(&l.text));
        assert_int_equal(l.c->pools.v[0].count, 3);
        assert_string_equal(label(&l, "both"), "3-3");
        assert_string_equal(label(&l, "default"), "d-e");
        assert_string_equal(label(&l, "empty"), "");
        assert_string_equal(l.c->pools.v[0].annotations.v[0].value, "${ENV_C} $ENV_A ${ENV_A}");
}

static void types(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        setenv("ENV_A", "1", 1);
        unsetenv("ENV_B");
        load(&l, HEAD POOL("      count: \"${ENV_A}\"\n      labels: {x: \"${ENV_B:-y}\"}\n"));
        assert_int_equal(l.r, -EINVAL);
        has(&l, "expected a whole number");
        has(&l, "without quotes");
        /* an empty plain value is not written: the field has its default */
        load(&l,
                HEAD POOL(
                        "      count: 1\n      os: ${ENV_B:-}\n      labels: {x: \"${ENV_A}\"}\n"));
        if (l.r < 0)
                fail_msg("%s", str_text(&l.text));
        assert_null(l.c->pools.v[0].os);
        assert_string_equal(label(&l, "x"), "1");
}

/* A value with brackets and line breaks is one scalar. */
static void structure_stays(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        setenv("ENV_A", "x\n    - {name: evil, count: 9}", 1);
        setenv("ENV_B", "[a, b]", 1);
        load(&l, HEAD POOL("      count: 1\n      annotations:\n        k: ${ENV_B}\n"
                           "      labels: {x: \"${ENV_A}\"}\n"));
        assert_int_equal(l.r, -EINVAL);
        has(&l, "a line break is not allowed here");
        hasnt(&l, "evil");
        setenv("ENV_A", "ok", 1);
        load(&l, HEAD POOL("      count: 1\n      annotations:\n        k: ${ENV_B}\n"
                           "      labels: {x: \"${ENV_A}\"}\n"));
        if (l.r < 0)
                fail_msg("%s", str_text(&l.text));
        assert_int_equal(l.c->pools.n, 1);
        assert_string_equal(l.c->pools.v[0].annotations.v[0].value, "[a, b]");
}

static void missing(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        unsetenv("ENV_A");
        unsetenv("ENV_B");
        load(&l, HEAD POOL("      count: ${ENV_A}\n      labels: {x: \"${ENV_B:-y}\"}\n"));
        assert_int_equal(l.r, -EINVAL);
        has(&l, "f:10:14: pools[0].count: the environment variable ENV_A is not set\n"
                "   10 |       count: ${ENV_A}\n"
                "      |              ^\n"
                "hint: ");
        setenv("ENV_A", "\xff\xfe", 1);
        load(&l, HEAD POOL("      count: ${ENV_A}\n      labels: {x: \"${ENV_B:-y}\"}\n"));
        assert_int_equal(l.r, -EINVAL);
        has(&l, "the value of the environment variable ENV_A is not UTF-8 text");
        unsetenv("ENV_A");
        load(&l, HEAD "  env: [1A, \"A B\"]\n" CONTROL);
        assert_int_equal(l.r, -EINVAL);
        has(&l, "\"1A\" is not the name of an environment variable");
        has(&l, "\"A B\" is not the name of an environment variable");
        load(&l, HEAD "  env: [ENV_A]\n" CONTROL);
        assert_int_equal(l.r, 0);
        has(&l, "warning: env[0]: the file has no ${ENV_A}");
}

static void values_are_not_shown(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        const char *file = HEAD POOL("      count: ${ENV_A}\n      taints: [\"${ENV_B}\"]\n"
                                     "      hosts: [\"${ENV_B}\"]\n"
                                     "      labels: {x: \"${ENV_B}\"}\n");
        static const char *const secrets[] = {
                "hunter2!x", "s\x1b[2Jcret-of-the-\"operator\"",
                "long long long long long long long long long long long long long long long secret"
        };
        for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
                setenv("ENV_A", secrets[i], 1);
                setenv("ENV_B", secrets[i], 1);
                load(&l, file);
                assert_int_equal(l.r, -EINVAL);
                assert_true(l.problems.errors >= 3);
                has(&l, "${ENV_");
                hasnt(&l, "hunter2");
                hasnt(&l, "cret-of");
                hasnt(&l, "long long");
        }
}

static void digests(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        const char *file =
                HEAD POOL("      count: 1\n      labels: {x: \"${ENV_A}${ENV_B:-b}\"}\n");
        char first[65];
        setenv("ENV_A", "one", 1);
        unsetenv("ENV_B");
        load(&l, file);
        memcpy(first, l.c->digest, sizeof(first));
        load(&l, file);
        assert_string_equal(first, l.c->digest);
        setenv("ENV_A", "two", 1);
        load(&l, file);
        assert_string_not_equal(first, l.c->digest);
}

/* Verbs that rewrite the file leave ${NAME} as it is, and do not write over it. */
static void edits(void **state)
{
        struct loaded l CLEANUP(loaded_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        setenv("ENV_A", "2", 1);
        setenv("ENV_B", "zone", 1);
        load(&l,
                HEAD POOL(
                        "      count: 1\n      labels: {x: \"${ENV_B}\"}\n") "    - name: w\n      count: ${ENV_A}\n    - {name: v, count: 2}\n");
        if (l.r < 0)
                fail_msg("%s", str_text(&l.text));
        assert_int_equal(edit_count(&l.c->pools.v[2], 3, &file, &out, &err), 0);
        assert_non_null(strstr(str_text(&out), "labels: {x: \"${ENV_B}\"}\n"));
        assert_non_null(strstr(str_text(&out), "count: ${ENV_A}\n    - {name: v, count: 3}\n"));
        assert_int_equal(edit_count(&l.c->pools.v[1], 3, &file, &out, &err), -EINVAL);
        assert_string_equal(err.message, "f:13: the value comes from the environment: ${ENV_A}");
        error_release(&err);
        assert_int_equal(edit_remove(l.c, cluster_node(l.c, "w-1"), &file, &out, &err), -EINVAL);
        assert_string_equal(err.message, "f:13: the value comes from the environment: ${ENV_A}");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_the_list),
                cmocka_unit_test(replaced),
                cmocka_unit_test(types),
                cmocka_unit_test(structure_stays),
                cmocka_unit_test(missing),
                cmocka_unit_test(values_are_not_shown),
                cmocka_unit_test(digests),
                cmocka_unit_test(edits),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
