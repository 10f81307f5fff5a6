#include <event2/event.h>
#include <signal.h>
#include <time.h>

#include "base/str.h"
#include "cluster/run.h"

static int64_t now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t run_now(const struct run *r) { return now_ms() - r->began; }

void run_init(struct run *r, struct event_base *base, struct arena *a, const char *verb, const char *cluster)
{
        *r = (struct run){ .base = base, .arena = a, .verb = verb, .cluster = cluster, .began = now_ms() };
}

void run_observe(struct run *r, const struct run_observer *o)
{
        if (r->observer_count == ARRAY_SIZE(r->observers))
                abort();
        r->observers[r->observer_count++] = *o;
}

/* For tests of what a kill leaves: SLIPWAY_TEST_KILL=N ends this program with SIGKILL at its N-th boundary. A step has three: it was journalled and does not begin
 * any more; it ended and is not journalled; it is journalled. So a run's journal tells how many there were: one for each "begin", two for each end. Steps that are
 * skipped have none, and runs of one program are counted together. "begin STEP NODE" and "end STEP NODE" (without NODE for the cluster's) name one instead. */
static void boundary(const struct step *s, const char *moment)
{
        static long count;
        const char *at = getenv("SLIPWAY_TEST_KILL");
        char *name CLEANUP(free_p) = at ? xasprintf("%s %s%s%s", moment, s->name, s->node ? " " : "", s->node ? s->node : "") : NULL;
        if (at && (++count == strtol(at, NULL, 10) || streq(at, name)))
                kill(getpid(), SIGKILL);
}

static void tell_step(struct step *s)
{
        struct run *r = s->run;
        for (size_t i = 0; i < r->observer_count; i++)
                if (r->observers[i].on_step)
                        r->observers[i].on_step(r, s, r->observers[i].arg);
}

struct step *run_step(struct run *r, const char *name, const char *node, void (*start)(struct step *), void *arg)
{
        struct step *s = arena_new(r->arena, struct step);
        *s = (struct step){ .name = name, .node = node, .start = start, .arg = arg, .run = r, .permille = -1, .began = -1, .ended = -1 };
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
        struct step **waits = arena_array(s->run->arena, struct step *, s->wait_count + 1);
        if (s->wait_count)
                memcpy(waits, s->waits, s->wait_count * sizeof(*waits));
        waits[s->wait_count++] = other;
        s->waits = waits;
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

static bool ended(const struct step *s) { return s->state >= STEP_DONE; }

static void finish(struct step *s, enum step_state state)
{
        if (s->deadline)
                event_free(s->deadline);
        s->deadline = NULL;
        if (ended(s))
                abort(); /* a step ends once */
        s->state = state;
        s->ended = run_now(s->run);
        s->run->open--;
        if (state != STEP_SKIPPED)
                boundary(s, "end");
        tell_step(s);
        if (state != STEP_SKIPPED)
                boundary(s, "end");
        event_base_loopbreak(s->run->base); /* the runner looks what can begin now */
}

void step_kept(struct step *s)
{
        if (!s->expired)
                finish(s, STEP_KEPT);
}

void step_skipped(struct step *s) { finish(s, STEP_SKIPPED); }

/* Rooms that know only one machine begin their sentences with its name; here the step says it already. */
static const char *without_node(const struct step *s, const char *message)
{
        static const char *const words[] = { "node ", "machine " };
        for (size_t i = 0; s->node && i < ARRAY_SIZE(words); i++) {
                size_t n = strlen(words[i]), m = strlen(s->node);
                if (has_prefix(message, words[i]) && has_prefix(message + n, s->node) && has_prefix(message + n + m, ": "))
                        return message + n + m + 2;
        }
        return message;
}

void step_done(struct step *s, struct error *err)
{
        if (s->expired && ended(s))
                return;
        if (!err) {
                finish(s, STEP_DONE);
                return;
        }
        s->err = (struct error){ .code = err->code,
                .status = err->status,
                .message = xstrdup(without_node(s, err->message ? err->message : "failed")),
                .hint = err->hint ? xstrdup(err->hint) : NULL };
        s->run->failed = true;
        finish(s, STEP_FAILED);
}

void step_fail(struct step *s, int code, enum exit_status status, const char *hint, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&text, fmt, ap);
        va_end(ap);
        error_set(&err, code, status, "%s", str_text(&text));
        if (hint)
                error_hint(&err, "%s", hint);
        step_done(s, &err);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
        struct step *s = arg;
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, ETIMEDOUT, EXIT_UNHEALTHY, "not done after %" PRId64 " s%s%s", (run_now(s->run) - s->began) / 1000, s->doing ? ": " : "",
                s->doing ? s->doing : "");
        error_hint(&err, "%s", s->late);
        s->expired = true;
        step_done(s, &err);
}

void step_deadline(struct step *s, unsigned seconds, const char *hint)
{
        s->late = hint;
        s->deadline = evtimer_new(s->run->base, on_late, s);
        event_add(s->deadline, &(struct timeval){ .tv_sec = seconds });
}

/* 1 when it can begin, 0 when it must wait, -1 when it never will. */
static int readiness(const struct step *s)
{
        int ready = 1;
        for (size_t i = 0; i < s->wait_count; i++) {
                const struct step *w = s->waits[i];
                if (w->state == STEP_FAILED || w->state == STEP_SKIPPED)
                        return -1;
                if (!ended(w))
                        ready = 0;
        }
        return ready;
}

/* Begins or skips what can be; true when something did. */
static bool advance(struct run *r)
{
        bool any = false;
        for (struct step *s = r->first; s; s = s->next) {
                if (s->state != STEP_WAITING)
                        continue;
                int ready = r->interrupted ? -1 : readiness(s);
                if (ready == 0)
                        continue;
                any = true;
                if (ready < 0) {
                        finish(s, STEP_SKIPPED);
                        continue;
                }
                s->state = STEP_RUNNING;
                s->began = run_now(r);
                tell_step(s);
                boundary(s, "begin");
                s->start(s);
        }
        return any;
}

static bool any_running(const struct run *r)
{
        for (const struct step *s = r->first; s; s = s->next)
                if (s->state == STEP_RUNNING)
                        return true;
        return false;
}

static void on_signal(int fd, short what, void *arg)
{
        struct run *r = arg;
        r->interrupted = true;
        event_base_loopbreak(r->base);
}

static int first_failure(struct run *r, struct error *err)
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
                return error_set(err, EDEADLK, EXIT_INTERNAL, "the steps of '%s' wait for each other", r->verb);
        error_set(err, first->err.code, first->err.status, "%s%s%s: %s", first->node ? first->node : "", first->node ? ": " : "", first->name,
                first->err.message);
        if (others)
                error_wrap(err, "%zu steps failed; the first", others + 1);
        if (first->err.hint)
                error_hint(err, "%s", first->err.hint);
        return -err->code;
}

int run_execute(struct run *r, struct error *err)
{
        struct event *stop[] = { evsignal_new(r->base, SIGINT, on_signal, r), evsignal_new(r->base, SIGTERM, on_signal, r) };
        for (size_t i = 0; i < ARRAY_SIZE(stop); i++)
                event_add(stop[i], NULL);
        while (r->open) {
                while (advance(r)) {
                }
                if (!r->open || r->interrupted || !any_running(r))
                        break;
                event_base_dispatch(r->base);
        }
        for (size_t i = 0; i < ARRAY_SIZE(stop); i++)
                event_free(stop[i]);
        if (r->interrupted) {
                error_set(err, EINTR, EXIT_STEP, "'%s' was interrupted", r->verb);
                return error_hint(err, "the next 'slipway %s' goes on where this one stopped", r->verb);
        }
        return r->failed || r->open ? first_failure(r, err) : 0;
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
