/* Deletes the Node objects of removed nodes, and the pods that a drain leaves there (of DaemonSets,
 * static ones, completed ones). Kubernetes itself deletes pods of unknown nodes only after a while,
 * and until then their namespaces cannot be deleted. All other pods are left to Kubernetes: the
 * host may still be running, and a pod of a StatefulSet must not run twice. */
#include "cluster/leave/leave.h"
#include "kube/drain.h"

struct forgetting {
        struct step *step;
        size_t left; /* requests without an answer yet */
        bool removed;
};

static void one_less(struct forgetting *f)
{
        const struct member *m = f->step->arg;
        if (--f->left)
                return;
        if (!f->removed) {
                step_unchanged(f->step);
                return;
        }
        step_changed(f->step, "removed Node %s", m->node->name);
        step_done(f->step, NULL);
}

/* Success or not: Kubernetes deletes the remaining pods itself. */
static void on_pod(const struct kube_reply *reply, void *arg) { one_less(arg); }

static void on_forget_pods(const struct kube_reply *reply, void *arg)
{
        struct forgetting *f = arg;
        const struct member *m = f->step->arg;
        const json_t *pod;
        size_t i;
        json_array_foreach(json_object_get(reply->body, "items"), i, pod)
        {
                const json_t *meta = json_object_get(pod, "metadata");
                const char *space = json_string_value(json_object_get(meta, "namespace")),
                           *name = json_string_value(json_object_get(meta, "name"));
                if (!space || !name || !pod_stays(pod))
                        continue;
                char *path CLEANUP(free_p) = xasprintf(
                        "/api/v1/namespaces/%s/pods/%s?gracePeriodSeconds=0", space, name);
                f->left++;
                kube_request(m->site->kube, "DELETE", path, NULL, NULL, 0, on_pod, f);
        }
        one_less(f);
}

static void on_deleted(const struct kube_reply *reply, void *arg)
{
        struct forgetting *f = arg;
        const struct member *m = f->step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        f->removed = reply->status == 200;
        if (f->removed || reply->status == 404) {
                char *path CLEANUP(free_p) =
                        xasprintf("/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", m->node->name);
                f->left = 1;
                kube_request(m->site->kube, "GET", path, NULL, NULL, 0, on_forget_pods, f);
                return;
        }
        if (!(m->plan.leaving & LEAVE_FORCE)) {
                error_set(&err, EIO, EXIT_STEP, "its Node object cannot be deleted: %s",
                        reply->error ? reply->error : "no answer");
                error_hint(&err, "run again");
        }
        step_done(f->step, err.code ? &err : NULL);
}

void step_delete_node(struct step *s)
{
        struct member *m = s->arg;
        /* a name that only etcd knows is not a Node's name */
        bool absent = m->plan.fate == FATE_REMOVE && !m->seen.object &&
                      (!m->seen.known || !m->site->found.api_up);
        if (!m->site->kube || absent) {
                step_unchanged(s);
                return;
        }
        struct forgetting *f = arena_new(m->site->arena, struct forgetting);
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", m->node->name);
        *f = (struct forgetting){ .step = s };
        kube_request(m->site->kube, "DELETE", path, NULL, NULL, 0, on_deleted, f);
}
