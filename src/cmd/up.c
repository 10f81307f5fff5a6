/* plan, up and down: the verbs that make and take away. */
#include <event2/event.h>

#include "cluster/plan.h"
#include "cmd/operate.h"
#include "ui/ui.h"

static void base_free(struct event_base **b)
{
        if (*b)
                event_base_free(*b);
}

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

/* ---- the plan is shown before anything changes ---- */

struct asking {
        const struct options *o;
        struct ui *ui;
};

/* A person at a terminal is asked. A script goes on, but takes no node away without --yes: a slip in the file must not. */
static int approve(struct site *s, struct error *err)
{
        const struct asking *a = s->approve_arg;
        bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !wants_json(a->o);
        struct str text CLEANUP(str_release) = { 0 };
        if (plan_empty(s))
                return 0;
        json_t *json = json_pack("{s:s, s:o}", "event", "plan", "plan", plan_json(s));
        plan_text(s, false, &text);
        ui_say(a->ui, str_text(&text), json);
        json_decref(json);
        if (a->o->yes)
                return 0;
        if (person)
                return ui_ask(a->ui, "go on?") ? 0 : -ECANCELED;
        if (!s->gone_count)
                return 0;
        error_set(err, EPERM, EXIT_USAGE, "the plan removes %zu node%s, and nobody is there to be asked", s->gone_count, s->gone_count == 1 ? "" : "s");
        return error_hint(err, "give --yes when that is meant; nothing was changed");
}

/* Runs the steps of an operation, journalled and shown. */
int cmd_operate(const struct options *o, struct site *s, void (*steps)(struct site *), struct error *err)
{
        struct journal *j = NULL;
        const char *last = NULL;
        int r = journal_open(s->identity.dir, &s->run, &j, &last, err);
        if (r < 0)
                return r;
        if (last)
                fprintf(stderr, "going on: %s\n", last);
        struct asking asking = { o, ui_observe(&s->run, &(struct ui_options){ .json = wants_json(o) }) };
        s->approve = approve;
        s->approve_arg = &asking;
        steps(s);
        r = run_execute(&s->run, err);
        struct error late CLEANUP(error_release) = { 0 };
        int synced = identity_sync(&s->identity, r < 0 ? &late : err);
        const char *result = r == -EINTR ? "interrupted" : r < 0 ? "failed" : "done";
        journal_close(j, result);
        ui_end(asking.ui, s->identity.dir, result);
        return r < 0 ? r : synced;
}

/* One operation from the Cluster to its end; `after` is what a success still needs. */
struct operation {
        const char *verb;
        void (*steps)(struct site *);
        int (*after)(const struct options *, struct site *, struct error *);
        int (*accepted)(struct site *, struct error *);
        void *arg;
};

static int run_cluster(const struct options *o, const struct operation *op, struct arena *a, struct cluster *c, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        int r = site_open(&s, base, a, c, state_of(o), op->verb, err);
        s.accepted = op->accepted;
        s.accepted_arg = op->arg;
        if (r == 0)
                r = cmd_operate(o, &s, op->steps, err);
        if (r == 0)
                r = op->after(o, &s, err);
        site_release(&s);
        return r;
}

static int run_verb(const struct options *o, const struct operation *op, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        return r < 0 ? r : run_cluster(o, op, &a, c, err);
}

static int after_up(const struct options *o, struct site *s, struct error *err)
{
        if (!wants_json(o))
                say_use(s);
        return 0;
}

static int after_down(const struct options *o, struct site *s, struct error *err)
{
        site_unbear(s);
        return s->ops->cleanup(&s->provider, err);
}

int cmd_up(const struct options *o, struct error *err) { return run_verb(o, &(struct operation){ "up", up_steps, after_up, NULL, NULL }, err); }

int cmd_up_cluster(const struct options *o, const char *verb, struct arena *a, struct cluster *c, int (*accepted)(struct site *, struct error *), void *arg,
        struct error *err)
{
        return run_cluster(o, &(struct operation){ verb, up_steps, after_up, accepted, arg }, a, c, err);
}

/* Hosts you have are not taken away: Kubernetes is taken off them. */
int cmd_down(const struct options *o, struct error *err)
{
        int r = cmd_reset_hosts(o, err);
        return r == RESET_NOT_HOSTS ? run_verb(o, &(struct operation){ "down", down_steps, after_down, NULL, NULL }, err) : r;
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
