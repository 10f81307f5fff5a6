/* One request: to one server, and to the next when that one does not answer. */
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "kube/call.h"

#define APPLY_TYPE "application/apply-patch+yaml"

static size_t request_on_data(char *data, size_t size, size_t n, void *arg)
{
        struct request *r = arg;
        long status = 0;
        n *= size;
        curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
        if (r->sink && status == 200)
                r->too_large = !r->sink(data, n, r->arg);
        else if (!(r->too_large = n > MAX_BODY - r->text.len))
                str_addn(&r->text, data, n);
        return r->too_large ? 0 : n;
}

/* A machine that is off does not close its connections: without this limit, one would last
 * for 15 minutes. */
static int request_on_socket(void *arg, curl_socket_t s, curlsocktype purpose)
{
        unsigned silence = SILENCE;
        setsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
        return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, char *pem)
{
        struct curl_blob blob = { pem, pem ? strlen(pem) : 0, CURL_BLOB_NOCOPY };
        if (pem)
                curl_easy_setopt(easy, option, &blob);
}

/* As in kubectl: never a proxy for this computer itself. */
static bool is_loopback(const char *server)
{
        const char *host = server + strlen("https://");
        return has_prefix(host, "127.") || has_prefix(host, "[::1]") ||
               has_prefix(host, "localhost:") || streq(host, "localhost");
}

static void set_connection(const struct request *r, int64_t left)
{
        const struct kube *k = r->call.k;
        bool more = k->count > 1 && r->pinned < 0;
        long connect = more && left > CONNECT_TIMEOUT ? CONNECT_TIMEOUT : (long)left;
        curl_easy_setopt(r->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "https");
        curl_easy_setopt(r->easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
        /* only the cluster's own CA, not those that this computer trusts */
        curl_easy_setopt(r->easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(r->easy, CURLOPT_CAPATH, NULL);
        set_blob(r->easy, CURLOPT_CAINFO_BLOB, k->ca);
        set_blob(r->easy, CURLOPT_SSLCERT_BLOB, k->cert);
        set_blob(r->easy, CURLOPT_SSLKEY_BLOB, k->key);
        curl_easy_setopt(r->easy, CURLOPT_SOCKOPTFUNCTION, request_on_socket);
        curl_easy_setopt(r->easy, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(r->easy, CURLOPT_TCP_KEEPIDLE, 5L);
        curl_easy_setopt(r->easy, CURLOPT_TCP_KEEPINTVL, 2L);
        curl_easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT_MS, connect);
        /* API servers close connections that are idle for 90 seconds */
        curl_easy_setopt(r->easy, CURLOPT_MAXAGE_CONN, 60L);
        curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)left);
        /* same server again: not over the broken connection */
        curl_easy_setopt(r->easy, CURLOPT_FRESH_CONNECT, r->tries > k->count ? 1L : 0L);
        if (k->sockets)
                curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, k->sockets[r->server]);
        if (k->sockets || is_loopback(k->servers[r->server]))
                curl_easy_setopt(r->easy, CURLOPT_PROXY, "");
}

static void set_message(struct request *r)
{
        char *url CLEANUP(free_p) = xasprintf("%s%s", r->call.k->servers[r->server], r->path);
        char *type CLEANUP(free_p) =
                xasprintf("Content-Type: %s", r->type ? r->type : "application/json");
        char *accept CLEANUP(free_p) =
                xasprintf("Accept: %s", r->accept ? r->accept : "application/json");
        r->headers = curl_slist_append(NULL, accept);
        if (r->body) {
                r->headers = curl_slist_append(r->headers, type);
                r->headers = curl_slist_append(r->headers, "Expect:");
                curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
                curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
        }
        curl_easy_setopt(r->easy, CURLOPT_URL, url);
        curl_easy_setopt(r->easy, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, r->method);
        curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
        curl_easy_setopt(r->easy, CURLOPT_USERAGENT, "slipway/" SLIPWAY_VERSION);
        curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, request_on_data);
        curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
        curl_easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->why);
        curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
}

static void request_go(struct request *r)
{
        int64_t left = r->deadline - clock_ms();
        r->tries++;
        r->why[0] = 0;
        str_truncate(&r->text, 0);
        r->easy = curl_easy_init();
        if (!r->easy)
                abort();
        set_message(r);
        set_connection(r, left > 1 ? left : 1);
        if (curl_multi_add_handle(r->engine->loop.curl, r->easy) != CURLM_OK)
                abort();
}

static void request_stop(struct request *r)
{
        if (r->easy) {
                curl_multi_remove_handle(r->engine->loop.curl, r->easy);
                curl_easy_cleanup(r->easy);
        }
        curl_slist_free_all(r->headers);
        r->easy = NULL;
        r->headers = NULL;
}

void request_destroy(struct request *r)
{
        if (!r)
                return;
        call_unlink(&r->call);
        request_stop(r);
        if (r->pause)
                event_free(r->pause);
        str_wipe_release(&r->text); /* it may have a Secret, and so may the body */
        if (r->body)
                wipe(r->body, strlen(r->body));
        free(r->method);
        free(r->path);
        free(r->type);
        free(r->body);
        free(r);
}

static void request_call_destroy(struct kube_call *c) { request_destroy((struct request *)c); }

struct request *request_new(
        struct kube *k, const char *method, const char *path, kube_fn fn, void *arg)
{
        struct request *r = xcalloc(1, sizeof(*r));
        r->call = (struct kube_call){ .k = k, .destroy = request_call_destroy };
        r->engine = &k->calls;
        r->method = xstrdup(method);
        r->path = xstrdup(path);
        r->timeout_ms = DEFAULT_TIMEOUT;
        r->fn = fn;
        r->arg = arg;
        r->pinned = -1;
        return r;
}

void request_start(struct request *r)
{
        r->deadline = clock_ms() + r->timeout_ms;
        r->server = r->pinned < 0 ? r->call.k->current : (size_t)r->pinned;
        request_go(r);
}

struct kube_call *kube_request(struct kube *k, const char *method, const char *path,
        const char *type, const char *body, unsigned timeout_ms, kube_fn fn, void *arg)
{
        struct request *r = request_new(k, method, path, fn, arg);
        r->type = type ? xstrdup(type) : NULL;
        r->body = body ? xstrdup(body) : NULL;
        r->timeout_ms = timeout_ms ? timeout_ms : DEFAULT_TIMEOUT;
        call_link(k, &r->call);
        request_start(r);
        return &r->call;
}

struct kube_call *kube_ask(
        struct kube *k, size_t server, const char *path, unsigned timeout_ms, kube_fn fn, void *arg)
{
        struct request *r = request_new(k, "GET", path, fn, arg);
        r->timeout_ms = timeout_ms ? timeout_ms : DEFAULT_TIMEOUT;
        r->pinned = (int)server;
        r->patient = true;
        call_link(k, &r->call);
        request_start(r);
        return &r->call;
}

/* A request that was not sent can go to another server; one that may have been executed only if it
 * is idempotent. */
static bool request_may_go_on(const struct request *r, CURLcode code)
{
        long sent = 0;
        bool once = streq(r->method, "GET") ||
                    (streq(r->method, "PATCH") && r->type && streq(r->type, APPLY_TYPE));
        curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &sent);
        if (r->pinned >= 0 || r->too_large || code == CURLE_SSL_CERTPROBLEM ||
                clock_ms() >= r->deadline)
                return false;
        if (!sent)
                return r->tries < r->call.k->count;
        return once && code != CURLE_OPERATION_TIMEDOUT && r->tries <= r->call.k->count;
}

/* True when it was started again. */
static bool request_next_server(struct request *r, CURLcode code)
{
        struct kube *k = r->call.k;
        bool again = request_may_go_on(r, code);
        if (r->too_large || code == CURLE_SSL_CERTPROBLEM)
                return false;
        if (r->pinned < 0 && k->current == r->server)
                k->current = (r->server + 1) % k->count;
        if (!again)
                return false;
        request_stop(r);
        r->server = (r->server + 1) % k->count;
        request_go(r);
        return true;
}

static void request_on_pause(evutil_socket_t fd, short what, void *arg) { request_go(arg); }

/* No tunnel is open, so nothing was sent: tries again until the deadline. */
static bool await_tunnel(struct request *r, CURLcode code)
{
        struct kube *k = r->call.k;
        if (!k->sockets || code != CURLE_COULDNT_CONNECT || (r->pinned >= 0 && !r->patient) ||
                clock_ms() + TUNNEL_PAUSE >= r->deadline)
                return false;
        request_stop(r);
        r->tries = 0;
        r->server = r->pinned < 0 ? k->current : (size_t)r->pinned;
        if (!r->pause && !(r->pause = evtimer_new(k->base, request_on_pause, r)))
                abort();
        event_after(r->pause, TUNNEL_PAUSE);
        return true;
}

static bool is_json(const struct request *r)
{
        const char *type = NULL;
        curl_easy_getinfo(r->easy, CURLINFO_CONTENT_TYPE, &type);
        return type && has_prefix(type, "application/json");
}

/* The Retry-After of a 429 or 503. */
static unsigned request_retry_after(const struct request *r)
{
        curl_off_t seconds = 0;
        curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &seconds);
        return seconds > 0 && seconds <= 30 ? (unsigned)seconds * 1000 : 0;
}

/* The status; a stream that was cut in the middle did have an answer. */
static int request_answered(const struct request *r, CURLcode code)
{
        long status = 0;
        curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
        return code == CURLE_OK || (r->sink && status == 200) ? (int)status : 0;
}

void request_done(struct request *r, CURLcode code)
{
        struct kube *k = r->call.k;
        int status = request_answered(r, code);
        if (!status && (request_next_server(r, code) || await_tunnel(r, code)))
                return;
        json_t *body = status && r->text.len && is_json(r)
                               ? json_loadb(r->text.data, r->text.len, JSON_ALLOW_NUL, NULL)
                               : NULL;
        char *error = !status         ? message_transport(r, code)
                      : status >= 400 ? message_api(r, status, body)
                                      : NULL;
        struct answer a = { .reply = { status, body, str_text(&r->text), error },
                .retry_after = request_retry_after(r) };
        a.again = !status && !r->too_large && code != CURLE_PEER_FAILED_VERIFICATION &&
                  code != CURLE_SSL_CERTPROBLEM;
        a.refused = !status && message_refused(r, code);
        free(k->trouble);
        k->trouble = error ? xstrdup(error) : NULL;
        call_unlink(&r->call);
        request_stop(r);
        r->fn(&a.reply, r->arg);
        json_decref(body);
        free(error);
        request_destroy(r);
}
