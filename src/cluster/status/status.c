/* All queries are sent at once, and the loop ends with the last answer. */
#include <event2/event.h>

#include "artifact/http.h"
#include "cluster/etcd/etcd.h"
#include "cluster/plan/serving.h"
#include "cluster/site/removed.h"
#include "cluster/status/status.h"
#include "kube/wait.h"

#define API_PATIENCE 8000 /* milliseconds for one answer of the API */
/* Milliseconds if a tunnel must be opened first. */
#define TUNNEL_OPENS  20000
#define ETCD_PATIENCE 5 /* seconds for an answer of etcd */
#define CIS_MAX       ((size_t)1 << 20)

void status_answered(struct status *st, size_t *waiting)
{
        --*waiting;
        if (!st->api_waiting && !st->server_waiting && !st->node_waiting)
                event_base_loopbreak(st->site->base);
}

static void status_replace(char **text, char *with)
{
        free(*text);
        *text = with;
}

/* ---- machines, and etcd on them ---- */

static void node_answered(struct status_node *n)
{
        bool was = n->closed;
        n->closed = true;
        if (!was)
                status_answered(n->status, &n->status->node_waiting);
}

/* Both queries use one link, which closes after the last answer. */
static void question_over(struct status_node *n)
{
        if (--n->asking == 0 && n->member->run.link)
                link_close(n->member->run.link);
}

static void on_cis(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct status_node *n = arg;
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cis_files files = cis_from_output(&a, status == 0 && out ? out : "");
        if (files.n)
                cis_node(n->status->hardening, n->status->site->cluster, n->member->node, &files);
        question_over(n);
}

static void on_status_etcd(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct status_node *n = arg;
        json_decref(n->etcd);
        n->etcd = json_incref(answer);
        status_replace(&n->etcd_trouble, answer ? NULL : xstrdup(trouble));
        question_over(n);
}

static void on_status_hello(
        struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct status_node *n = arg;
        json_decref(n->member->seen.said);
        json_decref(n->member->seen.drift);
        n->member->seen.said = json_incref(facts);
        n->member->seen.drift = json_incref(drift);
        n->heard = true;
        status_replace(&n->trouble, NULL);
        snprintf(n->member->seen.applied, sizeof(n->member->seen.applied), "%s", digest);
        n->etcd_asked = n->member->node->pool->roles & ROLE_ETCD;
        n->asking = 1 + n->etcd_asked + (n->status->hardening != NULL);
        if (n->etcd_asked)
                etcd_ask(n->member, ETCD_STATUS, ETCD_PATIENCE, on_status_etcd, n);
        if (n->status->hardening)
                link_run(l, (const char *const[]){ "sh", "-c", n->status->script, NULL }, NULL,
                        CIS_MAX, on_cis, n);
        question_over(n);
}

/* Forgets what was known about it. */
static void not_reached(struct status_node *n, char *why)
{
        json_decref(n->member->seen.said);
        json_decref(n->member->seen.drift);
        json_decref(n->etcd);
        n->member->seen.said = n->member->seen.drift = n->etcd = NULL;
        status_replace(&n->etcd_trouble, NULL);
        status_replace(&n->trouble, why);
}

/* The link's messages start with the node's name, and so does the list of problems: skip it. */
static char *without_name(const struct status_node *n, const char *message)
{
        char *prefix CLEANUP(free_p) = xasprintf("node %s: ", n->member->node->name);
        return xstrdup(has_prefix(message, prefix) ? message + strlen(prefix) : message);
}

static void on_status_closed(struct link *l, struct error *err, void *arg)
{
        struct status_node *n = arg;
        n->member->run.link = NULL;
        if (!n->heard)
                not_reached(n, without_name(n, err && err->message ? err->message
                                                                   : "it cannot be reached"));
        node_answered(n);
}

static void ask_node(struct status *st, struct status_node *n)
{
        struct machine *machine = n->member->machine;
        struct link_events events = {
                .on_hello = on_status_hello, .on_closed = on_status_closed, .arg = n
        };
        struct error err CLEANUP(error_release) = { 0 };
        n->closed = true;
        n->heard = n->etcd_asked = false;
        if (machine->state != MACHINE_RUNNING || !machine->target.host)
                return;
        machine->target.cluster = st->site->identity.prefix;
        if (link_open(st->site->base, &machine->target, &events, &n->member->run.link, &err) < 0) {
                not_reached(n, without_name(n, err.message));
                return;
        }
        n->closed = false;
        st->node_waiting++;
}

void status_ask_nodes(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++)
                ask_node(st, &st->nodes[i]);
}

/* ---- the API ---- */

static void on_status_ready(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        st->api_ready = reply->status == 200;
        status_replace(&st->api_trouble,
                st->api_ready ? NULL : xstrdup(reply->error ? reply->error : "it is not ready"));
        status_answered(st, &st->api_waiting);
}

static void on_status_version(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        const char *version = json_string_value(json_object_get(reply->body, "gitVersion"));
        if (reply->status == 200 && version)
                status_replace(&st->api_version, xstrdup(version));
        status_answered(st, &st->api_waiting);
}

static void on_status_nodes(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        size_t i;
        json_t *o;
        for (i = 0; i < st->site->count; i++) {
                json_decref(st->site->members[i].seen.object);
                st->site->members[i].seen.object = NULL;
        }
        json_array_clear(st->others); /* with --watch, queries are repeated */
        json_array_foreach(
                json_object_get(reply->status == 200 ? reply->body : NULL, "items"), i, o)
        {
                struct member *m = site_member(st->site,
                        json_string_value(json_object_get(json_object_get(o, "metadata"), "name")));
                if (!m)
                        json_array_append(st->others, o);
                else if (!m->seen.object)
                        m->seen.object = json_incref(o);
        }
        status_answered(st, &st->api_waiting);
}

static void on_status_requests(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        json_decref(st->requests);
        st->requests = reply->status == 200 ? json_incref(reply->body) : NULL;
        status_answered(st, &st->api_waiting);
}

static void keep_failing(struct status *st, json_t **list, const struct kube_reply *reply)
{
        size_t i;
        json_t *pod;
        json_decref(*list);
        *list = json_array();
        json_array_foreach(
                json_object_get(reply->status == 200 ? reply->body : NULL, "items"), i, pod)
        {
                if (pod_failing(pod))
                        json_array_append(*list, pod);
        }
        status_answered(st, &st->api_waiting);
}

static void on_control_pods(const struct kube_reply *reply, void *arg)
{
        keep_failing(arg, &((struct status *)arg)->failing[0], reply);
}

static void on_dns_pods(const struct kube_reply *reply, void *arg)
{
        keep_failing(arg, &((struct status *)arg)->failing[1], reply);
}

#define PODS "/api/v1/namespaces/kube-system/pods?labelSelector="

void status_ask_api(struct status *st)
{
        static const struct {
                const char *path;
                kube_fn fn;
        } questions[] = { { "/readyz", on_status_ready }, { "/version", on_status_version },
                { "/api/v1/nodes", on_status_nodes },
                { PODS "tier%3Dcontrol-plane", on_control_pods },
                { PODS "k8s-app%3Dkube-dns", on_dns_pods },
                { SERVING_REQUESTS, on_status_requests } };
        struct error err CLEANUP(error_release) = { 0 };
        if (!st->site->identity.prefix || !site_begun(st->site))
                return;
        st->api_asked = true;
        if (!st->site->kube && site_kube(st->site, &err) < 0) {
                status_replace(&st->api_trouble, xstrdup(err.message));
                return;
        }
        st->api_waiting += ARRAY_SIZE(questions);
        for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
                kube_request(st->site->kube, "GET", questions[i].path, NULL, NULL,
                        st->site->tunnel_count ? TUNNEL_OPENS : API_PATIENCE, questions[i].fn, st);
        status_ask_services(st, st->site->tunnel_count ? TUNNEL_OPENS : API_PATIENCE);
        status_ask_addons(st, st->site->tunnel_count ? TUNNEL_OPENS : API_PATIENCE);
        status_ask_login(st);
}

static void on_server(const struct kube_reply *reply, void *arg)
{
        struct status_node *n = arg;
        n->api_asking = false;
        n->api_ready = reply->status == 200;
        status_replace(&n->api_trouble,
                n->api_ready ? NULL : xstrdup(reply->error ? reply->error : "it is not ready"));
        status_answered(n->status, &n->status->server_waiting);
}

/* In the order of the API client. Machines that are off are not queried. */
void status_ask_servers(struct status *st)
{
        size_t server = 0;
        for (size_t i = 0; st->site->kube && i < st->site->count; i++) {
                struct status_node *n = &st->nodes[i];
                if (!(n->member->node->pool->roles & ROLE_CONTROL_PLANE))
                        continue;
                size_t mine = server++;
                if (n->member->machine->state != MACHINE_RUNNING)
                        n->api_ready = false;
                if (n->member->machine->state != MACHINE_RUNNING || n->api_asking)
                        continue;
                n->api_asking = true;
                st->server_waiting++;
                kube_ask(st->site->kube, mine, "/readyz",
                        st->site->tunnel_count ? TUNNEL_OPENS : API_PATIENCE, on_server, n);
        }
}

/* ---- entry points ---- */

#define PATIENCE       30
#define NODES_A_SECOND 10

unsigned status_patience(const struct site *s)
{
        return PATIENCE + (unsigned)(s->count / NODES_A_SECOND);
}

void status_give_up(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++) {
                struct status_node *n = &st->nodes[i];
                if (n->closed)
                        continue;
                if (!n->heard)
                        not_reached(
                                n, xasprintf("no answer within %u s", status_patience(st->site)));
                else if (n->etcd_asked)
                        status_replace(&n->etcd_trouble,
                                xasprintf("no answer within %u s", status_patience(st->site)));
                link_free(n->member->run.link);
                n->member->run.link = NULL;
                n->closed = true;
                st->node_waiting--;
        }
        if (st->api_asked && !st->api_ready && !st->api_trouble)
                st->api_trouble = xasprintf("no answer within %u s", status_patience(st->site));
}

static void on_status_timer(evutil_socket_t fd, short what, void *arg)
{
        event_base_loopbreak(((struct status *)arg)->site->base);
}

void status_begin(struct status *st, struct site *s)
{
        *st = (struct status){ .site = s,
                .nodes = xcalloc(s->count + 1, sizeof(*st->nodes)),
                .timer = evtimer_new(s->base, on_status_timer, st),
                .others = json_array() };
        for (size_t i = 0; i < s->count; i++)
                st->nodes[i] = (struct status_node){
                        .status = st, .member = &s->members[i], .closed = true
                };
}

/* Ends all queries before the memory that their callbacks write to is freed. */
void status_end(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++) {
                struct status_node *n = &st->nodes[i];
                link_free(n->member->run.link);
                n->member->run.link = NULL;
                free(n->trouble);
                free(n->etcd_trouble);
                free(n->api_trouble);
                json_decref(n->etcd);
        }
        kube_free(st->site->kube);
        st->site->kube = NULL;
        http_free(st->site->http);
        st->site->http = NULL;
        event_free(st->timer);
        json_decref(st->others);
        json_decref(st->requests);
        json_decref(st->hardening);
        for (size_t i = 0; i < ARRAY_SIZE(st->failing); i++)
                json_decref(st->failing[i]);
        for (size_t i = 0; i < ARRAY_SIZE(st->workloads); i++)
                json_decref(st->workloads[i]);
        json_decref(st->secrets);
        status_addons_end(st);
        free(st->api_trouble);
        free(st->api_version);
        free(st->login_trouble);
        free(st->nodes);
}

int status_wait(struct status *st, unsigned seconds, struct error *err)
{
        event_add(st->timer, &(struct timeval){ .tv_sec = seconds });
        int r = st->api_waiting || st->server_waiting || st->node_waiting
                        ? event_base_dispatch(st->site->base)
                        : 0;
        event_del(st->timer);
        return r < 0 ? error_set(err, EIO, EXIT_INTERNAL, "the event loop failed") : 0;
}

int status_ask(struct site *s, json_t **out, bool *healthy, struct error *err)
{
        struct status st;
        status_begin(&st, s);
        st.hardening = cis_begin(s->cluster);
        st.script = cis_script(s->arena, s->cluster);
        status_ask_nodes(&st);
        status_ask_api(&st);
        status_ask_servers(&st);
        int r = status_wait(&st, status_patience(s), err);
        if (r == 0) {
                status_give_up(&st);
                cis_end(st.hardening);
                *out = status_json(&st, healthy);
        }
        status_end(&st);
        return r;
}
