/* plan, up and down: the verbs that make and take away. */
#include <event2/event.h>

#include "cluster/plan.h"
#include "cluster/restore.h"
#include "cmd/operate.h"
#include "ui/ui.h"

static const char *state_of(const struct options *o) { return o->state ? o->state : ".slipway"; }

static bool wants_json(const struct options *o) { return o->output && streq(o->output, "json"); }

static void say_use(const struct site *s)
{
        printf("%s is up: %zu nodes.\n", s->cluster->name, s->count);
        if (s->cluster->network.fabric.kind == FABRIC_NONE)
                printf("next:       its nodes are registered and become Ready with a fabric: kubectl apply -f FABRIC.yaml (or network.fabric: custom, and up "
                       "again)\n");
        printf("use it:     slipway kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get nodes\n");
        printf("remove it:  slipway down\n");
}

/* One operation from the Cluster to its end; `after` is what a success still needs. */
struct job {
        struct up_call call;
        void (*steps)(struct site *);
        int (*after)(const struct options *, struct site *, struct error *);
};

static int run_cluster(const struct options *o, const struct job *op, struct arena *a, struct cluster *c, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        int r = site_open(&s, base, a, c, state_of(o), op->call.verb, err);
        s.accepted = op->call.accepted;
        s.accepted_arg = op->call.arg;
        s.force = op->call.force;
        s.allow_down = op->call.allow_down;
        s.only_stage = op->call.only_stage;
        if (r == 0 && op->steps == up_steps)
                r = restore_unfinished(&s, err);
        if (r == 0)
                r = cmd_operate(o, &s, op->steps, err);
        if (r == 0)
                r = op->after(o, &s, err);
        site_release(&s);
        return r;
}

static int run_verb(const struct options *o, const struct job *op, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        return r < 0 ? r : run_cluster(o, op, &a, c, err);
}

static int after_up(const struct options *o, struct site *s, struct error *err)
{
        if (!wants_json(o) && s->only_stage)
                printf("%s: what %s needs is on its nodes, and nothing of it is in use yet.\ngo on: slipway upgrade %s\n", s->cluster->name,
                        s->cluster->kubernetes.text, s->cluster->kubernetes.text);
        if (s->only_stage)
                return 0;
        site_bear(s, false); /* who was to leave has left */
        if (!wants_json(o))
                say_use(s);
        return 0;
}

static int after_down(const struct options *o, struct site *s, struct error *err)
{
        site_unbear(s);
        return s->ops->cleanup(&s->provider, err);
}

/* A rotation that was stopped goes on. */
int cmd_up(const struct options *o, struct error *err)
{
        int r = run_verb(o, &(struct job){ { .verb = "up" }, up_steps, after_up }, err);
        return r < 0 ? r : cmd_rotation(o, "up", true, err);
}

int cmd_up_cluster(const struct options *o, const struct up_call *call, struct arena *a, struct cluster *c, struct error *err)
{
        return run_cluster(o, &(struct job){ *call, up_steps, after_up }, a, c, err);
}

/* Hosts you have are not taken away: Kubernetes is taken off them. */
int cmd_down(const struct options *o, struct error *err)
{
        int r = cmd_reset_hosts(o, err);
        return r == RESET_NOT_HOSTS ? run_verb(o, &(struct job){ { .verb = "down" }, down_steps, after_down }, err) : r;
}

/* ---- plan ---- */

static int print_plan(struct site *s, struct error *err)
{
        const struct options *o = s->approve_arg;
        struct str text CLEANUP(str_release) = { 0 };
        if (wants_json(o)) {
                json_t *json = plan_json(s);
                char *line CLEANUP(free_p) = json_dumps(json, JSON_INDENT(2));
                json_decref(json);
                printf("%s\n", line);
                return 0;
        }
        plan_text(s, true, &text);
        fputs(str_text(&text), stdout);
        return 0;
}

/* Problems that preflight found are worth more than that it failed. */
static void on_problem(struct run *r, struct step *s, const char *change, void *arg)
{
        if (streq(s->name, "preflight"))
                fprintf(stderr, "%s\n", change);
}

int cmd_plan(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct cluster *c;
        struct site s = { .identity.lock = -1 };
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        r = site_look(&s, base, &a, c, state_of(o), err);
        if (r == 0) {
                s.only_plan = true;
                s.approve = print_plan;
                s.approve_arg = (void *)o;
                run_observe(&s.run, &(struct run_observer){ .on_change = on_problem });
                up_steps(&s);
                r = run_execute(&s.run, err);
        }
        if (r == 0 && o->exit_code && !plan_empty(&s))
                r = EXIT_CHANGES;
        site_release(&s);
        return r;
}
