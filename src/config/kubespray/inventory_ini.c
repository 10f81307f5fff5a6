/* Ansible's INI inventories: [group], [group:children], [group:vars]; host lines are words split as
 * a shell would. */
#include "config/kubespray/inventory.h"

enum section { SECTION_HOSTS, SECTION_CHILDREN, SECTION_VARS };

struct ini {
        struct inventory *inv;
        struct tree_file *file;
        uint32_t line;
        enum section section;
        struct inventory_group *group; /* NULL before the first heading */
};

static int ini_error(struct ini *p, struct error *err)
{
        return error_wrap(err, "%s:%u", p->file->name, p->line);
}

/* The next word of the line, quotes and backslashes taken off; NULL at its end or at a comment. */
static char *next_word(struct arena *a, const char **line)
{
        const char *p = *line;
        char quote = 0;
        p += strspn(p, " \t");
        if (!*p || *p == '#') {
                *line = p + strlen(p);
                return NULL;
        }
        struct str word CLEANUP(str_release) = { 0 };
        for (; *p && (quote || (*p != ' ' && *p != '\t')); p++) {
                if (quote && *p == quote)
                        quote = 0;
                else if (!quote && (*p == '"' || *p == '\''))
                        quote = *p;
                else if (*p == '\\' && quote != '\'' && p[1])
                        str_addc(&word, *++p);
                else
                        str_addc(&word, *p);
        }
        *line = p;
        return arena_strdup(a, str_text(&word));
}

/* Ansible reads a value as a Python literal, else as text: a flow value of YAML is near enough to
 * the first. */
static const struct tree *ini_value(struct ini *p, const char *text)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        size_t n = strlen(text);
        bool nested = (text[0] == '[' && text[n - 1] == ']') ||
                      (text[0] == '{' && text[n - 1] == '}' && text[1] != '{');
        if (nested && tree_parse(p->inv->arena, p->file->name, text, n, &t, &err) == 0)
                return t;
        t = arena_new(p->inv->arena, struct tree);
        *t = (struct tree){ .kind = n ? TREE_SCALAR : TREE_NULL,
                .plain = true,
                .line = p->line,
                .col = 1,
                .file = p->file,
                .text = text };
        return t;
}

/* The text without white space and one pair of quotes around it. */
static char *trimmed(struct arena *a, const char *s, size_t n)
{
        while (n && strchr(" \t\r", s[n - 1]))
                n--;
        while (n && strchr(" \t", *s))
                s++, n--;
        if (n > 1 && (*s == '"' || *s == '\'') && s[n - 1] == *s)
                s++, n -= 2;
        return arena_strndup(a, s, n);
}

static int ini_heading(struct ini *p, const char *line, struct error *err)
{
        static const char *const kinds[] = {
                [SECTION_CHILDREN] = "children", [SECTION_VARS] = "vars"
        };
        const char *close = strchr(line, ']');
        if (!close)
                return error_set(
                        err, EINVAL, EXIT_CONFIG, "a group's heading has no closing bracket");
        char *name = trimmed(p->inv->arena, line + 1, (size_t)(close - line - 1)),
             *colon = strrchr(name, ':');
        p->section = SECTION_HOSTS;
        if (colon) {
                *colon = 0;
                p->section =
                        streq(colon + 1, kinds[SECTION_CHILDREN]) ? SECTION_CHILDREN : SECTION_VARS;
                if (p->section == SECTION_VARS && !streq(colon + 1, kinds[SECTION_VARS]))
                        return error_set(err, EINVAL, EXIT_CONFIG,
                                "a group can have :children and :vars, not :%s", colon + 1);
        }
        p->group = inventory_group(p->inv, name, err);
        return p->group ? 0 : -err->code;
}

static int ini_host(struct ini *p, const char *line, struct error *err)
{
        struct inventory_var *vars = NULL;
        char *pattern = next_word(p->inv->arena, &line), *word;
        while ((word = next_word(p->inv->arena, &line))) {
                char *equals = strchr(word, '=');
                if (!equals)
                        return error_set(err, EINVAL, EXIT_CONFIG,
                                "%s is not a variable: a host's line is its name followed by key=value",
                                word);
                *equals = 0;
                inventory_set(p->inv, &vars, word, ini_value(p, equals + 1));
        }
        return pattern ? inventory_pattern(p->inv, pattern, p->group, vars, err) : 0;
}

static int ini_var(struct ini *p, const char *line, struct error *err)
{
        const char *equals = strchr(line, '=');
        if (!equals)
                return error_set(err, EINVAL, EXIT_CONFIG, "a variable is written key=value");
        const char *comment = strstr(equals, " #");
        size_t n = comment ? (size_t)(comment - equals - 1) : strlen(equals + 1);
        char *name = trimmed(p->inv->arena, line, (size_t)(equals - line));
        inventory_set(
                p->inv, &p->group->vars, name, ini_value(p, trimmed(p->inv->arena, equals + 1, n)));
        return 0;
}

static int ini_child(struct ini *p, const char *line, struct error *err)
{
        char *name = next_word(p->inv->arena, &line);
        struct inventory_group *child = name ? inventory_group(p->inv, name, err) : p->group;
        return child ? inventory_join(p->inv, child, p->group, err) : -err->code;
}

static int ini_line(struct ini *p, const char *line, struct error *err)
{
        line += strspn(line, " \t");
        if (!*line || *line == '#' || *line == ';')
                return 0;
        /* a heading; but [2001:db8::1] may be a host */
        if (*line == '[' &&
                !(p->section == SECTION_HOSTS && strchr(line, ']') && strchr(line, ']')[1] == ':'))
                return ini_heading(p, line, err);
        switch (p->section) {
        case SECTION_CHILDREN:
                return ini_child(p, line, err);
        case SECTION_VARS:
                return ini_var(p, line, err);
        default:
                return ini_host(p, line, err);
        }
}

int inventory_ini(
        struct inventory *inv, const char *name, const char *text, size_t len, struct error *err)
{
        struct ini p = { .inv = inv, .file = arena_new(inv->arena, struct tree_file) };
        *p.file = (struct tree_file){ arena_strdup(inv->arena, name),
                arena_strndup(inv->arena, text, len), len };
        if (memchr(text, 0, len))
                return error_set(err, EINVAL, EXIT_CONFIG,
                        "%s: not a text file: it contains a NUL byte", name);
        for (size_t at = 0; at < len;) {
                const char *end = memchr(text + at, '\n', len - at);
                size_t n = end ? (size_t)(end - text) - at : len - at;
                char *line CLEANUP(free_p) = xstrndup(text + at, n);
                line[strcspn(line, "\r")] = 0;
                p.line++;
                at += n + 1;
                if (ini_line(&p, line, err) < 0)
                        return ini_error(&p, err);
        }
        return 0;
}
