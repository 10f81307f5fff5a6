/* Load balancers and volumes are deleted and waited for, and releases uninstalled: each until it is
 * gone, the API says so, or the time is over. What the next run finds is what is left, so a run
 * that was killed needs nothing else to go on. */
#include "base/clock.h"
#include "cluster/services/cleanup.h"

#define LOOK_MS  1000
#define AGAIN_MS 10000 /* what was ordered and is still there is ordered again */
#define STOP_HINT \
        "no node was touched; kubectl describe and the logs of the controller say what it waits for; run slipway down again (with a longer --cleanup-timeout), or give --no-cleanup to remove the nodes and leave these resources as they are"

/* ---- one kind of objects, until none is left ---- */

struct cleaning {
        struct outside_look look;
        const char *what;            /* "load balancers" */
        struct outside_objects left; /* seen last */
        size_t first;                /* how many there were */
        int64_t end, again;          /* when the time is over; of the next order */
        const char *trouble;         /* of the API, NULL: it answers */
        void (*ask)(struct op *o);
};

static void cleaning_late(struct cleaning *c)
{
        char *names CLEANUP(free_p) = outside_names(&c->left, true);
        op_fail(&c->look.op, ETIMEDOUT, EXIT_STEP, STOP_HINT,
                "not deleted after %u s: %s%s%s; its resources outside the cluster may still exist and cost money",
                c->look.op.site->cleanup, *names ? names : c->what, c->trouble ? "; the API: " : "",
                c->trouble ? c->trouble : "");
}

static void cleaning_later(struct cleaning *c)
{
        if (clock_ms() >= c->end)
                cleaning_late(c);
        else
                op_later(&c->look.op, LOOK_MS, c->ask);
}

static void cleaning_trouble(struct cleaning *c, const char *error)
{
        c->trouble = arena_printf(c->look.op.site->arena, "%.300s", error);
        step_doing(c->look.op.step, -1, "%s", c->trouble);
        cleaning_later(c);
}

static void on_cleaning_deleted(const char *error, void *arg)
{
        struct cleaning *c = arg;
        if (op_over(&c->look.op))
                return;
        if (error)
                cleaning_trouble(c, error);
        else
                cleaning_later(c);
}

static void cleaning_order(struct cleaning *c, const struct str *documents)
{
        c->again = clock_ms() + AGAIN_MS;
        kube_objects(
                c->look.op.site->kube, KUBE_DELETE, str_text(documents), on_cleaning_deleted, c);
}

/* True: none is left, and the step is done. */
static bool cleaning_over(struct cleaning *c)
{
        char *names CLEANUP(free_p) = outside_names(&c->left, false);
        c->trouble = NULL;
        c->first = c->left.n > c->first ? c->left.n : c->first;
        if (c->left.n) {
                step_doing(c->look.op.step, -1, "waiting for %s", names);
                return false;
        }
        if (c->first) {
                step_changed(c->look.op.step, "%s: %zu deleted", c->what, c->first);
                op_done(&c->look.op, NULL);
        } else
                op_unchanged(&c->look.op);
        return true;
}

static struct cleaning *cleaning_new(struct step *step, const char *what, void (*ask)(struct op *o))
{
        struct site *s = step->arg;
        struct cleaning *c = arena_new(s->arena, struct cleaning);
        *c = (struct cleaning){ .what = what, .ask = ask };
        c->end = clock_ms() + (int64_t)s->cleanup * 1000;
        c->look.op.release = outside_look_release;
        op_begin(&c->look.op, s, step);
        return c;
}

/* ---- load balancers ---- */

/* Those that came meanwhile go too. */
static void on_balancers(struct outside_look *l, const char *error)
{
        struct cleaning *c = (struct cleaning *)l;
        struct str documents CLEANUP(str_release) = { 0 };
        if (error) {
                cleaning_trouble(c, error);
                return;
        }
        outside_balancers(l->lists[OUTSIDE_SERVICES], l->op.site->arena, &c->left);
        outside_documents(&c->left, false, &documents);
        if (cleaning_over(c))
                return;
        if (documents.len)
                cleaning_order(c, &documents);
        else
                cleaning_later(c);
}

static void balancers_ask(struct op *o)
{
        outside_ask((struct outside_look *)o, 1U << OUTSIDE_SERVICES, on_balancers);
}

void step_balancers(struct step *step)
{
        balancers_ask(&cleaning_new(step, "Services of type LoadBalancer", balancers_ask)->look.op);
}

/* ---- volumes ---- */

/* A claim goes when no pod uses it any more, and a pod when nobody makes it again. */
static void on_volume_holders(struct outside_look *l, const char *error)
{
        struct cleaning *c = (struct cleaning *)l;
        struct outside_objects holders;
        struct str documents CLEANUP(str_release) = { 0 };
        if (error) {
                cleaning_trouble(c, error);
                return;
        }
        outside_holders(l->lists, &c->left, l->op.site->arena, &holders);
        outside_documents(&holders, false, &documents);
        outside_documents(&c->left, true, &documents); /* `going` is the volume's */
        cleaning_order(c, &documents);
}

static void on_volumes(struct outside_look *l, const char *error)
{
        struct cleaning *c = (struct cleaning *)l;
        struct outside_objects kept;
        if (error) {
                cleaning_trouble(c, error);
                return;
        }
        outside_claims(l->lists[OUTSIDE_VOLUMES], l->op.site->arena, &c->left, &kept);
        if (cleaning_over(c))
                return;
        if (clock_ms() >= c->again)
                outside_ask(l, OUTSIDE_HOLDERS, on_volume_holders);
        else
                cleaning_later(c);
}

static void volumes_ask(struct op *o)
{
        outside_ask((struct outside_look *)o, 1U << OUTSIDE_VOLUMES, on_volumes);
}

void step_volumes(struct step *step)
{
        volumes_ask(&cleaning_new(step, "volumes, with their claims", volumes_ask)->look.op);
}

/* ---- releases ---- */

struct unfinished { /* a release that helm did not end: what of it is left? */
        struct outside_look look;
        struct op *op;
        const struct task *task;
        const char *trouble, *hint;
};

static void unfinished_fail(struct unfinished *u, const char *left)
{
        op_drop(&u->look.op);
        op_fail(u->op, EIO, EXIT_STEP, u->hint, "it cannot be uninstalled: %s%s%s", u->trouble,
                *left ? "; still there: " : "", left);
}

static void on_unfinished(struct outside_look *l, const char *error)
{
        struct unfinished *u = (struct unfinished *)l;
        const struct service *s = u->task->service;
        struct outside_objects all, own = { 0 };
        outside_balancers(l->lists[OUTSIDE_SERVICES], l->op.site->arena, &all);
        own.v = arena_array(l->op.site->arena, struct outside_object, all.n + 1);
        for (size_t i = 0; !error && i < all.n; i++)
                if (all.v[i].release && streq(all.v[i].release, s->name) &&
                        streq(all.v[i].release_ns, s->ns))
                        own.v[own.n++] = all.v[i];
        char *names CLEANUP(free_p) = outside_names(&own, true);
        unfinished_fail(u, names);
}

/* helm does not say which object it waited for in vain. */
static void release_unfinished(struct op *o, const struct task *t, const struct helm_result *h)
{
        struct arena *a = o->site->arena;
        struct unfinished *u = arena_new(a, struct unfinished);
        *u = (struct unfinished){ .op = o,
                .task = t,
                .trouble = arena_strdup(a, h->trouble),
                .hint = h->hint ? arena_printf(a,
                                          "no node was touched; %s; --no-cleanup skips this",
                                          h->hint)
                                : STOP_HINT };
        u->look.op.release = outside_look_release;
        op_begin(&u->look.op, o->site, o->step);
        outside_ask(&u->look, 1U << OUTSIDE_SERVICES, on_unfinished);
}

/* ---- the plan ---- */

static struct plan_step *release_step(struct site *s, struct plan *p, struct service *one)
{
        struct task *t = arena_new(s->arena, struct task);
        *t = (struct task){
                .site = s, .service = one, .seconds = s->cleanup, .failed = release_unfinished
        };
        return plan_add_for(
                p, PLAN_END_RELEASE, arena_printf(s->arena, "%s/%s", one->ns, one->name), t);
}

/* First those that hold something outside, then what they hold, then the others: one of these may
 * be the driver or the controller that lets it go. Among them in the reverse order of `after`. */
void cleanup_steps(struct site *s, struct plan *p)
{
        struct outside *o = s->found.outside;
        if (!o || o->blind || !outside_any(o))
                return;
        struct plan_step **releases =
                                 arena_array(s->arena, struct plan_step *, o->release_count + 1),
                         *held[2] = { NULL, NULL };
        for (size_t i = 0; i < o->release_count; i++)
                releases[i] = release_step(s, p, &o->releases[i]);
        if (o->balancers.n)
                held[0] = plan_add(p, PLAN_BALANCERS, NULL);
        if (o->claims.n)
                held[1] = plan_add(p, PLAN_VOLUMES, NULL);
        for (size_t i = 0; i < o->release_count; i++) {
                for (size_t k = 0; k < ARRAY_SIZE(held); k++)
                        if (held[k] && o->holds[i])
                                plan_after(held[k], releases[i]);
                        else if (held[k])
                                plan_after(releases[i], held[k]);
                for (size_t k = 0; k < o->release_count; k++)
                        if (k != i && outside_after(o, k, i))
                                plan_after(releases[i], releases[k]);
        }
}
