/* Members of an etcd that lives: one comes as a learner, catches up and is promoted. Leaving is etcd_leave.c. */
#include <event2/event.h>

#include "cluster/etcd_member.h"
#include "cluster/roll.h"

#define WAIT_SECONDS 900
#define JOIN_SECONDS 180
#define LOOK_MS      500

/* ---- asking those that vote ---- */

struct member *etcd_voter(const struct member *m)
{
        struct site *s = m->site;
        for (size_t pass = 0; pass < 2; pass++) { /* those who stay first */
                for (size_t i = 0; i < (pass ? s->gone_count : s->count); i++) {
                        struct member *one = pass ? s->gone[i] : &s->members[i];
                        const struct etcd_peer *p =
                                one != m && one->link && !one->left && !one->leaving ? etcd_peer_of(s->peers, s->peer_count, one->node) : NULL;
                        if (p && !p->learner && (member_has_etcd(one) || one->joins))
                                return one;
                }
        }
        return NULL;
}

void etcd_member_fail(struct step *s, const char *what, const char *why)
{
        step_fail(s, EIO, EXIT_STEP, "'slipway etcd members' says how they are; run again when they are well", "%s: %s", what,
                why ? why : "none of those that have a vote answers");
}

void etcd_peers_read(struct site *s, const json_t *answer) { s->peers = etcd_peers(answer, s->arena, &s->peer_count); }

bool etcd_not_yet(const char *trouble) { return strstr(trouble, "unhealthy cluster") || strstr(trouble, "not enough started members"); }

void etcd_later(struct member *m, const char *why, void (*fn)(evutil_socket_t fd, short what, void *arg))
{
        static const struct timeval second = { .tv_sec = 1 };
        step_doing(m->user, -1, "etcd does not change its members yet: %s", why);
        event_base_once(m->site->base, -1, EV_TIMEOUT, fn, m, &second);
}

/* ---- join ---- */

static void join_ask(struct member *m);

static void on_join_time(evutil_socket_t fd, short what, void *arg)
{
        struct member *m = arg;
        if (m->user && m->user->state == STEP_RUNNING)
                join_ask(m);
}

/* All that are there now, by URL: etcd compares. One that has not started yet has no name, so it is called as the file calls it. */
static const char *initial_cluster(const struct member *m)
{
        struct site *s = m->site;
        struct str out CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < s->peer_count; i++) {
                const struct etcd_peer *p = &s->peers[i];
                const char *name = p->name;
                size_t k = 0;
                for (const struct node *n; !*name && (n = cluster_next(s->cluster, ROLE_ETCD, &k));)
                        name = etcd_peer_of(p, 1, n) ? n->name : name;
                str_addf(&out, "%s%s=%s", out.len ? "," : "", *name ? name : "unknown", p->peer);
        }
        return arena_strdup(s->arena, str_text(&out));
}

static void joined(struct member *m)
{
        struct step *s = m->user;
        m->user = NULL;
        m->etcd_initial = initial_cluster(m);
        member_forget_spec(m);
        step_done(s, NULL);
}

/* What etcd said to a change of its members. */
static void changed(struct member *m, const json_t *answer, const char *trouble, const char *refused, const char *did)
{
        struct step *s = m->user;
        if (!answer && etcd_not_yet(trouble)) {
                etcd_later(m, trouble, on_join_time);
                return;
        }
        if (!answer) {
                m->user = NULL;
                etcd_member_fail(s, refused, trouble);
                return;
        }
        step_changed(s, "%s", did);
        join_ask(m);
}

static void on_added(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        changed(arg, answer, trouble, "etcd does not take it as a learner", "added to etcd as a learner");
}

static void on_stale_removed(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        changed(arg, answer, trouble, "etcd does not let its lost member go", "removed its lost member from etcd");
}

/* Its machine was off, and has its data: it goes on where it was, if it still may. */
static void started(struct member *m, const struct etcd_peer *p)
{
        struct step *s = m->user;
        struct error err CLEANUP(error_release) = { 0 };
        m->user = NULL;
        m->joins = false;
        if (p) {
                step_kept(s);
                return;
        }
        error_set(&err, EEXIST, EXIT_STEP, "it has data of etcd and is no member of it any more");
        error_hint(&err, "run 'slipway reset %s', then 'slipway up'", m->node->name);
        step_done(s, &err);
}

/* The list is asked for anew before each move: what a killed run did is seen, not assumed. */
static void on_join_list(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct member *m = arg;
        struct step *s = m->user;
        struct arena *a = m->site->arena;
        if (!answer) {
                m->user = NULL;
                etcd_member_fail(s, "etcd does not say who its members are", trouble);
                return;
        }
        etcd_peers_read(m->site, answer);
        const struct etcd_peer *p = etcd_peer_of(m->site->peers, m->site->peer_count, m->node);
        if (member_has_etcd(m)) {
                started(m, p);
        } else if (p && p->learner && !*p->client) {
                joined(m);
        } else if (p) {
                char id[17];
                const char *const words[] = { "member", "remove", arena_strdup(a, etcd_id(p->id, id)), NULL };
                etcd_ask(at, words, ETCD_ASK_SECONDS, on_stale_removed, m);
        } else {
                char *url CLEANUP(free_p) = etcd_peer_url(m->node);
                const char *const words[] = { "member", "add", m->node->name, "--learner", arena_printf(a, "--peer-urls=%s", url), NULL };
                etcd_ask(at, words, ETCD_ASK_SECONDS, on_added, m);
        }
}

static void join_ask(struct member *m)
{
        struct member *at = etcd_voter(m);
        struct step *s = m->user;
        if (at) {
                etcd_ask(at, ETCD_MEMBERS, ETCD_ASK_SECONDS, on_join_list, m);
                return;
        }
        m->user = NULL;
        etcd_member_fail(s, "no etcd member can be asked", NULL);
}

void step_etcd_join(struct step *s)
{
        struct member *m = s->arg;
        m->user = s;
        step_deadline(s, JOIN_SECONDS, "'slipway etcd members' says how they are; run again when they are well");
        join_ask(m);
}

/* ---- promote ---- */

static void promote_ask(struct member *m);

static void on_timer(evutil_socket_t fd, short what, void *arg) { promote_ask(arg); }

static void promote_later(struct member *m, const char *why)
{
        if (m->promote->state != STEP_RUNNING)
                return;
        step_doing(m->promote, -1, "not promoted yet: %s", why);
        if (m->timer)
                event_free(m->timer);
        m->timer = evtimer_new(m->site->base, on_timer, m);
        event_add(m->timer, &(struct timeval){ .tv_usec = LOOK_MS * 1000 });
}

static void on_promoted(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct member *m = arg;
        if (answer)
                promote_ask(m); /* and look that it is so */
        else
                promote_later(m, trouble);
}

static void on_promote_list(struct member *at, json_t *answer, const char *trouble, void *arg)
{
        struct member *m = arg;
        char id[17];
        if (m->promote->state != STEP_RUNNING)
                return;
        if (!answer) {
                promote_later(m, trouble);
                return;
        }
        etcd_peers_read(m->site, answer);
        const struct etcd_peer *p = etcd_peer_of(m->site->peers, m->site->peer_count, m->node);
        if (p && !p->learner) {
                if (m->timer)
                        event_free(m->timer);
                m->timer = NULL;
                step_done(m->promote, NULL);
        } else if (!p || !*p->client) {
                promote_later(m, "it has not started");
        } else {
                const char *const words[] = { "member", "promote", arena_strdup(m->site->arena, etcd_id(p->id, id)), NULL };
                etcd_ask(at, words, ETCD_ASK_SECONDS, on_promoted, m);
        }
}

static void promote_ask(struct member *m)
{
        struct member *at = etcd_voter(m);
        if (at)
                etcd_ask(at, ETCD_MEMBERS, ETCD_ASK_SECONDS, on_promote_list, m);
        else
                etcd_member_fail(m->promote, "no etcd member can be asked", NULL);
}

void step_etcd_promote(struct step *s)
{
        struct member *m = s->arg;
        step_deadline(s, WAIT_SECONDS, "'slipway logs NODE etcd' says why it does not catch up");
        m->promote = s;
        promote_ask(m);
}
