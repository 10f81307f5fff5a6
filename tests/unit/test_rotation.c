/* Authorities and keys that change: who is believed in which phase, and that a run killed after any
 * write goes on. */
#include <sys/wait.h>

#include "pki_fixture.h"

#define ALL ((1U << ROTATE_ENCRYPT) - 1)

static void begin_ok(unsigned set, time_t now)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (identity_rotate(state, &cluster, set, now, &err) < 0)
                fail_msg("%s", err.message);
}

static int on(time_t now, bool finish)
{
        struct identity id;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, now);
        int r = identity_rotate_on(&id, &cluster, finish, &err);
        if (r < 0)
                fail_msg("%s", err.message);
        identity_release(&id);
        return r;
}

/* Whether a client or server that believes `trusted` (PEM) and is shown `chain` lets it in. */
static bool believed(const char *trusted, const char *chain, time_t now)
{
        X509_STORE *store = X509_STORE_new();
        X509_STORE_CTX *ctx = X509_STORE_CTX_new();
        STACK_OF(X509) *others = sk_X509_new_null();
        BIO *t = BIO_new_mem_buf(trusted, -1), *c = BIO_new_mem_buf(chain, -1);
        X509 *x, *leaf = PEM_read_bio_X509(c, NULL, NULL, NULL);
        while ((x = PEM_read_bio_X509(t, NULL, NULL, NULL))) {
                X509_STORE_add_cert(store, x);
                X509_free(x);
        }
        while ((x = PEM_read_bio_X509(c, NULL, NULL, NULL)))
                sk_X509_push(others, x);
        X509_STORE_CTX_init(ctx, store, leaf, others);
        X509_STORE_CTX_set_time(ctx, 0, now);
        bool ok = X509_verify_cert(ctx) == 1;
        sk_X509_pop_free(others, X509_free);
        X509_free(leaf);
        X509_STORE_CTX_free(ctx);
        X509_STORE_free(store);
        BIO_free(t);
        BIO_free(c);
        ERR_clear_error();
        return ok;
}

struct seen {
        char *clients[CA_COUNT], *bundle, *cert[CA_COUNT], *sa_pub, *sa_other, *key, *other;
};

static void see(time_t now, struct seen *s)
{
        struct identity id;
        struct node_identity n;
        open_ok(&id, now);
        node_ok(&id, 0, &n);
        for (int i = 0; i < CA_COUNT; i++) {
                static const enum leaf_id leaf[] = { LEAF_APISERVER, LEAF_ETCD_PEER,
                        LEAF_FRONT_PROXY_CLIENT };
                s->clients[i] = arena_strdup(&arena, id.ca[i].clients);
                s->cert[i] = arena_strdup(&arena, n.leaf[leaf[i]].cert);
        }
        s->bundle = arena_strdup(&arena, id.ca[CA_CLUSTER].bundle);
        s->sa_pub = arena_strdup(&arena, id.sa_pub);
        s->sa_other = id.sa_other ? arena_strdup(&arena, id.sa_other) : NULL;
        s->key = arena_strdup(&arena, id.encryption_key);
        s->other = id.encryption_other ? arena_strdup(&arena, id.encryption_other) : NULL;
        node_identity_release(&n);
        identity_release(&id);
}

/* What one phase issues, the nodes of the phases beside it believe: a roll is never all at once. */
static void test_phases(void **unused)
{
        struct seen at[5] = { 0 };
        see(NOW, &at[0]);
        begin_ok(ALL, NOW);
        see(NOW, &at[1]);
        assert_int_equal(on(NOW, true), 1);
        see(NOW, &at[2]);
        assert_int_equal(on(NOW, true), 1);
        see(NOW, &at[3]);
        assert_int_equal(on(NOW, true), 0);
        see(NOW, &at[4]);
        for (int ca = 0; ca < CA_COUNT; ca++) {
                for (int i = 0; i < 4; i++) {
                        assert_true(believed(at[i].clients[ca], at[i + 1].cert[ca], NOW));
                        assert_true(believed(at[i + 1].clients[ca], at[i].cert[ca], NOW));
                }
                assert_string_equal(at[0].cert[ca], at[1].cert[ca]);
                assert_string_not_equal(at[1].cert[ca], at[2].cert[ca]);
                assert_string_equal(at[2].cert[ca], at[3].cert[ca]);
                assert_string_equal(at[3].cert[ca], at[4].cert[ca]);
                assert_string_equal(at[3].clients[ca], at[4].clients[ca]);
                assert_false(believed(at[4].clients[ca], at[0].cert[ca], NOW));
        }
        /* who has read the old ca.crt once and for all still finds the API server, but of etcd's
         * new authority knows nothing */
        assert_true(believed(at[0].bundle, at[4].cert[CA_CLUSTER], NOW));
        assert_false(believed(at[0].clients[CA_ETCD], at[4].cert[CA_ETCD], NOW));
        assert_string_equal(at[1].sa_pub, at[0].sa_pub);
        assert_string_equal(at[2].sa_pub, at[1].sa_other);
        assert_string_equal(at[2].sa_other, at[0].sa_pub);
        assert_true(!at[3].sa_other && !at[4].sa_other && !at[0].other && !at[4].other);
        assert_string_equal(at[4].sa_pub, at[2].sa_pub);
        assert_string_equal(at[1].key, at[0].key);
        assert_string_equal(at[2].key, at[1].other);
        assert_string_equal(at[2].other, at[0].key);
        assert_string_equal(at[4].key, at[2].key);
}

/* A pod may have read ca.crt four rotations ago; of one still older nothing is sent. */
static void test_old_pods(void **unused)
{
        struct seen first = { 0 }, s = { 0 };
        see(NOW, &first);
        for (int i = 1; i <= 5; i++) {
                begin_ok(1U << ROTATE_CA, NOW);
                do {
                        see(NOW, &s);
                        assert_true(i == 5 || believed(first.bundle, s.cert[CA_CLUSTER], NOW));
                } while (on(NOW, false) == 1);
                see(NOW, &s);
                assert_int_equal(believed(first.bundle, s.cert[CA_CLUSTER], NOW), i < 5);
        }
}

/* Tokens live for an hour: the old key is believed for longer, unless it is said otherwise. */
static void test_old_tokens(void **unused)
{
        struct seen s = { 0 };
        see(NOW, &s);
        begin_ok(1U << ROTATE_SA, NOW);
        assert_int_equal(on(NOW, false), 1);
        assert_int_equal(on(NOW, false), 0);
        see(NOW + 3600, &s);
        assert_non_null(s.sa_other);
        assert_int_equal(on(NOW + 3600, false), 0);
        assert_int_equal(on(NOW + SA_KEEP, false), 1);
        assert_int_equal(on(NOW + SA_KEEP, false), 0);
        see(NOW + SA_KEEP, &s);
        assert_null(s.sa_other);
}

static void test_one_at_a_time(void **unused)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct seen s = { 0 };
        see(NOW, &s);
        begin_ok(1U << ROTATE_ETCD, NOW);
        begin_ok(1U << ROTATE_ETCD, NOW);
        assert_true(identity_rotate(state, &cluster, 1U << ROTATE_CA, NOW, &err) < 0);
        assert_non_null(strstr(err.message, "etcd"));
        assert_non_null(err.hint);
}

/* Encryption that comes to a cluster without it: nothing is on disk before it is agreed to, then
 * two phases, and no old key that would go. */
static void test_encrypt(void **unused)
{
        struct identity id;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, NOW);
        char *key CLEANUP(free_p) = xstrdup(id.encryption_key);
        assert_int_equal(identity_encrypt(&id, &err), 0);
        assert_int_equal(identity_rotating(&id), 0);
        id.rotation.phase[ROTATE_ENCRYPT] = ROTATE_TRUST;
        id.rotation.begun = true;
        assert_int_equal(identity_encrypt(&id, &err), 0);
        identity_release(&id);
        open_ok(&id, NOW);
        assert_int_equal(id.rotation.phase[ROTATE_ENCRYPT], ROTATE_TRUST);
        assert_null(id.encryption_other);
        identity_release(&id);
        assert_int_equal(on(NOW, false), 1);
        open_ok(&id, NOW);
        assert_int_equal(id.rotation.phase[ROTATE_ENCRYPT], ROTATE_ISSUE);
        assert_string_equal(id.encryption_key, key);
        identity_release(&id);
        assert_int_equal(on(NOW, false), 0);
        open_ok(&id, NOW);
        assert_int_equal(identity_rotating(&id), 0);
        assert_string_equal(id.encryption_key, key);
        identity_release(&id);
}

/* ---- killed after each write ---- */

static int writes_left;

static void die_there(const char *path)
{
        if (--writes_left == 0)
                _exit(77);
}

static void whole(void)
{
        begin_ok(ALL, NOW);
        while (on(NOW, true) == 1)
                ;
}

static void test_killed_after_each_write(void **unused)
{
        struct seen s = { 0 };
        see(NOW, &s);
        char *first = s.clients[CA_CLUSTER];
        for (int n = 1;; n++) {
                int status;
                pid_t pid = fork();
                if (pid == 0) {
                        writes_left = n;
                        store_written = die_there;
                        whole();
                        _exit(0);
                }
                assert_int_equal(waitpid(pid, &status, 0), pid);
                see(NOW,
                        &s); /* whatever it left can be opened, and its leaves are believed by it */
                for (int ca = 0; ca < CA_COUNT; ca++)
                        assert_true(believed(s.clients[ca], s.cert[ca], NOW));
                while (on(NOW, true) == 1)
                        ;
                see(NOW, &s);
                assert_null(s.sa_other);
                if (WEXITSTATUS(status) == 0)
                        break;
                assert_int_equal(WEXITSTATUS(status), 77);
                assert_true(n < 200);
        }
        assert_string_not_equal(first, s.clients[CA_CLUSTER]);
}

/* A leaf is issued anew when it is asked for, and only for the nodes that are named. */
static void test_renew(void **unused)
{
        struct identity id;
        struct node_identity a, b;
        const char *names[] = { nodes[2].name };
        const struct strings some = { .n = 1, .v = names };
        char *first[2];
        open_ok(&id, NOW);
        for (size_t i = 0; i < 2; i++) {
                node_ok(&id, 2 + i, &a);
                first[i] = arena_strdup(&arena, a.leaf[LEAF_KUBELET_SERVER].cert);
                node_identity_release(&a);
        }
        id.renew = true;
        id.renew_nodes = &some;
        node_ok(&id, 2, &a);
        node_ok(&id, 3, &b);
        assert_string_not_equal(first[0], a.leaf[LEAF_KUBELET_SERVER].cert);
        assert_string_equal(first[1], b.leaf[LEAF_KUBELET_SERVER].cert);
        assert_true(identity_signed(&id, CA_CLUSTER, a.leaf[LEAF_KUBELET_SERVER].cert));
        assert_false(identity_signed(&id, CA_ETCD, a.leaf[LEAF_KUBELET_SERVER].cert));
        id.now = NOW + YEAR;
        assert_false(identity_signed(&id, CA_CLUSTER, a.leaf[LEAF_KUBELET_SERVER].cert));
        assert_false(identity_signed(&id, CA_CLUSTER, ""));
        node_identity_release(&a);
        node_identity_release(&b);
        identity_release(&id);
}

static void test_describe(void **unused)
{
        struct identity id;
        struct node_identity n;
        struct cert_info i;
        const char *rest;
        open_ok(&id, NOW);
        node_ok(&id, 2, &n);
        assert_true(cert_describe(n.leaf[LEAF_KUBELET_SERVER].cert, &i, &rest));
        char *subject_wanted = arena_printf(&arena, "system:node:%s (system:nodes)", nodes[2].name);
        assert_string_equal(i.subject, subject_wanted);
        assert_string_equal(i.issuer, "kubernetes");
        assert_int_equal(i.to, NOW + YEAR);
        assert_false(i.authority || cert_due(&i, NOW));
        assert_true(cert_due(&i, NOW + YEAR - DAY));
        assert_false(cert_describe(rest, &i, NULL) || cert_describe("", &i, NULL));
        node_identity_release(&n);
        identity_release(&id);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_phases),
                T(test_old_pods),
                T(test_old_tokens),
                T(test_one_at_a_time),
                T(test_encrypt),
                T(test_killed_after_each_write),
                T(test_renew),
                T(test_describe),
        };
        return cmocka_run_group_tests_name("rotation", tests, NULL, NULL);
}
