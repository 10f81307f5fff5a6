#include "cluster/apply/readiness.h"
#include "kube/wait.h"

#define AGAIN_SECONDS 2

static bool readiness_worker(const struct node *n) { return n->pool->roles == ROLE_WORKER; }

static size_t readiness_workers(const struct cluster *c)
{
        size_t n = 0;
        for (size_t i = 0; i < c->node_count; i++)
                n += readiness_worker(&c->nodes[i]);
        return n;
}

size_t readiness_needed(const struct cluster *c)
{
        size_t all = readiness_workers(c), value = (size_t)c->readiness.value;
        size_t needed = c->readiness.type == READINESS_ALL       ? all
                        : c->readiness.type == READINESS_PERCENT ? (all * value + 99) / 100
                                                                 : value;
        return needed < all ? needed : all;
}

void readiness_begin(struct site *s)
{
        static const char *const verbs[] = { "up", "look", "scale", "remove-node" };
        bool may = false;
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
                may |= streq(s->run.verb, verbs[i]);
        if (!may || s->cluster->readiness.type == READINESS_ALL ||
                (s->identity.prefix && identity_rotating(&s->identity)))
                return;
        for (size_t i = 0; i < s->count; i++)
                s->members[i].plan.spare = readiness_worker(s->members[i].node);
}

int readiness_check(const struct site *s, struct error *err)
{
        const char *now = s->found.version;
        for (size_t i = 0; i < s->count && now; i++) {
                const struct member *m = &s->members[i];
                if (!m->run.missing || streq(now, s->cluster->kubernetes.text))
                        continue;
                error_set(err, EHOSTUNREACH, EXIT_UNREACHABLE,
                        "%s cannot be reached, and an upgrade must reach every node: %s",
                        m->node->name, m->run.missing);
                return error_hint(err,
                        "repair the node, or remove it with 'slipway remove-node %s'; nothing was changed",
                        m->node->name);
        }
        return 0;
}

/* ---- the steps "Ready" ---- */

/* The node is no longer waited for. A node that only ssh does not reach may still be Ready. */
static bool readiness_over(const struct member *m)
{
        return m->run.late || (m->run.missing && !(m->seen.object && node_ready(m->seen.object)));
}

struct tally {
        size_t ready, waiting;
};

static struct tally readiness_tally(const struct site *s)
{
        struct tally t = { 0 };
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                const struct step *step = m->plan.spare ? m->run.ready : NULL;
                if (!step)
                        continue;
                t.ready +=
                        (step->state == STEP_DONE || step->state == STEP_KEPT) && !m->run.lacking;
                t.waiting += step->state == STEP_WAITING ||
                             (step->state == STEP_RUNNING && !readiness_over(m));
        }
        return t;
}

static void readiness_end(struct member *m, const struct tally *t, size_t needed)
{
        struct step *s = m->run.ready;
        const char *why = m->run.missing ? m->run.missing : s->doing ? s->doing : "no answer yet";
        if (t->ready < needed) {
                step_fail(s, ETIMEDOUT, EXIT_UNHEALTHY,
                        "slipway status names the problems; slipway logs NODE kubelet says why",
                        "it is not Ready (%s), and %zu Ready workers are fewer than the %zu that readiness needs",
                        why, t->ready, needed);
                return;
        }
        m->run.lacking = arena_strdup(m->site->arena, why);
        step_changed(s, "warning: it is not Ready: %s", why);
        step_done(s, NULL);
}

void readiness_look(struct site *s)
{
        struct tally t = readiness_tally(s);
        for (size_t i = 0; i < s->count && !t.waiting; i++) {
                struct member *m = &s->members[i];
                if (m->plan.spare && m->run.ready && m->run.ready->state == STEP_RUNNING)
                        readiness_end(m, &t, readiness_needed(s->cluster));
        }
}

static void on_readiness_late(evutil_socket_t fd, short what, void *arg)
{
        struct step *s = arg;
        struct member *m = s->arg;
        m->run.late = true;
        readiness_look(m->site);
        /* others are still waited for; polls, because a skipped step calls nothing */
        if (s->state == STEP_RUNNING)
                step_deadline_call(s, AGAIN_SECONDS, on_readiness_late, s);
}

void readiness_back(struct member *m)
{
        m->run.back = true;
        if (m->run.ready && m->run.ready->state == STEP_RUNNING)
                step_skipped(m->run.ready);
}

void readiness_wait(struct step *s, const char *hint)
{
        struct member *m = s->arg;
        unsigned seconds = (unsigned)m->site->cluster->readiness.wait;
        if (m->plan.spare)
                step_deadline_call(s, seconds, on_readiness_late, s);
        else
                step_deadline(s, seconds, hint);
}
