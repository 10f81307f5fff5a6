/* A fabric from the user's own manifests (network.fabric: custom). They are read before any machine
 * is changed and applied file by file, as kubectl would; then their workloads are waited for. With
 * fabric none, the user installs a fabric later. */
#include "base/file.h"
#include "base/sha256.h"
#include "cluster/apply/fabric.h"
#include "cluster/apply/workloads.h"
#include "kube/documents.h"

#define MANIFEST_MAX ((size_t)32 << 20)
#define WAIT_SECONDS 900

struct fabric_run {
        struct step *step;
        struct site *site;
        size_t at; /* index of the file that is applied */
        struct workloads *workloads;
};

static char *manifest_path(const struct cluster *c, size_t i)
{
        const char *path = c->network.fabric.manifests.v[i];
        return *path == '/' || !c->dir || !*c->dir ? xstrdup(path) : path_join(c->dir, path);
}

/* The error's position is the one in the user's file. */
static int manifest_read(
        const struct cluster *c, size_t i, struct str *text, json_t **objects, struct error *err)
{
        char *path CLEANUP(free_p) = manifest_path(c, i);
        return documents_load(path, text, objects, err) < 0
                       ? error_wrap(err, "network.fabric.manifests")
                       : 0;
}

int fabric_check(const struct cluster *c, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && c->network.fabric.kind == FABRIC_CUSTOM &&
                           i < c->network.fabric.manifests.n;
                i++) {
                struct str text CLEANUP(str_release) = { 0 };
                json_t *objects = NULL;
                r = manifest_read(c, i, &text, &objects, err);
                if (r == 0)
                        json_decref(objects);
        }
        return r;
}

void fabric_digest(const struct cluster *c, char out[SHA256_HEX])
{
        struct sha256 s;
        sha256_init(&s);
        for (size_t i = 0;
                c->network.fabric.kind == FABRIC_CUSTOM && i < c->network.fabric.manifests.n; i++) {
                struct str text CLEANUP(str_release) = { 0 };
                struct error ignored CLEANUP(error_release) = { 0 };
                char *path CLEANUP(free_p) = manifest_path(c, i);
                if (file_read(path, MANIFEST_MAX, &text, &ignored) == 0)
                        sha256_add(&s, str_text(&text), text.len + 1);
        }
        sha256_end(&s, out);
}

void step_manifests(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        step_done(s, fabric_check(site->cluster, &err) < 0 ? &err : NULL);
}

/* ---- file by file ---- */

static void apply_next(struct fabric_run *f);

static void on_fabric_ready(void *arg) { step_done(((struct fabric_run *)arg)->step, NULL); }

static void on_fabric_applied(const char *error, void *arg)
{
        struct fabric_run *f = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!error) {
                f->at++;
                apply_next(f);
                return;
        }
        char *path CLEANUP(free_p) = manifest_path(f->site->cluster, f->at);
        error_set(&err, EINVAL, EXIT_STEP, "%s: %s", path, error);
        error_hint(&err, "fix the manifest, and run again");
        step_done(f->step, &err);
}

static void apply_next(struct fabric_run *f)
{
        const struct cluster *c = f->site->cluster;
        struct str text CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        json_t *objects = NULL;
        if (f->at == c->network.fabric.manifests.n) {
                workloads_wait(f->workloads, on_fabric_ready, f);
                return;
        }
        if (manifest_read(c, f->at, &text, &objects, &err) < 0) {
                step_done(f->step, &err);
                return;
        }
        workloads_add(f->workloads, objects);
        json_decref(objects);
        step_doing(f->step, -1, "applying %s", c->network.fabric.manifests.v[f->at]);
        kube_apply(f->site->kube, str_text(&text), on_fabric_applied, f);
}

void step_fabric(struct step *s)
{
        struct site *site = s->arg;
        struct fabric_run *f = arena_new(site->arena, struct fabric_run);
        *f = (struct fabric_run){ .step = s, .site = site };
        f->workloads = workloads_new(site, s);
        step_deadline(s, WAIT_SECONDS,
                "kubectl -n NAMESPACE describe pods says why; the fabric's pods must tolerate nodes that are not ready");
        apply_next(f);
}
