/* Lines of cluster.yaml, as a person would write them. */
#include <ctype.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "config/kubespray/kubespray_impl.h"
#include "config/scalar.h"

#define MAX_COMMENT 400 /* characters of one comment */

static void comment_line(struct spray *k, const char *mark, const char *text)
{
        str_addf(k->out, "%*s# %s", k->indent, "", mark);
        text_harmless(k->out, text, MAX_COMMENT);
        str_addc(k->out, '\n');
}

void spray_comment(struct spray *k, const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        comment_line(k, "", str_text(&s));
}

void spray_note(struct spray *k, const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 }, shown CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        text_harmless(&shown, str_text(&s), MAX_COMMENT);
        struct note *n = arena_new(k->notes->arena, struct note);
        n->text = arena_strdup(k->notes->arena, str_text(&shown));
        if (index_put(&k->said, n->text, n)) /* the same for many hosts is said once */
                return;
        *k->notes->end = n;
        k->notes->end = &n->next;
        k->notes->count++;
        comment_line(k, "NOTE: ", str_text(&s));
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* What a cautious quoting would quote, and nobody who writes by hand. */
static bool kubespray_write_plain(const char *v)
{
        size_t n = strlen(v), digits = strspn(v, DIGITS);
        const char *dot = strchr(v, '.'), *unit = v + digits;
        if (digits && dot && strchr(dot + 1, '.') && strspn(v, DIGITS "./") == n && v[n - 1] != '.')
                return true; /* 192.0.2.11, 10.0.0.0/16, 1.36.1: no number has two dots */
        if (digits && *unit && !strchr("eExXoObB", *unit) && strspn(unit, LETTERS) == n - digits)
                return true; /* 512Mi, 90s, but not 1e3 */
        return has_prefix(v, "~/") && strspn(v + 2, LETTERS DIGITS "_./-") == n - 2;
}

void spray_value(struct str *s, const char *v)
{
        if (kubespray_write_plain(v))
                str_add(s, v);
        else
                quote_yaml(s, v);
}

static void kubespray_write_add_key(struct spray *k, const char *field)
{
        str_addf(k->out, "%*s", k->indent, "");
        quote_yaml(k->out, field);
        str_add(k->out, ": ");
}

void spray_field(struct spray *k, const char *field, const char *value)
{
        kubespray_write_add_key(k, field);
        spray_value(k->out, value);
        str_addc(k->out, '\n');
}

void spray_words(struct spray *k, const char *field, const struct strings *words)
{
        if (!words->n)
                return;
        kubespray_write_add_key(k, field);
        str_addc(k->out, '[');
        for (size_t i = 0; i < words->n; i++) {
                str_add(k->out, i ? ", " : "");
                spray_value(k->out, words->v[i]);
        }
        str_add(k->out, "]\n");
}

void spray_begin(struct spray *k, struct spray_section *s, const char *name)
{
        *s = (struct spray_section){ .name = name, .out = k->out };
        k->out = &s->body;
        k->indent += 2;
}

/* A heading over nothing but comments would be a null. */
static bool only_comments(const char *text)
{
        for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
                if (text[strspn(text, " \n")] != '#')
                        return false;
        return true;
}

void spray_end(struct spray *k, struct spray_section *s)
{
        k->out = s->out;
        k->indent -= 2;
        bool bare = only_comments(str_text(&s->body));
        if (!bare)
                str_addf(k->out, "%*s%s:\n", k->indent, "", s->name);
        for (const char *p = str_text(&s->body), *end; *p; p = end) {
                end = p + strcspn(p, "\n") + 1; /* every line has its end */
                size_t skip = bare && has_prefix(p, "  ") ? 2 : 0;
                str_addn(k->out, p + skip, (size_t)(end - p) - skip);
        }
        str_release(&s->body);
}

/* ---- rows ---- */

static bool number_of(const char *text, long *out)
{
        char *end;
        errno = 0;
        *out = strtol(text, &end, 10);
        return isdigit((unsigned char)*text) && !*end && !errno;
}

/* "8G", "2147483648": bytes as slipway writes them. */
static const char *bytes_of(struct arena *a, const char *v)
{
        long n;
        int64_t size;
        if (number_of(v, &n))
                return n >= 1 << 20 ? arena_printf(a, n % (1 << 20) ? "%ldKiB" : "%ldMiB",
                                              n % (1 << 20) ? n >> 10 : n >> 20)
                                    : NULL;
        return size_parse(v, &size) ? v : NULL;
}

/* The value in slipway's form, or NULL when it is not of that kind. */
static const char *converted(struct spray *k, const struct spray_row *r, const char *v)
{
        long n;
        int64_t seconds;
        switch (r->how) {
        case HOW_NUMBER:
                return number_of(v, &n) && n >= r->min && n <= r->max ? v : NULL;
        case HOW_MILLIS:
                return number_of(v, &n) && n >= r->min && n <= r->max
                               ? arena_printf(k->arena, "%ldms", n)
                               : NULL;
        case HOW_BYTES:
                return bytes_of(k->arena, v);
        case HOW_DURATION:
                return duration_parse(v, false, &seconds) ? v : NULL;
        case HOW_PATH:
                return abspath_fault(v) ? NULL : v;
        case HOW_HOST:
                return host_fault(v) ? NULL : v;
        case HOW_URL:
                v = strstr(v, "://") ? v : arena_printf(k->arena, "http://%s", v);
                return url_fault(v) ? NULL : v;
        default:
                return v;
        }
}

static void write_row(struct spray *k, const struct spray_row *r)
{
        if (r->how == HOW_WORDS) {
                struct strings s = spray_list(k, r->var);
                spray_words(k, r->field, &s);
                return;
        }
        const char *v = spray_text(k, r->var);
        if (!v || (r->def && streq(v, r->def)))
                return;
        const char *value = converted(k, r, v);
        if (!value)
                spray_note(k, "%s was %s, which is not a valid value of %s", r->var, v, r->field);
        else if (r->how == HOW_NUMBER) {
                kubespray_write_add_key(k, r->field);
                str_addf(k->out, "%s\n", value);
        } else
                spray_field(k, r->field, value);
}

void spray_rows(struct spray *k, const struct spray_row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++)
                write_row(k, &rows[i]);
}
