#include <event2/event.h>

#include "cluster/plan/own_images.h"
#include "kube/wait.h"

#define APPS         "/apis/apps/v1/namespaces/kube-system/"
#define ASK_MS       15000
#define WAIT_SECONDS 900

static const struct {
        const char *name, *container, *path;
        bool (*done)(const json_t *object);
} parts[OWN_IMAGE_COUNT] = {
        [OWN_IMAGE_PROXY] = { "kube-proxy", "kube-proxy", APPS "daemonsets/kube-proxy",
                daemonset_ready },
        [OWN_IMAGE_DNS] = { "CoreDNS", "coredns", APPS "deployments/coredns",
                deployment_available },
};

const char *own_image_wanted(const struct cluster *c, enum own_image part)
{
        return part == OWN_IMAGE_PROXY ? c->network.proxy_image : c->network.dns_image;
}

const char *own_image_name(enum own_image part) { return parts[part].name; }

bool own_image_differs(const struct site *s, enum own_image part)
{
        const char *wanted = own_image_wanted(s->cluster, part);
        return wanted && s->found.own_images_now[part] &&
               !streq(wanted, s->found.own_images_now[part]);
}

/* The next component, from `part` on, whose image is in the file. */
static enum own_image own_images_next(const struct site *s, enum own_image part)
{
        while (part < OWN_IMAGE_COUNT && !own_image_wanted(s->cluster, part))
                part++;
        return part;
}

/* ---- observe ---- */

struct looking {
        struct site *site;
        struct kube *kube;
        enum own_image part;
        void (*fn)(void *arg);
        void *arg;
};

static void own_images_look_next(struct looking *l);

static void on_seen(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        const char *image =
                reply->error ? NULL : workload_image(reply->body, parts[l->part].container);
        l->site->found.own_images_now[l->part] = image ? arena_strdup(l->site->arena, image) : NULL;
        l->part++;
        own_images_look_next(l);
}

/* kubeadm's ConfigMap: an empty mode is iptables on Linux. */
static void on_proxy_map(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        struct error err CLEANUP(error_release) = { 0 };
        const char *text = reply->error
                                   ? NULL
                                   : json_string_value(json_object_get(
                                             json_object_get(reply->body, "data"), "config.conf"));
        struct tree *t = NULL;
        if (text && tree_parse(l->site->arena, "kube-proxy", text, strlen(text), &t, &err) == 0) {
                const struct tree *mode = tree_get(t, "mode");
                l->site->found.proxy_mode_now =
                        mode && mode->kind == TREE_SCALAR && *mode->text ? mode->text : "iptables";
        }
        l->fn(l->arg);
}

int own_images_check(const struct site *s, struct error *err)
{
        static const char *const modes[] = { "iptables", "nftables", "ipvs", "none" };
        const struct network *n = &s->cluster->network;
        const char *now = s->found.proxy_mode_now, *wanted = modes[n->proxy_mode];
        if (n->proxy_run != PROXY_RUN_DAEMONSET || !now || streq(now, wanted))
                return 0;
        error_set(err, EINVAL, EXIT_PREFLIGHT,
                "network.proxyMode is %s, and the cluster's own kube-proxy, which slipway leaves alone, runs with %s",
                wanted, now);
        return error_hint(err,
                "nothing was changed; set network.proxyMode: %s, or edit mode in the ConfigMap kube-proxy in kube-system and restart its pods",
                now);
}

static void own_images_look_next(struct looking *l)
{
        l->part = own_images_next(l->site, l->part);
        if (l->part < OWN_IMAGE_COUNT)
                kube_request(l->kube, "GET", parts[l->part].path, NULL, NULL, ASK_MS, on_seen, l);
        else if (l->site->cluster->network.proxy_run == PROXY_RUN_DAEMONSET)
                kube_request(l->kube, "GET", "/api/v1/namespaces/kube-system/configmaps/kube-proxy",
                        NULL, NULL, ASK_MS, on_proxy_map, l);
        else
                l->fn(l->arg);
}

void own_images_observe(struct site *s, struct kube *kube, void (*fn)(void *arg), void *arg)
{
        struct looking *l = arena_new(s->arena, struct looking);
        *l = (struct looking){ .site = s, .kube = kube, .fn = fn, .arg = arg };
        own_images_look_next(l);
}

/* ---- change, one after the other ---- */

struct keeping {
        struct site *site;
        struct step *step;
        enum own_image part;
        bool sent, any; /* the new image of this part, or of any part, was sent */
};

static void own_images_ask(struct keeping *k);

static void on_own_images_timer(evutil_socket_t fd, short what, void *arg) { own_images_ask(arg); }

static void own_images_again(struct keeping *k)
{
        struct site *s = k->site;
        static const struct timeval soon = { .tv_usec = 300000 };
        if (s->own_images_timer)
                event_free(s->own_images_timer);
        s->own_images_timer = evtimer_new(s->base, on_own_images_timer, k);
        event_add(s->own_images_timer, &soon);
}

static void own_images_fail(struct keeping *k, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, EIO, EXIT_STEP, "%s cannot be given %s: %s", parts[k->part].name,
                own_image_wanted(k->site->cluster, k->part), why);
        error_hint(&err,
                "kubectl -n kube-system get daemonsets,deployments shows what is there; without network.%s in the file it is left alone",
                k->part == OWN_IMAGE_PROXY ? "proxyImage" : "dnsImage");
        step_done(k->step, &err);
}

static void on_patched(const struct kube_reply *reply, void *arg)
{
        struct keeping *k = arg;
        if (k->step->state != STEP_RUNNING)
                return;
        if (reply->error && reply->status) {
                own_images_fail(k, reply->error);
                return;
        }
        if (!reply->error)
                step_changed(k->step, "gave %s the image %s", parts[k->part].name,
                        own_image_wanted(k->site->cluster, k->part));
        k->sent = k->any = true;
        own_images_again(k);
}

static void patch(struct keeping *k)
{
        json_t *body = json_pack("{s:{s:{s:{s:[{s:s, s:s}]}}}}", "spec", "template", "spec",
                "containers", "name", parts[k->part].container, "image",
                own_image_wanted(k->site->cluster, k->part));
        char *text CLEANUP(free_p) = json_dumps(body, 0);
        json_decref(body);
        kube_request(k->site->kube, "PATCH", parts[k->part].path,
                "application/strategic-merge-patch+json", text, 0, on_patched, k);
}

static void on_own_images_asked(const struct kube_reply *reply, void *arg)
{
        struct keeping *k = arg;
        const char *image = workload_image(reply->body, parts[k->part].container);
        if (k->step->state != STEP_RUNNING)
                return; /* the step has timed out */
        if (reply->error && reply->status < 500 && reply->status) {
                own_images_fail(k, reply->error);
        } else if (reply->error) {
                own_images_again(k); /* an API server may be stopping */
        } else if (!image) {
                own_images_fail(k, "it has no container of that name");
        } else if (!streq(image, own_image_wanted(k->site->cluster, k->part))) {
                patch(k);
        } else if (k->sent && !parts[k->part].done(reply->body)) {
                step_doing(k->step, -1, "waiting for %s", parts[k->part].name);
                own_images_again(k);
        } else {
                k->part++;
                k->sent = false;
                own_images_ask(k);
        }
}

static void own_images_ask(struct keeping *k)
{
        k->part = own_images_next(k->site, k->part);
        if (k->part < OWN_IMAGE_COUNT)
                kube_request(k->site->kube, "GET", parts[k->part].path, NULL, NULL, ASK_MS,
                        on_own_images_asked, k);
        else if (k->any)
                step_done(k->step, NULL);
        else
                step_unchanged(k->step);
}

void step_own_images(struct step *s)
{
        struct site *site = s->arg;
        struct keeping *k = arena_new(site->arena, struct keeping);
        *k = (struct keeping){ .site = site, .step = s };
        step_deadline(s, WAIT_SECONDS,
                "kubectl -n kube-system get pods shows which of them do not start: their image may be missing in the registry");
        own_images_ask(k);
}
