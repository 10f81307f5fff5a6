#include "cloud/exchange.h"

#define HEAD_MAX   4096 /* bytes of a header that is kept: tokens can be long */
#define CONNECT_MS 10000L
#define SLOW_S     600L /* no byte for so long ends a stream: glance may store before it answers */

static const struct {
        const char *name;
        enum head head;
} exchange_heads[] = {
        { "date", HEAD_DATE },
        { "retry-after", HEAD_RETRY_AFTER },
        { "content-type", HEAD_TYPE },
        { "x-subject-token", HEAD_TOKEN },
        { "x-openstack-request-id", HEAD_ID },
        { "x-compute-request-id", HEAD_ID },
        { "x-amzn-requestid", HEAD_ID },
        { "x-amz-request-id", HEAD_ID },
        { "x-amzn-errortype", HEAD_ERROR_TYPE },
};

static size_t exchange_on_head(char *data, size_t size, size_t n, void *arg)
{
        struct exchange *x = arg;
        const char *colon = memchr(data, ':', n);
        size_t from = colon ? (size_t)(colon - data) + 1 : n, to = n;
        while (from < to && strchr(" \t", data[from]))
                from++;
        while (to > from && strchr(" \t\r\n", data[to - 1]))
                to--;
        for (size_t i = 0; colon && i < ARRAY_SIZE(exchange_heads); i++) {
                const char *name = exchange_heads[i].name;
                if (strlen(name) != (size_t)(colon - data) || to - from > HEAD_MAX ||
                        strncasecmp(data, name, strlen(name)))
                        continue;
                free_wiped(x->heads[exchange_heads[i].head]);
                x->heads[exchange_heads[i].head] = xstrndup(data + from, to - from);
        }
        return n;
}

static size_t exchange_on_data(char *data, size_t size, size_t n, void *arg)
{
        struct exchange *x = arg;
        const struct stream *s = x->spec.stream;
        long status = 0;
        curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        if (s && s->fd < 0 && status == 200) {
                if ((x->too_large = (int64_t)n > s->size - x->streamed))
                        return 0;
                x->streamed += (int64_t)n;
                s->fn(data, n, s->arg);
                return n;
        }
        if ((x->too_large = n > x->spec.max - x->text.len))
                return 0;
        str_addn(&x->text, data, n);
        return n;
}

static size_t exchange_on_read(char *data, size_t size, size_t n, void *arg)
{
        struct exchange *x = arg;
        int64_t left = x->spec.stream->size - x->streamed;
        size_t most = (int64_t)(size * n) < left ? size * n : (size_t)left;
        ssize_t got = read(x->spec.stream->fd, data, most); /* the file may have grown */
        if (got < 0)
                return CURL_READFUNC_ABORT;
        x->streamed += got;
        x->spec.stream->fn(data, (size_t)got, x->spec.stream->arg);
        return (size_t)got;
}

static void exchange_stream(struct exchange *x)
{
        const struct stream *s = x->spec.stream;
        curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, 0L);
        curl_easy_setopt(x->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(x->easy, CURLOPT_LOW_SPEED_TIME, SLOW_S);
        if (s->fd < 0)
                return;
        curl_easy_setopt(x->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(x->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)s->size);
        curl_easy_setopt(x->easy, CURLOPT_READFUNCTION, exchange_on_read);
        curl_easy_setopt(x->easy, CURLOPT_READDATA, x);
}

/* As everywhere: never a proxy for this computer itself. */
static bool exchange_is_local(const char *url)
{
        const char *host = strstr(url, "://");
        host = host ? host + 3 : url;
        return has_prefix(host, "127.") || has_prefix(host, "[::1]") ||
               has_prefix(host, "localhost") || has_prefix(host, "169.254.");
}

static void exchange_trust(struct exchange *x)
{
        const struct trust *t = x->spec.trust;
        curl_easy_setopt(x->easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
        if (!t)
                return;
        if (t->ca_file)
                curl_easy_setopt(x->easy, CURLOPT_CAINFO, t->ca_file);
        if (t->cert_file)
                curl_easy_setopt(x->easy, CURLOPT_SSLCERT, t->cert_file);
        if (t->key_file)
                curl_easy_setopt(x->easy, CURLOPT_SSLKEY, t->key_file);
        curl_easy_setopt(x->easy, CURLOPT_SSL_VERIFYPEER, t->insecure ? 0L : 1L);
        curl_easy_setopt(x->easy, CURLOPT_SSL_VERIFYHOST, t->insecure ? 0L : 2L);
}

static void exchange_options(struct exchange *x)
{
        const struct exchange_spec *s = &x->spec;
        CURL *e = x->easy;
        curl_easy_setopt(e, CURLOPT_URL, s->url);
        curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, s->method);
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, s->headers);
        curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(e, CURLOPT_USERAGENT, "slipway/" SLIPWAY_VERSION);
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
        curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)s->timeout_ms);
        curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, s->once ? 1L : 0L);
        curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, 30L);
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, exchange_on_data);
        curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
        curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, exchange_on_head);
        curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
        curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->why);
        curl_easy_setopt(e, CURLOPT_PRIVATE, x);
        if (s->body) {
                curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->len);
                curl_easy_setopt(e, CURLOPT_POSTFIELDS, s->body);
        }
        if (s->stream)
                exchange_stream(x);
        if (exchange_is_local(s->url))
                curl_easy_setopt(e, CURLOPT_PROXY, "");
        exchange_trust(x);
}

struct exchange *exchange_start(CURLM *multi, const struct exchange_spec *spec)
{
        struct exchange *x = xcalloc(1, sizeof(*x));
        x->spec = *spec;
        x->multi = multi;
        x->easy = curl_easy_init();
        if (!x->easy)
                abort();
        exchange_options(x);
        x->spec.url = NULL; /* libcurl has a copy */
        if (curl_multi_add_handle(multi, x->easy) != CURLM_OK)
                abort();
        return x;
}

void exchange_free(struct exchange *x)
{
        if (!x)
                return;
        curl_multi_remove_handle(x->multi, x->easy);
        curl_easy_cleanup(x->easy);
        for (struct curl_slist *h = x->spec.headers; h; h = h->next)
                wipe(h->data, strlen(h->data)); /* tokens and signatures */
        curl_slist_free_all(x->spec.headers);
        for (size_t i = 0; i < HEADS; i++)
                free_wiped(x->heads[i]);
        str_wipe_release(&x->text);
        free(x);
}

void exchange_done(struct exchange *x, CURLcode code)
{
        long status = 0, sent = 0;
        curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent);
        x->code = code;
        x->status = code == CURLE_OK ? (int)status : 0;
        x->sent = sent > 0;
        x->spec.fn(x, x->spec.arg);
}

void exchange_trouble(struct str *s, const struct exchange *x)
{
        long e = 0;
        curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &e);
        if (x->too_large) {
                if (x->streamed)
                        str_add(s, "the answer is larger than it should be");
                else
                        str_addf(s, "the answer is larger than %zu KiB", x->spec.max >> 10);
                return;
        }
        switch (x->code) {
        case CURLE_COULDNT_RESOLVE_HOST:
                str_add(s, "the host name cannot be resolved");
                break;
        case CURLE_COULDNT_CONNECT:
                str_addf(s, "no connection%s%s", e ? ": " : "", e ? strerror((int)e) : "");
                break;
        case CURLE_PEER_FAILED_VERIFICATION:
                str_addf(s, "the server's certificate is not trusted: %s", x->why);
                break;
        case CURLE_OPERATION_TIMEDOUT:
                if (x->spec.stream && x->sent)
                        str_addf(s, "nothing was transferred for %ld s", SLOW_S);
                else if (x->sent)
                        str_addf(s, "no whole answer within %.3g s", x->spec.timeout_ms / 1000.0);
                else
                        str_add(s, "no connection in time");
                break;
        default:
                curl_trouble(s, x->code, x->why);
        }
}
