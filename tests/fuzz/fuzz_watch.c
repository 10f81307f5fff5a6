/* An API server that answers a watch with anything: lists, pages, streams in pieces, errors; and
 * the sentences made of what it says. The requests are fakes (in place of kube/request.c and
 * engine.c). Whoever watches may stop in any callback. */
#include <event2/event.h>

#include "kube/call.h"
#include "pieces.h"

static struct request *asked;
static struct kube_call *watch;
static unsigned events, stop_at;

int engine_init(struct engine *e, struct kube *k, long at_once) { return 0; }
void event_after(struct event *e, unsigned ms) { event_active(e, EV_TIMEOUT, 1); }
void request_done(struct request *r, CURLcode code) {}
struct kube_call *kube_ask(
        struct kube *k, size_t server, const char *path, unsigned timeout_ms, kube_fn fn, void *arg)
{
        abort();
}
struct kube_call *kube_request(struct kube *k, const char *method, const char *path,
        const char *type, const char *body, unsigned timeout_ms, kube_fn fn, void *arg)
{
        abort();
}

struct request *request_new(
        struct kube *k, const char *method, const char *path, kube_fn fn, void *arg)
{
        struct request *r = xcalloc(1, sizeof(*r));
        *r = (struct request){
                .call.k = k, .method = xstrdup(method), .path = xstrdup(path), .fn = fn, .arg = arg
        };
        return r;
}

void request_start(struct request *r)
{
        if (asked) /* one at a time */
                abort();
        asked = r;
}

void request_destroy(struct request *r)
{
        if (!r)
                return;
        asked = asked == r ? NULL : asked;
        str_release(&r->text);
        free(r->method);
        free(r->path);
        free(r);
}

static void on_change(const char *type, json_t *object, void *arg)
{
        if (!streq(type, "SYNCED") && !json_is_object(object))
                abort();
        if (++events == stop_at)
                kube_cancel(TAKE(watch));
}

/* As request_done does it. */
static void reply(struct request *r, int status, struct pieces body)
{
        str_addn(&r->text, body.p, body.n);
        json_t *json =
                body.n ? json_loadb((const char *)body.p, body.n, JSON_ALLOW_NUL, NULL) : NULL;
        char *error = status >= 400 ? message_api(r, status, json)
                      : status      ? NULL
                                    : xstrdup("no connection");
        struct answer a = { .reply = { status, json, str_text(&r->text), error } };
        asked = NULL;
        r->fn(&a.reply, r->arg);
        json_decref(json);
        free(error);
        request_destroy(r);
}

static void step(struct pieces *in)
{
        static const int statuses[] = { 200, 200, 200, 410, 401, 500, 0, 404 };
        uint8_t what = piece_byte(in);
        struct pieces part = piece_part(in);
        if (what % 2 && asked->sink) {
                bool more = asked->sink((const char *)part.p, part.n, asked->arg);
                if (more && what < 128)
                        return;
                part.n = 0;
        }
        reply(asked, statuses[what >> 2 & 7], part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char *servers[] = { (char *)"https://192.0.2.1:6443" };
        struct pieces in = { data, size };
        struct kube k = { .base = event_base_new(), .servers = servers, .count = 1 };
        events = 0;
        stop_at = piece_byte(&in);
        watch = kube_watch(
                &k, "/api/v1/nodes", stop_at & 1 ? "labelSelector=a" : NULL, on_change, NULL);
        event_base_loop(k.base, EVLOOP_NONBLOCK);
        while (in.n && watch && asked) {
                kube_enter(&k);
                step(&in);
                kube_leave(&k);
                event_base_loop(k.base, EVLOOP_NONBLOCK);
        }
        if (in.n && watch) /* it waits for nothing */
                abort();
        kube_cancel(TAKE(watch));
        if (asked)
                abort();
        event_base_free(k.base);
        return 0;
}
