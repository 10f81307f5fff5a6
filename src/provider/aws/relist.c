/* Lists that are asked again while something is made or removed: once for all who wait. Load
 * balancers and target groups show their tags only when they are asked for, a few at a time. */
#include <event2/event.h>

#include "provider/aws/impl.h"

#define LABELS_AT_ONCE 20 /* of DescribeTags */
#define LOST_MAX       10

struct list_wait {
        list_fn fn;
        void *arg;
        struct list_wait *next;
};

static void list_tell(struct list *l, const struct fault *fault)
{
        for (struct list_wait *x; (x = l->asking);) {
                list_fn fn = x->fn;
                void *arg = x->arg;
                l->asking = x->next;
                free(x);
                fn(fault, arg);
        }
}

static enum list_id list_id_of(const struct list *l) { return (enum list_id)(l - l->run->lists); }

static void list_over(struct list *l, const struct fault *fault)
{
        if (!fault)
                list_index(l->run, list_id_of(l));
        list_tell(l, fault);
        if (l->waiting && !evtimer_pending(l->timer, NULL))
                event_add(l->timer, &(struct timeval){ 0, 100000 });
}

static void list_on_again(const struct call_reply *reply, void *arg);

static void list_send(struct list *l)
{
        list_call(l->run, aws_session(l->run->loop->session), list_id_of(l), list_on_again, l);
}

/* ---- tags ---- */

/* Who has no controller need not have the right to look for what one left. */
static bool list_refused(const struct list *l, const struct fault *f)
{
        return f && f->kind == FAULT_FORBIDDEN && list_of_services(list_id_of(l)) &&
               !l->run->config->cloud.controller;
}

static void list_label(struct list *l, const struct answers *labels)
{
        const struct aws_tagged *t = labels->v;
        enum list_id id = list_id_of(l);
        for (size_t i = 0; i < l->v.n; i++) {
                const void *row = list_row(l->run, id, i);
                for (size_t k = 0; k < labels->n; k++)
                        if (streq(t[k].arn, *(const char *const *)row))
                                *(struct pairs *)(uintptr_t)row_tags(id, row) = t[k].tags;
        }
}

static void list_next_labels(struct list *l);

static void list_on_labels(const struct call_reply *reply, void *arg)
{
        struct list *l = arg;
        struct answers labels = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct fault broken = { .kind = FAULT_ANSWER, .service = (char *)"aws" };
        if (list_absent(reply) && l->lost++ < LOST_MAX) { /* one of them went meanwhile */
                list_send(l);
                return;
        }
        if (list_refused(l, reply->fault))
                l->v.n = 0;
        else if (reply->fault) {
                list_over(l, reply->fault);
                return;
        } else if (call_read_list(&aws_calls[list_labels(list_id_of(l))], reply, &l->run->arena,
                           &labels, &err) < 0) {
                broken.call = (char *)"read tags";
                broken.cause = err.message;
                list_over(l, &broken);
                return;
        }
        list_label(l, &labels);
        list_next_labels(l);
}

/* With all tags known, what is not ours is forgotten. */
static void list_next_labels(struct list *l)
{
        struct aws_run *w = l->run;
        enum list_id id = list_id_of(l);
        enum aws_call call = list_labels(id);
        struct args a = { .arena = &w->arena };
        const char *key = call == AWS_CLASSIC_TAGS ? "LoadBalancerNames" : "ResourceArns";
        for (size_t n = 0; call != AWS_CALLS && n < LABELS_AT_ONCE && l->labelled < l->v.n; n++)
                arg_putf(&a, *(const char *const *)list_row(w, id, l->labelled++), "%s.member.%zu",
                        key, n + 1);
        if (a.n) {
                struct call_args args = arg_call(&a, NULL);
                call_start(
                        aws_session(w->loop->session), &aws_calls[call], &args, list_on_labels, l);
                return;
        }
        if (list_of_services(id))
                list_keep_services(w, id);
        list_over(l, NULL);
}

/* ---- asking again ---- */

static void list_on_again(const struct call_reply *reply, void *arg)
{
        struct list *l = arg;
        struct aws_run *w = l->run;
        enum list_id id = list_id_of(l);
        struct error err CLEANUP(error_release) = { 0 };
        struct fault broken = { .kind = FAULT_ANSWER, .service = (char *)"aws" };
        bool none = list_absent(reply) || list_refused(l, reply->fault);
        const struct fault *fault = none ? NULL : reply->fault;
        if (!fault && list_take(w, id, reply, &err) < 0) {
                broken.call = (char *)"list";
                broken.cause = err.message;
                fault = &broken;
        }
        l->labelled = 0;
        if (fault)
                list_over(l, fault);
        else
                list_next_labels(l);
}

static void list_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct list *l = arg;
        if (l->asking || !l->waiting)
                return;
        l->asking = TAKE(l->waiting);
        l->lost = 0;
        list_send(l);
}

void list_again(struct aws_run *w, enum list_id id, unsigned ms, list_fn fn, void *arg)
{
        struct list *l = &w->lists[id];
        struct list_wait *x = xmalloc(sizeof(*x));
        *x = (struct list_wait){ fn, arg, l->waiting };
        l->waiting = x;
        l->run = w;
        if (!l->timer)
                l->timer = evtimer_new(w->loop->base, list_on_timer, l);
        if (!evtimer_pending(l->timer, NULL))
                event_add(
                        l->timer, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

struct services_wait {
        unsigned left;
        struct error *err;
};

static void services_on_list(const struct fault *fault, void *arg)
{
        struct services_wait *s = arg;
        s->left--;
        if (fault && !s->err->code)
                fault_error(fault, s->err);
}

int services_ask(struct aws_run *w, struct error *err)
{
        struct services_wait s = { .err = err };
        w->loop = &w->sync;
        for (enum list_id id = LIST_SERVICE_BALANCERS; id <= LIST_SERVICE_GROUPS; id++, s.left++)
                list_again(w, id, 0, services_on_list, &s);
        while (s.left && event_base_loop(w->sync.base, EVLOOP_ONCE) == 0)
                ;
        return -err->code;
}

void lists_release(struct aws_run *w)
{
        for (enum list_id id = 0; id < LISTS; id++) {
                struct list *l = &w->lists[id];
                for (struct list_wait *x; (x = l->waiting ? l->waiting : l->asking);) {
                        *(l->waiting ? &l->waiting : &l->asking) = x->next;
                        free(x);
                }
                if (l->timer)
                        event_free(l->timer);
                index_release(&l->by_role);
        }
}
