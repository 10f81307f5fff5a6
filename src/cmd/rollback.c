/* rollback: returns to the version before the upgrade (cluster/upgrade/rollback.h). */
#include <event2/event.h>

#include "cluster/upgrade/rollback.h"
#include "cluster/upgrade/version.h"
#include "cmd/operate.h"

static int rollback_ask(const struct rollback *b, const struct operation *op, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        json_t *event = rollback_json(b);
        rollback_text(b, &text);
        ui_say(op->ui, str_text(&text), event);
        json_decref(event);
        int r = rollback_approved(b, operate_approval(op->options), err);
        if (r != APPROVAL_WANTED || ui_ask(op->ui, "go on?"))
                return r < 0 ? r : 0;
        return error_set(
                err, ECANCELED, EXIT_USAGE, "the plan was not approved: nothing was changed");
}

static int rollback_store(
        const struct options *o, struct rollback *b, struct edit *e, struct error *err)
{
        struct operation op;
        int r = operate_begin(&op, o, b->site, err);
        if (r < 0)
                return r;
        r = rollback_ask(b, &op, err);
        if (r == 0)
                r = edit_write(e, err);
        if (r < 0)
                return operate_close(&op, r, err);
        rollback_steps(b);
        return operate_end(&op, err);
}

static int rollback_snapshot(const struct options *o, struct rollback *b, struct edit *e,
        struct arena *a, struct cluster *c, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        int r = site_open(&s, base, a, c, operate_state(o), "rollback", err);
        if (r == 0)
                r = rollback_open(b, &s, err);
        if (r == 0)
                r = rollback_store(o, b, e, err);
        rollback_release(b);
        site_release(&s);
        return r;
}

static int rollback_find(
        const struct options *o, struct rollback *b, struct arena *a, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        struct cluster *c;
        int r = cmd_load(o, a, &c, err);
        if (r < 0)
                return r;
        r = site_look(&s, base, a, c, operate_state(o), err);
        if (r == 0)
                r = rollback_look(b, &s, o->force, err);
        site_release(&s);
        return r;
}

int cmd_rollback(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct rollback b = { 0 };
        struct cluster *c;
        struct edit e;
        int r = rollback_find(o, &b, &a, err);
        if (r == 0)
                r = cmd_edit(o, &a, &e, &c, err);
        if (r == 0)
                r = upgrade_edit(&e, &b.to, true, &c, err);
        if (r < 0)
                return r;
        bool stored = rollback_stores(&b);
        if (stored && (r = rollback_snapshot(o, &b, &e, &a, c, err)) < 0)
                return r;
        struct up_call call = { .verb = "rollback",
                .edit = stored ? NULL : &e,
                .force = o->force,
                .allow_down = true };
        return cmd_up_cluster(o, &call, &a, c, err);
}
