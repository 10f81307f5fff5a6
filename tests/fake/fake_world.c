/* The clock, the events, and the site that the tests begin with. */
#include "base/base.h"

#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

#include "../unit/node_fixture.h"
#include "fake.h"

struct world world;
const char *const fake_names[FAKE_NODES] = { "c1", "c2", "c3", "w1", "w2" };

/* ---- time: libevent's and ours ---- */

#define LIMIT_MS ((int64_t)100 * 3600 * 1000)

static int64_t virtual_ms;
static bool playing;

int64_t fake_now(void) { return virtual_ms; }

int clock_gettime(clockid_t clock, struct timespec *t)
{
        if (!playing || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
                return (int)syscall(SYS_clock_gettime, clock, t);
        bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
        int64_t ms = virtual_ms + (wall ? (int64_t)1800000000 * 1000 + world.wall : 0);
        *t = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
        return 0;
}

void fake_show(const struct run *r)
{
        static const char *const states[] = { "waits", "runs", "done", "kept", "failed",
                "skipped" };
        for (const struct step *s = r->first; s; s = s->next)
                fprintf(stderr, "  %-12s %-5s %-8s %s\n", s->name, s->node ? s->node : "",
                        states[s->state],
                        s->err.message ? s->err.message
                        : s->doing     ? s->doing
                                       : "");
}

static _Noreturn void stuck(const char *why)
{
        const struct fault *f = world.faults;
        fprintf(stderr, "%s: %s (faults %d@%zu/%zu, %d@%zu/%zu; %zu events)\n", world.story, why,
                f[0].kind, f[0].at, f[0].victim, f[1].kind, f[1].at, f[1].victim, world.seen);
        if (world.run)
                fake_show(world.run);
        event_base_dump_events(world.base, stderr);
        abort();
}

/* Nothing is to be read: the time passes that libevent would have waited. Without a timer it would
 * wait for ever. */
int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
        int n = (int)syscall(SYS_epoll_pwait, fd, events, max, playing ? 0 : timeout, NULL, 8);
        if (n != 0 || !playing || timeout == 0)
                return n;
        if (timeout < 0)
                stuck("the run waits for something that nobody will bring");
        virtual_ms += timeout;
        if (virtual_ms > LIMIT_MS)
                stuck("the run does not end");
        return 0;
}

/* What these runs write need not outlive a power cut. */
int fsync(int fd) { return 0; }
int fdatasync(int fd) { return 0; }

/* ---- events ---- */

struct fake_event {
        struct event *timer;
        fake_fn fn;
        void *self;
        bool counted; /* it was put off: its number stays */
};

static void put_off(struct fake_event *e, unsigned ms)
{
        e->counted = true;
        event_add(e->timer, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

static void cut_now(evutil_socket_t fd, short what, void *arg)
{
        size_t victim = (size_t)(uintptr_t)arg;
        for (size_t i = 0; i < FAKE_NODES; i++)
                if (victim == FAKE_NODES || victim == i)
                        fake_cut(i);
}

static enum how fault_at(struct fake_event *e, const struct fault *f, bool *later)
{
        *later = true;
        switch (f->kind) {
        case FAULT_CUT:
        case FAULT_CUT_ALL:
                event_base_once(world.base, -1, EV_TIMEOUT, cut_now,
                        (void *)(uintptr_t)(f->kind == FAULT_CUT ? f->victim : FAKE_NODES),
                        &(struct timeval){ 0 });
                put_off(e, 1);
                return HOW_PLAIN;
        case FAULT_REORDER:
                put_off(e, 50);
                return HOW_PLAIN;
        case FAULT_DELAY:
                put_off(e, 3600 * 1000);
                return HOW_PLAIN;
        case FAULT_API_GONE:
                world.api_gone = true;
                break;
        case FAULT_CLOCK:
                world.wall += (int64_t)3600 * 1000;
                break;
        case FAULT_INTERRUPT:
                raise(SIGINT);
                break;
        default:
                break;
        }
        *later = false;
        return f->kind == FAULT_LOST      ? HOW_LOST
               : f->kind == FAULT_REFUSE  ? HOW_REFUSED
               : f->kind == FAULT_NOT_YET ? HOW_NOT_YET
                                          : HOW_PLAIN;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
        struct fake_event *e = arg;
        enum how how = HOW_PLAIN;
        size_t n = e->counted ? 0 : ++world.seen;
        if (world.seen > 100000)
                stuck("the run asks without end");
        for (size_t i = 0; n && i < ARRAY_SIZE(world.faults); i++) {
                bool later;
                if (world.faults[i].at != n)
                        continue;
                enum how one = fault_at(e, &world.faults[i], &later);
                if (later)
                        return;
                how = one;
        }
        fake_fn fn = e->fn;
        void *self = e->self;
        fn(self, how);
}

struct fake_event *fake_post(unsigned ms, fake_fn fn, void *self)
{
        struct fake_event *e = xcalloc(1, sizeof(*e));
        *e = (struct fake_event){ .fn = fn, .self = self };
        e->timer = evtimer_new(world.base, on_event, e);
        event_add(e->timer, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
        return e;
}

void fake_forget(struct fake_event *e)
{
        if (!e)
                return;
        event_free(e->timer);
        free(e);
}

size_t fake_index(const char *node)
{
        for (size_t i = 0; i < FAKE_NODES; i++)
                if (streq(fake_names[i], node))
                        return i;
        fail_msg("no node is called %s", node);
        return 0;
}

/* ---- the site ---- */

static const char yaml[] =
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: fake}\nspec:\n  kubernetes: %s\n  provider: {ssh: {user: root}}\n"
        "  network: {fabric: none}\n  upgrade: {healthTimeout: 10s, drainTimeout: 60s, workersAtOnce: 2}\n  pools:\n"
        "    - {name: control, roles: [control-plane, etcd], hosts: [{name: c1, address: 192.0.2.11}, {name: c2, address: 192.0.2.12}, "
        "{name: c3, address: 192.0.2.13}]}\n"
        "    - {name: worker, hosts: [{name: w1, address: 192.0.2.14}, {name: w2, address: 192.0.2.15}]}\n";

static struct fixture fixtures[2]; /* one for each version that is wanted: reading the file is most
                                      of a run's work */
static struct arena arena;
static struct provider_ops ops;
static char *dir;

static int find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err)
{
        *out = (struct machine){
                .node = n, .state = MACHINE_RUNNING, .target = { .name = n->name, .host = n->name }
        };
        return 0;
}

/* Nothing has to be made for machines that are there. */
static void prepare(struct provider_run *run,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        fn(NULL, arg);
}

static void peers_begin(const struct site *s)
{
        for (size_t i = 0; i < 3; i++) {
                struct fake_peer *p = &world.peers[world.peer_count++];
                char *url CLEANUP(free_p) = etcd_peer_url(s->members[i].node);
                *p = (struct fake_peer){ .id = ++world.last_id };
                snprintf(p->name, sizeof(p->name), "%s", fake_names[i]);
                snprintf(p->peer, sizeof(p->peer), "%s", url);
                snprintf(p->client, sizeof(p->client), "%s", url);
                world.applied[i] = 100 + i;
        }
}

void fake_begin(struct site *s, const char *wanted, const char *running, size_t slots)
{
        char *text CLEANUP(free_p) = xasprintf(yaml, wanted), name[] = "/tmp/slipway-fake-XXXXXX";
        struct fixture *f = &fixtures[streq(wanted, FAKE_OLD)];
        if (!f->cluster)
                fixture_init(f, text);
        assert_non_null(mkdtemp(name));
        dir = xstrdup(name);
        ops = (struct provider_ops){ .name = "fake", .find = find, .prepare = prepare };
        struct fault faults[ARRAY_SIZE(world.faults)];
        memcpy(faults, world.faults, sizeof(faults));
        virtual_ms = 1000000;
        playing = true;
        world = (struct world){ .base = event_base_new(), .story = world.story, .slots = slots };
        memcpy(world.faults, faults, sizeof(faults));
        *s = (struct site){ .base = world.base,
                .arena = &arena,
                .cluster = f->cluster,
                .identity = f->identity,
                .ops = &ops,
                .count = FAKE_NODES,
                .lock_path = xstrdup("unused") };
        s->cluster->services = (struct services){ 0 }; /* the fixture is that of all scenarios */
        s->identity.dir = dir;
        s->identity.lock = -1;
        s->provider = (struct provider_run){
                .base = s->base, .cluster = s->cluster, .state = dir, .arena = s->arena
        };
        s->machines = arena_array(s->arena, struct machine, s->count);
        s->members = arena_array(s->arena, struct member, s->count);
        for (size_t i = 0; i < s->count; i++) {
                struct node *n = &s->cluster->nodes[i];
                find(NULL, n, &s->machines[i], NULL);
                s->members[i] = (struct member){
                        .site = s, .node = n, .machine = &s->machines[i], .plan.issued = true
                };
                snprintf(world.nodes[i].version, sizeof(world.nodes[i].version), "%s", running);
                snprintf(world.nodes[i].given, sizeof(world.nodes[i].given), "%s", running);
                records_put(&s->found.record, s->arena, n->name)->healthy = running;
        }
        s->cluster->readiness = (struct readiness){ .value = -1, .wait = 900 };
        peers_begin(s);
        run_init(&s->run, s->base, s->arena, "fake", "fake");
        world.run = &s->run;
        pool_begin(s);
        slots_limit(slots ? (unsigned)slots : FAKE_NODES, false);
        close(open(arena_printf(s->arena, "%s/born", dir), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

void fake_end(struct site *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct event_base *base = world.base;
        fake_machines_end();
        s->identity = (struct identity){ .lock = -1 }; /* its texts are the fixture's */
        world.run = NULL;
        site_release(s);
        event_base_free(base);
        playing = false;
        if (world.opened != world.closed || world.calls || world.fetches)
                stuck("something of the run is left");
        dir_remove(dir, &err);
        free(dir);
        arena_release(&arena);
}

struct provider_ops *fake_ops(void) { return &ops; }

const char *fake_dir(void) { return dir; }

void fake_release(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++)
                fixture_release(&fixtures[i]);
}
