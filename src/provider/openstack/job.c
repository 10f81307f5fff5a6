#include <event2/event.h>

#include "provider/openstack/openstack.h"

#define JOB_TRIES 4
#define LATER_MAX 300 /* times a second or two */
#define STREAM_MS 86400000U

struct job_call {
        struct os_job *job;
        const struct call_row *row;
        os_answer fn;
        void *arg;
        bool optional;
};

static void job_go(struct os_job *j);

void job_fail(struct os_job *j, const struct error *err)
{
        if (j->err.code)
                return;
        error_set(&j->err, err->code, err->status, "%s", err->message);
        if (err->hint)
                error_hint(&j->err, "%s", err->hint);
}

/* What was deleted already is deleted. What may have been made, or exists although the lists did
 * not have it, is looked for. */
void job_fault(struct os_job *j, const struct call_row *row, const struct fault *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (f->kind == FAULT_ABSENT && streq(row->method, "DELETE"))
                return;
        j->again |= f->lost || f->kind == FAULT_CONFLICT;
        fault_error(f, &err);
        job_fail(j, &err);
}

static void job_on_answer(const struct call_reply *reply, void *arg)
{
        const struct job_call *c = arg;
        struct os_job *j = c->job;
        if (reply->fault && !c->optional)
                job_fault(j, c->row, reply->fault);
        else if (c->fn)
                c->fn(j, reply, c->arg);
        job_continue(j);
}

void job_ask(struct os_job *j, const struct os_ask *ask)
{
        struct job_call *c = arena_new(j->os->run->arena, struct job_call);
        const struct call_row *row = &os_calls[ask->call];
        *c = (struct job_call){ j, row, ask->fn, ask->arg, ask->optional };
        j->open++;
        call_start(os_session(j->line->session), row,
                &(struct call_args){ .args = ask->args,
                        .body = ask->body,
                        .resource = ask->resource,
                        .stream = ask->stream,
                        .timeout_ms = ask->stream ? STREAM_MS : 0 },
                job_on_answer, c);
        json_decref(ask->body);
}

void job_continue(struct os_job *j)
{
        if (!--j->open && !j->starting)
                job_go(j);
}

static void job_on_later(int fd, short what, void *arg) { job_continue(arg); }

void job_again(struct os_job *j, unsigned ms)
{
        j->open++;
        j->at--;
        event_base_once(j->line->base, -1, EV_TIMEOUT, job_on_later, j,
                &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

bool job_later(struct os_job *j, unsigned ms)
{
        if (++j->later > LATER_MAX)
                return false;
        job_again(j, ms);
        return true;
}

static void openstack_job_end(struct os_job *j)
{
        struct os_job **p = &j->os->jobs;
        while (*p != j)
                p = &(*p)->next;
        *p = j->next;
        j->done(j, j->err.code ? &j->err : NULL);
}

/* Reads the lists again and repeats the stage, a few times. */
static bool job_looks_again(struct os_job *j)
{
        if (!j->err.code || !j->again || j->looking || (j->fn && !j->say) ||
                ++j->tries >= JOB_TRIES)
                return false;
        error_release(&j->err);
        j->err = (struct error){ 0 };
        j->again = false;
        j->looking = true;
        j->at = 0;
        return true;
}

static void job_go(struct os_job *j)
{
        for (;;) {
                if (j->err.code && !j->looking)
                        j->back = j->at - 1;
                if (j->err.code && !job_looks_again(j))
                        break;
                const os_stage *stages = j->looking ? os_look_stages : j->stages;
                if (!stages[j->at]) {
                        if (!j->looking)
                                break;
                        j->looking = false;
                        j->at = j->back;
                        os_settle(j->os);
                        continue;
                }
                j->starting = true;
                stages[j->at++](j);
                j->starting = false;
                if (j->open)
                        return;
        }
        openstack_job_end(j);
}

/* ---- on the loop of its own ---- */

struct job_over {
        bool over;
        struct error *err;
};

static void job_on_over(struct os_job *j, struct error *err)
{
        struct job_over *o = j->arg;
        o->over = true;
        if (err)
                *o->err = (struct error){ err->code, err->status, TAKE(err->message),
                        TAKE(err->hint) };
}

int job_run(struct os *os, const os_stage *stages, struct error *err)
{
        struct job_over over = { .err = err };
        struct os_job j = { .os = os,
                .line = &os->sync,
                .stages = stages,
                .done = job_on_over,
                .arg = &over,
                .next = os->jobs };
        os->jobs = &j;
        job_go(&j);
        while (!over.over && event_base_loop(os->sync.base, EVLOOP_ONCE) == 0)
                ;
        if (!over.over) { /* no call is open, and none was answered: cannot happen */
                os->jobs = j.next;
                error_set(err, EIO, EXIT_INTERNAL, "the event loop ended before the answer");
        }
        return err->code ? -err->code : 0;
}

/* ---- on the run's loop ---- */

static void job_on_done(struct os_job *j, struct error *err)
{
        j->fn(err, j->arg);
        error_release(&j->err);
        free(j);
}

static void job_begin(int fd, short what, void *arg)
{
        struct os_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (os_line_async(j->os, &err) < 0)
                job_fail(j, &err);
        if (j->err.code)
                openstack_job_end(j);
        else
                job_go(j);
}

static void job_new(struct os *os, struct os_job with)
{
        struct os_job *j = xcalloc(1, sizeof(*j));
        *j = with;
        j->os = os;
        j->line = &os->async;
        j->done = job_on_done;
        j->next = os->jobs;
        os->jobs = j;
        event_base_once(os->run->base, -1, EV_TIMEOUT, job_begin, j, &(struct timeval){ 0 });
}

void job_start(struct os *os, const os_stage *stages,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        job_new(os, (struct os_job){ .stages = stages, .say = say, .fn = fn, .arg = arg });
}

void job_start_for(struct os *os, const os_stage *stages, const struct node *n, bool only_root,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        job_new(os, (struct os_job){ .stages = stages,
                            .node = n,
                            .only_root = only_root,
                            .fn = fn,
                            .arg = arg });
}
