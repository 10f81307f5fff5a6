/* What of services is there, and what is to be done: asked before the plan. Without changes: the
 * files are read, and the API answers three questions; no helm runs. */
#include "addon/addon.h"
#include "addon/service.h"
#include "base/tree.h"
#include "cluster/services/services.h"
#include "config/dex.h"
#include "kube/documents.h"
#include "kube/wait.h"

#define ASK_MS      15000
#define REMOVED_MAX 1000

struct services_look {
        struct op op;
        struct services_found *found;
        json_t *secrets, *namespaces;
        size_t at;      /* index of the chart whose package is looked up */
        size_t waiting; /* comparisons without a result yet */
        struct error error;
};

static void look_release(struct op *o)
{
        struct services_look *l = (struct services_look *)o;
        json_decref(l->secrets);
        json_decref(l->namespaces);
        error_release(&l->error);
        for (size_t i = 0; i < l->found->n; i++) {
                json_decref(l->found->v[i].changes);
                json_decref(l->found->v[i].objects);
                json_decref(l->found->v[i].crds);
                json_decref(l->found->v[i].prune);
        }
        json_decref(l->found->inventory);
}

static struct service *look_add(struct services_look *l, enum service_kind kind, const char *name)
{
        struct service *s = &l->found->v[l->found->n++];
        *s = (struct service){ .kind = kind, .name = name, .ns = "" };
        return s;
}

/* ---- the files ---- */

static int look_manifest(struct services_look *l, size_t at, struct error *err)
{
        const struct cluster *c = l->op.site->cluster;
        struct str text CLEANUP(str_wipe_release) = { 0 };
        struct service *s = look_add(l, SERVICE_MANIFEST, c->services.manifests.v[at]);
        int r = manifest_load(c, at, &text, &s->objects, err);
        if (r == 0)
                sha256_hex(str_text(&text), text.len, s->digest);
        else
                s->objects = NULL;
        return r;
}

/* Its text is the program's own, but is read as a file's would be. */
static int look_addon(struct services_look *l, enum addon_id id, struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 }; /* those of clouds have credentials */
        struct service *s = look_add(l, SERVICE_ADDON, addon_names[id]);
        s->version = addon_row(id)->version;
        addon_objects(l->op.site->cluster, id, &text);
        sha256_hex(str_text(&text), text.len, s->digest);
        int r = documents_read(str_text(&text), &s->objects, err);
        return r < 0 ? error_wrap(err, "addon %s", s->name) : 0;
}

static int look_addons(struct services_look *l, struct error *err)
{
        const struct addons *all = &l->op.site->cluster->services.addons;
        int r = 0;
        for (size_t i = 0; r == 0 && i < all->n; i++) {
                enum addon_id id = addon_named(all->v[i].name);
                if (id == ADDON_COUNT || !addon_built_in(id))
                        continue;
                r = look_addon(l, id, err);
                l->found->v[l->found->n - 1].action = SERVICE_INSTALL;
        }
        return r;
}

static int look_files(struct services_look *l, struct error *err)
{
        const struct services *w = &l->op.site->cluster->services;
        for (size_t i = 0; i < w->namespaces.n; i++)
                look_add(l, SERVICE_NAMESPACE, w->namespaces.v[i])->action = SERVICE_INSTALL;
        int r = look_addons(l, err);
        for (size_t i = 0; r == 0 && i < w->manifests.n; i++) {
                r = look_manifest(l, i, err);
                l->found->v[l->found->n - 1].action = SERVICE_INSTALL;
        }
        if (r == 0 && w->dex.host)
                r = builtin_dex(l->op.site, look_add(l, SERVICE_BUILTIN, "dex"), err);
        for (size_t i = 0; i < w->charts.n; i++) {
                struct service *s = look_add(l, SERVICE_CHART, w->charts.v[i].name);
                s->ns = w->charts.v[i].namespace;
                s->chart = &w->charts.v[i];
                s->action = SERVICE_INSTALL;
        }
        return r;
}

/* ---- the end ---- */

static void look_end(struct services_look *l)
{
        struct site *s = l->op.site;
        if (l->error.message) {
                op_done(&l->op, &l->error);
                return;
        }
        s->found.services = l->found;
        if (services_any(l->found))
                op_done(&l->op, NULL);
        else
                op_unchanged(&l->op);
}

static void look_failed(struct services_look *l, struct error *err)
{
        if (!l->error.message && err) {
                l->error = *err;
                *err = (struct error){ 0 };
        }
}

static void on_compared(struct error *err, void *arg)
{
        struct services_look *l = arg;
        look_failed(l, err);
        if (!--l->waiting)
                look_end(l);
}

/* Compares all changes and has the API check them, at the same time. */
static void look_compare(struct services_look *l)
{
        struct site *site = l->op.site;
        /* for code that checks whether the API answers */
        site->found.services = l->found;
        l->waiting = 1;
        for (size_t i = 0; i < l->found->n; i++) {
                struct service *s = &l->found->v[i];
                bool to_do = s->action != SERVICE_KEEP && s->action != SERVICE_STAYS &&
                             s->action != SERVICE_REMOVE;
                if (!to_do || s->kind == SERVICE_NAMESPACE)
                        continue;
                if (s->kind == SERVICE_CHART) {
                        l->waiting++;
                        (s->action == SERVICE_RECOVER ? crds_compare : charts_compare)(
                                site, l->op.step, s, on_compared, l);
                } else if (service_section(s->kind) && !l->found->blind) {
                        l->waiting++;
                        objects_compare(site, l->op.step, s, s->objects, NULL, on_compared, l);
                }
        }
        on_compared(NULL, l);
}

/* ---- the cluster ---- */

static const json_t *inventory_of(const struct services_look *l, const struct service *s)
{
        return json_object_get(
                json_object_get(l->found->inventory, service_section(s->kind)), s->name);
}

static bool service_known(const struct services_look *l, enum service_kind kind, const char *name)
{
        for (size_t i = 0; i < l->found->n; i++)
                if (l->found->v[i].kind == kind && streq(l->found->v[i].name, name))
                        return true;
        return false;
}

/* The objects of all files: an object that moved to another file is not deleted. */
static json_t *all_objects(const struct services_look *l)
{
        json_t *all = json_array();
        for (size_t i = 0; i < l->found->n; i++)
                if (service_section(l->found->v[i].kind) && l->found->v[i].objects)
                        json_array_extend(all, l->found->v[i].objects);
        return all;
}

/* Shows which objects are deleted; objects_compare adds what is created and changed. */
static void show_pruned(struct service *s, const json_t *stay)
{
        size_t i;
        json_t *o;
        s->changes = service_diff(s->prune, NULL, "");
        json_array_foreach(stay, i, o)
        {
                char *name CLEANUP(free_p) = service_object_name(o, "");
                json_array_append_new(s->changes,
                        json_pack("{s:s, s:s, s:[]}", "action", "stays", "object", name, "fields"));
        }
}

static void look_prune(struct services_look *l, struct service *s, const json_t *all)
{
        json_t *stay = json_array();
        s->prune = service_pruned(json_object_get(inventory_of(l, s), "objects"), all,
                s->kind == SERVICE_BUILTIN ? DEX_NAMESPACE : NULL, stay);
        if (s->action != SERVICE_KEEP)
                show_pruned(s, stay);
        json_decref(stay);
}

/* What the inventory lists, and the file no longer has. */
static void look_taken_out(struct services_look *l, enum service_kind kind, const json_t *all)
{
        const char *name;
        json_t *entry;
        json_object_foreach(
                json_object_get(l->found->inventory, service_section(kind)), name, entry)
        {
                if (service_known(l, kind, name) || l->found->n > REMOVED_MAX)
                        continue;
                struct service *s = look_add(l, kind, arena_strdup(l->op.site->arena, name));
                enum addon_id id = kind == SERVICE_ADDON ? addon_named(name) : ADDON_COUNT;
                s->action = SERVICE_REMOVE;
                s->note = id == ADDON_COUNT ? NULL : addon_row(id)->stays;
                look_prune(l, s, all);
        }
}

static void look_manifests(struct services_look *l)
{
        json_t *all = all_objects(l);
        for (size_t i = 0; i < l->found->n; i++) {
                struct service *s = &l->found->v[i];
                if (!service_section(s->kind))
                        continue;
                const char *digest =
                        json_string_value(json_object_get(inventory_of(l, s), "digest"));
                if (digest) {
                        s->action = streq(digest, s->digest) ? SERVICE_KEEP : SERVICE_CHANGE;
                        s->note = NULL;
                }
                look_prune(l, s, all);
        }
        look_taken_out(l, SERVICE_ADDON, all);
        look_taken_out(l, SERVICE_MANIFEST, all);
        look_taken_out(l, SERVICE_BUILTIN, all);
        json_decref(all);
}

static const json_t *look_namespace(const struct services_look *l, const char *name)
{
        size_t i;
        const json_t *o;
        json_array_foreach(l->namespaces, i, o) if (streq(object_name(o), name)) return o;
        return NULL;
}

static void look_namespaces(struct services_look *l)
{
        const struct strings *wanted = &l->op.site->cluster->services.namespaces;
        size_t i;
        const json_t *o;
        for (i = 0; i < l->found->n; i++)
                if (l->found->v[i].kind == SERVICE_NAMESPACE &&
                        look_namespace(l, l->found->v[i].name))
                        l->found->v[i].action = SERVICE_KEEP;
        json_array_foreach(json_object_get(l->found->inventory, "namespaces"), i, o)
        {
                const char *name = json_string_value(o);
                bool listed = !name || !look_namespace(l, name) || l->found->n > REMOVED_MAX;
                for (size_t k = 0; !listed && k < wanted->n; k++)
                        listed = streq(wanted->v[k], name);
                if (listed)
                        continue;
                struct service *s =
                        look_add(l, SERVICE_NAMESPACE, arena_strdup(l->op.site->arena, name));
                s->action = SERVICE_STAYS;
                s->note =
                        "it is no longer in the file, and is not deleted; kubectl delete namespace does that";
        }
}

static bool look_ends(const struct services_look *l, const char *name)
{
        return json_object_get(
                json_object_get(look_namespace(l, name), "metadata"), "deletionTimestamp");
}

/* The namespace of a service that is being deleted; NULL: none is. */
static const char *look_ending(const struct services_look *l, const struct service *s)
{
        const char *ns = s->kind == SERVICE_NAMESPACE ? s->name : s->ns;
        const json_t *objects = s->action == SERVICE_KEEP ? NULL : s->objects, *o;
        size_t i;
        if (s->action == SERVICE_STAYS || s->action == SERVICE_REMOVE)
                return NULL;
        if (*ns && look_ends(l, ns))
                return ns;
        json_array_foreach(objects, i, o)
        {
                if (look_ends(l, object_namespace(o)))
                        return object_namespace(o);
        }
        return NULL;
}

/* Such a namespace accepts no objects. */
static int look_terminating(const struct services_look *l, struct error *err)
{
        for (size_t i = 0; i < l->found->n; i++) {
                const struct service *s = &l->found->v[i];
                const char *ns = look_ending(l, s);
                if (!ns)
                        continue;
                bool own = s->kind == SERVICE_NAMESPACE;
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "%s%s%s: the namespace %s is being deleted (Terminating)",
                        own ? "services.namespaces" : service_kind_name(s->kind), own ? "" : " ",
                        own ? "" : s->name, ns);
                return error_hint(err,
                        "nothing was changed; wait until it is deleted, or see what blocks it: kubectl get namespace %s -o yaml",
                        ns);
        }
        return 0;
}

static void look_decide(struct services_look *l)
{
        struct site *site = l->op.site;
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < l->found->n; i++) {
                struct service *s = &l->found->v[i];
                if (s->kind != SERVICE_CHART)
                        continue;
                s->placed = look_namespace(l, s->ns);
                service_revisions(s, site->arena, l->secrets);
                service_decide(s, site->arena);
        }
        look_manifests(l);
        look_namespaces(l);
        l->found->n += service_removed(&site->cluster->services, l->secrets, site->arena,
                l->found->v + l->found->n, REMOVED_MAX);
        if (look_terminating(l, &err) < 0)
                op_done(&l->op, &err);
        else
                look_compare(l);
}

static void look_unreachable(struct services_look *l, const char *what, const char *why)
{
        op_fail(&l->op, EIO, EXIT_UNREACHABLE, "slipway status shows the API servers",
                "the API does not say what %s there are: %s", what, why);
}

static void on_look_inventory(const struct kube_reply *reply, void *arg)
{
        struct services_look *l = arg;
        const char *text = json_string_value(
                json_object_get(json_object_get(reply->body, "data"), "inventory"));
        if (op_over(&l->op))
                return;
        if (reply->error && reply->status != 404) {
                look_unreachable(l, "objects of manifests", reply->error);
                return;
        }
        l->found->inventory = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        look_decide(l);
}

static void on_look_namespaces(json_t *items, const char *error, void *arg)
{
        struct services_look *l = arg;
        if (op_over(&l->op))
                return;
        if (error) {
                look_unreachable(l, "namespaces", error);
                return;
        }
        l->namespaces = json_incref(items);
        kube_request(l->op.site->kube, "GET", INVENTORY, NULL, NULL, ASK_MS, on_look_inventory, l);
}

static void on_look_secrets(json_t *items, const char *error, void *arg)
{
        struct services_look *l = arg;
        if (op_over(&l->op))
                return;
        if (error) {
                look_unreachable(l, "releases", error);
                return;
        }
        l->secrets = json_incref(items);
        kube_list_metadata(
                l->op.site->kube, "/api/v1/namespaces", "", SECRETS_MAX, on_look_namespaces, l);
}

static void look_cluster(struct services_look *l)
{
        struct site *s = l->op.site;
        l->found->blind = !s->identity.prefix || !s->found.api_up || !s->kube;
        if (l->found->blind)
                look_compare(l);
        else
                kube_list_metadata(s->kube, "/api/v1/secrets", "owner%3Dhelm", SECRETS_MAX,
                        on_look_secrets, l);
}

/* ---- one chart after another ---- */

static void look_packages(struct services_look *l);

static void on_package(struct error *err, void *arg)
{
        struct services_look *l = arg;
        if (op_over(&l->op))
                return;
        if (err) {
                op_done(&l->op, err);
                return;
        }
        l->at++;
        look_packages(l);
}

static void look_packages(struct services_look *l)
{
        while (l->at < l->found->n && l->found->v[l->at].kind != SERVICE_CHART)
                l->at++;
        if (l->at == l->found->n)
                look_cluster(l);
        else
                package_find(l->op.site, l->op.step, &l->found->v[l->at], on_package, l);
}

void step_services_observe(struct step *step)
{
        struct site *site = step->arg;
        const struct services *w = &site->cluster->services;
        struct error err CLEANUP(error_release) = { 0 };
        struct services_look *l = arena_new(site->arena, struct services_look);
        l->found = arena_new(site->arena, struct services_found);
        l->found->v = arena_array(site->arena, struct service,
                w->namespaces.n + w->addons.n + w->manifests.n + w->charts.n + 2 * REMOVED_MAX + 3);
        l->op.release = look_release;
        op_begin(&l->op, site, step);
        if (look_files(l, &err) < 0)
                op_done(&l->op, &err);
        else
                look_packages(l);
}
