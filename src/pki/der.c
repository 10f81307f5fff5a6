#include "pki/pki.h"

static size_t length_bytes(size_t n) { return n < 0x80 ? 1 : n < 0x100 ? 2 : n < 0x10000 ? 3 : 4; }

static void put_length(uint8_t *p, size_t n, size_t bytes)
{
        if (bytes == 1) {
                *p = (uint8_t)n;
                return;
        }
        *p = (uint8_t)(0x80 | (bytes - 1));
        for (size_t i = bytes - 1; i > 0; i--, n >>= 8)
                p[i] = (uint8_t)n;
}

void der_add(struct str *s, int tag, const void *data, size_t n)
{
        uint8_t head[5] = { (uint8_t)tag };
        size_t bytes = length_bytes(n);
        put_length(head + 1, n, bytes);
        str_addn(s, head, 1 + bytes);
        str_addn(s, data, n);
}

size_t der_open(struct str *s, int tag)
{
        str_addc(s, (char)tag);
        return s->len;
}

/* The length goes in front of the contents: moving them is cheaper than building them twice. */
void der_close(struct str *s, size_t opened)
{
        size_t n = s->len - opened, bytes = length_bytes(n);
        str_addn(s, "\0\0\0\0", bytes);
        uint8_t *p = (uint8_t *)s->data + opened;
        memmove(p + bytes, p, n);
        put_length(p, n, bytes);
}

void der_add_time(struct str *s, time_t t)
{
        struct tm tm;
        char buf[32];
        gmtime_r(&t, &tm);
        bool utc = tm.tm_year >= 50 && tm.tm_year < 150; /* RFC 5280: two digits through 2049 */
        size_t n = strftime(buf, sizeof(buf), "%Y%m%d%H%M%SZ", &tm), skip = utc ? 2 : 0;
        der_add(s, utc ? DER_UTC_TIME : DER_TIME, buf + skip, n - skip);
}

bool der_take(struct span *in, int tag, struct span *contents, struct span *whole)
{
        const uint8_t *p = in->p;
        if (in->n < 2 || p[0] != tag)
                return false;
        size_t head = 2, n = p[1];
        if (n & 0x80) {
                size_t bytes = n & 0x7f;
                if (bytes == 0 || bytes > 3 || in->n < 2 + bytes)
                        return false;
                for (n = 0; head < 2 + bytes; head++)
                        n = n << 8 | p[head];
        }
        if (n > in->n - head)
                return false;
        if (contents)
                *contents = (struct span){ p + head, n };
        if (whole)
                *whole = (struct span){ p, head + n };
        *in = (struct span){ p + head + n, in->n - head - n };
        return true;
}

bool der_take_time(struct span *in, time_t *out)
{
        struct span t;
        size_t digits = 12;
        if (!der_take(in, DER_UTC_TIME, &t, NULL)) {
                digits = 14;
                if (!der_take(in, DER_TIME, &t, NULL))
                        return false;
        }
        int v[14], i = 0;
        if (t.n != digits + 1 || t.p[digits] != 'Z')
                return false;
        for (size_t k = 0; k < digits; k++) {
                if (t.p[k] < '0' || t.p[k] > '9')
                        return false;
                v[k] = t.p[k] - '0';
        }
        struct tm tm = { 0 };
        int year = v[0] * 10 + v[1];
        if (digits == 14) {
                year = year * 100 + v[2] * 10 + v[3];
                i = 2;
        } else {
                year += year < 50 ? 2000 : 1900;
        }
        tm.tm_year = year - 1900;
        tm.tm_mon = v[i + 2] * 10 + v[i + 3] - 1;
        tm.tm_mday = v[i + 4] * 10 + v[i + 5];
        tm.tm_hour = v[i + 6] * 10 + v[i + 7];
        tm.tm_min = v[i + 8] * 10 + v[i + 9];
        tm.tm_sec = v[i + 10] * 10 + v[i + 11];
        *out = timegm(&tm);
        return true;
}

void pem_add(struct str *s, const char *label, const void *der, size_t n)
{
        const uint8_t *p = der;
        str_reserve(s, n / 48 * 65 + 200);
        str_addf(s, "-----BEGIN %s-----\n", label);
        for (size_t i = 0; i < n; i += 48) {
                str_add_base64(s, p + i, n - i < 48 ? n - i : 48);
                str_addc(s, '\n');
        }
        str_addf(s, "-----END %s-----\n", label);
}

bool pem_find(struct span text, const char *label, struct span *block)
{
        static const char begin[] = "-----BEGIN ", end[] = "-----END ";
        size_t label_len = strlen(label);
        const uint8_t *p = text.p, *stop = text.p + text.n;
        while ((p = memmem(p, (size_t)(stop - p), begin, sizeof(begin) - 1))) {
                const uint8_t *dash = memmem(p + 5, (size_t)(stop - p - 5), "-----", 5);
                if (!dash)
                        return false;
                if ((size_t)(dash - p) < sizeof(begin) - 1 + label_len ||
                        memcmp(dash - label_len, label, label_len)) {
                        p = dash;
                        continue;
                }
                const uint8_t *last = memmem(dash, (size_t)(stop - dash), end, sizeof(end) - 1);
                const uint8_t *line = last ? memchr(last, '\n', (size_t)(stop - last)) : NULL;
                if (!last)
                        return false;
                *block = (struct span){ p, (size_t)((line ? line + 1 : stop) - p) };
                return true;
        }
        return false;
}

/* Decodes the body between the BEGIN and END lines; false if it is not base64. */
bool pem_decode(struct span block, struct str *der)
{
        const uint8_t *p = memchr(block.p, '\n', block.n), *stop = block.p + block.n,
                      *end = p ? memchr(p, '-', (size_t)(stop - p)) : NULL;
        str_truncate(der, 0);
        if (!end || !str_add_from_base64(der, p, (size_t)(end - p)))
                return false;
        return der->len > 0;
}
