/* reset: removes nodes from the cluster and Kubernetes from their hosts; without names, the whole
 * cluster. down: removes the whole cluster, with the machines that slipway created. */
#include <event2/event.h>

#include "cluster/leave/leave.h"
#include "cluster/up/up.h"
#include "cmd/operate.h"

/* Data is deleted, so the user must type the name to confirm. */
static int reset_ask(const struct options *o, struct site *s, struct error *err)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += s->members[i].plan.leaving != 0;
        bool all = leave_all(s);
        if (o->yes)
                return 0;
        print_err("Kubernetes will be removed from %zu host%s, with all its data:", n,
                n == 1 ? "" : "s");
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.leaving)
                        print_err(" %s", s->members[i].node->name);
        print_err(all ? "\nThis is the whole cluster. Type its name (%s) to go on: "
                      : "\nType yes to go on: ",
                s->cluster->name);
        if (operate_answer(all ? s->cluster->name : "yes"))
                return 0;
        print_err("\n");
        error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return error_hint(
                err, all ? "type the cluster's name, or give --yes" : "type yes, or give --yes");
}

static void reset_say(const struct options *o, const struct site *s)
{
        if (cmd_json(o))
                return;
        if (leave_all(s))
                print("Kubernetes was removed from all hosts of %s; its certificates stay in %s.\n",
                        s->cluster->name, s->identity.dir);
        else
                print("done; take the nodes out of cluster.yaml, or the next slipway up brings them back.\n");
}

static int reset_hosts(
        const struct options *o, struct site *s, const struct strings *names, struct error *err)
{
        int r = leave_choose(s, names, o->force ? LEAVE_FORCE : 0, err);
        if (r == 0)
                r = reset_ask(o, s, err);
        if (r == 0)
                r = cmd_operate(o, s, leave_apply, err);
        if (r == 0)
                reset_say(o, s);
        return r;
}

static int remove_machines(
        const struct options *o, struct site *s, const struct strings *names, struct error *err)
{
        int r = leave_choose(s, names, LEAVE_MACHINE, err);
        return r < 0 ? r : cmd_operate(o, s, leave_apply, err);
}

static int reset_run(const struct options *o, const char *verb, const struct strings *names,
        bool machines, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        r = site_open(&s, base, &a, c, operate_state(o), verb, err);
        if (r == 0)
                r = (machines && s.ops->makes_machines ? remove_machines : reset_hosts)(
                        o, &s, names, err);
        site_release(&s);
        return r;
}

int cmd_reset(const struct options *o, struct error *err)
{
        return reset_run(o, "reset", &o->args, false, err);
}

/* Existing hosts are not destroyed: Kubernetes is removed from them. */
int cmd_down(const struct options *o, struct error *err)
{
        return reset_run(o, "down", &(struct strings){ 0 }, true, err);
}
