/* The actions of `slipway etcd` that replace the store: restore and recover. */
#include "cluster/restore.h"
#include "cmd/etcd.h"

static int restore_run(struct etcd_job *j, struct restore *r, struct error *err)
{
        struct operation op;
        int e = operate_begin(&op, j->o, &j->site, err);
        if (e < 0)
                return e;
        restore_steps(r);
        return operate_end(&op, err);
}

/* What will be lost, as far as it can be seen. */
static int loss(struct etcd_job *j, const struct snapshot *s, struct str *out, struct error *err)
{
        int64_t now = -1;
        int r = etcd_look(&j->site, &j->view, err);
        for (size_t i = 0; r == 0 && i < j->view.count; i++)
                if (j->view.seen[i].answered && j->view.seen[i].state.revision > now)
                        now = j->view.seen[i].state.revision;
        str_addf(out, "etcd of %s goes back to %s", j->site.cluster->name, s->path);
        if (s->taken || s->revision >= 0)
                str_addf(out, " (%s%s", s->taken ? s->taken : "", s->taken && s->revision >= 0 ? ", " : "");
        if (s->revision >= 0)
                str_addf(out, "revision %" PRId64, s->revision);
        str_addf(out, "%s; what was written since is lost", s->taken || s->revision >= 0 ? ")" : "");
        if (now >= 0 && s->revision >= 0 && now > s->revision)
                str_addf(out, ": it is at revision %" PRId64 " now, %" PRId64 " changes later", now, now - s->revision);
        return r;
}

static int ask(struct etcd_job *j, const struct snapshot *s, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        int r = loss(j, s, &text, err);
        if (r < 0)
                return r;
        if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !etcd_wants_json(j->o)) {
                fprintf(stderr, "%s.\nThe API is away meanwhile. Type yes to go on: ", str_text(&text));
                if (operate_answer("yes"))
                        return 0;
                fputc('\n', stderr);
                error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
                return error_hint(err, "type yes, or give --yes");
        }
        error_set(err, EPERM, EXIT_USAGE, "%s; and nobody is there to be asked", str_text(&text));
        return error_hint(err, "give --yes when that is meant; nothing was changed");
}

static int restore(struct etcd_job *j, struct restore *r, struct snapshot *s, struct error *err)
{
        if (j->o->args.n < 2) {
                struct error newest CLEANUP(error_release) = { 0 };
                bool any = snapshot_open(s, &j->site, NULL, true, &newest) == 0;
                error_set(err, EINVAL, EXIT_USAGE, "'slipway etcd restore' needs a snapshot: what was written after it is lost");
                return any ? error_hint(err, "the newest here: slipway etcd restore %s", s->path) : error_hint(err, "slipway help etcd explains");
        }
        int e = snapshot_open(s, &j->site, j->o->args.v[1], j->o->force, err);
        if (e < 0)
                return e;
        restore_init(r, &j->site, s);
        e = j->o->yes || restore_begun(r) ? 0 : ask(j, s, err);
        return e < 0 ? e : restore_run(j, r, err);
}

static void say_restored(const struct options *o, const struct site *s, const struct snapshot *snapshot)
{
        if (etcd_wants_json(o))
                return;
        printf("%s is back: etcd holds revision %" PRId64 " of %s.\n", s->cluster->name, snapshot->revision, snapshot->path);
        printf("see to the rest:  slipway up\n");
}

int etcd_restore_run(const struct options *o, struct error *err)
{
        struct etcd_job j CLEANUP(etcd_job_release) = { 0 };
        struct restore r CLEANUP(restore_release) = { 0 };
        struct snapshot s = { 0 };
        int e = etcd_job_open(&j, o, "etcd restore", err);
        if (e == 0)
                e = restore(&j, &r, &s, err);
        if (e == 0)
                say_restored(o, &j.site, &s);
        return e;
}

static int recover(struct etcd_job *j, struct restore *r, struct snapshot *s, struct error *err)
{
        int e = restore_unfinished(&j->site, err);
        if (e == 0)
                e = etcd_wake(&j->site, &j->view, err);
        if (e == 0)
                e = snapshot_name(s, &j->site, j->o->dir, j->o->to, err);
        if (e < 0)
                return e;
        restore_init(r, &j->site, s);
        e = recover_choose(r, &j->view, j->o->force, err);
        if (e < 0)
                return e;
        s->version = r->last.version;
        s->expected = r->last.size;
        e = snapshot_room(s, err); /* before its etcd is stopped */
        return e < 0 ? e : restore_run(j, r, err);
}

int etcd_recover_run(const struct options *o, struct error *err)
{
        struct etcd_job j CLEANUP(etcd_job_release) = { 0 };
        struct restore r CLEANUP(restore_release) = { 0 };
        struct snapshot s = { 0 };
        int e = etcd_job_open(&j, o, "etcd recover", err);
        if (e == 0)
                e = recover(&j, &r, &s, err);
        if (e == 0 && !etcd_wants_json(o))
                printf("etcd was rebuilt from %s (raft index %" PRIu64 "): %s.\nWhat the lost members acknowledged without it after that is gone.\n",
                        r.survivor->node->name, r.last.index, recover_until(&r));
        if (e == 0)
                say_restored(o, &j.site, &s);
        return e;
}
