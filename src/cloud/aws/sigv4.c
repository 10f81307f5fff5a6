#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "base/sha256.h"
#include "cloud/aws/sigv4.h"
#include "cloud/session.h"

#define DIGEST 32

void sigv4_date(int64_t seconds, char out[SIGV4_DATE])
{
        time_t t = (time_t)seconds;
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(out, SIGV4_DATE, "%Y%m%dT%H%M%SZ", &tm);
}

static const char *sigv4_rest(const char *url)
{
        const char *scheme = strstr(url, "://");
        return scheme ? scheme + 3 : url;
}

char *sigv4_host(const char *url)
{
        const char *host = sigv4_rest(url);
        size_t n = strcspn(host, "/?#");
        char *out = xstrndup(host, n);
        const char *port = has_prefix(url, "https:") ? ":443" : ":80";
        if (has_suffix(out, port))
                out[n - strlen(port)] = 0;
        return out;
}

static int sigv4_by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* name=value by name and then by value: as texts whose = sorts before everything else. */
static void sigv4_query(struct str *s, const char *query)
{
        char *copy CLEANUP(free_p) = xstrdup(query), *parts[256], *save = NULL;
        size_t n = 0;
        for (char *p = strtok_r(copy, "&", &save); p && n < ARRAY_SIZE(parts);
                p = strtok_r(NULL, "&", &save)) {
                char *eq = strchr(p, '=');
                if (eq)
                        *eq = 1;
                parts[n++] = p;
        }
        qsort(parts, n, sizeof(*parts), sigv4_by_text);
        for (size_t i = 0; i < n; i++) {
                char *eq = strchr(parts[i], 1);
                if (eq)
                        *eq = '=';
                str_addf(s, "%s%s%s", i ? "&" : "", parts[i], eq ? "" : "=");
        }
}

static int sigv4_by_name(const void *a, const void *b)
{
        const struct sigv4_header *x = a, *y = b;
        return strcmp(x->name, y->name);
}

/* Host and the others, sorted; returns how many. `names` gets a;b;c. */
static void sigv4_headers(struct str *lines, struct str *names, const struct sigv4 *in)
{
        char *host CLEANUP(free_p) = sigv4_host(in->url);
        struct sigv4_header all[SIGV4_HEADERS + 1] = { { "host", host } };
        size_t n = 1;
        for (size_t i = 0; i < SIGV4_HEADERS && in->headers[i].name; i++)
                all[n++] = in->headers[i];
        qsort(all, n, sizeof(*all), sigv4_by_name);
        for (size_t i = 0; i < n; i++) {
                str_addf(lines, "%s:%s\n", all[i].name, all[i].value);
                str_addf(names, "%s%s", i ? ";" : "", all[i].name);
        }
}

void sigv4_canonical(struct str *s, const struct sigv4 *in)
{
        struct str lines CLEANUP(str_wipe_release) = { 0 }, names CLEANUP(str_release) = { 0 };
        const char *rest = sigv4_rest(in->url);
        const char *path = rest + strcspn(rest, "/?#"), *query = strchr(path, '?');
        char *plain CLEANUP(free_p) = xstrndup(path, strcspn(path, "?#"));
        char hash[SHA256_HEX];
        sha256_hex(in->body ? in->body : "", in->body ? in->len : 0, hash);
        sigv4_headers(&lines, &names, in);
        str_addf(s, "%s\n", in->method);
        uri_escape(s, *plain ? plain : "/", "/"); /* once more: every service but S3 wants it */
        str_addc(s, '\n');
        if (query)
                sigv4_query(s, query + 1);
        str_addf(s, "\n%s\n%s\n%s", str_text(&lines), str_text(&names), hash);
}

static void sigv4_mac(unsigned char key[DIGEST], size_t n, const char *text)
{
        unsigned char out[DIGEST];
        unsigned len = DIGEST;
        if (!HMAC(EVP_sha256(), key, (int)n, (const unsigned char *)text, strlen(text), out, &len))
                abort();
        memcpy(key, out, DIGEST);
}

static void sigv4_key(unsigned char key[DIGEST], const struct sigv4 *in, const char *day)
{
        char *first CLEANUP(free_p) = xasprintf("AWS4%s", in->secret);
        unsigned char out[DIGEST];
        unsigned len = DIGEST;
        if (!HMAC(EVP_sha256(), first, (int)strlen(first), (const unsigned char *)day, strlen(day),
                    out, &len))
                abort();
        memcpy(key, out, DIGEST);
        wipe(first, strlen(first));
        sigv4_mac(key, DIGEST, in->region);
        sigv4_mac(key, DIGEST, in->service);
        sigv4_mac(key, DIGEST, "aws4_request");
}

void sigv4_sign(struct str *s, const struct sigv4 *in)
{
        struct str canonical CLEANUP(str_wipe_release) = { 0 }, names CLEANUP(str_release) = { 0 },
                             lines CLEANUP(str_wipe_release) = { 0 };
        unsigned char key[DIGEST];
        char hash[SHA256_HEX], day[9];
        snprintf(day, sizeof(day), "%.8s", in->date);
        sigv4_canonical(&canonical, in);
        sha256_hex(canonical.data, canonical.len, hash);
        char *scope CLEANUP(free_p) =
                xasprintf("%s/%s/%s/aws4_request", day, in->region, in->service);
        char *text CLEANUP(free_p) =
                xasprintf("AWS4-HMAC-SHA256\n%s\n%s\n%s", in->date, scope, hash);
        sigv4_key(key, in, day);
        sigv4_mac(key, DIGEST, text);
        sigv4_headers(&lines, &names, in);
        str_addf(s, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=", in->id,
                scope, str_text(&names));
        str_add_hex(s, key, DIGEST);
        wipe(key, DIGEST);
}
