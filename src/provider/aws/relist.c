/* Lists that are asked again while something is made or removed: once for all who wait. */
#include <event2/event.h>

#include "provider/aws/impl.h"

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

static void list_on_again(const struct call_reply *reply, void *arg)
{
        struct list *l = arg;
        struct aws_run *w = l->run;
        enum list_id id = (enum list_id)(l - w->lists);
        struct error err CLEANUP(error_release) = { 0 };
        struct fault broken = { .kind = FAULT_ANSWER, .service = (char *)"aws" };
        const struct fault *fault = list_absent(reply) ? NULL : reply->fault;
        if (!fault && list_take(w, id, reply, &err) < 0) {
                broken.call = (char *)"list";
                broken.cause = err.message;
                fault = &broken;
        }
        if (!fault)
                list_index(w, id);
        list_tell(l, fault);
        if (l->waiting && !evtimer_pending(l->timer, NULL))
                event_add(l->timer, &(struct timeval){ 0, 100000 });
}

static void list_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct list *l = arg;
        struct aws_run *w = l->run;
        if (l->asking || !l->waiting)
                return;
        l->asking = TAKE(l->waiting);
        list_call(w, aws_session(w->loop->session), (enum list_id)(l - w->lists), list_on_again, l);
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
