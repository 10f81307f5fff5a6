#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "config/problem.h"

static struct tree *parse(struct arena *a, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t = NULL;
        if (tree_parse(a, "cluster.yaml", text, strlen(text), &t, &err) < 0)
                fail_msg("%s", err.message);
        return t;
}

static void text_is(struct problems *p, size_t max, const char *want)
{
        struct str s CLEANUP(str_release) = { 0 };
        problems_text(p, max, &s);
        assert_string_equal(str_text(&s), want);
}

static void format(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct problems p = { .arena = &a };
        const struct tree *
                spec = tree_get(
                       parse(&a, "kind: Cluster\nspec:\n  pools:\n    - name: a\n      count: 4\n"),
                       "spec"),
               *pool = tree_get(spec, "pools")->first;
        problem_add(&p, pool, "count", "use 3 or 5", "an etcd pool needs an odd count, got %d", 4);
        problem_warn(&p, spec, NULL, NULL, "hm");
        problem_add(&p, pool, "flavor", NULL, "this field is required");
        problem_add_key(&p, tree_get(pool, "name"), NULL, "no");
        text_is(&p, 0,
                "cluster.yaml:3:3: warning: spec: hm\n"
                "    3 |   pools:\n"
                "      |   ^\n"
                "\n"
                "cluster.yaml:4:7: pools[0].flavor: this field is required\n"
                "    4 |     - name: a\n"
                "      |       ^\n"
                "\n"
                "cluster.yaml:4:7: pools[0].name: no\n"
                "    4 |     - name: a\n"
                "      |       ^\n"
                "\n"
                "cluster.yaml:5:14: pools[0].count: an etcd pool needs an odd count, got 4\n"
                "    5 |       count: 4\n"
                "      |              ^\n"
                "hint: use 3 or 5\n");
        text_is(&p, 1,
                "cluster.yaml:3:3: warning: spec: hm\n"
                "    3 |   pools:\n"
                "      |   ^\n"
                "\n"
                "and 3 more\n");
        assert_int_equal(p.errors, 3);
        assert_int_equal(p.warnings, 1);
}

static void json(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct problems p = { .arena = &a };
        struct str s CLEANUP(str_release) = { 0 };
        problems_json(&p, &s);
        assert_string_equal(str_text(&s), "[]");
        str_truncate(&s, 0);
        const struct tree *t = parse(&a, "a: \"b\"\n");
        problem_add(&p, t, "a", "say \"c\"", "bad \"b\"");
        problem_warn(&p, NULL, "x", NULL, "w");
        problems_json(&p, &s);
        assert_string_equal(str_text(&s),
                "[{\"file\":null,\"line\":0,\"column\":0,\"path\":\"x\",\"message\":\"w\",\"hint\":null,\"severity\":\"warning\"},"
                "{\"file\":\"cluster.yaml\",\"line\":1,\"column\":4,\"path\":\"a\",\"message\":\"bad \\\"b\\\"\",\"hint\":\"say "
                "\\\"c\\\"\",\"severity\":\"error\"}]");
}

/* Parts that are not written get the place of the spec; dotted fields that of their deepest written
 * part. */
static void places(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        const struct tree *spec =
                tree_get(parse(&a, "spec:\n  network:\n    fabric: {mtu: 1}\n"), "spec");
        struct problems p = { .arena = &a, .root = spec };
        problem_add(&p, NULL, "api.vip", NULL, "a");
        problem_add(&p, spec, "network.fabric.backend", NULL, "b");
        problem_add(&p, spec, "network.fabric.mtu", NULL, "c");
        text_is(&p, 0,
                "cluster.yaml:2:3: api.vip: a\n    2 |   network:\n      |   ^\n\n"
                "cluster.yaml:3:13: network.fabric.backend: b\n    3 |     fabric: {mtu: 1}\n      |             ^\n\n"
                "cluster.yaml:3:19: network.fabric.mtu: c\n    3 |     fabric: {mtu: 1}\n      |                   ^\n");
}

/* Nothing that a file holds reaches the terminal as more than characters, and carets stand under
 * what they mean. */
static void harmless(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct problems p = { .arena = &a };
        const struct tree *t =
                parse(&a, "a: {\xe5\xad\x97: x\xcc\x81,\tb: \xe2\x80\xaey}\n\"k\\e]0;x\\a\": 1\n");
        problem_add(&p, tree_get(t, "a"), "b", NULL, "got \x1b[31m%s\x07", "\xff");
        problem_add(&p, t->last, NULL, "a\nb", "x");
        text_is(&p, 0,
                "cluster.yaml:1:15: a.b: got \\u{1b}[31m\\xff\\u{7}\n"
                "    1 | a: {\xe5\xad\x97: x\xcc\x81, b: ?y}\n"
                "      |               ^\n"
                "\n"
                "cluster.yaml:2:14: [\"k\\u001B]0;x\\u0007\"]: x\n"
                "    2 | \"k\\e]0;x\\a\": 1\n"
                "      |              ^\n"
                "hint: a\\nb\n");
}

static void long_lines(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct problems p = { .arena = &a };
        struct str s CLEANUP(str_release) = { 0 }, out CLEANUP(str_release) = { 0 };
        str_add(&s, "[");
        for (int i = 0; i < 200000; i++)
                str_addf(&s, "%d,", i % 10);
        str_add(&s, "]\n");
        const struct tree *t = parse(&a, str_text(&s)), *c = t->first;
        for (int i = 0; i < 1000; i++)
                c = c->next;
        problem_add(&p, c, NULL, NULL, "%s", str_text(&s));
        problems_text(&p, 0, &out);
        assert_true(out.len < 900);
        const char *source = strchr(str_text(&out), '\n') + 1, *line = strchr(source, '\n') + 1;
        assert_int_equal(source[strcspn(line, "^")], '0');
        assert_true(has_prefix(source, "    1 | ...") && strstr(source, "...\n"));
}

/* Millions of mistakes are counted, not kept. */
static void many(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct problems p = { .arena = &a };
        struct str out CLEANUP(str_release) = { 0 };
        const struct tree *t = parse(&a, "a: 1\n");
        for (int i = 0; i < 300000; i++)
                problem_add(&p, t, NULL, NULL, "x");
        assert_int_equal(p.errors, 300000);
        problems_text(&p, 2, &out);
        assert_non_null(strstr(str_text(&out), "\nand 299998 more\n"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(format),
                cmocka_unit_test(json),
                cmocka_unit_test(places),
                cmocka_unit_test(harmless),
                cmocka_unit_test(long_lines),
                cmocka_unit_test(many),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
