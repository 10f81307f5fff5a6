/* Queries all members at the same time, each on its own node. */
#include <event2/event.h>

#include "cluster/etcd/etcd.h"

#define PATIENCE 30 /* seconds in total */
#define ASK      8  /* seconds for one answer */

static void node_over(struct etcd_seen *n)
{
        if (n->over)
                return;
        n->over = true;
        if (--n->view->waiting == 0)
                event_base_loopbreak(n->view->site->base);
}

static void answer_over(struct etcd_seen *n)
{
        if (--n->open == 0 && n->member->run.link)
                link_close(n->member->run.link);
}

static void on_status(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct etcd_seen *n = arg;
        n->status = json_incref(answer);
        struct etcd_state state;
        n->answered = etcd_state(answer, &state);
        if (n->answered)
                n->state = state;
        if (!n->answered && !n->trouble)
                n->trouble = xstrdup(trouble ? trouble : "etcdctl's answer cannot be read");
        answer_over(n);
}

static void on_list(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct etcd_seen *n = arg;
        n->list = json_incref(answer);
        answer_over(n);
}

/* Members may still name a leader that is dead. Only a read through the quorum proves that
 * they have one. */
static void on_health(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct etcd_seen *n = arg;
        n->healthy = json_is_true(json_object_get(json_array_get(answer, 0), "health"));
        answer_over(n);
}

static void etcd_look_ask_all(struct etcd_seen *n)
{
        n->open = 3;
        etcd_ask(n->member, ETCD_STATUS, ASK, on_status, n);
        etcd_ask(n->member, ETCD_MEMBERS_LOCAL, ASK, on_list, n);
        etcd_ask(n->member, ETCD_HEALTH, ASK, on_health, n);
}

/* Three values from etcd's metrics, which it serves even without a quorum: the applied index, the
 * revision and the size. */
static void on_awake(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct etcd_seen *n = arg;
        uint64_t applied;
        int64_t revision, size;
        if (status == 0 && out &&
                sscanf(out, "%" SCNu64 " %" SCNd64 " %" SCNd64, &applied, &revision, &size) == 3) {
                n->waits = true;
                n->state = (struct etcd_state){
                        .index = applied, .applied = applied, .revision = revision, .size = size
                };
        }
        etcd_look_ask_all(n);
}

/* A member without a quorum answers no queries, so its metrics are read: twice, because it may
 * still be reading its log. */
static void wake(struct etcd_seen *n)
{
        const char *const argv[] = { "sh", "-c",
                "systemctl is-active -q etcd.service || systemctl start --no-block etcd.service; was=; n=0; while [ $n -lt 15 ]; do n=$((n + 1)); "
                "now=$(curl -s --max-time 3 \"$1\" | awk '$1 == \"etcd_server_proposals_applied_total\" { a = $2 } "
                "$1 == \"etcd_debugging_mvcc_current_revision\" { r = $2 } $1 == \"etcd_mvcc_db_total_size_in_bytes\" { s = $2 } "
                "END { if (a > 0) printf \"%.0f %.0f %.0f\", a, r, s }'); "
                "if [ -n \"$now\" ] && [ \"$now\" = \"$was\" ]; then break; fi; was=$now; sleep 0.5; done; echo \"$now\"",
                "wake",
                n->member->node->ip[0].family == 6 ? "http://[::1]:2381/metrics"
                                                   : "http://127.0.0.1:2381/metrics",
                NULL };
        member_run(n->member, argv, NULL, 4096, on_awake, n);
}

static void on_etcd_look_hello(
        struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct etcd_seen *n = arg;
        n->reached = true;
        if (n->view->wake)
                wake(n);
        else
                etcd_look_ask_all(n);
}

static void on_etcd_look_closed(struct link *l, struct error *err, void *arg)
{
        struct etcd_seen *n = arg;
        n->member->run.link = NULL;
        if (err && !n->answered && !n->trouble)
                n->trouble = xstrdup(err->message ? err->message : "it cannot be reached");
        node_over(n);
}

static void etcd_look_begin(struct etcd_seen *n)
{
        struct machine *machine = n->member->machine;
        struct link_events events = {
                .on_hello = on_etcd_look_hello, .on_closed = on_etcd_look_closed, .arg = n
        };
        struct error err CLEANUP(error_release) = { 0 };
        n->over = true;
        if (machine->state != MACHINE_RUNNING || !machine->target.host) {
                n->trouble = xasprintf("its machine %s",
                        machine->state == MACHINE_STOPPED ? "is stopped" : "is not there");
                return;
        }
        machine->target.cluster = n->view->site->identity.prefix;
        if (link_open(n->view->site->base, &machine->target, &events, &n->member->run.link, &err) <
                0) {
                n->trouble = xstrdup(err.message);
                return;
        }
        n->over = false;
        n->view->waiting++;
}

static bool has_quorum(const struct etcd_view *v)
{
        size_t voters = 0, most = 0;
        for (size_t i = 0; i < v->peer_count; i++)
                voters += !v->peers[i].learner;
        for (size_t i = 0; i < v->count; i++) {
                size_t same = 0;
                if (v->seen[i].healthy)
                        return true;
                for (size_t k = 0; v->seen[i].answered && v->seen[i].state.leader && k < v->count;
                        k++)
                        same += v->seen[k].answered && !v->seen[k].state.learner &&
                                v->seen[k].state.leader == v->seen[i].state.leader;
                most = same > most ? same : most;
        }
        return voters && most > voters / 2;
}

/* Takes the member list of the member with the newest data. */
static void read_peers(struct etcd_view *v)
{
        const struct etcd_seen *best = NULL;
        for (size_t i = 0; i < v->count; i++) {
                const struct etcd_seen *n = &v->seen[i];
                if (n->answered && n->list && (!best || n->state.index > best->state.index))
                        best = n;
        }
        if (best)
                v->peers = etcd_peers(best->list, v->site->arena, &v->peer_count);
        for (size_t i = 0; i < v->count; i++)
                v->seen[i].peer = etcd_peer_of(v->peers, v->peer_count, v->seen[i].member->node);
        v->quorum = has_quorum(v);
}

static int etcd_look_all(struct site *s, struct etcd_view *out, bool wake, struct error *err)
{
        const struct node *node;
        *out = (struct etcd_view){ .site = s,
                .wake = wake,
                .seen = arena_array(s->arena, struct etcd_seen, s->count + 1) };
        if (!s->identity.prefix) {
                error_set(
                        err, ENOENT, EXIT_STATE, "cluster %s does not exist yet", s->cluster->name);
                return error_hint(err, "slipway up creates it");
        }
        for (size_t i = 0; (node = cluster_next(s->cluster, ROLE_ETCD, &i)); out->count++)
                out->seen[out->count] =
                        (struct etcd_seen){ .member = site_member(s, node->name), .view = out };
        for (size_t i = 0; i < out->count; i++)
                etcd_look_begin(&out->seen[i]);
        event_base_loopexit(s->base, &(struct timeval){ .tv_sec = PATIENCE });
        if (out->waiting && event_base_dispatch(s->base) < 0)
                return error_set(err, EIO, EXIT_INTERNAL, "the event loop failed");
        for (size_t i = 0; i < out->count; i++) {
                struct etcd_seen *n = &out->seen[i];
                link_free(n->member->run.link);
                n->member->run.link = NULL;
                if (!n->answered && !n->trouble)
                        n->trouble = xasprintf("no answer within %d s", PATIENCE);
        }
        read_peers(out);
        return 0;
}

int etcd_look(struct site *s, struct etcd_view *out, struct error *err)
{
        return etcd_look_all(s, out, false, err);
}

int etcd_wake(struct site *s, struct etcd_view *out, struct error *err)
{
        return etcd_look_all(s, out, true, err);
}

void etcd_view_release(struct etcd_view *v)
{
        for (size_t i = 0; i < v->count; i++) {
                free(v->seen[i].trouble);
                json_decref(v->seen[i].status);
                json_decref(v->seen[i].list);
        }
        *v = (struct etcd_view){ 0 };
}
