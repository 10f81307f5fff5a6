/* plan and up. */
#include <event2/event.h>

#include "cluster/up/up.h"
#include "cluster/etcd/restore/restore.h"
#include "cluster/plan/reboot.h"
#include "cmd/operate.h"
#include "ui/ui.h"

static void say_use(const struct site *s)
{
        size_t lacking = 0;
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (m->run.lacking)
                        print_err("warning: %s is not Ready: %s\n", m->node->name, m->run.lacking);
                lacking += m->run.lacking != NULL;
        }
        if (lacking)
                print("%s is up: %zu of %zu nodes are Ready.\n", s->cluster->name,
                        s->count - lacking, s->count);
        else
                print("%s is up: %zu node%s.\n", s->cluster->name, s->count,
                        s->count == 1 ? "" : "s");
        if (s->cluster->network.fabric.kind == FABRIC_NONE)
                print("next:       its nodes are registered and become Ready with a fabric: kubectl apply -f FABRIC.yaml (or network.fabric: custom, and up "
                      "again)\n");
        print("use it:     slipway kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get nodes\n");
        print("remove it:  slipway down\n");
}

static void say_rebooted(const struct site *s)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += s->members[i].plan.reboots;
        if (n)
                print("%s: %zu node%s rebooted.\n", s->cluster->name, n,
                        n == 1 ? " was" : "s were");
        else
                print("%s: no node needs a reboot.\n", s->cluster->name);
}

static void say_up(const struct options *o, const struct site *s)
{
        if (cmd_json(o))
                return;
        if (s->only_stage)
                print("%s: the programs and images of %s are on its nodes; none of them is in use yet.\ngo on: slipway upgrade %s\n",
                        s->cluster->name, s->cluster->kubernetes.text, s->cluster->kubernetes.text);
        else if (s->reboot)
                say_rebooted(s);
        else
                say_use(s);
}

/* The run only made the bastion: now there is a way to the nodes. A saved plan was only for that.
 */
static bool up_goes_on(const struct options *o, const struct site *s)
{
        if (o->plan && !cmd_json(o))
                print("%s has its bastion; what is to do on its nodes is not planned yet.\ngo on: slipway plan, or slipway up\n",
                        s->cluster->name);
        return !o->plan;
}

int cmd_up_cluster(const struct options *o, const struct up_call *call, struct arena *a,
        struct cluster *c, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        int r = site_open(&s, base, a, c, operate_state(o), call->verb, err);
        s.force = call->force;
        s.allow_down = call->allow_down;
        s.only_stage = call->only_stage;
        if (r == 0)
                r = restore_unfinished(&s, err);
        if (r == 0 && call->reboot)
                r = reboot_ask(&s, call->reboot, err);
        if (r == 0)
                r = cmd_plan_and_apply(o, &s, call->edit, err);
        bool again = r == 0 && s.only_bastion && up_goes_on(o, &s);
        if (r == 0 && !s.only_bastion)
                say_up(o, &s);
        site_release(&s);
        return again ? cmd_up_cluster(o, call, a, c, err) : r;
}

/* Continues an unfinished rotation. */
int cmd_up(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r == 0)
                r = cmd_up_cluster(o, &(struct up_call){ .verb = "up" }, &a, c, err);
        return r < 0 ? r : cmd_rotation(o, "up", true, err);
}

/* ---- plan ---- */

static void print_plan(const struct options *o, const struct site *s)
{
        struct str text CLEANUP(str_release) = { 0 };
        if (cmd_json(o)) {
                json_t *json = plan_json(s);
                print_json(json, JSON_INDENT(2));
                json_decref(json);
                return;
        }
        plan_text(s, true, &text);
        print_text(stdout, str_text(&text));
}

/* Reports the problems that preflight and the provider found, not only their failure. */
static void on_problem(struct run *r, struct step *s, const char *change, void *arg)
{
        const struct site *site = arg;
        if (streq(s->name, "preflight") || streq(s->name, site->ops->name))
                print_err("%s\n", change);
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
        r = site_look(&s, base, &a, c, operate_state(o), err);
        if (r == 0) {
                run_observe(&s.run, &(struct run_observer){ .on_change = on_problem, .arg = &s });
                r = up_observe(&s, err);
        }
        if (r == 0)
                print_plan(o, &s);
        if (r == 0 && o->exit_code && !plan_empty(&s))
                r = EXIT_CHANGES;
        site_release(&s);
        return r;
}
