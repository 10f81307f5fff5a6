/* The way of one call: session, limit, send, and what its answer means. */
#include <event2/event.h>

#include "cloud/retry.h"
#include "cloud/session.h"
#include "cloud/xml.h"

#define DEADLINE_MS 120000
#define SAFE_MS     30000
#define ONCE_MS     60000
#define BODY_MAX    ((size_t)64 << 20)

/* ---- life ---- */

void call_free(struct call *c)
{
        struct cloud *cloud = c->session->cloud;
        *(c->prev ? &c->prev->next : &cloud->first) = c->next;
        *(c->next ? &c->next->prev : &cloud->last) = c->prev;
        if (c->exchange)
                limit_give(&c->service->limit);
        exchange_free(c->exchange);
        if (c->pause)
                event_free(c->pause);
        for (size_t i = 0; i < ARRAY_SIZE(c->page); i++)
                free((char *)c->page[i].value);
        free(c->marker);
        json_decref(c->body);
        json_decref(c->list);
        str_wipe_release(&c->sent);
        fault_release(&c->last);
        arena_release(&c->arena);
        free(c);
}

void call_cancel(struct call *c)
{
        if (c)
                call_free(c);
}

void session_cancel(const struct session *s)
{
        for (struct call *c = s->cloud->first, *next; c; c = next) {
                next = c->next;
                if (c->session == s)
                        call_free(c);
        }
}

static void call_take_args(struct call *c, const struct call_args *args)
{
        size_t n = 0;
        while (args && args->args && args->args[n].key)
                n++;
        struct pair *v = arena_array(&c->arena, struct pair, n + 1);
        for (size_t i = 0; i < n; i++)
                v[i] = (struct pair){ arena_strdup(&c->arena, args->args[i].key),
                        args->args[i].value ? arena_strdup(&c->arena, args->args[i].value) : NULL };
        if (args)
                c->args = *args;
        c->args.args = v;
        c->nargs = n;
        c->args.text = args && args->text ? arena_strdup(&c->arena, args->text) : NULL;
        c->args.resource = args && args->resource ? arena_strdup(&c->arena, args->resource) : NULL;
        c->args.body = c->body = args && args->body ? json_incref((json_t *)args->body) : NULL;
}

static void call_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct call *c = arg;
        struct cloud *cloud = c->session->cloud;
        cloud_enter(cloud);
        call_step(c);
        cloud_turn(cloud);
        cloud_leave(cloud);
}

static void call_later(struct call *c, int64_t ms)
{
        c->state = CALL_PAUSE;
        event_add(c->pause, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

struct call *call_start(struct session *s, const struct call_row *row, const struct call_args *args,
        call_fn fn, void *arg)
{
        struct cloud *cloud = s->cloud;
        struct call *c = xcalloc(1, sizeof(*c));
        *c = (struct call){ .session = s, .row = row, .fn = fn, .arg = arg, .prev = cloud->last };
        *(c->prev ? &c->prev->next : &cloud->first) = c;
        cloud->last = c;
        call_take_args(c, args);
        c->service = cloud_service(cloud, row->service);
        c->deadline = clock_ms() + (c->args.timeout_ms ? c->args.timeout_ms : DEADLINE_MS);
        c->pause = evtimer_new(cloud->base, call_on_timer, c);
        if (!c->pause)
                abort();
        call_later(c, 0); /* fn is called from the loop */
        return c;
}

/* ---- ends ---- */

/* The call is gone before the callback runs, which may free the cloud. */
void call_finish(struct call *c, struct call_reply *reply)
{
        call_fn fn = c->fn;
        void *arg = c->arg;
        json_t *list = json_incref(c->list);
        struct exchange *x = TAKE(c->exchange);
        if (x)
                limit_give(&c->service->limit);
        reply->list = list;
        reply->attempts = c->attempts;
        call_free(c);
        fn(reply, arg);
        exchange_free(x);
        json_decref(list);
}

void fault_copy(struct fault *to, const struct fault *from)
{
        const struct fault f = *from;
        *to = f;
        to->service = f.service ? xstrdup(f.service) : NULL;
        to->call = f.call ? xstrdup(f.call) : NULL;
        to->resource = f.resource ? xstrdup(f.resource) : NULL;
        to->code = f.code ? xstrdup(f.code) : NULL;
        to->cause = f.cause ? xstrdup(f.cause) : NULL;
        to->request_id = f.request_id ? xstrdup(f.request_id) : NULL;
        to->hint = f.hint ? xstrdup(f.hint) : NULL;
}

void call_fail(struct call *c, const struct fault *from)
{
        struct fault f = { 0 };
        fault_copy(&f, from);
        if (!f.service)
                f.service = xstrdup(c->session->ops->service_name(c->session, c->row));
        if (!f.call)
                f.call = xstrdup(c->row->name);
        if (!f.resource && c->args.resource)
                f.resource = xstrdup(c->args.resource);
        struct call_reply reply = { .fault = &f, .status = f.status, .date = -1 };
        call_finish(c, &reply);
        fault_release(&f);
}

static void call_fail_error(struct call *c, enum fault_kind kind, const struct error *err)
{
        struct fault f = { .kind = kind,
                .cause = err->message,
                .hint = err->hint,
                .status = c->exchange ? c->exchange->status : 0 };
        call_fail(c, &f);
}

/* ---- forward ---- */

static bool call_once(const struct call *c)
{
        return c->row->retry == RETRY_ONCE ||
               (c->row->retry == RETRY_TOKEN && !call_arg(c, "ClientToken"));
}

static bool call_too_late(struct call *c)
{
        if (clock_ms() < c->deadline)
                return false;
        struct fault late = { .kind = FAULT_UNREACHABLE,
                .cause = (char *)"no answer before the time limit of the call" };
        const struct fault *why =
                c->state == CALL_SESSION ? c->session->ops->trouble(c->session) : NULL;
        call_fail(c, c->last.kind ? &c->last : why ? why : &late);
        return true;
}

void call_step(struct call *c)
{
        struct fault f = { 0 };
        if (call_too_late(c))
                return;
        call_later(c, c->deadline - clock_ms());
        c->state = CALL_SESSION; /* the timer ends the wait */
        enum session_state state = c->session->ops->ready(c->session, c, &f);
        if (state == SESSION_READY) {
                event_del(c->pause);
                c->state = CALL_LIMIT;
        } else if (state == SESSION_FAILED)
                call_fail(c, &f);
        fault_release(&f);
}

void session_wake(struct session *s, const struct fault *fault)
{
        struct cloud *cloud = s->cloud;
        cloud_enter(cloud);
        for (struct call *c = cloud->first, *next; c && !cloud->dead; c = next) {
                next = c->next;
                if (c->session != s || c->state != CALL_SESSION)
                        continue;
                if (fault)
                        call_fail(c, fault);
                else
                        call_later(c, 0);
                next = fault ? cloud->first : next; /* the callback may have ended others */
        }
        cloud_leave(cloud);
}

static void call_send(struct call *c)
{
        struct cloud *cloud = c->session->cloud;
        const struct cloud_options *o = &cloud->options;
        struct error err CLEANUP(error_release) = { 0 };
        struct message m = { .method = c->row->method };
        bool once = call_once(c);
        int64_t left = c->deadline - clock_ms();
        int64_t most = !once && o->attempt_ms ? o->attempt_ms : once ? ONCE_MS : SAFE_MS;
        int r = c->session->ops->write(c->session, c, &m, &err);
        if (c->args.stream && c->args.stream->fd >= 0)
                lseek(c->args.stream->fd, 0, SEEK_SET);
        if (r == 0) {
                str_wipe_release(&c->sent);
                c->sent = m.body;
                c->attempts++;
                c->state = CALL_SENT;
                limit_take(&c->service->limit, clock_ms());
                c->exchange = exchange_start(cloud->loop.curl,
                        &(struct exchange_spec){ .method = m.method,
                                .stream = c->args.stream,
                                .url = str_text(&m.url),
                                .headers = m.headers,
                                .body = m.has_body ? str_text(&c->sent) : NULL,
                                .len = c->sent.len,
                                .timeout_ms = (unsigned)(left < 1      ? 1
                                                         : left < most ? left
                                                                       : most),
                                .max = o->max ? o->max : BODY_MAX,
                                .once = once || has_prefix(c->row->name, "delete "),
                                .trust = &c->session->trust,
                                .fn = call_on_answer,
                                .arg = c });
        } else {
                curl_slist_free_all(m.headers);
                str_wipe_release(&m.body);
        }
        str_release(&m.url); /* libcurl has its own copy */
        if (r < 0)
                call_fail_error(c, FAULT_WRONG, &err);
}

void cloud_turn(struct cloud *cloud)
{
        for (struct call *c = cloud->first, *next; c && !cloud->dead; c = next) {
                next = c->next;
                if (c->state != CALL_LIMIT)
                        continue;
                if (call_too_late(c)) {
                        next = cloud->first; /* the callback may have ended others */
                        continue;
                }
                int64_t now = clock_ms(), wait = limit_wait(&c->service->limit, now);
                if (wait == 0) {
                        call_send(c); /* which may end it */
                        next = cloud->first;
                        continue;
                }
                if (wait > c->deadline - now)
                        wait = c->deadline - now + 1;
                if (wait > 0)
                        event_add(c->service->timer, &(struct timeval){ wait / 1000,
                                                             (suseconds_t)(wait % 1000) * 1000 });
        }
}

/* ---- answers ---- */

static void call_stop(struct call *c)
{
        limit_give(&c->service->limit);
        exchange_free(TAKE(c->exchange));
}

/* True when it will be sent again. */
static bool call_again(struct call *c, int64_t ms)
{
        if (clock_ms() + ms >= c->deadline)
                return false;
        call_stop(c);
        call_later(c, ms);
        return true;
}

static void call_on_silence(struct call *c, struct exchange *x)
{
        struct str why CLEANUP(str_release) = { 0 }, clean CLEANUP(str_release) = { 0 };
        bool lost = x->sent && call_once(c);
        bool trust = x->code == CURLE_PEER_FAILED_VERIFICATION ||
                     x->code == CURLE_SSL_CACERT_BADFILE || x->code == CURLE_SSL_CERTPROBLEM ||
                     x->code == CURLE_UNSUPPORTED_PROTOCOL || x->code == CURLE_URL_MALFORMAT;
        exchange_trouble(&why, x);
        redact(&clean, &c->session->cloud->secrets, str_text(&why), 600);
        struct fault f = { .kind = x->too_large ? FAULT_ANSWER : FAULT_UNREACHABLE,
                .lost = lost,
                .cause = clean.data };
        fault_release(&c->last);
        fault_copy(&c->last, &f);
        if (!lost && !trust && !x->too_large &&
                call_again(c, retry_backoff(c->attempts, retry_random())))
                return;
        call_fail(c, &f);
}

static json_t *call_body(const struct call *c, const struct exchange *x, struct error *err)
{
        const char *type = x->heads[HEAD_TYPE] ? x->heads[HEAD_TYPE] : "";
        const char *text = str_text(&x->text);
        const char *first = text + strspn(text, " \t\r\n");
        json_error_t why;
        json_t *j = NULL;
        if (!*first)
                return json_object();
        if (strstr(type, "json") || *first == '{' || *first == '[') {
                if (!(j = json_loadb(text, x->text.len, 0, &why)))
                        error_set(err, EPROTO, EXIT_STEP, "the answer is not JSON (line %d)",
                                why.line);
        } else if (strstr(type, "xml") || has_prefix(first, "<?xml")) {
                xml_read(text, x->text.len, &j, err);
        } else if (!c->row->wrap || !streq(c->row->wrap, CALL_TEXT) || !(j = json_string(text))) {
                error_set(err, EPROTO, EXIT_STEP, "the answer is neither JSON nor XML");
        }
        return j;
}

static void call_throttled(struct call *c, struct exchange *x, struct fault *f)
{
        const char *date = x->heads[HEAD_DATE], *after = x->heads[HEAD_RETRY_AFTER];
        int64_t server = date ? http_date(date) : -1;
        int64_t ms = after ? retry_after(after, server > 0 ? server : clock_wall_ms() / 1000) : -1;
        if (ms < 0)
                ms = retry_backoff(c->attempts, retry_random());
        limit_throttled(&c->service->limit, clock_ms(), ms);
        f->kind = f->status == 503 && !f->code ? FAULT_SERVER : FAULT_THROTTLED;
        if (!call_again(c, ms))
                call_fail(c, f);
}

/* 500, 502 and 504 say nothing about what was done. */
static void call_server_failed(struct call *c, struct fault *f)
{
        f->lost = call_once(c);
        if (f->lost || !call_again(c, retry_backoff(c->attempts, retry_random())))
                call_fail(c, f);
}

static void call_on_refusal(struct call *c, struct exchange *x)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct fault f = { .status = x->status };
        json_t *body = call_body(c, x, &err);
        fault_read(&f, &c->session->cloud->secrets, body, str_text(&x->text),
                x->heads[HEAD_ERROR_TYPE], x->heads[HEAD_ID]);
        json_decref(body);
        if (x->status < 400 && !f.cause)
                f.cause = xstrdup("it answered with a redirection, which is not followed");
        fault_release(&c->last);
        fault_copy(&c->last, &f);
        bool once = call_once(c);
        /* Deleted by an attempt whose answer was lost. */
        if (f.kind == FAULT_ABSENT && c->attempts > 1 && has_prefix(c->row->name, "delete ")) {
                fault_release(&f);
                call_finish(c, &(struct call_reply){ .status = 204, .date = -1 });
                return;
        }
        enum session_verdict v = c->session->ops->judge(c->session, c, x, &f);
        if (f.kind == FAULT_THROTTLED || x->status == 429 || x->status == 503)
                v = VERDICT_THROTTLED;
        if (v == VERDICT_AGAIN_SAFE && once)
                f.lost = true; /* perhaps a part of it was done with the credentials that ended */
        if (v == VERDICT_THROTTLED)
                call_throttled(c, x, &f);
        else if ((v == VERDICT_AGAIN || (v == VERDICT_AGAIN_SAFE && !once)) && !c->signed_again++ &&
                 call_again(c, 0))
                ;
        else if (x->status >= 500)
                call_server_failed(c, &f);
        else
                call_fail(c, &f);
        fault_release(&f);
}

/* A 200 that cannot be read: the answer was cut or is another's. What was made is there. */
static void call_on_garbage(struct call *c, struct error *err)
{
        struct fault f = { .kind = FAULT_ANSWER,
                .status = c->exchange->status,
                .cause = err->message,
                .lost = call_once(c) };
        fault_release(&c->last);
        fault_copy(&c->last, &f);
        if (f.lost || c->attempts > 3 || !call_again(c, retry_backoff(c->attempts, retry_random())))
                call_fail(c, &f);
}

void call_on_good(struct call *c, struct exchange *x)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool more = false;
        json_t *body = call_body(c, x, &err);
        limit_good(&c->service->limit);
        if (!body || (c->row->list && page_take(c, body, &more, &err) < 0)) {
                call_on_garbage(c, &err);
        } else if (more) {
                call_stop(c);
                c->signed_again = 0;
                call_later(c, 0);
        } else {
                struct call_reply reply = { .status = x->status,
                        .body = body,
                        .token = x->heads[HEAD_TOKEN],
                        .date = x->heads[HEAD_DATE] ? http_date(x->heads[HEAD_DATE]) : -1 };
                call_finish(c, &reply);
        }
        json_decref(body);
}

void call_on_answer(struct exchange *x, void *arg)
{
        struct call *c = arg;
        if (!x->status)
                call_on_silence(c, x);
        else if (x->status >= 300)
                call_on_refusal(c, x);
        else
                call_on_good(c, x);
}
