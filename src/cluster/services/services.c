/* What the file wants, and the steps in the plan. */
#include "cluster/services/services.h"

#include "base/file.h"
#include "kube/documents.h"

/* A file in the state directory: this cluster has had services. */
#define MARKER "services"

int manifest_load(
        const struct cluster *c, size_t at, struct str *text, json_t **objects, struct error *err)
{
        const struct tree *list = tree_get(c->services.src, "manifests");
        const struct tree *where = list && list->kind == TREE_LIST ? list->first : list;
        const char *path = cluster_path(c->arena, where, c->services.manifests.v[at]);
        return documents_load(path, text, objects, err) < 0 ? error_wrap(err, "services.manifests")
                                                            : 0;
}

int services_check(const struct cluster *c, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && i < c->services.manifests.n; i++) {
                struct str text CLEANUP(str_wipe_release) = { 0 };
                json_t *objects = NULL;
                r = manifest_load(c, i, &text, &objects, err);
                if (r == 0)
                        json_decref(objects);
        }
        for (size_t i = 0; r == 0 && i < c->services.charts.n; i++)
                r = package_check(c, &c->services.charts.v[i], err);
        return r;
}

/* ---- the plan's steps ---- */

/* So that removed services are found even if the file has none left. */
static void services_mark(const struct site *s)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(s->identity.dir, MARKER);
        if (s->identity.prefix)
                file_write(path, "", 0, 0600, 0, NULL, &ignored);
}

struct step *services_observe_step(struct site *s)
{
        const struct services *w = &s->cluster->services;
        char *path CLEANUP(free_p) = path_join(s->identity.dir, MARKER);
        bool any = w->namespaces.n || w->addons.n || w->manifests.n || w->charts.n || w->dex.host;
        if (s->only_stage || (!any && access(path, F_OK) < 0))
                return NULL;
        return run_step(&s->run, "services", NULL, step_services_observe, s);
}

/* "web", or "shop/web" if another chart has the same name. */
static const char *subject_of(const struct site *s, const struct service *one)
{
        const struct services_found *f = s->found.services;
        for (size_t i = 0; i < f->n; i++)
                if (&f->v[i] != one && f->v[i].kind == SERVICE_CHART &&
                        streq(f->v[i].name, one->name))
                        return arena_printf(s->arena, "%s/%s", one->ns, one->name);
        return one->name;
}

static struct plan_step *chart_step(struct site *s, struct plan *p, struct service *one)
{
        struct task *t = arena_new(s->arena, struct task);
        *t = (struct task){ .site = s, .service = one };
        return plan_add_for(p, one->action == SERVICE_REMOVE ? PLAN_UNINSTALL : PLAN_CHART,
                subject_of(s, one), t);
}

static bool service_done(const struct service *s)
{
        return s->action == SERVICE_KEEP || s->action == SERVICE_STAYS;
}

static struct plan_step *namespaces_step(struct site *s, struct plan *p)
{
        for (size_t i = 0; i < s->found.services->n; i++)
                if (s->found.services->v[i].kind == SERVICE_NAMESPACE &&
                        !service_done(&s->found.services->v[i]))
                        return plan_add(p, PLAN_NAMESPACES, NULL);
        return NULL;
}

static struct plan_step *crds_step(struct site *s, struct plan *p)
{
        for (size_t i = 0; i < s->found.services->n; i++)
                if (json_array_size(s->found.services->v[i].crds))
                        return plan_add(p, PLAN_CRDS, NULL);
        return NULL;
}

/* One step for all that the inventory lists, because it is one object. */
static struct plan_step *manifests_step(struct site *s, struct plan *p)
{
        for (size_t i = 0; i < s->found.services->n; i++)
                if (service_section(s->found.services->v[i].kind) &&
                        !service_done(&s->found.services->v[i]))
                        return plan_add(p, PLAN_MANIFESTS, NULL);
        return NULL;
}

/* A chart waits for those that it names and that change. */
static void chart_order(struct site *s, struct plan_step **steps)
{
        const struct services_found *f = s->found.services;
        for (size_t i = 0; i < f->n; i++)
                for (size_t k = 0; steps[i] && f->v[i].chart && k < f->v[i].chart->after.n; k++)
                        for (size_t o = 0; o < f->n; o++)
                                if (steps[o] && f->v[o].chart &&
                                        streq(f->v[o].name, f->v[i].chart->after.v[k]))
                                        plan_after(steps[i], steps[o]);
}

/* Removals come first: a chart with a new name may have the same objects. Objects of manifests and
 * charts may be of kinds that the crds/ of any chart define. */
void services_steps(struct site *s, struct plan *p, const struct services_around *around)
{
        struct plan_step *dns = around->dns, *verify = around->verify;
        const struct services_found *f = s->found.services;
        if (!f || !services_any(f))
                return;
        services_mark(s);
        struct plan_step **steps = arena_array(s->arena, struct plan_step *, f->n + 1);
        struct plan_step *namespaces = namespaces_step(s, p), *crds = crds_step(s, p),
                         *manifests = manifests_step(s, p);
        for (size_t i = 0; i < f->n; i++)
                if (f->v[i].kind == SERVICE_CHART && !service_done(&f->v[i]))
                        steps[i] = chart_step(s, p, &f->v[i]);
        for (size_t i = 0; i < f->n; i++) {
                if (!steps[i])
                        continue;
                if (f->v[i].chart && f->v[i].chart->fabric) {
                        plan_after(steps[i], around->objects);
                        plan_after(dns, steps[i]);
                        continue;
                }
                plan_after(steps[i], dns);
                plan_after(steps[i], f->v[i].chart ? namespaces : NULL);
                plan_after(steps[i], f->v[i].chart ? crds : NULL);
                plan_after(steps[i], f->v[i].chart ? manifests : NULL);
                for (size_t o = 0; f->v[i].chart && o < f->n; o++)
                        if (f->v[o].action == SERVICE_REMOVE && steps[o])
                                plan_after(steps[i], steps[o]);
        }
        chart_order(s, steps);
        for (size_t i = 0; i < f->n; i++)
                if (addon_named(f->v[i].name) != ADDON_COUNT)
                        plan_after(verify, f->v[i].kind == SERVICE_ADDON ? manifests : steps[i]);
        if (namespaces)
                plan_after(namespaces, dns);
        if (crds)
                plan_after(crds, dns);
        if (manifests) {
                plan_after(manifests, dns);
                plan_after(manifests, namespaces);
                plan_after(manifests, crds);
        }
}
