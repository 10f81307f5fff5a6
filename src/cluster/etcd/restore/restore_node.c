/* The part of a restore that runs on one node. */
#include <time.h>

#include "cluster/site/op.h"
#include "cluster/etcd/restore/restore.h"
#include "cluster/apply/roll.h"

#define TEXT_MAX   (64 << 10)
#define BUMP       "1000000000" /* revisions: more than any cluster makes after its last snapshot */
#define NO_ROOM    75
#define NOT_SO     10
#define PATIENCE   900
#define LOOK_AGAIN 1000 /* milliseconds */

struct restore_script {
        struct step *step;
        struct restore_node *node;
        const char *what;
        void (*then)(struct restore_script *r, const char *out);
};

/* ---- scripts ---- */

static void on_script(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct restore_script *r = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (status == 0 && r->then)
                r->then(r, out ? out : "");
        else if (status == 0)
                step_done(r->step, NULL);
        else if (status == NOT_SO)
                step_unchanged(r->step);
        else if (status == NO_ROOM)
                step_fail(r->step, ENOSPC, EXIT_PREFLIGHT,
                        "nothing was changed; make room there and run again", "no room: %s", line);
        else
                step_fail(r->step, status < 0 ? EPIPE : EIO,
                        status < 0 ? EXIT_UNREACHABLE : EXIT_STEP,
                        "run it again: it continues where it stopped", "%s: %.400s", r->what,
                        *line ? line : "the connection was cut");
}

/* `words` are passed as $1, $2, … */
static void restore_node_script(struct step *s, const char *what, const char *text,
        const char *const *words, void (*then)(struct restore_script *, const char *))
{
        struct restore_node *n = s->arg;
        struct restore_script *r = arena_new(n->restore->site->arena, struct restore_script);
        const char *argv[16] = { "sh", "-c", text, "restore" };
        *r = (struct restore_script){ s, n, what, then };
        for (size_t i = 0; words && words[i] && i < 11; i++)
                argv[4 + i] = words[i];
        if (member_reachable(n->member))
                member_run(n->member, argv, NULL, TEXT_MAX, on_script, r);
        else
                step_fail(s, EPIPE, EXIT_UNREACHABLE, "run it again: it continues where it stopped",
                        "the connection was cut");
}

#define PATHS "PATH=$PATH:/usr/local/bin:/opt/bin; "

/* Room for the restored store beside the old one, and for the snapshot. */
void step_restore_room(struct step *s)
{
        struct restore_node *n = s->arg;
        char need[24];
        snprintf(need, sizeof(need), "%" PRId64,
                3 * (n->restore->snapshot->size >> 10) + (192 << 10));
        restore_node_script(s, "its free space cannot be read",
                "for d in \"$1\" /var/lib/slipway/etcd; do while [ ! -d \"$d\" ]; do d=$(dirname \"$d\"); done; free=$(df -Pk \"$d\" | awk 'NR == 2 { print $4 "
                "}'); "
                "if [ \"$free\" -lt \"$2\" ]; then echo \"$((free / 1024)) MB are free under $d and $(($2 / 1024)) MB are needed\" >&2; exit 75; fi; done",
                (const char *const[]){ n->restore->site->cluster->etcd.data_dir, need, NULL },
                NULL);
}

/* ---- files that etcd's restore needs: programs, keys, configuration; nothing is started ---- */

static void apply(struct step *s, enum apply_mode mode)
{
        struct restore_node *n = s->arg;
        struct member *m = n->member;
        member_apply(m, s,
                &(struct apply_request){
                        .items = member_items(m), .count = m->site->item_count, .mode = mode });
}

void step_restore_place(struct step *s)
{
        struct restore_node *n = s->arg;
        struct member *m = n->member;
        struct error err CLEANUP(error_release) = { 0 };
        if (member_render(m, &err) < 0)
                step_done(s, &err);
        else if (streq(m->plan.wanted, m->seen.applied) && !json_array_size(m->seen.drift))
                step_unchanged(s);
        else
                apply(s, n->restore->live ? APPLY_STAGE : APPLY_PLACE);
}

void step_restore_start(struct step *s) { apply(s, APPLY_ALL); }

/* ---- the snapshot file ---- */

static void on_sent(struct transfer *c, struct error *err) { step_done(c->arg, err); }

void step_restore_send(struct step *s)
{
        struct restore_node *n = s->arg;
        n->transfer = (struct transfer){ .step = s,
                .member = n->member,
                .remote = RESTORE_FILE,
                .local = n->restore->snapshot->path,
                .fn = on_sent,
                .arg = s };
        memcpy(n->transfer.digest, n->restore->snapshot->digest, SHA256_HEX);
        transfer_send(&n->transfer);
}

/* ---- stop ---- */

void step_restore_stop(struct step *s)
{
        struct restore_node *n = s->arg;
        bool control = n->member->node->pool->roles & ROLE_CONTROL_PLANE,
             pod = n->restore->site->cluster->etcd.run == ETCD_RUN_STATIC_POD;
        if (n->restore->restored) {
                step_unchanged(s);
                return;
        }
        step_doing(s, -1, "stopping %s", control ? "the control plane and etcd" : "etcd");
        /* Without the kubelet no static pod is restarted. The API server stops before etcd, so that
         * nothing is written that would be lost. */
        restore_node_script(s, "it could not be stopped",
                PATHS
                "set -e; if [ \"$1\" = yes ]; then systemctl stop kubelet.service; "
                "if systemctl is-active -q containerd.service || systemctl is-active -q crio.service; then "
                "for i in 1 2 3; do ids=$(crictl ps -q --name '^kube-(apiserver|controller-manager|scheduler)$'); [ -n \"$ids\" ] || break; "
                "crictl stop -t 5 $ids >/dev/null 2>&1 || sleep 1; done; "
                "ids=$(crictl ps -q --name '^kube-apiserver$'); if [ -n \"$ids\" ]; then echo 'the API server does not stop' >&2; exit 1; fi; fi; fi; "
                "if [ \"$2\" = yes ]; then systemctl stop etcd.service; fi; "
                "if [ \"$2\" = pod ]; then ids=$(crictl ps -q --name '^etcd$'); [ -z \"$ids\" ] || crictl stop -t 10 $ids >/dev/null; fi",
                (const char *const[]){ control ? "yes" : "no",
                        !n->part ? "no"
                        : pod    ? "pod"
                                 : "yes",
                        NULL },
                NULL);
}

/* ---- the data ---- */

static void put_done(struct restore_script *r, const char *out)
{
        step_changed(r->step, "etcd's data was replaced%s",
                strstr(out, "kept") ? "; the previous data is kept as before-restore until the end"
                                    : "");
        step_done(r->step, NULL);
}

void step_restore_put(struct step *s)
{
        struct restore_node *n = s->arg;
        const struct restore *r = n->restore;
        char *url CLEANUP(free_p) = etcd_peer_url(n->member->node);
        /* The data directory may be a mount point, so the change happens inside it. If a run is
         * killed between the two renames, there is no member directory and no token, and the next
         * run repeats everything. */
        restore_node_script(s, "its data could not be restored",
                PATHS
                "set -e; umask 077; d=$1; if [ \"$8\" = yes ] && [ -d \"$d/member\" ]; then exit 10; fi; if [ \"$(cat \"$d/.restored\" 2>/dev/null)\" = \"$2\" "
                "]; then exit 10; fi; mkdir -p \"$d\"; rm -rf "
                "\"$d/.restoring\"; "
                "etcdutl snapshot restore \"$7\" --data-dir \"$d/.restoring\" --name \"$3\" --initial-cluster \"$4\" --initial-cluster-token \"$2\" "
                "--initial-advertise-peer-urls \"$5\" --bump-revision \"$6\" --mark-compacted; "
                "if [ -d \"$d/member\" ] && [ ! -d \"$d/before-restore\" ]; then mv \"$d/member\" \"$d/before-restore\"; echo kept; fi; rm -rf \"$d/member\"; "
                "mv \"$d/.restoring/member\" \"$d/member\"; rm -rf \"$d/.restoring\"; printf %s \"$2\" >\"$d/.restored\"; sync",
                (const char *const[]){ r->site->cluster->etcd.data_dir, r->token,
                        n->member->node->name, r->initial, url, BUMP, RESTORE_FILE,
                        r->restored ? "yes" : "no", NULL },
                put_done);
}

void step_restore_clean(struct step *s)
{
        struct restore_node *n = s->arg;
        restore_node_script(s, "the leftovers of the restore could not be removed",
                "rm -rf \"$1/before-restore\" \"$1/.restored\" \"$1/.recovering\" " RESTORE_FILE,
                (const char *const[]){ n->restore->site->cluster->etcd.data_dir, NULL }, NULL);
}

/* ---- the kubelet: it registers only when it starts, and the restored store may not have
 * its node ---- */

struct waiting {
        struct op op;
        struct restore_node *node;
        time_t since; /* in the node's time, like the lease */
};

static void ask_lease(struct op *o);

/* The lease was renewed after the kubelet started: it is connected to the restored API. */
static void on_lease(const struct kube_reply *reply, void *arg)
{
        struct waiting *w = arg;
        const char *renewed = json_string_value(
                json_object_get(json_object_get(reply->body, "spec"), "renewTime"));
        struct tm tm = { 0 };
        if (op_over(&w->op))
                return;
        if (reply->status == 200 && renewed && strptime(renewed, "%Y-%m-%dT%H:%M:%S", &tm) &&
                timegm(&tm) >= w->since)
                op_done(&w->op, NULL);
        else
                op_later(&w->op, LOOK_AGAIN, ask_lease);
}

static void ask_lease(struct op *o)
{
        struct waiting *w = (struct waiting *)o;
        char *path CLEANUP(free_p) =
                xasprintf("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/%s",
                        w->node->member->node->name);
        kube_request(o->site->kube, "GET", path, NULL, NULL, 0, on_lease, w);
}

static void kubelet_started(struct restore_script *r, const char *out)
{
        struct site *s = r->node->restore->site;
        struct waiting *w = arena_new(s->arena, struct waiting);
        *w = (struct waiting){ .node = r->node, .since = (time_t)strtoll(out, NULL, 10) };
        op_begin(&w->op, s, r->step);
        step_doing(r->step, -1, "waiting for the kubelet to renew its lease");
        ask_lease(&w->op);
}

void step_restore_kubelet(struct step *s)
{
        step_deadline(s, PATIENCE, "slipway logs NODE kubelet says why");
        /* kube-proxy has lost the API and would retry only after up to a minute, with old rules
         * until then: it is restarted. */
        restore_node_script(s, "the kubelet could not be started again",
                REGISTER_SCRIPT
                " && { systemctl try-restart --no-block kube-proxy.service 2>/dev/null || :; }",
                NULL, kubelet_started);
}
