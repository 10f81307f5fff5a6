/* The actions of `slipway etcd` that are runs: refused before anything changes, then steps. */
#include <event2/event.h>

#include "cluster/drill.h"
#include "cluster/snapshots.h"
#include "cmd/etcd.h"

bool etcd_wants_json(const struct options *o) { return o->output && streq(o->output, "json"); }

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
        char *text CLEANUP(free_p) = json_dumps(result, JSON_COMPACT | JSON_PRESERVE_ORDER);
        if (etcd_wants_json(o))
                printf("%s\n", text ? text : "{}");
        json_decref(result);
}

static int no_quorum(const struct etcd_view *v, const char *what, struct error *err)
{
        size_t answered = 0;
        for (size_t i = 0; i < v->count; i++)
                answered += v->seen[i].answered;
        error_set(err, EIO, EXIT_UNHEALTHY, "%s: etcd has no quorum (%zu of %zu members answer, and none can read through it)", what, answered,
                v->peer_count ? v->peer_count : v->count);
        return error_hint(err, "slipway etcd members says more; when the others are gone for good, slipway etcd recover rebuilds it");
}

/* ---- snapshot ---- */

/* The member to ask: in step, and not the leader where another is. */
static const struct etcd_seen *choose(const struct etcd_view *v)
{
        const struct etcd_seen *best = NULL;
        for (size_t i = 0; i < v->count; i++) {
                const struct etcd_seen *n = &v->seen[i];
                if (!n->answered || !n->state.leader || n->state.learner)
                        continue;
                bool leads = n->state.id == n->state.leader;
                if (!best || (best->state.id == best->state.leader && !leads) || (!leads && n->state.applied > best->state.applied))
                        best = n;
        }
        return best;
}

static int snapshot(struct etcd_job *j, struct snapshot *s, struct error *err)
{
        struct operation op;
        int r = etcd_look(&j->site, &j->view, err);
        const struct etcd_seen *from = r == 0 ? choose(&j->view) : NULL;
        if (r < 0 || !from || !j->view.quorum)
                return r < 0 ? r : no_quorum(&j->view, "no snapshot can be taken", err);
        r = snapshot_name(s, &j->site, j->o->dir, j->o->to, err);
        s->expected = from->state.size;
        s->version = from->state.version;
        if (r == 0)
                r = snapshot_room(s, err);
        if (r == 0)
                r = operate_begin(&op, j->o, &j->site, err);
        if (r < 0)
                return r;
        struct run *run = &j->site.run;
        struct step *connect = run_step(run, "connect", from->member->node->name, step_connect, from->member);
        struct step *take = run_step(run, "snapshot", NULL, step_snapshot, s);
        step_after(take, connect);
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
        if (!etcd_wants_json(o))
                printf("%s\nrevision %" PRId64 ", %" PRId64 " keys, %.1f MB, sha256 %s\nprove it:  slipway etcd drill\n", s.path, s.revision, s.keys,
                        (double)s.size / 1e6, s.digest);
        return EXIT_OK;
}

/* ---- drill ---- */

static void print_drill(const struct drill *d)
{
        printf("%-44s %11s %10s %10s\n", "KIND", "IN SNAPSHOT", "READ BACK", "LIVE NOW");
        for (size_t i = 0; i < d->kind_count; i++) {
                const struct drill_kind *k = &d->kinds[i];
                char *name CLEANUP(free_p) = *k->group ? xasprintf("%s.%s", k->resource, k->group) : xstrdup(k->resource);
                char *live CLEANUP(free_p) = k->live < 0 ? xstrdup("-") : xasprintf("%" PRId64, k->live);
                if (k->keys || k->objects)
                        printf("%-44s %11zu %10zu %10s\n", name, k->keys, k->objects, live);
        }
        printf("\n%s is good: all %zu objects read back at revision %" PRId64 ".\n", d->snapshot->path, d->objects, d->revision);
        if (d->live < 0)
                printf("The live cluster could not be counted.\n");
        else
                printf("The live cluster has %" PRId64 " objects now.\n", d->live);
}

static int drill(struct etcd_job *j, struct drill *d, struct snapshot *s, struct error *err)
{
        struct operation op;
        int r = snapshot_open(s, &j->site, j->o->args.n > 1 ? j->o->args.v[1] : NULL, j->o->force, err);
        if (r == 0)
                r = operate_begin(&op, j->o, &j->site, err);
        if (r < 0)
                return r;
        drill_steps(d, &j->site, s);
        r = operate_end(&op, err);
        if (r == 0 && !etcd_wants_json(j->o))
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
        int r = etcd_look(&j->site, &j->view, err);
        if (r == 0 && !j->view.quorum)
                r = no_quorum(&j->view, "etcd is not defragmented", err);
        for (size_t i = 0; r == 0 && i < j->view.count; i++)
                if (!j->view.seen[i].answered) {
                        error_set(err, EIO, EXIT_UNHEALTHY,
                                "etcd is not defragmented: the member on %s does not answer, and while another is busy the quorum could be lost",
                                j->view.seen[i].member->node->name);
                        r = error_hint(err, "slipway up brings it back");
                }
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
