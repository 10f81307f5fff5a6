/* Before a restore or a recovery: finds out what it would do, and refuses it if that is impossible
 * or not approved. */
#include "base/print.h"
#include "cluster/etcd/restore/restore.h"

/* What will be lost, as far as it is known. */
static void restore_loss(const struct restore *r, const struct etcd_view *v, struct str *out)
{
        const struct snapshot *s = r->snapshot;
        int64_t now = -1;
        for (size_t i = 0; i < v->count; i++)
                if (v->seen[i].answered && v->seen[i].state.revision > now)
                        now = v->seen[i].state.revision;
        text_addf(out, "etcd of %s is restored from %s", r->site->cluster->name, s->path);
        if (s->taken || s->revision >= 0)
                text_addf(out, " (%s%s", s->taken ? s->taken : "",
                        s->taken && s->revision >= 0 ? ", " : "");
        if (s->revision >= 0)
                text_addf(out, "revision %" PRId64, s->revision);
        text_addf(out, "%s; everything written since then is lost",
                s->taken || s->revision >= 0 ? ")" : "");
        if (now >= 0 && s->revision >= 0 && now > s->revision)
                text_addf(out, ": etcd is at revision %" PRId64 " now, %" PRId64 " changes later",
                        now, now - s->revision);
}

int restore_prepare(struct restore *r, struct etcd_view *v, enum approval given, struct str *loss,
        struct error *err)
{
        if (given == APPROVAL_YES || restore_begun(r))
                return APPROVED;
        int e = etcd_look(r->site, v, err);
        if (e < 0)
                return e;
        restore_loss(r, v, loss);
        if (given == APPROVAL_ASK)
                return APPROVAL_WANTED;
        error_set(err, EPERM, EXIT_USAGE, "%s; and there is no terminal to ask on", str_text(loss));
        return error_hint(err, "confirm with --yes; nothing was changed");
}

int recover_prepare(struct restore *r, struct site *site, struct snapshot *s, struct etcd_view *v,
        const struct recover_options *o, struct error *err)
{
        int e = restore_unfinished(site, err);
        if (e == 0)
                e = etcd_wake(site, v, err);
        if (e == 0)
                e = snapshot_name(s, site, o->dir, o->to, err);
        if (e < 0)
                return e;
        restore_init(r, site, s);
        e = recover_choose(r, v, o->force, err);
        if (e < 0)
                return e;
        s->version = r->last.version;
        s->expected = r->last.size;
        return snapshot_room(s, err); /* before its etcd is stopped */
}
