/* Asking: every question goes out at once, and the loop ends with the last answer. */
#include <event2/event.h>

#include "cluster/etcd.h"
#include "cluster/status.h"

#define PATIENCE      30   /* seconds for all of it */
#define API_PATIENCE  8000 /* milliseconds for one answer of the API */
#define ETCD_PATIENCE 5    /* seconds for etcd's */

static void answered(struct status *st)
{
        if (--st->waiting == 0)
                event_base_loopbreak(st->site->base);
}

/* ---- machines, and etcd on them ---- */

static void node_answered(struct status_node *n)
{
        if (!n->closed)
                answered(n->status);
        n->closed = true;
}

static void on_etcd(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct status_node *n = arg;
        n->etcd = json_incref(answer);
        if (!answer)
                n->etcd_trouble = xstrdup(trouble);
        if (m->link)
                link_close(m->link);
}

static void on_hello(struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct status_node *n = arg;
        n->member->said = json_incref(facts);
        n->member->drift = json_incref(drift);
        snprintf(n->member->applied, sizeof(n->member->applied), "%s", digest);
        n->etcd_asked = n->member->node->pool->roles & ROLE_ETCD;
        if (n->etcd_asked)
                etcd_ask(n->member, ETCD_STATUS, ETCD_PATIENCE, on_etcd, n);
        else
                link_close(l);
}

static void on_closed(struct link *l, struct error *err, void *arg)
{
        struct status_node *n = arg;
        n->member->link = NULL;
        if (err && !n->member->said)
                n->trouble = xstrdup(err->message ? err->message : "it cannot be reached");
        node_answered(n);
}

static void ask_node(struct status *st, struct status_node *n)
{
        struct machine *machine = n->member->machine;
        struct link_events events = { .on_hello = on_hello, .on_closed = on_closed, .arg = n };
        struct error err CLEANUP(error_release) = { 0 };
        n->closed = true;
        if (machine->state != MACHINE_RUNNING || !machine->target.host)
                return;
        machine->target.cluster = st->site->identity.prefix;
        if (link_open(st->site->base, &machine->target, &events, &n->member->link, &err) < 0) {
                n->trouble = xstrdup(err.message);
                return;
        }
        n->closed = false;
        st->waiting++;
}

/* ---- the API ---- */

static void on_ready(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        st->api_ready = reply->status == 200;
        if (!st->api_ready)
                st->api_trouble = xstrdup(reply->error ? reply->error : "it is not ready");
        answered(st);
}

static void on_version(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        const char *version = json_string_value(json_object_get(reply->body, "gitVersion"));
        if (reply->status == 200 && version)
                st->api_version = xstrdup(version);
        answered(st);
}

static void on_nodes(const struct kube_reply *reply, void *arg)
{
        struct status *st = arg;
        size_t i;
        json_t *o;
        json_array_foreach(json_object_get(reply->status == 200 ? reply->body : NULL, "items"), i, o)
        {
                struct member *m = site_member(st->site, json_string_value(json_object_get(json_object_get(o, "metadata"), "name")));
                if (m && !m->object)
                        m->object = json_incref(o);
        }
        answered(st);
}

static void ask_api(struct status *st)
{
        static const struct {
                const char *path;
                kube_fn fn;
        } questions[] = { { "/readyz", on_ready }, { "/version", on_version }, { "/api/v1/nodes", on_nodes } };
        struct error err CLEANUP(error_release) = { 0 };
        if (!st->site->identity.prefix)
                return;
        st->api_asked = true;
        if (site_kube(st->site, &err) < 0) {
                st->api_trouble = xstrdup(err.message);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
                st->waiting++;
                kube_request(st->site->kube, "GET", questions[i].path, NULL, NULL, API_PATIENCE, questions[i].fn, st);
        }
}

/* ---- all of it ---- */

static void give_up(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++) {
                struct status_node *n = &st->nodes[i];
                if (!n->closed && !n->member->said && !n->trouble)
                        n->trouble = xasprintf("no answer within %d s", PATIENCE);
                if (!n->closed && n->etcd_asked && !n->etcd && !n->etcd_trouble)
                        n->etcd_trouble = xasprintf("no answer within %d s", PATIENCE);
        }
        if (st->api_asked && !st->api_ready && !st->api_trouble)
                st->api_trouble = xasprintf("no answer within %d s", PATIENCE);
}

static void status_release(struct status *st)
{
        for (size_t i = 0; i < st->site->count; i++) { /* before what their callbacks would write to goes */
                struct status_node *n = &st->nodes[i];
                link_free(n->member->link);
                n->member->link = NULL;
                free(n->trouble);
                free(n->etcd_trouble);
                json_decref(n->etcd);
        }
        kube_free(st->site->kube);
        st->site->kube = NULL;
        free(st->api_trouble);
        free(st->api_version);
        free(st->nodes);
}

int status_ask(struct site *s, json_t **out, bool *healthy, struct error *err)
{
        struct status st = { .site = s, .nodes = xcalloc(s->count + 1, sizeof(*st.nodes)) };
        for (size_t i = 0; i < s->count; i++) {
                st.nodes[i] = (struct status_node){ .status = &st, .member = &s->members[i] };
                ask_node(&st, &st.nodes[i]);
        }
        ask_api(&st);
        event_base_loopexit(s->base, &(struct timeval){ .tv_sec = PATIENCE });
        int r = st.waiting ? event_base_dispatch(s->base) : 0;
        if (r < 0) {
                status_release(&st);
                return error_set(err, EIO, EXIT_INTERNAL, "the event loop failed");
        }
        give_up(&st);
        *out = status_json(&st, healthy);
        status_release(&st);
        return 0;
}
