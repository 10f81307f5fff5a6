/* Asking: every question goes out at once, and the loop ends with the last answer. */
#include <event2/event.h>

#include "cluster/etcd.h"
#include "cluster/status.h"
#include "kube/wait.h"

#define API_PATIENCE  8000  /* milliseconds for one answer of the API */
#define TUNNEL_OPENS  20000 /* that has to open a tunnel first */
#define ETCD_PATIENCE 5     /* seconds for etcd's */

static void answered(struct status *st, size_t *waiting)
{
        --*waiting;
        if (!st->api_waiting && !st->server_waiting && !st->node_waiting)
                event_base_loopbreak(st->site->base);
}

static void replace(char **text, char *with)
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
                answered(n->status, &n->status->node_waiting);
}

static void on_etcd(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct status_node *n = arg;
        json_decref(n->etcd);
        n->etcd = json_incref(answer);
        replace(&n->etcd_trouble, answer ? NULL : xstrdup(trouble));
        if (m->link)
                link_close(m->link);
}

static void on_hello(struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct status_node *n = arg;
        json_decref(n->member->said);
        json_decref(n->member->drift);
        n->member->said = json_incref(facts);
        n->member->drift = json_incref(drift);
        n->heard = true;
        replace(&n->trouble, NULL);
        snprintf(n->member->applied, sizeof(n->member->applied), "%s", digest);
        n->etcd_asked = n->member->node->pool->roles & ROLE_ETCD;
        if (n->etcd_asked)
                etcd_ask(n->member, ETCD_STATUS, ETCD_PATIENCE, on_etcd, n);
        else
                link_close(l);
}

/* What was known of it is no longer so. */
static void not_reached(struct status_node *n, char *why)
{
        json_decref(n->member->said);
        json_decref(n->member->drift);
        json_decref(n->etcd);
        n->member->said = n->member->drift = n->etcd = NULL;
        replace(&n->etcd_trouble, NULL);
        replace(&n->trouble, why);
}

/* The link begins its sentences with the node's name, and so does the list of problems. */
static char *without_name(const struct status_node *n, const char *message)
{
        char *prefix CLEANUP(free_p) = xasprintf("node %s: ", n->member->node->name);
        return xstrdup(has_prefix(message, prefix) ? message + strlen(prefix) : message);
}

static void on_closed(struct link *l, struct error *err, void *arg)
{
        struct status_node *n = arg;
        n->member->link = NULL;
        if (!n->heard)
                not_reached(n, without_name(n, err && err->message ? err->message : "it cannot be reached"));
        node_answered(n);
}

static void ask_node(struct status *st, struct status_node *n)
{
        struct machine *machine = n->member->machine;
        struct link_events events = { .on_hello = on_hello, .on_closed = on_closed, .arg = n };
        struct error err CLEANUP(error_release) = { 0 };
        n->closed = true;
        n->heard = n->etcd_asked = false;
        if (machine->state != MACHINE_RUNNING || !machine->target.host)
                return;
        machine->target.cluster = st->site->identity.prefix;
        if (link_open(st->site->base, &machine->target, &events, &n->member->link, &err) < 0) {
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

static void on_ready(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        st->api_ready = reply->status == 200;
        replace(&st->api_trouble, st->api_ready ? NULL : xstrdup(reply->error ? reply->error : "it is not ready"));
        answered(st, &st->api_waiting);
}

static void on_version(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        const char *version = json_string_value(json_object_get(reply->body, "gitVersion"));
        if (reply->status == 200 && version)
                replace(&st->api_version, xstrdup(version));
        answered(st, &st->api_waiting);
}

static void on_nodes(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        size_t i;
        json_t *o;
        for (i = 0; i < st->site->count; i++) {
                json_decref(st->site->members[i].object);
                st->site->members[i].object = NULL;
        }
        json_array_clear(st->others); /* with --watch it is asked again */
        json_array_foreach(json_object_get(reply->status == 200 ? reply->body : NULL, "items"), i, o)
        {
                struct member *m = site_member(st->site, json_string_value(json_object_get(json_object_get(o, "metadata"), "name")));
                if (!m)
                        json_array_append(st->others, o);
                else if (!m->object)
                        m->object = json_incref(o);
        }
        answered(st, &st->api_waiting);
}

static void keep_failing(struct status *st, json_t **list, const struct kube_reply *reply)
{
        size_t i;
        json_t *pod;
        json_decref(*list);
        *list = json_array();
        json_array_foreach(json_object_get(reply->status == 200 ? reply->body : NULL, "items"), i, pod)
        {
                if (pod_failing(pod))
                        json_array_append(*list, pod);
        }
        answered(st, &st->api_waiting);
}

static void on_control_pods(const struct kube_reply *reply, void *arg) { keep_failing(arg, &((struct status *)arg)->failing[0], reply); }

static void on_dns_pods(const struct kube_reply *reply, void *arg) { keep_failing(arg, &((struct status *)arg)->failing[1], reply); }

#define PODS "/api/v1/namespaces/kube-system/pods?labelSelector="

void status_ask_api(struct status *st)
{
        static const struct {
                const char *path;
                kube_fn fn;
        } questions[] = { { "/readyz", on_ready }, { "/version", on_version }, { "/api/v1/nodes", on_nodes }, { PODS "tier%3Dcontrol-plane", on_control_pods },
                { PODS "k8s-app%3Dkube-dns", on_dns_pods } };
        struct error err CLEANUP(error_release) = { 0 };
        if (!st->site->identity.prefix)
                return;
        st->api_asked = true;
        if (!st->site->kube && site_kube(st->site, &err) < 0) {
                replace(&st->api_trouble, xstrdup(err.message));
                return;
        }
        st->api_waiting += ARRAY_SIZE(questions);
        for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
                kube_request(st->site->kube, "GET", questions[i].path, NULL, NULL, st->site->tunnel_count ? TUNNEL_OPENS : API_PATIENCE, questions[i].fn, st);
}

static void on_server(const struct kube_reply *reply, void *arg)
{
        struct status_node *n = arg;
        n->api_asking = false;
        n->api_ready = reply->status == 200;
        replace(&n->api_trouble, n->api_ready ? NULL : xstrdup(reply->error ? reply->error : "it is not ready"));
        answered(n->status, &n->status->server_waiting);
}

/* In the order the API's client knows them. A machine that is off need not be asked. */
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
                kube_ask(st->site->kube, mine, "/readyz", st->site->tunnel_count ? TUNNEL_OPENS : API_PATIENCE, on_server, n);
        }
}

/* ---- all of it ---- */

void status_give_up(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++) {
                struct status_node *n = &st->nodes[i];
                if (n->closed)
                        continue;
                if (!n->heard)
                        not_reached(n, xasprintf("no answer within %d s", STATUS_PATIENCE));
                else if (n->etcd_asked)
                        replace(&n->etcd_trouble, xasprintf("no answer within %d s", STATUS_PATIENCE));
                link_free(n->member->link);
                n->member->link = NULL;
                n->closed = true;
                st->node_waiting--;
        }
        if (st->api_asked && !st->api_ready && !st->api_trouble)
                st->api_trouble = xasprintf("no answer within %d s", STATUS_PATIENCE);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) { event_base_loopbreak(((struct status *)arg)->site->base); }

void status_begin(struct status *st, struct site *s)
{
        *st = (struct status){
                .site = s, .nodes = xcalloc(s->count + 1, sizeof(*st->nodes)), .timer = evtimer_new(s->base, on_timer, st), .others = json_array()
        };
        for (size_t i = 0; i < s->count; i++)
                st->nodes[i] = (struct status_node){ .status = st, .member = &s->members[i], .closed = true };
}

/* Before what their callbacks would write to goes. */
void status_end(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++) {
                struct status_node *n = &st->nodes[i];
                link_free(n->member->link);
                n->member->link = NULL;
                free(n->trouble);
                free(n->etcd_trouble);
                free(n->api_trouble);
                json_decref(n->etcd);
        }
        kube_free(st->site->kube);
        st->site->kube = NULL;
        event_free(st->timer);
        json_decref(st->others);
        for (size_t i = 0; i < ARRAY_SIZE(st->failing); i++)
                json_decref(st->failing[i]);
        free(st->api_trouble);
        free(st->api_version);
        free(st->nodes);
}

int status_wait(struct status *st, unsigned seconds, struct error *err)
{
        event_add(st->timer, &(struct timeval){ .tv_sec = seconds });
        int r = st->api_waiting || st->server_waiting || st->node_waiting ? event_base_dispatch(st->site->base) : 0;
        event_del(st->timer);
        return r < 0 ? error_set(err, EIO, EXIT_INTERNAL, "the event loop failed") : 0;
}

int status_ask(struct site *s, json_t **out, bool *healthy, struct error *err)
{
        struct status st;
        status_begin(&st, s);
        status_ask_nodes(&st);
        status_ask_api(&st);
        status_ask_servers(&st);
        int r = status_wait(&st, STATUS_PATIENCE, err);
        if (r == 0) {
                status_give_up(&st);
                *out = status_json(&st, healthy);
        }
        status_end(&st);
        return r;
}
