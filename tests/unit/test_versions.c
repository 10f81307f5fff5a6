/* Versions in the plan: what is refused, and to which version a node returns. The API reports them;
 * where it does not, slipway's own record does. */
#include "plan_fixture.h"

#include "cluster/plan/versions.h"

static void version(const char *now, const char *want)
{
        free(site.found.version);
        site.found.version = now ? xstrdup(now) : NULL;
        assert_true(version_parse(want, &cluster.kubernetes));
        cluster.kubernetes.text = want;
}

static void test_versions(void **state)
{
        version("1.26.3", "1.26.3");
        planned();
        version("1.26.3", "1.26.4");
        planned();
        version("1.26.3", "1.27.0");
        planned();
        version(NULL, "1.30.0");
        planned();
        version("1.26.3", "1.26.2");
        refused(EXIT_PREFLIGHT, "the cluster runs 1.26.3, and kubernetes: 1.26.2 is older");
        site.allow_down = true;
        planned();
        site.removed_kube = (struct kube *)&connected;
        version("1.26.3", "1.26.4");
        refused(EXIT_PREFLIGHT, "from 1.26.3 to 1.26.4 while every control-plane node is replaced");
        version("1.26.3", "1.26.3");
        planned();
        version("1.25.4", "1.27.1");
        refused(EXIT_PREFLIGHT, "from 1.25.4 to 1.27.1: a minor version must not be skipped");
}

static struct host_record *row(size_t i, const char *healthy, const char *unproven)
{
        struct host_record *h = records_put(&site.found.record, &arena, members[i].node->name);
        h->healthy = healthy;
        h->unproven = unproven;
        return h;
}

static void no_api(void)
{
        site.found.api_up = false;
        for (size_t i = 0; i < COUNT; i++) {
                json_decref(members[i].seen.object);
                members[i].seen.object = NULL;
        }
}

static void before_is(size_t i, const char *version)
{
        planned();
        if (!version)
                assert_null(members[i].seen.before);
        else if (!members[i].seen.before || !streq(members[i].seen.before, version))
                fail_msg("%s returns to %s, expected %s", members[i].node->name,
                        members[i].seen.before ? members[i].seen.before : "nothing", version);
}

static struct change program = { SPEC_ARTIFACT, STATE_CHANGED, "/usr/local/bin/kubelet", NULL },
                     file = { SPEC_FILE, STATE_CHANGED, "/etc/kubernetes/admin.conf", NULL };

static void changes_one(size_t i, struct change *c)
{
        members[i].plan.fate = FATE_CHANGE;
        members[i].plan.changes = c;
        members[i].plan.change_count = 1;
}

static void test_refused_by_record(void **state)
{
        no_api();
        row(0, "1.26.3", NULL);
        row(1, "1.27.1", NULL);
        row(3, "1.20.0", NULL); /* a worker has no API server */
        version(NULL, "1.26.2");
        refused(EXIT_PREFLIGHT,
                "the cluster does not answer and was last healthy with 1.26.3, and kubernetes: 1.26.2 is older");
        site.allow_down = true;
        planned();
        site.allow_down = false;
        version(NULL, "1.28.0");
        refused(EXIT_PREFLIGHT, "from 1.26.3 to 1.28.0: a minor version must not be skipped");
        version("1.27.1", "1.28.0"); /* the API knows better */
        planned();
        version(NULL, "1.27.1");
        planned();
}

static void test_before(void **state)
{
        version("1.26.3", "1.27.1");
        changes_one(0, &program);
        before_is(0, "1.26.3");
        row(0, "1.26.1", NULL); /* somebody else has changed it since */
        before_is(0, "1.26.3");
        assert_true(upgrade_member(&members[0]));
        assert_false(members[0].plan.unproven);
        no_api();
        version(NULL, "1.27.1");
        before_is(0, "1.26.1");
        assert_true(upgrade_member(&members[0]));
        before_is(1, NULL);
        /* without a change of its program it has some version that nobody here knows */
        changes_one(0, &file);
        before_is(0, NULL);
        assert_false(upgrade_member(&members[0]));
}

/* A run was interrupted while it changed the node, or while it returned it. */
static void test_before_of_unproven(void **state)
{
        static const char words[] =
                "an interrupted run began to change it to 1.27.1: it is rolled back to 1.26.3 if it does not become healthy\n";
        version("1.26.3", "1.27.1");
        json_decref(members[0].seen.object);
        members[0].seen.object =
                json_pack("{s:{s:{s:s}}}", "status", "nodeInfo", "kubeletVersion", "v1.27.1");
        row(0, "1.26.3", "1.27.1");
        changes_one(0, &file);
        before_is(0, "1.26.3"); /* its kubelet runs the new version, and that is all */
        assert_true(upgrade_member(&members[0]) && members[0].plan.unproven);
        shows(words);
        /* it has all of the new version: its health is still to be seen */
        members[0].plan.fate = FATE_KEEP;
        members[0].plan.change_count = 0;
        before_is(0, "1.26.3");
        assert_true(upgrade_member(&members[0]) && !plan_empty(&site));
        assert_false(members[0].plan.drains);
        plan_build(&site);
        assert_non_null(members[0].plan.healthy);
        assert_null(members[1].plan.healthy);
        shows(words);
        no_api();
        version(NULL, "1.27.1");
        before_is(0, "1.26.3");
        assert_true(upgrade_member(&members[0]));
        /* the file has the old version again: that is where it goes anyway */
        version(NULL, "1.26.3");
        members[0].plan.fate = FATE_CHANGE;
        before_is(0, "1.26.3");
        assert_false(upgrade_member(&members[0]) || members[0].plan.unproven);
}

/* Another machine with the node's name was never healthy with anything. */
static void test_before_of_another_machine(void **state)
{
        no_api();
        version(NULL, "1.27.1");
        row(0, "1.26.3", "1.27.1")->machine_id = "0123456789abcdef0123456789abcdef";
        json_object_set_new(
                members[0].seen.said, "machineId", json_string("ffffffffffffffffffffffffffffffff"));
        changes_one(0, &program);
        before_is(0, NULL);
        assert_false(members[0].plan.unproven);
}

int main(void)
{
        const struct CMUnitTest tests[] = { T(test_versions), T(test_refused_by_record),
                T(test_before), T(test_before_of_unproven), T(test_before_of_another_machine) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
