/* addon/service.h: decisions about releases, and differences between objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "addon/service.h"

static struct arena arena;

/* A revision as helm's Secret has it. */
static json_t *revision(
        const char *name, const char *ns, int n, const char *state, const char *inputs, int made)
{
        json_t *labels = json_pack("{s:s, s:s, s:s, s:o}", "name", name, "owner", "helm", "status",
                state, "version", json_sprintf("%d", n));
        if (inputs) {
                json_object_set_new(labels, SERVICE_LABEL_INPUTS, json_string(inputs));
                json_object_set_new(labels, SERVICE_LABEL_REVISION, json_sprintf("%d", made));
                json_object_set_new(labels, SERVICE_LABEL_CHART, json_string("web-1.0.0"));
        }
        return json_pack("{s:{s:s, s:o}}", "metadata", "namespace", ns, "labels", labels);
}

static struct service decided(json_t *secrets)
{
        struct service s = { .kind = SERVICE_CHART, .name = "web", .ns = "shop", .inputs = "aa" };
        service_revisions(&s, &arena, secrets);
        service_decide(&s, &arena);
        json_decref(secrets);
        return s;
}

static void decisions(void **state)
{
        static const struct {
                const char *state, *inputs;
                int made;
                enum service_action action;
        } cases[] = {
                { "deployed", "aa", 3, SERVICE_KEEP },
                { "deployed", "bb", 3, SERVICE_CHANGE },
                { "deployed", "aa", 2, SERVICE_CHANGE }, /* a person upgraded it: labels stay */
                { "failed", "aa", 3, SERVICE_CHANGE },
                { "deployed", NULL, 0, SERVICE_ADOPT },
                { "pending-install", "aa", 3, SERVICE_RECOVER },
                { "pending-upgrade", "aa", 3, SERVICE_RECOVER },
                { "pending-rollback", "aa", 3, SERVICE_RECOVER },
                { "uninstalling", "aa", 3, SERVICE_RECOVER },
                { "uninstalled", "aa", 3, SERVICE_INSTALL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *all = json_array();
                json_array_append_new(all, revision("web", "shop", 2, "superseded", "zz", 2));
                json_array_append_new(all,
                        revision("web", "shop", 3, cases[i].state, cases[i].inputs, cases[i].made));
                json_array_append_new(all, revision("web", "other", 9, "deployed", "aa", 9));
                json_array_append_new(all, revision("web2", "shop", 9, "deployed", "aa", 9));
                struct service s = decided(all);
                assert_int_equal(s.action, cases[i].action);
                assert_int_equal(s.revision, 3);
                assert_int_equal(s.deployed, streq(cases[i].state, "deployed") ? 3 : 2);
        }
        assert_int_equal(decided(json_array()).action, SERVICE_INSTALL);
        json_t *junk = json_pack("[{}, 7, {s:{s:{s:s, s:s}}}]", "metadata", "labels", "name", "web",
                "version", "-1");
        assert_int_equal(decided(junk).action, SERVICE_INSTALL);
}

/* helm copies the labels of the revision that it goes back to. */
static void rolled_back(void **state)
{
        static const struct {
                const char *failed, *inputs; /* of revision 3; what revision 4 is again */
                int made, now;               /* what the labels of revisions 3 and 4 say */
                enum service_action action;
                bool drifted;
        } cases[] = {
                { "failed", "zz", 3, 2, SERVICE_CHANGE, false },
                /* the file has the old inputs again */
                { "failed", "aa", 3, 2, SERVICE_KEEP, false },
                { "pending-upgrade", "zz", 3, 2, SERVICE_CHANGE, false },
                { "superseded", "aa", 3, 2, SERVICE_CHANGE, true }, /* a person did it */
                { "failed", "aa", 2, 2, SERVICE_CHANGE, true },     /* of a person's upgrade */
                { "failed", "aa", 3, 3, SERVICE_CHANGE, true },     /* a person's, upon that one */
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *all = json_array();
                json_array_append_new(
                        all, revision("web", "shop", 2, "superseded", cases[i].inputs, 2));
                json_array_append_new(
                        all, revision("web", "shop", 3, cases[i].failed, "bb", cases[i].made));
                json_array_append_new(
                        all, revision("web", "shop", 4, "deployed", cases[i].inputs, cases[i].now));
                struct service s = decided(all);
                assert_int_equal(s.action, cases[i].action);
                assert_int_equal(s.drifted, cases[i].drifted);
                if (s.action == SERVICE_CHANGE)
                        assert_string_equal(
                                s.note, s.drifted ? "revision 4 was not made by slipway"
                                                  : "revision 3 failed, and was rolled back");
        }
}

static void removed(void **state)
{
        struct chart chart = { .name = "web", .namespace = "shop" };
        struct services wanted = { .charts = { 1, &chart } };
        struct service out[4];
        json_t *all = json_array();
        json_array_append_new(all, revision("web", "shop", 1, "deployed", "aa", 1));
        json_array_append_new(all, revision("old", "shop", 1, "superseded", "aa", 1));
        json_array_append_new(all, revision("old", "shop", 2, "deployed", "aa", 2));
        json_array_append_new(all, revision("theirs", "shop", 1, "deployed", NULL, 0));
        json_array_append_new(all, revision("web", "other", 1, "deployed", "aa", 1));
        assert_int_equal(service_removed(&wanted, all, &arena, out, ARRAY_SIZE(out)), 2);
        assert_string_equal(out[0].name, "old");
        assert_int_equal(out[0].revision, 2);
        assert_string_equal(out[1].ns, "other");
        assert_int_equal(service_removed(&wanted, all, &arena, out, 1), 1);
        json_decref(all);
}

static json_t *object(const char *text)
{
        json_t *o = json_loads(text, 0, NULL);
        assert_non_null(o);
        return o;
}

static void differ(const char *before, const char *after, const char *expected)
{
        json_t *a = object(before), *b = object(after), *d = service_diff(a, b, "shop");
        char *text = json_dumps(d, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, expected);
        free(text);
        json_decref(a);
        json_decref(b);
        json_decref(d);
}

#define MAP(data) \
        "[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},\"data\":" data \
        "}]"
#define SECRET(data) \
        "[{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"}" data "}]"

static void differences(void **state)
{
        differ(MAP("{\"a\":\"1\"}"), MAP("{\"a\":\"1\"}"), "[]");
        differ("[]", MAP("{}"),
                "[{\"action\":\"add\",\"fields\":[],\"object\":\"ConfigMap shop/m\"}]");
        differ(MAP("{}"), "[]",
                "[{\"action\":\"remove\",\"fields\":[],\"object\":\"ConfigMap shop/m\"}]");
        differ(MAP("{\"a\":\"1\",\"b\":\"x\"}"), MAP("{\"a\":\"2\",\"c\":\"y\"}"),
                "[{\"action\":\"change\",\"fields\":[\"data.a: \\\"1\\\" → \\\"2\\\"\",\"data.b: \\\"x\\\" → nothing\",\"data.c: nothing → \\\"y\\\"\"],\"object\":\"ConfigMap shop/m\"}]");
        differ(MAP("[{\"name\":\"x\",\"v\":1},{\"name\":\"y\",\"v\":2}]"),
                MAP("[{\"name\":\"y\",\"v\":3}]"),
                "[{\"action\":\"change\",\"fields\":[\"data[x]: {\\\"name\\\":\\\"x\\\",\\\"v\\\":1} → nothing\",\"data[y].v: 2 → 3\"],\"object\":\"ConfigMap shop/m\"}]");
}

/* Of a release in the namespace shop, but not in it. */
static void cluster_wide(void **state)
{
        differ("[]",
                "[{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\",\"metadata\":{\"name\":\"r\"}}]",
                "[{\"action\":\"add\",\"fields\":[],\"object\":\"ClusterRole r\"}]");
        differ("[{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"c\",\"namespace\":\"x\"}}]",
                "[]", "[{\"action\":\"remove\",\"fields\":[],\"object\":\"StorageClass c\"}]");
}

#define LAST "\"kubectl.kubernetes.io/last-applied-configuration\""

static void secrets(void **state)
{
        differ("[{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"annotations\":{" LAST
               ":\"hunter2\"}}}]",
                "[{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"annotations\":{" LAST
                ":\"hunter3\"}}}]",
                "[{\"action\":\"change\",\"fields\":[\"metadata.annotations.kubectl.kubernetes.io/last-applied-configuration: changed\"],\"object\":\"Secret shop/s\"}]");
        differ(SECRET(""),
                "[{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"annotations\":{" LAST
                ":\"hunter2\"}}}]",
                "[{\"action\":\"change\",\"fields\":[\"metadata.annotations: added\"],\"object\":\"Secret shop/s\"}]");
        differ(SECRET(",\"data\":{\"p\":\"aHVudGVyMg==\",\"q\":\"x\"}"),
                SECRET(",\"data\":{\"p\":\"bmV3\"},\"stringData\":{\"r\":\"plain\"}"),
                "[{\"action\":\"change\",\"fields\":[\"data.p: changed\",\"data.q: removed\",\"stringData.r: added\"],\"object\":\"Secret shop/s\"}]");
        differ(SECRET(",\"data\":7"), SECRET(",\"data\":\"hunter2\""),
                "[{\"action\":\"change\",\"fields\":[\"data: changed\"],\"object\":\"Secret shop/s\"}]");
        differ(SECRET(""), SECRET(",\"data\":{\"p\":{\"deep\":\"hunter2\"}}"),
                "[{\"action\":\"change\",\"fields\":[\"data.p: added\"],\"object\":\"Secret shop/s\"}]");
}

static void pruned(void **state)
{
        json_t *before = object(
                "[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":\"shop\"}},"
                "{\"apiVersion\":\"apps/v1beta1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"}},"
                "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\"}},{\"kind\":\"ConfigMap\"},7]");
        json_t *after = object(
                "[{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\",\"namespace\":\"default\"}}]");
        json_t *stay = json_array(), *out = service_pruned(before, after, NULL, stay);
        assert_int_equal(json_array_size(out), 1);
        char *name = service_object_name(json_array_get(out, 0), "");
        assert_string_equal(name, "ConfigMap shop/a");
        free(name);
        assert_int_equal(json_array_size(stay), 1);
        json_decref(before);
        json_decref(after);
        json_decref(stay);
        json_decref(out);
}

static void inputs(void **state)
{
        struct chart c = { .name = "web", .namespace = "shop", .timeout = 1 }, d = c;
        char a[SERVICE_INPUTS], b[SERVICE_INPUTS];
        service_inputs(&c, "one", a);
        assert_int_equal(strlen(a), SERVICE_INPUTS - 1);
        d.timeout = 2; /* how long it may take is no input */
        service_inputs(&d, "one", b);
        assert_string_equal(a, b);
        service_inputs(&c, "two", b);
        assert_string_not_equal(a, b);
        d.values_text = "a: 1";
        service_inputs(&d, "one", b);
        assert_string_not_equal(a, b);
        d.values_text = NULL;
        d.values_texts = (struct strings){ 2, (const char *[]){ "a: 1", "a: 2" } };
        service_inputs(&d, "one", a);
        d.values_texts.v = (const char *[]){ "a: 2", "a: 1" }; /* the last one counts */
        service_inputs(&d, "one", b);
        assert_string_not_equal(a, b);
}

static int cleanup(void **state)
{
        arena_release(&arena);
        return 0;
}

/* What the API writes by itself is no difference, and a Secret's values are not shown. */
static void live(void **state)
{
        json_t *is = json_loads(
                       "[{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"generation\":1,\"managedFields\":[]},\"data\":{\"k\":\"1\"},\"status\":{}},"
                       "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\",\"uid\":\"1\"}},null,"
                       "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"},\"data\":{\"p\":\"hunter\"}}]",
                       0, NULL),
               *would = json_loads(
                       "[{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"generation\":2},\"data\":{\"k\":\"2\"}},"
                       "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"}},{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}},"
                       "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"},\"data\":{\"p\":\"other\"}}]",
                       0, NULL),
               *changes = json_array();
        assert_true(is && would);
        service_diff_live(would, is, would, changes);
        char *text CLEANUP(free_p) = json_dumps(changes, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text,
                "[{\"action\":\"change\",\"fields\":[\"data.k: \\\"1\\\" → \\\"2\\\"\"],\"object\":\"ConfigMap a\"},"
                "{\"action\":\"add\",\"fields\":[],\"object\":\"ConfigMap c\"},"
                "{\"action\":\"change\",\"fields\":[\"data.p: changed\"],\"object\":\"Secret s\"}]");
        json_decref(is);
        json_decref(would);
        json_decref(changes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decisions),
                cmocka_unit_test(rolled_back),
                cmocka_unit_test(removed),
                cmocka_unit_test(differences),
                cmocka_unit_test(cluster_wide),
                cmocka_unit_test(secrets),
                cmocka_unit_test(live),
                cmocka_unit_test(pruned),
                cmocka_unit_test(inputs),
        };
        return cmocka_run_group_tests(tests, NULL, cleanup);
}
