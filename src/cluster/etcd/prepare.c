#include "cluster/etcd/prepare.h"

static int etcd_no_quorum(const struct etcd_view *v, const char *what, struct error *err)
{
        size_t answered = 0;
        for (size_t i = 0; i < v->count; i++)
                answered += v->seen[i].answered;
        error_set(err, EIO, EXIT_UNHEALTHY,
                "%s: etcd has no quorum (%zu of %zu members answer, and none can read through it)",
                what, answered, v->peer_count ? v->peer_count : v->count);
        return error_hint(err,
                "slipway etcd members shows details; if the other members are lost for good, slipway etcd recover rebuilds it");
}

/* ---- snapshot ---- */

/* A member that is up to date, if possible not the leader. */
static const struct etcd_seen *snapshot_member(const struct etcd_view *v)
{
        const struct etcd_seen *best = NULL;
        for (size_t i = 0; i < v->count; i++) {
                const struct etcd_seen *n = &v->seen[i];
                if (!n->answered || !n->state.leader || n->state.learner)
                        continue;
                bool leads = n->state.id == n->state.leader;
                if (!best || (best->state.id == best->state.leader && !leads) ||
                        (!leads && n->state.applied > best->state.applied))
                        best = n;
        }
        return best;
}

int snapshot_prepare(struct snapshot *s, struct site *site, struct etcd_view *v, const char *dir,
        const char *to, struct error *err)
{
        int r = etcd_look(site, v, err);
        const struct etcd_seen *from = r == 0 ? snapshot_member(v) : NULL;
        if (r < 0 || !from || !v->quorum)
                return r < 0 ? r : etcd_no_quorum(v, "no snapshot can be taken", err);
        r = snapshot_name(s, site, dir, to, err);
        s->expected = from->state.size;
        s->version = from->state.version;
        return r < 0 ? r : snapshot_room(s, err);
}

void snapshot_steps(struct snapshot *s, const struct etcd_view *v)
{
        struct run *run = &v->site->run;
        struct member *from = snapshot_member(v)->member;
        struct step *connect = run_step(run, "connect", from->node->name, step_connect, from);
        step_after(run_step(run, "snapshot", NULL, step_snapshot, s), connect);
}

/* ---- defragmentation ---- */

int defrag_prepare(struct site *site, struct etcd_view *v, struct error *err)
{
        int r = etcd_look(site, v, err);
        if (r == 0 && !v->quorum)
                r = etcd_no_quorum(v, "etcd is not defragmented", err);
        for (size_t i = 0; r == 0 && i < v->count; i++)
                if (!v->seen[i].answered) {
                        error_set(err, EIO, EXIT_UNHEALTHY,
                                "etcd is not defragmented: the member on %s does not answer, and while another member is busy, the quorum could be lost",
                                v->seen[i].member->node->name);
                        r = error_hint(err, "slipway up brings it back");
                }
        return r;
}
