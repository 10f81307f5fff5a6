/* Static pods that change together with the kubelet that runs them. A kubelet that starts does not know that what still runs was the pod before: it starts the new one
 * beside it, which finds its port taken and is held back longer each time. And an API server whose etcd is gone takes a minute to end. So both are
 * ended in order first: the kubelet, those who ask the API server, the API server, etcd. The kubelet is started again by the units of the same run; should that be
 * cut before, by a timer. */
#include "agent/agent.h"
#include "base/pods.h"

#define MANIFESTS    "/etc/kubernetes/manifests/"
#define STOP_SECONDS 180

static const char *const order[] = { "kube-controller-manager", "kube-scheduler", "kube-apiserver", "etcd" };

/* Containers are asked for when the runtime, which may have been restarted too, is there. */
static const char script[] = PODS_SCRIPT "command -v crictl >/dev/null || exit 0\n"
                                         "systemctl stop slipway-kubelet.timer 2>/dev/null\n"
                                         "systemd-run -q --collect --unit=slipway-kubelet --on-active=60 systemctl start kubelet.service || exit 0\n"
                                         "systemctl stop kubelet.service || exit 1\n"
                                         "for u in containerd crio; do systemctl is-enabled -q $u.service 2>/dev/null && systemctl start $u.service; done\n"
                                         "asking \"$@\"\n"
                                         "for pod; do case $pod in kube-apiserver|etcd) end $pod; esac; done\n"
                                         "exit 0\n";

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

/* It was down already: a run that was killed here left it so, perhaps with pods that still run. Where there were none yet, nothing has to end. */
static bool left_down(const struct entry *kubelet) { return !kubelet->unit.active && access(MANIFESTS "kube-apiserver.yaml", F_OK) == 0; }

/* An API server whose etcd is away can neither leave its Service nor end: it ends before etcd does, whether that is a unit or a pod. */
static bool together(const struct agent *a, const struct entry *kubelet)
{
        return kubelet->restart || left_down(kubelet) || (changes(a, "kube-apiserver") && (restarts(unit_of(a, "etcd.service")) || changes(a, "etcd")));
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
        if (!any || a->pods_ended || a->mode != 0 || !agent_whole(a) || !kubelet || !together(a, kubelet))
                return false;
        a->pods_ended = true;
        kubelet->restart |= kubelet->unit.active; /* who is down is started anyway */
        return true;
}

void pods_stop(struct agent *a)
{
        const char *argv[5 + ARRAY_SIZE(order)] = { "sh", "-c", script, "pods" };
        struct error err CLEANUP(error_release) = { 0 };
        size_t n = 4;
        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                if (changes(a, order[i]))
                        argv[n++] = order[i];
        if (n > 4 && tool(&a->session, argv, STOP_SECONDS, NULL, &err) < 0)
                journal(a, "static pods: %s", err.message ? err.message : "they could not be stopped");
}
