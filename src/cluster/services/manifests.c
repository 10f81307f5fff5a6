/* Namespaces, built-in addons and manifests. What a file's objects are is written down in the
 * cluster before they are applied, so that a run that is killed leaves none that no later run knows
 * of. */
#include "base/clock.h"
#include "base/tree.h"
#include "config/addon.h"
#include "cluster/apply/workloads.h"
#include "cluster/services/services.h"
#include "kube/wait.h"

#define WAIT_SECONDS 900
#define LOOK_MS      1000
#define BALANCER_MS  120000 /* until a Service that was taken out is gone */

static void add_document(struct str *out, json_t *object)
{
        char *text CLEANUP(free_p) = json_dumps(object, JSON_COMPACT);
        str_addf(out, "---\n%s\n", text);
}

/* ---- the inventory: the ConfigMap kube-system/slipway-services ---- */

/* The entry of one file. `with`: includes removed objects until they are deleted. */
static json_t *inventory_entry(const struct site *s, const struct service *one, bool with)
{
        const json_t *had = json_object_get(
                json_object_get(
                        json_object_get(s->found.services->inventory, service_section(one->kind)),
                        one->name),
                "objects");
        json_t *objects = json_array();
        size_t i;
        json_t *o;
        json_array_foreach(one->objects, i, o) json_array_append_new(objects, service_reference(o));
        if (with)
                json_array_foreach(had, i, o) json_array_append(objects, o);
        return json_pack("{s:s, s:o}", "digest", with ? "" : one->digest, "objects", objects);
}

static bool inventory_listed(const json_t *list, const char *name)
{
        size_t i;
        const json_t *o;
        json_array_foreach(list, i, o)
        {
                const char *its = json_string_value(o);
                if (its && streq(its, name))
                        return true;
        }
        return false;
}

/* Namespaces that slipway created, including those that are no longer in the file. */
static json_t *inventory_namespaces(const struct site *s)
{
        const struct strings *wanted = &s->cluster->services.namespaces;
        const json_t *had = json_object_get(s->found.services->inventory, "namespaces");
        json_t *all = json_is_array(had) ? json_copy((json_t *)had) : json_array();
        for (size_t i = 0; i < wanted->n; i++)
                if (!inventory_listed(all, wanted->v[i]))
                        json_array_append_new(all, json_string(wanted->v[i]));
        return all;
}

/* The ConfigMap; `during`: while objects are applied and deleted. */
static void inventory_document(const struct site *s, bool during, struct str *out)
{
        const struct services_found *f = s->found.services;
        json_t *sections = json_pack("{s:{}, s:{}, s:{}, s:o}", service_section(SERVICE_ADDON),
                service_section(SERVICE_MANIFEST), service_section(SERVICE_BUILTIN), "namespaces",
                inventory_namespaces(s));
        for (size_t i = 0; i < f->n; i++) {
                const struct service *one = &f->v[i];
                json_t *section = json_object_get(sections, service_section(one->kind));
                if (!section || (one->action == SERVICE_REMOVE && !during))
                        continue;
                bool changes = during && one->action != SERVICE_KEEP;
                json_object_set_new(section, one->name, inventory_entry(s, one, changes));
        }
        char *text CLEANUP(free_p) = json_dumps(sections, JSON_COMPACT | JSON_SORT_KEYS);
        json_t *map = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}}", "apiVersion", "v1", "kind",
                "ConfigMap", "metadata", "name", "slipway-services", "namespace", "kube-system",
                "data", "inventory", text);
        add_document(out, map);
        json_decref(map);
        json_decref(sections);
}

/* ---- namespaces ---- */

static bool namespace_comes(const struct service *s)
{
        return s->kind == SERVICE_NAMESPACE && s->action == SERVICE_INSTALL;
}

static void on_namespaces_applied(const char *error, void *arg)
{
        struct step *step = arg;
        const struct services_found *f = ((struct site *)step->arg)->found.services;
        for (size_t i = 0; !error && i < f->n; i++)
                if (namespace_comes(&f->v[i]))
                        step_changed(step, "created namespace %s", f->v[i].name);
        if (error)
                step_fail(step, EIO, EXIT_STEP, "run slipway up again: it continues from here",
                        "%s", error);
        else
                step_done(step, NULL);
}

void step_namespaces(struct step *step)
{
        struct site *s = step->arg;
        struct str documents CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < s->found.services->n; i++) {
                const struct service *one = &s->found.services->v[i];
                if (!namespace_comes(one))
                        continue;
                json_t *o = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind",
                        "Namespace", "metadata", "name", one->name);
                if (addon_privileged(s->cluster, one->name))
                        json_object_set_new(json_object_get(o, "metadata"), "labels",
                                json_pack("{s:s}", "pod-security.kubernetes.io/enforce",
                                        "privileged"));
                add_document(&documents, o);
                json_decref(o);
        }
        inventory_document(s, true, &documents);
        kube_apply(s->kube, str_text(&documents), on_namespaces_applied, step);
}

/* ---- manifests ---- */

struct manifests_run {
        struct op op;
        size_t at;
        struct workloads *workloads;
        const char *what;                      /* the current request to the API */
        void (*next)(struct manifests_run *m); /* called after it */
        int64_t end;                           /* until the Services that were taken out are gone */
};

static void on_manifests_call(const char *error, void *arg)
{
        struct manifests_run *m = arg;
        if (op_over(&m->op))
                return;
        if (error)
                op_fail(&m->op, EINVAL, EXIT_STEP,
                        "fix it, and run slipway up again: it continues from here", "%s: %s",
                        m->what, error);
        else
                m->next(m);
}

static void manifests_ask(struct manifests_run *m, enum kube_verb verb, const char *documents,
        const char *what, void (*next)(struct manifests_run *m))
{
        m->what = what;
        m->next = next;
        kube_objects(m->op.site->kube, verb, documents, on_manifests_call, m);
}

static void manifests_inventory(
        struct manifests_run *m, bool during, void (*next)(struct manifests_run *m))
{
        struct str documents CLEANUP(str_release) = { 0 };
        inventory_document(m->op.site, during, &documents);
        manifests_ask(m, KUBE_APPLY, str_text(&documents), "the inventory", next);
}

static void manifests_end(struct manifests_run *m) { op_done(&m->op, NULL); }

static void on_manifests_ready(void *arg) { manifests_inventory(arg, false, manifests_end); }

/* Calls fn for each object that was removed from a file. */
static void each_pruned(struct manifests_run *m, void (*fn)(json_t *object, void *arg), void *arg)
{
        const struct services_found *f = m->op.site->found.services;
        size_t i, k;
        json_t *o;
        for (i = 0; i < f->n; i++)
                json_array_foreach(f->v[i].action != SERVICE_KEEP ? f->v[i].prune : NULL, k, o)
                        fn(o, arg);
}

static void prune_say(json_t *object, void *arg)
{
        char *name CLEANUP(free_p) = service_object_name(object, "");
        step_changed(arg, "deleted %s", name);
}

static void prune_add(json_t *object, void *arg) { add_document(arg, object); }

static void prune_add_service(json_t *object, void *arg)
{
        const char *kind = json_string_value(json_object_get(object, "kind"));
        if (kind && streq(kind, "Service"))
                add_document(arg, object);
}

static void manifests_pruned(struct manifests_run *m)
{
        each_pruned(m, prune_say, m->op.step);
        workloads_wait(m->workloads, on_manifests_ready, m);
}

static void manifests_prune_all(struct manifests_run *m)
{
        struct str documents CLEANUP(str_release) = { 0 };
        each_pruned(m, prune_add, &documents);
        manifests_ask(m, KUBE_DELETE, str_text(&documents),
                "objects that were taken out cannot be deleted", manifests_pruned);
}

/* ---- Services go first: whoever holds their load balancer may be taken out too ---- */

static void pruned_look(struct op *o);

static const char *pruned_left(json_t *objects)
{
        size_t i;
        json_t *o;
        json_array_foreach(objects, i, o) if (json_is_object(o)) return object_name(o);
        return NULL;
}

static void on_pruned_look(json_t *objects, const char *error, void *arg)
{
        struct manifests_run *m = arg;
        if (op_over(&m->op))
                return;
        const char *left = pruned_left(objects);
        if (!error && !left)
                manifests_prune_all(m);
        else if (clock_ms() < m->end)
                op_later(&m->op, LOOK_MS, pruned_look);
        else
                op_fail(&m->op, ETIMEDOUT, EXIT_STEP,
                        "kubectl describe service says why; if nothing is left that could remove its load balancer, remove its finalizer, and run slipway up again",
                        "the Service %s, which was taken out, is not deleted after %d s%s%s",
                        left ? left : "", BALANCER_MS / 1000, error ? ": " : "",
                        error ? error : "");
}

static void pruned_look(struct op *o)
{
        struct manifests_run *m = (struct manifests_run *)o;
        struct str documents CLEANUP(str_release) = { 0 };
        each_pruned(m, prune_add_service, &documents);
        kube_answers(o->site->kube, KUBE_GET, str_text(&documents), on_pruned_look, m);
}

static void pruned_services(struct manifests_run *m)
{
        m->end = clock_ms() + BALANCER_MS;
        pruned_look(&m->op);
}

static void manifests_prune(struct manifests_run *m)
{
        struct str documents CLEANUP(str_release) = { 0 };
        each_pruned(m, prune_add_service, &documents);
        if (documents.len)
                manifests_ask(m, KUBE_DELETE, str_text(&documents),
                        "Services that were taken out cannot be deleted", pruned_services);
        else
                manifests_prune_all(m);
}

static void manifests_next(struct manifests_run *m);

static void manifest_applied(struct manifests_run *m)
{
        const struct service *s = &m->op.site->found.services->v[m->at++];
        step_changed(m->op.step, "applied %s: %zu objects", s->name, json_array_size(s->objects));
        manifests_next(m);
}

static void manifests_next(struct manifests_run *m)
{
        const struct services_found *f = m->op.site->found.services;
        struct str documents CLEANUP(str_wipe_release) = { 0 };
        size_t i;
        json_t *o;
        while (m->at < f->n && (!service_section(f->v[m->at].kind) || !f->v[m->at].objects ||
                                       f->v[m->at].action == SERVICE_KEEP))
                m->at++;
        if (m->at == f->n) {
                manifests_prune(m);
                return;
        }
        json_array_foreach(f->v[m->at].objects, i, o) add_document(&documents, o);
        workloads_add(m->workloads, f->v[m->at].objects);
        step_doing(m->op.step, -1, "applying %s", f->v[m->at].name);
        manifests_ask(m, KUBE_APPLY, str_text(&documents), f->v[m->at].name, manifest_applied);
}

void step_service_manifests(struct step *step)
{
        struct site *s = step->arg;
        struct manifests_run *m = arena_new(s->arena, struct manifests_run);
        op_begin(&m->op, s, step);
        m->workloads = workloads_new(s, step);
        step_deadline(step, WAIT_SECONDS, "kubectl describe pods says why they do not start");
        manifests_inventory(m, true, manifests_next);
}
