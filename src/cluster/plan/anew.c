#include "cluster/plan/anew.h"
#include "base/print.h"
#include "cluster/etcd/etcd.h"
#include "cluster/site/removed.h"

static bool anew_wanted(const struct member *m)
{
        return m->machine && m->machine->outdated && m->site->ops->retire &&
               m->machine->state == MACHINE_RUNNING;
}

bool anew_any(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (anew_wanted(&s->members[i]))
                        return true;
        return false;
}

/* What differs on it goes with it. */
void anew_decide(struct member *m)
{
        if (!anew_wanted(m) || !m->run.connect || m->run.missing)
                return;
        m->plan.fate = FATE_REPLACE;
        m->plan.change_count = 0;
}

/* ---- refusals ---- */

static const struct member *anew_first(const struct site *s, unsigned roles)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.fate == FATE_REPLACE &&
                        s->members[i].node->pool->roles & roles)
                        return &s->members[i];
        return NULL;
}

static int anew_refuse(struct error *err, int code, const struct member *m, const char *why)
{
        error_set(err, EBUSY, code, "%s must be replaced (%s), %s", m->node->name,
                m->machine->outdated, why);
        return -err->code;
}

/* The only one has nobody to get the cluster's data from. */
static int anew_check_alone(const struct site *s, struct error *err)
{
        static const struct {
                unsigned role;
                const char *what;
        } rows[] = { { ROLE_ETCD, "but it is the only etcd member: its data would be lost" },
                { ROLE_CONTROL_PLANE, "but it is the only control-plane node" } };
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct member *m = anew_first(s, rows[i].role);
                if (!m || cluster_count(s->cluster, rows[i].role) > 1)
                        continue;
                anew_refuse(err, EXIT_PREFLIGHT, m, rows[i].what);
                return error_hint(err,
                        "restore the previous value, or add control-plane nodes first and change it then; nothing was changed");
        }
        return 0;
}

/* A member that is not healthy, and that this run does not bring back before. */
static int anew_check_etcd(const struct site *s, struct error *err)
{
        const struct member *first = anew_first(s, ROLE_ETCD);
        for (size_t i = 0; first && i < s->count; i++) {
                const struct member *m = &s->members[i];
                const struct etcd_peer *p =
                        etcd_peer_of(s->found.peers, s->found.peer_count, m->node);
                bool comes = m->plan.fate == FATE_MAKE || m->plan.fate == FATE_INSTALL;
                if (!p || p->learner || m->seen.etcd_healthy || comes)
                        continue;
                anew_refuse(err, EXIT_PREFLIGHT, first,
                        arena_printf(s->arena, "but the etcd member on %s is not healthy",
                                m->node->name));
                return error_hint(
                        err, "'slipway status' says why; repair it first; nothing was changed");
        }
        return 0;
}

/* A first run was interrupted before etcd began: there is nothing to lose yet. */
static bool anew_nothing_yet(const struct site *s)
{
        bool data = s->found.live || site_existed(s);
        for (size_t i = 0; i < s->count; i++)
                data |= member_has_etcd(&s->members[i]);
        return !data;
}

int anew_check(const struct site *s, struct error *err)
{
        const struct member *m = anew_first(s, ~0U);
        const char *now = s->found.version;
        if (!m || anew_nothing_yet(s))
                return 0;
        if (!s->found.live || !s->found.api_up) {
                anew_refuse(err, EXIT_UNHEALTHY, m,
                        s->found.live ? "but the API does not answer" : "but etcd does not answer");
                return error_hint(err, "'slipway status' says why; nothing was changed");
        }
        if (now && !streq(now, s->cluster->kubernetes.text)) {
                anew_refuse(err, EXIT_PREFLIGHT, m, "and the version of Kubernetes changes too");
                return error_hint(err,
                        "make one change after the other: put one of the two values back, run, and change it then; nothing was changed");
        }
        int r = anew_check_alone(s, err);
        return r == 0 ? anew_check_etcd(s, err) : r;
}

/* ---- words ---- */

void anew_words(const struct member *m, struct str *out)
{
        text_addf(out,
                "rolling replacement: %smake its machine anew (%s) with the same address, then install everything",
                m->seen.object ? "drain it, " : "", m->machine->outdated);
}
