/* Where a chart comes from: a directory, an archive or a repository. Charts from repositories are
 * pinned by digest in bundle.lock and stored in the cache, so a repository is used only once. */
#include <dirent.h>
#include <sys/stat.h>

#include "artifact/blob.h"
#include "artifact/lock.h"
#include "base/file.h"
#include "base/tree.h"
#include "cluster/services/services.h"

#define YAML_MAX     ((size_t)1 << 20)
#define PULL_SECONDS 120

struct finding {
        struct site *site;
        struct step *step;
        struct service *service;
        const struct repository *repository; /* NULL: the chart has its own path or URL */
        const char *key;                     /* in bundle.lock */
        const char *into;                    /* the directory for helm pull */
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void finding_end(struct finding *f, struct error *err)
{
        if (err)
                error_wrap(err, "chart %s", f->service->name);
        f->fn(err, f->arg);
}

/* ---- paths ---- */

/* The chart's name in its repository. */
static const char *after_slash(const char *ref)
{
        const char *slash = strchr(ref, '/');
        return slash ? slash + 1 : ref;
}

/* The name and version for messages; helm reads the rest. */
static int read_chart_yaml(struct finding *f, const char *dir, struct error *err)
{
        struct arena *a = f->site->arena;
        char *path CLEANUP(free_p) = path_join(dir, "Chart.yaml");
        struct str text CLEANUP(str_release) = { 0 };
        struct tree *t;
        if (file_read(path, YAML_MAX, &text, err) < 0 ||
                tree_parse(a, arena_strdup(a, path), arena_strdup(a, str_text(&text)), text.len, &t,
                        err) < 0)
                return -err->code;
        const struct tree *name = tree_get(t, "name"), *version = tree_get(t, "version");
        if (name && version && name->kind == TREE_SCALAR && version->kind == TREE_SCALAR)
                f->service->version = arena_printf(a, "%s-%s", name->text, version->text);
        return 0;
}

/* A directory with a Chart.yaml, or a file. */
static int chart_there(const char *path, struct stat *st, struct error *err)
{
        if (stat(path, st) < 0) {
                error_set(err, errno, EXIT_CONFIG, "%s: %s", path, strerror(errno));
                return error_hint(
                        err, "the path is relative to the directory of the file that names it");
        }
        char *inside CLEANUP(free_p) = path_join(path, "Chart.yaml");
        if (!S_ISDIR(st->st_mode) || access(inside, F_OK) == 0)
                return 0;
        error_set(err, ENOENT, EXIT_CONFIG, "%s has no Chart.yaml", path);
        return error_hint(err, "name the directory that holds the chart's Chart.yaml");
}

static int from_path(struct finding *f, const char *path, struct error *err)
{
        struct service *s = f->service;
        struct stat st;
        char digest[SHA256_HEX];
        int64_t size;
        if (chart_there(path, &st, err) < 0)
                return -err->code;
        if (S_ISDIR(st.st_mode)) {
                if (read_chart_yaml(f, path, err) < 0 || folder_digest(path, digest, err) < 0)
                        return -err->code;
        } else if (file_digest(path, NULL, digest, &size, err) < 0) {
                return -err->code;
        }
        s->package = arena_strdup(f->site->arena, path);
        service_inputs(s->chart, digest, s->inputs);
        return 0;
}

/* A directory as a repository: NAME-VERSION.tgz, or the chart's directory. */
static int in_directory(const struct cluster *c, const struct repository *r, const char *dir,
        const struct chart *chart, const char **path, struct error *err)
{
        const char *name = after_slash(chart->chart), *version = chart->version;
        char *folder CLEANUP(free_p) = path_join(dir, name),
                     *archive CLEANUP(free_p) =
                             xasprintf("%s-%s.tgz", folder, version ? version : "VERSION");
        *path = arena_strdup(c->arena, version && access(archive, F_OK) == 0 ? archive : folder);
        if (access(*path, F_OK) == 0)
                return 0;
        error_set(err, ENOENT, EXIT_CONFIG, "the repository %s has neither %s nor %s", r->name,
                archive, folder);
        return error_hint(err, "set version to one that is there");
}

static const struct repository *repository_of(const struct services *s, const char *ref)
{
        size_t n = strcspn(ref, "/");
        for (size_t i = 0; i < s->repositories.n; i++)
                if (strlen(s->repositories.v[i].name) == n &&
                        strncmp(s->repositories.v[i].name, ref, n) == 0)
                        return &s->repositories.v[i];
        return NULL;
}

/* Where it is on this computer. *path NULL: it comes from elsewhere, from *r if it is not NULL. */
static int chart_path(const struct cluster *c, const struct chart *chart,
        const struct repository **r, const char **path, struct error *err)
{
        bool own = strchr("./~", chart->chart[0]) != NULL;
        *path = own ? cluster_path(c->arena, tree_get(chart->src, "chart"), chart->chart) : NULL;
        *r = own || strstr(chart->chart, "://") ? NULL : repository_of(&c->services, chart->chart);
        if (!*r || !strchr("./~", (*r)->url[0]))
                return 0;
        return in_directory(c, *r, cluster_path(c->arena, tree_get((*r)->src, "url"), (*r)->url),
                chart, path, err);
}

int package_check(const struct cluster *c, const struct chart *chart, struct error *err)
{
        const struct repository *r;
        const char *path;
        struct stat st;
        int found = chart_path(c, chart, &r, &path, err);
        if (found == 0 && (!path || chart_there(path, &st, err) == 0))
                return 0;
        return error_wrap(err, "chart %s", chart->name);
}

/* ---- repositories ---- */

static void use_blob(struct finding *f, const char *root, const char *digest)
{
        struct service *s = f->service;
        char *path CLEANUP(free_p) = blob_path(root, digest);
        const char *ref = s->chart->chart, *slash = strrchr(ref, '/');
        s->package = arena_strdup(f->site->arena, path);
        if (s->chart->version)
                s->version = arena_printf(
                        f->site->arena, "%s-%s", slash ? slash + 1 : ref, s->chart->version);
        service_inputs(s->chart, digest, s->inputs);
}

/* The one archive that helm wrote. */
static int pulled_file(const struct finding *f, char **out, struct error *err)
{
        DIR *d = opendir(f->into);
        for (struct dirent *e; d && !*out && (e = readdir(d));)
                if (has_suffix(e->d_name, ".tgz"))
                        *out = path_join(f->into, e->d_name);
        if (d)
                closedir(d);
        return *out ? 0
                    : error_set(err, ENOENT, EXIT_STEP, "helm pulled no archive of %s",
                              f->service->chart->chart);
}

/* The archive must be the one that the repository's own index announces. */
static int index_check(
        const struct finding *f, const char *path, const char *digest, struct error *err)
{
        const struct repository *r = f->repository;
        char said[SHA256_HEX];
        if (!r || !has_prefix(r->url, "http"))
                return 0; /* a registry names content by its digest, and helm compares it */
        char *index CLEANUP(free_p) =
                xasprintf("%s/repository/%s-index.yaml", f->site->helm->home, r->name);
        if (!index_digest(
                    index, after_slash(f->service->chart->chart), strrchr(path, '/') + 1, said) ||
                streq(said, digest))
                return 0;
        error_set(err, EBADMSG, EXIT_STEP,
                "the repository %s delivers another archive of %s than its index says: sha256 %.16s instead of %.16s",
                r->name, f->service->chart->chart, digest, said);
        return error_hint(err,
                "nothing was changed; whoever runs the repository must repair the archive or the index");
}

static int pin_pulled(struct finding *f, const char *path, struct error *err)
{
        char *cache CLEANUP(free_p) = NULL;
        struct locked lock CLEANUP(locked_release) = { 0 };
        struct lock_entry now = { .source = "repository" }, before;
        if (cache_open(&cache, err) < 0 || locked_read(&lock, f->site->lock_path, err) < 0 ||
                file_digest(path, NULL, now.digest, &now.size, err) < 0 ||
                index_check(f, path, now.digest, err) < 0)
                return -err->code;
        bool known = locked_get(&lock, f->key, &before);
        if (known && !streq(before.digest, now.digest)) {
                error_set(err, EBADMSG, EXIT_STEP,
                        "the repository has another archive of %s than bundle.lock: sha256 %.16s instead of %.16s",
                        f->service->chart->chart, now.digest, before.digest);
                return error_hint(err,
                        "nothing was changed; if the new one is meant, remove the line \"%s\" from bundle.lock",
                        f->key);
        }
        if (blob_copy(cache, path, NULL, now.digest, &now.size, err) < 0)
                return -err->code;
        locked_put(&lock, f->key, &now);
        if (locked_write(&lock, f->site->lock_path, err) < 0)
                return -err->code;
        if (!known)
                step_changed(f->step, "%s: pinned at its first use in bundle.lock, sha256 %s",
                        f->key, now.digest);
        use_blob(f, cache, now.digest);
        return 0;
}

static void on_pulled(const struct helm_result *r, void *arg)
{
        struct finding *f = arg;
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = NULL;
        if (r->status) {
                error_set(&err, EIO, EXIT_STEP, "%s cannot be pulled: %s", f->service->chart->chart,
                        r->trouble);
                error_hint(&err, "%s",
                        r->hint ? r->hint
                                : "check chart and version, the username and caFile of the repository, and that it answers; nothing was changed");
        } else if (pulled_file(f, &path, &err) == 0) {
                pin_pulled(f, path, &err);
        }
        finding_end(f, err.message ? &err : NULL);
}

/* A repository at the same registry as an oci:// reference: its CA holds there too, as its login
 * does. */
static const struct repository *registry_of(const struct site *s, const char *ref)
{
        const struct repositories *all = &s->cluster->services.repositories;
        size_t n = has_prefix(ref, "oci://") ? strcspn(ref + strlen("oci://"), "/") : 0;
        for (size_t i = 0; n && i < all->n; i++) {
                const char *url = all->v[i].url;
                if (has_prefix(url, "oci://") && strcspn(url + strlen("oci://"), "/") == n &&
                        strncmp(url, ref, strlen("oci://") + n) == 0)
                        return &all->v[i];
        }
        return NULL;
}

static void pull(struct finding *f)
{
        const struct chart *c = f->service->chart;
        struct arena *a = f->site->arena;
        struct helm_call call = { .seconds = PULL_SECONDS, .fn = on_pulled, .arg = f };
        size_t n = 0;
        bool oci = f->repository && has_prefix(f->repository->url, "oci://");
        call.args[n++] = "pull";
        call.args[n++] = oci ? arena_printf(a, "%s/%s", f->repository->url, after_slash(c->chart))
                             : c->chart;
        call.args[n++] = "--destination";
        call.args[n++] = f->into;
        if (c->version) {
                call.args[n++] = "--version";
                call.args[n++] = c->version;
        }
        const struct repository *registry = oci ? f->repository : registry_of(f->site, c->chart);
        if (registry && registry->ca_pem) {
                call.args[n++] = "--ca-file";
                call.args[n++] =
                        arena_printf(a, "%s/ca-%s.pem", f->site->helm->home, registry->name);
        }
        helm_run(f->site, f->step, &call);
}

/* helm prints to standard output why a repository cannot be read, in the line after
 * the repository's name. */
static char *update_trouble(const struct helm_result *r)
{
        const char *at = strstr(r->out, "...Unable to get an update"),
                   *line = at ? strchr(at, '\n') : NULL;
        if (!line)
                return xstrdup(r->trouble);
        line += 1 + strspn(line + 1, " \t");
        return xstrndup(line, strcspn(line, "\n"));
}

static void on_updated(const struct helm_result *r, void *arg)
{
        struct finding *f = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!r->status) {
                pull(f);
                return;
        }
        char *why CLEANUP(free_p) = update_trouble(r);
        error_set(&err, EIO, EXIT_STEP, "the repository %s (%s) cannot be read: %s",
                f->repository->name, f->repository->url, why);
        error_hint(&err, "%s",
                r->hint ? r->hint
                        : "check its url, username and caFile, and that it answers; nothing was changed");
        finding_end(f, &err);
}

/* True if bundle.lock has it and it is in the cache or the bundle. */
static int from_lock(struct finding *f, struct error *err)
{
        char *cache CLEANUP(free_p) = NULL;
        struct locked lock CLEANUP(locked_release) = { 0 };
        struct lock_entry e;
        const struct artifacts *art = &f->site->cluster->artifacts;
        if (cache_open(&cache, err) < 0 || locked_read(&lock, f->site->lock_path, err) < 0)
                return -err->code;
        if (!locked_get(&lock, f->key, &e))
                return 0;
        const char *bundle = art->bundle ? cluster_path(f->site->arena,
                                                   tree_get(art->src, "bundle"), art->bundle)
                                         : NULL;
        if (blob_there(cache, e.digest, e.size))
                use_blob(f, cache, e.digest);
        else if (bundle && blob_there(bundle, e.digest, e.size))
                use_blob(f, bundle, e.digest);
        else
                return 0;
        return 1;
}

static void from_repository(struct finding *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct chart *c = f->service->chart;
        /* without the repository's address: a mirror must deliver the same bytes */
        f->key = arena_printf(
                f->site->arena, LOCK_CHART "%s@%s", c->chart, c->version ? c->version : "newest");
        int r = from_lock(f, &err);
        if (r != 0) {
                finding_end(f, r < 0 ? &err : NULL);
                return;
        }
        helm_of(f->site, f->step);
        char *name CLEANUP(free_p) = xasprintf("pull-%s-%s", c->namespace, c->name);
        if (helm_dir(f->site, name, &f->into, &err) < 0) {
                finding_end(f, &err);
                return;
        }
        if (!f->repository || has_prefix(f->repository->url, "oci://")) {
                pull(f);
                return;
        }
        helm_run(f->site, f->step,
                &(struct helm_call){ .args = { "repo", "update", f->repository->name,
                                             "--fail-on-repo-update-fail" },
                        .seconds = PULL_SECONDS,
                        .fn = on_updated,
                        .arg = f });
}

void package_find(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        const char *path;
        struct error err CLEANUP(error_release) = { 0 };
        struct finding *f = arena_new(s->arena, struct finding);
        *f = (struct finding){ .site = s, .step = step, .service = service, .fn = fn, .arg = arg };
        int r = chart_path(s->cluster, service->chart, &f->repository, &path, &err);
        if (r == 0 && !path) {
                from_repository(f);
                return;
        }
        if (r == 0)
                from_path(f, path, &err);
        finding_end(f, err.message ? &err : NULL);
}
