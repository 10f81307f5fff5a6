/* Built-in addons of the file: their pods, and whether they are as this slipway would install them.
 * Those that are charts are releases (status_services.c). */
#include "addon/addon.h"
#include "addon/service.h"
#include "cluster/apply/workloads.h"
#include "cluster/services/services.h"
#include "cluster/status/status.h"
#include "kube/documents.h"
#include "kube/wait.h"

#define ADDON_WORKLOADS 4

struct status_addon {
        struct status *status;
        enum addon_id id;
        char digest[SHA256_HEX]; /* of the text that would be applied */
        struct addon_look {
                struct status *status;
                const char *path;
                json_t *object; /* NULL: it is not there, or not known */
        } looks[ADDON_WORKLOADS];
        size_t count;
};

static void addon_prepare(struct status *st, struct status_addon *one)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        json_t *objects = NULL, *o;
        size_t i;
        addon_objects(st->site->cluster, one->id, &text);
        sha256_hex(str_text(&text), text.len, one->digest);
        if (documents_read(str_text(&text), &objects, &ignored) < 0)
                return;
        json_array_foreach(objects, i, o)
        {
                const char *path = workload_path(st->site->arena, o);
                if (path && one->count < ADDON_WORKLOADS)
                        one->looks[one->count++] =
                                (struct addon_look){ .status = st, .path = path };
        }
        json_decref(objects);
}

static void addons_prepare(struct status *st)
{
        const struct addons *all = &st->site->cluster->services.addons;
        st->addons = arena_array(st->site->arena, struct status_addon, all->n);
        for (size_t i = 0; i < all->n; i++) {
                enum addon_id id = addon_named(all->v[i].name);
                if (id == ADDON_COUNT || !addon_built_in(id))
                        continue;
                struct status_addon *one = &st->addons[st->addon_count++];
                *one = (struct status_addon){ .status = st, .id = id };
                addon_prepare(st, one);
        }
}

static void on_addon_workload(const struct kube_reply *reply, void *arg)
{
        struct addon_look *l = arg;
        json_decref(l->object);
        l->object = reply->status == 200 ? json_incref(reply->body) : NULL;
        status_answered(l->status, &l->status->api_waiting);
}

static void on_addon_inventory(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        const char *text = json_string_value(
                json_object_get(json_object_get(reply->body, "data"), "inventory"));
        json_decref(st->inventory);
        st->inventory = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (!st->inventory && reply->status == 404)
                st->inventory = json_object();
        status_answered(st, &st->api_waiting);
}

void status_ask_addons(struct status *st, unsigned timeout_ms)
{
        if (!st->addons && st->site->cluster->services.addons.n)
                addons_prepare(st);
        if (!st->addon_count)
                return;
        st->api_waiting++;
        kube_request(
                st->site->kube, "GET", INVENTORY, NULL, NULL, timeout_ms, on_addon_inventory, st);
        for (size_t i = 0; i < st->addon_count; i++)
                for (size_t k = 0; k < st->addons[i].count; k++) {
                        st->api_waiting++;
                        kube_request(st->site->kube, "GET", st->addons[i].looks[k].path, NULL, NULL,
                                timeout_ms, on_addon_workload, &st->addons[i].looks[k]);
                }
}

/* Somebody else manages fields of its spec. An autoscaler sets replicas, and the API server's own
 * defaults belong to nobody. */
static const char *addon_stranger(const json_t *object)
{
        const json_t *all = json_object_get(json_object_get(object, "metadata"), "managedFields");
        size_t i;
        const json_t *m;
        json_array_foreach(all, i, m)
        {
                const char *manager = json_string_value(json_object_get(m, "manager"));
                if (manager && !streq(manager, "slipway") && !json_object_get(m, "subresource") &&
                        json_object_get(json_object_get(m, "fieldsV1"), "f:spec"))
                        return manager;
        }
        return NULL;
}

/* Why it is not as wanted; in the arena, NULL: it is. */
static const char *addon_drift(const struct status *st, const struct status_addon *one)
{
        const char *digest = json_string_value(json_object_get(
                json_object_get(json_object_get(st->inventory, service_section(SERVICE_ADDON)),
                        addon_names[one->id]),
                "digest"));
        if (!st->inventory)
                return NULL;
        if (!digest)
                return "it is not installed: slipway up installs it";
        if (!streq(digest, one->digest))
                return "it differs from the file: slipway plan shows it";
        for (size_t i = 0; i < one->count; i++) {
                const char *who = addon_stranger(one->looks[i].object);
                if (who)
                        return arena_printf(st->site->arena, "%s was changed by %.64s",
                                object_name(one->looks[i].object), who);
        }
        return NULL;
}

static json_t *addon_status(
        const struct status *st, const struct status_addon *one, json_t *problems)
{
        json_int_t ready = 0, wanted = 0;
        const char *drift = addon_drift(st, one), *name = addon_names[one->id];
        bool works = true;
        json_t *o = json_object();
        for (size_t i = 0; i < one->count; i++) {
                workload_pods(one->looks[i].object, &ready, &wanted);
                works &= workload_ready(one->looks[i].object);
        }
        status_text(o, "name", name);
        status_text(o, "version", addon_row(one->id)->version);
        status_text(o, "namespace", addon_row(one->id)->space);
        json_object_set_new(o, "ready", json_integer(ready));
        json_object_set_new(o, "wanted", json_integer(wanted));
        json_object_set_new(o, "works", json_boolean(works));
        status_text(o, "drift", drift);
        if (!works)
                status_problem(problems,
                        "addon %s: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                        " pods are ready: kubectl -n %s get pods shows them",
                        name, ready, wanted, addon_row(one->id)->space);
        if (drift)
                status_problem(problems, "addon %s: %s", name, drift);
        return o;
}

json_t *status_addons_json(const struct status *st, json_t *problems)
{
        json_t *list = json_array();
        for (size_t i = 0; st->api_ready && st->inventory && i < st->addon_count; i++)
                json_array_append_new(list, addon_status(st, &st->addons[i], problems));
        return list;
}

void status_addons_end(struct status *st)
{
        for (size_t i = 0; i < st->addon_count; i++)
                for (size_t k = 0; k < st->addons[i].count; k++)
                        json_decref(st->addons[i].looks[k].object);
        json_decref(st->inventory);
}
