/* The actions of `slipway etcd` that are runs: checked before anything changes, then carried
 * out in steps. */
#include <event2/event.h>

#include "cluster/etcd/drill/drill.h"
#include "cluster/etcd/prepare.h"
#include "cmd/etcd.h"

int etcd_job_open(struct etcd_job *j, const struct options *o, const char *verb, struct error *err)
{
        j->o = o;
        j->base = event_base_new();
        int r = cmd_load(o, &j->arena, &j->cluster, err);
        if (r < 0)
                return r;
        j->site.identity.lock = -1;
        j->opened = true;
        return site_open(&j->site, j->base, &j->arena, j->cluster, operate_state(o), verb, err);
}

void etcd_job_release(struct etcd_job *j)
{
        etcd_view_release(&j->view);
        if (j->opened)
                site_release(&j->site);
        event_base_free(j->base);
        arena_release(&j->arena);
}

static void print_result(const struct options *o, json_t *result)
{
        if (cmd_json(o))
                print_json(result, JSON_COMPACT | JSON_PRESERVE_ORDER);
        json_decref(result);
}

/* ---- snapshot ---- */

static int snapshot(struct etcd_job *j, struct snapshot *s, struct error *err)
{
        struct operation op;
        int r = snapshot_prepare(s, &j->site, &j->view, j->o->dir, j->o->to, err);
        if (r == 0)
                r = operate_begin(&op, j->o, &j->site, err);
        if (r < 0)
                return r;
        snapshot_steps(s, &j->view);
        return operate_end(&op, err);
}

int etcd_snapshot_run(const struct options *o, struct error *err)
{
        struct etcd_job j CLEANUP(etcd_job_release) = { 0 };
        struct snapshot s = { 0 };
        int r = etcd_job_open(&j, o, "etcd snapshot", err);
        if (r == 0)
                r = snapshot(&j, &s, err);
        if (r < 0)
                return r;
        json_t *result = snapshot_json(&s);
        json_object_set_new(result, "snapshot", json_string(s.path));
        print_result(o, result);
        if (!cmd_json(o))
                print("%s\nrevision %" PRId64 ", %" PRId64
                      " keys, %.1f MB, sha256 %s\ntest it:  slipway etcd drill\n",
                        s.path, s.revision, s.keys, (double)s.size / 1e6, s.digest);
        return EXIT_OK;
}

/* ---- drill ---- */

static void print_drill(const struct drill *d)
{
        print("%-44s %11s %10s %10s\n", "KIND", "IN SNAPSHOT", "READ BACK", "LIVE NOW");
        for (size_t i = 0; i < d->kind_count; i++) {
                const struct drill_kind *k = &d->kinds[i];
                char *name CLEANUP(free_p) = *k->group ? xasprintf("%s.%s", k->resource, k->group)
                                                       : xstrdup(k->resource);
                char *live CLEANUP(free_p) =
                        k->live < 0 ? xstrdup("-") : xasprintf("%" PRId64, k->live);
                if (k->keys || k->objects)
                        print("%-44s %11zu %10zu %10s\n", name, k->keys, k->objects, live);
        }
        print("\n%s is good: all %zu objects read back at revision %" PRId64 ".\n",
                d->snapshot->path, d->objects, d->revision);
        if (d->live < 0)
                print("The live cluster could not be counted.\n");
        else
                print("The live cluster has %" PRId64 " objects now.\n", d->live);
}

static int drill(struct etcd_job *j, struct drill *d, struct snapshot *s, struct error *err)
{
        struct operation op;
        int r = snapshot_open(
                s, &j->site, j->o->args.n > 1 ? j->o->args.v[1] : NULL, j->o->force, err);
        if (r == 0)
                r = operate_begin(&op, j->o, &j->site, err);
        if (r < 0)
                return r;
        drill_steps(d, &j->site, s);
        r = operate_end(&op, err);
        if (r == 0 && !cmd_json(j->o))
                print_drill(d);
        if (r == 0)
                print_result(j->o, drill_json(d));
        return r;
}

int etcd_drill_run(const struct options *o, struct error *err)
{
        struct etcd_job j CLEANUP(etcd_job_release) = { 0 };
        struct drill d = { 0 };
        struct snapshot s = { 0 };
        int r = etcd_job_open(&j, o, "etcd drill", err);
        if (r == 0)
                r = drill(&j, &d, &s, err);
        if (j.opened)
                drill_release(&d);
        return r;
}

/* ---- defrag ---- */

static int defrag(struct etcd_job *j, struct error *err)
{
        struct operation op;
        int r = defrag_prepare(&j->site, &j->view, err);
        if (r == 0)
                r = operate_begin(&op, j->o, &j->site, err);
        if (r < 0)
                return r;
        defrag_steps(&j->view);
        return operate_end(&op, err);
}

int etcd_defrag_run(const struct options *o, struct error *err)
{
        struct etcd_job j CLEANUP(etcd_job_release) = { 0 };
        int r = etcd_job_open(&j, o, "etcd defrag", err);
        return r < 0 ? r : defrag(&j, err);
}
