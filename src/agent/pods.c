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
                if (a->entries[i].kind == SPEC_FILE && a->entries[i].state == STATE_CHANGED && !a->entries[i].over && streq(a->entries[i].path, path))
                        return true;
        return false;
}

static bool kubelet_restarts(const struct agent *a)
{
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT && streq(a->entries[i].name, "kubelet.service"))
                        return a->entries[i].restart;
        return false;
}

bool pods_change(const struct agent *a, const struct entry *e, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (e[i].kind == SPEC_FILE && e[i].state == STATE_CHANGED && has_prefix(e[i].path, MANIFESTS))
                        return a->mode == 0 && agent_whole(a) && kubelet_restarts(a);
        return false;
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
