/* Static pods that change together with the kubelet that runs them. A starting kubelet does not
 * know the old pods: it starts a new pod beside the old one, which still uses its port, and then
 * backs off. An API server without etcd takes a minute to stop. So they are stopped in order first:
 * the kubelet, the clients of the API server, the API server, etcd. Units of the same run start the
 * kubelet again; a timer does so if the run is interrupted. */
#include "agent/agent.h"
#include "base/pods.h"

#define MANIFESTS    "/etc/kubernetes/manifests/"
#define STOP_SECONDS 180

static const char *const order[] = { "kube-controller-manager", "kube-scheduler", "kube-apiserver",
        "etcd" };

/* Lists containers once the runtime, which may be restarting too, is running. */
static const char script[] = PODS_SCRIPT
        "command -v crictl >/dev/null || exit 0\n"
        "systemctl stop slipway-kubelet.timer 2>/dev/null\n"
        "systemd-run -q --collect --unit=slipway-kubelet --on-active=60 systemctl start kubelet.service || exit 0\n"
        "systemctl stop kubelet.service || exit 1\n"
        "for u in containerd crio; do systemctl is-enabled -q $u.service 2>/dev/null && systemctl start $u.service; done\n"
        "asking \"$@\"\n"
        "for pod; do case $pod in kube-apiserver|etcd) end $pod; esac; done\n"
        "exit 0\n";

static bool pod_changes(const struct agent *a, const char *pod)
{
        char *path CLEANUP(free_p) = xasprintf(MANIFESTS "%s.yaml", pod);
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_FILE && a->entries[i].state == STATE_CHANGED &&
                        streq(a->entries[i].path, path))
                        return true;
        return false;
}

static struct entry *pods_unit(const struct agent *a, const char *name)
{
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT && streq(a->entries[i].name, name))
                        return &a->entries[i];
        return NULL;
}

static bool pods_unit_restarts(const struct entry *unit) { return unit && unit->restart; }

/* The kubelet was stopped by a killed run, possibly with running pods. Without a manifest of the
 * API server there is no pod to stop. */
static bool kubelet_left_down(const struct entry *kubelet)
{
        return !kubelet->unit.active && access(MANIFESTS "kube-apiserver.yaml", F_OK) == 0;
}

/* An API server without etcd can neither leave its Service nor stop: it must stop before etcd,
 * whether etcd is a unit or a pod. */
static bool pods_end_together(const struct agent *a, const struct entry *kubelet)
{
        return kubelet->restart || kubelet_left_down(kubelet) ||
               (pod_changes(a, "kube-apiserver") &&
                       (pods_unit_restarts(pods_unit(a, "etcd.service")) ||
                               pod_changes(a, "etcd")));
}

static bool pods_touched_by(const struct entry *e)
{
        return e->kind == SPEC_UNIT ? e->restart && streq(e->name, "etcd.service")
                                    : e->kind == SPEC_FILE && e->state == STATE_CHANGED &&
                                              has_prefix(e->path, MANIFESTS);
}

bool pods_change(struct agent *a, const struct entry *e, size_t n)
{
        struct entry *kubelet = pods_unit(a, "kubelet.service");
        bool any = false;
        for (size_t i = 0; i < n; i++)
                any |= pods_touched_by(&e[i]);
        if (!any || a->pods_ended || a->mode != APPLY_ALL || !agent_whole(a) || !kubelet ||
                !pods_end_together(a, kubelet))
                return false;
        a->pods_ended = true;
        kubelet->restart |= kubelet->unit.active; /* a stopped one is started anyway */
        return true;
}

void pods_stop(struct agent *a)
{
        const char *argv[5 + ARRAY_SIZE(order)] = { "sh", "-c", script, "pods" };
        struct error err CLEANUP(error_release) = { 0 };
        size_t n = 4;
        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                if (pod_changes(a, order[i]))
                        argv[n++] = order[i];
        if (n > 4 && tool(&a->session, argv, STOP_SECONDS, NULL, &err) < 0)
                journal(a, "static pods: %s",
                        err.message ? err.message : "they could not be stopped");
}
