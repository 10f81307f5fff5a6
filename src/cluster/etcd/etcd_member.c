/* Adding members to a running etcd: as a learner that catches up and is promoted.
 * Removing one: etcd_leave.c. */
#include "cluster/etcd/etcd_member.h"

#define WAIT_SECONDS 900
#define JOIN_SECONDS 180
#define LOOK_MS      500
#define LATER_MS     1000

/* ---- choosing a voter ---- */

struct member *etcd_voter(const struct member *m)
{
        struct site *s = m->site;
        for (size_t pass = 0; pass < 2; pass++) { /* members that stay come first */
                for (size_t i = 0; i < (pass ? s->found.removed_count : s->count); i++) {
                        struct member *one = pass ? s->found.removed[i] : &s->members[i];
                        const struct etcd_peer *p =
                                one != m && member_reachable(one) && !one->run.left &&
                                                !one->plan.leaving
                                        ? etcd_peer_of(
                                                  s->found.peers, s->found.peer_count, one->node)
                                        : NULL;
                        if (p && !p->learner && (member_has_etcd(one) || one->plan.joins))
                                return one;
                }
        }
        return NULL;
}

void etcd_member_fail(struct op *o, const char *what, const char *why)
{
        op_fail(o, EIO, EXIT_STEP,
                "'slipway etcd members' shows their state; run again when they are healthy",
                "%s: %s", what, why ? why : "no voting member answers");
}

void etcd_ask_voter(struct op *o, const struct member *m, etcd_fn fn)
{
        struct member *at = etcd_voter(m);
        if (at)
                etcd_ask(at, ETCD_MEMBERS, ETCD_ASK_SECONDS, fn, o);
        else
                etcd_member_fail(o, "no etcd member can be asked", NULL);
}

void etcd_peers_read(struct site *s, const json_t *answer)
{
        s->found.peers = etcd_peers(answer, s->arena, &s->found.peer_count);
}

bool etcd_not_yet(const char *trouble)
{
        return strstr(trouble, "unhealthy cluster") ||
               strstr(trouble, "not enough started members");
}

void etcd_later(struct op *o, const char *why, void (*fn)(struct op *o))
{
        step_doing(o->step, -1, "etcd does not change its members yet: %s", why);
        op_later(o, LATER_MS, fn);
}

/* ---- join ---- */

struct joining {
        struct op op;
        struct member *member;
};

static void join_ask(struct op *o);

/* All current members by URL, which etcd compares. A member that has not started has no name yet
 * and gets the one in the file. */
static const char *etcd_member_initial_cluster(const struct member *m)
{
        struct site *s = m->site;
        struct str out CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < s->found.peer_count; i++) {
                const struct etcd_peer *p = &s->found.peers[i];
                const char *name = p->name;
                size_t k = 0;
                for (const struct node *n; !*name && (n = cluster_next(s->cluster, ROLE_ETCD, &k));)
                        name = etcd_peer_of(p, 1, n) ? n->name : name;
                str_addf(&out, "%s%s=%s", out.len ? "," : "", *name ? name : "unknown", p->peer);
        }
        return arena_strdup(s->arena, str_text(&out));
}

static void joined(struct joining *j)
{
        j->member->plan.etcd_initial = etcd_member_initial_cluster(j->member);
        member_forget_spec(j->member);
        op_done(&j->op, NULL);
}

/* etcd's answer to a change of its members. */
static void changed(struct joining *j, const json_t *answer, const char *trouble,
        const char *refused, const char *did)
{
        if (op_over(&j->op))
                return;
        if (!answer && etcd_not_yet(trouble)) {
                etcd_later(&j->op, trouble, join_ask);
                return;
        }
        if (!answer) {
                etcd_member_fail(&j->op, refused, trouble);
                return;
        }
        step_changed(j->op.step, "%s", did);
        join_ask(&j->op);
}

static void on_added(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        changed(arg, answer, trouble, "etcd refuses to add it as a learner",
                "added to etcd as a learner");
}

static void on_stale_removed(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        changed(arg, answer, trouble, "etcd refuses to remove its lost member",
                "removed its lost member from etcd");
}

/* The machine was off and has its data: the member continues with it, if etcd still lists it. */
static void started(struct joining *j, const struct etcd_peer *p)
{
        struct member *m = j->member;
        struct error err CLEANUP(error_release) = { 0 };
        m->plan.joins = false;
        if (p) {
                op_unchanged(&j->op);
                return;
        }
        error_set(&err, EEXIST, EXIT_STEP, "it has etcd data but is no longer an etcd member");
        error_hint(&err, "run 'slipway reset %s', then 'slipway up'", m->node->name);
        op_done(&j->op, &err);
}

/* The member list is read again before each change, to see what a killed run has done. */
static void on_join_list(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct joining *j = arg;
        struct member *m = j->member;
        struct arena *a = m->site->arena;
        if (op_over(&j->op))
                return;
        if (!answer) {
                etcd_member_fail(&j->op, "etcd does not say who its members are", trouble);
                return;
        }
        etcd_peers_read(m->site, answer);
        const struct etcd_peer *p =
                etcd_peer_of(m->site->found.peers, m->site->found.peer_count, m->node);
        if (member_has_etcd(m)) {
                started(j, p);
        } else if (p && p->learner && !*p->client) {
                joined(j);
        } else if (p) {
                char id[17];
                const char *const words[] = { "member", "remove",
                        arena_strdup(a, etcd_id(p->id, id)), NULL };
                etcd_ask(at, words, ETCD_ASK_SECONDS, on_stale_removed, j);
        } else {
                char *url CLEANUP(free_p) = etcd_peer_url(m->node);
                const char *const words[] = { "member", "add", m->node->name, "--learner",
                        arena_printf(a, "--peer-urls=%s", url), NULL };
                etcd_ask(at, words, ETCD_ASK_SECONDS, on_added, j);
        }
}

static void join_ask(struct op *o)
{
        etcd_ask_voter(o, ((struct joining *)o)->member, on_join_list);
}

void step_etcd_join(struct step *s)
{
        struct member *m = s->arg;
        struct joining *j = arena_new(m->site->arena, struct joining);
        if (member_cut(m, s))
                return;
        *j = (struct joining){ .member = m };
        op_begin(&j->op, m->site, s);
        /* a member is added only while its node can be reached to start it */
        op_wait(&j->op, m, op_cut);
        step_deadline(s, JOIN_SECONDS,
                "'slipway etcd members' shows their state; run again when they are healthy");
        join_ask(&j->op);
}

/* ---- promote ---- */

struct promoting {
        struct op op;
        struct member *member;
};

static void promote_ask(struct op *o);

static void promote_later(struct promoting *p, const char *why)
{
        step_doing(p->op.step, -1, "not promoted yet: %s", why);
        op_later(&p->op, LOOK_MS, promote_ask);
}

static void on_promoted(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct promoting *p = arg;
        if (op_over(&p->op))
                return;
        if (answer)
                promote_ask(&p->op); /* and checks the result */
        else
                promote_later(p, trouble);
}

static void on_promote_list(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct promoting *q = arg;
        struct site *s = q->op.site;
        char id[17];
        if (op_over(&q->op))
                return;
        if (!answer) {
                promote_later(q, trouble);
                return;
        }
        etcd_peers_read(s, answer);
        const struct etcd_peer *p =
                etcd_peer_of(s->found.peers, s->found.peer_count, q->member->node);
        if (p && !p->learner) {
                op_done(&q->op, NULL);
        } else if (!p || !*p->client) {
                promote_later(q, "it has not started");
        } else {
                const char *const words[] = { "member", "promote",
                        arena_strdup(s->arena, etcd_id(p->id, id)), NULL };
                etcd_ask(at, words, ETCD_ASK_SECONDS, on_promoted, q);
        }
}

static void promote_ask(struct op *o)
{
        etcd_ask_voter(o, ((struct promoting *)o)->member, on_promote_list);
}

void step_etcd_promote(struct step *s)
{
        struct member *m = s->arg;
        struct promoting *p = arena_new(m->site->arena, struct promoting);
        *p = (struct promoting){ .member = m };
        op_begin(&p->op, m->site, s);
        step_deadline(s, WAIT_SECONDS, "'slipway logs NODE etcd' says why it does not catch up");
        promote_ask(&p->op);
}
