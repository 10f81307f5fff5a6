#include <event2/event.h>

#include "cluster/keep.h"
#include "kube/wait.h"

#define APPS         "/apis/apps/v1/namespaces/kube-system/"
#define ASK_MS       15000
#define WAIT_SECONDS 900

static const struct {
        const char *name, *container, *path;
        bool (*done)(const json_t *object);
} parts[KEEP_COUNT] = {
        [KEEP_PROXY] = { "kube-proxy", "kube-proxy", APPS "daemonsets/kube-proxy", daemonset_ready },
        [KEEP_DNS] = { "CoreDNS", "coredns", APPS "deployments/coredns", deployment_available },
};

const char *keep_wanted(const struct cluster *c, enum keep_part part) { return part == KEEP_PROXY ? c->network.proxy_image : c->network.dns_image; }

const char *keep_name(enum keep_part part) { return parts[part].name; }

bool keep_differs(const struct site *s, enum keep_part part)
{
        const char *wanted = keep_wanted(s->cluster, part);
        return wanted && s->keep_now[part] && !streq(wanted, s->keep_now[part]);
}

/* The first part from `part` on that the file names. */
static enum keep_part next(const struct site *s, enum keep_part part)
{
        while (part < KEEP_COUNT && !keep_wanted(s->cluster, part))
                part++;
        return part;
}

/* ---- look ---- */

struct looking {
        struct site *site;
        struct kube *kube;
        enum keep_part part;
        void (*fn)(void *arg);
        void *arg;
};

static void look_next(struct looking *l);

static void on_seen(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        const char *image = reply->error ? NULL : workload_image(reply->body, parts[l->part].container);
        l->site->keep_now[l->part] = image ? arena_strdup(l->site->arena, image) : NULL;
        l->part++;
        look_next(l);
}

static void look_next(struct looking *l)
{
        l->part = next(l->site, l->part);
        if (l->part < KEEP_COUNT)
                kube_request(l->kube, "GET", parts[l->part].path, NULL, NULL, ASK_MS, on_seen, l);
        else
                l->fn(l->arg);
}

void keep_look(struct site *s, struct kube *kube, void (*fn)(void *arg), void *arg)
{
        struct looking *l = arena_new(s->arena, struct looking);
        *l = (struct looking){ .site = s, .kube = kube, .fn = fn, .arg = arg };
        look_next(l);
}

/* ---- change, one after the other ---- */

struct keeping {
        struct site *site;
        struct step *step;
        enum keep_part part;
        bool sent, any; /* this part's new image was sent; some part's was */
};

static void ask(struct keeping *k);

static void on_timer(evutil_socket_t fd, short what, void *arg) { ask(arg); }

static void again(struct keeping *k)
{
        struct site *s = k->site;
        static const struct timeval soon = { .tv_usec = 300000 };
        if (s->keep_timer)
                event_free(s->keep_timer);
        s->keep_timer = evtimer_new(s->base, on_timer, k);
        event_add(s->keep_timer, &soon);
}

static void fail(struct keeping *k, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, EIO, EXIT_STEP, "%s cannot be given %s: %s", parts[k->part].name, keep_wanted(k->site->cluster, k->part), why);
        error_hint(&err, "kubectl -n kube-system get daemonsets,deployments shows what is there; without network.%s in the file it is left alone",
                k->part == KEEP_PROXY ? "proxyImage" : "dnsImage");
        step_done(k->step, &err);
}

static void on_patched(const struct kube_reply *reply, void *arg)
{
        struct keeping *k = arg;
        if (k->step->state != STEP_RUNNING)
                return;
        if (reply->error && reply->status) {
                fail(k, reply->error);
                return;
        }
        if (!reply->error)
                step_changed(k->step, "gave %s the image %s", parts[k->part].name, keep_wanted(k->site->cluster, k->part));
        k->sent = k->any = true;
        again(k);
}

static void patch(struct keeping *k)
{
        json_t *body = json_pack("{s:{s:{s:{s:[{s:s, s:s}]}}}}", "spec", "template", "spec", "containers", "name", parts[k->part].container, "image",
                keep_wanted(k->site->cluster, k->part));
        char *text CLEANUP(free_p) = json_dumps(body, 0);
        json_decref(body);
        kube_request(k->site->kube, "PATCH", parts[k->part].path, "application/strategic-merge-patch+json", text, 0, on_patched, k);
}

static void on_asked(const struct kube_reply *reply, void *arg)
{
        struct keeping *k = arg;
        const char *image = workload_image(reply->body, parts[k->part].container);
        if (k->step->state != STEP_RUNNING)
                return; /* its time is over */
        if (reply->error && reply->status < 500 && reply->status) {
                fail(k, reply->error);
        } else if (reply->error) {
                again(k); /* an API server may just be going */
        } else if (!image) {
                fail(k, "it has no container of that name");
        } else if (!streq(image, keep_wanted(k->site->cluster, k->part))) {
                patch(k);
        } else if (k->sent && !parts[k->part].done(reply->body)) {
                step_doing(k->step, -1, "waiting for %s", parts[k->part].name);
                again(k);
        } else {
                k->part++;
                k->sent = false;
                ask(k);
        }
}

static void ask(struct keeping *k)
{
        k->part = next(k->site, k->part);
        if (k->part < KEEP_COUNT)
                kube_request(k->site->kube, "GET", parts[k->part].path, NULL, NULL, ASK_MS, on_asked, k);
        else if (k->any)
                step_done(k->step, NULL);
        else
                step_kept(k->step);
}

void step_keep(struct step *s)
{
        struct site *site = s->arg;
        struct keeping *k = arena_new(site->arena, struct keeping);
        *k = (struct keeping){ .site = site, .step = s };
        step_deadline(s, WAIT_SECONDS, "kubectl -n kube-system get pods says which of them do not come: their image may not be there to pull");
        ask(k);
}
