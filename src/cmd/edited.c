#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cmd/edited.h"

static const char *const usual[] = { "cluster.yaml" };

void edit_begin(struct edit *e, const struct options *o, struct arena *a)
{
        *e = (struct edit){ .o = o, .arena = a, .files = o->files.n ? o->files.v : usual, .file_count = o->files.n ? o->files.n : 1 };
        e->texts = arena_array(a, struct text, e->file_count);
}

/* The file as it is after the edits so far. */
int edit_load(const struct edit *e, bool loose, struct cluster **out, struct problems *p, struct error *err)
{
        struct tree_file *instead = arena_array(e->arena, struct tree_file, e->file_count);
        for (size_t i = 0; i < e->count; i++)
                instead[i] = e->texts[i].now;
        return cluster_load_instead(e->arena, e->files, e->file_count, instead, e->count, loose, out, p, err);
}

void edit_keep(struct edit *e, const struct tree_file *file, struct str *text)
{
        struct text *t = NULL;
        for (size_t i = 0; i < e->count; i++)
                if (streq(e->texts[i].now.name, file->name))
                        t = &e->texts[i];
        if (!t) {
                t = &e->texts[e->count++];
                *t = (struct text){ .now = *file, .before = file->text, .before_len = file->len };
        }
        t->now.len = text->len;
        t->now.text = arena_strndup(e->arena, str_text(text), text->len);
}

/* ---- written ---- */

static int write_text(const struct text *t, struct error *err)
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
        if (there.len - skip != t->before_len || memcmp(str_text(&there) + skip, t->before, t->before_len)) {
                error_set(err, EAGAIN, EXIT_CONFIG, "%s was changed by somebody else meanwhile", t->now.name);
                return error_hint(err, "run it again; nothing was changed");
        }
        str_truncate(&there, skip);
        str_addn(&there, t->now.text, t->now.len);
        r = file_write(real, str_text(&there), there.len, st.st_mode & 07777, FILE_SYNC, NULL, err);
        if (r == 0 && lchown(real, st.st_uid, st.st_gid) < 0 && geteuid() == 0)
                r = error_set(err, errno, EXIT_INTERNAL, "%s cannot be given back to its owner: %s", real, strerror(errno));
        return r;
}

/* The plan was approved. */
int edit_accepted(struct site *s, struct error *err)
{
        const struct edit *e = s->accepted_arg;
        int r = 0;
        for (size_t i = 0; r == 0 && i < e->count; i++)
                r = write_text(&e->texts[i], err);
        return r;
}

int edit_refused(const struct problems *p, struct error *err)
{
        const struct problem *one = p->first;
        while (one && one->warning)
                one = one->next;
        error_release(err);
        *err = (struct error){ 0 };
        error_set(err, EINVAL, EXIT_CONFIG, "%s", one ? one->message : "the file would not be valid any more");
        return one && one->hint ? error_hint(err, "%s; nothing was changed", one->hint) : error_hint(err, "nothing was changed");
}

int edit_before(struct edit *e, struct cluster **out, struct error *err)
{
        if (strings_contain(&e->o->files, "-")) {
                error_set(err, EINVAL, EXIT_USAGE, "the cluster's file is standard input, which cannot be written");
                return error_hint(err, "name a file with -f");
        }
        return cmd_load(e->o, e->arena, out, err);
}
