/* What of a cluster is outside of it: asked before anything is deleted; and the steps of the plan.
 */
#include "cluster/services/cleanup.h"
#include "cluster/site/removed.h"

#define API_MS      10000 /* for an API that may be there or not */
#define LISTS_TRIES 20    /* one that answers must also say what it has */
#define LISTS_MS    1000
#define OBJECTS_MAX ((size_t)20000)

/* ---- lists ---- */

static void outside_next(struct outside_look *l);

static void on_outside_list(json_t *items, const char *error, void *arg)
{
        struct outside_look *l = arg;
        if (op_over(&l->op))
                return;
        if (error) {
                l->then(l, error);
                return;
        }
        json_decref(l->lists[l->at]);
        l->lists[l->at] = json_incref(items);
        outside_next(l);
}

static void outside_next(struct outside_look *l)
{
        if (!l->wanted) {
                l->then(l, NULL);
                return;
        }
        for (l->at = 0; !(l->wanted & 1U << l->at);)
                l->at++;
        l->wanted &= ~(1U << l->at);
        const struct outside_row *row = &outside_rows[l->at];
        kube_list(l->op.site->kube, row->path, row->query, row->metadata, OBJECTS_MAX,
                on_outside_list, l);
}

void outside_ask(struct outside_look *l, unsigned set,
        void (*then)(struct outside_look *l, const char *error))
{
        l->wanted = set;
        l->then = then;
        outside_next(l);
}

void outside_look_release(struct op *o)
{
        struct outside_look *l = (struct outside_look *)o;
        for (size_t i = 0; i < OUTSIDE_LISTS; i++)
                json_decref(TAKE(l->lists[i]));
}

/* ---- the first look ---- */

struct first_look {
        struct outside_look look;
        struct outside *found;
        unsigned tries;
};

static void first_ask(struct op *o);

/* It answers, and does not say what there is: that is no reason to let load balancers be. */
static bool first_failed(struct first_look *f, const char *error)
{
        if (!error)
                return false;
        if (f->tries++ < LISTS_TRIES) {
                step_doing(f->look.op.step, -1, "%s", error);
                op_later(&f->look.op, LISTS_MS, first_ask);
        } else {
                op_fail(&f->look.op, EIO, EXIT_UNREACHABLE,
                        "nothing was changed; slipway status shows the API servers; with --no-cleanup the cluster is removed, and its load balancers and volumes stay",
                        "the API does not say which releases, load balancers and volumes there are: %s",
                        error);
        }
        return true;
}

static void first_end(struct first_look *f)
{
        struct site *s = f->look.op.site;
        outside_releases(
                f->found, &s->cluster->services, f->look.lists[OUTSIDE_RELEASES], s->arena);
        s->found.outside = f->found;
        if (outside_any(f->found))
                op_done(&f->look.op, NULL);
        else
                op_unchanged(&f->look.op);
}

static void on_first_holders(struct outside_look *l, const char *error)
{
        struct first_look *f = (struct first_look *)l;
        if (first_failed(f, error))
                return;
        outside_holders(l->lists, &f->found->claims, l->op.site->arena, &f->found->holders);
        first_end(f);
}

static void on_first_lists(struct outside_look *l, const char *error)
{
        struct first_look *f = (struct first_look *)l;
        struct arena *a = l->op.site->arena;
        if (first_failed(f, error))
                return;
        outside_balancers(l->lists[OUTSIDE_SERVICES], a, &f->found->balancers);
        outside_claims(f->found, l->lists[OUTSIDE_VOLUMES], a);
        if (f->found->claims.n)
                outside_ask(l, OUTSIDE_HOLDERS, on_first_holders);
        else
                first_end(f);
}

static void first_ask(struct op *o)
{
        step_doing(o->step, -1, "asking for releases, load balancers and volumes");
        outside_ask((struct outside_look *)o, OUTSIDE_FIRST, on_first_lists);
}

static void on_first_api(void *arg)
{
        struct first_look *f = arg;
        f->look.op.site->wait = NULL;
        if (!op_over(&f->look.op))
                first_ask(&f->look.op);
}

/* A cluster whose API is gone must be able to go too. */
static void first_blind(struct first_look *f, const char *why)
{
        struct site *s = f->look.op.site;
        f->found->blind = arena_strdup(s->arena, why);
        s->found.outside = f->found;
        op_unchanged(&f->look.op);
}

static void first_no_api(struct op *o)
{
        struct first_look *f = (struct first_look *)o;
        const char *why = kube_trouble(o->site->kube);
        if (!o->site->wait)
                return;
        kube_cancel(TAKE(o->site->wait));
        first_blind(f, why ? why : "not ready");
}

static void step_outside(struct step *step)
{
        struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct first_look *f = arena_new(s->arena, struct first_look);
        f->found = arena_new(s->arena, struct outside);
        f->found->fate = s->volumes_fate;
        f->look.op.release = outside_look_release;
        op_begin(&f->look.op, s, step);
        if (site_kube(s, &err) < 0) {
                first_blind(f, err.message);
                return;
        }
        step_doing(step, -1, "waiting for /readyz");
        op_later(&f->look.op, API_MS, first_no_api);
        s->wait = kube_wait_ready(s->kube, 500, on_first_api, f);
}

/* Without a machine of the control plane there is nobody to ask, and nobody who made anything. */
static bool has_control_plane(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].node->pool->roles & ROLE_CONTROL_PLANE &&
                        s->members[i].machine->state != MACHINE_ABSENT)
                        return true;
        return false;
}

struct step *cleanup_observe_step(struct site *s)
{
        if (!s->cleanup || !site_existed(s) || !has_control_plane(s))
                return NULL;
        return run_step(&s->run, "cleanup", NULL, step_outside, s);
}
