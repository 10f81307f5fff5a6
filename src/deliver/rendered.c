#include "deliver/rendered.h"

/* Each rendering contains one of these files: render may replace a directory that has one. */
static const char *const rendered_marks[] = { "nodespec.json", "user-data", "config.ign", NULL };

static int rendered_entry(
        struct outdir *d, const struct spec_entry *e, bool secrets, struct error *err)
{
        if (e->kind != SPEC_DIR && e->kind != SPEC_FILE && e->kind != SPEC_BLOCK &&
                e->kind != SPEC_LINK)
                return 0;
        if (e->class == CLASS_SECRET && !secrets)
                return 0;
        char *path CLEANUP(free_p) = xasprintf("root%s", e->path);
        mode_t mode = e->mode & 07777;
        if (e->kind == SPEC_DIR)
                return outdir_dir(d, path, mode, err);
        if (e->kind == SPEC_LINK)
                return outdir_link(d, path, e->target, err);
        return outdir_file(
                d, path, e->content, e->len, e->class == CLASS_SECRET ? mode & 0600 : mode, err);
}

int rendered_tree(
        const struct outroot *root, const struct nodespec *s, bool secrets, struct error *err)
{
        struct outdir d CLEANUP(outdir_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        nodespec_json(s, &text);
        int ret = outdir_begin(root, s->node->name, secrets ? 0700 : 0755, rendered_marks, &d, err);
        for (size_t i = 0; ret == 0 && i < s->count; i++)
                ret = rendered_entry(&d, &s->entries[i], secrets, err);
        if (ret == 0)
                ret = outdir_file(&d, "nodespec.json", text.data, text.len, 0644, err);
        return ret < 0 ? ret : outdir_commit(&d, err);
}

int rendered_userdata(const struct outroot *root, const char *node, bool ignition,
        const struct str *data, struct error *err)
{
        struct outdir d CLEANUP(outdir_release) = { 0 };
        int r = outdir_begin(root, node, 0755, rendered_marks, &d, err);
        if (r == 0)
                r = outdir_file(&d, ignition ? "config.ign" : "user-data", data->data, data->len,
                        0644, err);
        return r < 0 ? r : outdir_commit(&d, err);
}
