#include <ctype.h>

#include "base/file.h"
#include "cloud/aws/ini.h"

#define INI_BLANK " \t\r\v\f"

struct ini_reader {
        struct arena *a;
        struct ini *ini;
        struct ini_section *section, *defaults, **tail;
        struct ini_option *option; /* whose value may go on */
        struct str value;
        size_t indent, line, empty; /* empty: lines without text since the value's last */
};

static int ini_fail(const struct ini_reader *r, struct error *err, const char *why)
{
        return error_set(err, EINVAL, EXIT_CONFIG, "%s:%zu: %s", r->ini->file, r->line, why);
}

static void ini_close(struct ini_reader *r)
{
        if (r->option)
                r->option->value = arena_strdup(r->a, str_text(&r->value));
        r->option = NULL;
        str_truncate(&r->value, 0);
        r->empty = 0;
}

static char *ini_trimmed(struct arena *a, const char *s, size_t n)
{
        while (n && strchr(INI_BLANK "\n", *s))
                s++, n--;
        while (n && strchr(INI_BLANK "\n", s[n - 1]))
                n--;
        return arena_strndup(a, s, n);
}

static struct ini_section *ini_add_section(struct ini_reader *r, const char *name)
{
        struct ini_section *s = arena_new(r->a, struct ini_section);
        s->name = name;
        s->last = &s->first;
        return s;
}

static int ini_header(struct ini_reader *r, const char *line, struct error *err)
{
        const char *end = strrchr(line, ']');
        if (!end || end == line + 1)
                return ini_fail(r, err, "expected a section [NAME]");
        const char *name = arena_strndup(r->a, line + 1, (size_t)(end - line - 1));
        r->option = NULL;
        if (streq(name, "DEFAULT")) {
                r->section = r->defaults = r->defaults ? r->defaults : ini_add_section(r, name);
                return 0;
        }
        if (ini_section(r->ini, name))
                return ini_fail(r, err, "the section is there twice");
        r->section = ini_add_section(r, name);
        *r->tail = r->section;
        r->tail = &r->section->next;
        return 0;
}

static int ini_take_option(struct ini_reader *r, const char *line, struct error *err)
{
        size_t n = strcspn(line, "=:");
        if (!r->section)
                return ini_fail(r, err, "expected a section [NAME] before the first option");
        if (!line[n])
                return ini_fail(r, err, "expected NAME = VALUE");
        char *name = ini_trimmed(r->a, line, n);
        for (char *p = name; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        if (!*name)
                return ini_fail(r, err, "the option has no name");
        for (const struct ini_option *o = r->section->first; o; o = o->next)
                if (streq(o->name, name))
                        return ini_fail(r, err, "the option is there twice");
        struct ini_option *o = r->option = arena_new(r->a, struct ini_option);
        o->name = name;
        *r->section->last = o;
        r->section->last = &o->next;
        str_add(&r->value, ini_trimmed(r->a, line + n + 1, strlen(line + n + 1)));
        return 0;
}

/* A line that stands further right than the option goes on with its value. */
static int ini_take_line(struct ini_reader *r, const char *raw, size_t n, struct error *err)
{
        char *line = ini_trimmed(r->a, raw, n);
        size_t indent = strspn(raw, INI_BLANK);
        if (*line == '#' || *line == ';')
                return 0;
        if (!*line) {
                r->empty++;
                return 0;
        }
        if (r->option && indent > r->indent) {
                for (; r->empty; r->empty--)
                        str_addc(&r->value, '\n');
                str_addf(&r->value, "\n%s", line);
                return 0;
        }
        ini_close(r);
        r->indent = indent;
        return *line == '[' && strchr(line, ']') ? ini_header(r, line, err)
                                                 : ini_take_option(r, line, err);
}

/* What [DEFAULT] says holds in every section that does not say otherwise. */
static void ini_spread(struct ini_reader *r)
{
        for (struct ini_section *s = r->ini->first; s && r->defaults; s = s->next)
                for (const struct ini_option *o = r->defaults->first; o; o = o->next) {
                        if (ini_get(s, o->name))
                                continue;
                        struct ini_option *copy = arena_new(r->a, struct ini_option);
                        *copy = (struct ini_option){ o->name, o->value, NULL };
                        *s->last = copy;
                        s->last = &copy->next;
                }
}

int ini_parse(struct arena *a, const char *file, const char *text, size_t n, struct ini *out,
        struct error *err)
{
        *out = (struct ini){ .file = arena_strdup(a, file) };
        struct ini_reader r = { .a = a, .ini = out, .tail = &out->first };
        int result = 0;
        if (n > INI_MAX_FILE || memchr(text, 0, n))
                result = ini_fail(&r, err, "this is not a text file");
        for (size_t i = 0; result == 0 && i < n;) {
                const char *end = memchr(text + i, '\n', n - i);
                size_t len = end ? (size_t)(end - text) - i : n - i;
                char *line CLEANUP(free_p) = xstrndup(text + i, len);
                r.line++;
                result = ini_take_line(&r, line, len, err);
                if (line)
                        wipe(line, len);
                i += len + 1;
        }
        ini_close(&r);
        ini_spread(&r);
        str_wipe_release(&r.value);
        return result;
}

int ini_load(struct arena *a, const char *path, struct ini *out, struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        *out = (struct ini){ .file = arena_strdup(a, path) };
        if (access(path, F_OK) < 0)
                return 0;
        int r = file_read(path, INI_MAX_FILE, &text, err);
        return r < 0 ? r : ini_parse(a, path, str_text(&text), text.len, out, err);
}

const struct ini_section *ini_section(const struct ini *i, const char *name)
{
        for (const struct ini_section *s = i->first; s; s = s->next)
                if (streq(s->name, name))
                        return s;
        return NULL;
}

const char *ini_get(const struct ini_section *s, const char *option)
{
        for (const struct ini_option *o = s ? s->first : NULL; o; o = o->next)
                if (streq(o->name, option))
                        return o->value;
        return NULL;
}

const char *ini_nested(struct arena *a, const char *value, const char *option)
{
        for (const char *p = value; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
                size_t n = strcspn(p, "\n"), eq = strcspn(p, "=\n");
                if (eq < n && streq(ini_trimmed(a, p, eq), option))
                        return ini_trimmed(a, p + eq + 1, n - eq - 1);
        }
        return NULL;
}

#define BETWEEN_WORDS " \t\r\n\v\f"

/* One word from `*p` on into s; false: a quote is open. */
static bool words_one(const char **p, struct str *s)
{
        char quote = 0;
        for (; **p && (quote || !strchr(BETWEEN_WORDS, **p)); (*p)++) {
                if (quote ? **p == quote : **p == '"' || **p == '\'') {
                        quote = quote ? 0 : **p;
                } else if (**p == '\\' && quote != '\'') {
                        if (!*++*p)
                                return false;
                        if (quote && **p != '"' && **p != '\\')
                                str_addc(s, '\\');
                        str_addc(s, **p);
                } else {
                        str_addc(s, **p);
                }
        }
        return !quote;
}

const char **words_split(struct arena *a, const char *line, size_t *count)
{
        const char **words = arena_array(a, const char *, strlen(line) / 2 + 2);
        *count = 0;
        for (const char *p = line + strspn(line, BETWEEN_WORDS); *p;
                p += strspn(p, BETWEEN_WORDS)) {
                struct str s CLEANUP(str_release) = { 0 };
                if (!words_one(&p, &s))
                        return NULL;
                words[(*count)++] = arena_strdup(a, str_text(&s));
        }
        return words;
}
