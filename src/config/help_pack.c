/* Build tool: writes the help texts of the schema table to a file, for help.c: each struct, and
 * behind it its fields with a space before their names. A text is behind its name and a tab, and
 * ends in a NUL:
 *
 *     pool	A group of nodes with the same roles and the same size.
 *      name	The pool's name. …
 *
 * Usage: help_pack FILE */
#include "config/addon.h"
#include "config/fabric.h"
#include "config/platform.h"
#include "config/schema.h"

/* The rows refer to these; their contents are not needed here. */
const char *const addon_choices[] = { NULL }, *const fabric_names[] = { NULL },
                  *const platform_names[] = { NULL };

static const struct schema *written[128];
static size_t written_count;

static void write_text(
        FILE *out, const char *owner, const char *indent, const char *name, const char *text)
{
        if (!text || !*text) {
                fprintf(stderr, "schema.c: %s: %s has no HELP\n", owner, name);
                exit(1);
        }
        fprintf(out, "%s%s\t%s%c", indent, name, text, '\0');
}

/* Each struct once, however many fields have it. */
static void write_struct(FILE *out, const struct schema *s)
{
        for (size_t i = 0; i < written_count; i++) {
                if (written[i] == s)
                        return;
                if (!strcmp(written[i]->name, s->name))
                        abort(); /* help.c could not tell them apart */
        }
        if (written_count == ARRAY_SIZE(written))
                abort();
        written[written_count++] = s;
        write_text(out, s->name, "", s->name, s->help);
        for (const struct field *f = s->fields; f < s->fields + s->count; f++)
                write_text(out, s->name, " ", f->name, f->help);
        for (const struct field *f = s->fields; f < s->fields + s->count; f++)
                if (f->sub)
                        write_struct(out, f->sub);
}

int main(int argc, char **argv)
{
        FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
        if (!out)
                return 1;
        write_struct(out, &cluster_schema);
        return fclose(out) ? 1 : 0;
}
