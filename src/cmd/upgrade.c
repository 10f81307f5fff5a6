/* upgrade and rollback: an edit of the version in the file, and what up does then. */
#include <event2/event.h>

#include "artifact/catalogue.h"
#include "cluster/upgrade.h"
#include "cmd/edited.h"
#include "config/edit.h"

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
                return error_hint(err, "write it as 1.36.3; nothing was changed");
        }
        if (!catalogue_for(a, out, &known)) {
                error_set(err, EINVAL, EXIT_USAGE, "slipway does not know Kubernetes %u.%u", out->major, out->minor);
                return error_hint(err, "it knows %s; nothing was changed", catalogue_minors());
        }
        out->text = arena_strdup(a, text);
        return 0;
}

/* The file as it will be is checked whole: what the cluster is told may not be known to the new version. */
static int run(const struct options *o, struct arena *a, const struct version *to, const char *verb, bool down, struct error *err)
{
        struct edit e;
        struct cluster *c;
        struct problems problems = { .arena = a };
        struct str text CLEANUP(str_release) = { 0 };
        const struct tree_file *file;
        edit_begin(&e, o, a);
        int r = edit_before(&e, &c, err);
        if (r == 0 && !streq(c->kubernetes.text, to->text)) {
                r = edit_version(c, to->text, &file, &text, err);
                if (r < 0)
                        return r;
                edit_keep(&e, file, &text);
                if (edit_load(&e, false, &c, &problems, err) < 0)
                        return edit_refused(&problems, err);
        }
        struct up_call call = { .verb = verb, .accepted = edit_accepted, .arg = &e, .force = o->force, .allow_down = down };
        return r < 0 ? r : cmd_up_cluster(o, &call, a, c, err);
}

int cmd_upgrade(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct version to;
        int r = parse(o->args.v[0], &a, &to, err);
        return r < 0 ? r : run(o, &a, &to, "upgrade", false, err);
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
        return r < 0 ? r : run(o, &a, &to, "rollback", true, err);
}
