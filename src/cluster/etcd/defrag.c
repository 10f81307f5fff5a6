/* Defragmentation. A member does not answer while it rewrites its file, so the members are
 * defragmented one after the other. */
#include "cluster/etcd/etcd.h"

#define PATIENCE 1800 /* seconds for one member */

static void on_over(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct step *s = arg;
        struct error err CLEANUP(error_release) = { 0 };
        /* these commands print no JSON on success */
        bool good = !trouble || has_prefix(trouble, "etcdctl gave no answer (status 0)");
        if (!good) {
                error_set(&err, EIO, EXIT_STEP, "%s", trouble);
                error_hint(&err, "slipway etcd members shows the state of etcd");
        }
        step_done(s, good ? NULL : &err);
}

static void step_defrag(struct step *s)
{
        s->disrupts = "this member does not answer while it is defragmented";
        etcd_ask(s->arg, (const char *const[]){ "defrag", NULL }, PATIENCE, on_over, s);
}

static void step_disarm(struct step *s)
{
        etcd_ask(s->arg, (const char *const[]){ "alarm", "disarm", NULL }, 30, on_over, s);
}

static struct step *one(struct etcd_seen *n, struct step *before)
{
        struct run *r = &n->view->site->run;
        struct step *connect =
                run_step(r, "connect", n->member->node->name, step_connect, n->member);
        struct step *defrag =
                run_step(r, "defragment", n->member->node->name, step_defrag, n->member);
        step_after(defrag, connect);
        step_after(defrag, before);
        return defrag;
}

void defrag_steps(struct etcd_view *v)
{
        struct step *last = NULL;
        struct etcd_seen *leader = NULL;
        bool full = false;
        for (size_t i = 0; i < v->count; i++) {
                struct etcd_seen *n = &v->seen[i];
                if (!n->answered)
                        continue;
                for (size_t k = 0; k < json_array_size(n->state.errors); k++) {
                        const char *alarm =
                                etcd_alarm(json_string_value(json_array_get(n->state.errors, k)));
                        full |= alarm && streq(alarm, "NOSPACE");
                }
                if (n->state.leader == n->state.id)
                        leader = n;
                else
                        last = one(n, last);
        }
        if (!leader)
                return;
        last = one(leader, last);
        if (full)
                step_after(
                        run_step(&v->site->run, "disarm", NULL, step_disarm, leader->member), last);
}
