#include <event2/event.h>
#include <time.h>

#include "kube/call.h"

int64_t now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void event_after(struct event *e, unsigned ms)
{
        struct timeval t = { ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
        event_add(e, &t);
}

/* Answers are handed out here, after curl has returned: a callback may start, cancel and free as it likes. */
static void act(struct engine *e, curl_socket_t s, int what)
{
        struct kube *k = e->k;
        int running;
        kube_enter(k);
        curl_multi_socket_action(e->curl, s, what, &running);
        for (CURLMsg *m; !k->dead && (m = curl_multi_info_read(e->curl, &running));) {
                struct request *r;
                if (m->msg != CURLMSG_DONE)
                        continue;
                CURLcode code = m->data.result;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
                request_done(r, code);
        }
        kube_leave(k);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) { act(arg, CURL_SOCKET_TIMEOUT, 0); }

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
        act(arg, fd, (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

/* curl says what it waits for on a socket; the event is kept with the socket. */
static int on_socket(CURL *easy, curl_socket_t s, int what, void *arg, void *kept)
{
        struct engine *e = arg;
        struct event *ev = kept;
        if (ev)
                event_free(ev);
        ev = NULL;
        if (what != CURL_POLL_REMOVE) {
                short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
                ev = event_new(e->k->base, s, wanted, on_ready, e);
                if (!ev || event_add(ev, NULL) < 0)
                        abort();
        }
        curl_multi_assign(e->curl, s, ev);
        return 0;
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
        struct engine *e = arg;
        if (ms < 0)
                event_del(e->timer);
        else
                event_after(e->timer, (unsigned)ms);
        return 0;
}

int engine_init(struct engine *e, struct kube *k, long at_once)
{
        *e = (struct engine){ .k = k, .curl = curl_multi_init() };
        e->timer = evtimer_new(k->base, on_timer, e);
        if (!e->curl || !e->timer)
                return -ENOMEM;
        curl_multi_setopt(e->curl, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(e->curl, CURLMOPT_SOCKETDATA, e);
        curl_multi_setopt(e->curl, CURLMOPT_TIMERFUNCTION, on_timeout);
        curl_multi_setopt(e->curl, CURLMOPT_TIMERDATA, e);
        curl_multi_setopt(e->curl, CURLMOPT_MAX_HOST_CONNECTIONS, at_once);
        curl_multi_setopt(e->curl, CURLMOPT_MAXCONNECTS, 2L * CALLS_AT_ONCE);
        return 0;
}

void engine_release(struct engine *e)
{
        if (e->curl)
                curl_multi_cleanup(e->curl);
        if (e->timer)
                event_free(e->timer);
        *e = (struct engine){ 0 };
}
