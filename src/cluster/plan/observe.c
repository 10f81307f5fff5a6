/* The current state, queried from the machines, etcd and the API before the plan is made. Failed
 * queries do not fail the run: a new cluster answers none. */
#include <event2/event.h>

#include "cluster/etcd/etcd.h"
#include "cluster/plan/anew.h"
#include "cluster/plan/own_images.h"
#include "cluster/site/op.h"
#include "cluster/plan/plan.h"
#include "kube/wait.h"

/* Long, because removed nodes are found through the answer. */
#define ASK_MS 15000
#define API_MS 60000 /* an existing API may be restarting */
/* So may etcd; it starts first, so less time is enough. */
#define ETCD_MS 20000
#define LOOK_MS 300
/* Node objects are large, so they are listed in pages. (The API's tokens need no escaping.) */
#define NODE_PAGE "/api/v1/nodes?limit=200"
/* More than any cluster has: a list without end is refused. */
#define NODES_MAX 20000

struct observe {
        struct site *site;
        struct step *step;
        struct kube *kube;
        /* next: the member to query if the one before did not answer */
        size_t waiting, next;
        bool etcd; /* a node could be queried for etcd's members */
        bool dumb; /* but none answered */
};

static void greeted(struct observe *o)
{
        if (--o->waiting)
                return;
        removed_connect(o->site, o->site->plan);
        step_done(o->step, NULL);
}

static void on_observe_state(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct etcd_state state;
        m->seen.etcd_healthy =
                answer && etcd_state(answer, &state) && state.leader && !state.learner;
        greeted(arg);
}

/* Each member is queried only if one is to be removed, rebooted or made anew: then the others must
 * be a quorum. */
static void ask_health(struct observe *o)
{
        struct site *s = o->site;
        bool leaves = s->reboot || anew_any(s);
        for (size_t i = 0; i < s->found.removed_count; i++)
                leaves |= etcd_peer_of(s->found.peers, s->found.peer_count,
                                  s->found.removed[i]->node) != NULL;
        o->waiting = 1;
        for (size_t i = 0; leaves && i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!member_reachable(m) || !member_has_etcd(m))
                        continue;
                o->waiting++;
                etcd_ask(m, ETCD_STATUS, ASK_MS / 1000, on_observe_state, o);
        }
        greeted(o);
}

/* A cluster that is being adopted has no etcdctl yet, but its API answers. It has kubeadm's
 * members, one beside each API server. */
static void adopted_peers(struct site *s)
{
        s->found.peers = arena_array(s->arena, struct etcd_peer, s->count + 1);
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                char *url CLEANUP(free_p) =
                        member_adopted(m) && member_has_etcd(m) ? etcd_peer_url(m->node) : NULL;
                if (url)
                        s->found.peers[s->found.peer_count++] =
                                (struct etcd_peer){ .name = m->node->name,
                                        .peer = arena_strdup(s->arena, url),
                                        .client = arena_strdup(s->arena, url) };
        }
        s->found.live = s->found.peer_count > 0;
}

static void observe_answered(struct observe *o)
{
        struct site *s = o->site;
        if (--o->waiting)
                return;
        if (!s->found.live && s->found.api_up)
                adopted_peers(s);
        removed_observed(s);
        ask_health(o);
}

/* ---- etcd ---- */

static void ask_etcd(struct observe *o);

static void on_peers(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct observe *o = arg;
        if (!answer) {
                ask_etcd(o);
                return;
        }
        o->site->found.live = true;
        o->site->found.peers = etcd_peers(answer, o->site->arena, &o->site->found.peer_count);
        observe_answered(o);
}

/* etcd and the API server may still be starting after a killed run. A plan without them would be
 * wrong, since cordons and versions are unknown. There is nothing to wait for if they never
 * existed; without etcd the API does not start. */
static bool comes(const struct observe *o, int64_t ms)
{
        return site_existed(o->site) && run_now(&o->site->run) - o->step->began < ms;
}

static void ask_etcd_again(evutil_socket_t fd, short what, void *arg)
{
        struct observe *o = arg;
        o->next = 0;
        ask_etcd(o);
}

static void ask_etcd(struct observe *o)
{
        static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };
        const struct site *s = o->site;
        while (o->next < s->count + s->found.removed_count) {
                size_t i = o->next++;
                struct member *m = i < s->count ? &s->members[i] : s->found.removed[i - s->count];
                if (!member_reachable(m) || !member_has_etcd(m))
                        continue;
                o->etcd = true;
                etcd_ask(m, ETCD_MEMBERS, ASK_MS / 1000, on_peers, o);
                return;
        }
        if (o->etcd && comes(o, ETCD_MS)) {
                event_base_once(o->site->base, -1, EV_TIMEOUT, ask_etcd_again, o, &soon);
                return;
        }
        o->dumb = true;
        observe_answered(o);
}

/* ---- the API ---- */

static void on_kept(void *arg) { observe_answered(arg); }

static void on_observe_version(const struct kube_reply *reply, void *arg)
{
        struct observe *o = arg;
        const char *v = json_string_value(json_object_get(reply->body, "gitVersion"));
        if (v)
                o->site->found.version = arena_strdup(o->site->arena, v + (*v == 'v'));
        own_images_observe(o->site, o->kube, on_kept, o);
}

/* A control-plane node has slipway's components, or is being adopted. */
static bool any_api(const struct site *s, bool removed)
{
        for (size_t i = 0; i < (removed ? s->found.removed_count : s->count); i++) {
                const struct member *m = removed ? s->found.removed[i] : &s->members[i];
                if (member_reachable(m) && m->node->pool->roles & ROLE_CONTROL_PLANE &&
                        (json_object_get(m->seen.said, "cluster") || member_adopted(m)))
                        return true;
        }
        return false;
}

static void ask_nodes(struct observe *o);
static void on_observe_nodes(const struct kube_reply *reply, void *arg);

/* Removes the largest fields, because the list is kept during the whole run. */
static void node_list_trim(json_t *list)
{
        json_t *n;
        size_t i;
        json_array_foreach(json_object_get(list, "items"), i, n)
        {
                json_object_del(json_object_get(n, "status"), "images");
                json_object_del(json_object_get(n, "metadata"), "managedFields");
        }
}

/* Characters in the API's tokens for the next page. */
#define TOKEN_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=."

static void node_page_ask(struct observe *o, const char *from)
{
        char *path CLEANUP(free_p) = from ? xasprintf(NODE_PAGE "&continue=%s", from) : NULL;
        kube_request(
                o->kube, "GET", path ? path : NODE_PAGE, NULL, NULL, ASK_MS, on_observe_nodes, o);
}

/* 1: the next page was requested; 0: this was the last page; -1: the list is invalid. */
static int node_page_add(struct observe *o, json_t *page)
{
        json_t **all = &o->site->found.nodes;
        const char *more =
                json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));
        node_list_trim(page);
        if (*all)
                json_array_extend(json_object_get(*all, "items"), json_object_get(page, "items"));
        else
                *all = json_incref(page);
        if (!more || !*more)
                return 0;
        char *from CLEANUP(free_p) = xstrdup(more);
        if (json_array_size(json_object_get(*all, "items")) >= NODES_MAX ||
                from[strspn(from, TOKEN_CHARS)]) /* it becomes part of a path */
                return -1;
        node_page_ask(o, from);
        return 1;
}

static void on_observe_nodes(const struct kube_reply *reply, void *arg)
{
        struct observe *o = arg;
        if (reply->error) {
                step_doing(o->step, -1, "waiting for the API: %s", reply->error);
                json_decref(TAKE(o->site->found.nodes));
                ask_nodes(o);
                return;
        }
        int more = node_page_add(o, reply->body);
        if (more < 0)
                step_fail(o->step, EPROTO, EXIT_UNHEALTHY, "slipway status shows the API servers",
                        "the API's list of Nodes does not end, or its next page cannot be asked for");
        if (more)
                return;
        o->site->found.api_up = true;
        kube_request(o->kube, "GET", "/version", NULL, NULL, ASK_MS, on_observe_version, o);
}

static void ask_nodes_again(evutil_socket_t fd, short what, void *arg)
{
        struct observe *o = arg;
        o->kube = NULL;
        ask_nodes(o);
}

/* Asks the control-plane nodes of the file; if no API answers there, the removed ones; then again
 * if the API may be starting. */
static void ask_nodes(struct observe *o)
{
        static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };
        struct site *s = o->site;
        struct error err CLEANUP(error_release) = { 0 };
        const struct kube *silent = o->kube;
        if (!silent && s->identity.prefix && any_api(s, false) && site_kube(s, &err) == 0)
                o->kube = s->kube;
        else if ((!silent || silent != s->removed_kube) && s->identity.prefix && any_api(s, true) &&
                 (s->removed_kube || site_removed_kube(s, &err) == 0))
                o->kube = s->removed_kube;
        else
                o->kube = NULL;
        if (o->kube)
                node_page_ask(o, NULL);
        else if (silent && !o->dumb && comes(o, API_MS))
                event_base_once(s->base, -1, EV_TIMEOUT, ask_nodes_again, o, &soon);
        else
                observe_answered(o);
}

void step_observe(struct step *step)
{
        struct site *s = step->arg;
        struct observe *o = arena_new(s->arena, struct observe);
        *o = (struct observe){ .site = s, .step = step, .waiting = 2 };
        ask_etcd(o);
        ask_nodes(o);
}

/* ---- what would change on a node ---- */

void step_compare(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (m->run.missing) {
                step_unchanged(s);
                return;
        }
        /* nothing of slipway's is there: everything is new */
        if (!m->site->identity.prefix ||
                (!json_object_get(m->seen.said, "cluster") && !member_adopted(m))) {
                m->plan.fate = FATE_INSTALL;
                step_unchanged(s);
                return;
        }
        if (member_wants(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        if (streq(m->plan.wanted, m->seen.applied) && !json_array_size(m->seen.drift)) {
                member_drop_spec(m);
                step_unchanged(s);
                return;
        }
        m->plan.fate = FATE_CHANGE;
        member_apply(m, s,
                &(struct apply_request){ .items = member_items(m),
                        .count = m->site->item_count,
                        .mode = APPLY_COMPARE,
                        .make = member_render });
}
