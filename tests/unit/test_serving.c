/* Requests of kubelets for serving certificates: which may be approved, and for whom a renewal is.
 * Whatever the machine says of itself is judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/file.h"
#include "cluster/plan/serving.h"

#define GOOD_NAMES "DNS:joiner,IP:192.0.2.50"

static struct arena arena;
static struct node nodes[2];
static struct cidr ranges[2];
static struct cluster cluster;
static struct site site;
static json_t *node_list;
static char dir[] = "/tmp/slipway-serving-XXXXXX";

static json_t *node_object(const char *name, const char *address)
{
        return json_pack("{s:{s:s}, s:{s:[{s:s, s:s}, {s:s, s:s}]}}", "metadata", "name", name,
                "status", "addresses", "type", "InternalIP", "address", address, "type", "Hostname",
                "address", name);
}

static int setup(void **state)
{
        assert_non_null(mkdtemp(memcpy(dir, "/tmp/slipway-serving-XXXXXX", sizeof(dir))));
        nodes[0] = (struct node){ .name = "c1" };
        nodes[1] = (struct node){ .name = "w1" };
        assert_true(
                ip_parse("192.0.2.11", &nodes[0].ip[0]) && ip_parse("192.0.2.21", &nodes[1].ip[0]));
        assert_true(cidr_parse("10.96.0.0/16", &ranges[0], NULL) &&
                    cidr_parse("10.244.0.0/16", &ranges[1], NULL));
        cluster = (struct cluster){ .name = "demo", .nodes = nodes, .node_count = 2 };
        cluster.network.domain = "cluster.local";
        cluster.network.services = (struct cidrs){ .n = 1, .v = &ranges[0] };
        cluster.network.pods = (struct cidrs){ .n = 1, .v = &ranges[1] };
        cluster.api.vip = "192.0.2.10";
        site = (struct site){ .cluster = &cluster, .arena = &arena, .identity.dir = dir };
        node_list = json_pack("{s:[o, o]}", "items", node_object("joiner", "192.0.2.50"),
                node_object("c1", "192.0.2.11"));
        return 0;
}

static int teardown(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        json_decref(node_list);
        assert_int_equal(dir_remove(dir, &err), 0);
        arena_release(&arena);
        return 0;
}

/* A request as a kubelet makes it; `names` as openssl writes them. */
static json_t *request(const char *cn, const char *o, const char *names, bool spoil)
{
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509_REQ *r = X509_REQ_new();
        X509_NAME *subject = X509_REQ_get_subject_name(r);
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, (const uint8_t *)o, -1, -1, 0);
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)cn, -1, -1, 0);
        if (*names) {
                STACK_OF(X509_EXTENSION) *all = sk_X509_EXTENSION_new_null();
                X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
                assert_non_null(e);
                sk_X509_EXTENSION_push(all, e);
                X509_REQ_add_extensions(r, all);
                sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
        }
        X509_REQ_set_pubkey(r, key);
        assert_true(X509_REQ_sign(r, key, EVP_sha256()) > 0);
        EVP_PKEY *other = spoil ? EVP_EC_gen("P-256") : NULL;
        if (spoil)
                X509_REQ_set_pubkey(r, other);
        BIO *b = BIO_new(BIO_s_mem());
        PEM_write_bio_X509_REQ(b, r);
        char *pem;
        long n = BIO_get_mem_data(b, &pem);
        struct str text CLEANUP(str_release) = { 0 };
        str_add_base64(&text, pem, (size_t)n);
        BIO_free(b);
        X509_REQ_free(r);
        EVP_PKEY_free(key);
        EVP_PKEY_free(other);
        return json_pack("{s:{s:s}, s:{s:s, s:s, s:[s, s], s:s, s:[s, s]}, s:{}}", "metadata",
                "name", "csr-abcde", "spec", "signerName", "kubernetes.io/kubelet-serving",
                "username", "system:node:joiner", "groups", "system:nodes", "system:authenticated",
                "request", str_text(&text), "usages", "digital signature", "server auth", "status");
}

static json_t *spec_of(json_t *csr) { return json_object_get(csr, "spec"); }

/* Takes the request; the verdict, or "none" when it is no request that waits. */
static const char *verdict(json_t *csr, struct serving *out)
{
        struct serving *all;
        json_t *list = json_pack("{s:[o]}", "items", csr);
        size_t n = serving_read(&arena, &cluster, list, node_list, &all);
        const char *trouble = !n ? "none" : all[0].trouble ? all[0].trouble : "";
        if (n && out) {
                *out = all[0];
                out->object = NULL;
        }
        json_decref(list);
        return trouble;
}

static void test_good(void **state)
{
        struct serving r;
        struct str names CLEANUP(str_release) = { 0 };
        assert_string_equal(
                verdict(request("system:node:joiner", "system:nodes", GOOD_NAMES, false), &r), "");
        assert_string_equal(r.node, "joiner");
        serving_names(&r, &names);
        assert_string_equal(str_text(&names), "joiner, 192.0.2.50");
}

static void test_refused(void **state)
{
        static const struct {
                const char *cn, *o, *names, *why;
        } table[] = {
                { "system:node:joiner", "system:nodes", "", "not all of them are host names" },
                { "system:node:joiner", "system:nodes", "email:a@b.example",
                        "not all of them are host names" },
                { "system:node:joiner", "system:nodes", GOOD_NAMES ",URI:https://x.example",
                        "not all of them are host names" },
                { "system:node:joiner", "system:masters", GOOD_NAMES, "another subject" },
                { "system:node:c1", "system:nodes", GOOD_NAMES, "another subject" },
                { "kube-apiserver", "system:nodes", GOOD_NAMES, "another subject" },
                { "system:node:joiner", "system:nodes", "DNS:joiner", "other names and addresses" },
                { "system:node:joiner", "system:nodes", GOOD_NAMES ",IP:192.0.2.51",
                        "other names and addresses" },
                { "system:node:joiner", "system:nodes", GOOD_NAMES ",DNS:kubernetes",
                        "other names and addresses" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const char *why =
                        verdict(request(table[i].cn, table[i].o, table[i].names, false), NULL);
                if (!strstr(why, table[i].why))
                        fail_msg("%zu: \"%s\" says nothing of \"%s\"", i, why, table[i].why);
        }
        assert_non_null(strstr(
                verdict(request("system:node:joiner", "system:nodes", GOOD_NAMES, true), NULL),
                "own key"));
}

/* The Node says what the request says, and both lie: the machine writes both. */
static void test_taken(void **state)
{
        static const struct {
                const char *address, *host;
        } table[] = {
                { "192.0.2.11", "joiner" },
                { "192.0.2.10", "joiner" },
                { "127.0.0.1", "joiner" },
                { "10.96.0.1", "joiner" },
                { "10.244.3.4", "joiner" },
                { "192.0.2.50", "c1" },
                { "192.0.2.50", "kubernetes" },
                { "192.0.2.50", "kubernetes.default.svc" },
                { "192.0.2.50", "localhost" },
                { "192.0.2.50", "x.default.svc.cluster.local" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                json_t *own = json_array_get(json_object_get(node_list, "items"), 0),
                       *all = json_object_get(json_object_get(own, "status"), "addresses");
                char *names CLEANUP(free_p) =
                        xasprintf("DNS:%s,IP:%s", table[i].host, table[i].address);
                json_object_set_new(
                        json_array_get(all, 0), "address", json_string(table[i].address));
                json_object_set_new(json_array_get(all, 1), "address", json_string(table[i].host));
                const char *why =
                        verdict(request("system:node:joiner", "system:nodes", names, false), NULL);
                if (!strstr(why, "not its own"))
                        fail_msg("%s: \"%s\"", names, why);
        }
}

static void test_another_nodes(void **state)
{
        json_array_append_new(
                json_object_get(node_list, "items"), node_object("elsewhere", "192.0.2.50"));
        assert_non_null(strstr(
                verdict(request("system:node:joiner", "system:nodes", GOOD_NAMES, false), NULL),
                "the Node elsewhere"));
}

static void test_who_asks(void **state)
{
        json_t *r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
        json_object_set_new(spec_of(r), "username", json_string("system:bootstrap:abcdef"));
        assert_string_equal(verdict(r, NULL), "none");
        r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
        json_object_set_new(spec_of(r), "username", json_string("system:node:../joiner"));
        assert_string_equal(verdict(r, NULL), "none");
        r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
        json_object_set_new(
                spec_of(r), "signerName", json_string("kubernetes.io/kube-apiserver-client"));
        assert_string_equal(verdict(r, NULL), "none");
        r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
        json_object_set_new(
                json_object_get(r, "status"), "conditions", json_pack("[{s:s}]", "type", "Denied"));
        assert_string_equal(verdict(r, NULL), "none");
        r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
        json_object_set_new(spec_of(r), "groups", json_pack("[s]", "system:authenticated"));
        assert_non_null(strstr(verdict(r, NULL), "another subject"));
        r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
        json_array_append_new(json_object_get(spec_of(r), "usages"), json_string("client auth"));
        assert_non_null(strstr(verdict(r, NULL), "more than serving"));
        r = request("system:node:w1", "system:nodes", "DNS:w1,IP:192.0.2.21", false);
        json_object_set_new(spec_of(r), "username", json_string("system:node:w1"));
        assert_non_null(strstr(verdict(r, NULL), "slipway issues"));
        r = request("system:node:stranger", "system:nodes", GOOD_NAMES, false);
        json_object_set_new(spec_of(r), "username", json_string("system:node:stranger"));
        assert_non_null(strstr(verdict(r, NULL), "no Node"));
}

static void test_garbage(void **state)
{
        static const char *const texts[] = { "", "AAAA", "not base64!",
                "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K" };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                json_t *r = request("system:node:joiner", "system:nodes", GOOD_NAMES, false);
                json_object_set_new(spec_of(r), "request", json_string(texts[i]));
                assert_non_null(strstr(verdict(r, NULL), "not a certificate signing request"));
        }
        struct serving *all;
        assert_int_equal(serving_read(&arena, &cluster, NULL, NULL, &all), 0);
        assert_non_null(
                strstr(verdict(request("a", "b\x1b[31m", GOOD_NAMES, false), NULL), "subject"));
}

/* Renewals: for what a person approved, and for nothing else. */
static void test_known(void **state)
{
        struct serving r, other;
        struct error err CLEANUP(error_release) = { 0 };
        assert_string_equal(
                verdict(request("system:node:joiner", "system:nodes", GOOD_NAMES, false), &r), "");
        assert_false(serving_any_known(&site) || serving_known(&site, &r));
        assert_int_equal(serving_remember(&site, &r, &err), 0);
        assert_true(serving_any_known(&site) && serving_known(&site, &r));
        other = r;
        other.names.n = 1;
        assert_false(serving_known(&site, &other));
        other = r;
        other.node = "joiner2";
        assert_false(serving_known(&site, &other));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_good, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
                cmocka_unit_test_setup_teardown(test_another_nodes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_who_asks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
                cmocka_unit_test_setup_teardown(test_known, setup, teardown),
        };
        return cmocka_run_group_tests_name("serving", tests, NULL, NULL);
}
