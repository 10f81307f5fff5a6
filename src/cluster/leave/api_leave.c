/* A control-plane node that leaves and can be asked: its API server ends in order, while its etcd
 * is still a member, and takes itself out of the API's Service. One that goes with its machine
 * stays there until its Lease ends, and for a quarter of a minute pods are sent to nobody; as long
 * as that the others would wait for its controller manager. */
#include "base/pods.h"
#include "cluster/etcd/etcd.h"
#include "cluster/leave/leave.h"

#define OUTPUT_MAX (1 << 12)

static void on_api_leave_left(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct step *s = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status == 0 && !(out && has_prefix(out, "left"))) { /* there is none */
                step_unchanged(s);
                return;
        }
        if (status == 0)
                step_changed(s, "stopped the API server");
        else /* the node goes all the same, and the Lease ends by itself */
                step_changed(s,
                        "its API server did not stop (%.200s): pods may be sent to it for a quarter of a minute more",
                        *line ? line : "the connection was cut");
        step_done(s, NULL);
}

/* The kubelet first, or it would start it again. Whoever keeps the node after all has both started
 * by up. */
void step_api_leave(struct step *s)
{
        struct member *m = s->arg;
        static const char script[] = PODS_SCRIPT
                "systemctl stop kubelet.service || exit 1\n"
                "asking kube-controller-manager kube-scheduler\n"
                "end kube-apiserver; case $? in 0) echo left ;; 2) exit 1 ;; esac; exit 0\n";
        if (!member_reachable(m) || !m->site->found.live) {
                step_unchanged(s);
                return;
        }
        member_run(m, (const char *const[]){ "sh", "-c", script, NULL }, NULL, OUTPUT_MAX,
                on_api_leave_left, s);
}
