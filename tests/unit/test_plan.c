/* The plan, from what was observed: what restarts, who is drained, how etcd is joined, and what is refused before anything changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/etcd.h"
#include "cluster/plan.h"

#define COUNT 5 /* c1 c2 c3 w1 w2; others are gone */

static struct pool control = { .name = "control", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD }, worker = { .name = "worker", .roles = ROLE_WORKER };
static struct node nodes[COUNT + 2];
static struct machine machines[COUNT + 2];
static struct member members[COUNT], gone[2], *const gone_list[] = { &gone[0], &gone[1] };
static struct etcd_peer peers[6];
static const struct provider_ops makes = { .makes_machines = true };
static struct cluster cluster;
static struct site site;
static struct arena arena;
static struct step connected;
static char dir[] = "/tmp/slipway-plan-XXXXXX";

static void member_set(struct member *m, size_t i, const char *name, const struct pool *pool)
{
        nodes[i] = (struct node){ .name = name, .pool = pool };
        assert_true(ip_parse("192.0.2.1", &nodes[i].ip[0]));
        nodes[i].ip[0].b[3] = (uint8_t)(i + 1);
        machines[i] = (struct machine){ .state = MACHINE_RUNNING };
        *m = (struct member){ .site = &site, .node = &nodes[i], .machine = &machines[i], .connect = &connected, .link = (struct link *)&connected };
        m->object = json_pack("{s:{s:{s:s}}}", "status", "nodeInfo", "kubeletVersion", "v1.36.3");
        m->etcd_well = pool->roles & ROLE_ETCD;
        m->said = pool->roles & ROLE_ETCD ? json_pack("{s:{}}", "etcd") : json_object();
}

/* etcd's own list: `n` control-plane nodes that have started. */
static void peers_set(size_t n)
{
        static const char *const names[] = { "c1", "c2", "c3", "g1", "g2" };
        for (size_t i = 0; i < n; i++)
                peers[i] = (struct etcd_peer){ .id = i + 1, .name = names[i], .peer = "https://192.0.2.99:2380", .client = "https://192.0.2.99:2379" };
        site.peer_count = n;
}

/* A live cluster that is as the file says. */
static int setup(void **state)
{
        assert_non_null(mkdtemp(memcpy(dir, "/tmp/slipway-plan-XXXXXX", sizeof(dir))));
        cluster = (struct cluster){ .name = "demo", .nodes = nodes, .node_count = COUNT };
        assert_true(version_parse("1.36.3", &cluster.kubernetes));
        cluster.kubernetes.text = "1.36.3";
        site = (struct site){ .cluster = &cluster,
                .members = members,
                .count = COUNT,
                .gone = (struct member **)gone_list,
                .peers = peers,
                .ops = &makes,
                .live = true,
                .api_up = true };
        site.arena = &arena;
        site.identity.dir = dir;
        member_set(&members[0], 0, "c1", &control);
        member_set(&members[1], 1, "c2", &control);
        member_set(&members[2], 2, "c3", &control);
        member_set(&members[3], 3, "w1", &worker);
        member_set(&members[4], 4, "w2", &worker);
        peers_set(3);
        return 0;
}

static int teardown(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < COUNT + site.gone_count; i++) {
                struct member *m = i < COUNT ? &members[i] : &gone[i - COUNT];
                json_decref(m->object);
                json_decref(m->said);
        }
        free(site.version);
        arena_release(&arena);
        dir_remove(dir, &err);
        return 0;
}

static void leaves(const char *name, const struct pool *pool, bool answers)
{
        size_t i = site.gone_count++;
        member_set(&gone[i], COUNT + i, name, pool);
        gone[i].fate = FATE_REMOVE;
        gone[i].answers = answers;
        if (!answers)
                gone[i].link = NULL;
}

static void no_etcd_data(struct member *m) { json_object_del(m->said, "etcd"); }

static void changes(struct member *m, struct change *c, size_t n)
{
        m->fate = FATE_CHANGE;
        m->changes = c;
        m->change_count = n;
}

static void planned(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (plan_make(&site, &err) < 0)
                fail_msg("%s", err.message);
}

/* Refused, with a sentence that says `part`, a hint that says nothing was changed, and this exit status. */
static void refused(enum exit_status status, const char *part)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (plan_make(&site, &err) == 0)
                fail_msg("should be refused: %s", part);
        if (!strstr(err.message, part) || err.status != status || !err.hint || !strstr(err.hint, "nothing was changed"))
                fail_msg("status %d, message \"%s\", hint \"%s\"; expected \"%s\"", err.status, err.message, err.hint ? err.hint : "", part);
}

static void shows(const char *part)
{
        struct str text CLEANUP(str_release) = { 0 };
        plan_text(&site, true, &text);
        if (!strstr(str_text(&text), part))
                fail_msg("\"%s\" is not in:\n%s", part, str_text(&text));
}

/* ---- what starts again ---- */

static void test_part(void **state)
{
        static const struct {
                struct change change;
                unsigned part;
        } cases[] = {
                { { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/manifests/kube-apiserver.yaml", NULL }, PART_API },
                { { SPEC_FILE, STATE_REMOVED, "/etc/kubernetes/manifests/kube-scheduler.yaml", NULL }, PART_CONTROLLERS },
                { { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/manifests/kube-controller-manager.yaml", NULL }, PART_CONTROLLERS },
                { { SPEC_UNIT, STATE_RESTARTED, "etcd.service", NULL }, PART_ETCD },
                { { SPEC_UNIT, STATE_STARTED, "kubelet.service", NULL }, PART_KUBELET },
                { { SPEC_UNIT, STATE_REMOVED, "containerd.service", NULL }, PART_RUNTIME },
                { { SPEC_UNIT, STATE_CHANGED, "kubelet.service", NULL }, 0 },                     /* it is enabled, say: what runs goes on */
                { { SPEC_FILE, STATE_CHANGED, "/etc/systemd/system/kubelet.service", NULL }, 0 }, /* the unit says it, if it restarts */
                { { SPEC_UNIT, STATE_RESTARTED, "systemd-sysctl.service", NULL }, 0 },
                { { SPEC_ARTIFACT, STATE_CHANGED, "/usr/local/bin/kubelet", NULL }, 0 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(plan_part(&cases[i].change), cases[i].part);
}

static void restarts(unsigned parts, const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        plan_restarts(parts, &s);
        assert_string_equal(str_text(&s), text);
}

static void test_restarts(void **state)
{
        restarts(0, "");
        restarts(PART_KUBELET, "restarts the kubelet");
        restarts(PART_KUBELET | PART_API, "restarts the API server and the kubelet");
        restarts(PART_VIP | PART_ETCD | PART_RUNTIME, "restarts etcd, the container runtime and the virtual IP");
}

/* ---- fates ---- */

static void test_nothing_to_do(void **state)
{
        planned();
        assert_true(plan_empty(&site));
        shows("plan for demo: nothing to do, 5 nodes are as the file says\n");
}

static void test_change(void **state)
{
        struct change api[] = { { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/manifests/kube-apiserver.yaml", NULL } };
        struct change unit[] = { { SPEC_FILE, STATE_CHANGED, "/var/lib/kubelet/config.yaml", NULL }, { SPEC_UNIT, STATE_RESTARTED, "kubelet.service", NULL } };
        struct change quiet[] = { { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/audit.yaml", NULL } };
        changes(&members[0], api, 1);
        changes(&members[3], unit, 2);
        changes(&members[4], quiet, 1);
        planned();
        assert_false(plan_empty(&site));
        assert_int_equal(members[0].restarts, PART_API);
        assert_int_equal(members[3].restarts, PART_KUBELET);
        assert_false(members[3].drains); /* a changed flag disturbs no pod */
        shows("  c1        change   restarts the API server\n      change   file /etc/kubernetes/manifests/kube-apiserver.yaml\n");
        shows("  w2        change   disrupts nothing\n");
        shows("  2 nodes are as the file says\n");
        cluster.node_count = 1; /* c1 alone */
        shows("the API does not answer for some seconds");
}

static void test_drain(void **state)
{
        struct change runtime[] = { { SPEC_ARTIFACT, STATE_CHANGED, "/usr/local/bin/containerd", NULL } };
        struct change other[] = { { SPEC_ARTIFACT, STATE_CHANGED, "/opt/cni/bin/bridge", NULL } },
                      fresh[] = { { SPEC_ARTIFACT, STATE_CREATED, "/usr/bin/runc", NULL } };
        changes(&members[0], runtime, 1);
        changes(&members[1], other, 1);
        changes(&members[2], fresh, 1);
        changes(&members[3], other, 1);
        json_object_set_new(json_object_get(json_object_get(members[3].object, "status"), "nodeInfo"), "kubeletVersion", json_string("v1.36.2"));
        changes(&members[4], runtime, 1);
        json_decref(members[4].object);
        members[4].object = NULL; /* it is no node yet: nothing runs there */
        planned();
        assert_true(members[0].drains);
        assert_false(members[1].drains);
        assert_false(members[2].drains);
        assert_true(members[3].drains);
        assert_false(members[4].drains);
        assert_string_equal(member_version(&members[3]), "1.36.2");
        shows("  c1        change   drain it; disrupts nothing");
        site.api_up = false;
        members[0].drains = false;
        planned();
        assert_false(members[0].drains); /* nobody could be asked */
}

static void test_machines(void **state)
{
        members[3].connect = members[4].connect = NULL;
        machines[3].state = MACHINE_ABSENT;
        machines[4].state = MACHINE_STOPPED;
        planned();
        assert_int_equal(members[3].fate, FATE_MAKE);
        assert_int_equal(members[4].fate, FATE_START);
        shows("make its machine, then install everything");
        shows("start its machine, then mend what differs");
}

/* ---- etcd ---- */

static void test_join(void **state)
{
        no_etcd_data(&members[2]);
        members[2].fate = FATE_INSTALL;
        peers_set(2);
        planned();
        assert_true(members[2].joins && !members[2].promotes);
        assert_false(members[0].joins || members[3].joins);
        shows("install everything; its etcd joins as a learner and is promoted\n");
}

static void test_promote(void **state)
{
        peers[2].learner = true;
        planned();
        assert_true(members[2].promotes && !members[2].joins);
        assert_false(plan_empty(&site));
        shows("  c3        keep     its etcd is promoted\n");
}

/* The first run was stopped before it came to this node: all are born together, it is in the list and never started. */
static void test_not_begun(void **state)
{
        no_etcd_data(&members[2]);
        members[2].fate = FATE_INSTALL;
        peers[2] = (struct etcd_peer){ .id = 3, .name = "", .peer = "https://192.0.2.3:2380", .client = "" };
        planned();
        assert_false(members[2].joins);
        site_bear(&site, true); /* the cluster has lived: then it is one that lost its data */
        planned();
        assert_true(members[2].joins);
}

/* ---- refusals ---- */

static void test_quorum(void **state)
{
        /* all that answer stay: two of five dead members leave */
        peers_set(5);
        leaves("g1", &control, false);
        leaves("g2", &control, false);
        planned();
        /* two that live leave five */
        gone[0].link = gone[1].link = members[0].link;
        gone[0].answers = gone[1].answers = true;
        planned();
        /* but not while another two are dead */
        members[0].etcd_well = members[1].etcd_well = false;
        refused(EXIT_PREFLIGHT, "taking 2 of 5 etcd members away would leave 1 healthy of 3: etcd would lose its quorum");
        /* without etcd there is nothing to lose */
        site.live = false;
        planned();
}

/* Who comes is well before who lives leaves: also when all are replaced. */
static void test_quorum_replaced(void **state)
{
        for (size_t i = 0; i < 3; i++) {
                no_etcd_data(&members[i]);
                members[i].fate = FATE_INSTALL;
                members[i].etcd_well = false;
        }
        cluster.node_count = site.count = 1;
        peers[0] = (struct etcd_peer){ .id = 9, .name = "g1", .peer = "https://192.0.2.98:2380", .client = "https://192.0.2.98:2379" };
        site.peer_count = 1;
        leaves("g1", &control, true);
        planned();
        assert_true(members[0].joins);
        shows("its etcd joins as a learner and is promoted\n");
        /* a machine that is off is no promise */
        members[0].connect = NULL;
        machines[0].state = MACHINE_STOPPED;
        refused(EXIT_PREFLIGHT, "taking 1 of 1 etcd members away would leave 0 healthy of 0");
        site.count = cluster.node_count = COUNT;
}

/* The file names others than it did, and who has the data does not answer. */
static void test_former_is_off(void **state)
{
        struct member former = { .site = &site, .node = &nodes[COUNT] };
        for (size_t i = 0; i < 3; i++)
                no_etcd_data(&members[i]);
        nodes[COUNT] = (struct node){ .name = "old", .pool = &control };
        site.former = &former;
        site.former_count = 1;
        site.live = false;
        site_bear(&site, true);
        refused(EXIT_UNHEALTHY, "no etcd member in the file has data, and old, which had it, is no longer in the file and does not answer");
        site.former_count = 0;
}

/* What is recorded leads to those that are no longer in the file, with their addresses and roles. */
static void test_record(void **state)
{
        leaves("g1", &control, true);
        leaves("g2", &worker, true);
        former_read(&site);
        assert_int_equal(site.former_count, 0); /* it was never born */
        site_bear(&site, true);
        cluster.node_count = 2; /* c3 is taken out too */
        former_read(&site);
        assert_int_equal(site.former_count, 2);
        const struct member *m = former_find(&site, "g1");
        assert_non_null(former_find(&site, "c3"));
        assert_null(former_find(&site, "w1"));
        assert_string_equal(m->node->address, "192.0.2.6");
        assert_int_equal(m->node->ip[0].family, 4);
        assert_int_equal(m->node->pool->roles, ROLE_CONTROL_PLANE | ROLE_ETCD);
        assert_int_equal(m->fate, FATE_REMOVE);
        site.former_count = 0;
        cluster.node_count = COUNT;
        site_bear(&site, false);
        former_read(&site);
        assert_int_equal(site.former_count, 0); /* who was to leave has left */
}

static void test_quorum_learner(void **state)
{
        peers_set(4);
        peers[3].learner = true;
        leaves("g1", &control, true);
        members[0].etcd_well = false;
        planned(); /* a learner has no vote */
}

static void test_worker_leaves(void **state)
{
        leaves("a-worker-with-a-long-name", &worker, true);
        members[0].etcd_well = members[1].etcd_well = false;
        planned();
        assert_false(plan_empty(&site));
        shows("  a-worker-with-a-long-name  remove   drain it, take it out of the cluster, remove its machine\n  5 nodes are as the file says\n");
}

static void test_loss(void **state)
{
        site.live = false;
        no_etcd_data(&members[1]);
        planned(); /* it never lived */
        site_bear(&site, true);
        assert_true(site_born(&site));
        refused(EXIT_UNHEALTHY, "etcd has no quorum, and 1 of its 3 members have lost their data (c2)");
        no_etcd_data(&members[0]);
        no_etcd_data(&members[2]);
        refused(EXIT_UNHEALTHY, "this cluster has lived, and no etcd member has its data any more");
        members[0].connect = members[1].connect = members[2].connect = NULL;
        machines[0].state = machines[1].state = machines[2].state = MACHINE_STOPPED;
        planned(); /* machines that are off are not blank */
        machines[0].state = machines[1].state = machines[2].state = MACHINE_ABSENT;
        refused(EXIT_UNHEALTHY, "no etcd member has its data any more");
        site_unbear(&site);
        assert_false(site_born(&site));
        planned();
}

static void test_stray(void **state)
{
        peers_set(2);
        refused(EXIT_PREFLIGHT, "c3 has data of etcd and is no member of it any more");
}

static void version(const char *now, const char *want)
{
        free(site.version);
        site.version = now ? xstrdup(now) : NULL;
        assert_true(version_parse(want, &cluster.kubernetes));
        cluster.kubernetes.text = want;
}

static void test_versions(void **state)
{
        version("1.36.3", "1.36.3");
        planned();
        version("1.36.3", "1.36.4");
        planned();
        version("1.36.3", "1.37.0");
        planned();
        version(NULL, "1.30.0");
        planned();
        version("1.36.3", "1.36.2");
        refused(EXIT_PREFLIGHT, "the cluster runs 1.36.3, and kubernetes: 1.36.2 is older");
        site.allow_down = true;
        planned();
        site.former_kube = (struct kube *)&connected;
        version("1.36.3", "1.36.4");
        refused(EXIT_PREFLIGHT, "from 1.36.3 to 1.36.4 while every control-plane node is replaced");
        version("1.36.3", "1.36.3");
        planned();
        version("1.35.4", "1.37.1");
        refused(EXIT_PREFLIGHT, "from 1.35.4 to 1.37.1: a minor version must not be skipped");
}

static void test_json(void **state)
{
        leaves("g1", &worker, true);
        planned();
        json_t *j = plan_json(&site);
        assert_true(json_is_true(json_object_get(j, "changes")));
        assert_int_equal(json_array_size(json_object_get(j, "nodes")), 6);
        assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(j, "nodes"), 0), "action")), "keep");
        assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(j, "nodes"), 5), "action")), "remove");
        json_decref(j);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = { T(test_part), T(test_restarts), T(test_nothing_to_do), T(test_change), T(test_drain), T(test_machines),
                T(test_join), T(test_promote), T(test_not_begun), T(test_quorum), T(test_quorum_replaced), T(test_former_is_off), T(test_record),
                T(test_quorum_learner), T(test_worker_leaves), T(test_loss), T(test_stray), T(test_versions), T(test_json) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
