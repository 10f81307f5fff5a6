/* rollback: back to the version before the upgrade. What is stored may be in a form that this version does not read: then the snapshot that was taken before the
 * upgrade is put back as well, everywhere at once, with the old version started upon it.
 *
 * Killed: the file names the old version from the moment the plan was approved, and the restore knows that it was begun; the next rollback goes on with it. */
#include <event2/event.h>

#include "cluster/restore.h"
#include "cluster/upgrade.h"
#include "cmd/upgrade.h"

/* What was found out before anything is done. */
struct back {
        const struct options *o;
        struct arena *arena;
        struct version to;
        const char *version, *snapshot; /* of previous.json; the snapshot may be NULL */
        const char *changed;            /* groups of the API that are stored in another version now; NULL: none */
        bool begun;                     /* a restore of it was, and has not ended */
};

static int look(struct back *b, struct event_base *base, struct error *err)
{
        struct site s = { .identity.lock = -1 };
        struct cluster *c;
        struct str changed CLEANUP(str_release) = { 0 };
        struct error unfinished CLEANUP(error_release) = { 0 };
        int r = cmd_load(b->o, b->arena, &c, err);
        if (r < 0)
                return r;
        r = site_look(&s, base, b->arena, c, operate_state(b->o), err);
        if (r == 0 && (r = upgrade_previous(&s, &b->version, &b->snapshot, err)) == -ENOENT) {
                error_release(err);
                *err = (struct error){ 0 };
                error_set(err, ENOENT, EXIT_USAGE, "%s was not upgraded from here: there is no version to go back to", c->name);
                r = error_hint(err, "nothing was changed");
        }
        if (r == 0)
                r = upgrade_parse(b->version, b->arena, &b->to, err);
        b->begun = r == 0 && restore_unfinished(&s, &unfinished) < 0;
        if (r == 0 && !b->begun && !b->o->force && b->to.minor != c->kubernetes.minor && (r = site_kube(&s, err)) == 0)
                r = upgrade_groups_changed(&s, &changed, err);
        b->changed = changed.len ? arena_strdup(b->arena, changed.data) : NULL;
        site_release(&s);
        return r;
}

/* ---- with the snapshot ---- */

struct storing {
        const struct back *back;
        struct edit *edit;
        struct operation op;
        struct site site;
        struct snapshot snapshot;
        struct restore restore;
};

static void plan_words(const struct storing *st, struct str *out)
{
        const struct snapshot *s = &st->snapshot;
        str_addf(out, "plan for %s: back to %s, with the store of that time\n", st->site.cluster->name, st->back->to.text);
        if (st->back->changed)
                str_addf(out, "  %s may not be able to read what was stored since: these groups of the API have another version now: %s\n", st->back->to.text,
                        st->back->changed);
        str_addf(out, "  etcd gets back what it held at %s", s->taken ? s->taken : "the time of the snapshot");
        if (s->revision >= 0)
                str_addf(out, " (revision %" PRId64 ", %" PRId64 " keys)", s->revision, s->keys);
        str_addf(out, ": %s\n", s->path);
        str_add(out, "  lost is every object that was made or changed since then; what was deleted since comes back; pods that were started since end\n"
                     "  the API does not answer until that is done, some minutes; pods from before go on running\n");
}

/* Data is lost: nobody does that by accident. */
static int approve(struct storing *st, struct error *err)
{
        const struct options *o = st->back->o;
        struct str text CLEANUP(str_release) = { 0 };
        bool json = o->output && streq(o->output, "json");
        plan_words(st, &text);
        json_t *event = json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "event", "plan", "kubernetes", st->back->to.text, "snapshot", st->snapshot.path, "taken",
                st->snapshot.taken, "changed", st->back->changed);
        ui_say(st->op.ui, str_text(&text), event);
        json_decref(event);
        if (o->yes)
                return 0;
        if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !json)
                return ui_ask(st->op.ui, "go on?") ? 0 : error_set(err, ECANCELED, EXIT_USAGE, "the plan was not approved: nothing was changed");
        error_set(err, EPERM, EXIT_USAGE, "going back to %s loses what was written since the upgrade, and nobody is there to be asked", st->back->to.text);
        return error_hint(err, "give --yes when that is meant, or --force to go back and keep the store as it is; nothing was changed");
}

static void step_plan_back(struct step *s)
{
        struct storing *st = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        int r = approve(st, &err);
        if (r == 0)
                r = edit_accepted(&st->site, &err);
        if (r == 0)
                restore_steps(&st->restore);
        step_done(s, r < 0 ? &err : NULL);
}

static int store(struct storing *st, struct event_base *base, struct cluster *c, struct error *err)
{
        const struct back *b = st->back;
        int r = site_open(&st->site, base, b->arena, c, operate_state(b->o), "rollback", err);
        if (r == 0)
                r = snapshot_open(&st->snapshot, &st->site, b->snapshot, false, err);
        if (r == 0)
                r = operate_begin(&st->op, b->o, &st->site, err);
        if (r < 0)
                return r;
        st->site.accepted_arg = st->edit;
        st->site.allow_down = true;
        restore_init(&st->restore, &st->site, &st->snapshot);
        st->restore.live = true;
        run_step(&st->site.run, "plan", NULL, step_plan_back, st);
        return operate_end(&st->op, err);
}

static int with_snapshot(const struct back *b, struct event_base *base, struct edit *e, struct cluster *c, struct error *err)
{
        struct storing st = { .back = b, .edit = e, .site = { .identity.lock = -1 } };
        if (!b->snapshot) {
                error_set(err, ENOENT, EXIT_PREFLIGHT, "no snapshot was taken before the upgrade, and %s may not be able to read what was stored since: %s",
                        b->to.text, b->changed);
                return error_hint(err, "--force goes back all the same; nothing was changed");
        }
        int r = store(&st, base, c, err);
        restore_release(&st.restore);
        site_release(&st.site);
        return r;
}

int cmd_rollback(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct back b = { .o = o, .arena = &a };
        struct cluster *c;
        struct edit e;
        edit_begin(&e, o, &a);
        int r = look(&b, base, err);
        if (r == 0)
                r = upgrade_edit(&e, &b.to, true, &c, err);
        if (r < 0)
                return r;
        bool stored = b.changed || b.begun;
        if (stored && (r = with_snapshot(&b, base, &e, c, err)) < 0)
                return r;
        struct up_call call = { .verb = "rollback", .accepted = stored ? NULL : edit_accepted, .arg = &e, .force = o->force, .allow_down = true };
        return cmd_up_cluster(o, &call, &a, c, err);
}
