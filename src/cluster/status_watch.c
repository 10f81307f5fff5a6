/* How the cluster is, again and again. A machine that does not answer holds nothing up: each question waits for its own answer only. */
#include <event2/event.h>
#include <signal.h>
#include <time.h>

#include "cluster/status.h"

#define NODES_EVERY 10 /* seconds: every question to a machine is an ssh connection */

struct watching {
        struct status status;
        struct event *signals[2];
        struct arena arenas[2]; /* of the machines as they were found last, and the time before */
        unsigned found;
        bool interrupted;
};

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct watching *w = arg;
        w->interrupted = true;
        event_base_loopbreak(w->status.site->base);
}

static int64_t now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Lets the loop run until then; answers that end it early do not matter here. */
static int run_until(struct watching *w, int64_t when, struct error *err)
{
        for (int64_t left; !w->interrupted && (left = when - now()) > 0;) {
                event_add(w->status.timer, &(struct timeval){ left / 1000, (suseconds_t)(left % 1000) * 1000 });
                int r = event_base_dispatch(w->status.site->base);
                event_del(w->status.timer);
                if (r < 0)
                        return error_set(err, EIO, EXIT_INTERNAL, "the event loop failed");
        }
        return 0;
}

/* Machines come and go meanwhile. */
static void find_machines(struct watching *w)
{
        struct site *s = w->status.site;
        struct error ignored CLEANUP(error_release) = { 0 };
        struct arena *a = &w->arenas[w->found++ % 2];
        arena_release(a);
        *a = (struct arena){ 0 };
        s->provider.arena = a;
        s->ops->list(&s->provider, s->machines, &ignored);
        s->provider.arena = s->arena;
}

/* The machines are asked on their own clock; the next time only when the last answer is there, or will not come. */
static void ask(struct watching *w, int64_t *nodes_asked)
{
        struct status *st = &w->status;
        int64_t since = now() - *nodes_asked;
        if (st->node_waiting && since >= STATUS_PATIENCE * 1000)
                status_give_up(st);
        if (!st->node_waiting && since >= NODES_EVERY * 1000) {
                *nodes_asked = now();
                find_machines(w);
                status_ask_nodes(st);
        }
        if (!st->api_waiting)
                status_ask_api(st);
        status_ask_servers(st);
}

static bool show(struct watching *w, bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg)
{
        bool healthy = false;
        json_t *answer = status_json(&w->status, &healthy);
        bool more = fn(answer, healthy, arg);
        json_decref(answer);
        return more;
}

static int rounds(struct watching *w, unsigned seconds, bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg, struct error *err)
{
        int64_t began = now(), nodes_asked = began - (int64_t)NODES_EVERY * 1000;
        ask(w, &nodes_asked);
        int r = status_wait(&w->status, STATUS_PATIENCE, err); /* the first picture is a whole one */
        if (r == 0 && !w->interrupted)
                status_give_up(&w->status);
        while (r == 0 && !w->interrupted && show(w, fn, arg)) {
                int64_t next = began + (int64_t)seconds * 1000;
                began = next > now() ? next : now();
                r = run_until(w, next, err);
                if (r == 0 && !w->interrupted) {
                        ask(w, &nodes_asked);
                        r = run_until(w, now() + 300, err); /* most answers are there by then; the others are in the next picture */
                }
        }
        return r;
}

int status_watch(struct site *s, unsigned seconds, bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg, struct error *err)
{
        static const int signals[] = { SIGINT, SIGTERM };
        struct watching w = { 0 };
        status_begin(&w.status, s);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                w.signals[i] = evsignal_new(s->base, signals[i], on_signal, &w);
                event_add(w.signals[i], NULL);
        }
        int r = rounds(&w, seconds, fn, arg, err);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                event_free(w.signals[i]);
        status_end(&w.status);
        for (size_t i = 0; i < s->count; i++)
                s->machines[i].target = (struct link_target){ 0 }; /* its strings go now */
        arena_release(&w.arenas[0]);
        arena_release(&w.arenas[1]);
        return r;
}
