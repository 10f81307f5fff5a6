/* The state of the cluster, repeatedly. Queries do not wait for each other, so a machine that does
 * not answer delays nothing else. */
#include <event2/event.h>
#include <signal.h>

#include "base/clock.h"
#include "cluster/status/status.h"

#define NODES_EVERY 10 /* seconds, because each query is an ssh connection */

struct watching {
        struct status status;
        struct event *signals[2];
        struct arena arenas[2]; /* of the machines found in the last two rounds */
        unsigned found;
        bool interrupted;
};

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct watching *w = arg;
        w->interrupted = true;
        event_base_loopbreak(w->status.site->base);
}

/* Runs the loop until that time; answers that end it early are ignored. */
static int watch_until(struct watching *w, int64_t when, struct error *err)
{
        for (int64_t left; !w->interrupted && (left = when - clock_ms()) > 0;) {
                event_add(w->status.timer,
                        &(struct timeval){ left / 1000, (suseconds_t)(left % 1000) * 1000 });
                int r = event_base_dispatch(w->status.site->base);
                event_del(w->status.timer);
                if (r < 0)
                        return error_set(err, EIO, EXIT_INTERNAL, "the event loop failed");
        }
        return 0;
}

/* Machines may be added or removed meanwhile. */
static void status_watch_find_machines(struct watching *w)
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

/* Machines have their own interval; the next query starts only when the last one is answered
 * or has failed. */
static void status_watch_ask(struct watching *w, int64_t *nodes_asked)
{
        struct status *st = &w->status;
        int64_t since = clock_ms() - *nodes_asked;
        if (st->node_waiting && since >= (int64_t)status_patience(st->site) * 1000)
                status_give_up(st);
        if (!st->node_waiting && since >= NODES_EVERY * 1000) {
                *nodes_asked = clock_ms();
                status_watch_find_machines(w);
                status_ask_nodes(st);
        }
        if (!st->api_waiting)
                status_ask_api(st);
        status_ask_servers(st);
}

static bool status_watch_show(
        struct watching *w, bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg)
{
        bool healthy = false;
        json_t *answer = status_json(&w->status, &healthy);
        bool more = fn(answer, healthy, arg);
        json_decref(answer);
        return more;
}

static int rounds(struct watching *w, unsigned seconds,
        bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg, struct error *err)
{
        int64_t began = clock_ms(), nodes_asked = began - (int64_t)NODES_EVERY * 1000;
        status_watch_ask(w, &nodes_asked);
        /* the first answer is complete */
        int r = status_wait(&w->status, status_patience(w->status.site), err);
        if (r == 0 && !w->interrupted)
                status_give_up(&w->status);
        while (r == 0 && !w->interrupted && status_watch_show(w, fn, arg)) {
                int64_t next = began + (int64_t)seconds * 1000;
                began = next > clock_ms() ? next : clock_ms();
                r = watch_until(w, next, err);
                if (r == 0 && !w->interrupted) {
                        status_watch_ask(w, &nodes_asked);
                        /* most answers have arrived by then; the others are in the next one */
                        r = watch_until(w, clock_ms() + 300, err);
                }
        }
        return r;
}

int status_watch(struct site *s, unsigned seconds,
        bool (*fn)(const json_t *answer, bool healthy, void *arg), void *arg, struct error *err)
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
                s->machines[i].target = (struct link_target){ 0 }; /* its strings are freed now */
        arena_release(&w.arenas[0]);
        arena_release(&w.arenas[1]);
        return r;
}
