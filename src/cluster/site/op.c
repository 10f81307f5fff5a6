#include <event2/event.h>

#include "cluster/site/op.h"

void op_begin(struct op *o, struct site *site, struct step *s)
{
        o->site = site;
        o->step = s;
        o->next = site->operations;
        site->operations = o;
}

bool op_over(const struct op *o) { return o->ended || o->step->state != STEP_RUNNING; }

/* ---- links ---- */

void op_wait(struct op *o, struct member *m, void (*on_cut)(struct op *o, struct error *err))
{
        op_unwait(o);
        o->at = m;
        o->on_cut = on_cut;
        o->next_waiter = m->run.waiters;
        m->run.waiters = o;
}

void op_unwait(struct op *o)
{
        if (!o->at)
                return;
        for (struct op **p = &o->at->run.waiters; *p; p = &(*p)->next_waiter)
                if (*p == o) {
                        *p = o->next_waiter;
                        break;
                }
        o->at = NULL;
}

/* Takes each operation off the list before calling it: its callback may remove other waiters or
 * wait for the next link. */
void member_closed(struct member *m, struct error *err)
{
        struct op *told = m->run.waiters;
        m->run.link = NULL;
        m->run.parked = false;
        for (struct op *o = told; o; o = o->next_waiter)
                o->at = NULL;
        m->run.waiters = NULL;
        while (told) {
                struct op *o = told;
                told = o->next_waiter;
                o->next_waiter = NULL;
                if (!op_over(o))
                        o->on_cut(o, err);
        }
}

/* ---- time ---- */

static void on_op_time(evutil_socket_t fd, short what, void *arg)
{
        struct op *o = arg;
        if (!op_over(o))
                o->on_time(o);
}

void op_later(struct op *o, unsigned ms, void (*fn)(struct op *o))
{
        o->on_time = fn;
        if (!o->timer)
                o->timer = evtimer_new(o->site->base, on_op_time, o);
        event_add(o->timer, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

/* ---- the end ---- */

static void op_free_timer(struct op *o)
{
        if (o->timer)
                event_free(o->timer);
        o->timer = NULL;
}

void op_drop(struct op *o)
{
        o->ended = true;
        op_unwait(o);
        op_free_timer(o);
}

void op_done(struct op *o, struct error *err)
{
        bool over = op_over(o);
        op_drop(o);
        if (!over)
                step_done(o->step, err);
}

void op_unchanged(struct op *o)
{
        bool over = op_over(o);
        op_drop(o);
        if (!over)
                step_unchanged(o->step);
}

void op_fail(
        struct op *o, int code, enum exit_status status, const char *hint, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        error_vset(&err, code, status, hint, fmt, ap);
        va_end(ap);
        op_done(o, &err);
}

void op_cut(struct op *o, struct error *err)
{
        if (err)
                op_done(o, err);
        else
                op_fail(o, EPIPE, EXIT_UNREACHABLE, "run again: it continues where it stopped",
                        "the connection was cut");
}

void ops_release(struct site *s)
{
        for (struct op *o = s->operations; o; o = o->next) {
                op_drop(o);
                if (o->release)
                        o->release(o);
        }
        s->operations = NULL;
}
