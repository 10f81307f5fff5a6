#include "base/print.h"
#include "base/utf8.h"

/* One conversion of a format: "%-*.10s". */
struct conversion {
        bool left, zero, plus;
        int width, precision; /* precision -1: none */
        char length;          /* 0, 'l' (also for ll), 'z' (also for j and t) */
        char kind;
};

struct arguments { /* a va_list that functions hand on */
        va_list ap;
};

static int number_read(const char **p, struct arguments *args)
{
        int n = 0;
        if (**p == '*') {
                ++*p;
                return va_arg(args->ap, int);
        }
        for (; **p >= '0' && **p <= '9' && n < 100000; ++*p)
                n = n * 10 + (**p - '0');
        return n;
}

static const char *conversion_read(struct conversion *c, const char *p, struct arguments *args)
{
        *c = (struct conversion){ .precision = -1 };
        for (; *p && strchr("-0+ #'", *p); p++) {
                c->left |= *p == '-';
                c->zero |= *p == '0';
                c->plus |= *p == '+';
        }
        c->width = number_read(&p, args);
        if (c->width < 0) {
                c->left = true;
                c->width = -c->width;
        }
        if (*p == '.') {
                p++;
                c->precision = number_read(&p, args);
        }
        for (; *p && strchr("hlLzjt", *p); p++)
                c->length = *p == 'l' || *p == 'h' ? *p : 'z';
        c->kind = *p;
        return *p ? p + 1 : p;
}

static void padded_add(struct str *s, const struct conversion *c, const char *text, size_t columns)
{
        size_t pad = (size_t)c->width > columns ? (size_t)c->width - columns : 0;
        bool zero = c->zero && !c->left && c->kind != 's' && c->kind != 'c';
        if (zero && *text == '-')
                str_addc(s, *text++);
        for (size_t i = 0; i < pad && !c->left; i++)
                str_addc(s, zero ? '0' : ' ');
        str_add(s, text);
        for (size_t i = 0; i < pad && c->left; i++)
                str_addc(s, ' ');
}

static void string_add(struct str *s, const struct conversion *c, const char *text)
{
        struct str clean CLEANUP(str_release) = { 0 };
        size_t columns = 0;
        text = text ? text : "(null)";
        char *cut CLEANUP(free_p) = c->precision >= 0 ? xstrndup(text, (size_t)c->precision) : NULL;
        text_harmless(&clean, cut ? cut : text, SIZE_MAX);
        for (size_t i = 0, n; i < clean.len; i += n) {
                uint32_t cp = 0;
                n = utf8_decode(clean.data + i, clean.len - i, &cp);
                n = n ? n : 1;
                columns += utf8_width(cp);
        }
        padded_add(s, c, str_text(&clean), columns);
}

static intmax_t signed_of(const struct conversion *c, struct arguments *args)
{
        return c->length == 'l'   ? va_arg(args->ap, long)
               : c->length == 'z' ? va_arg(args->ap, ssize_t)
                                  : va_arg(args->ap, int);
}

static uintmax_t unsigned_of(const struct conversion *c, struct arguments *args)
{
        return c->length == 'l'   ? va_arg(args->ap, unsigned long)
               : c->length == 'z' ? va_arg(args->ap, size_t)
                                  : va_arg(args->ap, unsigned);
}
_Static_assert(sizeof(long) == sizeof(long long) && sizeof(long) == sizeof(intmax_t),
        "one length stands for all of them");

static void argument_add(struct str *s, const struct conversion *c, struct arguments *args)
{
        char text[400] = "";
        intmax_t n;
        switch (c->kind) {
        case 's':
                string_add(s, c, va_arg(args->ap, const char *));
                return;
        case 'c':
                text[0] = (char)va_arg(args->ap, int);
                string_add(s, c, text);
                return;
        case 'd':
        case 'i':
                n = signed_of(c, args);
                snprintf(text, sizeof(text), c->plus ? "%+jd" : "%jd", n);
                break;
        case 'u':
                snprintf(text, sizeof(text), "%ju", unsigned_of(c, args));
                break;
        case 'x':
                snprintf(text, sizeof(text), "%jx", unsigned_of(c, args));
                break;
        case 'f':
                snprintf(text, sizeof(text), "%.*f", c->precision < 0 ? 6 : c->precision,
                        va_arg(args->ap, double));
                break;
        case '%':
                text[0] = '%';
                break;
        default: /* a mistake of ours: what follows on the list is not known */
                abort();
        }
        padded_add(s, c, text, strlen(text));
}

static void text_vaddf(struct str *s, const char *fmt, va_list ap)
{
        struct arguments args;
        struct conversion c;
        va_copy(args.ap, ap);
        while (*fmt) {
                size_t n = strcspn(fmt, "%");
                str_addn(s, fmt, n);
                fmt += n;
                if (!*fmt)
                        break;
                fmt = conversion_read(&c, fmt + 1, &args);
                argument_add(s, &c, &args);
        }
        va_end(args.ap);
}

void text_addf(struct str *s, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        text_vaddf(s, fmt, ap);
        va_end(ap);
}

void print_bytes(FILE *to, const void *data, size_t n)
{
        if (n)
                fwrite(data, 1, n, to);
}

static void print_to(FILE *to, const char *fmt, va_list ap)
{
        struct str s CLEANUP(str_release) = { 0 };
        text_vaddf(&s, fmt, ap);
        print_bytes(to, s.data, s.len);
}

void print(const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        print_to(stdout, fmt, ap);
        va_end(ap);
}

void print_err(const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        print_to(stderr, fmt, ap);
        va_end(ap);
}

void print_text(FILE *to, const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        text_lines_harmless(&s, text, strlen(text));
        print_bytes(to, s.data, s.len);
}

void print_json(const json_t *j, size_t flags)
{
        char *text CLEANUP(free_p) = j ? json_dumps(j, flags | JSON_ENSURE_ASCII) : NULL;
        struct str s CLEANUP(str_release) = { 0 };
        for (const char *p = text ? text : "{}"; *p; p++)
                if (*p == 0x7f) /* jansson's ASCII has it as it is */
                        str_add(&s, "\\u007f");
                else
                        str_addc(&s, *p);
        str_addc(&s, '\n');
        print_bytes(stdout, s.data, s.len);
}

json_t *json_text(const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        json_t *j = json_string(text);
        if (j)
                return j;
        for (size_t i = 0, n, len = strlen(text); i < len; i += n ? n : 1) {
                uint32_t cp;
                n = utf8_decode(text + i, len - i, &cp);
                if (n)
                        str_addn(&s, text + i, n);
                else
                        str_addf(&s, "\\x%02x", (unsigned char)text[i]);
        }
        return json_string(str_text(&s));
}
