/* Stops the API server of a removed control-plane node that can be reached, while its etcd is still
 * a member, so that it deletes itself from the API's Service. Otherwise it stays there until its
 * Lease expires, and for 15 seconds connections of pods fail; the other controller managers would
 * wait as long for the leader's lease. */
#include "base/pods.h"
#include "cluster/etcd/etcd.h"
#include "cluster/leave/leave.h"

#define OUTPUT_MAX (1 << 12)

/* ---- the provider's balancer ---- */

static void on_members_set(struct error *err, void *arg)
{
        struct step *s = arg;
        const struct member *m = s->arg;
        if (!err)
                step_changed(s, "the load balancer no longer sends to %s", m->node->name);
        step_done(s, err);
}

/* Nodes that leave after this one still serve. */
static void members_set(struct site *site, void (*fn)(struct error *err, void *arg), void *arg)
{
        size_t n = 0;
        const struct node **nodes = arena_array(
                site->arena, const struct node *, site->count + site->found.removed_count + 1);
        for (size_t i = 0; i < site->count + site->found.removed_count; i++) {
                const struct member *one =
                        i < site->count ? &site->members[i] : site->found.removed[i - site->count];
                if (one->node->pool->roles & ROLE_CONTROL_PLANE && !one->run.unbalanced &&
                        one->node->ip[0].family)
                        nodes[n++] = one->node;
        }
        site->ops->members(&site->provider, nodes, n, fn, arg);
}

void step_members(struct step *s)
{
        struct member *m = s->arg;
        m->run.unbalanced = true;
        members_set(m->site, on_members_set, s);
}

static void on_members_back(struct error *err, void *arg)
{
        struct step *s = arg;
        const struct member *m = s->arg;
        if (!err)
                step_changed(s, "the load balancer sends to %s again", m->node->name);
        step_done(s, err);
}

/* Before it serves: the balancer itself looks whether it does. */
void step_members_back(struct step *s)
{
        struct member *m = s->arg;
        m->run.unbalanced = false;
        members_set(m->site, on_members_back, s);
}

/* ---- its API server ---- */

static void on_api_leave_left(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct step *s = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        /* there is no API server on this node */
        if (status == 0 && !(out && has_prefix(out, "left"))) {
                step_unchanged(s);
                return;
        }
        if (status == 0)
                step_changed(s, "stopped the API server");
        else
                /* the node is removed anyway, and the Lease expires by itself */
                step_changed(s,
                        "its API server did not stop (%.200s): connections of pods to the API may fail for 15 seconds",
                        *line ? line : "the connection was cut");
        step_done(s, NULL);
}

/* The kubelet stops first, or it would restart the API server. If the node is kept after all,
 * `up` starts both. */
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
