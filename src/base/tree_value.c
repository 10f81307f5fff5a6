#include <math.h>

#include "base/quote.h"
#include "base/tree.h"

const struct tree *tree_get(const struct tree *map, const char *key)
{
        if (!map || map->kind != TREE_MAP)
                return NULL;
        for (const struct tree *c = map->first; c; c = c->next)
                if (streq(c->key, key))
                        return c;
        return NULL;
}

static bool tree_value_one_of(const char *s, const char *const *words, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (streq(s, words[i]))
                        return true;
        return false;
}

static const char *const true_words[] = { "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On",
        "ON", "y", "Y" };
static const char *const false_words[] = { "false", "False", "FALSE", "no", "No", "NO", "off",
        "Off", "OFF", "n", "N" };
static const char *const infinite_words[] = { ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF",
        "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN" };

bool tree_null_word(const char *s)
{
        return !*s || streq(s, "~") || streq(s, "null") || streq(s, "Null") || streq(s, "NULL");
}

/* Digits of a number without their underscores; false when they do not fit. */
static bool without_underscores(const char *s, char *buf, size_t size)
{
        size_t n = 0;
        for (; *s; s++) {
                if (*s == '_')
                        continue;
                if (n + 1 >= size)
                        return false;
                buf[n++] = *s;
        }
        buf[n] = 0;
        return true;
}

/* An integer as Go's ParseInt and ParseUint with base 0 read it: 0x, 0o, 0b, 0 for octal. */
static bool parse_int(const char *s, bool *negative, uint64_t *out)
{
        bool sign = *s == '-' || *s == '+';
        *negative = *s == '-';
        s += sign;
        unsigned base = 10;
        if (s[0] == '0' && s[1]) {
                char c = (char)(s[1] | 0x20);
                base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
                s += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
        }
        if (!*s)
                return false;
        uint64_t v = 0;
        for (; *s; s++) {
                char c = *s >= 'A' && *s <= 'Z' ? (char)(*s | 0x20) : *s;
                unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                                 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                        : 99;
                if (digit >= base || __builtin_mul_overflow(v, base, &v) ||
                        __builtin_add_overflow(v, digit, &v))
                        return false;
        }
        *out = v;
        return !sign || v <= (uint64_t)INT64_MAX + *negative;
}

static const char *digits(const char *s)
{
        while (*s >= '0' && *s <= '9')
                s++;
        return s;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(const char *s)
{
        s += *s == '-' || *s == '+';
        const char *end = digits(s);
        bool whole = end != s;
        if (*end == '.') {
                const char *fraction = end + 1;
                end = digits(fraction);
                if (!whole && end == fraction)
                        return false;
        } else if (!whole) {
                return false;
        }
        if (*end == 'e' || *end == 'E') {
                end += end[1] == '-' || end[1] == '+' ? 2 : 1;
                if (digits(end) == end)
                        return false;
                end = digits(end);
        }
        return !*end;
}

enum tree_type tree_type(const struct tree *t)
{
        if (t->kind == TREE_NULL)
                return TREE_NIL;
        if (t->kind != TREE_SCALAR || !t->plain)
                return TREE_STRING;
        const char *s = t->text;
        if (tree_value_one_of(s, true_words, ARRAY_SIZE(true_words)) ||
                tree_value_one_of(s, false_words, ARRAY_SIZE(false_words)))
                return TREE_BOOL;
        if (tree_value_one_of(s, infinite_words, ARRAY_SIZE(infinite_words)))
                return TREE_FLOAT;
        if (*s == '.')
                return is_float(s) ? TREE_FLOAT : TREE_STRING;
        if (!strchr("+-0123456789", *s))
                return TREE_STRING;
        char buf[400];
        bool negative;
        uint64_t v;
        if (!without_underscores(s, buf, sizeof(buf)))
                return TREE_STRING;
        return parse_int(buf, &negative, &v) ? TREE_INT : is_float(buf) ? TREE_FLOAT : TREE_STRING;
}

bool tree_int(const struct tree *t, int64_t *out)
{
        char buf[400];
        bool negative;
        uint64_t v;
        if (tree_type(t) != TREE_INT || !without_underscores(t->text, buf, sizeof(buf)) ||
                !parse_int(buf, &negative, &v))
                return false;
        if (v > (uint64_t)INT64_MAX + negative)
                return false;
        *out = negative ? (int64_t)(0 - v) : (int64_t)v;
        return true;
}

static bool is_word(const char *s)
{
        for (; *s; s++)
                if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                            (*s >= '0' && *s <= '9') || *s == '_' || *s == '-'))
                        return false;
        return true;
}

static void tree_value_add_key(struct str *s, size_t start, const char *key)
{
        if (!is_word(key)) {
                str_addc(s, '[');
                quote_json(s, key);
                str_addc(s, ']');
                return;
        }
        if (s->len > start)
                str_addc(s, '.');
        str_add(s, key);
}

static void tree_value_add_path(struct str *s, size_t start, const struct tree *t)
{
        if (!t->parent)
                return;
        tree_value_add_path(s, start, t->parent);
        if (t->parent->kind == TREE_LIST)
                str_addf(s, "[%u]", t->index);
        else
                tree_value_add_key(s, start, t->key);
}

void tree_path(struct str *s, const struct tree *t, const char *field)
{
        size_t start = s->len;
        if (t)
                tree_value_add_path(s, start, t);
        if (field)
                tree_value_add_key(s, start, field);
        if (s->len > start + 5 && memcmp(s->data + start, "spec.", 5) == 0) {
                memmove(s->data + start, s->data + start + 5, s->len - start - 5);
                str_truncate(s, s->len - 5);
        }
}

/* The shortest text that reads back as the same number. */
static void json_float(struct str *s, const char *text)
{
        char plain[400], out[40];
        double v = strtod(without_underscores(text, plain, sizeof(plain)) ? plain : text, NULL);
        if (!isfinite(v)) { /* JSON has no word for it */
                quote_json(s, text);
                return;
        }
        for (int precision = 15; precision <= 17; precision++) {
                snprintf(out, sizeof(out), "%.*g", precision, v);
                if (strtod(out, NULL) == v)
                        break;
        }
        str_add(s, out);
}

static void json_int(struct str *s, const char *text)
{
        char plain[400];
        bool negative = false;
        uint64_t v = 0;
        if (without_underscores(text, plain, sizeof(plain)))
                parse_int(plain, &negative, &v);
        str_addf(s, "%s%" PRIu64, negative && v ? "-" : "", v);
}

static void json_scalar(struct str *s, const struct tree *t)
{
        switch (tree_type(t)) {
        case TREE_NIL:
                str_add(s, "null");
                break;
        case TREE_BOOL:
                str_add(s, tree_value_one_of(t->text, true_words, ARRAY_SIZE(true_words))
                                   ? "true"
                                   : "false");
                break;
        case TREE_INT:
                json_int(s, t->text);
                break;
        case TREE_FLOAT:
                if (tree_value_one_of(t->text, infinite_words, ARRAY_SIZE(infinite_words)))
                        quote_json(s, t->text);
                else
                        json_float(s, t->text);
                break;
        default:
                quote_json(s, t->text);
        }
}

void tree_json(struct str *s, const struct tree *t)
{
        if (!t || t->kind < TREE_LIST) {
                t ? json_scalar(s, t) : str_add(s, "null");
                return;
        }
        str_addc(s, t->kind == TREE_MAP ? '{' : '[');
        tree_each (c, t) {
                if (c != t->first)
                        str_addc(s, ',');
                if (t->kind == TREE_MAP) {
                        quote_json(s, c->key);
                        str_addc(s, ':');
                }
                tree_json(s, c);
        }
        str_addc(s, t->kind == TREE_MAP ? '}' : ']');
}
