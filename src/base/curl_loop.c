#include "base/curl_loop.h"

#include <errno.h>
#include <stdlib.h>

static void on_curl_loop_timer(evutil_socket_t fd, short what, void *arg)
{
        struct curl_loop *l = arg;
        l->act(CURL_SOCKET_TIMEOUT, 0, l->arg);
}

static void on_curl_loop_ready(evutil_socket_t fd, short what, void *arg)
{
        struct curl_loop *l = arg;
        l->act(fd,
                (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0),
                l->arg);
}

/* curl says what it waits for on a socket; the event is kept with the socket. */
static int on_socket(CURL *easy, curl_socket_t s, int what, void *arg, void *kept)
{
        struct curl_loop *l = arg;
        struct event *e = kept;
        if (e)
                event_free(e);
        e = NULL;
        if (what != CURL_POLL_REMOVE) {
                short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) |
                                       (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
                e = event_new(l->base, s, wanted, on_curl_loop_ready, l);
                if (!e || event_add(e, NULL) < 0)
                        abort();
        }
        curl_multi_assign(l->curl, s, e);
        return 0;
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
        struct curl_loop *l = arg;
        if (ms < 0)
                event_del(l->timer);
        else
                event_add(l->timer,
                        &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
        return 0;
}

int curl_loop_init(struct curl_loop *l, struct event_base *base,
        void (*act)(curl_socket_t s, int what, void *arg), void *arg)
{
        *l = (struct curl_loop){ .curl = curl_multi_init(), .base = base, .act = act, .arg = arg };
        l->timer = evtimer_new(base, on_curl_loop_timer, l);
        if (!l->curl || !l->timer) {
                curl_loop_release(l);
                return -ENOMEM;
        }
        curl_multi_setopt(l->curl, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(l->curl, CURLMOPT_SOCKETDATA, l);
        curl_multi_setopt(l->curl, CURLMOPT_TIMERFUNCTION, on_timeout);
        curl_multi_setopt(l->curl, CURLMOPT_TIMERDATA, l);
        return 0;
}

void curl_loop_release(struct curl_loop *l)
{
        if (l->curl)
                curl_multi_cleanup(l->curl);
        if (l->timer)
                event_free(l->timer);
        *l = (struct curl_loop){ 0 };
}

void curl_trouble(struct str *s, CURLcode code, const char *why)
{
        switch (code) {
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_PARTIAL_FILE:
                str_add(s, "the connection was cut before the answer was complete");
                break;
        default:
                str_add(s, why[0] ? why : curl_easy_strerror(code));
        }
}
