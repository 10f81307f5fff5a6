/* After a lost quorum: the member with the newest data runs as a single-member cluster, on a copy
 * of its data and on its own loopback address. A snapshot of that is what all members are restored
 * from. The member's own data is not touched before that snapshot is on this computer. */
#include "cluster/etcd/restore/restore.h"

#define REMOTE     "/var/lib/slipway/etcd/recovered.db"
#define OUTPUT_MAX (64 << 10)
#define NO_ROOM    75
#define UNTOUCHED  "its data was not changed; fix the cause on the node and run again"

/* ---- choosing the survivor ---- */

static const struct etcd_seen *newest(const struct etcd_view *v)
{
        const struct etcd_seen *best = NULL;
        for (size_t i = 0; i < v->count; i++) {
                const struct etcd_seen *n = &v->seen[i];
                if ((!n->answered && !n->waits) || n->state.learner)
                        continue;
                if (!best || n->state.index > best->state.index ||
                        (n->state.index == best->state.index &&
                                n->state.applied > best->state.applied))
                        best = n;
        }
        return best;
}

static int silent(struct restore *r, const struct etcd_seen *n, struct error *err)
{
        error_set(err, EHOSTUNREACH, EXIT_UNREACHABLE,
                "node %s does not answer (%s): its data may be newer, and with another it may have a quorum of its own",
                n->member->node->name, n->trouble ? n->trouble : "no reason is known");
        return error_hint(err,
                "start the node, or remove its machine; --force treats the member as lost for good, and 'slipway up' adds it again later");
}

int recover_choose(struct restore *r, const struct etcd_view *v, bool force, struct error *err)
{
        if (v->quorum) {
                error_set(
                        err, EINVAL, EXIT_USAGE, "etcd has a quorum: there is nothing to recover");
                return error_hint(err,
                        "slipway etcd members shows the state of the members; slipway up brings back those that are lost");
        }
        const struct etcd_seen *best = newest(v);
        if (!best) {
                error_set(err, ENOENT, EXIT_UNHEALTHY,
                        "no etcd member that answers has data to recover from");
                return error_hint(err,
                        "'slipway etcd members' shows why each does not answer; 'slipway etcd restore SNAPSHOT' restores a snapshot");
        }
        for (size_t i = 0; i < v->count; i++) {
                const struct etcd_seen *n = &v->seen[i];
                struct restore_node *node = &r->nodes[n->member - r->site->members];
                if (n->reached || n->member->machine->state == MACHINE_ABSENT)
                        continue;
                if (!force)
                        return silent(r, n, err);
                node->left = true;
                node->part = false;
        }
        r->survivor = best->member;
        r->last = best->state;
        return 0;
}

const char *recover_until(const struct restore *r)
{
        char text[40];
        struct tm tm;
        if (!r->until)
                return "the age of its data is not known";
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&r->until, &tm));
        return arena_printf(r->site->arena,
                "its data goes up to %s, %" PRId64 " s before this command", text,
                (int64_t)(r->begun - r->until));
}

/* ---- saving its data ---- */

struct saving {
        struct step *step;
        struct restore *restore;
        struct transfer transfer;
};

static void on_recover_transferred(struct transfer *c, struct error *err)
{
        struct saving *t = c->arg;
        struct restore *r = t->restore;
        struct snapshot *s = r->snapshot;
        struct error own CLEANUP(error_release) = { 0 };
        if (!err && snapshot_describe(s, &own) < 0)
                err = &own;
        if (!err) {
                step_changed(t->step,
                        "%s: revision %" PRId64 ", %.1f MB, of %s: raft term %" PRIu64
                        ", index %" PRIu64 " committed and %" PRIu64 " applied",
                        s->path, s->revision, (double)s->size / 1e6, r->survivor->node->name,
                        r->last.term, r->last.index, r->last.applied);
                step_changed(t->step,
                        "%s; writes that only the lost members acknowledged after that are lost",
                        recover_until(r));
        }
        member_hang_up(r->survivor); /* it connects again together with the others */
        step_done(t->step, err);
}

/* The first line has the control plane's Leases; the rest is as for any snapshot. */
static bool read_saved(struct restore *r, const char *out)
{
        const char *rest = strchr(out, '\n');
        r->until = (time_t)lease_newest(out);
        return rest && snapshot_said(r->snapshot, rest + 1);
}

static void on_saved(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct saving *t = arg;
        struct restore *r = t->restore;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status == NO_ROOM)
                step_fail(t->step, ENOSPC, EXIT_PREFLIGHT,
                        "nothing was changed; make room there and run again",
                        "no room for a copy of its data: %s", line);
        else if (status != 0)
                step_fail(t->step, EIO, EXIT_STEP, UNTOUCHED, "its data could not be read: %.400s",
                        *line ? line : "the connection was cut");
        else if (!read_saved(r, out ? out : ""))
                step_fail(t->step, EPROTO, EXIT_STEP, UNTOUCHED,
                        "the output of etcdutl about its data cannot be read");
        else {
                t->transfer = (struct transfer){ .step = t->step,
                        .member = r->survivor,
                        .remote = REMOTE,
                        .fn = on_recover_transferred,
                        .arg = t };
                snapshot_bring(r->snapshot, &t->transfer);
        }
}

/* etcd is stopped so that its file has everything that it applied; the copy also replays the rest
 * of the log. */
static const char save_script[] =
        "set -e; PATH=$PATH:/usr/local/bin:/opt/bin; umask 077; d=$1 f=$2 name=$3; p=/etc/kubernetes/pki/etcd; c=$d/.recovering; "
        "if [ ! -d \"$d/member\" ]; then if [ -d \"$d/before-restore\" ]; then mv \"$d/before-restore\" \"$d/member\"; else echo \"$d has no data\" >&2; exit "
        "1; fi; fi; "
        "rm -rf \"$c\" \"$f\" \"$f.part\"; mkdir -p \"${f%/*}\"; "
        "need=$(($(du -sk \"$d/member\" | cut -f1) * 2 + 65536)); free=$(df -Pk \"$d\" | awk 'NR == 2 { print $4 }'); "
        "if [ \"$free\" -lt \"$need\" ]; then echo \"$((free / 1024)) MB are free under $d and $((need / 1024)) MB are needed\" >&2; exit 75; fi; "
        "pid=; trap 'exit 1' HUP INT TERM; trap '[ -z \"$pid\" ] || kill $pid 2>/dev/null || :; wait; rm -rf \"$c\"; systemctl start --no-block etcd.service' "
        "EXIT; "
        "systemctl stop etcd.service; mkdir -p \"$c\"; cp -a \"$d/member\" \"$c/member\"; "
        "etcd --name \"$name\" --data-dir \"$c\" --force-new-cluster --listen-client-urls https://127.0.0.1:32379 --advertise-client-urls "
        "https://127.0.0.1:32379 "
        "--listen-peer-urls http://127.0.0.1:32380 --initial-advertise-peer-urls http://127.0.0.1:32380 --initial-cluster \"$name=http://127.0.0.1:32380\" "
        "--cert-file $p/server.crt --key-file $p/server.key --client-cert-auth --trusted-ca-file $p/ca.crt --unsafe-no-fsync --log-level error "
        "--quota-backend-bytes 17179869184 >/dev/null & "
        "pid=$!; "
        "e() { etcdctl --endpoints https://127.0.0.1:32379 --cacert $p/ca.crt --cert $p/healthcheck-client.crt --key $p/healthcheck-client.key --dial-timeout "
        "5s \"$@\"; }; "
        "n=0; until e --command-timeout 5s endpoint health >/dev/null 2>&1; do n=$((n + 1)); "
        "if [ $n -gt 300 ] || ! kill -0 $pid 2>/dev/null; then echo \"etcd does not start on a copy of its data\" >&2; exit 1; fi; sleep 1; done; "
        "e --command-timeout 60s get /registry/leases/kube-system/ --prefix --print-value-only | head -c 24000 | od -An -v -tx1 | tr -d ' \\n'; echo; "
        "e --command-timeout 30m snapshot save \"$f\" >/dev/null; etcdutl snapshot status \"$f\" -w json; sha256sum \"$f\"; stat -c %s \"$f\"";

void step_recover_save(struct step *s)
{
        struct restore *r = s->arg;
        struct saving *t = arena_new(r->site->arena, struct saving);
        const char *const argv[] = { "sh", "-c", save_script, "recover",
                r->site->cluster->etcd.data_dir, REMOTE, r->survivor->node->name, NULL };
        *t = (struct saving){ .step = s, .restore = r };
        step_doing(s, -1, "leading alone on a copy of its data");
        if (member_reachable(r->survivor))
                member_run(r->survivor, argv, NULL, OUTPUT_MAX, on_saved, t);
        else
                step_fail(t->step, EPIPE, EXIT_UNREACHABLE, UNTOUCHED, "the connection was cut");
}
