/* The actions of `slipway etcd` that replace the store: restore and recover. */
#include "cluster/etcd/restore/restore.h"
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

static int restore_ask(struct etcd_job *j, struct restore *r, struct error *err)
{
        struct str loss CLEANUP(str_release) = { 0 };
        int e = restore_prepare(r, &j->view, operate_approval(j->o), &loss, err);
        if (e != APPROVAL_WANTED)
                return e;
        print_err("%s.\nThe API does not answer meanwhile. Type yes to go on: ", str_text(&loss));
        if (operate_answer("yes"))
                return 0;
        print_err("\n");
        error_set(err, ECANCELED, EXIT_USAGE, "nothing was changed");
        return error_hint(err, "type yes, or give --yes");
}

static int restore(struct etcd_job *j, struct restore *r, struct snapshot *s, struct error *err)
{
        if (j->o->args.n < 2) {
                struct error newest CLEANUP(error_release) = { 0 };
                bool any = snapshot_open(s, &j->site, NULL, true, &newest) == 0;
                error_set(err, EINVAL, EXIT_USAGE,
                        "'slipway etcd restore' needs a snapshot (everything written after the snapshot will be lost)");
                return any ? error_hint(err, "the newest snapshot here: slipway etcd restore %s",
                                     s->path)
                           : error_hint(err, "see 'slipway help etcd'");
        }
        int e = snapshot_open(s, &j->site, j->o->args.v[1], j->o->force, err);
        if (e < 0)
                return e;
        restore_init(r, &j->site, s);
        e = restore_ask(j, r, err);
        return e < 0 ? e : restore_run(j, r, err);
}

static void say_restored(
        const struct options *o, const struct site *s, const struct snapshot *snapshot)
{
        if (cmd_json(o))
                return;
        print("%s was restored: etcd holds revision %" PRId64 " of %s.\n", s->cluster->name,
                snapshot->revision, snapshot->path);
        print("next: slipway up\n");
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
        const struct recover_options how = {
                .dir = j->o->dir, .to = j->o->to, .force = j->o->force
        };
        int e = recover_prepare(r, &j->site, s, &j->view, &how, err);
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
        if (e == 0 && !cmd_json(o))
                print("etcd was rebuilt from %s (raft index %" PRIu64
                      "): %s.\nWrites that only the lost members acknowledged after that are lost.\n",
                        r.survivor->node->name, r.last.index, recover_until(&r));
        if (e == 0)
                say_restored(o, &j.site, &s);
        return e;
}
