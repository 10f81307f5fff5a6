/* upgrade and rollback: an edit of the version in the file, and what up does then. */
#include <event2/event.h>

#include "artifact/catalogue.h"
#include "cluster/upgrade.h"
#include "cmd/operate.h"
#include "config/rewrite.h"

static void base_free(struct event_base **b)
{
        if (*b)
                event_base_free(*b);
}

static int parse(const char *text, struct arena *a, struct version *out, struct error *err)
{
        struct catalogue known;
        text += *text == 'v';
        if (!version_parse(text, out)) {
                error_set(err, EINVAL, EXIT_USAGE, "'%s' is not a version of Kubernetes", text);
                return error_hint(err, "write it as 1.36.3");
        }
        if (!catalogue_for(a, out, &known)) {
                error_set(err, EINVAL, EXIT_USAGE, "slipway does not know Kubernetes %u.%u", out->major, out->minor);
                return error_hint(err, "slipway help upgrade lists what it knows; nothing was changed");
        }
        out->text = arena_strdup(a, text);
        return 0;
}

/* The file says the new version before anything changes, so that a run that is killed is gone on with by any `up`; it says the old one again when nothing was. */
static int run(const struct options *o, struct arena *a, struct cluster *c, const struct version *to, const char *verb, bool down, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct site s = { .identity.lock = -1 };
        const struct tree *value = tree_get(c->src, "kubernetes");
        char *before CLEANUP(free_p) = NULL;
        struct error undo CLEANUP(error_release) = { 0 };
        if (!value)
                return error_set(err, EINVAL, EXIT_CONFIG, "the file does not say which version of Kubernetes it wants");
        int r = site_open(&s, base, a, c, operate_state(o), verb, err);
        if (r == 0 && !streq(c->kubernetes.text, to->text))
                r = rewrite_scalar(value, to->text, &before, err);
        if (r == 0) {
                c->kubernetes = *to;
                s.force = o->force;
                s.allow_down = down;
                r = cmd_operate(o, &s, up_steps, err);
                bool untouched = !s.plan || s.plan->state == STEP_FAILED || s.plan->state == STEP_SKIPPED || s.plan->state == STEP_WAITING;
                if (r < 0 && untouched && before && rewrite_undo(value, before, &undo) < 0)
                        fprintf(stderr, "the file still says kubernetes: %s, and could not be put back: %s\n", to->text, undo.message);
        }
        if (r == 0 && !(o->output && streq(o->output, "json")))
                printf("%s runs Kubernetes %s on %zu nodes.\n", c->name, to->text, s.count);
        site_release(&s);
        return r;
}

int cmd_upgrade(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        struct version to;
        int r = parse(o->args.v[0], &a, &to, err);
        if (r == 0)
                r = cmd_load(o, &a, &c, err);
        return r < 0 ? r : run(o, &a, c, &to, "upgrade", false, err);
}

/* ---- rollback ---- */

/* What the API stores may be in a form that the version before does not read. */
static int storage_same(struct site *s, const char *snapshot, struct error *err)
{
        struct str changed CLEANUP(str_release) = { 0 };
        int r = site_kube(s, err);
        if (r == 0)
                r = upgrade_groups_changed(s, &changed, err);
        if (r < 0 || !changed.len)
                return r;
        error_set(err, EINVAL, EXIT_PREFLIGHT,
                "the version before may not be able to read what was stored since: these groups of the API have another version now: %s", changed.data);
        return error_hint(err, "--force goes back all the same; afterwards 'slipway etcd restore %s' puts the store of that time back; nothing was changed",
                snapshot ? snapshot : "SNAPSHOT");
}

int cmd_rollback(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct cluster *c;
        struct version to;
        struct site s = { .identity.lock = -1 };
        const char *version = NULL, *snapshot = NULL;
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        r = site_look(&s, base, &a, c, operate_state(o), err);
        if (r == 0 && (r = upgrade_previous(&s, &version, &snapshot, err)) == -ENOENT) {
                error_release(err);
                *err = (struct error){ 0 };
                error_set(err, ENOENT, EXIT_USAGE, "%s was not upgraded from here: there is no version to go back to", c->name);
                r = error_hint(err, "nothing was changed");
        }
        if (r == 0)
                r = parse(version, &a, &to, err);
        if (r == 0 && !o->force && to.minor != c->kubernetes.minor)
                r = storage_same(&s, snapshot, err);
        site_release(&s);
        return r < 0 ? r : run(o, &a, c, &to, "rollback", true, err);
}
