#include "base/print.h"
#include "cluster/upgrade/rollback.h"
#include "cluster/upgrade/upgrade.h"
#include "cluster/upgrade/version.h"

/* ---- what can be returned to ---- */

static int rollback_previous(struct rollback *b, struct site *s, struct error *err)
{
        const char *version;
        int r = upgrade_previous(s, &version, &b->previous, err);
        if (r != -ENOENT)
                return r < 0 ? r : upgrade_parse(version, s->arena, &b->to, err);
        error_set(err, ENOENT, EXIT_USAGE,
                "%s was not upgraded from this computer: there is no version to roll back to",
                s->cluster->name);
        return error_hint(err, "nothing was changed");
}

static int rollback_changed(struct rollback *b, struct site *s, struct error *err)
{
        struct str changed CLEANUP(str_release) = { 0 };
        int r = site_kube(s, err);
        if (r == 0)
                r = upgrade_groups_changed(s, &changed, err);
        b->changed = changed.len ? arena_strdup(s->arena, changed.data) : NULL;
        return r;
}

int rollback_look(struct rollback *b, struct site *s, bool force, struct error *err)
{
        int r = rollback_previous(b, s, err);
        b->begun = r == 0 && restore_of_rollback(s);
        if (r < 0 || b->begun)
                return r;
        r = restore_unfinished(s, err);
        if (r == 0 && !force && b->to.minor != s->cluster->kubernetes.minor)
                r = rollback_changed(b, s, err);
        return r;
}

/* ---- with the snapshot ---- */

bool rollback_stores(const struct rollback *b) { return b->changed || b->begun; }

int rollback_open(struct rollback *b, struct site *s, struct error *err)
{
        if (!b->previous) {
                error_set(err, ENOENT, EXIT_PREFLIGHT,
                        "no snapshot was taken before the upgrade, and %s may not be able to read what was stored since: %s",
                        b->to.text, b->changed);
                return error_hint(err, "--force rolls back anyway; nothing was changed");
        }
        b->site = s;
        int r = snapshot_open(&b->snapshot, s, b->previous, false, err);
        if (r < 0)
                return r;
        s->allow_down = true;
        restore_init(&b->restore, s, &b->snapshot);
        b->restore.live = true;
        return 0;
}

void rollback_text(const struct rollback *b, struct str *out)
{
        const struct snapshot *s = &b->snapshot;
        text_addf(out, "plan for %s: back to %s, with the etcd data of that time\n",
                b->site->cluster->name, b->to.text);
        if (b->changed)
                text_addf(out,
                        "  %s may not be able to read what was stored since: these groups of the API have another version now: %s\n",
                        b->to.text, b->changed);
        text_addf(out, "  etcd is restored to its state at %s",
                s->taken ? s->taken : "the time of the snapshot");
        if (s->revision >= 0)
                text_addf(out, " (revision %" PRId64 ", %" PRId64 " keys)", s->revision, s->keys);
        text_addf(out, ": %s\n", s->path);
        str_add(out,
                "  every object created or changed since then is lost; deleted objects come back; pods started since then end\n"
                "  the API does not answer until that is done (some minutes); older pods keep running\n");
}

json_t *rollback_json(const struct rollback *b)
{
        return json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "event", "plan", "kubernetes", b->to.text,
                "snapshot", b->snapshot.path, "taken", b->snapshot.taken, "changed", b->changed);
}

/* Data is lost, so this needs explicit approval. */
int rollback_approved(const struct rollback *b, enum approval given, struct error *err)
{
        if (given != APPROVAL_NOBODY)
                return given == APPROVAL_ASK ? APPROVAL_WANTED : APPROVED;
        error_set(err, EPERM, EXIT_USAGE,
                "rolling back to %s loses what was written since the upgrade, and there is no terminal to ask on",
                b->to.text);
        return error_hint(err,
                "confirm with --yes, or use --force to roll back and keep etcd's data as it is; nothing was changed");
}

void rollback_steps(struct rollback *b) { restore_steps(&b->restore); }

void rollback_release(struct rollback *b) { restore_release(&b->restore); }
