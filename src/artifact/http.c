#include "artifact/http.h"
#include "base/file.h"
#include "base/curl_loop.h"

#define CONNECT_SECONDS 5
#define SLOW_BYTES      512 /* a second, for so long: */
#define SLOW_SECONDS    30

struct http {
        struct curl_loop loop;
        struct transfer *first;
};

struct transfer {
        struct http *http;
        struct transfer *next;
        struct transfer_spec spec;
        CURL *easy;
        struct curl_slist *headers;
        struct str body;
        char error[CURL_ERROR_SIZE], etag[256], why[CURL_ERROR_SIZE + 64];
        bool started, full;
        int write_errno;
        int64_t got;
        enum transfer_end end;
};

static void finish_all(struct http *h);

static void act(curl_socket_t fd, int what, void *arg)
{
        struct http *h = arg;
        int n;
        curl_multi_socket_action(h->loop.curl, fd, what, &n);
        finish_all(h);
}

int http_new(struct event_base *base, struct http **out, struct error *err)
{
        static bool ready;
        if (!ready && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return error_set(err, EIO, EXIT_INTERNAL, "cannot start libcurl");
        ready = true;
        struct http *h = xcalloc(1, sizeof(*h));
        if (curl_loop_init(&h->loop, base, act, h) < 0) {
                free(h);
                return error_set(err, ENOMEM, EXIT_INTERNAL, "cannot start libcurl");
        }
        *out = h;
        return 0;
}

void http_free(struct http *h)
{
        if (!h)
                return;
        while (h->first)
                transfer_free(h->first);
        curl_loop_release(&h->loop);
        free(h);
}

/* ---- one transfer ---- */

static bool transfer_write(struct transfer *t, const char *data, size_t n)
{
        int r = write_all(t->spec.fd, data, n);
        if (r < 0)
                t->write_errno = -r;
        return r == 0;
}

/* The first bytes of an answer: their place depends on whether it is the rest or the whole file. */
static bool begin_body(struct transfer *t)
{
        long status = 0;
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        t->started = true;
        if (t->spec.fd < 0)
                return true;
        if (status == 200)
                t->spec.offset = 0;
        if (ftruncate(t->spec.fd, t->spec.offset) < 0 ||
                lseek(t->spec.fd, t->spec.offset, SEEK_SET) < 0) {
                t->write_errno = errno;
                return false;
        }
        return true;
}

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
        struct transfer *t = arg;
        long status = 0;
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        /* the body of an error is not the file */
        if (status != 200 && status != 206)
                return n;
        if (!t->started && !begin_body(t))
                return 0;
        /* the server's Content-Length does not matter */
        t->full = t->spec.offset + t->got + (int64_t)n > t->spec.max;
        if (t->spec.room && (*t->spec.room -= (int64_t)n) < 0)
                t->full = true;
        if (t->full)
                return 0;
        if (t->spec.fd < 0)
                str_addn(&t->body, data, n);
        else if (!transfer_write(t, data, n))
                return 0;
        t->got += (int64_t)n;
        return n;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
        static const char name[] = "etag:";
        struct transfer *t = arg;
        if (n > 5 && has_prefix(data, "HTTP/"))
                t->etag[0] = 0; /* of an answer before a redirect */
        if (n <= sizeof(name) || strncasecmp(data, name, sizeof(name) - 1))
                return n;
        size_t from = sizeof(name) - 1, to = n;
        while (from < to && data[from] == ' ')
                from++;
        while (to > from && strchr(" \r\n", data[to - 1]))
                to--;
        /* only a strong ETag means equal bytes */
        if (to - from < sizeof(t->etag) && !memchr(data + from, 0, to - from) && data[from] == '"')
                snprintf(t->etag, sizeof(t->etag), "%.*s", (int)(to - from), data + from);
        return n;
}

static int on_http_progress(
        void *arg, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t up_now)
{
        struct transfer *t = arg;
        if (t->started && t->spec.on_progress)
                t->spec.on_progress(t->spec.offset + t->got,
                        total > 0 ? t->spec.offset + total : -1, t->spec.arg);
        return 0;
}

static void set_options(struct transfer *t)
{
        const struct transfer_spec *s = &t->spec;
        CURL *c = t->easy;
        curl_easy_setopt(c, CURLOPT_URL, s->url);
        curl_easy_setopt(c, CURLOPT_PRIVATE, t);
        curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->error);
        curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
        curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR,
                has_prefix(s->url, "https:") ? "https" : "http,https");
        curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
        curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
        curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)s->max);
        curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)s->seconds);
        if (s->ca) {
                struct curl_blob ca = { (char *)s->ca, strlen(s->ca), CURL_BLOB_COPY };
                curl_easy_setopt(c, CURLOPT_CAINFO, NULL);
                curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
                curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &ca);
        }
        curl_easy_setopt(c, CURLOPT_USERAGENT, "slipway/" SLIPWAY_VERSION);
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
        curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_http_progress);
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
        if (s->head) {
                curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
                curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
                curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)CONNECT_SECONDS * 2);
        }
}

/* CURLOPT_RESUME_FROM would fail if a server sends the whole file again, which is accepted here. */
static void set_range(struct transfer *t)
{
        if (t->spec.fd < 0 || t->spec.offset <= 0)
                return;
        char *range CLEANUP(free_p) = xasprintf("Range: bytes=%" PRId64 "-", t->spec.offset);
        t->headers = curl_slist_append(t->headers, range);
        if (t->spec.validator && *t->spec.validator) {
                char *only_if CLEANUP(free_p) = xasprintf("If-Range: %s", t->spec.validator);
                t->headers = curl_slist_append(t->headers, only_if);
        }
        curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

int transfer_start(
        struct http *h, const struct transfer_spec *spec, struct transfer **out, struct error *err)
{
        struct transfer *t = xcalloc(1, sizeof(*t));
        *t = (struct transfer){
                .http = h, .spec = *spec, .next = h->first, .easy = curl_easy_init()
        };
        h->first = t;
        set_options(t);
        set_range(t);
        if (curl_multi_add_handle(h->loop.curl, t->easy) != CURLM_OK) {
                transfer_free(t);
                return error_set(
                        err, EIO, EXIT_INTERNAL, "cannot download %s: libcurl refuses", spec->url);
        }
        *out = t;
        return 0;
}

void transfer_free(struct transfer *t)
{
        if (!t)
                return;
        for (struct transfer **p = &t->http->first; *p; p = &(*p)->next) {
                if (*p == t) {
                        *p = t->next;
                        break;
                }
        }
        curl_multi_remove_handle(t->http->loop.curl, t->easy);
        curl_easy_cleanup(t->easy);
        curl_slist_free_all(t->headers);
        str_release(&t->body);
        free(t);
}

/* ---- how it ended ---- */

static enum transfer_end end_of_status(long status)
{
        if (status == 200 || status == 206)
                return TRANSFER_OK;
        if (status == 416)
                return TRANSFER_RANGE;
        if (status == 408 || status == 429 || status >= 500)
                return TRANSFER_CUT;
        return status >= 400 ? TRANSFER_ABSENT : TRANSFER_FAILED;
}

static enum transfer_end end_of_code(CURLcode code)
{
        switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_PEER_FAILED_VERIFICATION:
                return TRANSFER_UNREACHABLE;
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_TOO_MANY_REDIRECTS:
        case CURLE_WRITE_ERROR:
                return TRANSFER_FAILED;
        default:
                return TRANSFER_CUT;
        }
}

static void judge(struct transfer *t, CURLcode code)
{
        long status = 0;
        curl_off_t pretransfer = 0;
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer);
        if (code != CURLE_OK) {
                /* A timeout before anything was sent means unreachable; after it, cut. */
                t->end = code == CURLE_OPERATION_TIMEDOUT && !pretransfer ? TRANSFER_UNREACHABLE
                                                                          : end_of_code(code);
                t->full |= code == CURLE_FILESIZE_EXCEEDED;
                if (t->full)
                        t->end = TRANSFER_LARGE;
                if (t->spec.head && t->end == TRANSFER_CUT)
                        t->end = TRANSFER_UNREACHABLE;
                snprintf(t->why, sizeof(t->why), "%s",
                        t->write_errno ? strerror(t->write_errno)
                        : t->full      ? "it is larger than it may be"
                        : *t->error    ? t->error
                                       : curl_easy_strerror(code));
                return;
        }
        t->end = end_of_status(status);
        /* any answer is enough, except those of a gateway without one */
        if (t->spec.head)
                t->end = status >= 500 || status == 407 ? TRANSFER_UNREACHABLE : TRANSFER_OK;
        /* An empty file has no first bytes. */
        if (t->end == TRANSFER_OK && !t->spec.head && !t->started)
                begin_body(t);
        snprintf(t->why, sizeof(t->why), "the server answered %ld", status);
}

static void finish_all(struct http *h)
{
        /* on_done may free everything, so each transfer is ended separately. */
        int left;
        for (CURLMsg *m; (m = curl_multi_info_read(h->loop.curl, &left));) {
                struct transfer *t;
                if (m->msg != CURLMSG_DONE)
                        continue;
                CURLcode code = m->data.result;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
                judge(t, code);
                t->spec.on_done(t, t->spec.arg);
                transfer_free(t);
        }
}

enum transfer_end transfer_end(const struct transfer *t) { return t->end; }

const char *transfer_why(const struct transfer *t) { return t->why; }

const char *transfer_etag(const struct transfer *t) { return t->etag; }

struct str *transfer_body(struct transfer *t) { return &t->body; }

int transfer_errno(const struct transfer *t) { return t->write_errno; }

int64_t transfer_got(const struct transfer *t) { return t->got; }
