/* What the tests of the Identity share: a cluster of five nodes in a directory of its own, and
 * OpenSSL's opinion of what comes out. */
#ifndef PKI_FIXTURE_H
#define PKI_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "pki/pki.h"
#include "config/minors.h"

#define NOW  ((time_t)1800000000)
#define DAY  ((time_t)86400)
#define YEAR (365 * DAY)

static char *tmp, *state, *dir; /* TMP, TMP/state, TMP/state/test */
static struct arena arena;
static struct cluster cluster;
static struct node nodes[5];
static struct pool pools[3];
static struct cidr service_ranges[2];
static const char *api_names[] = { "k8s.example.net", "203.0.113.7" };
static const char *groups[] = { "platform", "ops" };
static struct user users[2];

static inline void add_node(
        size_t i, const char *name, const struct pool *pool, const char *ip, const char *ip6)
{
        nodes[i] = (struct node){ .name = name, .pool = pool };
        assert_true(ip_parse(ip, &nodes[i].ip[0]));
        if (ip6)
                assert_true(ip_parse(ip6, &nodes[i].ip[1]));
}

static inline int setup(void **unused)
{
        char template[] = "/tmp/slipway-pki-XXXXXX";
        tmp = xstrdup(mkdtemp(template));
        state = path_join(tmp, "state");
        dir = path_join(state, "test");
        pools[0] = (struct pool){ .name = "control", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD };
        pools[1] = (struct pool){ .name = "worker", .roles = ROLE_WORKER };
        pools[2] = (struct pool){ .name = "etcd", .roles = ROLE_ETCD };
        assert_true(cidr_parse("10.96.0.0/12", &service_ranges[0], NULL) &&
                    cidr_parse("fd00:96::/108", &service_ranges[1], NULL));
        add_node(0, "c1", &pools[0], "192.0.2.11", "2001:db8::11");
        add_node(1, "c2", &pools[0], "192.0.2.12", NULL);
        add_node(2, "w1", &pools[1], "192.0.2.21", "2001:db8::21");
        add_node(3, "w2", &pools[1], "192.0.2.22", NULL);
        add_node(4, "e1", &pools[2], "192.0.2.31", NULL);
        users[0] = (struct user){ .name = "alice", .groups = { 2, groups } };
        users[1] = (struct user){ .name = "../root: #", .admin = true, .lifetime = 30 * DAY };
        static struct addon addons[] = { { .name = "multus" } };
        cluster = (struct cluster){
                .name = "test",
                .arena = &arena,
                .dir = tmp,
                .kubernetes = { 1, 36, 3, KUBERNETES_NEWEST },
                .api = { .vip = "192.0.2.10", .names = { 2, api_names }, .port = 6443 },
                .network = { .services = { 2, service_ranges },
                        .domain = "cluster.local",
                        .fabric = { .kind = FABRIC_CANAL } }, /* with the addon: every leaf */
                .services = { .addons = { 1, addons } },
                .pools = { 3, pools },
                .auth = { .users = { 2, users } },
                .certificates = { .ca_lifetime = 10 * YEAR, .lifetime = YEAR },
                .node_count = 5,
                .nodes = nodes,
        };
        return 0;
}

static inline int teardown(void **unused)
{
        struct error err CLEANUP(error_release) = { 0 };
        store_written = NULL;
        dir_remove(tmp, &err);
        arena_release(&arena);
        free(tmp);
        free(state);
        free(dir);
        return 0;
}

static inline void open_ok(struct identity *id, time_t now)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (identity_open(state, &cluster, now, id, &err) < 0)
                fail_msg("%s", err.message);
}

/* Refused, with a sentence that says `part`, a hint, and this exit status. */
static inline void open_refused(time_t now, enum exit_status status, const char *part)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct identity id;
        if (identity_open(state, &cluster, now, &id, &err) == 0)
                fail_msg("should be refused: %s", part);
        if (!strstr(err.message, part) || err.status != status || !err.hint)
                fail_msg("status %d, message \"%s\", hint \"%s\"; expected \"%s\"", err.status,
                        err.message, err.hint ? err.hint : "", part);
        size_t n = strlen(err.message);
        assert_true(err.message[n - 1] != '.' && !strchr(err.message, '\n'));
}

static inline void node_ok(struct identity *id, size_t i, struct node_identity *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (identity_node(id, &cluster, &nodes[i], out, &err) < 0)
                fail_msg("%s", err.message);
}

static inline X509 *parse(const char *pem)
{
        BIO *b = BIO_new_mem_buf(pem, -1);
        X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
        BIO_free(b);
        assert_non_null(x);
        return x;
}

/* "a,b": the values of one part of the subject. */
static inline char *subject(X509 *x, int nid)
{
        struct str s = { 0 };
        X509_NAME *name = X509_get_subject_name(x);
        for (int i = -1; (i = X509_NAME_get_index_by_NID(name, nid, i)) >= 0;)
                str_addf(&s, "%s%s", s.len ? "," : "",
                        ASN1_STRING_get0_data(
                                X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i))));
        return str_take(&s);
}

static inline char *sans(X509 *x)
{
        struct str s = { 0 };
        GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
                GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
                char text[IP_TEXT];
                struct ip ip = { 0 };
                if (g->type == GEN_IPADD) {
                        ip.family = g->d.iPAddress->length == 4 ? 4 : 6;
                        memcpy(ip.b, g->d.iPAddress->data, (size_t)g->d.iPAddress->length);
                }
                str_addf(&s, "%s%s", s.len ? " " : "",
                        g->type == GEN_IPADD ? ip_format(&ip, text)
                                             : (const char *)g->d.dNSName->data);
        }
        GENERAL_NAMES_free(names);
        return str_take(&s);
}

/* OpenSSL's own opinion, strict: chain, purpose, dates. */
static inline void verify(const struct authority *ca, X509 *x, int purpose, time_t now)
{
        X509_STORE *store = X509_STORE_new();
        X509_STORE_CTX *ctx = X509_STORE_CTX_new();
        X509_STORE_add_cert(store, ca->x509);
        X509_STORE_CTX_init(ctx, store, x, NULL);
        X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT | X509_V_FLAG_PARTIAL_CHAIN);
        X509_STORE_CTX_set_time(ctx, 0, now);
        X509_STORE_CTX_set_purpose(ctx, purpose);
        if (X509_verify_cert(ctx) != 1)
                fail_msg("%s", X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
        X509_STORE_CTX_free(ctx);
        X509_STORE_free(store);
}

static inline void check_leaf(
        const struct leaf *l, const struct authority *ca, unsigned usage, time_t now)
{
        assert_non_null(l->cert);
        X509 *x CLEANUP(x509_p) = parse(l->cert);
        EVP_PKEY *k CLEANUP(pkey_p) =
                key_parse((struct span){ (const uint8_t *)l->key, strlen(l->key) });
        assert_non_null(k);
        assert_int_equal(X509_check_private_key(x, k), 1);
        if (usage & USAGE_SERVER)
                verify(ca, x, X509_PURPOSE_SSL_SERVER, now);
        if (usage & USAGE_CLIENT)
                verify(ca, x, X509_PURPOSE_SSL_CLIENT, now);
        uint32_t has = X509_get_extended_key_usage(x);
        assert_int_equal(has, (usage & USAGE_SERVER ? XKU_SSL_SERVER : 0) |
                                      (usage & USAGE_CLIENT ? XKU_SSL_CLIENT : 0));
        assert_false(X509_get_extension_flags(x) & EXFLAG_CA);
        assert_true(X509_get_extension_flags(x) & EXFLAG_BCONS);
        assert_int_equal(X509_get_version(x), X509_VERSION_3);
        assert_true(ASN1_STRING_length(X509_get0_serialNumber(x)) == 16 &&
                    asn1_time(X509_get0_notAfter(x)) <= asn1_time(X509_get0_notAfter(ca->x509)));
}

/* Every file below a directory, with its bytes and the time it was written: equal lists are equal
 * trees. The lock is left out. */
static inline void tree_text(const char *path, struct str *out)
{
        struct dirent **list;
        int n = scandir(path, &list, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                char *sub CLEANUP(free_p) = path_join(path, list[i]->d_name);
                struct stat st;
                struct error err CLEANUP(error_release) = { 0 };
                if (list[i]->d_name[0] != '.' && !streq(list[i]->d_name, "lock") &&
                        lstat(sub, &st) == 0) {
                        str_addf(out, "%s %o %lld.%09ld\n", sub, st.st_mode,
                                (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
                        if (S_ISDIR(st.st_mode))
                                tree_text(sub, out);
                        else
                                assert_int_equal(file_read(sub, PEM_MAX, out, &err), 0);
                }
                free(list[i]);
        }
        if (n >= 0)
                free(list);
}

static inline void run_all(time_t now)
{
        struct identity id;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, now);
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
                struct node_identity n;
                node_ok(&id, i, &n);
                node_identity_release(&n);
        }
        struct str s CLEANUP(str_wipe_release) = { 0 };
        assert_int_equal(identity_kubeconfig(&id, &cluster, &s, &err), 0);
        assert_int_equal(identity_sync(&id, &err), 0);
        identity_release(&id);
}

static inline void put(const char *path, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (file_write(path, text, strlen(text), 0600, 0, NULL, &err) < 0)
                fail_msg("%s", err.message);
}

static inline char *get(const char *path)
{
        struct str s = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (file_read(path, PEM_MAX, &s, &err) < 0)
                fail_msg("%s", err.message);
        return str_take(&s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
