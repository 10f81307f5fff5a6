/* The help texts of the schema table, from the file that the build tool help_pack.c made. */
#include "base/embed.h"
#include "base/str.h"
#include "config/schema.h"

extern struct embed help_packed;

/* The text behind "NAME\t", at or after `from`. Each ends in a NUL. */
static const char *help_find(const char *from, const char *indent, const char *name)
{
        struct str key CLEANUP(str_release) = { 0 };
        str_addf(&key, "%s%s\t", indent, name);
        const char *end = help_packed.text + help_packed.size;
        for (const char *t = from; t < end; t += strlen(t) + 1)
                if (has_prefix(t, str_text(&key)))
                        return t + key.len;
        abort(); /* help_pack.c writes all of them */
}

const char *schema_help(const struct schema *s, const struct field *f)
{
        const char *text = help_find(embed_text(&help_packed, help_packed.files), "", s->name);
        return f ? help_find(text, " ", f->name) : text;
}
