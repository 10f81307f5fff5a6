#include <event2/event.h>

#include "base/clock.h"
#include "base/base.h"
#include "kube/drain.h"
#include "kube/wait.h"

#define LOOK_MS 200 /* between two lists of the pods */
/* Between two attempts of an eviction that a budget forbids, for each ten such pods: limits the
 * load on the API. */
#define RETRY_MS 400

struct victim {
        struct drain *drain;
        struct kube_call *call;
        char *name, *space, *uid;
        int64_t next; /* time of the next attempt */
        bool seen, ordered;
        char *held; /* the API's message: which budget */
        struct victim *link;
};

struct drain {
        struct kube *k;
        struct kube_call *list;
        struct event *timer;
        char *node;
        int64_t deadline;
        struct victim *victims;
        size_t held; /* how many were held in the last list */
        struct drain_events events;
};

/* ---- cordon ---- */

bool node_cordoned(const json_t *node, bool *ours)
{
        const json_t *annotations =
                json_object_get(json_object_get(node, "metadata"), "annotations");
        *ours = json_object_get(annotations, CORDON_ANNOTATION) != NULL;
        return json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable"));
}

void kube_cordon(struct kube *k, const char *node, bool on, kube_fn fn, void *arg)
{
        static const char *const patches[] = {
                "{\"spec\":{\"unschedulable\":null},\"metadata\":{\"annotations\":{\"" CORDON_ANNOTATION
                "\":null}}}",
                "{\"spec\":{\"unschedulable\":true},\"metadata\":{\"annotations\":{\"" CORDON_ANNOTATION
                "\":\"true\"}}}"
        };
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", node);
        kube_request(k, "PATCH", path, "application/merge-patch+json", patches[on], 0, fn, arg);
}

/* ---- which pods ---- */

static bool pod_owned_by(const json_t *pod, const char *kind, bool *any)
{
        const json_t *owners = json_object_get(json_object_get(pod, "metadata"), "ownerReferences"),
                     *o;
        size_t i;
        bool found = false;
        *any = false;
        json_array_foreach(owners, i, o)
        {
                const char *k = json_string_value(json_object_get(o, "kind"));
                *any |= json_is_true(json_object_get(o, "controller"));
                found |= k && streq(k, kind);
        }
        return found;
}

static bool pod_must_go(const json_t *pod, bool *orphan)
{
        const json_t *annotations =
                json_object_get(json_object_get(pod, "metadata"), "annotations");
        const char *phase =
                json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));
        bool any = false;
        if (json_object_get(annotations, "kubernetes.io/config.mirror") ||
                pod_owned_by(pod, "DaemonSet", &any))
                return false;
        *orphan = !any;
        return !phase || (!streq(phase, "Succeeded") && !streq(phase, "Failed"));
}

bool pod_stays(const json_t *pod)
{
        bool orphan;
        return !pod_must_go(pod, &orphan);
}

static struct victim *victim_find(struct drain *d, const json_t *pod)
{
        const char *uid =
                json_string_value(json_object_get(json_object_get(pod, "metadata"), "uid"));
        for (struct victim *v = d->victims; v; v = v->link)
                if (uid && streq(v->uid, uid))
                        return v;
        struct victim *v = xcalloc(1, sizeof(*v));
        *v = (struct victim){ .drain = d,
                .name = xstrdup(object_name(pod)),
                .space = xstrdup(object_namespace(pod)),
                .uid = xstrdup(uid ? uid : ""),
                .link = d->victims };
        d->victims = v;
        return v;
}

static void victim_free(struct victim *v)
{
        if (v->call)
                kube_cancel(v->call);
        free(v->name);
        free(v->space);
        free(v->uid);
        free(v->held);
        free(v);
}

/* ---- evictions ---- */

/* The API's message with its cause, which names the budget. */
static char *drain_held_words(const struct kube_reply *reply)
{
        const json_t *causes = json_object_get(json_object_get(reply->body, "details"), "causes"),
                     *c;
        const char *why = NULL;
        size_t i;
        json_array_foreach(causes, i, c)
        {
                const char *reason = json_string_value(json_object_get(c, "reason"));
                if (!why && reason && streq(reason, "DisruptionBudget"))
                        why = json_string_value(json_object_get(c, "message"));
        }
        return why ? xasprintf("%s: %s", reply->error, why) : xstrdup(reply->error);
}

static void drain_on_evicted(const struct kube_reply *reply, void *arg)
{
        struct victim *v = arg;
        v->call = NULL;
        free(v->held);
        v->held = NULL;
        v->next = clock_ms() + RETRY_MS * (1 + (int64_t)v->drain->held / 10);
        v->ordered = !reply->error || reply->status == 404;
        if (!v->ordered)
                v->held = drain_held_words(reply);
}

static void drain_evict(struct drain *d, struct victim *v)
{
        char *path CLEANUP(free_p) =
                xasprintf("/api/v1/namespaces/%s/pods/%s/eviction", v->space, v->name);
        json_t *body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s}}}", "apiVersion", "policy/v1",
                "kind", "Eviction", "metadata", "name", v->name, "namespace", v->space,
                "deleteOptions", "preconditions", "uid", v->uid);
        char *text CLEANUP(free_p) = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        v->call = kube_request(d->k, "POST", path, NULL, text, 0, drain_on_evicted, v);
}

static void drain_list_pods(struct drain *d);

static void drain_end(struct drain *d, const char *error)
{
        struct drain_events e = d->events;
        char *copy CLEANUP(free_p) = error ? xstrdup(error) : NULL;
        drain_free(d);
        e.on_done(copy, e.arg);
}

/* Frees victims that are no longer listed. */
static size_t drain_sweep(struct drain *d, const struct victim **held)
{
        size_t left = 0;
        d->held = 0;
        for (struct victim **p = &d->victims; *p;) {
                struct victim *v = *p;
                if (!v->seen) {
                        *p = v->link;
                        victim_free(v);
                        continue;
                }
                if (!*held || (v->held && !(*held)->held))
                        *held = v;
                left++;
                d->held += v->held != NULL;
                v->seen = false;
                p = &v->link;
        }
        return left;
}

static void drain_on_pods(const struct kube_reply *reply, void *arg)
{
        struct drain *d = arg;
        const struct victim *held = NULL;
        const json_t *items = json_object_get(reply->body, "items"), *pod;
        size_t i;
        d->list = NULL;
        if (reply->error && clock_ms() >= d->deadline) {
                drain_end(d, reply->error);
                return;
        }
        json_array_foreach(items, i, pod)
        {
                bool orphan = false;
                if (!pod_must_go(pod, &orphan))
                        continue;
                struct victim *v = victim_find(d, pod);
                bool first = !v->next;
                v->seen = true;
                if (!v->ordered && !v->call && clock_ms() >= v->next) {
                        if (first && orphan && d->events.on_orphan)
                                d->events.on_orphan(v->name, d->events.arg);
                        drain_evict(d, v);
                }
        }
        size_t left = reply->error ? 1 : drain_sweep(d, &held);
        if (!left) {
                drain_end(d, NULL);
                return;
        }
        if (d->events.on_progress)
                d->events.on_progress(left, held && held->held ? held->held : "", d->events.arg);
        if (clock_ms() < d->deadline || !held) {
                event_add(d->timer, &(struct timeval){ .tv_usec = LOOK_MS * 1000 });
                return;
        }
        char *text CLEANUP(free_p) =
                held->held ? xasprintf("the pod %s/%s cannot be evicted: %s", held->space,
                                     held->name, held->held)
                           : xasprintf("the pod %s/%s was evicted but has not ended", held->space,
                                     held->name);
        drain_end(d, text);
}

static void drain_on_timer(evutil_socket_t fd, short what, void *arg) { drain_list_pods(arg); }

static void drain_list_pods(struct drain *d)
{
        char *path CLEANUP(free_p) =
                xasprintf("/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", d->node);
        d->list = kube_request(d->k, "GET", path, NULL, NULL, 0, drain_on_pods, d);
}

struct drain *drain_start(struct kube *k, struct event_base *base, const char *node,
        unsigned seconds, const struct drain_events *events)
{
        struct drain *d = xcalloc(1, sizeof(*d));
        *d = (struct drain){ .k = k,
                .node = xstrdup(node),
                .deadline = clock_ms() + (int64_t)seconds * 1000,
                .events = *events };
        d->timer = evtimer_new(base, drain_on_timer, d);
        drain_list_pods(d);
        return d;
}

void drain_free(struct drain *d)
{
        if (!d)
                return;
        if (d->list)
                kube_cancel(d->list);
        for (struct victim *v = d->victims, *next; v; v = next) {
                next = v->link;
                victim_free(v);
        }
        event_free(d->timer);
        free(d->node);
        free(d);
}
