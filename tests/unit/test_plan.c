/* The plan, from what was observed: what restarts, who is drained, how etcd is joined, and what is
 * refused before anything changes. */
#include "cluster/apply/readiness.h"
#include "cluster/plan/fabric_change.h"
#include "plan_fixture.h"

static void leaves(const char *name, const struct pool *pool, bool answers)
{
        size_t i = site.found.removed_count++;
        member_set(&gone[i], COUNT + i, name, pool);
        gone[i].plan.fate = FATE_REMOVE;
        gone[i].seen.known = true;
        gone[i].seen.answers = answers;
        if (!answers)
                gone[i].run.link = NULL;
}

static void changes(struct member *m, struct change *c, size_t n)
{
        m->plan.fate = FATE_CHANGE;
        m->plan.changes = c;
        m->plan.change_count = n;
}

/* ---- what starts again ---- */

static void test_part(void **state)
{
        static const struct {
                struct change change;
                unsigned part;
        } cases[] = {
                { { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/manifests/kube-apiserver.yaml",
                          NULL },
                        PART_API },
                { { SPEC_FILE, STATE_REMOVED, "/etc/kubernetes/manifests/kube-scheduler.yaml",
                          NULL },
                        PART_CONTROLLERS },
                { { SPEC_FILE, STATE_CHANGED,
                          "/etc/kubernetes/manifests/kube-controller-manager.yaml", NULL },
                        PART_CONTROLLERS },
                { { SPEC_UNIT, STATE_RESTARTED, "etcd.service", NULL }, PART_ETCD },
                { { SPEC_UNIT, STATE_STARTED, "kubelet.service", NULL }, PART_KUBELET },
                { { SPEC_UNIT, STATE_REMOVED, "containerd.service", NULL }, PART_RUNTIME },
                { { SPEC_UNIT, STATE_CHANGED, "kubelet.service", NULL },
                        0 }, /* it is enabled, say: what runs goes on */
                { { SPEC_FILE, STATE_CHANGED, "/etc/systemd/system/kubelet.service", NULL },
                        0 }, /* the unit says it, if it restarts */
                { { SPEC_UNIT, STATE_RESTARTED, "systemd-sysctl.service", NULL }, 0 },
                { { SPEC_ARTIFACT, STATE_CHANGED, "/usr/local/bin/kubelet", NULL }, 0 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(plan_part(&cases[i].change), cases[i].part);
}

/* What only nodes of one fabric have is removed only if the fabric changes. */
static void test_fabric_stays(void **state)
{
        static const struct {
                struct change change;
                bool refused;
        } cases[] = {
                { { SPEC_UNIT, STATE_REMOVED, "flanneld.service", NULL }, true },
                { { SPEC_UNIT, STATE_REMOVED, "calico-node.service", NULL }, true },
                { { SPEC_FILE, STATE_REMOVED, "/etc/kube-flannel/cni-conf.json", NULL }, true },
                { { SPEC_UNIT, STATE_RESTARTED, "flanneld.service", NULL }, false },
                { { SPEC_UNIT, STATE_STARTED, "calico-node.service", NULL }, false },
                { { SPEC_FILE, STATE_REMOVED, "/etc/kube-flannel/old", NULL }, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct change one = cases[i].change;
                changes(&members[0], &one, 1);
                assert_int_equal(fabric_change_check(&site, &err) < 0, cases[i].refused);
                assert_int_equal(err.code != 0, cases[i].refused);
                if (cases[i].refused)
                        assert_non_null(strstr(err.message, "network.fabric is now flannel"));
        }
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
        restarts(PART_VIP | PART_ETCD | PART_RUNTIME,
                "restarts etcd, the container runtime and the virtual IP");
}

/* ---- fates ---- */

static void test_nothing_to_do(void **state)
{
        planned();
        assert_true(plan_empty(&site));
        shows("plan for demo: nothing to do, 5 nodes are unchanged\n");
}

static void test_change(void **state)
{
        struct change api[] = { { SPEC_FILE, STATE_CHANGED,
                "/etc/kubernetes/manifests/kube-apiserver.yaml", NULL } };
        struct change unit[] = { { SPEC_FILE, STATE_CHANGED, "/var/lib/kubelet/config.yaml", NULL },
                { SPEC_UNIT, STATE_RESTARTED, "kubelet.service", NULL } };
        struct change quiet[] = { { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/audit.yaml",
                NULL } };
        changes(&members[0], api, 1);
        changes(&members[3], unit, 2);
        changes(&members[4], quiet, 1);
        planned();
        assert_false(plan_empty(&site));
        assert_int_equal(members[0].plan.restarts, PART_API);
        assert_int_equal(members[3].plan.restarts, PART_KUBELET);
        assert_false(members[3].plan.drains); /* a changed flag disturbs no pod */
        shows("  c1        change   restarts the API server\n      change   file /etc/kubernetes/manifests/kube-apiserver.yaml\n");
        shows("  w2        change   disrupts nothing\n");
        shows("  2 nodes are unchanged\n");
        cluster.node_count = 1; /* c1 alone */
        shows("the API does not answer for some seconds");
}

static void test_drain(void **state)
{
        struct change runtime[] = { { SPEC_ARTIFACT, STATE_CHANGED, "/usr/local/bin/containerd",
                NULL } };
        struct change other[] = { { SPEC_ARTIFACT, STATE_CHANGED, "/opt/cni/bin/bridge", NULL } },
                      fresh[] = { { SPEC_ARTIFACT, STATE_CREATED, "/usr/bin/runc", NULL } };
        changes(&members[0], runtime, 1);
        changes(&members[1], other, 1);
        changes(&members[2], fresh, 1);
        changes(&members[3], other, 1);
        json_object_set_new(
                json_object_get(json_object_get(members[3].seen.object, "status"), "nodeInfo"),
                "kubeletVersion", json_string("v1.26.2"));
        changes(&members[4], runtime, 1);
        json_decref(members[4].seen.object);
        members[4].seen.object = NULL; /* it is no node yet: nothing runs there */
        planned();
        assert_true(members[0].plan.drains);
        assert_false(members[1].plan.drains);
        assert_false(members[2].plan.drains);
        assert_true(members[3].plan.drains);
        assert_false(members[4].plan.drains);
        assert_string_equal(member_version(&members[3]), "1.26.2");
        shows("  c1        change   drain it; disrupts nothing");
        site.found.api_up = false;
        members[0].plan.drains = false;
        planned();
        assert_false(members[0].plan.drains); /* nobody could be asked */
}

static void test_machines(void **state)
{
        members[3].run.connect = members[4].run.connect = NULL;
        machines[3].state = MACHINE_ABSENT;
        machines[4].state = MACHINE_STOPPED;
        planned();
        assert_int_equal(members[3].plan.fate, FATE_MAKE);
        assert_int_equal(members[4].plan.fate, FATE_START);
        shows("create its machine, then install everything");
        shows("start its machine, then repair what differs");
}

/* ---- etcd ---- */

static void test_join(void **state)
{
        no_etcd_data(&members[2]);
        members[2].plan.fate = FATE_INSTALL;
        peers_set(2);
        planned();
        assert_true(members[2].plan.joins && !members[2].plan.promotes);
        assert_false(members[0].plan.joins || members[3].plan.joins);
        shows("install everything; its etcd joins as a learner and is promoted\n");
}

static void test_promote(void **state)
{
        peers[2].learner = true;
        planned();
        assert_true(members[2].plan.promotes && !members[2].plan.joins);
        assert_false(plan_empty(&site));
        shows("  c3        keep     its etcd is promoted\n");
}

/* The first run was stopped before it came to this node: all are born together, it is in the list
 * and never started. */
static void test_not_begun(void **state)
{
        no_etcd_data(&members[2]);
        members[2].plan.fate = FATE_INSTALL;
        peers[2] = (struct etcd_peer){
                .id = 3, .name = "", .peer = "https://192.0.2.3:2380", .client = ""
        };
        planned();
        assert_false(members[2].plan.joins);
        site_record_cluster(&site); /* the cluster has lived: then it is one that lost its data */
        planned();
        assert_true(members[2].plan.joins);
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
        gone[0].run.link = gone[1].run.link = members[0].run.link;
        gone[0].seen.answers = gone[1].seen.answers = true;
        planned();
        /* but not while another two are dead */
        members[0].seen.etcd_healthy = members[1].seen.etcd_healthy = false;
        refused(EXIT_PREFLIGHT,
                "removing 2 of 5 etcd members would leave 1 healthy of 3: etcd would lose its quorum");
        /* without etcd there is nothing to lose */
        site.found.live = false;
        planned();
}

/* A kube-proxy that is the cluster's own keeps its mode, so a file that says another is not done
 * and is not silently ignored. */
static void test_proxy_mode(void **state)
{
        cluster.network.proxy_mode = PROXY_NFTABLES;
        site.found.proxy_mode_now = "iptables";
        planned();
        cluster.network.proxy_run = PROXY_RUN_DAEMONSET;
        refused(EXIT_PREFLIGHT,
                "network.proxyMode is nftables, and the cluster's own kube-proxy, which slipway leaves alone, runs with iptables");
        site.found.proxy_mode_now = "nftables";
        planned();
        site.found.proxy_mode_now = NULL;
        planned();
}

/* Who comes is well before who lives leaves: also when all are replaced. */
static void test_quorum_replaced(void **state)
{
        for (size_t i = 0; i < 3; i++) {
                no_etcd_data(&members[i]);
                members[i].plan.fate = FATE_INSTALL;
                members[i].seen.etcd_healthy = false;
        }
        cluster.node_count = site.count = 1;
        peers[0] = (struct etcd_peer){ .id = 9,
                .name = "g1",
                .peer = "https://192.0.2.98:2380",
                .client = "https://192.0.2.98:2379" };
        site.found.peer_count = 1;
        leaves("g1", &control, true);
        planned();
        assert_true(members[0].plan.joins);
        shows("its etcd joins as a learner and is promoted\n");
        /* a machine that is off is no promise */
        members[0].run.connect = NULL;
        machines[0].state = MACHINE_STOPPED;
        refused(EXIT_PREFLIGHT, "removing 1 of 1 etcd members would leave 0 healthy of 0");
        site.count = cluster.node_count = COUNT;
}

/* The file names others than it did, and who has the data does not answer. */
static void test_former_is_off(void **state)
{
        struct member former = { .site = &site, .node = &nodes[COUNT] };
        for (size_t i = 0; i < 3; i++)
                no_etcd_data(&members[i]);
        nodes[COUNT] = (struct node){ .name = "old", .pool = &control };
        site.found.removed = (struct member *[]){ &former };
        site.found.removed_count = 1;
        site.found.live = false;
        site_record_cluster(&site);
        refused(EXIT_UNHEALTHY,
                "no etcd member in the file has data, and old, which had it, is no longer in the file and does not answer");
        site.found.removed_count = 0;
}

/* A node that our record does not know: its host is nobody's to touch, and the plan says so. */
static void test_unknown(void **state)
{
        leaves("forged", &worker, false);
        gone[0].seen.known = false;
        json_object_set_new(json_object_get(gone[0].seen.object, "status"), "addresses",
                json_pack("[{s:s, s:s}]", "type", "InternalIP", "address", "192.0.2.1"));
        planned();
        shows("  forged    remove   known to the API only: its Node object will be removed; no host is touched (the API says its address is 192.0.2.1)\n");
        json_decref(gone[0].seen.object);
        gone[0].seen.object = NULL;
        peers[3] = (struct etcd_peer){
                .id = 4, .name = "forged", .peer = "https://192.0.2.1:2380", .client = ""
        };
        site.found.peer_count = 4;
        shows("  forged    remove   known to etcd only: it will be removed from etcd's members; no host is touched\n");
}

/* The host that the record knows is not the one that answers. */
static void test_refused(void **state)
{
        static const struct provider_ops hosts = { 0 };
        site.ops = &hosts;
        leaves("w9", &worker, false);
        gone[0].seen.refused = "the host key differs";
        gone[0].plan.note = "the API says otherwise";
        planned();
        shows("  w9        remove   remove it from the cluster; its host is not touched: the host key differs; the API says otherwise\n");
}

static void test_quorum_learner(void **state)
{
        peers_set(4);
        peers[3].learner = true;
        leaves("g1", &control, true);
        members[0].seen.etcd_healthy = false;
        planned(); /* a learner has no vote */
}

static void test_worker_leaves(void **state)
{
        leaves("a-worker-with-a-long-name", &worker, true);
        members[0].seen.etcd_healthy = members[1].seen.etcd_healthy = false;
        planned();
        assert_false(plan_empty(&site));
        shows("  a-worker-with-a-long-name  remove   drain it, remove it from the cluster, remove its machine\n  5 nodes are unchanged\n");
}

static void test_loss(void **state)
{
        site.found.live = false;
        no_etcd_data(&members[1]);
        planned(); /* it never lived */
        site_record_cluster(&site);
        assert_true(site_existed(&site));
        refused(EXIT_UNHEALTHY,
                "etcd has no quorum, and 1 of its 3 members have lost their data (c2)");
        no_etcd_data(&members[0]);
        no_etcd_data(&members[2]);
        refused(EXIT_UNHEALTHY,
                "this cluster existed before, but no etcd member still has its data");
        members[0].run.connect = members[1].run.connect = members[2].run.connect = NULL;
        machines[0].state = machines[1].state = machines[2].state = MACHINE_STOPPED;
        planned(); /* machines that are off are not blank */
        machines[0].state = machines[1].state = machines[2].state = MACHINE_ABSENT;
        refused(EXIT_UNHEALTHY, "no etcd member still has its data");
        site_record_clear(&site);
        assert_false(site_existed(&site));
        planned();
}

static void test_stray(void **state)
{
        peers_set(2);
        refused(EXIT_PREFLIGHT, "c3 has etcd data but is no longer an etcd member");
}

static void test_json(void **state)
{
        leaves("g1", &worker, true);
        planned();
        json_t *j = plan_json(&site);
        assert_true(json_is_true(json_object_get(j, "changes")));
        assert_int_equal(json_array_size(json_object_get(j, "nodes")), 6);
        assert_string_equal(json_string_value(json_object_get(
                                    json_array_get(json_object_get(j, "nodes"), 0), "action")),
                "keep");
        assert_string_equal(json_string_value(json_object_get(
                                    json_array_get(json_object_get(j, "nodes"), 5), "action")),
                "remove");
        json_decref(j);
}

/* ---- the steps ---- */

static const struct plan_step *find(enum plan_kind kind, const char *node)
{
        for (const struct plan_step *s = site.steps->first; s; s = s->next)
                if (s->kind == kind &&
                        (node ? s->member && streq(s->member->node->name, node) : !s->member))
                        return s;
        return NULL;
}

/* It begins only after the other, however many lie between; a cycle would never end here. */
static bool comes_after(const struct plan_step *s, const struct plan_step *other)
{
        for (size_t i = 0; i < s->wait_count; i++)
                if (s->waits[i] == other || comes_after(s->waits[i], other))
                        return true;
        return false;
}

static void test_steps_in_order(void **state)
{
        struct change api = { SPEC_FILE, STATE_CHANGED,
                "/etc/kubernetes/manifests/kube-apiserver.yaml", NULL };
        struct change kubelet = { SPEC_UNIT, STATE_RESTARTED, "kubelet.service", NULL };
        for (size_t i = 0; i < 3; i++)
                changes(&members[i], &api, 1);
        changes(&members[3], &kubelet, 1);
        cluster.api.vip = "192.0.2.9";
        leaves("g1", &worker, true);
        planned();
        plan_build(&site);
        assert_true(comes_after(find(PLAN_APPLY, "c2"), find(PLAN_HEALTHY, "c1")));
        assert_true(comes_after(find(PLAN_APPLY, "c3"), find(PLAN_HEALTHY, "c2")));
        assert_true(comes_after(find(PLAN_APPLY, "w1"), find(PLAN_HEALTHY, "c3")));
        assert_true(comes_after(find(PLAN_APPLY, "c1"), find(PLAN_ADDRESS, "c1")));
        assert_true(comes_after(find(PLAN_DESTROY, "g1"), find(PLAN_DELETE_NODE, "g1")));
        assert_true(comes_after(find(PLAN_VERIFY, NULL), find(PLAN_DESTROY, "g1")));
        assert_null(find(PLAN_RESET, "g1"));
        assert_null(find(PLAN_ADDRESS, "w1"));
        json_t *j = plan_json(&site), *steps = json_object_get(j, "steps"), *one;
        size_t i;
        assert_int_equal(json_array_size(steps), site.steps->count);
        json_array_foreach(steps, i, one)
        {
                assert_int_equal(json_integer_value(json_object_get(one, "number")), i + 1);
                assert_true(json_string_length(json_object_get(one, "what")) > 0);
        }
        json_decref(j);
}

static void compared(const json_t *saved, const char *part)
{
        struct error err CLEANUP(error_release) = { 0 };
        int r = plan_compare(&site, saved, &err);
        if (!part && r < 0)
                fail_msg("%s", err.message);
        if (part &&
                (r == 0 || !strstr(err.message, part) || !strstr(err.hint, "nothing was changed")))
                fail_msg("expected \"%s\": \"%s\"", part, r < 0 ? err.message : "");
}

/* A plan that was saved is done only while everything is as it was. */
static void test_saved(void **state)
{
        struct change api = { SPEC_FILE, STATE_CHANGED,
                "/etc/kubernetes/manifests/kube-apiserver.yaml", NULL };
        changes(&members[1], &api, 1);
        snprintf(cluster.digest, sizeof(cluster.digest), "aa");
        planned();
        plan_build(&site);
        json_t *now = plan_json(&site);
        char *text CLEANUP(free_p) = json_dumps(now, 0);
        json_t *saved = json_loads(text, 0, NULL);
        json_decref(now);
        compared(saved, NULL);
        snprintf(cluster.digest, sizeof(cluster.digest), "ab");
        compared(saved, "the file has changed since the plan was made");
        snprintf(cluster.digest, sizeof(cluster.digest), "aa");
        snprintf(members[3].seen.applied, sizeof(members[3].seen.applied), "other");
        compared(saved, "w1 has changed since the plan was made");
        members[3].seen.applied[0] = 0;
        cluster.name = "other";
        compared(saved, "that is not a plan for other");
        json_t *nothing = json_object();
        compared(nothing, "that is not a plan for other");
        json_decref(nothing);
        cluster.name = "demo";
        json_array_clear(json_object_get(saved, "steps"));
        compared(saved, "the cluster has changed since");
        json_decref(saved);
}

/* ---- nodes that leave: one flow for up, reset and down ---- */

static const struct provider_ops has = { .makes_machines = false };

/* The node's steps, in the order they were built. */
static void steps_are(const char *node, const char *wanted)
{
        struct str all CLEANUP(str_release) = { 0 };
        for (const struct plan_step *s = site.steps->first; s; s = s->next)
                if (s->member && streq(s->member->node->name, node))
                        str_addf(&all, "%s%s", all.len ? ", " : "", plan_kind_name(s->kind));
        assert_string_equal(str_text(&all), wanted);
}

static void chosen(const char *name, unsigned how)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct strings names = { name ? 1 : 0, &name };
        assert_int_equal(leave_choose(&site, &names, how, &err), 0);
        leave_build(&site);
}

static void test_up_removes(void **state)
{
        leaves("g1", &control, true);
        leaves("g2", &worker, false);
        site.ops = &has;
        records_put(&site.found.record, &arena, "g1");
        records_put(&site.found.record, &arena, "g2");
        plan_build(&site);
        steps_are("g1", "drain, API stop, etcd leave, delete Node, reset, delete again, record");
        steps_are("g2", "drain, etcd leave, delete Node, record");
        assert_true(comes_after(find(PLAN_VERIFY, NULL), find(PLAN_UNRECORD, "g1")));
        site.ops = &makes;
        plan_build(&site);
        steps_are("g1", "drain, API stop, etcd leave, delete Node, machine, record");
        gone[1].seen.known = false; /* the API's word only: no machine is touched for it */
        records_drop(&site.found.record, "g2");
        plan_build(&site);
        steps_are("g2", "drain, etcd leave, delete Node");
}

static void test_reset_of_one(void **state)
{
        site.ops = &has;
        records_put(&site.found.record, &arena, "c3");
        chosen("c3", 0);
        steps_are("c3",
                "connect, drain, API stop, etcd leave, delete Node, reset, delete again, record");
        steps_are("c1", "connect");
        assert_true(members[0].plan.optional && !members[2].plan.optional);
        assert_true(comes_after(find(PLAN_LEAVE_DRAIN, "c3"), find(PLAN_ETCD_QUORUM, NULL)));
        assert_true(comes_after(find(PLAN_LEAVE_DRAIN, "c3"), find(PLAN_API_OPTIONAL, NULL)));
        assert_true(comes_after(find(PLAN_ETCD_QUORUM, NULL), find(PLAN_CONNECT, "c1")));
        members[2].plan.leaving = 0;
        chosen("w1", LEAVE_FORCE); /* no member of etcd: nobody else is asked */
        steps_are("w1", "connect, drain, delete Node, reset, delete again");
        assert_null(find(PLAN_ETCD_QUORUM, NULL));
        assert_null(find(PLAN_CONNECT, "c1"));
}

/* Two members of etcd leave one after the other. */
static void test_reset_of_two(void **state)
{
        chosen("c2", 0);
        chosen("c3", 0);
        assert_true(comes_after(find(PLAN_LEAVE_DRAIN, "c3"), find(PLAN_GONE, "c2")));
}

static void test_all_leave(void **state)
{
        chosen(NULL, 0);
        steps_are("c1", "connect, reset");
        steps_are("w2", "connect, reset");
        assert_null(find(PLAN_API_OPTIONAL, NULL));
        chosen(NULL, LEAVE_MACHINE);
        steps_are("c1", "machine");
        assert_true(leave_all(&site));
}

static void test_approval(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(plan_approved(&site, APPROVAL_ASK, NULL, &err), APPROVED); /* empty */
        members[3].plan.fate = FATE_CHANGE;
        assert_int_equal(plan_approved(&site, APPROVAL_ASK, NULL, &err), APPROVAL_WANTED);
        assert_int_equal(plan_approved(&site, APPROVAL_NOBODY, NULL, &err), APPROVED);
        leaves("g1", &worker, true);
        assert_int_equal(plan_approved(&site, APPROVAL_ASK, NULL, &err), APPROVAL_WANTED);
        assert_int_equal(plan_approved(&site, APPROVAL_YES, NULL, &err), APPROVED);
        assert_int_equal(plan_approved(&site, APPROVAL_NOBODY, NULL, &err), -EPERM);
        assert_string_equal(
                err.message, "the plan removes 1 node, and there is no terminal to ask on");
}

/* ---- encryption that comes, or is to go ---- */

static void api_said(size_t member, bool encrypts)
{
        json_decref(members[member].seen.said);
        members[member].seen.said = json_pack("{s:{s:b}}", "apiserver", "encrypts", (int)encrypts);
}

static void test_encryption_comes(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        enum rotate_phase *phase = &site.identity.rotation.phase[ROTATE_ENCRYPT];
        cluster.encryption.provider = ENCRYPTION_SECRETBOX;
        assert_int_equal(encrypt_look(&site, &err), 0); /* a cluster that is yet to be */
        assert_int_equal(*phase, ROTATE_NOT);
        for (size_t i = 0; i < 3; i++)
                api_said(i, true);
        assert_int_equal(encrypt_look(&site, &err), 0);
        assert_int_equal(*phase, ROTATE_NOT);
        api_said(1, false); /* one that does not know the key: nobody writes with it yet */
        assert_int_equal(encrypt_look(&site, &err), 0);
        assert_int_equal(*phase, ROTATE_TRUST);
        assert_true(site.identity.rotation.begun);
        assert_non_null(encrypt_text(&site));
        *phase = ROTATE_ISSUE; /* under way: it is not begun again */
        assert_int_equal(encrypt_look(&site, &err), 0);
        assert_int_equal(*phase, ROTATE_ISSUE);
}

static void test_encryption_stays(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        cluster.encryption.provider = ENCRYPTION_NONE;
        api_said(0, false);
        assert_int_equal(encrypt_look(&site, &err), 0);
        api_said(2, true);
        assert_true(encrypt_look(&site, &err) < 0);
        assert_non_null(strstr(err.message, "c3"));
        assert_non_null(strstr(err.hint, "encryption: secretbox"));
}

/* A percentage is rounded up, and there are never more than all. */
static void test_readiness(void **state)
{
        static const struct {
                enum readiness_type type;
                long value;
                size_t workers, needed;
        } cases[] = { { READINESS_ALL, -1, 2, 2 }, { READINESS_PERCENT, 50, 2, 1 },
                { READINESS_PERCENT, 51, 2, 2 }, { READINESS_PERCENT, 1, 2, 1 },
                { READINESS_PERCENT, 0, 2, 0 }, { READINESS_PERCENT, 100, 2, 2 },
                { READINESS_PERCENT, 90, 0, 0 }, { READINESS_COUNT, 1, 2, 1 },
                { READINESS_COUNT, 7, 2, 2 }, { READINESS_COUNT, 0, 2, 0 } };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct cluster c = { .nodes = nodes, .node_count = 3 + cases[i].workers };
                c.readiness.type = cases[i].type;
                c.readiness.value = cases[i].value;
                assert_int_equal(readiness_needed(&c), cases[i].needed);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { T(test_part), T(test_fabric_stays), T(test_restarts),
                T(test_nothing_to_do), T(test_change), T(test_drain), T(test_machines),
                T(test_join), T(test_promote), T(test_not_begun), T(test_quorum),
                T(test_proxy_mode), T(test_quorum_replaced), T(test_former_is_off), T(test_unknown),
                T(test_refused), T(test_quorum_learner), T(test_worker_leaves), T(test_loss),
                T(test_stray), T(test_json), T(test_steps_in_order), T(test_saved),
                T(test_up_removes), T(test_reset_of_one), T(test_reset_of_two), T(test_all_leave),
                T(test_approval), T(test_encryption_comes), T(test_encryption_stays),
                T(test_readiness) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
