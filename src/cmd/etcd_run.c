/* The actions of `slipway etcd` that are runs: refused before anything changes, then steps. */
#include <event2/event.h>

#include "cluster/drill.h"
#include "cluster/etcd.h"
#include "cluster/restore.h"
#include "cluster/snapshots.h"
#include "cmd/etcd.h"
#include "cmd/operate.h"

static bool wants_json(const struct options *o) { return o->output && streq(o->output, "json"); }

/* Starts zeroed. What every one of them needs: the file, the site with its lock, the loop. */
struct job {
        const struct options *o;
        struct arena arena;
        struct event_base *base;
        struct cluster *cluster;
        struct site site;
        bool opened;
        struct etcd_view view;
};

static int job_open(struct job *j, const struct options *o, const char *verb, struct error *err)
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

static void job_release(struct job *j)
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
        if (wants_json(o))
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

static int snapshot(struct job *j, struct snapshot *s, struct error *err)
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
        struct job j CLEANUP(job_release) = { 0 };
        struct snapshot s = { 0 };
        int r = job_open(&j, o, "etcd snapshot", err);
        if (r == 0)
                r = snapshot(&j, &s, err);
        if (r < 0)
                return r;
        json_t *result = snapshot_json(&s);
        json_object_set_new(result, "snapshot", json_string(s.path));
        print_result(o, result);
        if (!wants_json(o))
                printf("%s\nrevision %" PRId64 ", %" PRId64 " keys, %.1f MB, sha256 %s\nprove it:  slipway etcd drill\n", s.path, s.revision, s.keys,
                        (double)s.size / 1e6, s.digest);
        return EXIT_OK;
}

/* ---- drill ---- */

static void print_drill(const struct drill *d)
{
        printf("%-44s %11s %10s\n", "KIND", "IN SNAPSHOT", "READ BACK");
        for (size_t i = 0; i < d->kind_count; i++) {
                const struct drill_kind *k = &d->kinds[i];
                char *name CLEANUP(free_p) = *k->group ? xasprintf("%s.%s", k->resource, k->group) : xstrdup(k->resource);
                if (k->keys || k->objects)
                        printf("%-44s %11zu %10zu\n", name, k->keys, k->objects);
        }
        printf("\n%s is good: all %zu objects read back at revision %" PRId64 ".\n", d->snapshot->path, d->objects, d->revision);
}

static int drill(struct job *j, struct drill *d, struct snapshot *s, struct error *err)
{
        struct operation op;
        int r = snapshot_open(s, &j->site, j->o->args.n > 1 ? j->o->args.v[1] : NULL, j->o->force, err);
        if (r == 0)
                r = operate_begin(&op, j->o, &j->site, err);
        if (r < 0)
                return r;
        drill_steps(d, &j->site, s);
        r = operate_end(&op, err);
        if (r == 0 && !wants_json(j->o))
                print_drill(d);
        if (r == 0)
                print_result(j->o, drill_json(d));
        return r;
}

int etcd_drill_run(const struct options *o, struct error *err)
{
        struct job j CLEANUP(job_release) = { 0 };
        struct drill d = { 0 };
        struct snapshot s = { 0 };
        int r = job_open(&j, o, "etcd drill", err);
        if (r == 0)
                r = drill(&j, &d, &s, err);
        if (j.opened)
                drill_release(&d);
        return r;
}

/* ---- restore, recover ---- */

static int restore_run(struct job *j, struct restore *r, struct error *err)
{
        struct operation op;
        int e = operate_begin(&op, j->o, &j->site, err);
        if (e < 0)
                return e;
        restore_steps(r);
        return operate_end(&op, err);
}

static int restore(struct job *j, struct restore *r, struct snapshot *s, struct error *err)
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
        return restore_run(j, r, err);
}

static void say_restored(const struct options *o, const struct site *s, const struct snapshot *snapshot)
{
        if (wants_json(o))
                return;
        printf("%s is back: etcd holds revision %" PRId64 " of %s.\n", s->cluster->name, snapshot->revision, snapshot->path);
        printf("see to the rest:  slipway up\n");
}

int etcd_restore_run(const struct options *o, struct error *err)
{
        struct job j CLEANUP(job_release) = { 0 };
        struct restore r CLEANUP(restore_release) = { 0 };
        struct snapshot s = { 0 };
        int e = job_open(&j, o, "etcd restore", err);
        if (e == 0)
                e = restore(&j, &r, &s, err);
        if (e == 0)
                say_restored(o, &j.site, &s);
        return e;
}

static int recover(struct job *j, struct restore *r, struct snapshot *s, struct error *err)
{
        int e = restore_unfinished(&j->site, err);
        if (e == 0)
                e = etcd_look(&j->site, &j->view, err);
        if (e == 0)
                e = snapshot_name(s, &j->site, j->o->dir, j->o->to, err);
        if (e < 0)
                return e;
        restore_init(r, &j->site, s);
        e = recover_choose(r, &j->view, j->o->force, err);
        s->version = e == 0 ? r->last.version : NULL;
        return e < 0 ? e : restore_run(j, r, err);
}

int etcd_recover_run(const struct options *o, struct error *err)
{
        struct job j CLEANUP(job_release) = { 0 };
        struct restore r CLEANUP(restore_release) = { 0 };
        struct snapshot s = { 0 };
        int e = job_open(&j, o, "etcd recover", err);
        if (e == 0)
                e = recover(&j, &r, &s, err);
        if (e == 0 && !wants_json(o))
                printf("etcd was rebuilt from %s, which wrote last at %s (raft index %" PRIu64
                       "): what the lost members acknowledged without it after that is gone.\n",
                        r.survivor->node->name, r.ended, r.last.index);
        if (e == 0)
                say_restored(o, &j.site, &s);
        return e;
}

/* ---- defrag ---- */

static int defrag(struct job *j, struct error *err)
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
        struct job j CLEANUP(job_release) = { 0 };
        int r = job_open(&j, o, "etcd defrag", err);
        return r < 0 ? r : defrag(&j, err);
}
