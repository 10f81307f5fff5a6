/* Static pods that change together with the kubelet that runs them. A kubelet that starts does not know that what still runs was the pod before: it starts the new one
 * beside it, which finds its port taken and is held back longer each time. And an API server whose etcd is gone takes a minute to end. So both are
 * ended in order first: the kubelet, the API server, those who ask it, etcd. The kubelet is started again by the units of the same run; should that be cut
 * before, by a timer. */
#include "agent/agent.h"

#define MANIFESTS    "/etc/kubernetes/manifests/"
#define STOP_SECONDS 180

static const char *const order[] = { "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd" };

static bool changes(const struct agent *a, const char *pod)
{
        char *path CLEANUP(free_p) = xasprintf(MANIFESTS "%s.yaml", pod);
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_FILE && a->entries[i].state == STATE_CHANGED && streq(a->entries[i].path, path))
                        return true;
        return false;
}

static struct entry *unit_of(const struct agent *a, const char *name)
{
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT && streq(a->entries[i].name, name))
                        return &a->entries[i];
        return NULL;
}

static bool restarts(const struct entry *unit) { return unit && unit->restart; }

/* An API server whose etcd is away can neither leave its Service nor end: it ends before etcd does, whether that is a unit or a pod. */
static bool together(const struct agent *a)
{
        return restarts(unit_of(a, "kubelet.service")) || (changes(a, "kube-apiserver") && (restarts(unit_of(a, "etcd.service")) || changes(a, "etcd")));
}

static bool touches(const struct entry *e)
{
        return e->kind == SPEC_UNIT ? e->restart && streq(e->name, "etcd.service")
                                    : e->kind == SPEC_FILE && e->state == STATE_CHANGED && has_prefix(e->path, MANIFESTS);
}

bool pods_change(struct agent *a, const struct entry *e, size_t n)
{
        struct entry *kubelet = unit_of(a, "kubelet.service");
        bool any = false;
        for (size_t i = 0; i < n; i++)
                any |= touches(&e[i]);
        if (!any || a->mode != 0 || !agent_whole(a) || !kubelet || !kubelet->unit.active || !together(a))
                return false;
        kubelet->restart = true;
        kubelet->unit.active = false; /* once a run */
        return true;
}

void pods_stop(struct agent *a)
{
        static const char script[] =
                "PATH=$PATH:/usr/local/bin:/opt/bin; command -v crictl >/dev/null || exit 0; "
                "systemd-run -q --collect --on-active=60 systemctl start kubelet.service || exit 0; systemctl stop kubelet.service || exit 1; "
                "for pod; do ids=$(crictl ps -q --name \"^$pod\\$\") && [ -n \"$ids\" ] && crictl stop -t 30 $ids; done >/dev/null; exit 0";
        const char *argv[5 + ARRAY_SIZE(order)] = { "sh", "-c", script, "pods" };
        struct error err CLEANUP(error_release) = { 0 };
        size_t n = 4;
        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                if (changes(a, order[i]))
                        argv[n++] = order[i];
        if (n > 4 && tool(&a->session, argv, STOP_SECONDS, NULL, &err) < 0)
                journal(a, "static pods: %s", err.message ? err.message : "they could not be stopped");
}
