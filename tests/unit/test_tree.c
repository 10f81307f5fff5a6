#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/tree.h"

static struct tree *parse(struct arena *a, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t = NULL;
        if (tree_parse(a, "f", text, strlen(text), &t, &err) < 0)
                fail_msg("%s", err.message);
        return t;
}

static void json_is(const struct tree *t, const char *want)
{
        struct str s CLEANUP(str_release) = { 0 };
        tree_json(&s, t);
        assert_string_equal(str_text(&s), want);
}

static void refused_n(const char *text, size_t len, const char *want)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t = NULL;
        assert_int_equal(tree_parse(&a, "f", text, len, &t, &err), -EINVAL);
        assert_int_equal(err.status, EXIT_CONFIG);
        assert_string_equal(err.message, want);
        assert_null(t);
}

static void refused(const char *text, const char *want) { refused_n(text, strlen(text), want); }

static void places(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        const struct tree *t = parse(&a,
                "# c\nspec:\n  pools:\n    - name: wörker\n      count: 4   # é\n  é: {ü: x, y: \"z\"}\n");
        const struct tree *pool = tree_get(tree_get(t, "spec"), "pools")->first,
                          *count = tree_get(pool, "count");
        assert_int_equal(count->line, 5);
        assert_int_equal(count->col, 14);
        assert_int_equal(count->key_line, 5);
        assert_int_equal(count->key_col, 7);
        const struct tree *y = tree_get(tree_get(tree_get(t, "spec"), "é"), "y");
        assert_int_equal(y->line, 6);
        assert_int_equal(y->col, 16); /* characters, not bytes */
        assert_false(y->plain);
        assert_true(count->plain);
        assert_null(tree_get(t, "none"));
        assert_null(tree_get(count, "none"));
        assert_null(tree_get(NULL, "none"));
}

static void paths(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        const struct tree *t = parse(&a,
                "spec: {pools: [{labels: {zone: a, example.net/x: b}}]}\nmetadata: {name: n}\n");
        const struct tree *labels =
                tree_get(tree_get(tree_get(t, "spec"), "pools")->first, "labels");
        static const char *const want[] = { "pools[0].labels.zone",
                "pools[0].labels[\"example.net/x\"]" };
        size_t i = 0;
        tree_each (c, labels) {
                struct str s CLEANUP(str_release) = { 0 };
                tree_path(&s, c, NULL);
                assert_string_equal(str_text(&s), want[i++]);
        }
        struct str s CLEANUP(str_release) = { 0 };
        tree_path(&s, tree_get(t, "spec"), "api");
        str_addc(&s, ' ');
        tree_path(&s, tree_get(t, "spec"), NULL);
        str_addc(&s, ' ');
        tree_path(&s, t, "kind");
        str_addc(&s, ' ');
        tree_path(&s, tree_get(tree_get(t, "metadata"), "name"), NULL);
        assert_string_equal(str_text(&s), "api spec kind metadata.name");
}

/* As sigs.k8s.io/yaml reads them. */
static void types(void **state)
{
        static const struct {
                const char *text;
                enum tree_type type;
                const char *json;
        } cases[] = {
                { "true", TREE_BOOL, "true" },
                { "Yes", TREE_BOOL, "true" },
                { "on", TREE_BOOL, "true" },
                { "y", TREE_BOOL, "true" },
                { "N", TREE_BOOL, "false" },
                { "OFF", TREE_BOOL, "false" },
                { "tRue", TREE_STRING, NULL },
                { "~", TREE_NIL, "null" },
                { "null", TREE_NIL, "null" },
                { "nULL", TREE_STRING, NULL },
                { "12", TREE_INT, "12" },
                { "-5", TREE_INT, "-5" },
                { "+7", TREE_INT, "7" },
                { "0x1F", TREE_INT, "31" },
                { "0o17", TREE_INT, "15" },
                { "017", TREE_INT, "15" },
                { "0b101", TREE_INT, "5" },
                { "-0b11", TREE_INT, "-3" },
                { "1_000", TREE_INT, "1000" },
                { "0xg", TREE_STRING, NULL },
                { "08", TREE_FLOAT, "8" },
                { "1e3", TREE_FLOAT, "1000" },
                { ".5", TREE_FLOAT, "0.5" },
                { "1.", TREE_FLOAT, "1" },
                { "1.36", TREE_FLOAT, "1.36" },
                { "1.2.3", TREE_STRING, NULL },
                { ".", TREE_STRING, NULL },
                { "-", TREE_STRING, NULL },
                { "1:30", TREE_STRING, NULL },
                { "2020-01-01", TREE_STRING, NULL },
                { ".inf", TREE_FLOAT, NULL },
                { "-.INF", TREE_FLOAT, NULL },
                { ".nan", TREE_FLOAT, NULL },
                { "1e", TREE_STRING, NULL },
                { "18446744073709551615", TREE_INT, "18446744073709551615" },
                { "-9223372036854775808", TREE_INT, "-9223372036854775808" },
                { "99999999999999999999", TREE_FLOAT, "1e+20" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct tree t = { .kind = streq(cases[i].text, "~") || streq(cases[i].text, "null")
                                                  ? TREE_NULL
                                                  : TREE_SCALAR,
                        .plain = true,
                        .text = cases[i].text };
                char *quoted CLEANUP(free_p) = xasprintf("\"%s\"", cases[i].text);
                if (tree_type(&t) != cases[i].type)
                        fail_msg("%s is %d", cases[i].text, tree_type(&t));
                json_is(&t, cases[i].json ? cases[i].json : quoted);
                t.kind = TREE_SCALAR;
                t.plain = false;
                assert_int_equal(tree_type(&t), TREE_STRING);
                json_is(&t, quoted);
        }
        int64_t v;
        struct tree least = { .kind = TREE_SCALAR, .plain = true, .text = "-9223372036854775808" },
                    large = { .kind = TREE_SCALAR, .plain = true, .text = "9223372036854775808" };
        assert_true(tree_int(&least, &v) && v == INT64_MIN);
        assert_false(tree_int(&large, &v));
}

static void tags(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        json_is(parse(&a,
                        "[!!str 1, !!int \"5\", ! 2, !!bool yes, !!seq [a], !!map {b: c}, !!str ~]"),
                "[\"1\",5,\"2\",true,[\"a\"],{\"b\":\"c\"},\"~\"]");
        refused("a: !foo 1", "f:1:4: the tag !foo means nothing here");
        refused("a: !!binary aaaa", "f:1:4: the tag tag:yaml.org,2002:binary means nothing here");
        refused("a: !x!y 1", "f:1:4: the tag is not known");
}

static void aliases(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        const struct tree *t = parse(&a,
                "x: &x {a: 1, b: [2]}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], c: 9}\nw:\n  b: 0\n  <<: *x\nv: {\"<<\": 1}\nu: [*x, *x]\n");
        json_is(t,
                "{\"x\":{\"a\":1,\"b\":[2]},\"y\":{\"b\":3,\"c\":4},\"z\":{\"c\":9,\"a\":1,\"b\":[2]},\"w\":{\"b\":0,\"a\":1},\"v\":{\"<<\":1},"
                "\"u\":[{\"a\":1,\"b\":[2]},{\"a\":1,\"b\":[2]}]}");
        const struct tree *copy = tree_get(t, "u")->last; /* a copy stands in its own place, and its
                                                             text where it was written */
        struct str s CLEANUP(str_release) = { 0 };
        tree_path(&s, tree_get(copy, "b")->first, NULL);
        assert_string_equal(str_text(&s), "u[1].b[0]");
        assert_int_equal(tree_get(copy, "a")->line, 1);
        json_is(parse(&a, "a: &k one\n*k : two\n"), "{\"a\":\"one\",\"one\":\"two\"}");
        refused("a: *x", "f:1:4: the alias *x has no anchor before it");
        refused("a: &x [*x]", "f:1:8: the alias *x stands inside its own anchor");
        refused("a: &x {<<: *x}", "f:1:12: the alias *x stands inside its own anchor");
        refused("x: {<<: 1}", "f:1:9: << takes a map or a list of maps");
        refused("x: &x {a: 1}\ny: {<<: *x, <<: *x}",
                "f:2:13: the key \"<<\" is here twice, first on line 2");
}

static void keys(void **state)
{
        refused("spec:\n  a: 1\n  b: 2\n  a: 3\n",
                "f:4:3: the key \"a\" is here twice, first on line 2");
        refused("? [a]\n: b", "f:1:3: a key is a list or a map here");
        refused("{{a: b}: c}", "f:1:2: a key is a list or a map here");
        refused("\"\": b", "f:1:1: a key is empty here");
        refused("~: b", "f:1:1: a key is empty here");
        refused("\"a\\e[31m\": 1\n\"a\\e[31m\": 2",
                "f:2:1: the key \"a\\u{1b}[31m\" is here twice, first on line 1");
        struct str s CLEANUP(str_release) = { 0 };
        for (int i = 0; i < 100000; i++) /* not a search of all keys for each */
                str_addf(&s, "k%d: x\n", i);
        str_add(&s, "k77: y\n");
        refused(str_text(&s), "f:100001:1: the key \"k77\" is here twice, first on line 78");
}

static void syntax(void **state)
{
        refused("", "f:1:1: the file is empty");
        refused("# nothing\n---\n", "f:1:1: the file is empty");
        refused("a: 1\n---\nb: 2\n", "f:2:1: a second document begins here");
        refused("a:\n\tb: 1", "f:2:1: a tab is used for indentation");
        refused("a: \"b\nc: 1\n", "f:1:4: the quote opened here is never closed");
        refused("a: [1, 2\nb: 1\n", "f:1:4: the list opened here with [ is not closed");
        refused("a: {b: 1\nc: 2\n", "f:1:4: the map opened here with { is not closed");
        refused("a: [1, [2,\n", "f:1:8: the list opened here is not closed");
        refused("a: b: c", "f:1:5: a key is not allowed here");
        refused("a: 1\nfoo\nb: 2",
                "f:2:1: this line is neither a key with its colon nor part of a value");
        refused("a:\n  b: 1\n c: 2", "f:3:2: a key is expected here");
        refused("a: - b", "f:1:4: a list entry (-) is not allowed here");
        refused("a: @x", "f:1:4: a value cannot begin with @");
        refused("a: \"\\q\"", "f:1:5: the backslash starts no known escape");
        refused("a: \"x\\0y\"", "f:1:4: a value cannot hold a NUL character");
        refused("a: &  b", "f:1:5: an anchor (&) or alias (*) needs a name of letters and digits");
}

static void bytes(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        static const char nul[] = "a: 1\nb: x\0y\n";
        static const char utf16[] = "a\0:\0 \0001\0";
        refused_n(nul, sizeof(nul) - 1,
                "f:2:5: the file holds a NUL byte: it is not a text, or it is UTF-16");
        refused_n(utf16, sizeof(utf16) - 1,
                "f:1:2: the file holds a NUL byte: it is not a text, or it is UTF-16");
        refused("a: é\n\nb: \xc3(", "f:3:4: the byte 0xc3 is not UTF-8");
        refused("a: \xed\xa0\x80", "f:1:4: the byte 0xed is not UTF-8");
        refused("a: é\x1b[31m", "f:1:5: the control character U+001B is not allowed");
        json_is(parse(&a, "\xef\xbb\xbf"
                          "a: 1\r\nb: \xf0\x9f\x9a\xa2\r\n"),
                "{\"a\":1,\"b\":\"\xf0\x9f\x9a\xa2\"}");
}

/* One sentence, quickly, without a deep stack or much memory. */
static void bombs(void **state)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (int i = 0; i < 100000; i++)
                str_addc(&s, '[');
        refused(str_text(&s), "f:1:65: lists and maps are nested more than 64 deep");
        str_truncate(&s, 0);
        for (int i = 0; i < 100000; i++)
                str_add(&s, "{a: ");
        refused(str_text(&s), "f:1:257: lists and maps are nested more than 64 deep");
        str_truncate(&s, 0);
        for (int i = 0; i < 100000; i++)
                str_add(&s, "- ");
        refused(str_text(&s), "f:1:129: lists and maps are nested more than 64 deep");
        str_truncate(&s, 0);
        str_add(&s, "a: &a [x,x,x,x,x,x,x,x,x,x]\n");
        for (char c = 'b'; c < 'k'; c++) {
                str_addf(&s, "%c: &%c [", c, c);
                for (int i = 0; i < 10; i++)
                        str_addf(&s, "%s*%c", i ? "," : "", c - 1);
                str_add(&s, "]\n");
        }
        refused(str_text(&s), "f:6:17: the aliases make more than 500000 values");
        str_truncate(&s, 0);
        str_add(&s, "a0: &a0 [x]\n");
        for (int i = 1; i < 80; i++)
                str_addf(&s, "a%d: &a%d [*a%d]\n", i, i, i - 1);
        refused(str_text(&s), "f:64:12: lists and maps are nested more than 64 deep");
        str_truncate(&s, 0);
        for (int i = 0; i < 100000; i++)
                str_add(&s, "%TAG !a! b\n");
        refused(str_text(&s), "f:17:1: more than 16 lines begin with %");
}

static void merge_is(const char *base, const char *over, const char *want)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        const struct tree *t = tree_merge(parse(&a, base), parse(&a, over));
        json_is(t, want);
        size_t n = 0;
        tree_each (c, t) {
                assert_ptr_equal(c->parent, t);
                assert_int_equal(c->index, n++);
                tree_each (d, c)
                        assert_ptr_equal(d->parent, c);
        }
        assert_int_equal(t->count, n);
}

static void merges(void **state)
{
        merge_is("{a: 1, b: {c: 2, d: 3}}", "{b: {d: 4, e: 5}, f: 6}",
                "{\"a\":1,\"b\":{\"c\":2,\"d\":4,\"e\":5},\"f\":6}");
        merge_is("{a: [1, 2], b: 1}", "{a: [3], b: {x: z}}", "{\"a\":[3],\"b\":{\"x\":\"z\"}}");
        merge_is("{a: {x: 1}, b: 2}", "{a: 3}", "{\"a\":3,\"b\":2}");
        merge_is("{a: 1, b: 2, c: 3}", "{a: ~, c: null, d: ~}", "{\"b\":2}");
        merge_is("{a: 1}", "{a: ~}", "{}");
        merge_is("{a: 1}", "[b]", "[\"b\"]");
        struct str base CLEANUP(str_release) = { 0 }, over CLEANUP(str_release) = { 0 },
                        want CLEANUP(str_release) = { 0 };
        for (int i = 0; i < 50; i++) {
                str_addf(&base, "k%d: 0\n", i);
                str_addf(&over, i % 2 ? "k%d: ~\n" : "k%d: 1\n", i + 10);
        }
        str_addc(&want, '{');
        for (int i = 0; i < 60; i++)
                if (i < 10 || i % 2 == 0)
                        str_addf(&want, "%s\"k%d\":%d", i ? "," : "", i, i >= 10);
        str_addc(&want, '}');
        merge_is(str_text(&base), str_text(&over), str_text(&want));
}

static void files(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        assert_int_equal(tree_load(&a, "tests", &t, &err), -EISDIR);
        assert_int_equal(err.status, EXIT_CONFIG);
        assert_string_equal(err.message, "cannot read tests: it is a directory");
        assert_int_equal(tree_load(&a, "none.yaml", &t, &err), -ENOENT);
        assert_int_equal(err.status, EXIT_CONFIG);
        assert_int_equal(tree_load(&a, "examples/metal.yaml", &t, &err), 0);
        assert_string_equal(t->file->name, "examples/metal.yaml");
        char path[] = "/tmp/slipway-test-XXXXXX";
        int fd CLEANUP(close_p) = mkstemp(path);
        assert_true(fd >= 0 && ftruncate(fd, 100 << 20) == 0);
        assert_int_equal(tree_load(&a, path, &t, &err), -EFBIG);
        unlink(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(places),
                cmocka_unit_test(paths),
                cmocka_unit_test(types),
                cmocka_unit_test(tags),
                cmocka_unit_test(aliases),
                cmocka_unit_test(keys),
                cmocka_unit_test(syntax),
                cmocka_unit_test(bytes),
                cmocka_unit_test(bombs),
                cmocka_unit_test(merges),
                cmocka_unit_test(files),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
