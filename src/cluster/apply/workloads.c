#include "cluster/apply/workloads.h"
#include "kube/wait.h"

#define LOOK_MS 200

static const struct {
        const char *kind, *plural;
        bool (*ready)(const json_t *object);
} workload_kinds[] = {
        { "Deployment", "deployments", deployment_available },
        { "DaemonSet", "daemonsets", daemonset_ready },
        { "StatefulSet", "statefulsets", statefulset_ready },
};

struct workload {
        const char *path, *label;
        size_t kind;
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
        size_t i, k;
        json_t *o;
        json_array_foreach(objects, i, o)
        {
                const char *kind = json_string_value(json_object_get(o, "kind")),
                           *api = json_string_value(json_object_get(o, "apiVersion"));
                for (k = 0; k < ARRAY_SIZE(workload_kinds) && !streq(kind, workload_kinds[k].kind);)
                        k++;
                if (!streq(api, "apps/v1") || k == ARRAY_SIZE(workload_kinds))
                        continue;
                const char *ns = *object_namespace(o) ? object_namespace(o) : "default";
                struct workload *one = arena_new(a, struct workload);
                *one = (struct workload){
                        .path = arena_printf(a, "/apis/apps/v1/namespaces/%s/%s/%s", ns,
                                workload_kinds[k].plural, object_name(o)),
                        .label = arena_printf(a, "%s %s/%s", kind, ns, object_name(o)),
                        .kind = k,
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
        bool ready = reply->status == 200 && workload_kinds[w->first->kind].ready(reply->body);
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
