/* The record of the cluster's hosts, and whom it lets a run connect to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/etcd/etcd.h"
#include "cluster/site/proven.h"
#include "cluster/site/removed.h"

#define ID_W3 "0123456789abcdef0123456789abcdef"
#define KEY   "ssh-ed25519 SHA256:abc"

static char dir[] = "/tmp/slipway-record-XXXXXX";
static struct arena arena;

static int setup(void **state)
{
        assert_non_null(mkdtemp(memcpy(dir, "/tmp/slipway-record-XXXXXX", sizeof(dir))));
        return 0;
}

static int teardown(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        arena_release(&arena);
        return dir_remove(dir, &err);
}

static void put(const char *name, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, name);
        assert_int_equal(file_write(path, text, strlen(text), 0600, 0, NULL, &err), 0);
}

static bool there(const char *name)
{
        char *path CLEANUP(free_p) = path_join(dir, name);
        return access(path, F_OK) == 0;
}

static struct host_records reads(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct host_records r;
        if (records_read(dir, &arena, &r, &err) < 0)
                fail_msg("%s", err.message);
        return r;
}

static void refuses(const char *part)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct host_records r;
        assert_true(records_read(dir, &arena, &r, &err) < 0);
        assert_int_equal(err.status, EXIT_STATE);
        assert_non_null(err.hint);
        if (!strstr(err.message, part))
                fail_msg("\"%s\" is not in \"%s\"", part, err.message);
}

const void *agent_bytes(size_t *n)
{
        *n = 0;
        return "";
}

/* ---- the file ---- */

static void test_round(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct host_records r = reads();
        struct stat st;
        assert_int_equal(r.n, 0);
        assert_false(r.existed);
        for (int i = 0; i < 40; i++)
                *records_put(&r, &arena, arena_printf(&arena, "n%d", i)) =
                        (struct host_record){ .name = arena_printf(&arena, "n%d", i),
                                .address = "host.example.net",
                                .user = "admin",
                                .port = 2222,
                                .ip = "192.0.2.7",
                                .host_key = KEY,
                                .machine_id = ID_W3,
                                .healthy = "1.26.3",
                                .unproven = i == 38 ? "1.27.1" : NULL,
                                .roles = ROLE_WORKER };
        assert_ptr_equal(records_put(&r, &arena, "n7"), records_find(&r, "n7"));
        records_drop(&r, "n0");
        records_drop(&r, "n39");
        records_drop(&r, "nobody");
        r.existed = r.adopted = true;
        assert_int_equal(records_write(dir, &r, &err), 0);
        char *path CLEANUP(free_p) = path_join(dir, "record.json");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        r = reads();
        assert_int_equal(r.n, 38);
        assert_true(r.existed && r.adopted && !r.old);
        const struct host_record *h = records_find(&r, "n38");
        assert_non_null(h);
        assert_null(records_find(&r, "n0"));
        assert_string_equal(h->address, "host.example.net");
        assert_string_equal(h->user, "admin");
        assert_string_equal(h->host_key, KEY);
        assert_string_equal(h->machine_id, ID_W3);
        assert_string_equal(h->ip, "192.0.2.7");
        assert_int_equal(h->port, 2222);
        assert_int_equal(h->roles, ROLE_WORKER);
        assert_string_equal(h->healthy, "1.26.3");
        assert_string_equal(h->unproven, "1.27.1");
        assert_null(records_find(&r, "n37")->unproven);
}

/* A record without versions, as slipway wrote it before it kept them. */
static void test_without_versions(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        put("record.json",
                "{\"version\":1,\"existed\":true,\"nodes\":[{\"name\":\"c1\",\"address\":\"192.0.2.1\",\"roles\":3}]}");
        struct host_records r = reads();
        assert_int_equal(r.n, 1);
        assert_null(r.v[0].healthy);
        assert_null(r.v[0].unproven);
        assert_int_equal(records_write(dir, &r, &err), 0);
        assert_int_equal(reads().n, 1);
}

/* What the version before wrote: its control-plane and etcd nodes, and the first of all nothing but
 * the file. */
static void test_upgrade(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        put("born", "{\"nodes\":[{\"name\":\"c1\",\"address\":\"192.0.2.1\",\"roles\":3}]}");
        struct host_records r = reads();
        assert_true(r.existed && r.old);
        assert_int_equal(r.n, 1);
        assert_string_equal(r.v[0].address, "192.0.2.1");
        assert_null(r.v[0].host_key);
        assert_int_equal(records_write(dir, &r, &err), 0);
        assert_false(there("born"));
        r = reads();
        assert_true(r.existed && !r.old && r.n == 1);
        put("born", "");
        assert_int_equal(reads().n, 1); /* the new one counts */
        char *path CLEANUP(free_p) = path_join(dir, "record.json");
        unlink(path);
        r = reads();
        assert_true(r.existed && r.n == 0);
}

static void test_damaged(void **state)
{
        static const char *const bad[] = { "", "{", "[]", "{\"version\":1}",
                "{\"version\":1,\"nodes\":[1]}", "{\"version\":1,\"nodes\":[{\"address\":\"x\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\"},{\"name\":\"a\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"address\":\"-oProxyCommand=x\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"address\":\"b\\u001b[2J\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"port\":70000}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"machineId\":5}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"healthyVersion\":1.26}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"healthyVersion\":\"newest\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"healthyVersion\":\"1.26.3/../x\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"healthyVersion\":\"1.26.3\",\"unprovenVersion\":\"1.27\"}]}",
                "{\"version\":1,\"nodes\":[{\"name\":\"a\",\"unprovenVersion\":\"1.27.1\"}]}" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                put("record.json", bad[i]);
                refuses("is damaged");
        }
        put("record.json", "{\"version\":2,\"nodes\":[]}");
        refuses("newer slipway");
        char *huge CLEANUP(free_p) = xmalloc((9 << 20) + 1);
        memset(huge, ' ', 9 << 20);
        huge[9 << 20] = 0;
        put("record.json", huge);
        refuses("record");
}

/* ---- whom a run connects to ---- */

static struct pool control = { .name = "control", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD };
static struct node nodes[1];
static struct cluster cluster;
static struct site site;
static size_t asked;
static const char *other;

static int finds(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err)
{
        asked++;
        *out = (struct machine){ .node = n,
                .state = MACHINE_RUNNING,
                .target = { .name = n->name, .host = n->address, .accept_new = true } };
        return 0;
}

static int others(struct provider_run *run, struct strings *out, struct error *err)
{
        if (other)
                strings_add(&arena, out, other);
        return 0;
}

static const struct provider_ops ops = { .find = finds, .others = others };

/* c1 is in the file; w3 was, and is in the record. */
static void site_new(void)
{
        nodes[0] = (struct node){ .name = "c1", .address = "192.0.2.1", .pool = &control };
        assert_true(ip_parse("192.0.2.1", &nodes[0].ip[0]));
        cluster = (struct cluster){ .name = "demo", .nodes = nodes, .node_count = 1 };
        site = (struct site){
                .cluster = &cluster, .arena = &arena, .ops = &ops, .base = event_base_new()
        };
        site.identity.dir = dir;
        run_init(&site.run, site.base, &arena, "test", "demo");
        struct host_record *h = records_put(&site.found.record, &arena, "w3");
        h->address = h->ip = "192.0.2.3";
        h->host_key = KEY;
        h->machine_id = ID_W3;
        h->roles = ROLE_WORKER;
        asked = 0;
        other = NULL;
}

static void site_end(void)
{
        for (size_t i = 0; i < site.found.removed_count; i++)
                json_decref(site.found.removed[i]->seen.object);
        json_decref(site.found.nodes);
        run_release(&site.run);
        event_base_free(site.base);
}

static json_t *node_object(const char *name, const char *ip)
{
        return json_pack("{s:{s:s, s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata", "name", name,
                "labels", "slipway.dev/pool", "worker", "status", "addresses", "type", "InternalIP",
                "address", ip);
}

static void observes(const char *name, const char *ip)
{
        site.found.nodes = json_pack("{s:[o]}", "items", node_object(name, ip));
        removed_steps(&site, run_step(&site.run, "observe", NULL, step_unchanged, NULL));
        removed_observed(&site);
        removed_connect(&site, run_step(&site.run, "plan", NULL, step_unchanged, NULL));
}

/* The API's address is told; the recorded one is used, strictly. */
static void test_recorded(void **state)
{
        site_new();
        observes("w3", "192.0.2.1");
        assert_int_equal(site.found.removed_count, 1);
        const struct member *m = site.found.removed[0];
        const struct link_target *t = &m->machine->target;
        assert_true(m->seen.known && m->run.connect && !m->seen.refused);
        assert_string_equal(t->host, "192.0.2.3");
        assert_true(t->strict && !t->accept_new);
        assert_string_equal(t->host_key, KEY);
        assert_string_equal(t->machine_id, ID_W3);
        assert_string_equal(m->plan.note,
                "the API says its address is 192.0.2.1: its recorded address 192.0.2.3 is used");
        site_end();
}

static void test_forged(void **state)
{
        site_new();
        site.found.record.n = 0;
        observes("forged", "192.0.2.99");
        assert_int_equal(site.found.removed_count, 1);
        assert_false(site.found.removed[0]->seen.known);
        assert_null(site.found.removed[0]->run.connect);
        assert_null(site.found.removed[0]->node->address);
        assert_int_equal(
                asked, 0); /* nobody even asks how it would be reached, let alone for a password */
        site_end();
}

static void test_forged_peer(void **state)
{
        static struct etcd_peer peers[] = {
                { .name = "c1", .peer = "https://192.0.2.1:2380", .client = "" },
                { .name = "../evil", .peer = "https://192.0.2.99:2380", .client = "" }
        };
        site_new();
        site.found.record.n = 0;
        site.found.peers = peers;
        site.found.peer_count = 2;
        removed_observed(&site);
        removed_connect(&site, run_step(&site.run, "plan", NULL, step_unchanged, NULL));
        assert_int_equal(site.found.removed_count, 1);
        assert_false(site.found.removed[0]->seen.known || site.found.removed[0]->run.connect);
        assert_int_equal(asked, 0);
        site_end();
}

/* The recorded address is another node's in the file: whatever answers there is that one. */
static void test_taken(void **state)
{
        static const char *const addresses[][2] = { { "192.0.2.1", "192.0.2.3" },
                { "192.0.2.3", "192.0.2.1" } };
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
                site_new();
                site.found.record.v[0].address = addresses[i][0];
                site.found.record.v[0].ip = addresses[i][1];
                observes("w3", "192.0.2.3");
                assert_null(site.found.removed[0]->run.connect);
                assert_non_null(
                        strstr(site.found.removed[0]->seen.refused, "is node c1's in the file"));
                site_end();
        }
}

/* A machine that the provider made is known by it, at no address of the API's. */
static void test_machine(void **state)
{
        site_new();
        site.found.record.n = 0;
        other = "w4";
        observes("w4", "192.0.2.1");
        assert_int_equal(site.found.removed_count, 1);
        assert_true(site.found.removed[0]->seen.known);
        assert_null(site.found.removed[0]->node->address);
        assert_null(site.found.removed[0]->run.connect);
        site_end();
}

static void test_replaced(void **state)
{
        struct member m = { .site = &site,
                .node = &(struct node){ .name = "w3", .pool = &control },
                .seen.said = json_object() };
        site_new();
        assert_null(member_replaced(&m));
        json_object_set_new(m.seen.said, "machineId", json_string(ID_W3));
        assert_null(member_replaced(&m));
        json_object_set_new(
                m.seen.said, "machineId", json_string("ffffffffffffffffffffffffffffffff"));
        assert_non_null(strstr(member_replaced(&m), "was reinstalled or replaced"));
        member_record(&m);
        assert_null(member_replaced(&m));
        assert_string_equal(records_find(&site.found.record, "w3")->machine_id,
                "ffffffffffffffffffffffffffffffff");
        assert_int_equal(reads().n, 1);
        site.found.record.existed = true;
        site_record_prune(&site); /* w3 is not in the file */
        struct host_records r = reads();
        assert_true(r.existed && r.n == 0);
        json_decref(m.seen.said);
        site_end();
}

/* ---- the version with which a node was last healthy ---- */

static void row_is(const char *healthy, const char *unproven)
{
        struct host_records r = reads();
        const struct host_record *h = records_find(&r, "c1");
        assert_non_null(h);
        if (healthy)
                assert_string_equal(h->healthy, healthy);
        else
                assert_null(h->healthy);
        if (unproven)
                assert_string_equal(h->unproven, unproven);
        else
                assert_null(h->unproven);
}

static void wants(const char *version)
{
        assert_true(version_parse(version, &cluster.kubernetes));
        cluster.kubernetes.text = version;
}

/* Each line on disk is what a run that is killed there leaves. */
static void test_proven(void **state)
{
        struct member m = { .site = &site, .node = &nodes[0], .seen.said = json_object() };
        site_new();
        wants("1.27.1");
        proven_begin(&m, "1.26.3"); /* it has no row: nothing to keep */
        assert_null(member_healthy_version(&m));
        json_object_set_new(m.seen.said, "machineId", json_string(ID_W3));
        member_record(&m);
        row_is(NULL, NULL);
        proven_begin(&m, "1.26.3-odd"); /* what the API reports may be anything */
        row_is(NULL, NULL);
        proven_begin(&m, "1.26.3");
        row_is("1.26.3", "1.27.1");
        assert_true(member_unproven(&m) && member_unproven_wanted(&m));
        member_record(&m);          /* the next run */
        proven_begin(&m, "1.27.1"); /* its Node reports the version that was never healthy */
        row_is("1.26.3", "1.27.1");
        proven_back(&m);
        row_is("1.26.3", NULL);
        assert_false(member_unproven(&m) || member_unproven_wanted(&m));
        assert_string_equal(member_healthy_version(&m), "1.26.3");
        proven_begin(&m, "1.26.3");
        proven_healthy(&m);
        row_is("1.27.1", NULL);
        wants("1.26.3"); /* rollback */
        proven_begin(&m, "1.27.1");
        row_is("1.27.1", "1.26.3");
        wants("1.27.1"); /* and the file has the newer one again: it was healthy with that */
        assert_true(member_unproven(&m) && !member_unproven_wanted(&m));
        /* another machine with the same name was never healthy */
        json_object_set_new(
                m.seen.said, "machineId", json_string("ffffffffffffffffffffffffffffffff"));
        assert_null(member_healthy_version(&m));
        assert_false(member_unproven(&m));
        member_record(&m);
        row_is(NULL, NULL);
        json_decref(m.seen.said);
        site_end();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = { T(test_round), T(test_without_versions),
                T(test_upgrade), T(test_damaged), T(test_proven), T(test_recorded), T(test_forged),
                T(test_forged_peer), T(test_taken), T(test_machine), T(test_replaced) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
