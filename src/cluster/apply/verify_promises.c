/* What addons of the file promise. A row is for what has been proven on real machines, because `up`
 * fails if a check does. Here are metrics of every node and a volume that keeps its data. */
#include "addon/addon.h"
#include "cluster/apply/verify_promise.h"
#include "kube/wait.h"

#define COME_MS      120000 /* milliseconds after a change of the cluster */
#define STEADY_MS    20000  /* milliseconds without a change */
#define STARTS_MS    300000 /* milliseconds for a pod with a new volume */
#define METRICS_PATH "/apis/metrics.k8s.io/v1beta1/nodes"
#define WRITES       "storage-writes"
#define READS        "storage-reads"

static void verify_metrics(struct verify *v);
static void verify_storage(struct verify *v);

/* In the order in which they are checked. */
static const struct {
        enum addon_id addon;
        void (*begin)(struct verify *v);
} promises[] = {
        { ADDON_METRICS_SERVER, verify_metrics },
        { ADDON_LOCAL_PATH, verify_storage },
        { ADDON_INGRESS, verify_ingress },
        { ADDON_PROMETHEUS, verify_targets },
};

void verify_promises(const struct cluster *c, struct str *out)
{
        for (size_t i = 0; i < ARRAY_SIZE(promises); i++)
                if (cluster_addon(c, promises[i].addon))
                        str_addf(out, "%s %s\n", addon_names[promises[i].addon],
                                addon_row(promises[i].addon)->version);
}

int64_t verify_patience(const struct verify *v)
{
        return clock_ms() + (v->alone ? STEADY_MS : COME_MS);
}

void promise_next(struct verify *v)
{
        while (v->promise < ARRAY_SIZE(promises)) {
                size_t i = v->promise++;
                if (cluster_addon(v->site->cluster, promises[i].addon)) {
                        promises[i].begin(v);
                        return;
                }
        }
        verify_end(v);
}

void verify_kept(struct verify *v) { promise_next(v); }

void promise_ask(struct verify *v, const char *path, kube_fn fn)
{
        kube_request(v->site->kube, "GET", path, NULL, NULL, 0, fn, v);
}

void promise_waits(struct verify *v, const char *why)
{
        if (why && (!v->waiting || !streq(v->waiting, why)))
                v->waiting = arena_strdup(v->site->arena, why);
}

void promise_begin(struct verify *v, int64_t deadline, const char *doing)
{
        v->waiting = NULL;
        v->deadline = deadline;
        step_doing(v->step, -1, "%s", doing);
}

/* ---- storage: one pod writes, a second one reads ---- */

static void storage_pod(struct verify *v);
static void storage_look(struct verify *v);
static void on_storage_timer(evutil_socket_t fd, short what, void *arg) { storage_look(arg); }

static void storage_end(struct verify *v, const char *why)
{
        verify_row(v, CHECK_STORAGE, "cluster", "a volume of the default StorageClass", why);
        if (why)
                verify_failed(v,
                        "see kubectl get storageclass, and the log of its provisioner (kubectl -n local-path-storage logs deployment/local-path-provisioner)",
                        "storage: %s", why);
        promise_next(v);
}

static const char *storage_why(const struct verify *v)
{
        return arena_printf(v->site->arena,
                "a pod with a volume of the default StorageClass %s%s%s",
                v->reads ? "does not find what the first pod wrote" : "does not run",
                v->waiting ? ": " : "", v->waiting ? v->waiting : "");
}

static void on_storage_deleted(const struct kube_reply *reply, void *arg) { storage_pod(arg); }

static void on_storage_pod(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        const char *phase =
                json_string_value(json_object_get(json_object_get(reply->body, "status"), "phase"));
        const char *why = reply->error ? reply->error : condition_why(reply->body, "PodScheduled");
        promise_waits(v, why ? why : verify_pod_why(reply->body));
        if (phase && streq(phase, "Succeeded") && v->reads) {
                storage_end(v, NULL);
        } else if (phase && streq(phase, "Succeeded")) {
                /* only the volume may keep what it wrote */
                v->reads = true;
                kube_request(v->site->kube, "DELETE", VERIFY_NAMESPACE_PATH "/pods/" WRITES, NULL,
                        NULL, 0, on_storage_deleted, v);
        } else if ((phase && streq(phase, "Failed")) || clock_ms() >= v->deadline) {
                storage_end(v, storage_why(v));
        } else {
                verify_later(v, on_storage_timer);
        }
}

static void storage_look(struct verify *v)
{
        promise_ask(v,
                v->reads ? VERIFY_NAMESPACE_PATH "/pods/" READS
                         : VERIFY_NAMESPACE_PATH "/pods/" WRITES,
                on_storage_pod);
}

static void on_storage_applied(const char *error, void *arg)
{
        struct verify *v = arg;
        if (error)
                storage_end(v, error);
        else
                storage_look(v);
}

static void storage_pod(struct verify *v)
{
        struct str documents CLEANUP(str_release) = { 0 };
        promise_begin(v, clock_ms() + STARTS_MS,
                v->reads ? "reading the volume again" : "writing to a volume");
        addon_verify_storage(v->site->cluster, v->reads ? READS : WRITES,
                v->reads ? "kept" : "keep", v->name, &documents);
        kube_apply(v->site->kube, str_text(&documents), on_storage_applied, v);
}

static void verify_storage(struct verify *v) { storage_pod(v); }

/* ---- metrics of every node ---- */

static void metrics_look(struct verify *v);
static void on_verify_metrics_timer(evutil_socket_t fd, short what, void *arg)
{
        metrics_look(arg);
}

static bool metrics_have(const json_t *list, const char *node)
{
        size_t i;
        const json_t *o;
        json_array_foreach(
                json_object_get(list, "items"), i, o) if (streq(object_name(o), node)) return true;
        return false;
}

static void metrics_rows(struct verify *v, const json_t *list)
{
        for (size_t i = 0; i < v->count; i++) {
                const char *node = v->probes[i].member->node->name,
                           *why = metrics_have(list, node) ? NULL
                                  : v->waiting             ? v->waiting
                                                           : "there are no metrics of this node";
                verify_row(v, CHECK_METRICS, node, "metrics.k8s.io", why);
                if (why)
                        verify_failed(v,
                                "see the log of metrics-server: kubectl -n kube-system logs deployment/metrics-server",
                                "metrics of node %s (metrics.k8s.io): %s", node, why);
        }
}

static void on_verify_metrics(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        size_t measured = 0;
        v->waiting = NULL;
        promise_waits(v, reply->error);
        for (size_t i = 0; i < v->count; i++)
                measured += metrics_have(reply->body, v->probes[i].member->node->name);
        if (measured < v->count && clock_ms() < v->deadline) {
                verify_later(v, on_verify_metrics_timer);
                return;
        }
        metrics_rows(v, reply->body);
        promise_next(v);
}

static void metrics_look(struct verify *v) { promise_ask(v, METRICS_PATH, on_verify_metrics); }

static void verify_metrics(struct verify *v)
{
        if (v->cut) {
                promise_next(v);
                return;
        }
        promise_begin(v, verify_patience(v), "waiting for metrics of every node");
        metrics_look(v);
}
