/* The files in their directory. slipway-export.json there lists every file that was written, with
 * its digest: so what somebody else wrote or changed is known and left alone. It is written before
 * the files with the digests of both, the old and the new ones, so a killed run forgets none. */
#include <sys/stat.h>

#include "base/embed.h"
#include "base/file.h"
#include "base/sha256.h"
#include "deliver/outdir.h"
#include "deliver/terraform/terraform.h"
#include "deliver/userdata.h"

#define RECORD       "slipway-export.json"
#define RECORD_MAX   ((size_t)8 << 20)
#define RECORD_FILES "files"

extern struct embed terraform_rows;

struct export_file {
        const char *path;
        const char *text;        /* NULL: user-data, which is rendered when it is needed */
        const struct node *node; /* of user-data */
        char digest[SHA256_HEX];
};

struct export
{
        struct terraform t;
        const char *dir;
        struct export_file *files;
        size_t count;
        json_t *record; /* {PATH: [digests]}, as it was found */
        struct outroot root;
};

static void export_release(struct export *e)
{
        json_decref(e->t.table);
        json_decref(e->t.modules);
        json_decref(e->t.inputs);
        json_decref(e->t.variables);
        json_decref(e->record);
        outroot_release(&e->root);
}

/* ---- what is to be written ---- */

static int export_user_data(
        const struct export *e, const struct node *n, struct str *out, struct error *err)
{
        const struct cluster *c = e->t.cluster;
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct facts facts = { 0 };
        struct spec_input in = { .cluster = c, .node = n, .facts = &facts };
        int r = facts_for(NULL, n, &facts, err);
        if (r == 0)
                r = node_render_immutable(&in, &s, err);
        return r < 0 ? r : userdata_fit(c, &s, userdata_format(c, n), c->provider.kind, out, err);
}

static void export_text(struct export *e, const char *path, const json_t *v)
{
        char *text CLEANUP(free_p) = json_dumps(v, JSON_INDENT(2) | JSON_SORT_KEYS);
        struct export_file *f = &e->files[e->count++];
        f->path = path;
        f->text = arena_printf(e->t.arena, "%s\n", text);
        sha256_hex(f->text, strlen(f->text), f->digest);
}

static int export_users(struct export *e, struct error *err)
{
        const struct cluster *c = e->t.cluster;
        int r = 0;
        for (size_t i = 0; r == 0 && i < c->node_count; i++) {
                struct str data CLEANUP(str_release) = { 0 };
                struct export_file *f = &e->files[e->count++];
                f->node = &c->nodes[i];
                f->path = arena_printf(e->t.arena, "userdata/%s", f->node->name);
                r = export_user_data(e, f->node, &data, err);
                sha256_hex(str_text(&data), data.len, f->digest);
        }
        return r;
}

static int export_wanted(struct export *e, struct terraform_result *out, struct error *err)
{
        json_t *files = json_object(), *v;
        const char *path;
        int r = terraform_modules(&e->t, files, err);
        if (r == 0) {
                json_object_set_new(files, "variables.tf.json", terraform_declarations(&e->t));
                json_object_set_new(files, "slipway.auto.tfvars.json", terraform_values(&e->t));
        }
        e->files = arena_array(
                e->t.arena, struct export_file, json_object_size(files) + e->t.cluster->node_count);
        json_object_foreach(files, path, v) export_text(e, arena_strdup(e->t.arena, path), v);
        json_object_foreach(e->t.variables, path, v) if (terraform_unset(&e->t, path))
                strings_add(e->t.arena, &out->unset, arena_strdup(e->t.arena, path));
        json_decref(files);
        return r < 0 ? r : export_users(e, err);
}

/* ---- what is there ---- */

static const char *export_path(const struct export *e, const char *path)
{
        return arena_printf(e->t.arena, "%s/%s", e->dir, path);
}

static int export_record_damaged(const struct export *e, struct error *err)
{
        error_set(err, EINVAL, EXIT_USAGE, "%s is damaged: it does not list files with digests",
                export_path(e, RECORD));
        return error_hint(
                err, "restore it, or move the directory's files away and export into an empty one");
}

/* Only paths that an export writes: what the record says never leads elsewhere. */
static bool export_record_path(const char *path)
{
        return (has_prefix(path, "userdata/") && !strchr(path + strlen("userdata/"), '/') &&
                       path[strlen("userdata/")] && path[strlen("userdata/")] != '.') ||
               (has_suffix(path, ".json") && !strstr(path, "..") && *path != '/');
}

static int export_record_read(struct export *e, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        json_t *all, *digests;
        const char *path = export_path(e, RECORD), *name;
        e->record = json_object();
        if (access(path, F_OK) < 0)
                return 0;
        int r = file_read(path, RECORD_MAX, &text, err);
        if (r < 0)
                return r;
        all = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
        json_decref(e->record);
        e->record = json_incref(json_object_get(all, RECORD_FILES));
        json_decref(all);
        if (!json_is_object(e->record))
                return export_record_damaged(e, err);
        json_object_foreach(e->record, name,
                digests) if (!export_record_path(name) ||
                             !json_is_array(digests)) return export_record_damaged(e, err);
        return 0;
}

/* The digest of a file that is there; false: there is none. */
static bool export_digest(const struct export *e, const char *path, char digest[SHA256_HEX])
{
        struct str text CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        struct stat st;
        const char *real = export_path(e, path);
        if (lstat(real, &st) < 0)
                return false;
        /* something else than a file, or too large to be one of ours */
        digest[0] = 0;
        if (S_ISREG(st.st_mode) && file_read(real, RECORD_MAX, &text, &ignored) == 0)
                sha256_hex(str_text(&text), text.len, digest);
        return true;
}

static bool export_wrote(const struct export *e, const char *path, const char *digest)
{
        const json_t *one;
        size_t i;
        json_array_foreach(json_object_get(e->record, path), i,
                one) if (json_is_string(one) && streq(json_string_value(one), digest)) return true;
        return false;
}

static int export_may_write(const struct export *e, struct error *err)
{
        for (size_t i = 0; i < e->count; i++) {
                const struct export_file *f = &e->files[i];
                char digest[SHA256_HEX];
                if (!export_digest(e, f->path, digest) || streq(digest, f->digest) ||
                        export_wrote(e, f->path, digest))
                        continue;
                bool known = json_object_get(e->record, f->path);
                error_set(err, EEXIST, EXIT_USAGE, "%s %s", export_path(e, f->path),
                        known ? "was changed after slipway wrote it"
                              : "exists and was not written by slipway");
                return error_hint(err,
                        known ? "put the change into a file of its own in that directory, and remove this one"
                              : "move it away, or choose another directory with -d");
        }
        return 0;
}

/* ---- writing ---- */

/* `both`: also what was recorded before. */
static int export_record_write(const struct export *e, bool both, struct error *err)
{
        json_t *files = both ? json_deep_copy(e->record) : json_object();
        for (size_t i = 0; i < e->count; i++) {
                json_t *digests = json_object_get(files, e->files[i].path);
                if (!digests)
                        json_object_set_new(files, e->files[i].path, digests = json_array());
                if (!both || !export_wrote(e, e->files[i].path, e->files[i].digest))
                        json_array_append_new(digests, json_string(e->files[i].digest));
        }
        json_t *all = json_pack("{s:o}", RECORD_FILES, files);
        char *text CLEANUP(free_p) = json_dumps(all, JSON_INDENT(2) | JSON_SORT_KEYS);
        json_decref(all);
        char *line CLEANUP(free_p) = xasprintf("%s\n", text);
        return file_write(export_path(e, RECORD), line, strlen(line), 0644, FILE_SYNC, NULL, err);
}

static int export_write_one(
        const struct export *e, const struct export_file *f, size_t *changed, struct error *err)
{
        struct str data CLEANUP(str_release) = { 0 };
        const char *path = export_path(e, f->path);
        bool differs = false;
        int r = dir_make(
                arena_strndup(e->t.arena, path, (size_t)(strrchr(path, '/') - path)), 0755, err);
        if (r == 0 && f->text)
                str_add(&data, f->text);
        else if (r == 0)
                r = export_user_data(e, f->node, &data, err);
        if (r == 0)
                r = file_write(path, str_text(&data), data.len, 0644, 0, &differs, err);
        *changed += differs;
        return r;
}

/* Files of an earlier export that are no longer needed, if nobody changed them. */
static int export_remove(const struct export *e, size_t *removed, struct error *err)
{
        const char *path;
        json_t *digests;
        json_object_foreach(e->record, path, digests)
        {
                char digest[SHA256_HEX];
                bool wanted = false;
                for (size_t i = 0; !wanted && i < e->count; i++)
                        wanted = streq(e->files[i].path, path);
                if (wanted || !export_digest(e, path, digest) || !export_wrote(e, path, digest))
                        continue;
                if (unlink(export_path(e, path)) < 0 && errno != ENOENT)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot remove %s: %s",
                                export_path(e, path), strerror(errno));
                ++*removed;
                /* a module's directory, if it is empty now */
                char *dir CLEANUP(free_p) = xstrdup(export_path(e, path));
                *strrchr(dir, '/') = 0;
                (void)!rmdir(dir);
        }
        return 0;
}

static int export_write(struct export *e, struct terraform_result *out, struct error *err)
{
        int r = export_record_write(e, true, err);
        for (size_t i = 0; r == 0 && i < e->count; i++)
                r = export_write_one(e, &e->files[i], &out->changed, err);
        if (r == 0)
                r = export_remove(e, &out->removed, err);
        out->files = e->count;
        return r < 0 ? r : export_record_write(e, false, err);
}

int terraform_export(const struct cluster *c, const char *dir, struct arena *a,
        struct terraform_result *out, struct error *err)
{
        struct export e CLEANUP(export_release) = { .dir = dir };
        e.t = (struct terraform){ .cluster = c,
                .arena = a,
                .platform = platform_row((enum platform_kind)c->provider.terraform.platform),
                .modules = json_object(),
                .inputs = json_object(),
                .variables = json_object() };
        const char *name = arena_printf(a, "%s.json", e.t.platform->name);
        e.t.table =
                json_loads(embed_text(&terraform_rows, embed_find(&terraform_rows, name)), 0, NULL);
        int r = export_wanted(&e, out, err);
        if (r == 0)
                r = outroot_open(dir, &e.root, err);
        if (r == 0)
                r = export_record_read(&e, err);
        if (r == 0)
                r = export_may_write(&e, err);
        return r < 0 ? r : export_write(&e, out, err);
}
