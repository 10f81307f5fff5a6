/* reset: removes nodes from the cluster and Kubernetes from their hosts; without names, the whole
 * cluster. down: removes the whole cluster, with the machines that slipway created. */
#include <event2/event.h>

#include "addon/outside.h"
#include "cluster/leave/leave.h"
#include "cluster/services/cleanup.h"
#include "cluster/up/up.h"
#include "cmd/operate.h"
#include "config/scalar.h"

#define CLEANUP_MAX ((int64_t)24 * 3600)

/* Data goes for good, so it is asked for by name. */
static int reset_ask(const struct operation *op, struct error *err)
{
        struct site *s = op->site;
        struct str text CLEANUP(str_release) = { 0 };
        size_t n = 0;
        bool all = leave_all(s);
        for (size_t i = 0; i < s->count; i++)
                n += s->members[i].plan.leaving != 0;
        text_addf(&text, "Kubernetes will be removed from %zu host%s, with all its data:", n,
                n == 1 ? "" : "s");
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.leaving)
                        text_addf(&text, " %s", s->members[i].node->name);
        if (all)
                text_addf(&text, "\nThis is the whole cluster. Type its name (%s) to go on: ",
                        s->cluster->name);
        else
                text_addf(&text, "\nType yes to go on: ");
        if (ui_ask_for(op->ui, str_text(&text), all ? s->cluster->name : "yes"))
                return 0;
        error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return error_hint(
                err, all ? "type the cluster's name, or give --yes" : "type yes, or give --yes");
}

/* Machines that slipway made can be made again; what is deleted outside of them is a person's
 * business, when one is there. */
static int machines_ask(const struct operation *op, struct error *err)
{
        bool asks = outside_any(op->site->found.outside) &&
                    operate_approval(op->options) == APPROVAL_ASK;
        return !asks || ui_ask(op->ui, "go on?") ? 0 : -ECANCELED;
}

static void outside_say(const struct operation *op)
{
        const struct outside *o = op->site->found.outside;
        struct str text CLEANUP(str_release) = { 0 };
        outside_text(o, &text);
        if (!text.len)
                return;
        json_t *json = outside_json(o);
        ui_say(op->ui, str_text(&text), json);
        json_decref(json);
}

static void reset_say(const struct options *o, const struct site *s)
{
        if (cmd_json(o))
                return;
        if (leave_all(s))
                print("Kubernetes was removed from all hosts of %s; its certificates stay in %s.\n",
                        s->cluster->name, s->identity.dir);
        else
                print("Kubernetes was removed. Remove the nodes from cluster.yaml too, or the next 'slipway up' adds them again.\n");
}

static int cleanup_how(
        const struct options *o, unsigned *seconds, enum volumes_fate *fate, struct error *err)
{
        int64_t n = CLEANUP_SECONDS;
        *seconds = 0;
        if (o->keep_volumes + o->delete_volumes + o->no_cleanup > 1)
                return error_set(err, EINVAL, EXIT_USAGE,
                        "--keep-volumes, --delete-volumes and --no-cleanup exclude each other");
        *fate = o->keep_volumes     ? VOLUMES_KEEP
                : o->delete_volumes ? VOLUMES_DELETE
                                    : VOLUMES_BY_POLICY;
        if (o->no_cleanup)
                return 0;
        if (o->cleanup_timeout &&
                (!duration_parse(o->cleanup_timeout, false, &n) || n <= 0 || n > CLEANUP_MAX)) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "--cleanup-timeout: '%s' is not a time of at most 24 hours",
                        o->cleanup_timeout);
                return error_hint(err, "write it as 90s, 5m or 1h");
        }
        *seconds = (unsigned)n;
        return 0;
}

static void kept_say(const struct operation *op)
{
        const struct strings *kept = &op->site->provider.kept;
        for (size_t i = 0; i < kept->n; i++) {
                struct str text CLEANUP(str_release) = { 0 };
                json_t *json = json_pack("{s:s, s:s}", "event", "kept", "message", kept->v[i]);
                text_addf(&text, "%s\n", kept->v[i]);
                ui_say(op->ui, str_text(&text), json);
                json_decref(json);
        }
}

/* Choose, look, ask, do. */
static int reset_nodes(const struct options *o, struct site *s, const struct strings *names,
        unsigned how, struct error *err)
{
        struct operation op;
        int r = leave_choose(s, names, how, err);
        if (r == 0)
                r = cleanup_how(o, &s->cleanup, &s->volumes_fate, err);
        if (r == 0)
                r = operate_begin(&op, o, s, err);
        if (r < 0)
                return r;
        r = leave_observe(s, err);
        if (r == 0) {
                outside_say(&op);
                if (!o->yes)
                        r = (how & LEAVE_MACHINE ? machines_ask : reset_ask)(&op, err);
        }
        if (r == 0)
                r = leave_apply(s, err);
        kept_say(&op);
        return operate_close(&op, r, err);
}

static int reset_hosts(
        const struct options *o, struct site *s, const struct strings *names, struct error *err)
{
        int r = reset_nodes(o, s, names, o->force ? LEAVE_FORCE : 0, err);
        if (r == 0)
                reset_say(o, s);
        return r;
}

static int remove_machines(
        const struct options *o, struct site *s, const struct strings *names, struct error *err)
{
        return reset_nodes(o, s, names, LEAVE_MACHINE, err);
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
