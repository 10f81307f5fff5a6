/* Removing nodes: which ones, and in which steps. All operations that remove nodes build their
 * steps here: up and remove-node for nodes that are no longer in the file, reset for the named
 * ones, down for all. What happens on the host is in agent/reset/reset.c. */
#include "cluster/leave/leave.h"
#include "cluster/services/cleanup.h"
#include "cluster/site/removed.h"

/* ---- choosing nodes ---- */

static size_t staying(const struct site *s, unsigned role)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += !s->members[i].plan.leaving && s->members[i].node->pool->roles & role;
        return n;
}

static int leave_no_such_node(struct site *s, const char *name, struct error *err)
{
        const char **names = arena_array(s->arena, const char *, s->count + 1);
        for (size_t i = 0; i < s->count; i++)
                names[i] = s->members[i].node->name;
        const char *near = nearest(name, names, s->count);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no node '%s'", s->cluster->name, name);
        return near ? error_hint(err, "did you mean %s?", near)
                    : error_hint(err, "'slipway status' lists its nodes");
}

/* The remaining nodes must still form a cluster. */
static int leave_check_rest(struct site *s, struct error *err)
{
        static const struct {
                unsigned role;
                const char *what;
        } needs[] = { { ROLE_CONTROL_PLANE, "control-plane node" }, { ROLE_ETCD, "etcd member" } };
        for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
                if (cluster_count(s->cluster, needs[i].role) && !staying(s, needs[i].role)) {
                        error_set(err, EINVAL, EXIT_USAGE, "cluster %s would be left with no %s",
                                s->cluster->name, needs[i].what);
                        return error_hint(
                                err, "reset the whole cluster: slipway reset without a node");
                }
        return 0;
}

static void leave_mark(struct member *m, unsigned how)
{
        m->plan.leaving = how;
        /* it is in the file, and its connection is required */
        m->seen.known = m->seen.answers = true;
}

int leave_choose(struct site *s, const struct strings *names, unsigned how, struct error *err)
{
        size_t count = 0;
        how |= LEAVE_YES;
        for (size_t i = 0; i < names->n; i++) {
                struct member *m = site_member(s, names->v[i]);
                if (!m)
                        return leave_no_such_node(s, names->v[i], err);
                count += !m->plan.leaving;
                leave_mark(m, how);
        }
        bool all = !names->n || count == s->count;
        for (size_t i = 0; all && i < s->count; i++)
                leave_mark(&s->members[i], how | LEAVE_ALL);
        return all ? 0 : leave_check_rest(s, err);
}

bool leave_all(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (!s->members[i].plan.leaving)
                        return false;
        return true;
}

/* ---- one node ---- */

struct leave_span leave_steps(struct plan *p, struct member *m, unsigned how)
{
        bool all = how & LEAVE_ALL, machine = how & LEAVE_MACHINE, anew = how & LEAVE_ANEW;
        /* not in the file: whether it is a member is decided by etcd's own list */
        bool removed = m->plan.fate == FATE_REMOVE;
        bool reset = m->seen.known && !machine && !anew && m->seen.answers;
        unsigned roles = m->node->pool->roles;
        const struct {
                enum plan_kind kind;
                bool wanted;
        } parts[] = {
                { PLAN_LEAVE_DRAIN, !all },
                { PLAN_MEMBERS, !all && roles & ROLE_CONTROL_PLANE && m->site->ops->members },
                { PLAN_API_LEAVE, !all && m->seen.answers && roles & ROLE_CONTROL_PLANE },
                { PLAN_ETCD_LEAVE, !all && (removed || roles & ROLE_ETCD) },
                { PLAN_DELETE_NODE, !all },
                { PLAN_DESTROY, m->seen.known && machine },
                { PLAN_RETIRE, anew },
                { PLAN_RESET, reset },
                { PLAN_GONE, !all && reset },
                { PLAN_UNRECORD,
                        !anew && records_find(&m->site->found.record, m->node->name) != NULL },
        };
        struct leave_span span = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                if (!parts[i].wanted)
                        continue;
                struct plan_step *one = plan_add(p, parts[i].kind, m);
                plan_after(one, span.last);
                span.first = span.first ? span.first : one;
                span.last = one;
        }
        return span;
}

void step_unrecord(struct step *s)
{
        member_unrecord(s->arg);
        step_done(s, NULL);
}

/* ---- all chosen nodes ---- */

static struct plan_step *leave_connect(struct plan *p, struct member *m, bool optional)
{
        m->plan.optional = optional;
        return plan_add(p, PLAN_CONNECT, m);
}

/* Queries the remaining etcd members that answer whether the quorum would survive. NULL: no etcd
 * member is removed. */
static struct plan_step *leave_quorum(struct site *s, struct plan *p)
{
        bool any = false;
        for (size_t i = 0; i < s->count; i++)
                any |= s->members[i].plan.leaving && s->members[i].node->pool->roles & ROLE_ETCD;
        if (!any)
                return NULL;
        struct plan_step *quorum = plan_add(p, PLAN_ETCD_QUORUM, NULL);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!m->plan.leaving && m->node->pool->roles & ROLE_ETCD)
                        plan_after(quorum, leave_connect(p, m, true));
        }
        return quorum;
}

/* What is outside goes before the first node does. */
static void leave_after_cleanup(struct plan *p, struct plan_step *s, const struct plan_step *last)
{
        for (struct plan_step *one = last ? p->first : NULL; one; one = one->next) {
                plan_after(s, one);
                if (one == last)
                        break;
        }
}

void leave_build(struct site *s)
{
        bool all = leave_all(s);
        struct plan *p = s->steps = arena_new(s->arena, struct plan);
        *p = (struct plan){ .arena = s->arena };
        if (all)
                cleanup_steps(s, p);
        struct plan_step *cleanup = p->last;
        struct plan_step *api = all ? NULL : plan_add(p, PLAN_API_OPTIONAL, NULL),
                         *quorum = all ? NULL : leave_quorum(s, p), *last = NULL;
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!m->plan.leaving)
                        continue;
                struct plan_step *connect =
                        all && m->plan.leaving & LEAVE_MACHINE ? NULL : leave_connect(p, m, false);
                struct leave_span span = leave_steps(p, m, m->plan.leaving);
                leave_after_cleanup(p, span.first, cleanup);
                plan_after(span.first, connect);
                plan_after(span.first, api);
                plan_after(span.first, quorum);
                if (all || !(m->node->pool->roles & ROLE_ETCD))
                        continue;
                plan_after(span.first, last); /* etcd changes one member at a time */
                last = span.last;
        }
}

int leave_end(struct site *s, struct error *err)
{
        if (!leave_all(s))
                return 0;
        bool machines = s->count && s->members[0].plan.leaving & LEAVE_MACHINE;
        site_record_clear(s);
        return machines ? s->ops->cleanup(&s->provider, err) : 0;
}
