/* docs/config.md from the schema table: one heading per struct, each once with all its places. */
#include <ctype.h>

#include "base/embed.h"
#include "config/emit.h"
#include "config/scalar.h"

extern struct embed docs_prose; /* src/config/docs/ */

#define MAX_STRUCTS 128 /* of the table; a test counts them */

struct docs {
        struct str *out;
        struct arena arena;
        const struct schema *all[MAX_STRUCTS];
        struct str places[MAX_STRUCTS];
        size_t n;
};

/* Indexed by field_type. */
static const char *const type_names[] = {
        [T_STRING] = "string",
        [T_BOOL] = "true or false",
        [T_INT] = "number",
        [T_DURATION] = "duration",
        [T_MILLIS] = "duration",
        [T_SIZE] = "size",
        [T_ENUM] = "name",
        [T_AMOUNT] = "number or percentage",
        [T_VERSION] = "version",
        [T_NAME] = "name",
        [T_HOST] = "host",
        [T_HOSTPORT] = "host:port",
        [T_ADDRESS] = "address",
        [T_CIDR] = "network",
        [T_CIDRS] = "network, or list",
        [T_IPS] = "address, or list",
        [T_URL] = "URL",
        [T_PATH] = "local path",
        [T_ABSPATH] = "path on the node",
        [T_TEXT] = "text",
        [T_PAIRS] = "map",
        [T_LABELS] = "labels",
        [T_GATES] = "map of true or false",
        [T_STRINGS] = "list",
        [T_NUMBERS] = "list of numbers",
        [T_ROLES] = "list",
        [T_TAINTS] = "list of taints",
        [T_ANY] = "any YAML",
        [T_STRUCT] = "",
        [T_STRUCTS] = "list",
};

/* Text for a table cell: a vertical bar would end it. */
static void add_cell(struct str *s, const char *text)
{
        for (; *text; text++) {
                if (*text == '|')
                        str_addc(s, '\\');
                str_addc(s, *text);
        }
}

/* [name](#anchor): Markdown's anchors are in lower case. */
static void add_link(struct str *s, const char *text, const char *name)
{
        str_addf(s, "[%s](#", text);
        for (; *name; name++)
                str_addc(s, (char)tolower((unsigned char)*name));
        str_addc(s, ')');
}

static size_t docs_index(struct docs *d, const struct schema *s)
{
        for (size_t i = 0; i < d->n; i++)
                if (d->all[i] == s)
                        return i;
        if (d->n == MAX_STRUCTS)
                abort();
        d->all[d->n] = s;
        return d->n++;
}

/* Numbers the structs in the order of reading, and records their places. */
static void docs_collect(struct docs *d, const struct schema *s, const char *path)
{
        struct str *places = &d->places[docs_index(d, s)];
        str_addf(places, "%s`%s`", places->len ? ", " : "", path);
        for (const struct field *f = s->fields; f < s->fields + s->count; f++)
                if (f->sub && !f->later)
                        docs_collect(d, f->sub,
                                arena_printf(&d->arena, "%s.%s%s", path, f->name,
                                        f->type == T_STRUCTS ? "[]" : ""));
}

static void add_words(struct str *s, const char *const *names)
{
        for (size_t i = 0; names[i]; i++)
                str_addf(s, "%s`%s`", i ? ", " : "", names[i]);
}

static void add_type(struct str *s, const struct field *f)
{
        if (f->type == T_STRUCTS)
                str_add(s, "list of ");
        if (f->sub && f->later)
                str_add(s, f->sub->name);
        else if (f->sub)
                add_link(s, f->sub->name, f->sub->name);
        else if (f->names && f->type != T_STRINGS && f->type != T_ROLES)
                add_words(s, f->names);
        else if (f->names) {
                str_add(s, "list of ");
                add_words(s, f->names);
        } else if (f->type == T_STRINGS && f->item)
                str_addf(s, "list of %ss", f->item == T_PATH ? "local path" : type_names[f->item]);
        else
                str_add(s, type_names[f->type]);
}

static void add_default(struct str *s, const struct field *f)
{
        if (f->later)
                str_add(s, "–");
        else if (f->flags & F_REQUIRED)
                str_add(s, "**required**");
        else if (emit_has_default(f)) {
                str_addc(s, '`');
                add_cell(s, f->def);
                str_addc(s, '`');
        } else if (f->type != T_STRUCT && f->type != T_STRUCTS)
                str_add(s, "–");
}

/* A limit as it would be written. */
static void add_limit(struct str *s, const struct field *f, int64_t v)
{
        if (f->type == T_SIZE)
                size_add(s, v);
        else if (f->type == T_DURATION || f->type == T_MILLIS)
                duration_add(s, v, f->type == T_MILLIS);
        else
                str_addf(s, "%" PRId64, v);
}

static void add_meaning(struct str *s, const struct schema *schema, const struct field *f)
{
        add_cell(s, schema_help(schema, f));
        if (f->later) {
                str_add(s, " **Not implemented yet, and refused** (");
                add_cell(s, f->later);
                str_add(s, ").");
                return;
        }
        if (f->max > f->min && f->type != T_AMOUNT) {
                str_add(s, " From ");
                add_limit(s, f, f->min);
                str_add(s, " to ");
                add_limit(s, f, f->max);
                str_addc(s, '.');
        }
        if (f->example) {
                str_addf(s, " Example: `%s: ", f->name);
                add_cell(s, f->example);
                str_addc(s, '`');
        }
}

static const struct field *emit_docs_find(const struct schema *s, const char *name)
{
        for (const struct field *f = s->fields; f < s->fields + s->count; f++)
                if (streq(f->name, name))
                        return f;
        return NULL;
}

/* "Short form: `flannel` for `{name: flannel}`." */
static void add_shorthand(struct str *s, const struct schema *schema)
{
        const struct field *f =
                schema->shorthand ? emit_docs_find(schema, schema->shorthand) : NULL;
        if (!f)
                return;
        bool off = f->def && (streq(f->def, "none") || streq(f->def, "off")); /* shows nothing */
        const char *value = f->example                ? f->example
                            : f->def && !off          ? f->def
                            : f->names && f->names[1] ? f->names[1]
                                                      : "VALUE";
        str_addf(s, " Short form: `%s` for `{%s: %s}`.", value, f->name, value);
}

static void docs_struct(struct docs *d, size_t i)
{
        const struct schema *s = d->all[i];
        str_addf(d->out, "\n### %s\n\n", s->name);
        if (s != &cluster_schema)
                str_addf(d->out, "Path: %s. ", str_text(&d->places[i]));
        str_add(d->out, schema_help(s, NULL));
        add_shorthand(d->out, s);
        str_add(d->out, "\n\n| field | type | default | description |\n|---|---|---|---|\n");
        for (const struct field *f = s->fields; f < s->fields + s->count; f++) {
                str_addf(d->out, "| `%s` | ", f->name);
                add_type(d->out, f);
                str_add(d->out, " | ");
                add_default(d->out, f);
                str_add(d->out, " | ");
                add_meaning(d->out, s, f);
                str_add(d->out, " |\n");
        }
}

/* A table of contents that shows how structs are nested. */
static void docs_contents(struct docs *d, const struct schema *s, int depth)
{
        for (const struct field *f = s->fields; f < s->fields + s->count; f++) {
                if (!f->sub || f->later)
                        continue;
                str_addf(d->out, "%*s- ", depth * 2, "");
                add_link(d->out, f->name, f->sub->name);
                str_addf(d->out, ": %s\n", schema_help(s, f));
                docs_contents(d, f->sub, depth + 1);
        }
}

/* `runtime: docker`, `fabric.backend: udp`, `auth.basicAuth`: as it would have been written. */
static void add_gone(struct docs *d, const struct gone *g)
{
        const char *equals = strchr(g->word, '=');
        const struct schema *s = NULL;
        for (size_t i = 0; i < d->n && !s; i++)
                if (streq(d->all[i]->name, g->where))
                        s = d->all[i];
        size_t n = equals ? (size_t)(equals - g->word) : strlen(g->word);
        bool brief = equals && s && s->shorthand && strlen(s->shorthand) == n &&
                     !strncmp(s->shorthand, g->word, n);
        str_add(d->out, "| `");
        if (brief)
                str_add(d->out, g->where);
        else
                str_addf(d->out, "%s%s%.*s", streq(g->where, "spec") ? "" : g->where,
                        streq(g->where, "spec") ? "" : ".", (int)n, g->word);
        if (equals)
                str_addf(d->out, ": %s", equals + 1);
        str_add(d->out, "` | ");
        add_cell(d->out, g->why);
        str_add(d->out, " | ");
        add_cell(d->out, g->instead);
        str_add(d->out, " |\n");
}

static const char *prose(const char *name)
{
        return embed_text(&docs_prose, embed_find(&docs_prose, name));
}

void schema_docs(struct str *out)
{
        struct docs *d CLEANUP(free_p) = xcalloc(1, sizeof(*d));
        d->out = out;
        docs_collect(d, &cluster_schema, "spec");
        str_add(out, prose("intro.md"));
        str_add(out, "\n- [spec](#spec): ");
        str_addf(out, "%s\n", schema_help(&cluster_schema, NULL));
        docs_contents(d, &cluster_schema, 1);
        for (size_t i = 0; i < d->n; i++)
                docs_struct(d, i);
        str_add(out, prose("gone.md"));
        for (size_t i = 0; i < gone_count; i++)
                add_gone(d, &gone_table[i]);
        for (size_t i = 0; i < d->n; i++)
                str_release(&d->places[i]);
        arena_release(&d->arena);
}
