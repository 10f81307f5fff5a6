/* up: what is, what is wanted, the plan between them, and the plan done.
 *
 * A cluster that is yet to be has no join order: every node is applied as soon as it answers and the artifacts are here; only what truly waits for the API waits for
 * it. One that lives is changed with care: etcd members come one after another, control-plane nodes change one after another, workers that must be drained a few
 * at a time, all others at once. */
#include "cluster/keep.h"
#include "cluster/outsiders.h"
#include "cluster/reset.h"
#include "cluster/roll.h"
#include "cluster/upgrade.h"
#include "kube/drain.h"

/* ---- before the plan: nothing changes ---- */

void up_steps(struct site *s)
{
        struct run *r = &s->run;
        s->identity.holding = true; /* until the plan is approved */
        struct step *preflight = run_step(r, "preflight", NULL, step_preflight, s), *observe = run_step(r, "observe", NULL, step_observe, s);
        s->artifacts = run_step(r, "artifacts", NULL, step_artifacts, s);
        s->plan = run_step(r, "plan", NULL, step_plan, s);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->machine->state != MACHINE_RUNNING)
                        continue;
                m->connect = run_step(r, "connect", m->node->name, step_connect, m);
                step_after(preflight, m->connect);
                m->compare = run_step(r, "compare", m->node->name, step_compare, m);
                step_after(m->compare, preflight);
                step_after(m->compare, s->artifacts); /* their digests are part of what is compared */
                step_after(s->plan, m->compare);
        }
        if (s->cluster->network.fabric.kind == FABRIC_CUSTOM) /* the user's own manifests are read before anything is touched */
                step_after(s->plan, run_step(r, "manifests", NULL, step_manifests, s));
        struct step *deprecated = run_step(r, "versions", NULL, step_deprecated, s);
        step_after(observe, preflight);
        former_steps(s, observe);
        step_after(deprecated, observe);
        step_after(s->plan, deprecated);
        struct step *people = run_step(r, "people", NULL, step_outsiders, s);
        step_after(people, observe);
        step_after(s->plan, people);
        step_after(s->artifacts, deprecated); /* nothing is fetched or built for a version that is refused */
}

/* ---- after it ---- */

/* What of a live cluster is changed one after another: each waits for the one before to be well. */
struct queue {
        struct step *last;
};

static bool is_control(const struct member *m) { return m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD); }

/* The machine, the way to it, and a look at it: for those that were not there before the plan. */
static struct step *reach_steps(struct site *s, struct member *m, struct step *prepare, struct step *check)
{
        if (m->connect)
                return NULL;
        m->create = run_step(&s->run, "machine", m->node->name, step_create, m);
        step_after(m->create, prepare);
        m->connect = run_step(&s->run, "connect", m->node->name, step_connect, m);
        step_after(m->connect, m->create);
        step_after(check, m->connect);
        return check;
}

/* It comes to an etcd that lives, or back to it. */
static bool comes_to_etcd(const struct member *m)
{
        return m->joins || m->promotes || (m->site->live && m->fate == FATE_START && m->node->pool->roles & ROLE_ETCD);
}

/* etcd's part around the apply of a node that joins. */
static void join_steps(struct site *s, struct member *m, struct queue *q)
{
        struct step *join = m->joins || m->fate == FATE_START ? run_step(&s->run, "etcd join", m->node->name, step_etcd_join, m) : NULL;
        struct step *promote = run_step(&s->run, "etcd promote", m->node->name, step_etcd_promote, m);
        if (join) {
                step_after(join, q->last);
                for (size_t i = 0; i < m->apply->wait_count; i++)
                        step_after(join, m->apply->waits[i]);
                step_after(m->apply, join);
        } else {
                step_after(m->apply, q->last);
        }
        step_after(promote, m->apply);
        m->healthy = run_step(&s->run, "healthy", m->node->name, step_healthy, m);
        step_after(m->healthy, promote);
        q->last = m->healthy;
}

/* Who may hold the virtual address, and is about to stop its API server, gives it away first. */
static struct step *leave_steps(struct site *s, struct member *m, struct step *after)
{
        if (!s->cluster->api.vip || !(m->restarts & PART_API) || cluster_count(s->cluster, ROLE_CONTROL_PLANE) < 2)
                return after;
        struct step *leave = run_step(&s->run, "address", m->node->name, step_leave_address, m);
        step_after(leave, after);
        step_after(leave, s->stage);
        step_after(leave, s->artifacts);
        return leave;
}

/* Drained if need be, applied, looked at, and given back. Returns the last of them. */
static struct step *change_steps(struct site *s, struct member *m, struct step *after)
{
        struct step *cordon = m->drains ? run_step(&s->run, "drain", m->node->name, step_cordon, m) : NULL;
        m->healthy = run_step(&s->run, "healthy", m->node->name, step_healthy, m);
        if (cordon) {
                step_after(cordon, after);
                step_after(cordon, s->stage);
        }
        struct step *before = leave_steps(s, m, cordon ? cordon : after);
        step_after(m->apply, before);
        struct step *registered = m->registers ? run_step(&s->run, "register", m->node->name, step_register, m) : m->apply;
        if (m->registers)
                step_after(registered, m->apply);
        step_after(m->healthy, registered);
        if (!cordon)
                return m->healthy;
        struct step *back = run_step(&s->run, "uncordon", m->node->name, step_uncordon, m);
        step_after(back, m->healthy);
        return back;
}

/* A run that was killed between drain and uncordon left the node cordoned: who is well is given back. */
static void give_back(struct site *s, struct member *m)
{
        bool ours = false;
        if (m->drains || !m->object || !node_cordoned(m->object, &ours) || !ours)
                return;
        m->cordoned = true;
        step_after(run_step(&s->run, "uncordon", m->node->name, step_uncordon, m), m->healthy ? m->healthy : m->apply);
}

/* What the cluster has as pods of its own comes after the control plane and before the workers. */
static void keep_steps(struct site *s, struct queue *q)
{
        bool any = false;
        for (size_t i = 0; i < KEEP_COUNT; i++)
                any |= keep_differs(s, i);
        if (!any)
                return;
        struct step *keep = run_step(&s->run, "images", NULL, step_keep, s);
        step_after(keep, q->last);
        step_after(keep, s->stage);
        q->last = keep;
}

static bool control_leaves(const struct site *s)
{
        for (size_t i = 0; s->live && i < s->gone_count; i++)
                if (s->gone[i]->answers && is_control(s->gone[i]))
                        return true;
        return false;
}

static void apply_steps(struct site *s, struct step *prepare, struct step *check, struct queue *q)
{
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                struct step *reached = reach_steps(s, m, prepare, check);
                m->apply = run_step(&s->run, "apply", m->node->name, step_apply, m);
                step_after(m->apply, s->artifacts);
                step_after(m->apply, reached);
                step_after(m->apply, s->stage);
        }
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (comes_to_etcd(m))
                        join_steps(s, m, q);
                else if (s->live && is_control(m) && m->fate == FATE_CHANGE && m->restarts & PARTS_ONE_BY_ONE)
                        q->last = change_steps(s, m, q->last);
        }
        /* who leaves serves the others until those that come instead do */
        for (size_t i = 0; i < s->count && control_leaves(s); i++)
                if (s->members[i].fate == FATE_CHANGE && !s->members[i].healthy)
                        step_after(s->members[i].apply, q->last);
        keep_steps(s, q);
        /* workers: those that are drained a few at a time, all after the control plane */
        size_t at_once = workers_at_once(s), n = 0;
        struct step **drained = arena_array(s->arena, struct step *, s->count + 1);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (s->live && !is_control(m) && m->fate == FATE_CHANGE && (m->drains || m->restarts & PARTS_ONE_BY_ONE)) {
                        struct step *after = m->drains && n >= at_once ? drained[n - at_once] : NULL;
                        struct step *last = change_steps(s, m, after ? after : q->last);
                        if (m->drains)
                                drained[n++] = last;
                }
                give_back(s, m);
        }
}

static struct step *remove_steps(struct site *s, struct member *m, struct step *after)
{
        struct step *cordon = run_step(&s->run, "drain", m->node->name, step_cordon, m);
        struct step *api = m->answers && is_control(m) ? run_step(&s->run, "API leave", m->node->name, step_api_leave, m) : NULL;
        struct step *leave = run_step(&s->run, "etcd leave", m->node->name, step_etcd_leave, m);
        struct step *forget = run_step(&s->run, "forget", m->node->name, step_delete_node, m);
        bool hosts = !s->ops->makes_machines; /* which stay, without Kubernetes, where they still answer */
        struct step *destroy = run_step(&s->run, hosts ? "reset" : "machine", m->node->name,
                !hosts       ? step_destroy
                : m->answers ? step_reset_host
                             : step_kept,
                m);
        step_after(cordon, after);
        for (size_t i = 0; m->answers && is_control(m) && i < s->count; i++)
                step_after(cordon, s->members[i].apply);
        if (api)
                step_after(api, cordon);
        step_after(leave, api ? api : cordon);
        step_after(forget, leave);
        step_after(destroy, forget);
        return destroy;
}

/* The dead leave before others come: etcd counts them. Who lives leaves when nobody is sent to it any more. */
static void remove_all(struct site *s, struct queue *q, bool dead, struct step *verify)
{
        for (size_t i = 0; i < s->gone_count; i++) {
                struct member *m = s->gone[i];
                if (m->answers == dead)
                        continue;
                struct step *end = remove_steps(s, m, q->last);
                step_after(verify, end);
                if (is_control(m))
                        q->last = end;
        }
}

/* The user's own fabric is applied when the API has its first objects. */
static void fabric_steps(struct site *s, struct step *objects, struct step *dns)
{
        struct step *fabric = run_step(&s->run, "fabric", NULL, step_fabric, s);
        step_after(fabric, objects);
        step_after(dns, fabric);
}

static void go(struct site *s)
{
        struct run *r = &s->run;
        struct step *prepare = run_step(r, "prepare", NULL, step_prepare, s), *check = run_step(r, "check", NULL, step_preflight, s);
        struct step *api = run_step(r, "API", NULL, step_api, s), *objects = run_step(r, "objects", NULL, step_objects, s);
        struct step *dns = run_step(r, "DNS", NULL, step_dns, s), *verify = run_step(r, "verify", NULL, step_verify, s);
        struct queue q = { 0 };
        s->stage = s->live && upgrade_from(s) ? upgrade_steps(s) : NULL;
        remove_all(s, &q, true, verify);
        apply_steps(s, prepare, check, &q);
        remove_all(s, &q, false, verify);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                step_after(verify, m->apply);
                step_after(verify, m->healthy);
                if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        continue;
                m->ready = run_step(r, "Ready", m->node->name, step_node_ready, m);
                step_after(m->ready, api);
                step_after(m->ready, m->apply); /* one that could not be applied is not waited for */
                step_after(dns, m->ready);
        }
        step_after(api, check); /* it is asked for while the nodes are still being applied */
        step_after(objects, api);
        step_after(dns, objects);
        step_after(verify, dns);
        step_after(verify, q.last);
        if (s->outsiders) {
                struct step *out = run_step(r, "shut out", NULL, step_shut_out, s);
                step_after(out, objects);
                step_after(verify, out);
        }
        if (s->cluster->network.fabric.kind == FABRIC_CUSTOM)
                fabric_steps(s, objects, dns);
}

/* Certificates that were issued to see what would change are the nodes' own from now on. */
static int keep_leaves(struct site *s, struct error *err)
{
        int r = 0;
        s->identity.holding = false;
        for (size_t i = 0; r == 0 && i < s->count; i++)
                r = s->members[i].issued ? identity_keep(&s->identity, s->members[i].node, &s->members[i].leaves, err) : 0;
        return r;
}

void step_plan(struct step *step)
{
        struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        int r = plan_make(s, &err);
        if (r == 0 && s->only_stage) {
                stage_steps(s, NULL);
                step_done(step, NULL);
                return;
        }
        if (r == 0 && s->approve)
                r = s->approve(s, &err);
        if (r == 0 && s->accepted)
                r = s->accepted(s, &err);
        if (r == 0 && !s->only_plan)
                r = keep_leaves(s, &err);
        if (r < 0 && !err.message) { /* a no is an answer, not a failure */
                s->declined = true;
                step_skipped(step);
                return;
        }
        if (r == 0 && !s->only_plan)
                go(s);
        if (r == 0 && plan_empty(s))
                step_kept(step);
        else
                step_done(step, r < 0 ? &err : NULL);
}

/* ---- down ---- */

void down_steps(struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                run_step(&s->run, "machine", s->members[i].node->name, step_destroy, &s->members[i]);
}
