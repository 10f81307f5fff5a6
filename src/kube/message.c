/* Errors as sentences. They contain nothing that was sent: no key and no Secret. */
#include <ctype.h>

#include "base/utf8.h"
#include "kube/call.h"

#define MAX_SENTENCE 2000

static long os_error(const struct request *r)
{
        long e = 0;
        curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &e);
        return e;
}

/* A tunnel's missing socket counts too: it may exist soon. */
bool message_refused(const struct request *r, CURLcode code)
{
        return code == CURLE_COULDNT_CONNECT && (os_error(r) == ECONNREFUSED || r->call.k->sockets);
}

/* The state of the tunnel explains more than a closed connection. */
static bool tunnel_trouble(struct str *s, const struct request *r, CURLcode code)
{
        const struct kube *k = r->call.k;
        const char *why = k->sockets && k->why ? k->why(r->server, k->why_arg) : NULL;
        if (why)
                str_add(s, why);
        else if (k->sockets && code == CURLE_COULDNT_CONNECT)
                str_add(s, "the ssh tunnel to it is not open");
        else if (k->sockets && code == CURLE_SSL_CONNECT_ERROR)
                str_add(s, "the connection was refused: nothing listens there");
        return k->sockets &&
               (why || code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR);
}

static void connect_trouble(struct str *s, const struct request *r)
{
        long e = os_error(r);
        if (e == ECONNREFUSED)
                str_add(s, "the connection was refused: nothing listens there");
        else if (e)
                str_addf(s, "no connection: %s", strerror((int)e));
        else
                str_add(s, "no connection");
}

/* curl's own reason without its "SSL certificate problem: ". */
static void trust_trouble(struct str *s, const struct request *r)
{
        const char *why = strstr(r->why, "problem: ");
        why = why ? why + strlen("problem: ") : has_prefix(r->why, "SSL: ") ? r->why + 5 : r->why;
        str_addf(s, "its certificate is not trusted: %s",
                *why ? why : "it is not signed by the cluster's CA, or not for this address");
}

static void timeout_trouble(struct str *s, const struct request *r)
{
        long sent = 0;
        curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &sent);
        if (!sent)
                str_add(s, "no connection within the time limit");
        else if (r->timeout_ms % 1000)
                str_addf(s, "no answer within %u ms", r->timeout_ms);
        else
                str_addf(s, "no answer within %u s", r->timeout_ms / 1000);
}

static void transport_trouble(struct str *s, const struct request *r, CURLcode code)
{
        if (r->too_large) {
                str_addf(s, "the answer to %s is larger than %zu MiB", r->path, MAX_BODY >> 20);
                return;
        }
        if (tunnel_trouble(s, r, code))
                return;
        switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
                str_add(s, "the host name cannot be resolved");
                break;
        case CURLE_COULDNT_CONNECT:
                connect_trouble(s, r);
                break;
        case CURLE_PEER_FAILED_VERIFICATION:
                trust_trouble(s, r);
                break;
        case CURLE_OPERATION_TIMEDOUT:
                timeout_trouble(s, r);
                break;
        case CURLE_SSL_CERTPROBLEM:
                str_addf(s, "our client certificate or key cannot be used: %s", r->why);
                break;
        default:
                curl_trouble(s, code, r->why);
        }
}

char *message_transport(const struct request *r, CURLcode code)
{
        struct str raw CLEANUP(str_release) = { 0 }, s = { 0 };
        size_t count = r->call.k->count;
        if (r->tries >= count && count > 1 && r->pinned < 0)
                str_addf(&s, "none of the %zu API servers answers; the last one: ", count);
        str_addf(&raw, "%s: ", r->call.k->servers[r->server]);
        transport_trouble(&raw, r, code);
        text_harmless(&s, str_text(&raw), MAX_SENTENCE);
        return str_take(&s);
}

/* Without trailing line breaks and full stop. */
static void tidy(struct str *s, const char *text)
{
        char *copy CLEANUP(free_p) = xstrdup(text);
        size_t n = strlen(copy);
        while (n && (isspace((unsigned char)copy[n - 1]) || copy[n - 1] == '.'))
                copy[--n] = 0;
        text_harmless(s, copy, MAX_SENTENCE);
}

/* /readyz prints a line for each check: "[-]etcd failed: reason withheld". */
static bool failed_checks(struct str *s, const char *text)
{
        unsigned n = 0;
        for (const char *p = text; (p = strstr(p, "[-]")); n++) {
                p += 3;
                str_addf(s, "%s%.*s", n ? ", " : "not ready yet: ", (int)strcspn(p, " \n"), p);
        }
        return n;
}

char *message_api(const struct request *r, int status, const json_t *body)
{
        struct str s = { 0 };
        const char *said = json_string_value(json_object_get(body, "message"));
        if (status == 401) {
                str_addf(&s,
                        "%s: the API server does not accept our client certificate: it has expired, or another CA signed it",
                        r->call.k->servers[r->server]);
                return str_take(&s);
        }
        if (said && *said) {
                tidy(&s, said);
                return str_take(&s);
        }
        if (has_prefix(r->path, "/readyz") && failed_checks(&s, str_text(&r->text)))
                return str_take(&s);
        str_addf(&s, "%s %s: HTTP status %d", r->method, r->path, status);
        if (r->text.len) {
                str_add(&s, ": ");
                tidy(&s, str_text(&r->text));
        }
        return str_take(&s);
}
