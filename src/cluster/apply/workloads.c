#include "cluster/apply/workloads.h"
#include "kube/wait.h"

#define LOOK_MS    200
#define LOOKS_PODS 10 /* after so many looks, again and again: why its pods do not start */

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
        unsigned looks;         /* at it */
        char *why;              /* its pods do not start, or NULL */
        void (*fn)(void *arg);
        void *arg;
};

static void workloads_release(struct op *o) { free(((struct workloads *)o)->why); }

struct workloads *workloads_new(struct site *s, struct step *step)
{
        struct workloads *w = arena_new(s->arena, struct workloads);
        op_begin(&w->op, s, step);
        w->op.release = workloads_release;
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

static void workloads_show(struct workloads *w)
{
        const char *trouble = kube_trouble(w->op.site->kube), *why = trouble ? trouble : w->why;
        char *text CLEANUP(free_p) =
                xasprintf("waiting for %s%s%s", w->first->label, why ? ": " : "", why ? why : "");
        if (!w->op.step->doing || !streq(w->op.step->doing, text))
                step_doing(w->op.step, -1, "%s", text);
}

static void on_workload_pods(const struct kube_reply *reply, void *arg)
{
        struct workloads *w = arg;
        if (op_over(&w->op))
                return;
        free(w->why);
        w->why = reply->status == 200 ? pods_failing(reply->body) : NULL;
        workloads_show(w);
        op_later(&w->op, LOOK_MS, workloads_ask);
}

/* The API's path of a workload's pods. */
static char *pods_path(const json_t *workload)
{
        const json_t *selector = json_object_get(json_object_get(workload, "spec"), "selector");
        struct str out CLEANUP(str_release) = { 0 };
        const char *key, *sep = "";
        json_t *value;
        str_addf(&out, "/api/v1/namespaces/%s/pods?limit=100&labelSelector=",
                workload_namespace(workload));
        json_object_foreach(json_object_get(selector, "matchLabels"), key, value)
        {
                str_addf(&out, "%s%s%%3D%s", sep, key, json_string_value(value));
                sep = "%2C";
        }
        return str_take(&out);
}

static void on_workload(const struct kube_reply *reply, void *arg)
{
        struct workloads *w = arg;
        if (op_over(&w->op))
                return;
        if (reply->status == 200 && workload_ready(reply->body)) {
                w->first = w->first->next;
                w->looks = 0;
                free(w->why);
                w->why = NULL;
        }
        if (!w->first) {
                op_drop(&w->op);
                w->fn(w->arg);
                return;
        }
        workloads_show(w);
        if (reply->status == 200 && ++w->looks % LOOKS_PODS == 0) {
                char *path CLEANUP(free_p) = pods_path(reply->body);
                kube_request(w->op.site->kube, "GET", path, NULL, NULL, 0, on_workload_pods, w);
        } else {
                op_later(&w->op, w->looks ? LOOK_MS : 0, workloads_ask);
        }
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
