#include "base/str.h"

void str_reserve(struct str *s, size_t more)
{
        if (more > STR_MAX || s->len + more > STR_MAX)
                abort();
        if (s->data && s->len + more < s->cap)
                return;
        size_t cap = s->cap ? s->cap : 64;
        while (cap <= s->len + more)
                cap *= 2;
        char *data = xmalloc(cap); /* realloc would leave a copy behind */
        if (s->len)
                memcpy(data, s->data, s->len);
        free_wiped(s->data);
        s->data = data;
        s->cap = cap;
        s->data[s->len] = 0;
}

void str_addn(struct str *s, const void *data, size_t n)
{
        str_reserve(s, n);
        if (n)
                memcpy(s->data + s->len, data, n);
        s->len += n;
        s->data[s->len] = 0;
}

void str_add(struct str *s, const char *text) { str_addn(s, text, strlen(text)); }

void str_addc(struct str *s, char c) { str_addn(s, &c, 1); }

void str_vaddf(struct str *s, const char *fmt, va_list ap)
{
        va_list again;
        va_copy(again, ap);
        int n = vsnprintf(NULL, 0, fmt, ap);
        if (n < 0)
                abort();
        str_reserve(s, (size_t)n);
        vsnprintf(s->data + s->len, (size_t)n + 1, fmt, again);
        va_end(again);
        s->len += (size_t)n;
}

void str_addf(struct str *s, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(s, fmt, ap);
        va_end(ap);
}

void str_truncate(struct str *s, size_t len)
{
        if (len < s->len) {
                s->len = len;
                s->data[len] = 0;
        }
}

char *str_take(struct str *s)
{
        char *p = s->data ? s->data : xstrdup("");
        *s = (struct str){ 0 };
        return p;
}

void str_release(struct str *s)
{
        free_wiped(s->data);
        *s = (struct str){ 0 };
}

void str_wipe_release(struct str *s) { str_release(s); }

char *str_last_line_of(const char *text)
{
        const char *end = text + strlen(text);
        while (end > text && strchr(" \t\r\n", end[-1]))
                end--;
        const char *begin = end;
        while (begin > text && begin[-1] != '\n')
                begin--;
        while (begin < end && strchr(" \t", *begin))
                begin++;
        return xstrndup(begin, (size_t)(end - begin));
}

char *str_last_line(const struct str *s) { return str_last_line_of(str_text(s)); }

void str_add_base64(struct str *s, const void *data, size_t n)
{
        static const char set[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const unsigned char *p = data;
        str_reserve(s, (n + 2) / 3 * 4);
        for (size_t i = 0; i < n; i += 3) {
                unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? p[i + 1] : 0u) << 8 |
                             (i + 2 < n ? p[i + 2] : 0u);
                char out[4] = { set[v >> 18], set[v >> 12 & 63], i + 1 < n ? set[v >> 6 & 63] : '=',
                        i + 2 < n ? set[v & 63] : '=' };
                str_addn(s, out, 4);
        }
}

static int base64_value(uint8_t c)
{
        return c >= 'A' && c <= 'Z'   ? c - 'A'
               : c >= 'a' && c <= 'z' ? c - 'a' + 26
               : c >= '0' && c <= '9' ? c - '0' + 52
               : c == '+'             ? 62
               : c == '/'             ? 63
                                      : -1;
}

bool str_add_from_base64(struct str *s, const void *text, size_t n)
{
        const uint8_t *p = text, *stop = p + n;
        uint32_t acc = 0;
        unsigned have = 0, pad = 0;
        str_reserve(s, n + 1);
        uint8_t *out = (uint8_t *)s->data + s->len;
        for (; p < stop; p++) {
                int v = base64_value(*p);
                if (*p == '\n' || *p == '\r')
                        continue;
                if (*p == '=' && ++pad <= 2)
                        v = 0;
                else if (v < 0 || pad)
                        break;
                acc = acc << 6 | (uint32_t)v;
                if (++have < 4)
                        continue;
                *out++ = (uint8_t)(acc >> 16);
                *out++ = (uint8_t)(acc >> 8);
                *out++ = (uint8_t)acc;
                have = 0;
        }
        bool good = p == stop && !have;
        if (good)
                s->len = (size_t)(out - (uint8_t *)s->data) - pad;
        s->data[s->len] = 0;
        return good;
}

void str_add_hex(struct str *s, const void *data, size_t n)
{
        const unsigned char *p = data;
        for (size_t i = 0; i < n; i++)
                str_addf(s, "%02x", p[i]);
}
