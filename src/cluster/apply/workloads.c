#include "cluster/apply/workloads.h"
#include "kube/wait.h"

#define LOOK_MS 200

static const struct {
        const char *kind, *plural;
        bool (*ready)(const json_t *object);
        const char *have; /* of its status: pods that are ready */
        const char *want; /* the same for those that there should be; NULL: spec.replicas */
} workload_kinds[] = {
        { "Deployment", "deployments", deployment_available, "readyReplicas", NULL },
        { "DaemonSet", "daemonsets", daemonset_ready, "numberReady", "desiredNumberScheduled" },
        { "StatefulSet", "statefulsets", statefulset_ready, "readyReplicas", NULL },
};

/* ARRAY_SIZE(workload_kinds): it is none of them. */
static size_t workload_kind(const json_t *object)
{
        const char *kind = json_string_value(json_object_get(object, "kind")),
                   *api = json_string_value(json_object_get(object, "apiVersion"));
        size_t k = 0;
        if (!kind || !api || !streq(api, "apps/v1"))
                return ARRAY_SIZE(workload_kinds);
        while (k < ARRAY_SIZE(workload_kinds) && !streq(kind, workload_kinds[k].kind))
                k++;
        return k;
}

static const char *workload_namespace(const json_t *object)
{
        return *object_namespace(object) ? object_namespace(object) : "default";
}

const char *workload_path(struct arena *a, const json_t *object)
{
        size_t k = workload_kind(object);
        return k == ARRAY_SIZE(workload_kinds)
                       ? NULL
                       : arena_printf(a, "/apis/apps/v1/namespaces/%s/%s/%s",
                                 workload_namespace(object), workload_kinds[k].plural,
                                 object_name(object));
}

bool workload_ready(const json_t *object)
{
        size_t k = workload_kind(object);
        return k < ARRAY_SIZE(workload_kinds) && workload_kinds[k].ready(object);
}

void workload_pods(const json_t *object, json_int_t *ready, json_int_t *wanted)
{
        size_t k = workload_kind(object);
        const json_t *status = json_object_get(object, "status"),
                     *replicas = json_object_get(json_object_get(object, "spec"), "replicas");
        if (k == ARRAY_SIZE(workload_kinds))
                return;
        *ready += json_integer_value(json_object_get(status, workload_kinds[k].have));
        *wanted += workload_kinds[k].want
                           ? json_integer_value(json_object_get(status, workload_kinds[k].want))
                   : replicas ? json_integer_value(replicas)
                              : 1;
}

struct workload {
        const char *path, *label;
        struct workload *next;
};

struct workloads {
        struct op op;
        struct workload *first; /* the one that is waited for */
        void (*fn)(void *arg);
        void *arg;
};

struct workloads *workloads_new(struct site *s, struct step *step)
{
        struct workloads *w = arena_new(s->arena, struct workloads);
        op_begin(&w->op, s, step);
        return w;
}

void workloads_add(struct workloads *w, json_t *objects)
{
        struct arena *a = w->op.site->arena;
        size_t i;
        json_t *o;
        json_array_foreach(objects, i, o)
        {
                const char *path = workload_path(a, o);
                if (!path)
                        continue;
                struct workload *one = arena_new(a, struct workload);
                *one = (struct workload){
                        .path = path,
                        .label = arena_printf(a, "%s %s/%s",
                                json_string_value(json_object_get(o, "kind")),
                                workload_namespace(o), object_name(o)),
                        .next = w->first,
                };
                w->first = one;
        }
}

static void workloads_ask(struct op *o);

static void on_workload(const struct kube_reply *reply, void *arg)
{
        struct workloads *w = arg;
        if (op_over(&w->op))
                return;
        bool ready = reply->status == 200 && workload_ready(reply->body);
        if (ready)
                w->first = w->first->next;
        if (!w->first) {
                op_drop(&w->op);
                w->fn(w->arg);
                return;
        }
        step_doing(w->op.step, -1, "waiting for %s", w->first->label);
        op_later(&w->op, ready ? 0 : LOOK_MS, workloads_ask);
}

static void workloads_ask(struct op *o)
{
        struct workloads *w = (struct workloads *)o;
        kube_request(o->site->kube, "GET", w->first->path, NULL, NULL, 0, on_workload, w);
}

void workloads_wait(struct workloads *w, void (*fn)(void *arg), void *arg)
{
        w->fn = fn;
        w->arg = arg;
        if (w->first) {
                workloads_ask(&w->op);
                return;
        }
        op_drop(&w->op);
        fn(arg);
}
