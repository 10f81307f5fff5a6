/* Members of etcd leave: nobody who would take the quorum along, and one at a time. */
#include <event2/event.h>

#include "cluster/etcd_member.h"
#include "cluster/reset.h"
#include "cluster/roll.h"

#define LEAVE_SECONDS 180

/* One that stays and can be asked. */
static struct member *asker(struct site *s)
{
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!m->leaving && m->link && m->said && m->node->pool->roles & ROLE_ETCD)
                        return m;
        }
        return NULL;
}

/* ---- the quorum ---- */

struct quorum {
        struct step *step;
        size_t rest, well, waiting; /* members that stay, those of them that follow a leader, answers still to come */
};

static void decide(struct quorum *q)
{
        if (q->rest && q->well >= q->rest / 2 + 1) {
                step_doing(q->step, -1, "%zu of the %zu members that stay are well", q->well, q->rest);
                step_done(q->step, NULL);
                return;
        }
        step_fail(q->step, EBUSY, EXIT_UNHEALTHY, "mend the members that are not well first (slipway status says which)",
                "etcd would lose its quorum: of the %zu members that stay, %zu %s well, and %zu are needed", q->rest, q->well, q->well == 1 ? "is" : "are",
                q->rest / 2 + 1);
}

static void on_state(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct quorum *q = arg;
        struct etcd_state state;
        q->well += answer && etcd_state(answer, &state) && state.leader && !state.learner;
        if (--q->waiting == 0)
                decide(q);
}

static bool is_leaving(const struct site *s, const struct etcd_peer *peers, size_t n, const struct etcd_peer *p)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].leaving && etcd_peer_of(peers, n, s->members[i].node) == p)
                        return true;
        return false;
}

static void on_all_members(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        if (!answer) {
                step_fail(s, EIO, EXIT_UNHEALTHY, "slipway status says how etcd is; a member leaves only while most of them are well",
                        "etcd has no quorum now: %s", trouble ? trouble : "no answer");
                return;
        }
        etcd_peers_read(site, answer);
        site->live = true; /* so who leaves takes its leave */
        const struct etcd_peer *peers = site->peers;
        size_t n = site->peer_count;
        struct quorum *q = arena_new(site->arena, struct quorum);
        *q = (struct quorum){ .step = s, .waiting = 1 };
        for (size_t i = 0; i < n; i++)
                q->rest += !peers[i].learner && !is_leaving(site, peers, n, &peers[i]);
        for (size_t i = 0; i < site->count; i++) {
                struct member *one = &site->members[i];
                if (one->leaving || !one->link || !etcd_peer_of(peers, n, one->node))
                        continue;
                q->waiting++;
                etcd_ask(one, ETCD_STATUS, ETCD_ASK_SECONDS, on_state, q);
        }
        if (--q->waiting == 0)
                decide(q);
}

void step_etcd_quorum(struct step *s)
{
        struct site *site = s->arg;
        struct member *m = asker(site);
        if (m)
                etcd_ask(m, ETCD_MEMBERS, ETCD_ASK_SECONDS, on_all_members, s);
        else
                step_fail(s, EHOSTUNREACH, EXIT_UNHEALTHY, "mend one of them first: slipway status", "none of the etcd members that stay can be reached");
}

/* ---- one leaves ---- */

static void leave_ask(struct member *m);

static void on_leave_time(evutil_socket_t fd, short what, void *arg)
{
        struct member *m = arg;
        if (m->user && m->user->state == STEP_RUNNING)
                leave_ask(m);
}

static void on_left(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct member *m = arg;
        if (!answer && etcd_not_yet(trouble)) {
                etcd_later(m, trouble, on_leave_time);
                return;
        }
        struct step *s = TAKE(m->user);
        m->left = answer != NULL;
        if (answer) {
                step_changed(s, "left etcd");
                step_done(s, NULL);
        } else {
                etcd_member_fail(s, "etcd does not let it go", trouble);
        }
}

static void on_leave_list(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct member *m = arg;
        char id[17];
        if (!answer) {
                etcd_member_fail(TAKE(m->user), "etcd does not say who its members are", trouble);
                return;
        }
        etcd_peers_read(m->site, answer);
        const struct etcd_peer *p = etcd_peer_of(m->site->peers, m->site->peer_count, m->node);
        if (p)
                etcd_ask(at, (const char *const[]){ "member", "remove", etcd_id(p->id, id), NULL }, ETCD_ASK_SECONDS, on_left, m);
        else
                step_kept(TAKE(m->user));
}

static void leave_ask(struct member *m)
{
        struct member *at = etcd_voter(m);
        if (at)
                etcd_ask(at, ETCD_MEMBERS, ETCD_ASK_SECONDS, on_leave_list, m);
        else
                etcd_member_fail(TAKE(m->user), "no etcd member can be asked", NULL);
}

void step_etcd_leave(struct step *s)
{
        struct member *m = s->arg;
        if (!m->site->live) {
                step_kept(s);
                return;
        }
        m->user = s;
        step_deadline(s, LEAVE_SECONDS, "'slipway etcd members' says how they are; run again when they are well");
        leave_ask(m);
}
