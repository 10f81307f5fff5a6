/* CustomResourceDefinitions in the crds/ of charts. helm creates those that are missing when it
 * installs a chart, and never changes one. So slipway compares them, has the API judge them, and
 * applies those of all charts before the first chart: others may have objects of these kinds. */
#include "cluster/services/services.h"
#include "kube/documents.h"
#include "kube/wait.h"

#define SHOW_SECONDS    120
#define ESTABLISH_MS    200
#define ESTABLISH_TRIES 300

/* ---- compared ---- */

struct crds_look {
        struct op op;
        struct service *service;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void crds_end(struct crds_look *l, struct error *err)
{
        op_drop(&l->op);
        l->fn(err, l->arg);
}

static const char *crd_annotation(const json_t *crd, const char *name)
{
        const char *s = json_string_value(json_object_get(
                json_object_get(json_object_get(crd, "metadata"), "annotations"), name));
        return s ? s : "";
}

/* One that is an object of another release would be changed to and fro. */
static int crds_refuse(const struct service *s, const json_t *is, struct error *err)
{
        size_t i;
        const json_t *crd;
        json_array_foreach(is, i, crd)
        {
                const char *name = crd_annotation(crd, "meta.helm.sh/release-name"),
                           *ns = crd_annotation(crd, "meta.helm.sh/release-namespace");
                if (!*name || (streq(name, s->name) && streq(ns, s->ns)))
                        continue;
                error_set(err, EEXIST, EXIT_PREFLIGHT,
                        "chart %s: CustomResourceDefinition %s belongs to another release, %s/%s",
                        s->name, object_name(crd), ns, name);
                return error_hint(err,
                        "nothing was changed; leave it out of one of the charts: their values often have an option for this");
        }
        return 0;
}

static void on_crds_judged(struct error *err, void *arg) { crds_end(arg, err); }

static void crds_judge(struct crds_look *l)
{
        struct service *s = l->service;
        if (!json_array_size(s->crds)) {
                crds_end(l, NULL);
                return;
        }
        if (!s->changes)
                s->changes = json_array();
        if (l->op.site->found.services->blind) {
                service_diff_live(s->crds, NULL, NULL, s->changes);
                crds_end(l, NULL);
        } else {
                objects_compare(l->op.site, l->op.step, s, s->crds, crds_refuse, on_crds_judged, l);
        }
}

static void on_crds_shown(const struct helm_result *r, void *arg)
{
        struct crds_look *l = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (op_over(&l->op))
                return;
        if (r->status)
                error_set(&err, EINVAL, EXIT_PREFLIGHT, "%s", r->trouble);
        else
                documents_read(r->out, &l->service->crds, &err);
        if (!err.message) {
                crds_judge(l);
                return;
        }
        err.status = EXIT_PREFLIGHT;
        error_wrap(
                &err, "chart %s: its CustomResourceDefinitions cannot be read", l->service->name);
        error_hint(&err, "%s",
                r->hint ? r->hint : "nothing was changed; fix the files in the chart's crds/");
        crds_end(l, &err);
}

void crds_compare(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct crds_look *l = arena_new(s->arena, struct crds_look);
        *l = (struct crds_look){ .service = service, .fn = fn, .arg = arg };
        op_begin(&l->op, s, step);
        helm_run(s, step,
                &(struct helm_call){ .args = { "show", "crds", service->package },
                        .seconds = SHOW_SECONDS,
                        .fn = on_crds_shown,
                        .arg = l });
}

/* ---- applied ---- */

struct crds_run {
        struct op op;
        struct str documents;
        size_t count;
        unsigned tries; /* how often it was asked whether they are served */
};

static void crds_release(struct op *o) { str_release(&((struct crds_run *)o)->documents); }

static void crds_ask_served(struct op *o);

/* A kind is served a moment after its definition is applied, and helm does not wait for it. */
static void on_crds_served(json_t *objects, const char *error, void *arg)
{
        struct crds_run *run = arg;
        size_t i;
        const json_t *crd, *missing = NULL;
        if (op_over(&run->op))
                return;
        json_array_foreach(objects, i, crd) missing = crd_established(crd) ? missing : crd;
        if (objects && !missing) {
                step_changed(run->op.step, "applied %zu CustomResourceDefinition%s", run->count,
                        run->count == 1 ? "" : "s");
                op_done(&run->op, NULL);
        } else if (++run->tries < ESTABLISH_TRIES) {
                op_later(&run->op, ESTABLISH_MS, crds_ask_served);
        } else {
                op_fail(&run->op, ETIMEDOUT, EXIT_STEP,
                        "kubectl get crd -o yaml says why; then run slipway up again",
                        "the API does not serve them: %s", error ? error : object_name(missing));
        }
}

static void crds_ask_served(struct op *o)
{
        struct crds_run *run = (struct crds_run *)o;
        kube_answers(o->site->kube, KUBE_GET, str_text(&run->documents), on_crds_served, run);
}

static void on_crds_applied(const char *error, void *arg)
{
        struct crds_run *run = arg;
        if (op_over(&run->op))
                return;
        if (error)
                op_fail(&run->op, EINVAL, EXIT_STEP,
                        "fix or delete that CustomResourceDefinition, and run slipway up again",
                        "%s", error);
        else
                crds_ask_served(&run->op);
}

/* Whether an earlier chart of the file has it too. */
static bool crd_before(const struct services_found *f, size_t at, const json_t *crd)
{
        size_t i;
        const json_t *o;
        for (size_t k = 0; k < at; k++)
                json_array_foreach(f->v[k].crds, i,
                        o) if (streq(object_name(o), object_name(crd))) return true;
        return false;
}

void step_crds(struct step *step)
{
        struct site *s = step->arg;
        const struct services_found *f = s->found.services;
        struct crds_run *run = arena_new(s->arena, struct crds_run);
        size_t i, k;
        json_t *crd;
        run->op.release = crds_release;
        op_begin(&run->op, s, step);
        for (i = 0; i < f->n; i++)
                json_array_foreach(f->v[i].crds, k, crd)
                {
                        if (crd_before(f, i, crd))
                                continue;
                        char *text CLEANUP(free_p) = json_dumps(crd, JSON_COMPACT);
                        str_addf(&run->documents, "---\n%s\n", text);
                        run->count++;
                }
        kube_apply(s->kube, str_text(&run->documents), on_crds_applied, run);
}
