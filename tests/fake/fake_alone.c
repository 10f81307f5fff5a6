/* Single runs of the fake cluster, apart from the scenarios of test_async.c. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/file.h"
#include "cluster/apply/roll.h"
#include "fake.h"

static const struct fault none = { 0 };

/* Where no snapshot can be named nothing is upgraded. */
void test_snapshot_without_name(void **state)
{
        struct site s;
        struct error err CLEANUP(error_release) = { 0 };
        memset(world.faults, 0, sizeof(world.faults));
        fake_begin(&s, FAKE_NEW, FAKE_OLD, 0);
        assert_int_equal(file_write(arena_printf(s.arena, "%s/snapshots", s.identity.dir), "", 0,
                                 0600, 0, NULL, &err),
                0); /* no directory can be made */
        assert_true(up_run(&s, &err) < 0);
        assert_non_null(strstr(err.message, "no snapshot can be taken before the upgrade"));
        for (size_t i = 0; i < FAKE_NODES; i++)
                assert_string_equal(world.nodes[i].given, FAKE_OLD);
        fake_end(&s);
}

/* Nor without the API: the versions of its groups could not be kept for the way back. */
void test_upgrade_without_api(void **state)
{
        struct site s;
        struct error err CLEANUP(error_release) = { 0 };
        const struct step *remember = NULL;
        memset(world.faults, 0, sizeof(world.faults));
        fake_begin(&s, FAKE_NEW, FAKE_OLD, 0);
        world.api_gone = true;
        assert_true(up_run(&s, &err) < 0);
        for (const struct step *one = s.run.first; one; one = one->next)
                if (streq(one->name, "record version"))
                        remember = one;
        assert_non_null(remember);
        assert_int_equal(remember->state, STEP_FAILED);
        assert_non_null(strstr(remember->err.hint, "an upgrade needs the API"));
        for (size_t i = 0; i < FAKE_NODES; i++)
                assert_string_equal(world.nodes[i].given, FAKE_OLD);
        fake_end(&s);
}

/* ---- the wait for the API, while a control-plane node is still applied ---- */

#define HOURS 3

static struct fake_event *delivery, *answer;

static void on_answer(void *arg, enum how how)
{
        fake_forget(TAKE(answer));
        world.api_gone = false;
}

static void on_delivered(void *arg, enum how how)
{
        fake_forget(TAKE(delivery));
        step_done(arg, NULL);
}

static void step_delivers(struct step *s)
{
        delivery = fake_post(HOURS * 3600 * 1000, on_delivered, s);
}

/* Seconds that it waited; 0: the API answered. */
static int64_t api_waited(struct site *s, bool starts, struct error *err)
{
        memset(world.faults, 0, sizeof(world.faults));
        fake_begin(s, FAKE_NEW, FAKE_NEW, 0);
        struct step *apply = run_step(&s->run, "apply", "c1", step_delivers, &s->members[0]),
                    *api = run_step(&s->run, "API", NULL, step_api, s);
        s->members[0].run.apply = apply;
        world.api_gone = true;
        answer = starts ? fake_post(HOURS * 3600 * 1000 + 60000, on_answer, NULL) : NULL;
        return run_execute(&s->run, err) == 0 ? 0 : (api->ended - api->began) / 1000;
}

/* The deadline of the API begins when what it needs has been delivered. */
void test_api_after_slow_delivery(void **state)
{
        struct site s;
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(api_waited(&s, true, &err), 0);
        fake_end(&s);
        assert_in_range(api_waited(&s, false, &err), HOURS * 3600 + 900, HOURS * 3600 + 1000);
        assert_non_null(strstr(err.message, "waiting for /readyz"));
        fake_end(&s);
}

/* A look at etcd that gives up leaves nothing of what it still waited for: the sanitizers see it.
 */
void test_look_gives_up(void **state)
{
        static const enum fault_kind kinds[] = { FAULT_NONE, FAULT_DELAY, FAULT_LOST, FAULT_CUT };
        size_t n = 1, late = 0;
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                for (size_t at = 1; at <= n; at++) {
                        struct site s;
                        struct etcd_view v;
                        struct error err CLEANUP(error_release) = { 0 };
                        size_t answered = 0;
                        world.faults[0] = (struct fault){ kinds[k], at, 0 };
                        world.faults[1] = none;
                        fake_begin(&s, FAKE_NEW, FAKE_NEW, 0);
                        assert_int_equal(etcd_look(&s, &v, &err), 0);
                        for (size_t i = 0; i < v.count; i++) {
                                answered += v.seen[i].answered;
                                late += v.seen[i].trouble &&
                                        strstr(v.seen[i].trouble, "no answer within");
                        }
                        assert_true(answered >= (kinds[k] ? 2 : 3) && v.quorum);
                        n = kinds[k] ? n : world.seen;
                        etcd_view_release(&v);
                        fake_end(&s);
                        if (!kinds[k])
                                break;
                }
        assert_true(n > 9 && late > 0);
}
