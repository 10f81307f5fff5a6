#include "base/file.h"
#include "base/tree.h"

/* The text is copied, without a byte order mark. */
static struct tree_file *new_file(struct arena *a, const char *name, const char *text, size_t len)
{
        struct tree_file *f = arena_new(a, struct tree_file);
        size_t skip = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        char *copy_of_text = arena_alloc(a, len - skip + 1);
        if (len > skip)
                memcpy(copy_of_text, text + skip, len - skip);
        *f = (struct tree_file){ arena_strdup(a, name), copy_of_text, len - skip, 0 };
        return f;
}

int tree_file_read(struct arena *a, const char *path, struct tree_file **out, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        int r = file_read(path, TREE_MAX_FILE, &s, err);
        if (r < 0) {
                /* the wrong file was given: nothing is wrong with this computer */
                err->status = EXIT_CONFIG;
                return r;
        }
        *out = new_file(a, streq(path, "-") ? "<stdin>" : path, str_text(&s), s.len);
        return 0;
}

static int parse_wrapped(
        struct arena *a, const struct tree_file *file, struct tree **out, struct error *err)
{
        struct tree at;
        if (tree_parse_file(a, file, out, &at, err) < 0)
                return error_wrap(err, "%s:%u:%u", file->name, at.line, at.col);
        return 0;
}

int tree_parse(struct arena *a, const char *name, const char *text, size_t len, struct tree **out,
        struct error *err)
{
        return parse_wrapped(a, new_file(a, name, text, len), out, err);
}

int tree_load(struct arena *a, const char *path, struct tree **out, struct error *err)
{
        struct tree_file *file;
        int r = tree_file_read(a, path, &file, err);
        return r < 0 ? r : parse_wrapped(a, file, out, err);
}
