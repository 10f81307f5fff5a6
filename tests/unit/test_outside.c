/* addon/outside.h: what a cluster has outside itself, read from lists of its API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "addon/outside.h"

static struct arena arena;

static json_t *parsed(const char *text)
{
        json_error_t why;
        json_t *j = json_loads(text, 0, &why);
        if (!j)
                fail_msg("%s", why.text);
        return j;
}

#define VOLUME(name, policy, source, claim) \
        "{\"metadata\":{\"name\":\"" name \
        "\"},\"spec\":{\"persistentVolumeReclaimPolicy\":\"" policy "\",\"" source "\":{}," claim \
        "}}"
#define CLAIM(name) "\"claimRef\":{\"namespace\":\"shop\",\"name\":\"" name "\"}"

/* A volume's source decides, and its policy; a driver's name does not. */
static void volumes(void **state)
{
        struct outside o = { 0 };
        json_t *list = parsed("[" VOLUME("a", "Delete", "csi", CLAIM("data")) "," VOLUME(
                "b", "Delete", "hostPath", CLAIM("b")) "," VOLUME("c", "Delete", "local",
                CLAIM("c")) "," VOLUME("d", "Retain", "csi", CLAIM("d")) "," VOLUME("e", "Delete",
                "nfs", "\"x\":1") ",{},null,{\"spec\":{\"claimRef\":{}}}]");
        outside_claims(&o, list, &arena);
        assert_int_equal(o.claims.n, 1);
        assert_string_equal(o.claims.v[0].name, "data");
        assert_string_equal(o.claims.v[0].volume, "a");
        assert_int_equal(o.kept.n, 1);
        assert_string_equal(o.kept.v[0].name, "d");
        assert_int_equal(o.policies.n, 0);
        json_decref(list);
}

/* Whoever runs down may say otherwise than the policy; a volume that no driver made stays. */
static void volumes_by_fate(void **state)
{
        static const char driven[] =
                "{\"metadata\":{\"name\":\"r\\\"}\",\"annotations\":{\"pv.kubernetes.io/provisioned-by\":\"d\"}},\"spec\":"
                "{\"persistentVolumeReclaimPolicy\":\"Retain\",\"csi\":{}," CLAIM("r") "}}";
        struct str text CLEANUP(str_release) = { 0 };
        struct outside o = { .fate = VOLUMES_KEEP };
        char *whole CLEANUP(free_p) =
                xasprintf("[%s,%s,%s,%s]", VOLUME("a", "Delete", "csi", CLAIM("data")),
                        VOLUME("b", "Delete", "hostPath", CLAIM("b")),
                        VOLUME("d", "Retain", "nfs", CLAIM("d")), driven);
        json_t *list = parsed(whole);
        outside_claims(&o, list, &arena);
        assert_int_equal(o.claims.n, 0);
        assert_int_equal(o.kept.n, 3);
        assert_int_equal(o.policies.n, 1);
        assert_string_equal(o.policies.v[0].name, "a");
        outside_text(&o, &text);
        assert_non_null(strstr(str_text(&text), "--keep-volumes"));
        assert_null(strstr(str_text(&text), "this is deleted"));
        assert_true(outside_any(&o));
        o.fate = VOLUMES_DELETE;
        outside_claims(&o, list, &arena);
        assert_int_equal(o.claims.n, 2);
        assert_int_equal(o.kept.n, 1);
        assert_string_equal(o.kept.v[0].name, "d");
        assert_int_equal(o.policies.n, 1);
        str_truncate(&text, 0);
        outside_policies(&o.policies, o.fate, &text);
        assert_string_equal(str_text(&text),
                "---\n{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"r\\\"}\"},"
                "\"spec\":{\"persistentVolumeReclaimPolicy\":\"Delete\"}}\n");
        json_decref(list);
}

static json_t *lists[OUTSIDE_LISTS];

static void lists_release(void)
{
        for (size_t i = 0; i < OUTSIDE_LISTS; i++) {
                json_decref(lists[i]);
                lists[i] = NULL;
        }
}

#define OWNED(name, uid, version, kind, owner) \
        "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"uid\":\"" uid \
        "\",\"ownerReferences\":[{\"apiVersion\":\"" version "\",\"kind\":\"" kind \
        "\",\"uid\":\"" owner "\",\"controller\":true}]}"
#define USES(claim) \
        "\"spec\":{\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" claim \
        "\"}}]}"

/* Whoever makes a pod again goes with it: the first of the chain. */
static void holders(void **state)
{
        struct outside_object claim = { .ns = "shop", .name = "data" },
                              own = { .ns = "shop", .name = "lone-v" };
        struct outside_object both[] = { claim, own };
        struct outside_objects claims = { both, 2 }, out;
        lists[OUTSIDE_PODS] = parsed("[{" OWNED("web-1", "p1", "apps/v1", "ReplicaSet", "r1") "," USES(
                "data") "},"
                        "{" OWNED("web-2", "p2", "apps/v1", "ReplicaSet", "r1") "," USES(
                                "data") "},"
                                        "{" OWNED("mine", "p3", "example.net/v1", "Thing", "t1") "," USES(
                                                "data") "},"
                                                        "{" OWNED("other", "p4", "apps/v1",
                                                                "ReplicaSet",
                                                                "r1") "," USES("else") "},"
                                                                                       "{\"metadata\":{\"name\":\"lone\",\"namespace\":\"shop\"},\"spec\":{\"volumes\":[{\"name\":\"v\",\"ephemeral\":{}}]}}]");
        lists[OUTSIDE_REPLICASETS] =
                parsed("[{" OWNED("web", "r1", "apps/v1", "Deployment", "d1") "}]");
        lists[OUTSIDE_DEPLOYMENTS] =
                parsed("[{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"d1\"}}]");
        outside_holders(lists, &claims, &arena, &out);
        static const char *const wanted[][2] = { { "Deployment", "web" }, { "Pod", "web-1" },
                { "Pod", "web-2" }, { "Pod", "mine" }, { "Pod", "lone" } };
        assert_int_equal(out.n, ARRAY_SIZE(wanted));
        for (size_t i = 0; i < out.n; i++) {
                assert_string_equal(out.v[i].kind, wanted[i][0]);
                assert_string_equal(out.v[i].name, wanted[i][1]);
        }
        lists_release();
}

/* Owners in a circle, as only a broken or a hostile API has them. */
static void circle(void **state)
{
        struct outside_object claim = { .ns = "shop", .name = "data" };
        struct outside_objects claims = { &claim, 1 }, out;
        lists[OUTSIDE_PODS] =
                parsed("[{" OWNED("p", "p", "apps/v1", "ReplicaSet", "a") "," USES("data") "}]");
        lists[OUTSIDE_REPLICASETS] =
                parsed("[{" OWNED("a", "a", "apps/v1", "ReplicaSet", "a") "}]");
        outside_holders(lists, &claims, &arena, &out);
        assert_int_equal(out.n, 2);
        lists_release();
}

static json_t *release(const char *name, const char *ns)
{
        return json_pack("{s:{s:s, s:{s:s, s:s, s:s, s:s, s:s}}}", "metadata", "namespace", ns,
                "labels", "name", name, "status", "deployed", "version", "1", SERVICE_LABEL_INPUTS,
                "x", SERVICE_LABEL_REVISION, "1");
}

static bool first(const struct outside *o, const char *name)
{
        for (size_t i = 0; i < o->release_count; i++)
                if (streq(o->releases[i].name, name))
                        return o->holds[i];
        fail_msg("%s is not there", name);
        return false;
}

/* The one with the load balancer, and whoever comes after it, go before the driver does. Names that
 * would be options of helm are none. */
static void releases(void **state)
{
        static const char *on_web[] = { "web" }, *on_driver[] = { "driver" };
        struct chart charts[] = {
                { .name = "web", .namespace = "shop", .after = { 1, on_driver } },
                { .name = "shop", .namespace = "shop", .after = { 1, on_web } },
                { .name = "driver", .namespace = "shop" },
        };
        struct services file = { .charts = { 3, charts } };
        struct outside o = { 0 };
        json_t *services = parsed(
                "[{\"metadata\":{\"name\":\"front\",\"namespace\":\"shop\",\"annotations\":{\"meta.helm.sh/release-name\":\"web\",\"meta.helm.sh/release-namespace\":\"shop\"}}}]");
        json_t *secrets =
                json_pack("[o, o, o, o, o]", release("driver", "shop"), release("web", "shop"),
                        release("shop", "shop"), release("--debug", "shop"), release("x", "../y"));
        outside_balancers(services, &arena, &o.balancers);
        outside_releases(&o, &file, secrets, &arena);
        assert_int_equal(o.release_count, 3);
        assert_true(first(&o, "web") && first(&o, "shop") && !first(&o, "driver"));
        json_decref(services);
        json_decref(secrets);
}

static void texts(void **state)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct outside_object service = { .api_version = "v1",
                .kind = "Service",
                .ns = "shop",
                .name = "fr\x1b[1mont",
                .waits = "finalizer a" };
        struct outside o = {
                .balancers = { &service, 1 }, .claims = { &service, 1 }, .kept = { &service, 1 }
        };
        outside_text(&o, &text);
        assert_non_null(
                strstr(str_text(&text), "  1 Service of type LoadBalancer: shop/fr\\u{1b}"));
        assert_non_null(strstr(str_text(&text), "1 PersistentVolumeClaim with its volume: "));
        assert_non_null(strstr(str_text(&text), "Retain"));
        str_truncate(&text, 0);
        outside_text(&(struct outside){ .blind = "refused" }, &text);
        assert_non_null(strstr(str_text(&text), "(refused)"));
        str_truncate(&text, 0);
        outside_text(&(struct outside){ 0 }, &text);
        outside_text(NULL, &text);
        assert_int_equal(text.len, 0);
        struct outside_object many[20];
        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                many[i] = (struct outside_object){
                        .kind = "Service", .ns = "a", .name = "b", .waits = ""
                };
        char *names CLEANUP(free_p) = outside_names(&(struct outside_objects){ many, 20 }, true);
        assert_non_null(strstr(names, " and 12 more"));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(volumes),
                cmocka_unit_test(volumes_by_fate), cmocka_unit_test(holders),
                cmocka_unit_test(circle), cmocka_unit_test(releases), cmocka_unit_test(texts) };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        arena_release(&arena);
        return r;
}
