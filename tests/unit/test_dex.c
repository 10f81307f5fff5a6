/* services.dex: files that connectors name are read, and its objects hold what they should where
 * they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "addon/addon.h"
#include "addon/service.h"
#include "base/file.h"
#include "config/dex.h"
#include "config/minors.h"
#include "config/problem.h"
#include "kube/documents.h"

#define SECRET "hun$ter2\"'"
#define HASH   "$2b$10$abcdefghijklmnopqrstuu"

static struct arena arena;
static char dir[] = "/tmp/dex.XXXXXX";

static void write_file(const char *name, const char *text, unsigned mode)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, name);
        assert_int_equal(file_write(path, text, strlen(text), mode, 0, NULL, &err), 0);
}

static const char *first_problem(const struct problems *p)
{
        return p->first ? p->first->message : "";
}

/* The file with this under services.dex; NULL: it has problems. */
static struct cluster *load(const char *dex, struct problems *p)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct cluster *c = NULL;
        char *text CLEANUP(free_p) = xasprintf(
                "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n"
                "  kubernetes: " KUBERNETES_NEWEST
                "\n  pools:\n    - {name: c, roles: [control-plane, etcd], count: 1}\n"
                "    - {name: w, count: 1}\n  services:\n    dex:\n      host: dex.example.net\n%s",
                dex);
        char *path CLEANUP(free_p) = path_join(dir, "cluster.yaml");
        write_file("cluster.yaml", text, 0644);
        *p = (struct problems){ .arena = &arena };
        cluster_load(&arena, (const char *[]){ arena_strdup(&arena, path) }, 1, &c, p, &err);
        return c;
}

static json_t *objects(const struct cluster *c)
{
        struct identity id = { .dex = { .cert = (char *)"CERT", .key = (char *)"KEY" } };
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        json_t *all = NULL;
        addon_dex(c, &id, &text);
        assert_int_equal(documents_read(str_text(&text), &all, &err), 0);
        return all;
}

static json_t *object(json_t *all, const char *wanted)
{
        size_t i;
        json_t *o;
        json_array_foreach(all, i, o)
        {
                char *name CLEANUP(free_p) = service_object_name(o, "");
                if (streq(name, wanted))
                        return o;
        }
        fail_msg("there is no %s", wanted);
        return NULL;
}

/* What the Secret has as config.yaml. */
static json_t *config(json_t *all)
{
        const char *text = json_string_value(json_object_get(
                json_object_get(object(all, "Secret slipway-dex/dex"), "data"), "config.yaml"));
        struct str decoded CLEANUP(str_release) = { 0 };
        assert_non_null(text);
        assert_true(str_add_from_base64(&decoded, text, strlen(text)));
        json_t *o = json_loads(str_text(&decoded), 0, NULL);
        assert_non_null(o);
        return o;
}

static void assert_json(const json_t *o, const char *wanted)
{
        char *text CLEANUP(free_p) = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        assert_string_equal(text ? text : "", wanted);
}

#define CONNECTORS \
        "      connectors:\n" \
        "        - type: github\n          id: gh\n          name: GitHub\n" \
        "          config: {clientID: abc, clientSecretFile: ./secret, orgs: [{name: a}]}\n" \
        "        - {type: ldap, id: l, name: L, config: {rootCAFile: ca.pem, bindPWFile: secret}}\n"

static void files_of_connectors(void **state)
{
        struct problems p;
        struct cluster *c = load(CONNECTORS "      passwordsFile: people\n", &p);
        if (!c)
                fail_msg("%s", first_problem(&p));
        json_t *all = objects(c), *o = config(all);
        assert_json(json_object_get(o, "issuer"), "\"https://dex.example.net\"");
        assert_json(json_array_get(json_object_get(o, "connectors"), 0),
                "{\"config\":{\"clientID\":\"abc\",\"clientSecret\":\"hun$ter2\\\"'\",\"orgs\":[{\"name\":\"a\"}]},"
                "\"id\":\"gh\",\"name\":\"GitHub\",\"type\":\"github\"}");
        assert_json(json_object_get(json_array_get(json_object_get(o, "connectors"), 1), "config"),
                "{\"bindPW\":\"hun$ter2\\\"'\",\"rootCAData\":\"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==\"}");
        assert_json(json_object_get(o, "staticClients"),
                "[{\"id\":\"kubernetes\",\"name\":\"kubectl\",\"public\":true}]");
        assert_json(json_object_get(o, "enablePasswordDB"), "true");
        assert_json(json_object_get(o, "staticPasswords"),
                "[{\"email\":\"v@example.net\",\"hash\":\"" HASH "\",\"userID\":\"1\"}]");
        assert_json(json_object_get(o, "expiry"), "{\"idTokens\":\"1h\"}");
        json_decref(o);
        /* the Secret has them, and nothing else does */
        size_t i;
        json_array_foreach(all, i, o)
        {
                char *text CLEANUP(free_p) = json_dumps(o, 0);
                assert_null(strstr(text, "ter2"));
                assert_null(strstr(text, HASH));
        }
        json_decref(all);
}

static void more_of_its_configuration(void **state)
{
        struct problems p;
        struct cluster *c = load(CONNECTORS
                "      clients: [{id: web, name: Web, secretFile: secret}]\n"
                "      config: {expiry: {idTokens: 5m, signingKeys: 6h}, frontend: {theme: dark}}\n",
                &p);
        if (!c)
                fail_msg("%s", first_problem(&p));
        c->auth.oidc.client_secret = "s";
        json_t *all = objects(c), *o = config(all);
        assert_json(json_object_get(o, "expiry"), "{\"idTokens\":\"5m\",\"signingKeys\":\"6h\"}");
        assert_json(json_object_get(o, "frontend"), "{\"theme\":\"dark\"}");
        assert_json(json_object_get(o, "enablePasswordDB"), "");
        assert_json(json_object_get(o, "staticClients"),
                "[{\"id\":\"kubernetes\",\"name\":\"kubectl\",\"redirectURIs\":[\"http://localhost:8000\",\"http://localhost:18000\"],\"secret\":\"s\"},"
                "{\"id\":\"web\",\"name\":\"Web\",\"secret\":\"hun$ter2\\\"'\"}]");
        json_decref(o);
        json_decref(all);
}

/* A file that others can read is refused, and so is what is no list of people. */
static void bad_files(void **state)
{
        struct problems p;
        assert_null(load(
                "      connectors: [{type: x, id: x, name: x, config: {bindPWFile: open}}]\n", &p));
        assert_non_null(strstr(first_problem(&p), "open"));
        assert_null(load("      passwordsFile: open\n", &p));
        assert_null(load("      passwordsFile: secret\n", &p));
        assert_non_null(strstr(first_problem(&p), "is not a YAML list"));
        assert_null(load("      passwordsFile: nameless\n", &p));
        assert_non_null(strstr(first_problem(&p), "entry 1 of nameless has no email"));
}

static json_t *port_of(json_t *all, const char *name)
{
        json_t *spec = json_object_get(object(all, name), "spec"),
               *pod = json_object_get(json_object_get(spec, "template"), "spec");
        return json_array_get(
                json_object_get(pod ? json_array_get(json_object_get(pod, "containers"), 0) : spec,
                        "ports"),
                0);
}

static void exposed(void **state)
{
        struct problems p;
        static const struct {
                const char *text, *pod, *service, *level;
        } cases[] = {
                { CONNECTORS, "{\"containerPort\":5556,\"hostPort\":443,\"name\":\"https\"}",
                        "{\"name\":\"https\",\"port\":443,\"targetPort\":\"https\"}",
                        "\"privileged\"" },
                { CONNECTORS "      expose: nodePort\n      port: 32000\n",
                        "{\"containerPort\":5556,\"name\":\"https\"}",
                        "{\"name\":\"https\",\"nodePort\":32000,\"port\":32000,\"targetPort\":\"https\"}",
                        "\"restricted\"" },
                { CONNECTORS "      expose: loadBalancer\n",
                        "{\"containerPort\":5556,\"name\":\"https\"}",
                        "{\"name\":\"https\",\"port\":443,\"targetPort\":\"https\"}",
                        "\"restricted\"" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct cluster *c = load(cases[i].text, &p);
                if (!c)
                        fail_msg("%s", first_problem(&p));
                json_t *all = objects(c);
                assert_json(port_of(all, "DaemonSet slipway-dex/dex"), cases[i].pod);
                assert_json(port_of(all, "Service slipway-dex/dex"), cases[i].service);
                assert_json(json_object_get(
                                    json_object_get(
                                            json_object_get(object(all, "Namespace slipway-dex"),
                                                    "metadata"),
                                            "labels"),
                                    "pod-security.kubernetes.io/enforce"),
                        cases[i].level);
                json_decref(all);
        }
}

static const char *digest_of(json_t *all)
{
        json_t *template = json_object_get(
                json_object_get(object(all, "DaemonSet slipway-dex/dex"), "spec"), "template");
        return json_string_value(json_object_get(
                json_object_get(json_object_get(template, "metadata"), "annotations"),
                "slipway.dev/digest"));
}

/* Another secret, and its pods restart. */
static void restarts(void **state)
{
        struct problems p;
        json_t *a = objects(load(CONNECTORS, &p)), *b = objects(load(CONNECTORS, &p));
        assert_string_equal(digest_of(a), digest_of(b));
        write_file("secret", "other\n", 0600);
        json_t *c = objects(load(CONNECTORS, &p));
        assert_string_not_equal(digest_of(a), digest_of(c));
        write_file("secret", SECRET "\n", 0600);
        json_decref(a);
        json_decref(b);
        json_decref(c);
}

/* Its own namespace goes with it; definitions, which another Dex may use, stay. */
static void removed(void **state)
{
        struct problems p;
        json_t *all = objects(load(CONNECTORS, &p)), *none = json_array(), *stay = json_array();
        json_t *gone = service_pruned(all, none, DEX_NAMESPACE, stay);
        object(gone, "Namespace slipway-dex");
        object(gone, "Secret slipway-dex/dex");
        assert_int_equal(json_array_size(stay), 10);
        assert_int_equal(json_array_size(gone) + 10, json_array_size(all));
        json_decref(all);
        json_decref(none);
        json_decref(stay);
        json_decref(gone);
}

static int setup(void **state)
{
        assert_non_null(mkdtemp(dir));
        write_file("secret", SECRET "\n", 0600);
        write_file("open", SECRET "\n", 0644);
        write_file("ca.pem", "-----BEGIN CERTIFICATE-----\n", 0644);
        write_file("people", "- {email: v@example.net, hash: \"" HASH "\", userID: \"1\"}\n", 0600);
        write_file("nameless", "- {hash: x, userID: \"1\"}\n", 0600);
        return 0;
}

static int teardown(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        arena_release(&arena);
        return dir_remove(dir, &err);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(files_of_connectors),
                cmocka_unit_test(more_of_its_configuration),
                cmocka_unit_test(bad_files),
                cmocka_unit_test(exposed),
                cmocka_unit_test(restarts),
                cmocka_unit_test(removed),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
