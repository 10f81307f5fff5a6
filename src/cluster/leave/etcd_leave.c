/* Removing etcd members: one at a time, and only if the quorum is kept. */
#include "cluster/etcd/etcd_member.h"
#include "cluster/leave/leave.h"

#define LEAVE_SECONDS 180

/* A member that stays and can be queried. */
static struct member *asker(struct site *s)
{
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!m->plan.leaving && member_reachable(m) && m->seen.said &&
                        m->node->pool->roles & ROLE_ETCD)
                        return m;
        }
        return NULL;
}

/* ---- the quorum ---- */

struct quorum {
        struct step *step;
        /* members that stay, those of them with a leader, and queries without an answer yet */
        size_t rest, healthy, waiting;
};

static void etcd_leave_decide(struct quorum *q)
{
        if (q->rest && q->healthy >= q->rest / 2 + 1) {
                step_doing(q->step, -1, "%zu of the %zu members that stay are healthy", q->healthy,
                        q->rest);
                step_done(q->step, NULL);
                return;
        }
        step_fail(q->step, EBUSY, EXIT_UNHEALTHY,
                "repair the unhealthy members first (slipway status shows them)",
                "etcd would lose its quorum: of the %zu members that stay, %zu %s healthy, and %zu are needed",
                q->rest, q->healthy, q->healthy == 1 ? "is" : "are", q->rest / 2 + 1);
}

static void on_etcd_leave_state(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct quorum *q = arg;
        struct etcd_state state;
        q->healthy += answer && etcd_state(answer, &state) && state.leader && !state.learner;
        if (--q->waiting == 0)
                etcd_leave_decide(q);
}

static bool is_leaving(
        const struct site *s, const struct etcd_peer *peers, size_t n, const struct etcd_peer *p)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.leaving && etcd_peer_of(peers, n, s->members[i].node) == p)
                        return true;
        return false;
}

static void on_all_members(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        if (!answer) {
                step_fail(s, EIO, EXIT_UNHEALTHY,
                        "slipway status shows the state of etcd; a member is removed only while most members are healthy",
                        "etcd has no quorum now: %s", trouble ? trouble : "no answer");
                return;
        }
        etcd_peers_read(site, answer);
        site->found.live = true; /* so members are removed properly */
        const struct etcd_peer *peers = site->found.peers;
        size_t n = site->found.peer_count;
        struct quorum *q = arena_new(site->arena, struct quorum);
        *q = (struct quorum){ .step = s, .waiting = 1 };
        for (size_t i = 0; i < n; i++)
                q->rest += !peers[i].learner && !is_leaving(site, peers, n, &peers[i]);
        for (size_t i = 0; i < site->count; i++) {
                struct member *one = &site->members[i];
                if (one->plan.leaving || !member_reachable(one) ||
                        !etcd_peer_of(peers, n, one->node))
                        continue;
                q->waiting++;
                etcd_ask(one, ETCD_STATUS, ETCD_ASK_SECONDS, on_etcd_leave_state, q);
        }
        if (--q->waiting == 0)
                etcd_leave_decide(q);
}

void step_etcd_quorum(struct step *s)
{
        struct site *site = s->arg;
        struct member *m = asker(site);
        step_deadline(s, LEAVE_SECONDS, "'slipway status' shows the state of etcd");
        if (m)
                etcd_ask(m, ETCD_MEMBERS, ETCD_ASK_SECONDS, on_all_members, s);
        else
                step_fail(s, EHOSTUNREACH, EXIT_UNHEALTHY,
                        "repair one of them first: 'slipway status' shows the problems",
                        "none of the etcd members that stay can be reached");
}

/* ---- removing one member ---- */

struct leaving {
        struct op op;
        struct member *member;
};

static void leave_ask(struct op *o);

static void on_etcd_leave_left(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct leaving *l = arg;
        l->member->run.left |= answer != NULL;
        if (op_over(&l->op))
                return;
        if (answer) {
                step_changed(l->op.step, "left etcd");
                op_done(&l->op, NULL);
        } else if (etcd_not_yet(trouble)) {
                etcd_later(&l->op, trouble, leave_ask);
        } else {
                etcd_member_fail(&l->op, "etcd refuses to remove its member", trouble);
        }
}

static void on_leave_list(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct leaving *l = arg;
        struct site *s = l->op.site;
        char id[17];
        if (op_over(&l->op))
                return;
        if (!answer) {
                etcd_member_fail(&l->op, "etcd does not say who its members are", trouble);
                return;
        }
        etcd_peers_read(s, answer);
        const struct etcd_peer *p =
                etcd_peer_of(s->found.peers, s->found.peer_count, l->member->node);
        if (p)
                etcd_ask(at, (const char *const[]){ "member", "remove", etcd_id(p->id, id), NULL },
                        ETCD_ASK_SECONDS, on_etcd_leave_left, l);
        else
                op_unchanged(&l->op);
}

static void leave_ask(struct op *o)
{
        etcd_ask_voter(o, ((struct leaving *)o)->member, on_leave_list);
}

void step_etcd_leave(struct step *s)
{
        struct member *m = s->arg;
        if (!m->site->found.live) {
                step_unchanged(s);
                return;
        }
        struct leaving *l = arena_new(m->site->arena, struct leaving);
        *l = (struct leaving){ .member = m };
        op_begin(&l->op, m->site, s);
        step_deadline(s, LEAVE_SECONDS,
                "'slipway etcd members' shows their state; run again when they are healthy");
        leave_ask(&l->op);
}
