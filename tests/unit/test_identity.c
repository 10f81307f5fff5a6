/* The Identity on disk: a second run changes nothing, a run killed anywhere is mended, damage is
 * refused. */
#include "pki_fixture.h"

static void test_second_run_changes_nothing(void **unused)
{
        struct str a CLEANUP(str_release) = { 0 }, b CLEANUP(str_release) = { 0 };
        cluster.api.load_balancer = "lb.example.net:443";
        cluster.services.dex.host = "dex.example.net";
        run_all(NOW);
        tree_text(state, &a);
        run_all(NOW + DAY);
        tree_text(state, &b);
        assert_string_equal(str_text(&a), str_text(&b));
        assert_non_null(strstr(a.data, "/pki/lb.key 100600 "));
        assert_non_null(strstr(a.data, "/nodes 40700 "));
        assert_null(strstr(a.data, "creating"));
        assert_null(strstr(a.data, ".tmp."));
}

static void test_first_run(void **unused)
{
        struct identity id, again;
        open_ok(&id, NOW);
        assert_true(id.created);
        assert_int_equal(strlen(id.prefix), 5);
        assert_true(id.prefix[0] >= 'a' && id.prefix[0] <= 'z');
        assert_null(id.token_id); /* no bootstrap token stands */
        assert_int_equal(strlen(id.certificate_key), 64);
        assert_int_equal(strlen(id.encryption_key), 44);
        assert_int_equal(strlen(id.vrrp_password), 8);
        assert_true(has_prefix(id.sa_key, "-----BEGIN EC PRIVATE KEY-----\n") &&
                    has_prefix(id.sa_pub, "-----BEGIN PUBLIC KEY-----\n"));
        assert_true(!id.lb.cert && !id.dex.cert);
        /* the same again, another for another purpose, and nothing that would tell the key */
        struct arena a CLEANUP(arena_release) = { 0 };
        const char *cloud = identity_secret(&id, "cloud", &a);
        assert_int_equal(strlen(cloud), 64);
        assert_string_equal(cloud, identity_secret(&id, "cloud", &a));
        assert_string_not_equal(cloud, identity_secret(&id, "other", &a));
        assert_null(identity_secret(&(struct identity){ 0 }, "cloud", &a));
        for (int ca = 0; ca < CA_COUNT; ca++) {
                char *cn CLEANUP(free_p) = subject(id.ca[ca].x509, NID_commonName);
                assert_string_equal(cn, ca_table[ca].cn);
                assert_string_equal(id.ca[ca].chain, "");
                assert_string_equal(id.ca[ca].bundle, id.ca[ca].cert);
                assert_int_equal(asn1_time(X509_get0_notAfter(id.ca[ca].x509)), NOW + 10 * YEAR);
                assert_int_equal(asn1_time(X509_get0_notBefore(id.ca[ca].x509)), NOW - 300);
        }
        char *secret CLEANUP(free_p) = xstrdup(id.vrrp_password),
                     *key CLEANUP(free_p) = xstrdup(id.ca[0].key);
        identity_release(&id);
        open_ok(&again, NOW);
        assert_false(again.created);
        assert_string_equal(again.vrrp_password, secret);
        assert_string_equal(again.ca[0].key, key);
        identity_release(&again);
}

/* A leaf file cut short or with a wrong byte anywhere still gives leaves that hold. */
static void test_damaged_node_file(void **unused)
{
        struct identity id;
        struct node_identity n;
        open_ok(&id, NOW);
        node_ok(&id, 2, &n);
        node_identity_release(&n);
        char *path CLEANUP(free_p) = path_join(dir, "nodes/w1.pem"),
                   *good CLEANUP(free_p) = get(path);
        size_t len = strlen(good);
        for (size_t at = 0; at < len; at += 61) {
                char *bad CLEANUP(free_p) = xstrdup(good);
                if (at % 2)
                        bad[at] = 0;
                else
                        bad[at] = bad[at] == 'A' ? 'B' : 'A';
                put(path, bad);
                node_ok(&id, 2, &n);
                for (int l = LEAF_KUBELET_CLIENT; l < LEAF_COUNT; l++)
                        check_leaf(&n.leaf[l], &id.ca[CA_CLUSTER],
                                l == LEAF_KUBELET_SERVER ? USAGE_SERVER : USAGE_CLIENT, NOW);
                node_identity_release(&n);
        }
        char *kept CLEANUP(free_p) = get(path);
        kept[strlen(kept) - 2] ^= 1; /* only the digest is wrong: the leaves are kept */
        put(path, kept);
        node_ok(&id, 2, &n);
        assert_non_null(strstr(kept, n.leaf[LEAF_FLANNEL].key));
        node_identity_release(&n);
        identity_release(&id);
}

/* A state of before still says which token the cluster was made with: up takes that one out of the
 * API. */
static void test_token_of_before(void **unused)
{
        struct identity id;
        open_ok(&id, NOW);
        identity_release(&id);
        char *path CLEANUP(free_p) = path_join(dir, "identity.json"),
                   *text CLEANUP(free_p) = get(path);
        assert_null(strstr(text, "token"));
        char *before CLEANUP(free_p) =
                xasprintf("{\"tokenID\": \"abcdef\", \"tokenSecret\": \"0123456789abcdef\",%s",
                        strchr(text, '{') + 1);
        put(path, before);
        open_ok(&id, NOW);
        assert_string_equal(id.token_id, "abcdef");
        identity_release(&id);
}

static int writes_left;
static void die_at_zero(const char *path)
{
        if (writes_left-- == 0)
                _exit(9);
}

/* Runs the first run in a child that dies after `k` writes; false when it finished before. */
static bool killed_after(int k)
{
        pid_t pid = fork();
        if (pid == 0) {
                struct identity id;
                struct error err = { 0 };
                writes_left = k;
                store_written = die_at_zero;
                _exit(identity_open(state, &cluster, NOW, &id, &err) < 0 ? 1 : 0);
        }
        int status = -1;
        assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == 9 || WEXITSTATUS(status) == 0);
        return WEXITSTATUS(status) == 9;
}

static void test_killed_after_each_write(void **unused)
{
        struct error err CLEANUP(error_release) = { 0 };
        int k = 0;
        cluster.services.dex.host = "dex.example.net";
        for (; killed_after(k); k++) {
                killed_after(k / 2); /* and again while it is mended */
                char *half CLEANUP(free_p) = path_join(dir, "pki/ca.key.tmp.4711");
                if (k > 0)
                        put(half, "half");
                run_all(NOW);
                assert_int_not_equal(access(half, F_OK), 0);
                struct str a CLEANUP(str_release) = { 0 }, b CLEANUP(str_release) = { 0 };
                tree_text(state, &a);
                assert_null(strstr(a.data, "creating"));
                run_all(NOW);
                tree_text(state, &b);
                assert_string_equal(a.data, b.data);
                assert_int_equal(dir_remove(state, &err), 0);
        }
        assert_int_equal(k, 12); /* the mark, 3 × 2, 2, identity.json, 2 */
}

static const char *const treasures[] = { "identity.json", "pki/ca.key", "pki/ca.crt",
        "pki/etcd/ca.key", "pki/etcd/ca.crt", "pki/front-proxy-ca.key", "pki/front-proxy-ca.crt",
        "pki/sa.key", "pki/sa.pub" };

/* Whatever is missing from an Identity that was in use, nothing is made up: only sa.pub can be
 * computed. */
static void test_missing_subsets(void **unused)
{
        char *text[ARRAY_SIZE(treasures)];
        run_all(NOW);
        for (size_t i = 0; i < ARRAY_SIZE(treasures); i++) {
                char *path CLEANUP(free_p) = path_join(dir, treasures[i]);
                text[i] = get(path);
        }
        for (unsigned set = 1; set < 1u << ARRAY_SIZE(treasures); set++) {
                for (size_t i = 0; i < ARRAY_SIZE(treasures); i++) {
                        char *path CLEANUP(free_p) = path_join(dir, treasures[i]);
                        if (set & 1u << i)
                                unlink(path);
                        else
                                put(path, text[i]);
                }
                if (set == 1u << (ARRAY_SIZE(treasures) - 1))
                        run_all(NOW);
                else
                        open_refused(NOW, EXIT_STATE, " is missing");
        }
        for (size_t i = 0; i < ARRAY_SIZE(treasures); i++) {
                char *path CLEANUP(free_p) = path_join(dir, treasures[i]);
                put(path, text[i]);
                free(text[i]);
        }
        run_all(NOW);
}

static void test_damaged_authorities(void **unused)
{
        run_all(NOW);
        for (size_t i = 0; i + 1 < ARRAY_SIZE(treasures); i++) {
                char *path CLEANUP(free_p) = path_join(dir, treasures[i]),
                           *good CLEANUP(free_p) = get(path);
                char *cut CLEANUP(free_p) = xstrndup(good, strlen(good) / 2);
                put(path, "");
                open_refused(NOW, EXIT_STATE, "empty");
                put(path, "garbage\n");
                open_refused(NOW, EXIT_STATE, treasures[i]);
                put(path, cut);
                open_refused(NOW, EXIT_STATE, treasures[i]);
                put(path, good);
                chmod(path, 0644);
                if (!has_suffix(path, ".crt"))
                        open_refused(NOW, EXIT_STATE, "is open to other users (mode 0644)");
                unlink(path);
                assert_int_equal(symlink("/dev/null", path), 0);
                open_refused(NOW, EXIT_STATE, "is a symbolic link");
                unlink(path);
                put(path, good);
        }
        char *a CLEANUP(free_p) = path_join(dir, "pki/ca.key"),
                *b CLEANUP(free_p) = path_join(dir, "pki/etcd/ca.key"),
                *key CLEANUP(free_p) = get(b);
        put(a, key);
        open_refused(NOW, EXIT_STATE, "pki/ca.key: the key does not belong to the certificate in ");
}

static void test_foreign_identity(void **unused)
{
        run_all(NOW);
        char *other CLEANUP(free_p) = path_join(state, "other");
        assert_int_equal(rename(dir, other), 0);
        cluster.name = "other";
        open_refused(NOW, EXIT_STATE, "is the Identity of the cluster \"test\"");
}

static void test_state_directory(void **unused)
{
        char *file CLEANUP(free_p) = path_join(tmp, "file"),
                   *real CLEANUP(free_p) = path_join(tmp, "real");
        put(file, "x");
        assert_int_equal(rename(file, state), 0);
        open_refused(NOW, EXIT_STATE, "is not a directory");
        unlink(state);
        mkdir(real, 0700);
        assert_int_equal(symlink(real, state), 0);
        open_refused(NOW, EXIT_STATE, "is a symbolic link");
        char *slash CLEANUP(free_p) = xasprintf("%s//", state), *plain = state;
        state = slash;
        open_refused(NOW, EXIT_STATE, "is a symbolic link");
        state = plain;
        unlink(state);
        run_all(NOW);
        chmod(dir, 0755);
        open_refused(NOW, EXIT_STATE, "is open to other users (mode 0755)");
        chmod(dir, 0700);
        chmod(state, 0777);
        open_refused(NOW, EXIT_STATE, "is open to other users (mode 0777)");
        chmod(state, 0755);
        run_all(NOW);
        if (geteuid() != 0)
                return;
        assert_int_equal(chown(dir, 12345, 12345), 0);
        open_refused(NOW, EXIT_STATE, "belongs to user 12345, but slipway runs as root");
}

static void test_lock(void **unused)
{
        int ready[2], done[2];
        char byte;
        assert_true(pipe(ready) == 0 && pipe(done) == 0);
        pid_t pid = fork();
        if (pid == 0) {
                struct identity id;
                struct error err = { 0 };
                int r = identity_open(state, &cluster, NOW, &id, &err);
                (void)!write(ready[1], r < 0 ? "n" : "y", 1);
                close(done[1]);
                (void)!read(done[0], &byte, 1);
                _exit(0);
        }
        assert_true(read(ready[0], &byte, 1) == 1 && byte == 'y');
        char *who CLEANUP(free_p) = xasprintf("is locked by slipway, process %d of ", (int)pid);
        open_refused(NOW, EXIT_STATE, who);
        kill(pid, SIGKILL); /* the lock goes with the process */
        waitpid(pid, NULL, 0);
        run_all(NOW);
        close(ready[0]), close(ready[1]), close(done[0]), close(done[1]);
}

/* Every write fails, as on a full disk. */
static int full_disk(bool first)
{
        pid_t pid = fork();
        if (pid == 0) {
                struct identity id;
                struct node_identity n;
                struct error err = { 0 };
                struct rlimit none = { 0, 0 };
                signal(SIGXFSZ, SIG_IGN);
                setrlimit(RLIMIT_FSIZE, &none);
                int r = identity_open(state, &cluster, NOW, &id, &err);
                if (!first && r == 0)
                        r = identity_node(&id, &cluster, &nodes[2], &n, &err);
                _exit(r < 0 && strstr(err.message, "cannot write") ? 7 : 1);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        return WEXITSTATUS(status);
}

static void test_full_disk(void **unused)
{
        char *pki CLEANUP(free_p) = path_join(dir, "pki"),
                  *mark CLEANUP(free_p) = path_join(dir, "creating"),
                  *node CLEANUP(free_p) = path_join(dir, "nodes/w1.pem");
        struct identity id;
        assert_int_equal(full_disk(true), 7);
        assert_int_not_equal(access(pki, F_OK), 0);
        assert_int_not_equal(access(mark, F_OK), 0);
        open_ok(&id, NOW);
        assert_true(id.created);
        identity_release(&id);
        assert_int_equal(full_disk(false), 7);
        assert_int_not_equal(access(node, F_OK), 0);
        run_all(NOW);
}

/* What was only looked at is not remembered; what is kept is what was handed out. */
static void test_held(void **unused)
{
        char *node CLEANUP(free_p) = path_join(dir, "nodes/w1.pem");
        struct identity id;
        struct node_identity out, again;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, NOW);
        id.holding = true;
        assert_int_equal(identity_node(&id, &cluster, &nodes[2], &out, &err), 0);
        assert_true(out.held);
        assert_int_not_equal(access(node, F_OK), 0);
        id.holding = false;
        assert_int_equal(identity_keep(&id, &nodes[2], &out, &err), 0);
        assert_false(out.held);
        assert_int_equal(identity_node(&id, &cluster, &nodes[2], &again, &err), 0);
        assert_string_equal(
                again.leaf[LEAF_KUBELET_CLIENT].cert, out.leaf[LEAF_KUBELET_CLIENT].cert);
        node_identity_release(&again);
        id.holding = true;
        assert_int_equal(identity_node(&id, &cluster, &nodes[2], &again, &err), 0);
        assert_false(again.held); /* nothing new */
        node_identity_release(&again);
        node_identity_release(&out);
        identity_release(&id);
}

/* Memory does not grow with the nodes. */
static void test_many_nodes(void **unused)
{
        struct identity id;
        size_t before = 0;
        open_ok(&id, NOW);
        for (size_t i = 0; i < 600; i++) {
                char name[32];
                struct node n = nodes[2];
                struct node_identity out;
                struct error err CLEANUP(error_release) = { 0 };
                snprintf(name, sizeof(name), "worker-%zu",
                        i / 2); /* every second time from its file */
                n.name = name;
                assert_int_equal(identity_node(&id, &cluster, &n, &out, &err), 0);
                node_identity_release(&out);
                if (i == 100)
                        before = mallinfo2().uordblks;
        }
        assert_true(mallinfo2().uordblks <= before + (16 << 10));
        identity_release(&id);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_first_run),
                T(test_token_of_before),
                T(test_second_run_changes_nothing),
                T(test_damaged_node_file),
                T(test_killed_after_each_write),
                T(test_missing_subsets),
                T(test_damaged_authorities),
                T(test_foreign_identity),
                T(test_state_directory),
                T(test_lock),
                T(test_full_disk),
                T(test_held),
                T(test_many_nodes),
        };
        return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
