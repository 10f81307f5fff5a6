#include <event2/event.h>
#include <signal.h>

#include "base/clock.h"
#include "base/str.h"
#include "run/run.h"

int64_t run_now(const struct run *r) { return clock_ms() - r->began; }

void run_init(struct run *r, struct event_base *base, struct arena *a, const char *verb,
        const char *cluster)
{
        *r = (struct run){ .base = base,
                .arena = a,
                .verb = verb,
                .cluster = cluster,
                .began = clock_ms(),
                .wall = clock_wall_ms() };
}

void run_observe(struct run *r, const struct run_observer *o)
{
        if (r->observer_count == ARRAY_SIZE(r->observers))
                abort();
        r->observers[r->observer_count++] = *o;
}

/* For tests of killed runs: SLIPWAY_TEST_KILL=N kills this program with SIGKILL at its N-th
 * boundary. A step has three: after the journal line of its start; at its end, before the journal
 * line; after that line. So a run's journal tells how many there were: one for each "begin", two
 * for each end. Skipped steps have none, and all runs of one program are counted together. "begin
 * STEP NODE" and "end STEP NODE" (without NODE for steps of the cluster) name one instead. */
static void step_boundary(const struct step *s, const char *moment)
{
        static long count;
        const char *at = getenv("SLIPWAY_TEST_KILL");
        char *name CLEANUP(free_p) = at ? xasprintf("%s %s%s%s", moment, s->name,
                                                  s->node ? " " : "", s->node ? s->node : "")
                                        : NULL;
        if (at && (++count == strtol(at, NULL, 10) || streq(at, name)))
                kill(getpid(), SIGKILL);
}

static void step_tell(struct step *s)
{
        struct run *r = s->run;
        for (size_t i = 0; i < r->observer_count; i++)
                if (r->observers[i].on_step)
                        r->observers[i].on_step(r, s, r->observers[i].arg);
}

struct step *run_step(
        struct run *r, const char *name, const char *node, void (*start)(struct step *), void *arg)
{
        struct step *s = arena_new(r->arena, struct step);
        *s = (struct step){ .name = name,
                .node = node,
                .start = start,
                .arg = arg,
                .run = r,
                .permille = -1,
                .began = -1,
                .ended = -1 };
        if (r->last)
                r->last->next = s;
        else
                r->first = s;
        r->last = s;
        r->count++;
        r->open++;
        return s;
}

void step_after(struct step *s, struct step *other)
{
        if (!other)
                return;
        if (s->state != STEP_WAITING)
                abort();
        size_t n = s->wait_count;
        if (!(n & (n - 1))) { /* room for twice as many at every power of two */
                struct step **waits = arena_array(s->run->arena, struct step *, n ? n * 2 : 1);
                if (n)
                        memcpy(waits, s->waits, n * sizeof(*waits));
                s->waits = waits;
        }
        s->waits[s->wait_count++] = other;
}

void step_doing(struct step *s, int permille, const char *fmt, ...)
{
        struct str text CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&text, fmt, ap);
        va_end(ap);
        if (!s->doing || !streq(s->doing, str_text(&text)))
                s->doing = arena_strdup(s->run->arena, str_text(&text));
        s->permille = permille;
        struct run *r = s->run;
        for (size_t i = 0; i < r->observer_count; i++)
                if (r->observers[i].on_progress)
                        r->observers[i].on_progress(r, s, r->observers[i].arg);
}

void step_changed(struct step *s, const char *fmt, ...)
{
        struct str text CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&text, fmt, ap);
        va_end(ap);
        struct run *r = s->run;
        for (size_t i = 0; i < r->observer_count; i++)
                if (r->observers[i].on_change)
                        r->observers[i].on_change(r, s, str_text(&text), r->observers[i].arg);
}

static bool step_ended(const struct step *s) { return s->state >= STEP_DONE; }

static void step_finish(struct step *s, enum step_state state)
{
        if (s->deadline)
                event_free(s->deadline);
        s->deadline = NULL;
        if (step_ended(s))
                abort(); /* a step must end only once */
        s->state = state;
        s->ended = run_now(s->run);
        s->run->open--;
        if (state != STEP_SKIPPED)
                step_boundary(s, "end");
        step_tell(s);
        if (state != STEP_SKIPPED)
                step_boundary(s, "end");
        event_base_loopbreak(s->run->base); /* lets the runner start what can start now */
}

void step_unchanged(struct step *s)
{
        if (!s->expired)
                step_finish(s, STEP_KEPT);
}

void step_skipped(struct step *s) { step_finish(s, STEP_SKIPPED); }

/* Code that knows only one machine begins its errors with the machine's name, which the step has
 * already. */
static const char *without_node(const struct step *s, const char *message)
{
        static const char *const words[] = { "node ", "machine " };
        for (size_t i = 0; s->node && i < ARRAY_SIZE(words); i++) {
                size_t n = strlen(words[i]), m = strlen(s->node);
                if (has_prefix(message, words[i]) && has_prefix(message + n, s->node) &&
                        has_prefix(message + n + m, ": "))
                        return message + n + m + 2;
        }
        return message;
}

void step_done(struct step *s, struct error *err)
{
        if (s->expired && step_ended(s))
                return;
        if (!err) {
                step_finish(s, STEP_DONE);
                return;
        }
        s->err = (struct error){ .code = err->code,
                .status = err->status,
                .message = xstrdup(without_node(s, err->message ? err->message : "failed")),
                .hint = err->hint ? xstrdup(err->hint) : NULL };
        s->run->failed = true;
        step_finish(s, STEP_FAILED);
}

void step_fail(
        struct step *s, int code, enum exit_status status, const char *hint, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        error_vset(&err, code, status, hint, fmt, ap);
        va_end(ap);
        step_done(s, &err);
}

static void step_on_late(evutil_socket_t fd, short what, void *arg)
{
        struct step *s = arg;
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, ETIMEDOUT, EXIT_UNHEALTHY, "not done after %" PRId64 " s%s%s",
                (run_now(s->run) - s->began) / 1000, s->doing ? ": " : "",
                s->doing ? s->doing : "");
        error_hint(&err, "%s", s->late);
        s->expired = true;
        step_done(s, &err);
}

void step_deadline_call(struct step *s, unsigned seconds,
        void (*fn)(evutil_socket_t fd, short what, void *arg), void *arg)
{
        if (s->deadline)
                event_free(s->deadline);
        s->deadline = evtimer_new(s->run->base, fn, arg);
        event_add(s->deadline, &(struct timeval){ .tv_sec = seconds });
}

void step_deadline(struct step *s, unsigned seconds, const char *hint)
{
        s->late = hint;
        step_deadline_call(s, seconds, step_on_late, s);
}

/* 1: it can start; 0: it must wait; -1: it never will. */
static int step_readiness(const struct step *s)
{
        int ready = 1;
        for (size_t i = 0; i < s->wait_count; i++) {
                const struct step *w = s->waits[i];
                if (w->state == STEP_FAILED || w->state == STEP_SKIPPED)
                        return -1;
                if (!step_ended(w))
                        ready = 0;
        }
        return ready;
}

/* Starts or skips steps; true when there was one. */
static bool run_advance(struct run *r)
{
        bool any = false;
        for (struct step *s = r->first; s; s = s->next) {
                if (s->state != STEP_WAITING)
                        continue;
                int ready = r->interrupted ? -1 : step_readiness(s);
                if (ready == 0)
                        continue;
                any = true;
                if (ready < 0) {
                        step_finish(s, STEP_SKIPPED);
                        continue;
                }
                s->state = STEP_RUNNING;
                s->began = run_now(r);
                step_tell(s);
                step_boundary(s, "begin");
                s->start(s);
        }
        return any;
}

static bool run_any_running(const struct run *r)
{
        for (const struct step *s = r->first; s; s = s->next)
                if (s->state == STEP_RUNNING)
                        return true;
        return false;
}

static void run_on_signal(int fd, short what, void *arg)
{
        struct run *r = arg;
        r->interrupted = true;
        event_base_loopbreak(r->base);
}

static int run_first_failure(struct run *r, struct error *err)
{
        size_t others = 0;
        const struct step *first = NULL;
        for (const struct step *s = r->first; s; s = s->next) {
                if (s->state != STEP_FAILED)
                        continue;
                if (first)
                        others++;
                else
                        first = s;
        }
        if (!first)
                return error_set(err, EDEADLK, EXIT_INTERNAL,
                        "no step of '%s' can start: steps wait for each other", r->verb);
        error_set(err, first->err.code, first->err.status, "%s%s%s: %s",
                first->node ? first->node : "", first->node ? ": " : "", first->name,
                first->err.message);
        if (others)
                error_wrap(err, "%zu steps failed; the first one", others + 1);
        if (first->err.hint)
                error_hint(err, "%s", first->err.hint);
        return -err->code;
}

static int run_loop(struct run *r, const struct step *last, struct error *err)
{
        struct event *stop[] = { evsignal_new(r->base, SIGINT, run_on_signal, r),
                evsignal_new(r->base, SIGTERM, run_on_signal, r) };
        for (size_t i = 0; i < ARRAY_SIZE(stop); i++)
                event_add(stop[i], NULL);
        while (r->open) {
                while (run_advance(r)) {
                }
                bool enough = last && !r->failed &&
                              (last->state == STEP_DONE || last->state == STEP_KEPT);
                if (!r->open || enough || r->interrupted || !run_any_running(r))
                        break;
                event_base_dispatch(r->base);
        }
        for (size_t i = 0; i < ARRAY_SIZE(stop); i++)
                event_free(stop[i]);
        if (r->interrupted) {
                error_set(err, EINTR, EXIT_STEP, "'%s' was interrupted", r->verb);
                return error_hint(err,
                        "run 'slipway %s' again: it continues where this run stopped", r->verb);
        }
        return r->failed || (r->open && !(last && step_ended(last))) ? run_first_failure(r, err)
                                                                     : 0;
}

int run_execute(struct run *r, struct error *err) { return run_loop(r, NULL, err); }

int run_until(struct run *r, const struct step *last, struct error *err)
{
        return run_loop(r, last, err);
}

void run_release(struct run *r)
{
        for (struct step *s = r->first; s; s = s->next) {
                error_release(&s->err);
                if (s->deadline)
                        event_free(s->deadline);
        }
        r->first = r->last = NULL;
}
