#include <event2/event.h>
#include <time.h>

#include "kube/drain.h"
#include "kube/wait.h"

#define EVERY_MS 1000

struct drain {
        struct kube *kube;
        struct eviction {
                struct drain *drain;
                struct kube_call *call; /* NULL: free */
                char *pod;
        } evictions[64]; /* at once; the others come at the next look */
        struct event *timer;
        char *node, *blocked; /* blocked: what the API said of the pod that would not go */
        time_t until;
        size_t left; /* pods still there at the last look */
        struct kube_call *list;
        void (*say)(const char *what, void *arg);
        void (*fn)(const char *error, void *arg);
        void *arg;
};

/* ---- cordon ---- */

struct cordon {
        void (*fn)(const char *error, void *arg);
        void *arg;
};

static void on_cordoned(const struct kube_reply *reply, void *arg)
{
        struct cordon *c = arg;
        c->fn(reply->status == 200 || reply->status == 404 ? NULL : reply->error, c->arg);
        free(c);
}

void node_cordon(struct kube *k, const char *node, bool cordon, void (*fn)(const char *error, void *arg), void *arg)
{
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", node);
        struct cordon *c = xcalloc(1, sizeof(*c));
        *c = (struct cordon){ fn, arg };
        kube_request(k, "PATCH", path, "application/merge-patch+json", cordon ? "{\"spec\":{\"unschedulable\":true}}" : "{\"spec\":{\"unschedulable\":null}}",
                0, on_cordoned, c);
}

/* ---- the end ---- */

void drain_free(struct drain *d)
{
        if (!d)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(d->evictions); i++) {
                if (d->evictions[i].call)
                        kube_cancel(d->evictions[i].call);
                free(d->evictions[i].pod);
        }
        if (d->list)
                kube_cancel(d->list);
        event_free(d->timer);
        free(d->node);
        free(d->blocked);
        free(d);
}

static void end(struct drain *d, const char *error)
{
        void (*fn)(const char *, void *) = d->fn;
        void *arg = d->arg;
        char *copy CLEANUP(free_p) = error ? xstrdup(error) : NULL;
        drain_free(d);
        fn(copy, arg);
}

static void on_given_up(const char *error, void *arg)
{
        struct drain *d = arg;
        char *text CLEANUP(free_p) = xasprintf("%zu pods are still on it%s%s%s%s", d->left, d->blocked ? ": " : "", d->blocked ? d->blocked : "",
                error ? "; and it is still cordoned: " : "", error ? error : "");
        end(d, text);
}

/* ---- pods ---- */

/* Mirrors of static pods and pods of DaemonSets stay; what has ended needs no place. */
static bool stays(const json_t *pod)
{
        const json_t *meta = json_object_get(pod, "metadata"), *owner;
        const char *phase = json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));
        size_t i;
        if (json_object_get(json_object_get(meta, "annotations"), "kubernetes.io/config.mirror"))
                return true;
        json_array_foreach(json_object_get(meta, "ownerReferences"), i, owner)
        {
                const char *kind = json_string_value(json_object_get(owner, "kind"));
                if (kind && streq(kind, "DaemonSet"))
                        return true;
        }
        return phase && (streq(phase, "Succeeded") || streq(phase, "Failed"));
}

static void on_evicted(const struct kube_reply *reply, void *arg)
{
        struct eviction *e = arg;
        struct drain *d = e->drain;
        e->call = NULL;
        if (reply->status >= 300 && reply->status != 404) {
                free(d->blocked);
                d->blocked = xasprintf("%s: %s", e->pod, reply->error ? reply->error : "it cannot be evicted");
                d->say(d->blocked, d->arg);
        }
        free_p(&e->pod);
}

static void evict(struct drain *d, struct eviction *e, const json_t *pod)
{
        const char *name = object_name(pod), *space = object_namespace(pod);
        char *path CLEANUP(free_p) = xasprintf("/api/v1/namespaces/%s/pods/%s/eviction", space, name);
        char *body CLEANUP(free_p) =
                xasprintf("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"}}", name, space);
        *e = (struct eviction){ .drain = d, .pod = xasprintf("%s/%s", space, name) };
        e->call = kube_request(d->kube, "POST", path, "application/json", body, 0, on_evicted, e);
}

static void evict_all(struct drain *d, const json_t *pods)
{
        size_t i, slot = 0;
        const json_t *pod;
        d->left = 0;
        json_array_foreach(pods, i, pod)
        {
                if (stays(pod))
                        continue;
                d->left++;
                if (json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp"))
                        continue;
                while (slot < ARRAY_SIZE(d->evictions) && d->evictions[slot].call)
                        slot++;
                if (slot < ARRAY_SIZE(d->evictions))
                        evict(d, &d->evictions[slot], pod);
        }
}

static void on_pods(const struct kube_reply *reply, void *arg)
{
        static const struct timeval soon = { .tv_usec = EVERY_MS * 1000 % 1000000, .tv_sec = EVERY_MS / 1000 };
        struct drain *d = arg;
        d->list = NULL;
        if (reply->status == 200) {
                evict_all(d, json_object_get(reply->body, "items"));
                if (!d->left) {
                        end(d, NULL);
                        return;
                }
                char *text CLEANUP(free_p) = xasprintf("%zu pods are leaving", d->left);
                if (!d->blocked)
                        d->say(text, d->arg);
        } else {
                free(d->blocked);
                d->blocked = xstrdup(reply->error ? reply->error : "the API does not answer");
        }
        if (time(NULL) >= d->until)
                node_cordon(d->kube, d->node, false, on_given_up, d);
        else
                event_add(d->timer, &soon);
}

static void look(evutil_socket_t fd, short what, void *arg)
{
        struct drain *d = arg;
        char *path CLEANUP(free_p) = xasprintf("/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", d->node);
        d->list = kube_request(d->kube, "GET", path, NULL, NULL, 0, on_pods, d);
}

static void on_begun(const char *error, void *arg)
{
        if (error)
                end(arg, error);
        else
                look(-1, 0, arg);
}

struct drain *drain_start(struct kube *k, struct event_base *base, const char *node, unsigned seconds, void (*say)(const char *what, void *arg),
        void (*fn)(const char *error, void *arg), void *arg)
{
        struct drain *d = xcalloc(1, sizeof(*d));
        *d = (struct drain){ .kube = k, .node = xstrdup(node), .until = time(NULL) + (time_t)seconds, .say = say, .fn = fn, .arg = arg };
        d->timer = event_new(base, -1, 0, look, d);
        node_cordon(k, node, true, on_begun, d);
        return d;
}
