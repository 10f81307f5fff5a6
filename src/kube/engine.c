#include <event2/event.h>

#include "kube/call.h"

void event_after(struct event *e, unsigned ms)
{
        struct timeval t = { ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
        event_add(e, &t);
}

/* Callbacks run here, after curl has returned: they may start, cancel and free calls. */
static void engine_act(curl_socket_t s, int what, void *arg)
{
        struct engine *e = arg;
        struct kube *k = e->k;
        int running;
        kube_enter(k);
        curl_multi_socket_action(e->loop.curl, s, what, &running);
        for (CURLMsg *m; !k->dead && (m = curl_multi_info_read(e->loop.curl, &running));) {
                struct request *r;
                if (m->msg != CURLMSG_DONE)
                        continue;
                CURLcode code = m->data.result;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
                request_done(r, code);
        }
        kube_leave(k);
}

int engine_init(struct engine *e, struct kube *k, long at_once)
{
        e->k = k;
        if (curl_loop_init(&e->loop, k->base, engine_act, e) < 0)
                return -ENOMEM;
        curl_multi_setopt(e->loop.curl, CURLMOPT_MAX_HOST_CONNECTIONS, at_once);
        curl_multi_setopt(e->loop.curl, CURLMOPT_MAXCONNECTS, 2L * CALLS_AT_ONCE);
        return 0;
}
