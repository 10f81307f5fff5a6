/* Which nodes are rebooted, in which order, and when that is refused. */
#include "plan_fixture.h"

#include "cluster/plan/plan_steps.h"
#include "cluster/plan/reboot.h"

static struct strings names;
static struct reboot_request request = { .names = &names };

static void ask(size_t n, const char **list, bool all)
{
        struct error err CLEANUP(error_release) = { 0 };
        names = (struct strings){ n, list };
        request.all = all;
        if (reboot_ask(&site, &request, &err) < 0)
                fail_msg("%s", err.message);
}

static void outdated(struct member *m)
{
        json_object_set_new(m->seen.said, "reboot", json_string("linux-image-6.1 changed"));
}

static size_t reboots(void)
{
        size_t n = 0;
        for (size_t i = 0; i < COUNT; i++)
                n += members[i].plan.reboots;
        return n;
}

static const struct plan_step *reboot_step(enum plan_kind kind, const char *node)
{
        for (const struct plan_step *s = site.steps->first; s; s = s->next)
                if (s->kind == kind && s->member && streq(s->member->node->name, node))
                        return s;
        return NULL;
}

static bool waits_for(const struct plan_step *s, const struct plan_step *other)
{
        for (size_t i = 0; i < s->wait_count; i++)
                if (s->waits[i] == other || waits_for(s->waits[i], other))
                        return true;
        return false;
}

static void test_those_that_need_it(void **state)
{
        outdated(&members[1]);
        outdated(&members[3]);
        ask(0, NULL, false);
        planned();
        assert_int_equal(reboots(), 2);
        assert_true(members[1].plan.reboots && members[3].plan.reboots);
        assert_true(members[1].plan.drains && members[3].plan.drains);
        shows("  c2        change   drain it; reboot it: linux-image-6.1 changed\n");
        shows("  3 nodes are unchanged\n");
}

/* Without the verb nobody is rebooted. */
static void test_up_reboots_nobody(void **state)
{
        outdated(&members[1]);
        planned();
        assert_true(plan_empty(&site));
}

static void test_nobody_needs_it(void **state)
{
        ask(0, NULL, false);
        planned();
        assert_true(plan_empty(&site));
}

static void test_by_name(void **state)
{
        outdated(&members[1]);
        ask(1, (const char *[]){ "w2" }, false);
        planned();
        assert_int_equal(reboots(), 1);
        assert_true(members[4].plan.reboots);
        shows("  w2        change   drain it; reboot it\n");
}

static void test_unknown_name(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        names = (struct strings){ 1, (const char *[]){ "w9" } };
        assert_true(reboot_ask(&site, &request, &err) < 0);
        assert_int_equal(err.status, EXIT_USAGE);
        assert_string_equal(err.message, "there is no node w9 in demo");
}

static void test_order(void **state)
{
        cluster.api.vip = "192.0.2.9";
        ask(0, NULL, true);
        planned();
        plan_build(&site);
        assert_int_equal(reboots(), COUNT);
        const struct plan_step *c1 = reboot_step(PLAN_REBOOT, "c1");
        assert_true(waits_for(c1, reboot_step(PLAN_DRAIN, "c1")));
        assert_true(waits_for(c1, reboot_step(PLAN_ADDRESS, "c1")));
        assert_true(waits_for(reboot_step(PLAN_HEALTHY, "c1"), c1));
        assert_true(waits_for(reboot_step(PLAN_UNCORDON, "c1"), c1));
        assert_true(waits_for(reboot_step(PLAN_DRAIN, "c2"), reboot_step(PLAN_UNCORDON, "c1")));
        assert_true(waits_for(reboot_step(PLAN_DRAIN, "w1"), reboot_step(PLAN_UNCORDON, "c3")));
        assert_true(waits_for(reboot_step(PLAN_DRAIN, "w2"), reboot_step(PLAN_UNCORDON, "w1")));
}

/* The file may be newer than the cluster: that is `up`'s work, and nobody expects it of a reboot.
 */
static void test_refused_if_it_differs(void **state)
{
        static struct change file = { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/audit.yaml",
                NULL };
        members[4].plan.changes = &file;
        members[4].plan.change_count = 1;
        members[4].plan.fate = FATE_CHANGE;
        ask(1, (const char *[]){ "w1" }, false);
        refused(EXIT_PREFLIGHT, "w2 differs from the file, and reboot changes nothing else");
}

static void test_refused_without_quorum(void **state)
{
        members[2].seen.etcd_healthy = false;
        ask(1, (const char *[]){ "c1" }, false);
        refused(EXIT_PREFLIGHT,
                "the etcd member on c3 is not healthy: a reboot of c1 could cost etcd its quorum");
}

/* A worker's reboot does not touch etcd. */
static void test_worker_in_spite_of_etcd(void **state)
{
        members[2].seen.etcd_healthy = false;
        ask(1, (const char *[]){ "w1" }, false);
        planned();
        assert_int_equal(reboots(), 1);
}

static void test_refused_without_api(void **state)
{
        site.found.api_up = false;
        ask(0, NULL, true);
        refused(EXIT_UNHEALTHY,
                "the API does not answer: nodes are rebooted only while the cluster works");
}

int main(void)
{
        const struct CMUnitTest tests[] = { T(test_those_that_need_it), T(test_up_reboots_nobody),
                T(test_nobody_needs_it), T(test_by_name), T(test_unknown_name), T(test_order),
                T(test_refused_if_it_differs), T(test_refused_without_quorum),
                T(test_worker_in_spite_of_etcd), T(test_refused_without_api) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
