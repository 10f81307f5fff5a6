/* The fabric of cluster.yaml's own manifests (network.fabric: custom). They are read before any machine is touched, applied file by file as kubectl would,
 * and what they start is waited for. What makes a cluster with fabric none usable is the user's. */
#include <event2/event.h>

#include "base/file.h"
#include "base/sha256.h"
#include "cluster/fabric.h"
#include "kube/documents.h"
#include "kube/wait.h"

#define MANIFEST_MAX ((size_t)32 << 20)
#define WAIT_SECONDS 900
#define LOOK_MS      200

struct workload {
        const char *path, *label;
        struct workload *next;
};

struct fabric_run {
        struct step *step;
        struct site *site;
        size_t at;                 /* the file that is applied */
        struct workload *workload; /* the first that is waited for */
        struct event *timer;
};

static char *manifest_path(const struct cluster *c, size_t i)
{
        const char *path = c->network.fabric.manifests.v[i];
        return *path == '/' || !c->dir || !*c->dir ? xstrdup(path) : path_join(c->dir, path);
}

/* The place that is shown is the one the user wrote. */
static int manifest_read(const struct cluster *c, size_t i, struct str *text, json_t **objects, struct error *err)
{
        char *path CLEANUP(free_p) = manifest_path(c, i);
        int r = file_read(path, MANIFEST_MAX, text, err);
        if (r < 0) {
                err->status = EXIT_CONFIG;
                return error_wrap(err, "network.fabric.manifests");
        }
        if (strlen(str_text(text)) != text->len)
                r = error_set(err, EINVAL, EXIT_CONFIG, "it has a NUL byte in it");
        if (r == 0)
                r = documents_read(str_text(text), objects, err);
        if (r == 0 && !json_array_size(*objects)) {
                json_decref(*objects);
                r = error_set(err, EINVAL, EXIT_CONFIG, "there is no object in it");
        }
        return r < 0 ? error_wrap(err, "network.fabric.manifests: %s", path) : 0;
}

int fabric_check(const struct cluster *c, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && c->network.fabric.kind == FABRIC_CUSTOM && i < c->network.fabric.manifests.n; i++) {
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
        for (size_t i = 0; c->network.fabric.kind == FABRIC_CUSTOM && i < c->network.fabric.manifests.n; i++) {
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

/* ---- what they start ---- */

static void on_workload(const struct kube_reply *reply, void *arg)
{
        static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };
        struct fabric_run *f = arg;
        if (f->step->state != STEP_RUNNING)
                return;
        if (reply->status == 200 && (strstr(f->workload->path, "/daemonsets/") ? daemonset_ready(reply->body) : deployment_available(reply->body)))
                f->workload = f->workload->next;
        if (!f->workload) {
                step_done(f->step, NULL);
                return;
        }
        step_doing(f->step, -1, "waiting for %s", f->workload->label);
        event_add(f->timer, &soon);
}

static void ask(evutil_socket_t fd, short what, void *arg)
{
        struct fabric_run *f = arg;
        if (f->step->state == STEP_RUNNING)
                kube_request(f->site->kube, "GET", f->workload->path, NULL, NULL, 0, on_workload, f);
}

static void add_workloads(struct fabric_run *f, json_t *objects)
{
        struct arena *a = f->site->arena;
        size_t i;
        json_t *o;
        json_array_foreach(objects, i, o)
        {
                const char *kind = json_string_value(json_object_get(o, "kind")), *api = json_string_value(json_object_get(o, "apiVersion"));
                bool daemons = streq(kind, "DaemonSet");
                if (!streq(api, "apps/v1") || (!daemons && !streq(kind, "Deployment")))
                        continue;
                const char *ns = object_namespace(o);
                struct workload *w = arena_new(a, struct workload);
                w->path = arena_printf(a, "/apis/apps/v1/namespaces/%s/%s/%s", *ns ? ns : "default", daemons ? "daemonsets" : "deployments", object_name(o));
                w->label = arena_printf(a, "%s %s/%s", kind, *ns ? ns : "default", object_name(o));
                w->next = f->workload;
                f->workload = w;
        }
}

/* ---- file by file ---- */

static void apply_next(struct fabric_run *f);

static void on_applied(const char *error, void *arg)
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
        error_hint(&err, "mend the manifest, and run again");
        step_done(f->step, &err);
}

static void apply_next(struct fabric_run *f)
{
        const struct cluster *c = f->site->cluster;
        struct str text CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        json_t *objects = NULL;
        if (f->at == c->network.fabric.manifests.n) {
                if (f->workload)
                        ask(-1, 0, f);
                else
                        step_done(f->step, NULL);
                return;
        }
        if (manifest_read(c, f->at, &text, &objects, &err) < 0) {
                step_done(f->step, &err);
                return;
        }
        add_workloads(f, objects);
        json_decref(objects);
        step_doing(f->step, -1, "applying %s", c->network.fabric.manifests.v[f->at]);
        kube_apply(f->site->kube, str_text(&text), on_applied, f);
}

void step_fabric(struct step *s)
{
        struct site *site = s->arg;
        struct fabric_run *f = arena_new(site->arena, struct fabric_run);
        *f = (struct fabric_run){ .step = s, .site = site };
        site->fabric_timer = f->timer = evtimer_new(site->base, ask, f);
        step_deadline(s, WAIT_SECONDS, "kubectl -n NAMESPACE describe pods says why; the fabric's pods must tolerate nodes that are not ready");
        apply_next(f);
}
