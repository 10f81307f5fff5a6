#include <sys/stat.h>

#include "base/file.h"
#include "config/rewrite.h"

static int put(const char *path, const char *text, size_t n, struct error *err)
{
        struct stat st;
        mode_t mode = stat(path, &st) == 0 ? st.st_mode & 0777 : 0644;
        return file_write(path, text, n, mode, 0, NULL, err);
}

/* The byte a line and column stand for; columns count characters. */
static size_t offset_of(const char *text, uint32_t line, uint32_t col)
{
        const char *p = text;
        for (; line > 1 && *p; line--)
                p = strchrnul(p, '\n') + 1;
        for (; col > 1 && *p && *p != '\n'; col--)
                for (p++; ((unsigned char)*p & 0xc0) == 0x80; p++)
                        ;
        return (size_t)(p - text);
}

int rewrite_scalar(const struct tree *value, const char *text, char **before, struct error *err)
{
        const char *path = value->file->name;
        struct str now CLEANUP(str_release) = { 0 }, out CLEANUP(str_release) = { 0 };
        int r = file_read(path, (size_t)64 << 20, &now, err);
        if (r < 0)
                return r;
        size_t at = offset_of(str_text(&now), value->line, value->col), old = strlen(value->text);
        const char *p = str_text(&now) + at;
        p += *p == '"' || *p == '\'';
        if (!streq(str_text(&now), value->file->text) || strncmp(p, value->text, old)) {
                error_set(err, EINVAL, EXIT_CONFIG, "%s:%u: '%s' cannot be changed there", path, value->line, value->text);
                return error_hint(err, "write %s there yourself, and run 'slipway up'", text);
        }
        str_addf(&out, "%.*s%s%s", (int)(p - now.data), now.data, text, p + old);
        r = put(path, out.data, out.len, err);
        if (r == 0 && before)
                *before = xstrdup(str_text(&now));
        return r;
}

int rewrite_undo(const struct tree *value, const char *before, struct error *err) { return put(value->file->name, before, strlen(before), err); }
