/* up: observes, plans, and carries out the plan. A new cluster has no join order: every node is
 * applied as soon as it answers and the artifacts are fetched; only what needs the API waits for
 * it. A running cluster is changed carefully: etcd members join and control-plane nodes change one
 * after another, workers that must be drained a few at a time, all others at once. */
#include "cluster/apply/fabric.h"
#include "cluster/apply/readiness.h"
#include "cluster/apply/roll.h"
#include "cluster/leave/leave.h"
#include "cluster/plan/bindings.h"
#include "cluster/plan/chores.h"
#include "cluster/plan/endpoint.h"
#include "cluster/plan/issuer.h"
#include "cluster/plan/own_images.h"
#include "cluster/plan/outsiders.h"
#include "cluster/plan/survey.h"
#include "cluster/services/services.h"
#include "cluster/up/up.h"
#include "cluster/upgrade/upgrade.h"
#include "kube/drain.h"
#include "kube/wait.h"

/* ---- before the plan: nothing changes ---- */

/* Without the bastion no machine can be asked. */
static bool bastion_first(struct site *s)
{
        const struct machine *bastion = site_bastion(s);
        bool any = false;
        for (size_t i = 0; i < s->count; i++)
                any |= s->machines[i].state == MACHINE_RUNNING;
        return any && bastion && (bastion->state != MACHINE_RUNNING || !bastion->target.host);
}

static void bastion_steps(struct site *s)
{
        struct step *survey = run_step(&s->run, s->ops->name, NULL, step_survey, s);
        s->plan = run_step(&s->run, "plan", NULL, step_plan, s);
        step_after(s->plan, survey);
}

static void up_steps(struct site *s)
{
        struct run *r = &s->run;
        s->identity.holding = true; /* until the plan is approved */
        readiness_begin(s);
        struct step *preflight = run_step(r, "preflight", NULL, step_preflight, s),
                    *observe = run_step(r, "observe", NULL, step_observe, s);
        s->artifacts = run_step(r, "artifacts", NULL, step_artifacts, s);
        if (s->ops->survey) { /* before anything is fetched or asked */
                struct step *survey = run_step(r, s->ops->name, NULL, step_survey, s);
                step_after(preflight, survey);
                step_after(observe, survey);
        }
        s->plan = run_step(r, "plan", NULL, step_plan, s);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->machine->state != MACHINE_RUNNING)
                        continue;
                m->run.connect = run_step(r, "connect", m->node->name, step_connect, m);
                step_after(preflight, m->run.connect);
                m->run.compare = run_step(r, "compare", m->node->name, step_compare, m);
                step_after(m->run.compare, preflight);
                step_after(m->run.compare, s->artifacts); /* their digests are compared */
                step_after(s->plan, m->run.compare);
        }
        /* the user's manifests are read before anything is changed */
        if (s->cluster->network.fabric.kind == FABRIC_CUSTOM)
                step_after(s->plan, run_step(r, "fabric manifests", NULL, step_manifests, s));
        struct step *deprecated = run_step(r, "versions", NULL, step_deprecated, s);
        step_after(observe, preflight);
        removed_steps(s, observe);
        step_after(deprecated, observe);
        step_after(s->plan, deprecated);
        struct step *people = run_step(r, "people", NULL, step_outsiders, s);
        step_after(people, observe);
        step_after(s->plan, people);
        struct step *rights = run_step(r, "rights", NULL, step_bindings_look, s);
        step_after(rights, people);
        struct step *chores = run_step(r, "API state", NULL, step_chores_look, s);
        step_after(chores, rights);
        step_after(s->plan, chores);
        struct step *services = services_observe_step(s);
        if (services) {
                step_after(services, chores);
                step_after(s->plan, services);
        }
        if (s->cluster->auth.oidc.issuer) {
                struct step *issuer = run_step(r, "OIDC provider", NULL, step_issuer, s);
                if (services && s->cluster->services.dex.host)
                        step_after(issuer, services);
                step_after(s->plan, issuer);
        }
        /* nothing is fetched or built for a version that is refused */
        step_after(s->artifacts, deprecated);
}

/* ---- the plan: its steps, as values ---- */

/* The changes of a running cluster that are made one after another: each waits until the previous
 * node is healthy. */
struct queue {
        struct plan *plan;
        /* staged: all nodes have the upgrade's programs; NULL: no upgrade */
        struct plan_step *last, *staged;
};

static bool up_is_control(const struct member *m)
{
        return m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD);
}

/* Creates, connects and checks a machine that did not exist before the plan. */
static struct plan_step *reach_steps(
        struct plan *p, struct member *m, struct plan_step *prepare, struct plan_step *check)
{
        if (m->run.connect)
                return NULL;
        struct plan_step *machine = plan_add(p, PLAN_MACHINE, m),
                         *connect = plan_add(p, PLAN_CONNECT, m);
        /* a Node keeps the providerID of the machine that registered it */
        if (m->plan.fate == FATE_MAKE && node_provider_id(m->seen.object))
                plan_after(machine, plan_add(p, PLAN_DELETE_NODE, m));
        plan_after(machine, prepare);
        plan_after(connect, machine);
        plan_after(check, connect);
        return check;
}

/* The node joins a running etcd, or returns to it. */
static bool comes_to_etcd(const struct member *m)
{
        return m->plan.joins || m->plan.promotes ||
               (m->site->found.live && m->plan.fate == FATE_START &&
                       m->node->pool->roles & ROLE_ETCD);
}

/* The etcd steps around the apply of a joining node. */
static void join_steps(struct member *m, struct queue *q)
{
        struct plan_step *join = m->plan.joins || m->plan.fate == FATE_START
                                         ? plan_add(q->plan, PLAN_ETCD_JOIN, m)
                                         : NULL;
        struct plan_step *promote = plan_add(q->plan, PLAN_ETCD_PROMOTE, m);
        if (join) {
                plan_after(join, q->last);
                for (size_t i = 0; i < m->plan.apply->wait_count; i++)
                        plan_after(join, m->plan.apply->waits[i]);
                plan_after(m->plan.apply, join);
        } else {
                plan_after(m->plan.apply, q->last);
        }
        plan_after(promote, m->plan.apply);
        m->plan.healthy = plan_add(q->plan, PLAN_HEALTHY, m);
        plan_after(m->plan.healthy, promote);
        q->last = m->plan.healthy;
}

/* Before a node's API server stops, the virtual IP moves to another node. */
static struct plan_step *address_steps(struct member *m, struct queue *q, struct plan_step *after)
{
        const struct cluster *c = m->site->cluster;
        if (!c->api.vip || !(m->plan.restarts & PART_API) ||
                cluster_count(c, ROLE_CONTROL_PLANE) < 2)
                return after;
        struct plan_step *leave = plan_add(q->plan, PLAN_ADDRESS, m);
        plan_after(leave, after);
        plan_after(leave, q->staged);
        return leave;
}

/* A machine that is made anew: its node leaves as if it were removed, and joins as a new one.
 * Returns the last step. */
static struct plan_step *anew_steps(
        struct member *m, struct queue *q, struct plan_step *prepare, struct plan_step *after)
{
        struct plan *p = q->plan;
        struct leave_span out = leave_steps(p, m, LEAVE_ANEW);
        struct plan_step *back = m->node->pool->roles & ROLE_CONTROL_PLANE && m->site->ops->members
                                         ? plan_add(p, PLAN_MEMBERS_BACK, m)
                                         : NULL;
        struct plan_step *machine = plan_add(p, PLAN_MACHINE, m),
                         *connect = plan_add(p, PLAN_CONNECT, m),
                         *check = plan_add(p, PLAN_CHECK_NEW, m);
        plan_after(out.first, prepare);
        plan_after(out.first, after);
        plan_after(machine, out.last);
        plan_after(connect, machine);
        plan_after(check, connect);
        if (back)
                plan_after(back, check);
        plan_after(m->plan.apply, back ? back : check);
        if (m->plan.joins) {
                join_steps(m, q);
                return m->plan.healthy;
        }
        m->plan.healthy = plan_add(p, PLAN_HEALTHY, m);
        plan_after(m->plan.healthy, m->plan.apply);
        return m->plan.healthy;
}

/* Drains the node if necessary, applies, waits until it is healthy, uncordons. Returns
 * the last step. */
static struct plan_step *change_steps(struct member *m, struct queue *q, struct plan_step *after)
{
        struct plan_step *cordon = m->plan.drains ? plan_add(q->plan, PLAN_DRAIN, m) : NULL;
        m->plan.healthy = plan_add(q->plan, PLAN_HEALTHY, m);
        if (cordon) {
                plan_after(cordon, after);
                plan_after(cordon, q->staged);
        }
        plan_after(m->plan.apply, address_steps(m, q, cordon ? cordon : after));
        struct plan_step *registered =
                m->plan.registers ? plan_add(q->plan, PLAN_REGISTER, m) : m->plan.apply;
        if (m->plan.registers)
                plan_after(registered, m->plan.apply);
        if (m->plan.reboots) {
                struct plan_step *reboot = plan_add(q->plan, PLAN_REBOOT, m);
                plan_after(reboot, registered);
                registered = reboot;
        }
        plan_after(m->plan.healthy, registered);
        if (!cordon)
                return m->plan.healthy;
        struct plan_step *back = plan_add(q->plan, PLAN_UNCORDON, m);
        plan_after(back, m->plan.healthy);
        return back;
}

/* A run that was killed between drain and uncordon left the node cordoned: uncordons it if
 * it is healthy. */
static void give_back(struct member *m, struct queue *q)
{
        bool ours = false;
        if (m->plan.drains || m->plan.fate == FATE_REPLACE || !m->seen.object ||
                !node_cordoned(m->seen.object, &ours) || !ours)
                return;
        m->run.cordoned = true;
        plan_after(plan_add(q->plan, PLAN_UNCORDON, m),
                m->plan.healthy ? m->plan.healthy : m->plan.apply);
}

/* The cluster's own images change after the control plane and before the workers. */
static void images_steps(const struct site *s, struct queue *q)
{
        bool any = false;
        for (size_t i = 0; i < OWN_IMAGE_COUNT; i++)
                any |= own_image_differs(s, i);
        if (!any)
                return;
        struct plan_step *images = plan_add(q->plan, PLAN_IMAGES, NULL);
        plan_after(images, q->last);
        plan_after(images, q->staged);
        q->last = images;
}

static bool control_leaves(const struct site *s)
{
        for (size_t i = 0; s->found.live && i < s->found.removed_count; i++)
                if (s->found.removed[i]->seen.answers && up_is_control(s->found.removed[i]))
                        return true;
        return false;
}

static void apply_steps(
        struct site *s, struct plan_step *prepare, struct plan_step *check, struct queue *q)
{
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                struct plan_step *reached = reach_steps(q->plan, m, prepare, check);
                m->plan.apply = plan_add(q->plan, PLAN_APPLY, m);
                plan_after(m->plan.apply, reached);
                plan_after(m->plan.apply, q->staged);
        }
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->plan.fate == FATE_REPLACE)
                        continue;
                if (comes_to_etcd(m))
                        join_steps(m, q);
                else if (s->found.live && up_is_control(m) && m->plan.fate == FATE_CHANGE &&
                         (m->plan.restarts & PARTS_ONE_BY_ONE || m->plan.commands ||
                                 m->plan.unproven))
                        q->last = change_steps(m, q, q->last);
        }
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.fate == FATE_REPLACE && up_is_control(&s->members[i]))
                        q->last = anew_steps(&s->members[i], q, prepare, q->last);
        /* nodes to be removed serve until their replacements do */
        for (size_t i = 0; i < s->count && control_leaves(s); i++)
                if (s->members[i].plan.fate == FATE_CHANGE && !s->members[i].plan.healthy)
                        plan_after(s->members[i].plan.apply, q->last);
        images_steps(s, q);
        /* workers after the control plane; those that are drained a few at a time */
        size_t at_once = workers_at_once(s), n = 0;
        struct plan_step **drained = arena_array(s->arena, struct plan_step *, s->count + 1);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->plan.fate == FATE_REPLACE && !up_is_control(m)) {
                        struct plan_step *after = n >= at_once ? drained[n - at_once] : q->last;
                        drained[n++] = anew_steps(m, q, prepare, after);
                        continue;
                }
                if (s->found.live && !up_is_control(m) && m->plan.fate == FATE_CHANGE &&
                        (m->plan.drains || m->plan.restarts & PARTS_ONE_BY_ONE ||
                                m->plan.unproven)) {
                        struct plan_step *after =
                                m->plan.drains && n >= at_once ? drained[n - at_once] : NULL;
                        struct plan_step *last = change_steps(m, q, after ? after : q->last);
                        if (m->plan.drains)
                                drained[n++] = last;
                }
                give_back(m, q);
        }
}

static struct plan_step *remove_steps(struct site *s, struct member *m, struct queue *q)
{
        struct leave_span span =
                leave_steps(q->plan, m, s->ops->makes_machines ? LEAVE_MACHINE : 0);
        plan_after(span.first, q->last);
        for (size_t i = 0; m->seen.answers && up_is_control(m) && i < s->count; i++)
                plan_after(span.first, s->members[i].plan.apply);
        return span.last;
}

/* Failed nodes are removed before others join, because etcd counts them. Healthy ones are removed
 * when nothing uses them any more. */
static void remove_all(struct site *s, struct queue *q, bool dead, struct plan_step *verify)
{
        for (size_t i = 0; i < s->found.removed_count; i++) {
                struct member *m = s->found.removed[i];
                if (m->seen.answers == dead)
                        continue;
                struct plan_step *end = remove_steps(s, m, q);
                plan_after(verify, end);
                if (up_is_control(m))
                        q->last = end;
        }
}

static void plan_build_all(struct site *s, struct plan *p)
{
        struct plan_step *prepare = plan_add(p, PLAN_PREPARE, NULL),
                         *check = plan_add(p, PLAN_CHECK, NULL);
        struct plan_step *api = plan_add(p, PLAN_API, NULL),
                         *objects = plan_add(p, PLAN_OBJECTS, NULL);
        struct plan_step *dns = plan_add(p, PLAN_DNS, NULL),
                         *verify = plan_add(p, PLAN_VERIFY, NULL);
        struct queue q = { .plan = p,
                .staged = s->found.live && upgrade_from(s) ? upgrade_steps(s, p) : NULL };
        remove_all(s, &q, true, verify);
        apply_steps(s, prepare, check, &q);
        remove_all(s, &q, false, verify);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                plan_after(verify, m->plan.apply);
                plan_after(verify, m->plan.healthy);
                if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        continue;
                struct plan_step *ready = plan_add(p, PLAN_READY, m);
                plan_after(ready, api);
                /* a node that could not be applied is not waited for */
                plan_after(ready, m->plan.apply);
                plan_after(dns, ready);
        }
        plan_after(api, check); /* queried while nodes are still being applied */
        plan_after(objects, api);
        plan_after(dns, objects);
        plan_after(verify, dns);
        plan_after(verify, q.last);
        if (s->found.outsiders) {
                struct plan_step *out = plan_add(p, PLAN_SHUT_OUT, NULL);
                plan_after(out, objects);
                plan_after(verify, out);
        }
        if (s->found.chores) {
                struct plan_step *chores = plan_add(p, PLAN_CHORES, NULL);
                plan_after(chores, objects);
                plan_after(verify, chores);
        }
        /* the user's own manifests follow the API's first objects */
        if (s->cluster->network.fabric.kind == FABRIC_CUSTOM) {
                struct plan_step *fabric = plan_add(p, PLAN_FABRIC, NULL);
                plan_after(fabric, objects);
                plan_after(dns, fabric);
        }
        services_steps(s, p,
                &(struct services_around){ .objects = objects, .dns = dns, .verify = verify });
}

void plan_build(struct site *s)
{
        s->steps = arena_new(s->arena, struct plan);
        *s->steps = (struct plan){ .arena = s->arena };
        if (s->only_bastion)
                plan_add(s->steps, PLAN_PREPARE, NULL);
        else if (s->only_stage)
                stage_steps(s, s->steps, NULL);
        else
                plan_build_all(s, s->steps);
}

void step_plan(struct step *step)
{
        struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        int r = s->only_bastion ? 0 : plan_make(s, &err);
        if (r == 0 && !s->only_bastion)
                r = readiness_check(s, &err);
        if (r == 0)
                plan_build(s);
        if (r == 0 && plan_empty(s))
                step_unchanged(step);
        else
                step_done(step, r < 0 ? &err : NULL);
}

/* ---- carrying out the plan ---- */

/* Stores the certificates that were issued to compare nodes: the nodes get these. */
static int keep_leaves(struct site *s, struct error *err)
{
        int r = 0;
        s->identity.holding = false;
        r = identity_encrypt(&s->identity, err);
        for (size_t i = 0; r == 0 && i < s->count; i++)
                r = s->members[i].plan.issued ? identity_keep(&s->identity, s->members[i].node,
                                                        &s->members[i].plan.leaves, err)
                                              : 0;
        return r;
}

int up_observe(struct site *s, struct error *err)
{
        int r = endpoint_check(s->cluster, err);
        if (r == 0 && s->ops->survey)
                r = s->ops->survey(&s->provider, s->machines, &s->found.survey, err);
        if (r < 0)
                return r;
        s->only_bastion = bastion_first(s);
        if (s->only_bastion)
                bastion_steps(s);
        else
                up_steps(s);
        return run_until(&s->run, s->plan, err);
}

int up_apply(struct site *s, struct error *err)
{
        int r = s->only_bastion ? 0 : keep_leaves(s, err);
        if (r < 0)
                return r;
        plan_begin(s->steps, s);
        r = run_execute(&s->run, err);
        if (r == 0 && !s->only_stage && !s->only_bastion)
                site_record_prune(s);
        return r;
}
