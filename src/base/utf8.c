#include "base/utf8.h"

size_t utf8_decode(const char *s, size_t n, uint32_t *cp)
{
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const unsigned char *p = (const unsigned char *)s;
        if (!n)
                return 0;
        if (p[0] < 0x80) {
                *cp = p[0];
                return 1;
        }
        size_t len = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
        if (!len || p[0] >= 0xf5 || len > n)
                return 0;
        uint32_t v = p[0] & (0x7fu >> len);
        for (size_t i = 1; i < len; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                v = v << 6 | (p[i] & 0x3f);
        }
        if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
                return 0;
        *cp = v;
        return len;
}

struct range {
        uint32_t first, last;
};

static bool utf8_in_ranges(const struct range *r, size_t n, uint32_t cp)
{
        for (size_t i = 0; i < n; i++)
                if (cp >= r[i].first && cp <= r[i].last)
                        return true;
        return false;
}

unsigned utf8_width(uint32_t cp)
{
        /* not all of Unicode: the scripts and signs that turn up in comments */
        static const struct range none[] = { { 0x300, 0x36f }, { 0x483, 0x489 }, { 0x591, 0x5bd },
                { 0x610, 0x61a }, { 0x64b, 0x65f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
                { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f } };
        static const struct range wide[] = { { 0x1100, 0x115f }, { 0x2e80, 0x303e },
                { 0x3041, 0x33ff }, { 0x3400, 0x4dbf }, { 0x4e00, 0x9fff }, { 0xa000, 0xa4cf },
                { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 },
                { 0xffe0, 0xffe6 }, { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
                { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd } };
        if (cp < 0x300)
                return 1;
        return utf8_in_ranges(none, ARRAY_SIZE(none), cp)   ? 0
               : utf8_in_ranges(wide, ARRAY_SIZE(wide), cp) ? 2
                                                            : 1;
}

bool utf8_control(uint32_t cp)
{
        return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029;
}

bool utf8_visible(uint32_t cp)
{
        static const struct range hidden[] = { { 0xad, 0xad }, { 0x61c, 0x61c }, { 0x180e, 0x180e },
                { 0x200b, 0x200f }, { 0x202a, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
                { 0xfff0, 0xfffb }, { 0xe0000, 0xe0fff } };
        return !utf8_control(cp) && !utf8_in_ranges(hidden, ARRAY_SIZE(hidden), cp);
}

const char *line_end(const char *p, const char *end, const char **next)
{
        for (; p < end; p++) {
                unsigned char c = (unsigned char)*p;
                if (c != '\n' && c != '\r' && c != 0xc2 && c != 0xe2)
                        continue;
                size_t left = (size_t)(end - p), n = 0;
                if (c == '\n')
                        n = 1;
                else if (c == '\r')
                        n = left > 1 && p[1] == '\n' ? 2 : 1;
                else if (left > 1 && c == 0xc2 && (unsigned char)p[1] == 0x85)
                        n = 2;
                else if (left > 2 && c == 0xe2 && (unsigned char)p[1] == 0x80 &&
                         ((unsigned char)p[2] & 0xfe) == 0xa8)
                        n = 3;
                if (n) {
                        *next = p + n;
                        return p;
                }
        }
        *next = end;
        return end;
}

void line_place(const char *text, size_t len, size_t offset, uint32_t *line, uint32_t *col)
{
        const char *p = text, *end = text + len, *at = text + (offset < len ? offset : len), *next;
        *line = *col = 1;
        for (line_end(p, end, &next); next <= at && next < end; line_end(p, end, &next)) {
                p = next;
                ++*line;
        }
        for (uint32_t cp; p < at; ++*col) {
                size_t n = utf8_decode(p, (size_t)(at - p), &cp);
                p += n ? n : 1;
        }
}

/* Appends one character, harmless; returns how many bytes it has. */
static size_t harmless_add(struct str *s, const char *text, size_t len, bool lines)
{
        uint32_t cp;
        size_t n = utf8_decode(text, len, &cp);
        if (!n)
                str_addf(s, "\\x%02x", (unsigned char)*text);
        else if (cp == '\n' || cp == '\t')
                str_add(s, lines ? (cp == '\n' ? "\n" : "\t") : cp == '\n' ? "\\n" : "\\t");
        else if (!utf8_visible(cp))
                str_addf(s, "\\u{%x}", cp);
        else
                str_addn(s, text, n);
        return n ? n : 1;
}

void text_harmless(struct str *s, const char *text, size_t max)
{
        size_t len = strlen(text);
        for (size_t i = 0; i < len; max--) {
                if (!max) {
                        str_add(s, "...");
                        return;
                }
                i += harmless_add(s, text + i, len - i, false);
        }
}

void text_lines_harmless(struct str *s, const char *text, size_t len)
{
        for (size_t i = 0; i < len;)
                i += harmless_add(s, text + i, len - i, true);
}
