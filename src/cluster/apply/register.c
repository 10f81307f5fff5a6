/* A running node without a Node object: it was deleted, or etcd was restored from an
 * older snapshot. The kubelet creates its Node only when it starts, and flanneld
 * and calico-node annotate it only then. */
#include "cluster/etcd/etcd.h"
#include "cluster/apply/roll.h"

#define OUTPUT_MAX (1 << 12)

static void on_restarted(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct step *s = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status != 0) {
                step_fail(s, status < 0 ? EPIPE : EIO, status < 0 ? EXIT_UNREACHABLE : EXIT_STEP,
                        "run it again: it continues where it stopped",
                        "the kubelet could not be started again: %.400s",
                        *line ? line : "the connection was cut");
                return;
        }
        step_changed(s, "restarted kubelet.service: the API did not know the node");
        step_done(s, NULL);
}

void step_register(struct step *s)
{
        struct member *m = s->arg;
        if (!member_cut(m, s))
                member_run(m, (const char *const[]){ "sh", "-c", REGISTER_SCRIPT, NULL }, NULL,
                        OUTPUT_MAX, on_restarted, s);
}
