/* Files into a Cluster: read, merge, decode, read the texts that paths name, expand, check. */
#include <pwd.h>

#include "base/sha256.h"
#include "base/file.h"
#include "config/addon.h"
#include "config/dex.h"
#include "config/fabric.h"
#include "config/env.h"
#include "config/schema.h"
#include "config/scalar.h"

#define NAME_MAX_LENGTH 40 /* of a cluster: machine and file names are made from it */
#define TEXT_MAX        ((size_t)1 << 20)

/* The Kubernetes object around the spec. */
struct metadata {
        const struct tree *src;
        const char *name;
        const struct tree *ignored;
};
struct object {
        const struct tree *src;
        const char *version, *kind;
        struct metadata metadata;
        struct cluster cluster;
        const struct tree *ignored;
};

static const char *const versions[] = { "slipway.dev/v1alpha1", NULL };
static const char *const kinds[] = { "Cluster", NULL };

/* What the API server adds to an object is no mistake in a file. */
#define IGNORED(type, field) \
        { \
                field, T_ANY, 0, offsetof(struct type, ignored) \
        }
static const struct field metadata_fields[] = {
        { "name", T_NAME, F_REQUIRED, offsetof(struct metadata, name), .example = "demo" },
        { "labels", T_LABELS, 0, offsetof(struct metadata, ignored),
                .later = "leave them out: labels of nodes are set under pools" },
        /* of other programs: kubectl keeps what was applied there */
        IGNORED(metadata, "annotations"),
        IGNORED(metadata, "namespace"),
        IGNORED(metadata, "creationTimestamp"),
        IGNORED(metadata, "deletionGracePeriodSeconds"),
        IGNORED(metadata, "deletionTimestamp"),
        IGNORED(metadata, "finalizers"),
        IGNORED(metadata, "generation"),
        IGNORED(metadata, "managedFields"),
        IGNORED(metadata, "ownerReferences"),
        IGNORED(metadata, "resourceVersion"),
        IGNORED(metadata, "selfLink"),
        IGNORED(metadata, "uid"),
};
static const struct schema metadata_schema = { .name = "metadata",
        .fields = metadata_fields,
        .count = ARRAY_SIZE(metadata_fields),
        .size = sizeof(struct metadata) };

static const struct field object_fields[] = {
        { "apiVersion", T_STRING, F_REQUIRED, offsetof(struct object, version), .names = versions,
                .example = "slipway.dev/v1alpha1" },
        { "kind", T_STRING, F_REQUIRED, offsetof(struct object, kind), .names = kinds,
                .example = "Cluster" },
        { "metadata", T_STRUCT, F_REQUIRED, offsetof(struct object, metadata),
                .sub = &metadata_schema, .example = "{name: demo}" },
        { "spec", T_STRUCT, F_REQUIRED, offsetof(struct object, cluster), .sub = &cluster_schema },
        IGNORED(object, "status"),
};
static const struct schema object_schema = { .name = "object",
        .fields = object_fields,
        .count = ARRAY_SIZE(object_fields),
        .size = sizeof(struct object) };

/* The one that is written, local when none is. */
static enum provider_kind provider_kind(const struct provider *p)
{
        static const char *const names[] = { [PROVIDER_LOCAL] = "local",
                [PROVIDER_SSH] = "ssh",
                [PROVIDER_OPENSTACK] = "openstack",
                [PROVIDER_AWS] = "aws",
                [PROVIDER_TERRAFORM] = "terraform" };
        tree_each (c, p->src)
                for (size_t i = 0; p->src->kind == TREE_MAP && i < ARRAY_SIZE(names); i++)
                        if (streq(c->key, names[i]))
                                return (enum provider_kind)i;
        return PROVIDER_LOCAL;
}

struct cluster *cluster_decode(struct arena *a, const struct tree *document, struct problems *p)
{
        struct object *o = arena_new(a, struct object);
        struct cluster *c = &o->cluster;
        const struct tree *spec = tree_get(document, "spec");
        p->root = spec ? spec : document;
        schema_decode(&object_schema, document, o, a, p);
        c->arena = a;
        c->name = o->metadata.name;
        c->dir = ".";
        c->provider.kind = provider_kind(&c->provider);
        if (c->provider.kind == PROVIDER_TERRAFORM)
                c->provider.ssh = c->provider.terraform.ssh;
        cluster_harden(c);
        addons_expand(c);
        if (strlen(c->name) > NAME_MAX_LENGTH)
                problem_add(p, o->metadata.src, "name",
                        "choose a shorter name: machines and files are named after it",
                        "a cluster's name has at most %d characters, got %zu", NAME_MAX_LENGTH,
                        strlen(c->name));
        return c;
}

static const char *load_dir_of(struct arena *a, const char *file)
{
        const char *slash = strrchr(file, '/');
        return !slash ? "." : arena_strndup(a, file, slash == file ? 1 : (size_t)(slash - file));
}

const char *cluster_path(struct arena *a, const struct tree *at, const char *path)
{
        if (*path == '~' && (path[1] == '/' || !path[1])) {
                const char *home = getenv("HOME");
                const struct passwd *pw = home && *home ? NULL : getpwuid(getuid());
                return arena_printf(a, "%s%s", pw ? pw->pw_dir : home ? home : "", path + 1);
        }
        const char *dir = *path != '/' && at && at->file ? load_dir_of(a, at->file->name) : ".";
        return *path == '/' || streq(dir, ".")
                       ? path
                       : arena_printf(a, "%s%s%s", dir, has_suffix(dir, "/") ? "" : "/", path);
}

/* What a file that a field names must hold: NULL, or what is wrong with it. */
typedef const char *(*text_fault_fn)(struct str *s, struct arena *words);

static const char *pem_fault(struct str *s, struct arena *words)
{
        return strstr(str_text(s), "-----BEGIN CERTIFICATE-----")
                       ? NULL
                       : "it contains no PEM certificate";
}

static const char *password_fault(struct str *s, struct arena *words)
{
        uint32_t cp;
        /* editors end files with a line break */
        while (s->len && strchr("\r\n", s->data[s->len - 1]))
                str_truncate(s, s->len - 1);
        return !s->len                        ? "it is empty"
               : control_in(str_text(s), &cp) ? "a password is one line without control characters"
                                              : NULL;
}

static const char *load_key_fault(struct str *s, struct arena *words)
{
        const char *colon = password_fault(s, words) ? NULL : strchr(str_text(s), ':');
        return colon && colon != s->data && colon[1] ? NULL : "a key for S3 is one line, ID:SECRET";
}

static const char *secret_fault(struct str *s, struct arena *words)
{
        return s->len ? NULL : "it is empty";
}

static const char *document_fault(struct str *s, struct arena *words)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tree_file file = { "", str_text(s), s->len, 0 };
        struct tree *t, at;
        if (tree_parse_file(&a, &file, &t, &at, &err) < 0)
                return arena_printf(words, "not valid YAML in line %u, column %u: %s", at.line,
                        at.col, err.message);
        return t->kind != TREE_MAP ? "it is not a YAML map" : NULL;
}

/* `at`: where the path is written; problems are those of src.field. */
static void load_text_at(struct cluster *c, struct problems *p, const struct tree *src,
        const char *field, const struct tree *at, const char *path, text_fault_fn fault,
        const char **out)
{
        struct str s CLEANUP(str_wipe_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        const char *real = cluster_path(c->arena, at, path), *why;
        bool secret = fault == password_fault || fault == load_key_fault || fault == secret_fault;
        if ((secret ? file_read_secret : file_read)(real, TEXT_MAX, &s, &err) < 0)
                problem_add(p, src, field,
                        err.hint
                                ? err.hint
                                : "the path is relative to the directory of the file that names it",
                        "%s", err.message);
        else if (strlen(str_text(&s)) != s.len)
                problem_add(
                        p, src, field, NULL, "%s is not a text file: it contains a NUL byte", real);
        else if (fault && (why = fault(&s, c->arena)))
                problem_add(p, src, field, NULL, "%s cannot be used: %s", real, why);
        else
                *out = arena_strdup(c->arena, str_text(&s));
}

static void load_read_text(struct cluster *c, struct problems *p, const struct tree *src,
        const char *field, const char *path, text_fault_fn fault, const char **out)
{
        if (path && *path)
                load_text_at(c, p, src, field, tree_get(src, field), path, fault, out);
}

/* The texts of a list of files; "" for one that cannot be used. */
static void load_read_texts(struct cluster *c, struct problems *p, const struct tree *list,
        const struct strings *paths, text_fault_fn fault, struct strings *out)
{
        const char **texts = arena_array(c->arena, const char *, paths->n + 1);
        const struct tree *at = list && list->kind == TREE_LIST ? list->first : list;
        for (size_t i = 0; i < paths->n; i++, at = at ? at->next : NULL) {
                texts[i] = "";
                if (at && paths->v[i])
                        load_text_at(c, p, at, NULL, at, paths->v[i], fault, &texts[i]);
        }
        *out = (struct strings){ paths->n, texts };
}

/* ---- services.dex ---- */

struct dex_reading {
        struct cluster *cluster;
        struct problems *problems;
        size_t room;
};

static void dex_count(const struct tree *at, void *arg)
{
        *(size_t *)arg += dex_file_of(at->key) && at->kind == TREE_SCALAR;
}

static void dex_read(const struct tree *at, void *arg)
{
        struct dex_reading *r = arg;
        struct dex *d = &r->cluster->services.dex;
        const struct dex_file *file = dex_file_of(at->key);
        const char *text = NULL;
        if (!file || at->kind != TREE_SCALAR || d->text_count == r->room)
                return;
        load_read_text(r->cluster, r->problems, at->parent, at->key, at->text,
                file->secret ? password_fault : pem_fault, &text);
        d->texts[d->text_count++] = (struct dex_text){ .at = at, .text = text ? text : "" };
}

static void dex_passwords(struct cluster *c, struct problems *p)
{
        struct dex *d = &c->services.dex;
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *list = NULL;
        const char *text = NULL;
        load_read_text(c, p, d->src, "passwordsFile", d->passwords_file, secret_fault, &text);
        if (!text)
                return;
        if (tree_parse(c->arena, "passwords", text, strlen(text), &list, &err) < 0 ||
                list->kind != TREE_LIST)
                problem_add(p, d->src, "passwordsFile",
                        "write a list of people, each with email, hash, username and userID",
                        "%s is not a YAML list", d->passwords_file);
        else
                d->passwords = list;
}

static void load_dex(struct cluster *c, struct problems *p)
{
        struct dex *d = &c->services.dex;
        struct dex_reading r = { .cluster = c, .problems = p };
        dex_each(d->connectors, dex_count, &r.room);
        dex_each(d->clients, dex_count, &r.room);
        d->texts = arena_array(c->arena, struct dex_text, r.room + 1);
        dex_each(d->connectors, dex_read, &r);
        dex_each(d->clients, dex_read, &r);
        dex_passwords(c, p);
}

/* ---- all of them ---- */

static void load_services(struct cluster *c, struct problems *p)
{
        load_dex(c, p);
        for (size_t i = 0; i < c->services.repositories.n; i++) {
                struct repository *r = &c->services.repositories.v[i];
                load_read_text(c, p, r->src, "caFile", r->ca_file, pem_fault, &r->ca_pem);
                load_read_text(c, p, r->src, "passwordFile", r->password_file, password_fault,
                        &r->password);
        }
        for (size_t i = 0; i < c->services.charts.n; i++) {
                struct chart *h = &c->services.charts.v[i];
                load_read_text(c, p, h->src, "valuesFile", h->values_file, document_fault,
                        &h->values_text);
                load_read_texts(c, p, tree_get(h->src, "valuesFiles"), &h->values_files,
                        document_fault, &h->values_texts);
        }
}

static void read_texts(struct cluster *c, struct problems *p)
{
        load_read_text(c, p, c->registry.src, "caFile", c->registry.ca_file, pem_fault,
                &c->registry.ca_pem);
        load_read_text(c, p, c->registry.src, "passwordFile", c->registry.password_file,
                password_fault, &c->registry.password);
        load_read_text(c, p, c->etcd.snapshots.src, "copyKeyFile", c->etcd.snapshots.copy_key_file,
                load_key_fault, &c->etcd.snapshots.copy_key);
        load_read_text(c, p, c->auth.oidc.src, "caFile", c->auth.oidc.ca_file, pem_fault,
                &c->auth.oidc.ca_pem);
        load_read_text(c, p, c->auth.oidc.src, "clientSecretFile", c->auth.oidc.client_secret_file,
                password_fault, &c->auth.oidc.client_secret);
        load_read_text(c, p, c->audit.src, "policyFile", c->audit.policy_file, document_fault,
                &c->audit.policy);
        load_read_text(c, p, c->admission.src, "configFile", c->admission.config_file,
                document_fault, &c->admission.config);
        load_services(c, p);
}

static void read_node_files(struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->os.files.n; i++) {
                struct node_file *f = &c->os.files.v[i];
                if (f->content_file && !f->content)
                        load_read_text(c, p, f->src, "contentFile", f->content_file,
                                f->secret ? secret_fault : NULL, &f->content);
        }
}

static void cluster_digest(struct cluster *c, struct sha256 *files)
{
        const char *const texts[] = { c->registry.ca_pem, c->auth.oidc.ca_pem, c->audit.policy,
                c->admission.config };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                sha256_add(files, texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) + 1 : 1);
        for (size_t i = 0; i < c->os.files.n; i++) {
                const struct node_file *f = &c->os.files.v[i];
                if (f->content_file && f->content && !f->secret)
                        sha256_add(files, f->content, strlen(f->content) + 1);
        }
        for (size_t i = 0; i < c->services.dex.text_count; i++) {
                const struct dex_text *t = &c->services.dex.texts[i];
                if (!dex_file_of(t->at->key)->secret)
                        sha256_add(files, t->text, strlen(t->text) + 1);
        }
        sha256_end(files, c->digest);
}

struct texts {
        const struct tree_file *v;
        size_t n;
};

static int file_text(struct arena *a, const char *path, const struct texts *instead,
        struct tree_file **out, struct error *err)
{
        for (size_t i = 0; i < instead->n; i++)
                if (streq(instead->v[i].name, path)) {
                        *out = arena_new(a, struct tree_file);
                        **out = instead->v[i];
                        return 0;
                }
        return tree_file_read(a, path, out, err);
}

/* Every file is read and parsed even when an earlier one is broken: all their problems at once. */
static int load_read_files(struct arena *a, const char *const *files, size_t n,
        const struct texts *instead, struct tree **out, struct sha256 *digest, struct problems *p,
        struct error *err)
{
        struct tree *merged = NULL;
        for (size_t i = 0; i < n; i++) {
                struct error syntax CLEANUP(error_release) = { 0 };
                struct tree_file *file;
                struct tree *t = NULL, *at = arena_new(a, struct tree);
                int r = file_text(a, files[i], instead, &file, err);
                if (r < 0)
                        return r;
                file->order = (unsigned)i;
                sha256_add(digest, file->text, file->len);
                sha256_add(digest, "", 1);
                if (tree_parse_file(a, file, &t, at, &syntax) < 0)
                        problem_add(p, at, NULL, syntax.hint, "%s", syntax.message);
                else if (t->kind != TREE_MAP)
                        problem_add(p, t, NULL, "`slipway init` writes a file to start with",
                                "expected a map with apiVersion, kind, metadata and spec");
                else {
                        env_expand(a, t, digest, p);
                        merged = merged ? tree_merge(merged, t) : t;
                }
        }
        *out = merged;
        return 0;
}

static int summary(const char *const *files, size_t n, const struct problems *p, struct error *err)
{
        return error_set(err, EINVAL, EXIT_CONFIG, "%s: %zu problem%s",
                n == 1 ? (streq(files[0], "-") ? "<stdin>" : files[0]) : "the files", p->errors,
                p->errors == 1 ? "" : "s");
}

int cluster_load(struct arena *a, const char *const *files, size_t n, struct cluster **out,
        struct problems *p, struct error *err)
{
        return cluster_load_instead(a, files, n, NULL, 0, false, out, p, err);
}

int cluster_load_instead(struct arena *a, const char *const *files, size_t n,
        const struct tree_file *instead, size_t instead_count, bool loose, struct cluster **out,
        struct problems *p, struct error *err)
{
        struct texts texts = { instead, instead_count };
        struct tree *document = NULL;
        struct sha256 digest;
        sha256_init(&digest);
        if (!p->arena)
                p->arena = a;
        if (!n)
                return error_set(err, EINVAL, EXIT_USAGE, "no file is given");
        int r = load_read_files(a, files, n, &texts, &document, &digest, p, err);
        if (r < 0)
                return r;
        if (p->errors)
                return summary(files, n, p, err);
        struct cluster *c = cluster_decode(a, document, p);
        c->dir = load_dir_of(a, files[n - 1]);
        read_texts(c, p);
        read_node_files(c, p);
        cluster_digest(c, &digest);
        cluster_expand(c, p);
        fabric_expand(c);
        cluster_index(c);
        cluster_rules(c, p);
        if (p->errors && !loose)
                return summary(files, n, p, err);
        *out = c;
        return 0;
}
