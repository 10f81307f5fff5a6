/* Taking a snapshot: one member that is up to date saves it on its own disk and checks it there;
 * then the file is transferred to this computer. */
#include "cluster/etcd/transfer.h"
#include "cluster/etcd/etcd.h"
#include "cluster/etcd/snapshots.h"

#define REMOTE     "/var/lib/slipway/etcd/snapshot.db"
#define NO_ROOM    75
#define OUTPUT_MAX (64 << 10)
#define ASK        10   /* seconds */
#define PATIENCE   7200 /* seconds in total, also for large files and slow links */

struct taking {
        struct step *step;
        struct snapshot *snapshot;
        struct member *best;
        struct etcd_state state; /* of the best member; its texts are not used */
        size_t asked, refused;
        struct transfer transfer;
};

/* ---- transfer ---- */

static void ignore(struct link *l, int status, const char *out, const char *errors, void *arg) {}

static void on_etcd_snapshot_transferred(struct transfer *c, struct error *err)
{
        struct taking *t = c->arg;
        struct snapshot *s = t->snapshot;
        struct error here CLEANUP(error_release) = { 0 };
        if (member_reachable(t->best))
                member_run(t->best, (const char *const[]){ "rm", "-f", REMOTE, NULL }, NULL, 4096,
                        ignore, NULL);
        if (!err && snapshot_describe(s, &here) < 0)
                err = &here;
        if (!err)
                step_changed(t->step, "%s: revision %" PRId64 ", %" PRId64 " keys, %.1f MB",
                        s->path, s->revision, s->keys, (double)s->size / 1e6);
        step_done(t->step, err);
}

bool snapshot_said(struct snapshot *s, const char *lines)
{
        const char *second = strchr(lines, '\n'), *third = second ? strchr(second + 1, '\n') : NULL;
        char *first CLEANUP(free_p) = xstrndup(lines, second ? (size_t)(second - lines) : 0);
        json_t *o = etcd_json(first);
        bool good = o && third && third - second > 64;
        if (good) {
                snprintf(s->digest, sizeof(s->digest), "%.64s", second + 1);
                s->size = s->expected = strtoll(third + 1, NULL, 10);
                s->revision = (int64_t)etcd_number(json_object_get(o, "revision"));
                s->keys = (int64_t)etcd_number(json_object_get(o, "totalKey"));
        }
        json_decref(o);
        return good && s->size > 0 && sha256_valid(s->digest);
}

void snapshot_bring(struct snapshot *s, struct transfer *c)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (snapshot_room(s, &err) < 0) {
                step_done(c->step, &err);
                return;
        }
        s->node = c->member->node->name;
        c->local = s->path;
        c->size = s->size;
        memcpy(c->digest, s->digest, sizeof(s->digest));
        transfer_fetch(c);
}

static void on_taken(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct taking *t = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        const char *node = t->best->node->name;
        if (status == NO_ROOM)
                step_fail(t->step, ENOSPC, EXIT_PREFLIGHT, "make room there and run again",
                        "node %s has no room for the snapshot: %s", node, line);
        else if (status != 0)
                step_fail(t->step, EIO, EXIT_STEP, "slipway etcd members shows the state of etcd",
                        "node %s: the snapshot could not be taken: %s", node,
                        *line ? line : "the connection was cut");
        else if (!snapshot_said(t->snapshot, out ? out : ""))
                step_fail(t->step, EPROTO, EXIT_STEP, NULL,
                        "node %s: the output of etcdutl about the snapshot cannot be read", node);
        else {
                t->transfer = (struct transfer){ .step = t->step,
                        .member = t->best,
                        .remote = REMOTE,
                        .fn = on_etcd_snapshot_transferred,
                        .arg = t };
                snapshot_bring(t->snapshot, &t->transfer);
        }
}

/* ---- saving ---- */

static void take(struct taking *t)
{
        char need[24];
        snprintf(need, sizeof(need), "%" PRId64, (t->state.size >> 10) + (32 << 10));
        const char *const argv[] = { "sh", "-c",
                "set -e; PATH=$PATH:/usr/local/bin:/opt/bin; umask 077; f=$1; p=/etc/kubernetes/pki/etcd; mkdir -p \"${f%/*}\"; rm -f \"$f\" \"$f.part\"; "
                "free=$(df -Pk \"${f%/*}\" | awk 'NR == 2 { print $4 }'); "
                "if [ \"$free\" -lt \"$3\" ]; then echo \"$((free / 1024)) MB are free under ${f%/*} and $(($3 / 1024)) MB are needed\" >&2; exit 75; fi; "
                "etcdctl --endpoints \"$2\" --cacert $p/ca.crt --cert $p/healthcheck-client.crt --key $p/healthcheck-client.key --dial-timeout 5s "
                "--command-timeout 30m snapshot save \"$f\" >/dev/null; "
                "etcdutl snapshot status \"$f\" -w json; sha256sum \"$f\"; stat -c %s \"$f\"",
                "snapshot", REMOTE, etcd_endpoint(t->best), need, NULL };
        step_doing(t->step, -1, "node %s takes it", t->best->node->name);
        if (member_reachable(t->best))
                member_run(t->best, argv, NULL, OUTPUT_MAX, on_taken, t);
        else
                step_fail(t->step, EPIPE, EXIT_UNREACHABLE, "run again",
                        "the connection to %s was cut", t->best->node->name);
}

/* The member with the highest applied index; if several have it, not the leader, which has
 * the most load. */
static bool better(const struct etcd_state *a, const struct etcd_state *b)
{
        return a->applied != b->applied ? a->applied > b->applied : b->id == b->leader;
}

static void on_etcd_snapshot_state(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct taking *t = arg;
        struct etcd_state s;
        if (etcd_state(answer, &s) && s.leader && !s.learner &&
                (!t->best || better(&s, &t->state))) {
                t->best = m;
                t->state = s;
        }
        if (--t->asked || t->step->state != STEP_RUNNING)
                return;
        if (t->best)
                take(t);
        else
                step_fail(t->step, EIO, EXIT_UNHEALTHY,
                        "slipway etcd members shows details; slipway etcd recover rebuilds etcd if its quorum is lost for good",
                        "no member of etcd can take a snapshot: none that answers knows of a leader");
}

void step_snapshot(struct step *s)
{
        struct snapshot *snapshot = s->arg;
        struct site *site = snapshot->site;
        struct taking *t = arena_new(site->arena, struct taking);
        *t = (struct taking){ .step = s, .snapshot = snapshot, .asked = 1 };
        step_deadline(s, PATIENCE, "slipway etcd members shows the state of etcd");
        for (size_t i = 0; i < site->count; i++) {
                struct member *m = &site->members[i];
                if (!(m->node->pool->roles & ROLE_ETCD) || !member_reachable(m))
                        continue;
                t->asked++;
                etcd_ask(m, ETCD_STATUS, ASK, on_etcd_snapshot_state, t);
        }
        on_etcd_snapshot_state(NULL, NULL, NULL, t);
}
