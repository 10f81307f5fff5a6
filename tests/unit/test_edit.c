/* Edits of cluster.yaml: what is written around them stays as it is, byte for byte; and the numbers
 * that no machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/edit.h"
#include "config/minors.h"
#include "config/rules/rules.h"

#define HEAD \
        "# köpfe — ☸\napiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n  kubernetes: " KUBERNETES_NEWEST \
        "\n"

struct loaded {
        struct arena arena;
        struct problems problems;
        struct cluster *c;
};

static void load(struct loaded *l, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        *l = (struct loaded){ 0 };
        l->problems.arena = &l->arena;
        assert_int_equal(tree_parse(&l->arena, "cluster.yaml", text, strlen(text), &t, &err), 0);
        l->c = cluster_decode(&l->arena, t, &l->problems);
        cluster_expand(l->c, &l->problems);
        cluster_index(l->c);
}

/* The names of all nodes, "a b c". */
static char *names(const struct cluster *c)
{
        struct str s = { 0 };
        for (size_t i = 0; i < c->node_count; i++)
                str_addf(&s, "%s%s", i ? " " : "", c->nodes[i].name);
        return str_take(&s);
}

/* count < 0: the node goes; else the pool gets that many. */
static int edit(const char *before, const char *name, long count, struct str *out)
{
        struct loaded l;
        struct error err CLEANUP(error_release) = { 0 };
        const struct tree_file *file;
        int r = -1;
        load(&l, before);
        if (count < 0) {
                const struct node *n = cluster_node(l.c, name);
                assert_non_null(n);
                r = edit_remove(l.c, n, &file, out, &err);
        }
        for (size_t i = 0; count >= 0 && i < l.c->pools.n; i++)
                if (streq(l.c->pools.v[i].name, name))
                        r = edit_count(&l.c->pools.v[i], count, &file, out, &err);
        if (r < 0)
                assert_non_null(strstr(err.hint, "nothing was changed"));
        arena_release(&l.arena);
        return r;
}

static const struct {
        const char *name;
        long count;
        const char *before, *after, *nodes;
} cases[] = {
        /* counts */
        { "worker", 12, "  pools:\n    - {name: worker, count: 3, labels: {a: b}} # three\n",
                "  pools:\n    - {name: worker, count: 12, labels: {a: b}} # three\n", NULL },
        { "worker", 0, "  pools:\n  - count:   2   # two\n    name: worker\n",
                "  pools:\n  - count:   0   # two\n    name: worker\n", "" },
        { "w", 1, "  pools: [{name: w, annotations: {x: \"ä☸\"}, count: 3}]\n",
                "  pools: [{name: w, annotations: {x: \"ä☸\"}, count: 1}]\n", NULL },
        /* the last one: only the count */
        { "worker-3", -1, "  pools:\n    - {name: worker, count: 3}\n",
                "  pools:\n    - {name: worker, count: 2}\n", "worker-1 worker-2" },
        /* one in the middle */
        { "worker-2", -1, "  pools:\n    - {name: worker, count: 3} # x\n",
                "  pools:\n    - {name: worker, count: 2, without: [2]} # x\n",
                "worker-1 worker-3" },
        { "worker-1", -1, "  pools:\n    - {name: worker, count: 2, without: [2], labels: {}}\n",
                "  pools:\n    - {name: worker, count: 1, without: [2, 1], labels: {}}\n",
                "worker-3" },
        { "worker-1", -1, "  pools:\n    - {without: 2, name: worker, count: 2}\n",
                "  pools:\n    - {without: [2, 1], name: worker, count: 1}\n", "worker-3" },
        { "worker-1", -1,
                "  pools:\n    - name: worker\n      count: 2   # two\n      labels: {a: b}\n",
                "  pools:\n    - name: worker\n      count: 1   # two\n      without: [1]\n      labels: {a: b}\n",
                "worker-2" },
        { "worker-1", -1, "  pools:\n    - count: 2\n      name: worker",
                "  pools:\n    - count: 1\n      without: [1]\n      name: worker", "worker-2" },
        { "worker-1", -1, "  pools:\r\n    - name: worker\r\n      count: 2\r\n",
                "  pools:\r\n    - name: worker\r\n      count: 1\r\n      without: [1]\r\n",
                "worker-2" },
        { "worker-1", -1, "  pools:\n    - name: worker\n      count: 2",
                "  pools:\n    - name: worker\n      count: 1\n      without: [1]", "worker-2" },
        { "worker-1", -1,
                "  pools:\n    - name: worker\n      without:\n        - 2 # gone\n      count: 2\n",
                "  pools:\n    - name: worker\n      without:\n        - 2 # gone\n        - 1\n      count: 1\n",
                "worker-3" },
        { "worker-1", -1, "  pools:\n    - {name: worker, count: 2, without: []}\n",
                "  pools:\n    - {name: worker, count: 1, without: [1]}\n", "worker-2" },
        /* hosts */
        { "a", -1, "  pools:\n    - {name: w, hosts: [a, b, c]}\n",
                "  pools:\n    - {name: w, hosts: [b, c]}\n", "b c" },
        { "c", -1, "  pools:\n    - {name: w, hosts: [a, b, c]}\n",
                "  pools:\n    - {name: w, hosts: [a, b]}\n", "a b" },
        { "c", -1, "  pools:\n    - {name: w, hosts: [a, {name: c, address: d}]}\n",
                "  pools:\n    - {name: w, hosts: [a]}\n", "a" },
        { "b", -1,
                "  pools:\n    - name: w\n      hosts:\n        # first\n        - a # one\n        # second\n        - name: b # two\n          address: x\n  "
                "      # third\n        - c\n      labels: {}\n",
                "  pools:\n    - name: w\n      hosts:\n        # first\n        - a # one\n        # second\n        # third\n        - c\n      labels: {}\n",
                "a c" },
        { "c", -1, "  pools:\n    - name: w\n      hosts:\n      - a\n      - c\n\n  # end\n",
                "  pools:\n    - name: w\n      hosts:\n      - a\n\n  # end\n", "a" },
        { "b", -1, "  pools:\n    - name: w\n      hosts:\n      - a\n      - b",
                "  pools:\n    - name: w\n      hosts:\n      - a\n", "a" },
        { "b", -1,
                "  pools:\n    - name: w\n      hosts: [\n        a, # one\n        b, # two\n      ]\n",
                "  pools:\n    - name: w\n      hosts: [\n        a, # one\n         # two\n      ]\n",
                "a" },
};

static void test_edits(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *before CLEANUP(free_p) = xasprintf(HEAD "%s", cases[i].before),
                             *after CLEANUP(free_p) = xasprintf(HEAD "%s", cases[i].after);
                struct str out CLEANUP(str_release) = { 0 };
                assert_int_equal(edit(before, cases[i].name, cases[i].count, &out), 0);
                assert_string_equal(str_text(&out), after);
                if (!cases[i].nodes)
                        continue;
                struct loaded l;
                load(&l, after);
                char *found CLEANUP(free_p) = names(l.c);
                assert_string_equal(found, cases[i].nodes);
                arena_release(&l.arena);
        }
}

/* What is not written there cannot be changed there. */
static void test_refused(void **state)
{
        static const struct {
                const char *name;
                long count;
                const char *text;
        } bad[] = {
                { "a", -1, HEAD "  pools: [{name: w, hosts: [a]}]\n" },
                { "w-1", -1,
                        HEAD "  pools:\n    - &x {name: v, count: 2}\n    - {<<: *x, name: w}\n" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct str out CLEANUP(str_release) = { 0 };
                assert_true(edit(bad[i].text, bad[i].name, bad[i].count, &out) < 0);
        }
}

/* One value of the spec, wherever it stands. */
static void test_values(void **state)
{
        static const struct {
                const char *key, *inner, *before, *after;
        } values[] = {
                { "etcd", "image", "  etcd: {run: static-pod, image: a/etcd:3.6.15-0} # own\n",
                        "  etcd: {run: static-pod, image: a/etcd:3.6.16-0} # own\n" },
                { "etcd", "image", "  etcd:\n    image: \"a/etcd:3.6.15-0\"\n    run: static-pod\n",
                        "  etcd:\n    image: a/etcd:3.6.16-0\n    run: static-pod\n" },
                { "etcd", "image", "  etcd: {run: static-pod}\n", NULL },
                { "etcd", "image", "", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                char *before CLEANUP(free_p) = xasprintf(HEAD "%s", values[i].before);
                struct str out CLEANUP(str_release) = { 0 };
                struct error err CLEANUP(error_release) = { 0 };
                const struct tree_file *file;
                struct loaded l;
                load(&l, before);
                int r = edit_value(
                        l.c, values[i].key, values[i].inner, "a/etcd:3.6.16-0", &file, &out, &err);
                assert_int_equal(r == 0, values[i].after != NULL);
                if (r == 0)
                        assert_string_equal(str_text(&out) + strlen(HEAD), values[i].after);
                arena_release(&l.arena);
        }
}

/* Addresses go with the number, so nobody moves; the room is counted up to the highest. */
static void test_addresses(void **state)
{
        struct loaded l;
        char ip[IP_TEXT];
        load(&l, HEAD
                "  provider: {local: {network: 10.9.0.0/24}}\n  pools:\n    - {name: c, count: 1, without: [1]}\n    - {name: w, count: 2, without: [2]}\n");
        assert_string_equal(l.c->nodes[0].name, "c-2");
        assert_string_equal(ip_format(&l.c->nodes[0].ip[0], ip), "10.9.0.11");
        assert_string_equal(l.c->nodes[2].name, "w-3");
        assert_string_equal(ip_format(&l.c->nodes[2].ip[0], ip), "10.9.0.42");
        assert_int_equal(l.problems.errors, 0);
        arena_release(&l.arena);
        load(&l, HEAD
                "  provider: {local: {network: 10.9.0.0/24}}\n  pools:\n    - {name: c, count: 30, without: [1]}\n    - {name: w, count: 1}\n");
        assert_int_equal(l.problems.errors, 1);
        arena_release(&l.arena);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_edits),
                cmocka_unit_test(test_refused), cmocka_unit_test(test_values),
                cmocka_unit_test(test_addresses) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
