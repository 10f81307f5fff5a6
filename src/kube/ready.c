/* Waits for an API server: each is queried separately, and the first that is ready is used
 * from then on. */
#include <event2/event.h>

#include "kube/call.h"

#define REFUSED_PAUSE 100
#define PROBE_TIMEOUT 5000

struct probe {
        struct ready *ready;
        size_t server;
        struct request *request;
        struct event *timer;
};

struct ready {
        struct kube_call call;
        unsigned interval_ms;
        void (*fn)(void *arg);
        void *arg;
        size_t count;
        struct probe probes[];
};

static void ready_destroy(struct kube_call *c)
{
        struct ready *r = (struct ready *)c;
        call_unlink(c);
        for (size_t i = 0; i < r->count; i++) {
                request_destroy(r->probes[i].request);
                event_free(r->probes[i].timer);
        }
        free(r);
}

static void ready_on_probe(const struct kube_reply *reply, void *arg)
{
        struct probe *p = arg;
        struct ready *r = p->ready;
        p->request = NULL;
        if (reply->status != 200) {
                bool refused = ((const struct answer *)reply)->refused;
                event_after(p->timer,
                        refused && r->interval_ms > REFUSED_PAUSE ? REFUSED_PAUSE : r->interval_ms);
                return;
        }
        void (*fn)(void *arg) = r->fn;
        void *user = r->arg;
        r->call.k->current = p->server;
        ready_destroy(&r->call);
        fn(user);
}

static void ready_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct probe *p = arg;
        p->request = request_new(p->ready->call.k, "GET", "/readyz", ready_on_probe, p);
        p->request->pinned = (int)p->server;
        p->request->timeout_ms = PROBE_TIMEOUT;
        request_start(p->request);
}

struct kube_call *kube_wait_ready(
        struct kube *k, unsigned interval_ms, void (*fn)(void *arg), void *arg)
{
        struct ready *r = xcalloc(1, sizeof(*r) + k->count * sizeof(struct probe));
        r->call = (struct kube_call){ .k = k, .destroy = ready_destroy };
        r->interval_ms = interval_ms ? interval_ms : REFUSED_PAUSE;
        r->fn = fn;
        r->arg = arg;
        r->count = k->count;
        for (size_t i = 0; i < r->count; i++) {
                struct probe *p = &r->probes[i];
                *p = (struct probe){
                        .ready = r, .server = i, .timer = evtimer_new(k->base, ready_on_timer, p)
                };
                if (!p->timer)
                        abort();
                event_after(p->timer, 0);
        }
        call_link(k, &r->call);
        return &r->call;
}
