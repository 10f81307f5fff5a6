#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "config/edited.h"

int edit_begin(
        struct edit *e, struct arena *a, const char *const *files, size_t n, struct error *err)
{
        *e = (struct edit){ .arena = a, .files = files, .file_count = n };
        e->texts = arena_array(a, struct edit_text, n);
        for (size_t i = 0; i < n; i++)
                if (streq(files[i], "-")) {
                        error_set(err, EINVAL, EXIT_USAGE,
                                "the cluster's file is standard input, which cannot be written");
                        return error_hint(err, "name a file with -f");
                }
        return 0;
}

/* The file as it is after the edits so far. */
int edit_load(const struct edit *e, bool loose, struct cluster **out, struct problems *p,
        struct error *err)
{
        struct tree_file *instead = arena_array(e->arena, struct tree_file, e->file_count);
        for (size_t i = 0; i < e->count; i++)
                instead[i] = e->texts[i].now;
        return cluster_load_instead(
                e->arena, e->files, e->file_count, instead, e->count, loose, out, p, err);
}

void edit_keep(struct edit *e, const struct tree_file *file, struct str *text)
{
        struct edit_text *t = NULL;
        for (size_t i = 0; i < e->count; i++)
                if (streq(e->texts[i].now.name, file->name))
                        t = &e->texts[i];
        if (!t) {
                t = &e->texts[e->count++];
                *t = (struct edit_text){
                        .now = *file, .before = file->text, .before_len = file->len
                };
        }
        t->now.len = text->len;
        t->now.text = arena_strndup(e->arena, str_text(text), text->len);
}

/* ---- written ---- */

static int edit_write_text(const struct edit_text *t, struct error *err)
{
        static const char mark[] = "\xef\xbb\xbf";
        struct str there CLEANUP(str_release) = { 0 };
        struct stat st;
        char *real CLEANUP(free_p) = realpath(t->now.name, NULL); /* a link stays one */
        if (!real || stat(real, &st) < 0)
                return error_set(err, errno, EXIT_CONFIG, "%s: %s", t->now.name, strerror(errno));
        int r = file_read(real, TREE_MAX_FILE, &there, err);
        if (r < 0)
                return r;
        size_t skip = there.len >= 3 && memcmp(there.data, mark, 3) == 0 ? 3 : 0;
        if (there.len - skip != t->before_len ||
                memcmp(str_text(&there) + skip, t->before, t->before_len)) {
                error_set(err, EAGAIN, EXIT_CONFIG, "%s was changed by somebody else meanwhile",
                        t->now.name);
                return error_hint(err, "run it again; nothing was changed");
        }
        str_truncate(&there, skip);
        str_addn(&there, t->now.text, t->now.len);
        r = file_write(real, str_text(&there), there.len, st.st_mode & 07777, FILE_SYNC, NULL, err);
        if (r == 0 && lchown(real, st.st_uid, st.st_gid) < 0 && geteuid() == 0)
                r = error_set(err, errno, EXIT_INTERNAL, "%s cannot be given back to its owner: %s",
                        real, strerror(errno));
        return r;
}

int edit_write(const struct edit *e, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && i < e->count; i++)
                r = edit_write_text(&e->texts[i], err);
        return r;
}

int edit_refused(const struct problems *p, struct error *err)
{
        const struct problem *one = p->first;
        while (one && one->warning)
                one = one->next;
        error_release(err);
        *err = (struct error){ 0 };
        error_set(err, EINVAL, EXIT_CONFIG, "%s",
                one ? one->message : "the file would not be valid any more");
        return one && one->hint ? error_hint(err, "%s; nothing was changed", one->hint)
                                : error_hint(err, "nothing was changed");
}
