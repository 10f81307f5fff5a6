/* Members of etcd leave: nobody who would take the quorum along, and one at a time. */
#include "cluster/etcd.h"
#include "cluster/reset.h"

#define ASK_SECONDS 20

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

static void failed(struct step *s, const char *what, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, EIO, EXIT_UNHEALTHY, "%s: %s", what, why ? why : "no answer");
        error_hint(&err, "slipway status says how etcd is; a member leaves only while most of them are well");
        step_done(s, &err);
}

/* ---- the quorum ---- */

struct quorum {
        struct step *step;
        size_t rest, well, waiting; /* members that stay, those of them that follow a leader, answers still to come */
};

static void decide(struct quorum *q)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (q->rest && q->well >= q->rest / 2 + 1) {
                step_doing(q->step, -1, "%zu of the %zu members that stay are well", q->well, q->rest);
                step_done(q->step, NULL);
                return;
        }
        error_set(&err, EBUSY, EXIT_UNHEALTHY, "etcd would lose its quorum: of the %zu members that stay, %zu %s well, and %zu are needed", q->rest, q->well,
                q->well == 1 ? "is" : "are", q->rest / 2 + 1);
        error_hint(&err, "mend the members that are not well first (slipway status says which)");
        step_done(q->step, &err);
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
        size_t n;
        if (!answer) {
                failed(s, "etcd has no quorum now", trouble);
                return;
        }
        struct etcd_peer *peers = etcd_peers(answer, site->arena, &n);
        struct quorum *q = arena_new(site->arena, struct quorum);
        *q = (struct quorum){ .step = s, .waiting = 1 };
        for (size_t i = 0; i < n; i++)
                q->rest += !peers[i].learner && !is_leaving(site, peers, n, &peers[i]);
        for (size_t i = 0; i < site->count; i++) {
                struct member *one = &site->members[i];
                if (one->leaving || !one->link || !etcd_peer_of(peers, n, one->node))
                        continue;
                q->waiting++;
                etcd_ask(one, ETCD_STATUS, ASK_SECONDS, on_state, q);
        }
        if (--q->waiting == 0)
                decide(q);
}

void step_etcd_quorum(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct member *m = asker(site);
        if (m) {
                etcd_ask(m, ETCD_MEMBERS, ASK_SECONDS, on_all_members, s);
                return;
        }
        error_set(&err, EHOSTUNREACH, EXIT_UNHEALTHY, "none of the etcd members that stay can be reached");
        error_hint(&err, "mend one of them first: slipway status");
        step_done(s, &err);
}

/* ---- one leaves ---- */

static void on_removed(struct member *who, json_t *answer, const char *trouble, void *arg)
{
        struct step *s = arg;
        struct member *m = s->arg;
        if (!answer) {
                failed(s, "it cannot be taken out of etcd", trouble);
                return;
        }
        step_changed(s, "removed etcd member %s", m->node->name);
        step_done(s, NULL);
}

static void on_members(struct member *who, json_t *answer, const char *trouble, void *arg)
{
        struct step *s = arg;
        struct member *m = s->arg;
        size_t n;
        char id[17];
        if (!answer) {
                failed(s, "etcd does not tell its members", trouble);
                return;
        }
        struct etcd_peer *peers = etcd_peers(answer, m->site->arena, &n);
        const struct etcd_peer *p = etcd_peer_of(peers, n, m->node);
        if (!p)
                step_kept(s);
        else
                etcd_ask(who, (const char *const[]){ "member", "remove", etcd_id(p->id, id), NULL }, ASK_SECONDS, on_removed, s);
}

void step_leave_etcd(struct step *s)
{
        struct member *m = s->arg, *who = asker(m->site);
        if (who)
                etcd_ask(who, ETCD_MEMBERS, ASK_SECONDS, on_members, s);
        else
                failed(s, "etcd cannot be asked", "no member that stays is connected");
}
