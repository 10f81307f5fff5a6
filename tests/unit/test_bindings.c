/* auth.bindings: which objects they make, what is done to those that the API has, and in which
 * order. And what a provider's discovery document is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "addon/addon.h"
#include "cluster/plan/bindings.h"
#include "cluster/plan/issuer.h"
#include "cluster/plan/outsiders.h"

static struct arena arena;
static struct cluster cluster;
static struct site site;
static struct binding rows[] = {
        { .group = "oidc:viewers", .role = "view" },
        { .group = "ops", .role = "view" },
        { .group = "oidc:editors", .role = "edit", .space = "team-a" },
        { .user = "alice", .role = "edit", .space = "default" },
};

static int setup(void **state)
{
        cluster = (struct cluster){ .name = "demo", .arena = &arena };
        cluster.auth.bindings = (struct bindings){ .n = ARRAY_SIZE(rows), .v = rows };
        site = (struct site){ .cluster = &cluster, .arena = &arena };
        return 0;
}

static int teardown(void **state)
{
        arena_release(&arena);
        return 0;
}

static void chores(const json_t *found, const json_t *spaces)
{
        json_t *wanted = addon_bindings(&cluster);
        site.found.chores = NULL;
        bindings_chores(&site, wanted, found, spaces);
        json_decref(wanted);
}

static void assert_chore(size_t i, const char *method, const char *path, const char *plan)
{
        assert_non_null(site.found.chores);
        assert_true(i < site.found.chores->n);
        const struct chore *c = &site.found.chores->v[i];
        assert_string_equal(c->plan, plan);
        assert_string_equal(c->method ? c->method : "", method);
        assert_string_equal(c->path ? c->path : "", path);
        assert_int_equal(c->body != NULL, method[0] == 'P');
}

#define RBAC   "/apis/rbac.authorization.k8s.io/v1"
#define APPLY  "?fieldManager=slipway&force=true"
#define VIEW   RBAC "/clusterrolebindings/slipway%3Abindings%3Aview"
#define EDIT_A RBAC "/namespaces/team-a/rolebindings/slipway%3Abindings%3Aedit"
#define EDIT_D RBAC "/namespaces/default/rolebindings/slipway%3Abindings%3Aedit"

static void test_new_cluster(void **unused)
{
        chores(NULL, NULL);
        assert_int_equal(site.found.chores->n, 5);
        assert_chore(0, "PATCH", "/api/v1/namespaces/team-a" APPLY,
                "namespace team-a  create  auth.bindings has a binding in it");
        assert_chore(1, "PATCH", VIEW APPLY, "group oidc:viewers  bind  view in all namespaces");
        assert_chore(2, "", "", "group ops  bind  view in all namespaces");
        assert_chore(
                3, "PATCH", EDIT_A APPLY, "group oidc:editors  bind  edit in namespace team-a");
        assert_chore(4, "PATCH", EDIT_D APPLY, "user alice  bind  edit in namespace default");
        assert_non_null(strstr(site.found.chores->v[1].body, "\"slipway.dev/auth\""));
        assert_string_equal(site.found.chores->v[1].type, "application/apply-patch+yaml");
}

static void test_nothing_to_do(void **unused)
{
        json_t *found = addon_bindings(&cluster),
               *spaces = json_pack("[{s:{s:s}}]", "metadata", "name", "team-a");
        chores(found, spaces);
        assert_null(site.found.chores);
        json_decref(found);
        json_decref(spaces);
}

/* What the file no longer has goes first; somebody's own binding with our label stays. */
static void test_removed(void **unused)
{
        json_t *found = addon_bindings(&cluster),
               *spaces = json_pack("[{s:{s:s}}]", "metadata", "name", "team-a");
        json_t *copy = json_deep_copy(json_array_get(found, 0));
        json_object_set_new(json_object_get(copy, "metadata"), "name", json_string("mine"));
        json_array_append_new(found, copy);
        cluster.auth.bindings.n = 1;
        chores(found, spaces);
        assert_int_equal(site.found.chores->n, 3);
        assert_chore(0, "DELETE", EDIT_A,
                "group oidc:editors  unbind  edit in namespace team-a, no longer in auth.bindings");
        assert_chore(1, "DELETE", EDIT_D,
                "user alice  unbind  edit in namespace default, no longer in auth.bindings");
        assert_chore(2, "PATCH", VIEW APPLY,
                "group ops  unbind  view in all namespaces, no longer in auth.bindings");
        assert_null(strstr(site.found.chores->v[2].body, "\"ops\""));
        json_decref(found);
        json_decref(spaces);
}

/* Somebody changed it by hand: another role, other subjects, none. */
static void test_tampered(void **unused)
{
        json_t *found = addon_bindings(&cluster), *view = json_array_get(found, 0),
               *alice = json_array_get(found, 2);
        json_object_set_new(json_object_get(view, "roleRef"), "name", json_string("cluster-admin"));
        json_array_clear(json_object_get(alice, "subjects"));
        json_array_remove(found, 1);
        cluster.auth.bindings.n = 2;
        chores(found, NULL);
        assert_int_equal(site.found.chores->n, 4);
        assert_chore(0, "DELETE", VIEW,
                "binding view in all namespaces  remove  it refers to another role, and is created again");
        assert_chore(
                1, "DELETE", EDIT_D, "binding edit in namespace default  remove  it binds nobody");
        assert_chore(2, "PATCH", VIEW APPLY, "group oidc:viewers  bind  view in all namespaces");
        assert_chore(3, "", "", "group ops  bind  view in all namespaces");
        json_decref(found);
}

/* The API's words are data. */
static void test_strange(void **unused)
{
        json_t *found = json_pack("[{s:{s:s, s:s, s:{s:s}}, s:[n, i, {s:s}, {s:s, s:s}]}, n, s]",
                "metadata", "name", "slipway:bindings:../x", "namespace", "a/../b?", "labels",
                "slipway.dev/auth", "bindings", "subjects", 1, "kind", "User", "kind", "Robot",
                "name", "r2\n", "text");
        struct str text CLEANUP(str_release) = { 0 };
        cluster.auth.bindings.n = 0;
        chores(found, NULL);
        assert_string_equal(site.found.chores->v[0].path,
                RBAC "/namespaces/a%2F..%2Fb%3F/rolebindings/slipway%3Abindings%3A..%2Fx");
        chores_text(&site, &text);
        assert_non_null(strstr(str_text(&text), "Robot r2\\n  unbind"));
        json_decref(found);
}

/* Who leaves auth.users and stays in auth.bindings keeps the rights, and the plan says so. */
static void test_leaves_and_stays(void **unused)
{
        struct outsider alice = { .name = "alice", .until = INT32_MAX };
        struct grant *none = NULL;
        size_t count = 0;
        struct outsiders all = { .v = &alice, .n = 1, .grants = &none, .grant_count = &count };
        struct str text CLEANUP(str_release) = { 0 }, gone CLEANUP(str_release) = { 0 };
        site.found.outsiders = &all;
        outsiders_text(&site, &text);
        assert_non_null(
                strstr(str_text(&text), "the name has no bindings except those of auth.bindings"));
        assert_non_null(strstr(str_text(&text), "still gives this name rights"));
        cluster.auth.bindings.n = 3;
        outsiders_text(&site, &gone);
        assert_null(strstr(str_text(&gone), "auth.bindings"));
        assert_non_null(strstr(str_text(&gone), "nothing is bound to it any more"));
}

static const char *scopes[] = { "email", "groups" };

static void assert_issuer(const char *document, const char *word)
{
        struct oidc o = { .issuer = "https://login.example.net/dex",
                .scopes = { .n = 2, .v = scopes } };
        struct str why CLEANUP(str_release) = { 0 };
        bool bad = issuer_fault(&o, document, strlen(document), &why);
        assert_int_equal(bad, word != NULL);
        if (word && !strstr(str_text(&why), word))
                fail_msg("%s", str_text(&why));
}

#define SAYS(rest) "{\"issuer\": \"https://login.example.net/dex\", " rest "}"

static void test_issuer(void **unused)
{
        assert_issuer("<html>", "is not a JSON object");
        assert_issuer("[1]", "is not a JSON object");
        assert_issuer("{\"issuer\": 1}", "has no issuer");
        assert_issuer("{\"issuer\": \"https://login.example.net/dex/\"}",
                "its issuer is \"https://login.example.net/dex/\"");
        assert_issuer("{\"issuer\": \"x\\n\\u001b[2J\"}", "its issuer is \"x\\n");
        assert_issuer(SAYS("\"jwks_uri\": \"http://x/keys\""), "no https jwks_uri");
        assert_issuer(SAYS("\"jwks_uri\": \"https://x/keys\""), NULL);
        assert_issuer(
                SAYS("\"jwks_uri\": \"https://x/keys\", \"scopes_supported\": [\"email\", 1]"),
                "does not list the scope groups");
}

/* kubeadm gives this configuration to every machine that joins: nothing of one node may be in it.
 */
static void test_kubelet_of_joined_machines(void **unused)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        struct identity id = { 0 };
        char bundle[] = "a CA";
        id.ca[CA_CLUSTER].bundle = bundle;
        cluster.kubernetes.text = "9.9.9";
        cluster.network.domain = "cluster.local";
        cluster.api.load_balancer = "192.0.2.9";
        assert_int_equal(addon_bootstrap(&cluster, &id,
                                 "maxPods: 77\nproviderID: openstack:///of-one-node\n"
                                 "tlsCertFile: /of-one-node\n",
                                 &out, &err),
                0);
        assert_non_null(strstr(str_text(&out), "maxPods"));
        assert_null(strstr(str_text(&out), "of-one-node"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_new_cluster, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nothing_to_do, setup, teardown),
                cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tampered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_strange, setup, teardown),
                cmocka_unit_test_setup_teardown(test_leaves_and_stays, setup, teardown),
                cmocka_unit_test_setup_teardown(test_issuer, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kubelet_of_joined_machines, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
