/* Single values. */
#include <ctype.h>
#include "base/quote.h"
#include "base/utf8.h"
#include "config/decode.h"
#include "config/scalar.h"
#include "config/minors.h"

#define SEEN_MAX 60 /* characters of a value that messages show */

static const char *shown(struct decoder *d, const char *text)
{
        struct str s CLEANUP(str_release) = { 0 };
        text_harmless(&s, text, SEEN_MAX);
        return arena_strdup(d->arena, str_text(&s));
}

const char *decode_seen(struct decoder *d, const struct tree *t)
{
        static const char *const forms[] = { [TREE_STRING] = "the string \"%s\"",
                [TREE_BOOL] = "the boolean %s",
                [TREE_INT] = "the number %s",
                [TREE_FLOAT] = "the number %s" };
        if (t->kind != TREE_SCALAR)
                return t->kind == TREE_MAP ? "a map" : t->kind == TREE_LIST ? "a list" : "nothing";
        if (d->field && d->field->flags & F_SECRET)
                return "something else";
        return arena_printf(d->arena, forms[tree_type(t)], shown(d, t->text));
}

/* What to do about a value of the wrong type. */
static const char *type_hint(struct decoder *d, const struct tree *t, const char *wanted)
{
        enum tree_type type = t->kind == TREE_SCALAR ? tree_type(t) : TREE_NIL;
        struct tree plain = *t;
        plain.plain = true;
        if (type == TREE_BOOL || type == TREE_INT || type == TREE_FLOAT) {
                if (!streq(wanted, "a string"))
                        return NULL;
                struct str s CLEANUP(str_release) = { 0 };
                quote_json(&s, shown(d, t->written ? t->written : t->text));
                return arena_printf(d->arena, "quote it: %s", str_text(&s));
        }
        if (type == TREE_STRING && !t->plain && tree_type(&plain) != TREE_STRING)
                return t->written
                               ? "write it on a line of its own, without quotes and braces around it: a quoted value is a string"
                               : "remove the quotes";
        if (d->field && d->field->example)
                return arena_printf(
                        d->arena, "for example %s: %s", d->field->name, d->field->example);
        return NULL;
}

bool decode_wrong(struct decoder *d, const struct tree *t, const char *wanted)
{
        problem_add(d->p, t, NULL, type_hint(d, t, wanted), "expected %s, got %s", wanted,
                decode_seen(d, t));
        return false;
}

const char *decode_text(struct decoder *d, const struct tree *t, const char *wanted, bool empty)
{
        uint32_t cp = 0;
        if (t->kind != TREE_SCALAR || tree_type(t) != TREE_STRING) {
                decode_wrong(d, t, wanted);
                return NULL;
        }
        if (!*t->text && !empty) {
                problem_add(d->p, t, NULL,
                        d->field && d->field->flags & F_REQUIRED ? NULL
                                                                 : "leave the field out instead",
                        "expected %s, got an empty value", wanted);
                return NULL;
        }
        const char *at = control_in(t->text, &cp);
        if (at) {
                problem_add(d->p, t, NULL, cp == '\n' ? "write it on one line, without |" : NULL,
                        cp == '\n' ? "a line break is not allowed here"
                                   : "the control character U+%04X is not allowed here",
                        cp);
                return NULL;
        }
        return t->text;
}

static bool range_fault(
        struct decoder *d, const struct tree *t, int64_t v, void (*add)(struct str *, int64_t))
{
        const struct field *f = d->field;
        if (d->is_default || (!f->min && !f->max) ||
                (v >= f->min && (v <= f->max || f->max < f->min)))
                return false;
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, f->max < f->min ? "must be at least " : "must be between ");
        add(&s, f->min);
        if (f->max >= f->min) {
                str_add(&s, " and ");
                add(&s, f->max);
        }
        str_add(&s, ", got ");
        add(&s, v);
        problem_add(d->p, t, NULL, NULL, "%s", str_text(&s));
        return true;
}

static void add_int(struct str *s, int64_t v) { str_addf(s, "%" PRId64, v); }
static void decode_value_add_seconds(struct str *s, int64_t v) { duration_add(s, v, false); }
static void add_millis(struct str *s, int64_t v) { duration_add(s, v, true); }

bool decode_bool(struct decoder *d, const struct tree *t, void *out)
{
        if (t->kind != TREE_SCALAR || tree_type(t) != TREE_BOOL)
                return decode_wrong(d, t, "true or false");
        *(bool *)out = strchr("tTyY", *t->text) || strcasecmp(t->text, "on") == 0;
        return true;
}

bool decode_int(struct decoder *d, const struct tree *t, void *out)
{
        int64_t v;
        if (t->kind != TREE_SCALAR || (tree_type(t) != TREE_INT))
                return decode_wrong(d, t, "a whole number");
        if (!tree_int(t, &v)) {
                problem_add(d->p, t, NULL, NULL, "the number %s is too large", shown(d, t->text));
                return false;
        }
        if (range_fault(d, t, v, add_int))
                return false;
        *(long *)out = (long)v;
        return true;
}

/* A number without its unit, the most common mistake. */
static bool no_unit(struct decoder *d, const struct tree *t, const char *what, const char *unit)
{
        if (t->kind != TREE_SCALAR || tree_type(t) != TREE_INT)
                return false;
        problem_add(d->p, t, NULL,
                arena_printf(
                        d->arena, "write %s%s, if that is what you mean", shown(d, t->text), unit),
                "%s needs a unit, got the number %s", what, shown(d, t->text));
        return true;
}

bool decode_duration(struct decoder *d, const struct tree *t, void *out)
{
        bool millis = d->field->type == T_MILLIS;
        int64_t v;
        if (t->kind == TREE_SCALAR && streq(t->text, "0") && t->plain) {
                v = 0; /* of any unit */
        } else {
                if (no_unit(d, t, "a duration", millis ? "ms" : "s"))
                        return false;
                const char *s = decode_text(d, t, "a duration", false);
                if (!s)
                        return false;
                if (!duration_parse(s, millis, &v)) {
                        problem_add(d->p, t, NULL,
                                millis ? "write it like 100ms or 1s"
                                       : "write it like 90s, 5m, 24h, 365d or 1h30m",
                                "\"%s\" is not a duration", shown(d, s));
                        return false;
                }
        }
        if (range_fault(d, t, v, millis ? add_millis : decode_value_add_seconds))
                return false;
        *(int64_t *)out = v;
        return true;
}

bool decode_size(struct decoder *d, const struct tree *t, void *out)
{
        int64_t v;
        if (no_unit(d, t, "a size", "GiB"))
                return false;
        const char *s = decode_text(d, t, "a size", false);
        if (!s)
                return false;
        if (!size_parse(s, &v)) {
                problem_add(d->p, t, NULL, "write it like 20GiB, 512Mi or 10G",
                        "\"%s\" is not a size", shown(d, s));
                return false;
        }
        if (range_fault(d, t, v, size_add))
                return false;
        *(int64_t *)out = v;
        return true;
}

bool decode_amount(struct decoder *d, const struct tree *t, void *out)
{
        int64_t v;
        if (t->kind == TREE_SCALAR && tree_type(t) == TREE_INT && tree_int(t, &v)) {
                if (range_fault(d, t, v, add_int))
                        return false;
                *(struct amount *)out = (struct amount){ (long)v, false };
                return true;
        }
        if (t->kind != TREE_SCALAR || tree_type(t) != TREE_STRING)
                return decode_wrong(d, t, "a number or a percentage such as 20%");
        const char *s = t->text;
        size_t len = strspn(s, "0123456789");
        if (!len || len > 3 || !streq(s + len, "%") || strtol(s, NULL, 10) < 1 ||
                strtol(s, NULL, 10) > 100) {
                problem_add(d->p, t, NULL, "write a number, or a percentage from 1% to 100%",
                        "\"%s\" is neither a number nor a percentage", shown(d, s));
                return false;
        }
        *(struct amount *)out = (struct amount){ strtol(s, NULL, 10), true };
        return true;
}

bool decode_version(struct decoder *d, const struct tree *t, void *out)
{
        struct version *v = out;
        if (t->kind == TREE_SCALAR && (tree_type(t) == TREE_FLOAT || tree_type(t) == TREE_INT)) {
                problem_add(d->p, t, NULL,
                        arena_printf(d->arena, "write the patch number too, like %s",
                                d->field->example ? d->field->example : KUBERNETES_NEWEST),
                        "a version consists of three numbers, got %s", shown(d, t->text));
                return false;
        }
        const char *s = decode_text(d, t, "a version", false);
        if (!s)
                return false;
        if (!version_parse(s, v)) {
                *v = (struct version){ 0 };
                problem_add(d->p, t, NULL,
                        arena_printf(d->arena, "write three numbers, like %s",
                                d->field->example ? d->field->example : KUBERNETES_NEWEST),
                        "\"%s\" is not a version", shown(d, s));
                return false;
        }
        v->text = *s == 'v' ? s + 1 : s;
        return true;
}

bool decode_gone(struct decoder *d, const struct tree *t, const char *field, const char *value)
{
        for (size_t i = 0; i < gone_count; i++) {
                const struct gone *g = &gone_table[i];
                const char *eq = strchr(g->word, '=');
                if (!streq(g->where, d->schema->name) || (eq != NULL) != (value != NULL))
                        continue;
                if (!value && strcasecmp(g->word, field) == 0) {
                        problem_add_key(d->p, t, arena_printf(d->arena, "use %s", g->instead),
                                "unknown field \"%s\": %s", shown(d, field), g->why);
                        return true;
                }
                if (value && strlen(field) == (size_t)(eq - g->word) &&
                        has_prefix(g->word, field) && strcasecmp(eq + 1, value) == 0) {
                        problem_add(d->p, t, NULL, arena_printf(d->arena, "use %s", g->instead),
                                "\"%s\" cannot be used: %s", shown(d, value), g->why);
                        return true;
                }
        }
        return false;
}

int decode_name(struct decoder *d, const struct tree *t)
{
        const char *const *names = d->field->names;
        size_t n = 0;
        for (; t->kind == TREE_SCALAR && names[n] && !streq(names[n], t->text); n++)
                ;
        const char *s = decode_text(d, t, "a string", false);
        if (!s)
                return -1;
        if (names[n])
                return (int)n;
        if (decode_gone(d, t, d->field->name, s))
                return -1;
        struct str list CLEANUP(str_release) = { 0 };
        for (size_t i = 0; names[i]; i++)
                str_addf(&list, "%s%s", i ? ", " : "", names[i]);
        const char *near = nearest(s, names, n);
        problem_add(d->p, t, NULL, near ? arena_printf(d->arena, "did you mean %s?", near) : NULL,
                "must be %s%s, got \"%s\"", n > 1 ? "one of " : "", str_text(&list), shown(d, s));
        return -1;
}

bool decode_enum(struct decoder *d, const struct tree *t, void *out)
{
        int i = decode_name(d, t);
        if (i >= 0)
                *(int *)out = i;
        return i >= 0;
}

/* The nearest text that would be a name, or NULL. */
static const char *name_hint(struct decoder *d, const char *s)
{
        char *name = arena_strdup(d->arena, s);
        for (char *p = name; *p; p++)
                *p = *p >= 'A' && *p <= 'Z'                ? (char)(*p | 0x20)
                     : *p == '_' || *p == ' ' || *p == '.' ? '-'
                                                           : *p;
        return name_fault(name) ? NULL : arena_printf(d->arena, "did you mean %s?", name);
}

/* The string types: what is wanted, and what can be wrong with it. */
static const struct word_type {
        enum field_type type;
        const char *wanted, *what;
        const char *(*fault)(const char *);
} word_types[] = {
        { T_STRING, "a string", NULL, NULL },
        { T_NAME, "a string", "a name", name_fault },
        { T_HOST, "a string", "a host", host_fault },
        { T_HOSTPORT, "a string", "a host", hostport_fault },
        { T_URL, "a string", "a URL", url_fault },
        { T_PATH, "a string", NULL, NULL },
        { T_ABSPATH, "a string", "a path on the node", abspath_fault },
};

/* The address of the virtual IP is in the file, not in DNS: a changed DNS record must not decide
 * which address the nodes use. */
static const char *address_hint(const struct decoder *d, const char *s)
{
        const char *dot = strrchr(s, '.'), *last = dot ? dot + 1 : s;
        if (strchr(s, '/'))
                return "remove the / and everything after it";
        if (streq(d->field->name, "vip") && !host_fault(s) && isalpha((unsigned char)*last))
                return "set vip to the address, and vipName to this name";
        return NULL;
}

static const char *canonical_address(struct decoder *d, const struct tree *t)
{
        struct ip ip;
        char buf[IP_TEXT];
        const char *s = decode_text(d, t, "an address", false);
        if (!s)
                return NULL;
        if (ip_parse(s, &ip))
                return arena_strdup(d->arena, ip_format(&ip, buf));
        problem_add(d->p, t, NULL, address_hint(d, s), "\"%s\" is not an IP address", shown(d, s));
        return NULL;
}

const char *decode_word(struct decoder *d, const struct tree *t, enum field_type type)
{
        if (type == T_ADDRESS)
                return canonical_address(d, t);
        if (d->field->names)
                return decode_name(d, t) < 0 ? NULL : t->text;
        const struct word_type *w = word_types;
        for (size_t i = 0; i < ARRAY_SIZE(word_types); i++)
                if (word_types[i].type == type)
                        w = &word_types[i];
        const char *s = decode_text(d, t, w->wanted, d->field->flags & F_EMPTY);
        if (!s || !w->fault || (!*s && d->field->flags & F_EMPTY))
                return s;
        const char *fault = w->fault(s);
        if (fault)
                problem_add(d->p, t, NULL, type == T_NAME ? name_hint(d, s) : NULL,
                        "\"%s\" cannot be %s: %s", shown(d, s), w->what, fault);
        return fault ? NULL : s;
}

bool decode_string(struct decoder *d, const struct tree *t, void *out)
{
        const char *s = decode_word(d, t, d->field->type);
        if (s && d->field->type == T_STRING && !d->field->names &&
                decode_gone(d, t, d->field->name, s))
                s = NULL;
        if (s)
                *(const char **)out = s;
        return s != NULL;
}

bool decode_lines(struct decoder *d, const struct tree *t, void *out)
{
        if (t->kind != TREE_SCALAR || tree_type(t) != TREE_STRING)
                return decode_wrong(d, t, "a string");
        *(const char **)out = t->text;
        return true;
}

bool decode_address(struct decoder *d, const struct tree *t, void *out)
{
        return decode_string(d, t, out);
}
