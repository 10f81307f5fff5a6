/* Runs with something wrong at every event: each must end, each step once, and nothing may be left
 * behind. The scenarios are the ones in which a run waits for links, etcd and the API at the same
 * time. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>
#include <event2/event.h>

#include "base/file.h"
#include "addon/outside.h"
#include "cluster/site/op.h"
#include "cluster/up/up.h"
#include "cluster/leave/leave.h"
#include "cluster/plan/plan.h"
#include "cluster/plan/reboot.h"
#include "cluster/etcd/restore/restore.h"
#include "cluster/upgrade/upgrade.h"
#include "fake.h"

struct scenario {
        const char *name, *wanted, *running;
        void (*prepare)(struct site *s);           /* the world, and the steps */
        void (*check)(struct site *s, int result); /* after a run without a fault */
        size_t slots;                              /* links at once; 0: one for each node */
};

/* ---- scenarios ---- */

/* How the run is done; NULL: its steps are there. */
static int (*run_as)(struct site *s, struct error *err);

/* The plan is made, and done as it is. */
int up_run(struct site *s, struct error *err)
{
        int r = up_observe(s, err);
        return r < 0 ? r : up_apply(s, err);
}

static void up_begin(struct site *s) { run_as = up_run; }

static void join_begin(struct site *s)
{
        world.nodes[2].fresh = true;
        world.peer_count = 2;
        up_begin(s);
}

static void join_check(struct site *s, int result)
{
        assert_int_equal(result, 0);
        assert_int_equal(world.peer_count, 3);
        assert_string_equal(world.peers[2].name, "c3");
        assert_false(world.peers[2].learner);
}

static void leaving_begin(struct site *s)
{
        static const char *names[] = { "c3" };
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(leave_choose(s, &(struct strings){ 1, names }, 0, &err), 0);
        s->kube = (struct kube *)&world;
        leave_begin(s);
}

static void leave_check(struct site *s, int result)
{
        assert_int_equal(result, 0);
        assert_int_equal(world.peer_count, 2);
        assert_true(world.nodes[2].reset && world.nodes[2].gone);
}

/* One phase of a rotation: other files everywhere, the same version. */
static void rotate_begin(struct site *s)
{
        for (size_t i = 0; i < FAKE_NODES; i++)
                snprintf(world.nodes[i].given, sizeof(world.nodes[i].given), "before");
        up_begin(s);
}

static void all_given(struct site *s, int result)
{
        assert_int_equal(result, 0);
        for (size_t i = 0; i < FAKE_NODES; i++) {
                assert_string_equal(world.nodes[i].given, s->cluster->kubernetes.text);
                assert_string_equal(world.nodes[i].version, s->cluster->kubernetes.text);
                assert_false(world.nodes[i].cordoned);
        }
}

static void one_link_a_node(struct site *s, int result)
{
        all_given(s, result);
        assert_int_equal(world.opened, FAKE_NODES);
}

static void broken_control_begin(struct site *s)
{
        world.nodes[0].broken = true;
        up_begin(s);
}

static const struct step *step_of(const struct site *s, const char *name, const char *node)
{
        for (const struct step *one = s->run.first; one; one = one->next)
                if (streq(one->name, name) && one->node && streq(one->node, node))
                        return one;
        fail_msg("there is no step %s %s", name, node);
        return NULL;
}

static void was_taken_back(const struct site *s, size_t i)
{
        const struct step *healthy = step_of(s, "healthy", fake_names[i]);
        assert_int_equal(healthy->state, STEP_FAILED);
        assert_non_null(strstr(healthy->err.message, "was rolled back to " FAKE_OLD));
        /* nobody waited for the version that is no longer there */
        assert_int_not_equal(step_of(s, "Ready", fake_names[i])->state, STEP_FAILED);
        assert_string_equal(world.nodes[i].given, FAKE_OLD);
        assert_false(world.nodes[i].cordoned);
}

static void broken_control_check(struct site *s, int result)
{
        assert_true(result < 0);
        was_taken_back(s, 0);
        for (size_t i = 1; i < FAKE_NODES; i++)
                assert_string_equal(world.nodes[i].given, FAKE_OLD);
}

/* Both workers are away at once, and both go back at once. */
static void broken_workers_begin(struct site *s)
{
        for (size_t i = 0; i < FAKE_NODES; i++) {
                world.nodes[i].broken = i >= 3;
                if (i < 3) {
                        snprintf(world.nodes[i].version, sizeof(world.nodes[i].version), FAKE_NEW);
                        snprintf(world.nodes[i].given, sizeof(world.nodes[i].given), FAKE_NEW);
                }
        }
        up_begin(s);
}

static void broken_workers_check(struct site *s, int result)
{
        assert_true(result < 0);
        was_taken_back(s, 3);
        was_taken_back(s, 4);
}

/* A control-plane node and a worker want a reboot. */
static void reboot_begin(struct site *s)
{
        static const struct strings nobody;
        static const struct reboot_request needed = { .names = &nobody };
        struct error err CLEANUP(error_release) = { 0 };
        world.nodes[1].outdated = world.nodes[3].outdated = true;
        assert_int_equal(reboot_ask(s, &needed, &err), 0);
        up_begin(s);
}

static void reboot_check_all(struct site *s, int result)
{
        all_given(s, result);
        for (size_t i = 0; i < FAKE_NODES; i++) {
                assert_int_equal(world.nodes[i].boots, i == 1 || i == 3);
                assert_false(world.nodes[i].outdated);
        }
        assert_true(step_of(s, "reboot", "w1")->began >= step_of(s, "healthy", "c2")->ended);
}

/* Two control-plane nodes and both workers have machines of another flavor. */
static void anew_old(void)
{
        world.nodes[0].old = world.nodes[2].old = world.nodes[3].old = world.nodes[4].old = true;
}

static void anew_begin(struct site *s)
{
        anew_old();
        fake_machines(s, fake_ops());
        up_begin(s);
}

static void anew_is_over(struct site *s, int result)
{
        size_t voters = 0;
        all_given(s, result);
        for (size_t i = 0; i < world.peer_count; i++)
                voters += !world.peers[i].learner && *world.peers[i].client;
        assert_int_equal(voters, 3);
        assert_int_equal(world.peer_count, 3);
        assert_int_equal(world.balanced, 7);
        for (size_t i = 0; i < FAKE_NODES; i++)
                assert_false(world.nodes[i].old || world.nodes[i].gone || world.nodes[i].away);
}

static void anew_check_all(struct site *s, int result)
{
        struct str text CLEANUP(str_release) = { 0 };
        anew_is_over(s, result);
        s->machines[0].outdated = "flavor b instead of a"; /* as before the run */
        plan_text(s, false, &text);
        assert_non_null(strstr(str_text(&text),
                "c1        replace  rolling replacement: drain it, make its machine anew (flavor b instead of a) with the same address, then install everything; its etcd joins as a learner and is promoted\n"));
        assert_null(strstr(str_text(&text), "c2 "));
        for (size_t i = 0; i < FAKE_NODES; i++)
                assert_int_equal(world.nodes[i].made, i != 1);
        assert_true(
                step_of(s, "remove machine", "c3")->began >= step_of(s, "healthy", "c1")->ended);
        assert_true(
                step_of(s, "remove machine", "w1")->began >= step_of(s, "healthy", "c3")->ended);
}

static void anew_refused_begin(struct site *s)
{
        anew_begin(s);
        world.no_leader = 1U << 1;
}

static void anew_refused_check(struct site *s, int result)
{
        assert_true(result < 0);
        for (size_t i = 0; i < FAKE_NODES; i++)
                assert_int_equal(world.nodes[i].made, 0);
        assert_int_equal(world.peer_count, 3);
}

static void down_begin(struct site *s)
{
        s->allow_down = true;
        up_begin(s);
}

static struct restore restore;
static struct snapshot snapshot;

static void restore_begin(struct site *s)
{
        static const char text[] = "a snapshot of etcd, as far as anybody here knows";
        struct error err CLEANUP(error_release) = { 0 };
        const char *path = arena_printf(s->arena, "%s/some.db", s->identity.dir);
        assert_int_equal(file_write(path, text, strlen(text), 0600, 0, NULL, &err), 0);
        snapshot = (struct snapshot){
                .site = s, .path = path, .size = (int64_t)strlen(text), .revision = -1, .keys = -1
        };
        sha256_hex(text, strlen(text), snapshot.digest);
        restore_init(&restore, s, &snapshot);
        s->kube = (struct kube *)&world;
        restore_steps(&restore);
}

static void good(struct site *s, int result) { assert_int_equal(result, 0); }

static void snapshot_begin(struct site *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(snapshot_name(&snapshot, s, NULL, NULL, &err), 0);
        struct step *take = run_step(&s->run, "snapshot", NULL, step_snapshot, &snapshot);
        for (size_t i = 0; i < 3; i++) {
                s->members[i].run.connect = run_step(
                        &s->run, "connect", s->members[i].node->name, step_connect, &s->members[i]);
                step_after(take, s->members[i].run.connect);
        }
}

/* ---- readiness: one worker is enough ---- */

static void enough_begin(struct site *s, long workers)
{
        s->cluster->readiness =
                (struct readiness){ .type = READINESS_COUNT, .value = workers, .wait = 60 };
        s->run.verb = "up";
        up_begin(s);
}

static void away_begin(struct site *s)
{
        world.nodes[4].fresh = world.nodes[4].away = true;
        enough_begin(s, 1);
}

static void mute_begin(struct site *s)
{
        world.nodes[4].fresh = world.nodes[4].mute = true;
        enough_begin(s, 1);
}

static void without_w2(struct site *s, int result)
{
        assert_int_equal(result, 0);
        assert_non_null(s->members[4].run.lacking);
        assert_null(s->members[3].run.lacking);
        assert_int_equal(step_of(s, "Ready", "w2")->state, STEP_DONE);
}

/* It is not waited for when nothing can come of it. */
static void away_check(struct site *s, int result)
{
        without_w2(s, result);
        assert_true(step_of(s, "Ready", "w2")->ended < 50000);
        assert_int_equal(step_of(s, "apply", "w2")->state, STEP_KEPT);
}

static void mute_check(struct site *s, int result)
{
        without_w2(s, result);
        assert_true(step_of(s, "Ready", "w2")->ended >= 60000);
        assert_string_equal(world.nodes[4].given, s->cluster->kubernetes.text);
}

static void too_few_begin(struct site *s)
{
        away_begin(s);
        world.nodes[3].fresh = world.nodes[3].mute = true;
}

static void too_few_check(struct site *s, int result)
{
        assert_true(result < 0);
        assert_non_null(strstr(step_of(s, "Ready", "w1")->err.message,
                "0 Ready workers are fewer than the 1 that readiness needs"));
        assert_int_equal(step_of(s, "Ready", "w2")->state, STEP_FAILED);
}

/* A control-plane node is always needed. */
static void control_away_begin(struct site *s)
{
        world.nodes[2].away = true;
        enough_begin(s, 0);
}

static void control_away_check(struct site *s, int result)
{
        assert_true(result < 0);
        assert_int_equal(step_of(s, "connect", "c3")->state, STEP_FAILED);
}

/* And an upgrade needs every node. */
static void away_upgrade_check(struct site *s, int result)
{
        assert_true(result < 0);
        for (size_t i = 0; i < FAKE_NODES; i++)
                assert_string_equal(world.nodes[i].given, FAKE_OLD);
}

/* One release is left half done, one is to come after it, one goes, and one is somebody else's. */
static void services_begin(struct site *s)
{
        fake_services(s, fake_dir());
        up_begin(s);
}

/* Only the objects of the manifest are in the namespace that ends. */
static void ending_begin(struct site *s)
{
        fake_services(s, fake_dir());
        s->cluster->services.namespaces.n = s->cluster->services.charts.n = 0;
        world.ending = "shop";
        up_begin(s);
}

static void ending_check(struct site *s, int result)
{
        assert_true(result < 0);
        const struct step *refused = fake_step_named(s, "services");
        assert_non_null(strstr(refused->err.message,
                "objects.yaml: the namespace shop is being deleted (Terminating)"));
        assert_int_equal(world.releases[2].revision, 3); /* one that would be removed */
}

/* ---- the whole cluster goes ---- */

static int end_run(struct site *s, struct error *err)
{
        int r = leave_choose(s, &(struct strings){ 0 }, 0, err);
        if (r == 0)
                r = leave_observe(s, err);
        return r < 0 ? r : leave_apply(s, err);
}

static void end_begin(struct site *s)
{
        fake_outside(s, 20000);
        run_as = end_run;
}

static size_t count_reset(void)
{
        size_t n = 0;
        for (size_t i = 0; i < FAKE_NODES; i++)
                n += world.nodes[i].reset;
        return n;
}

static void end_check(struct site *s, int result)
{
        assert_int_equal(result, 0);
        assert_int_equal(count_reset(), FAKE_NODES);
        assert_false(
                fake_outside_there() || world.releases[0].revision || world.releases[1].revision);
        assert_int_equal(world.releases[2].revision, 7); /* somebody else's */
}

static void end_keep_begin(struct site *s)
{
        end_begin(s);
        s->volumes_fate = VOLUMES_KEEP;
}

static void end_keep_check(struct site *s, int result)
{
        end_check(s, result);
        fake_volume_kept(s);
}

static void end_never_begin(struct site *s)
{
        end_begin(s);
        world.balancer.takes = -1;
}

static void end_never_check(struct site *s, int result)
{
        assert_true(result < 0);
        assert_int_equal(count_reset(), 0);
        const struct step *late = fake_step_named(s, "load balancers");
        assert_non_null(strstr(late->err.message,
                "not deleted after 300 s: Service shop/front (finalizer example.net/cleanup)"));
        assert_non_null(strstr(late->err.hint, "--no-cleanup"));
        assert_true(world.releases[0].revision && !world.releases[1].revision);
}

static void end_blind_begin(struct site *s)
{
        end_begin(s);
        world.api_gone = true;
}

static void end_blind_check(struct site *s, int result)
{
        assert_int_equal(result, 0);
        assert_int_equal(count_reset(), FAKE_NODES);
        assert_non_null(s->found.outside->blind);
}

/* Whatever goes wrong: no node before what is outside, unless nobody could know of it. */
static void nothing_leaks(const struct site *s)
{
        if (world.wrong)
                fail_msg("%s: %s", world.story, world.wrong);
        if (world.early && !s->found.outside->blind)
                fail_msg("%s: a node was reset too early", world.story);
}

/* Whatever goes wrong, also if the run is killed: what the record on disk says of versions is true.
 * A node that was given a version with which it never became healthy has the one before. */
static void record_is_true(const struct scenario *c, struct site *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct host_records on_disk;
        char *path CLEANUP(free_p) = path_join(fake_dir(), "record.json");
        if (streq(c->running, c->wanted) || access(path, F_OK) != 0)
                return; /* nothing was changed */
        assert_int_equal(records_read(fake_dir(), s->arena, &on_disk, &err), 0);
        for (size_t i = 0; i < FAKE_NODES; i++) {
                const struct fake_node *n = &world.nodes[i];
                const struct host_record *h = records_find(&on_disk, fake_names[i]);
                const char *healthy = h && h->healthy ? h->healthy : "",
                           *unproven = h && h->unproven ? h->unproven : "";
                bool sick = n->broken && streq(n->given, c->wanted);
                if (streq(healthy, c->wanted) && (sick || !streq(n->given, c->wanted)))
                        fail_msg("%s: %s was never healthy with %s", c->name, fake_names[i],
                                healthy);
                if (sick && (!streq(healthy, c->running) || !streq(unproven, c->wanted)))
                        fail_msg(
                                "%s: %s: its version before is lost (healthy \"%s\", unproven \"%s\")",
                                c->name, fake_names[i], healthy, unproven);
        }
}

static const struct scenario scenarios[] = {
        { "down", FAKE_NEW, FAKE_NEW, end_begin, end_check },
        { "down, volumes stay", FAKE_NEW, FAKE_NEW, end_keep_begin, end_keep_check },
        { "down, a load balancer never goes", FAKE_NEW, FAKE_NEW, end_never_begin,
                end_never_check },
        { "down, no API", FAKE_NEW, FAKE_NEW, end_blind_begin, end_blind_check },
        { "readiness, a worker away", FAKE_NEW, FAKE_NEW, away_begin, away_check },
        { "readiness, a worker late", FAKE_NEW, FAKE_NEW, mute_begin, mute_check },
        { "readiness, too few", FAKE_NEW, FAKE_NEW, too_few_begin, too_few_check },
        { "readiness, a control plane away", FAKE_NEW, FAKE_NEW, control_away_begin,
                control_away_check },
        { "readiness, upgrade", FAKE_NEW, FAKE_OLD, away_begin, away_upgrade_check },
        { "services", FAKE_NEW, FAKE_NEW, services_begin, fake_services_check },
        { "services, a namespace ends", FAKE_NEW, FAKE_NEW, ending_begin, ending_check },
        { "nothing to do", FAKE_NEW, FAKE_NEW, up_begin, all_given },
        { "join", FAKE_NEW, FAKE_NEW, join_begin, join_check },
        { "leave", FAKE_NEW, FAKE_NEW, leaving_begin, leave_check },
        { "rotate", FAKE_NEW, FAKE_NEW, rotate_begin, all_given },
        { "upgrade", FAKE_NEW, FAKE_OLD, up_begin, all_given },
        { "automatic rollback of a control plane", FAKE_NEW, FAKE_OLD, broken_control_begin,
                broken_control_check },
        { "automatic rollback of two workers", FAKE_NEW, FAKE_OLD, broken_workers_begin,
                broken_workers_check },
        { "rollback", FAKE_OLD, FAKE_NEW, down_begin, all_given },
        { "reboot", FAKE_NEW, FAKE_NEW, reboot_begin, reboot_check_all },
        { "reboot, one link", FAKE_NEW, FAKE_NEW, reboot_begin, reboot_check_all, 1 },
        { "replacement", FAKE_NEW, FAKE_NEW, anew_begin, anew_check_all },
        { "replacement, one link", FAKE_NEW, FAKE_NEW, anew_begin, anew_check_all, 1 },
        { "replacement, a member is not healthy", FAKE_NEW, FAKE_NEW, anew_refused_begin,
                anew_refused_check },
        { "replacement and upgrade", FAKE_NEW, FAKE_OLD, anew_begin, anew_refused_check },
        { "snapshot", FAKE_NEW, FAKE_NEW, snapshot_begin, good },
        { "restore", FAKE_NEW, FAKE_NEW, restore_begin, good },
        { "nothing to do, four links", FAKE_NEW, FAKE_NEW, up_begin, one_link_a_node, 4 },
        { "join, one link", FAKE_NEW, FAKE_NEW, join_begin, join_check, 1 },
        { "join, two links", FAKE_NEW, FAKE_NEW, join_begin, join_check, 2 },
        { "leave, one link", FAKE_NEW, FAKE_NEW, leaving_begin, leave_check, 1 },
        { "rotate, two links", FAKE_NEW, FAKE_NEW, rotate_begin, all_given, 2 },
        { "upgrade, one link", FAKE_NEW, FAKE_OLD, up_begin, all_given, 1 },
        { "automatic rollback of two workers, two links", FAKE_NEW, FAKE_OLD, broken_workers_begin,
                broken_workers_check, 2 },
        { "restore, two links", FAKE_NEW, FAKE_NEW, restore_begin, good, 2 },
};

/* ---- one run ---- */

/* Something else goes on all the while, so that answers which come late still find the run. */
static void on_other_work(evutil_socket_t fd, short what, void *arg) { step_done(arg, NULL); }

static void step_other_work(struct step *s)
{
        event_base_once(
                world.base, -1, EV_TIMEOUT, on_other_work, s, &(struct timeval){ .tv_sec = 7200 });
}

static size_t ends;

static void on_step(struct run *r, struct step *s, void *arg) { ends += s->state >= STEP_DONE; }

static void on_change(struct run *r, struct step *s, const char *change, void *arg)
{
        if (getenv("FAKE_SHOW"))
                fprintf(stderr, "  %s %s: %s\n", s->node ? s->node : "", s->name, change);
}

/* Every step ended, and once (the runner aborts on a second end). Returns how many events there
 * were. */
static size_t run_once(const struct scenario *c, struct fault one, struct fault two)
{
        struct site s;
        struct error err CLEANUP(error_release) = { 0 };
        world.story = c->name;
        world.faults[0] = one;
        world.faults[1] = two;
        fake_begin(&s, c->wanted, c->running, c->slots);
        ends = 0;
        run_observe(&s.run, &(struct run_observer){ .on_step = on_step, .on_change = on_change });
        run_as = NULL;
        c->prepare(&s);
        run_step(&s.run, "other work", NULL, step_other_work, NULL);
        int r = run_as ? run_as(&s, &err) : run_execute(&s.run, &err);
        nothing_leaks(&s);
        record_is_true(c, &s);
        bool interrupted = one.kind == FAULT_INTERRUPT || two.kind == FAULT_INTERRUPT;
        if (getenv("FAKE_SHOW"))
                fake_show(&s.run);
        if (!interrupted && (s.run.open || ends != s.run.count)) {
                fake_show(&s.run);
                fail_msg("%s: %zu of %zu steps are open after fault %d at %zu of %s", c->name,
                        s.run.open, s.run.count, one.kind, one.at, fake_names[one.victim]);
        }
        if ((one.kind == FAULT_NONE || one.kind == FAULT_CLOCK) && two.kind == FAULT_NONE) {
                if (r < 0 && c->check == all_given)
                        fake_show(&s.run);
                c->check(&s, r);
        }
        size_t seen = world.seen;
        fake_end(&s);
        free(TAKE(restore.marker));
        return seen;
}

static const struct fault none = { 0 };

/* FAKE_ONLY=leave FAKE_SHOW=1 show one of them. */
static bool left_out(const struct scenario *c)
{
        const char *only = getenv("FAKE_ONLY");
        return only && !streq(only, c->name);
}

static void test_without_fault(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++)
                if (!left_out(&scenarios[i]))
                        run_once(&scenarios[i], none, none);
}

/* FAKE_EVERY=5: at each fifth event only. make test runs all of them under the sanitizers. */
static size_t fault_distance(void)
{
        const char *every = getenv("FAKE_EVERY");
        long n = every ? strtol(every, NULL, 10) : 1;
        return n > 0 ? (size_t)n : 1;
}

/* One thing goes wrong: at every event, everything that can. */
static void test_one_fault(void **state)
{
        size_t distance = fault_distance();
        for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
                if (left_out(&scenarios[i]))
                        continue;
                size_t n = run_once(&scenarios[i], none, none), runs = 0;
                for (size_t at = 1 + i % distance; at <= n; at += distance)
                        for (int kind = FAULT_CUT; kind < FAULT_COUNT; kind++)
                                for (size_t victim = 0;
                                        victim < (kind == FAULT_CUT ? FAKE_NODES : 1);
                                        victim++, runs++)
                                        run_once(&scenarios[i], (struct fault){ kind, at, victim },
                                                none);
                fprintf(stderr, "%s: %zu events, %zu runs\n", scenarios[i].name, n, runs);
        }
}

/* ---- the run after an interrupted one ---- */

/* The upgrade of c1, which does not become healthy, with this fault; then another run. alone: then
 * the API does not answer either. Returns how many events the first run had; *left: it left c1 with
 * the new version. */
static size_t interrupted_and_again(struct fault f, bool alone, bool *left)
{
        struct site s;
        struct error err CLEANUP(error_release) = { 0 }, first CLEANUP(error_release) = { 0 };
        struct fake_node nodes[FAKE_NODES];
        struct str record CLEANUP(str_release) = { 0 };
        world.faults[0] = f;
        world.faults[1] = none;
        fake_begin(&s, FAKE_NEW, FAKE_OLD, 0);
        world.nodes[0].broken = true;
        world.api_on_c1 = alone;
        up_run(&s, &first);
        size_t seen = world.seen;
        *left = streq(world.nodes[0].given, FAKE_NEW);
        memcpy(nodes, world.nodes, sizeof(nodes));
        char *path CLEANUP(free_p) = path_join(fake_dir(), "record.json");
        if (*left)
                assert_int_equal(file_read(path, 1 << 20, &record, &err), 0);
        fake_end(&s);
        if (!*left)
                return seen;
        world.faults[0] = none;
        fake_begin(&s, FAKE_NEW, FAKE_OLD, 0);
        for (size_t i = 0; i < FAKE_NODES; i++) {
                nodes[i].link = NULL;
                world.nodes[i] = nodes[i];
        }
        world.api_on_c1 = alone;
        free(TAKE(path));
        path = path_join(fake_dir(), "record.json");
        assert_int_equal(file_write(path, record.data, record.len, 0600, 0, NULL, &err), 0);
        assert_int_equal(records_read(fake_dir(), s.arena, &s.found.record, &err), 0);
        assert_true(up_run(&s, &err) < 0);
        was_taken_back(&s, 0);
        fake_end(&s);
        return seen;
}

/* c1 is rolled back by the next run, wherever the first was cut or killed, and also if the API does
 * not answer: then only the record has the version before. */
static void test_interrupted_and_again(void **state)
{
        static const enum fault_kind kinds[] = { FAULT_CUT, FAULT_CUT_ALL, FAULT_INTERRUPT };
        bool left;
        size_t all = 0;
        world.story = "the run after an interrupted one";
        size_t n = interrupted_and_again(none, false, &left);
        assert_false(left);
        for (size_t at = 1; at <= n; at += fault_distance())
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                        for (int alone = 0; alone < 2; alone++) {
                                interrupted_and_again(
                                        (struct fault){ kinds[k], at, 0 }, alone, &left);
                                all += left;
                        }
        fprintf(stderr, "%zu runs left a node with a version that is not healthy\n", all);
        assert_true(all > 0);
}

/* A replacement with this fault, and then another run. Returns how many events the first had. */
static size_t anew_and_again(struct fault f)
{
        struct site s;
        struct error err CLEANUP(error_release) = { 0 }, first CLEANUP(error_release) = { 0 };
        struct world kept;
        world.faults[0] = f;
        world.faults[1] = none;
        fake_begin(&s, FAKE_NEW, FAKE_NEW, 0);
        anew_begin(&s);
        s.found.record.existed = true;
        up_run(&s, &first);
        kept = world;
        fake_end(&s);
        nothing_leaks(&s);
        world.faults[0] = none;
        fake_begin(&s, FAKE_NEW, FAKE_NEW, 0);
        memcpy(world.nodes, kept.nodes, sizeof(kept.nodes));
        memcpy(world.peers, kept.peers, sizeof(kept.peers));
        world.peer_count = kept.peer_count;
        world.last_id = kept.last_id;
        for (size_t i = 0; i < FAKE_NODES; i++) {
                world.nodes[i].link = NULL;
                world.nodes[i].making = NULL;
                world.nodes[i].starts = 0;
        }
        fake_machines(&s, fake_ops());
        s.found.record.existed = true;
        int r = up_run(&s, &err);
        if (r < 0) {
                fprintf(stderr, "after fault %d at %zu of %s: %s\n", f.kind, f.at,
                        fake_names[f.victim], err.message);
                fake_show(&s.run);
        }
        anew_is_over(&s, r);
        nothing_leaks(&s);
        fake_end(&s);
        return kept.seen;
}

/* Wherever the first run was cut, killed or refused: the next one ends it. */
static void test_replaced_and_again(void **state)
{
        static const enum fault_kind kinds[] = { FAULT_CUT, FAULT_CUT_ALL, FAULT_INTERRUPT,
                FAULT_LOST, FAULT_REFUSE };
        world.story = "the run after an interrupted replacement";
        size_t n = anew_and_again(none);
        for (size_t at = 1; at <= n; at += fault_distance())
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                        anew_and_again((struct fault){ kinds[k], at, at % FAKE_NODES });
        fprintf(stderr, "%zu events, %zu runs\n", n, n * ARRAY_SIZE(kinds));
}

/* Who has applied most takes the snapshot, also when it leads. */
static void test_snapshot_of_the_newest(void **state)
{
        for (size_t newest = 0; newest < 3; newest++)
                for (size_t leader = 0; leader < 3; leader++) {
                        struct site s;
                        struct error err CLEANUP(error_release) = { 0 };
                        memset(world.faults, 0, sizeof(world.faults));
                        fake_begin(&s, FAKE_NEW, FAKE_NEW, 0);
                        world.leader = leader;
                        world.applied[0] = world.applied[1] = world.applied[2] = 100;
                        world.applied[newest] = 101;
                        snapshot_begin(&s);
                        assert_int_equal(run_execute(&s.run, &err), 0);
                        assert_string_equal(world.snapshot_from, fake_names[newest]);
                        fake_end(&s);
                }
}

#define PAIRS 150

/* Two things go wrong; which, is chance with a fixed seed. */
static void test_two_faults(void **state)
{
        uint64_t seed = 1;
        for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
                if (left_out(&scenarios[i]))
                        continue;
                size_t n = run_once(&scenarios[i], none, none);
                for (size_t k = 0; k < PAIRS; k++) {
                        struct fault f[2];
                        for (size_t j = 0; j < 2; j++) {
                                seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
                                f[j] = (struct fault){
                                        FAULT_CUT + (int)(seed >> 33) % (FAULT_COUNT - FAULT_CUT),
                                        1 + (seed >> 40) % n, (seed >> 50) % FAKE_NODES
                                };
                        }
                        run_once(&scenarios[i], f[0], f[1]);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_without_fault),
                cmocka_unit_test(test_one_fault), cmocka_unit_test(test_two_faults),
                cmocka_unit_test(test_interrupted_and_again),
                cmocka_unit_test(test_replaced_and_again),
                cmocka_unit_test(test_snapshot_of_the_newest),
                cmocka_unit_test(test_snapshot_without_name),
                cmocka_unit_test(test_upgrade_without_api), cmocka_unit_test(test_look_gives_up),
                cmocka_unit_test(test_api_after_slow_delivery) };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        fake_release();
        return r;
}
