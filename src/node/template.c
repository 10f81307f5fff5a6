/* A template is parsed once into a list of parts (text, value, section), which is rendered
 * for every node. An error in a template is a bug that any test of it finds: it aborts
 * with a message. */
#include "base/print.h"
#include "node/template.h"
#include "base/embed.h"
#include "base/quote.h"

#define MAX_DEPTH 8

enum part_kind { PART_TEXT, PART_VALUE, PART_SECTION, PART_UNLESS };
enum part_filter { FILTER_NONE, FILTER_RAW, FILTER_INDENT, FILTER_BASE64, FILTER_PATH };

struct template_part {
        enum part_kind kind;
        enum part_filter filter;
        unsigned indent;
        const char *text; /* PART_TEXT: into the template */
        size_t len;
        char *name;
        struct template_part *inside, *next;
};

static const struct {
        const char *ending;
        enum template_format format;
} endings[] = {
        { ".yaml", TEMPLATE_YAML },
        { ".json", TEMPLATE_JSON },
        { ".conflist", TEMPLATE_JSON },
        { ".toml", TEMPLATE_TOML },
        { ".service", TEMPLATE_UNIT },
        { ".mount", TEMPLATE_UNIT },
        { ".timer", TEMPLATE_UNIT },
        { ".dropin", TEMPLATE_UNIT },
        { ".env", TEMPLATE_ENV },
        { ".sh", TEMPLATE_SHELL },
        { ".lua", TEMPLATE_CONF },
        { "haproxy.cfg", TEMPLATE_CONF },
        { "keepalived.conf", TEMPLATE_CONF },
        /* sysctl.d, modules-load.d: a value is the rest of its line */
        { ".conf", TEMPLATE_LINE },
};

enum template_format template_format_of(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
                if (has_suffix(name, endings[i].ending))
                        return endings[i].format;
        print_err("template %s: unknown suffix\n", name);
        abort();
}

static void __attribute__((noreturn)) template_broken(const char *what, const char *at)
{
        print_err("template: %s: %.40s\n", what, at);
        abort();
}

/* ---- parsing ---- */

struct parser {
        const char *at;
        bool line_start; /* only blanks since the last newline */
        unsigned depth;
};

static struct template_part *part_new(struct template_part ***tail, enum part_kind kind)
{
        struct template_part *p = xcalloc(1, sizeof(*p));
        p->kind = kind;
        **tail = p;
        *tail = &p->next;
        return p;
}

static void template_parse_filter(struct template_part *p, const char *bar)
{
        char *end;
        if (streq(bar, "base64"))
                p->filter = FILTER_BASE64;
        else if (streq(bar, "path"))
                p->filter = FILTER_PATH;
        else if (has_prefix(bar, "indent ") && (p->indent = (unsigned)strtoul(bar + 7, &end, 10)) &&
                 !*end)
                p->filter = FILTER_INDENT;
        else
                template_broken("unknown filter", bar);
}

/* The text between the braces, without surrounding blanks; moves p->at behind them. */
static char *template_tag_text(struct parser *p, const char *open, const char *close)
{
        const char *from = p->at + strlen(open), *to = strstr(from, close);
        if (!to)
                template_broken("a tag does not end", p->at);
        p->at = to + strlen(close);
        while (*from == ' ')
                from++;
        while (to > from && to[-1] == ' ')
                to--;
        return xstrndup(from, (size_t)(to - from));
}

/* Removes the whole line of a section tag that is alone on it: the blanks before (already in
 * `text`) and the newline behind. */
static void template_strip_line(struct parser *p, struct template_part *text)
{
        const char *after = p->at + strspn(p->at, " ");
        if (!p->line_start || (*after && *after != '\n'))
                return;
        while (text && text->len && text->text[text->len - 1] == ' ')
                text->len--;
        p->at = *after ? after + 1 : after;
}

static void template_parse_text(struct parser *p, struct template_part ***tail)
{
        const char *to = strstr(p->at, "{{");
        size_t len = to ? (size_t)(to - p->at) : strlen(p->at);
        if (!len)
                return;
        struct template_part *t = part_new(tail, PART_TEXT);
        t->text = p->at;
        t->len = len;
        size_t back = len;
        while (back && t->text[back - 1] == ' ')
                back--;
        p->line_start = back ? t->text[back - 1] == '\n' : p->line_start;
        p->at += len;
}

static void template_parse_value(struct parser *p, struct template_part ***tail)
{
        bool raw = has_prefix(p->at, "{{{");
        struct template_part *v = part_new(tail, PART_VALUE);
        v->filter = raw ? FILTER_RAW : FILTER_NONE;
        v->name = raw ? template_tag_text(p, "{{{", "}}}") : template_tag_text(p, "{{", "}}");
        char *bar = strchr(v->name, '|');
        if (bar) {
                *bar = 0;
                template_parse_filter(v, bar + 1);
        }
        p->line_start = false;
}

/* Parts up to the closing tag of `section` (NULL: the end of the text). */
static struct template_part *template_parse(struct parser *p, const char *section)
{
        struct template_part *first = NULL, **tail = &first, *text = NULL;
        if (++p->depth > MAX_DEPTH)
                template_broken("sections too deep", p->at);
        while (*p->at) {
                struct template_part **before = tail;
                template_parse_text(p, &tail);
                text = *before;
                if (!*p->at)
                        break;
                if (has_prefix(p->at, "{{/")) {
                        char *name CLEANUP(free_p) = template_tag_text(p, "{{/", "}}");
                        if (!section || !streq(name, section))
                                template_broken("closing tag without its section", name);
                        template_strip_line(p, text);
                        p->depth--;
                        return first;
                }
                if (!has_prefix(p->at, "{{#") && !has_prefix(p->at, "{{^")) {
                        template_parse_value(p, &tail);
                        continue;
                }
                struct template_part *s =
                        part_new(&tail, p->at[2] == '#' ? PART_SECTION : PART_UNLESS);
                s->name = template_tag_text(p, "{{#", "}}");
                template_strip_line(p, text);
                s->inside = template_parse(p, s->name);
        }
        if (section)
                template_broken("a section does not end", section);
        p->depth--;
        return first;
}

static void parts_free(struct template_part *p)
{
        while (p) {
                struct template_part *next = p->next;
                parts_free(p->inside);
                free(p->name);
                free(p);
                p = next;
        }
}

/* ---- rendering ---- */

struct walk {
        enum template_format format;
        const json_t *scope[MAX_DEPTH + 1];
        unsigned depth;
        struct str *out;
};

/* name or a.b.c, in one object */
static const json_t *template_member(const json_t *object, const char *name)
{
        char first[64];
        for (const char *dot; object && (dot = strchr(name, '.')); name = dot + 1) {
                snprintf(first, sizeof(first), "%.*s", (int)(dot - name), name);
                object = json_object_get(object, first);
        }
        return json_object_get(object, name);
}

static const json_t *template_lookup(const struct walk *w, const char *name)
{
        if (streq(name, "."))
                return w->scope[w->depth];
        for (unsigned i = w->depth + 1; i-- > 0;) {
                const json_t *v = template_member(w->scope[i], name);
                if (v)
                        return v;
        }
        return NULL;
}

static void template_add_quoted(const struct walk *w, const char *v)
{
        static void (*const quote[])(struct str *, const char *) = {
                [TEMPLATE_RAW] = str_add,
                [TEMPLATE_YAML] = quote_yaml,
                [TEMPLATE_JSON] = quote_json,
                [TEMPLATE_TOML] = quote_toml,
                [TEMPLATE_UNIT] = quote_unit,
                [TEMPLATE_ENV] = quote_env,
                [TEMPLATE_SHELL] = quote_shell,
                [TEMPLATE_CONF] = quote_conf,
                [TEMPLATE_LINE] = quote_line,
        };
        quote[w->format](w->out, v);
}

static void template_add_indented(struct str *out, const char *v, unsigned indent)
{
        for (; *v; v++) {
                str_addc(out, *v);
                if (*v == '\n' && v[1] && v[1] != '\n')
                        str_addf(out, "%*s", (int)indent, "");
        }
}

static void template_add_value(const struct walk *w, const struct template_part *p)
{
        const json_t *v = template_lookup(w, p->name);
        if (!v)
                template_broken("no such name", p->name);
        if (json_is_integer(v)) {
                str_addf(w->out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
                return;
        }
        if (json_is_boolean(v)) {
                str_add(w->out, json_is_true(v) ? "true" : "false");
                return;
        }
        const char *text = json_string_value(v);
        if (!text)
                template_broken("not a text, number or truth value", p->name);
        switch (p->filter) {
        case FILTER_NONE:
                template_add_quoted(w, text);
                break;
        case FILTER_RAW:
                str_add(w->out, text);
                break;
        case FILTER_INDENT:
                template_add_indented(w->out, text, p->indent);
                break;
        case FILTER_BASE64:
                str_add_base64(w->out, text, strlen(text));
                break;
        case FILTER_PATH:
                quote_path(w->out, text);
                break;
        }
}

static bool template_is_true(const json_t *v)
{
        switch (v ? json_typeof(v) : JSON_NULL) {
        case JSON_OBJECT:
                return json_object_size(v);
        case JSON_ARRAY:
                return json_array_size(v);
        case JSON_STRING:
                return *json_string_value(v);
        case JSON_INTEGER:
                return json_integer_value(v);
        case JSON_TRUE:
                return true;
        default:
                return false;
        }
}

static void template_render_parts(struct walk *w, const struct template_part *parts);

static void template_render_inside(
        struct walk *w, const struct template_part *p, const json_t *scope)
{
        w->scope[++w->depth] = scope;
        template_render_parts(w, p->inside);
        w->depth--;
}

static void template_render_section(struct walk *w, const struct template_part *p)
{
        const json_t *v = template_lookup(w, p->name);
        if (template_is_true(v) != (p->kind == PART_SECTION))
                return;
        if (p->kind == PART_UNLESS || !json_is_array(v)) {
                template_render_inside(w, p, p->kind == PART_UNLESS ? w->scope[w->depth] : v);
                return;
        }
        for (size_t i = 0; i < json_array_size(v); i++)
                template_render_inside(w, p, json_array_get(v, i));
}

static void template_render_parts(struct walk *w, const struct template_part *parts)
{
        for (const struct template_part *p = parts; p; p = p->next) {
                if (p->kind == PART_TEXT)
                        str_addn(w->out, p->text, p->len);
                else if (p->kind == PART_VALUE)
                        template_add_value(w, p);
                else
                        template_render_section(w, p);
        }
}

void template_text(
        const char *text, enum template_format format, const json_t *values, struct str *out)
{
        struct parser p = { .at = text, .line_start = true };
        struct template_part *parts = template_parse(&p, NULL);
        struct walk w = { .format = format, .scope = { values }, .out = out };
        template_render_parts(&w, parts);
        parts_free(parts);
}

void template_render(const char *name, const json_t *values, struct str *out)
{
        static struct template_part **parsed; /* by file, on first use */
        const struct embed_file *f = embed_find(&templates, name);
        if (!f)
                template_broken("no such template", name);
        if (!parsed)
                parsed = xcalloc(templates.count, sizeof(*parsed));
        struct template_part **parts = &parsed[f - templates.files];
        if (!*parts) {
                struct parser p = { .at = embed_text(&templates, f), .line_start = true };
                *parts = template_parse(&p, NULL);
        }
        struct walk w = { .format = template_format_of(name), .scope = { values }, .out = out };
        template_render_parts(&w, *parts);
}
