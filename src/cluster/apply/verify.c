/* The step "verify". All nodes may be Ready although no pod reaches another. So a probe runs on
 * every node for a short time, in a namespace of its own that is deleted afterwards. The result is
 * stored in the cluster, so that a run without changes does not verify again. */
#include "base/sha256.h"
#include "cluster/apply/fabric.h"
#include "cluster/apply/verify.h"
#include "kube/wait.h"

#define MARKER_PATH "/api/v1/namespaces/kube-system/configmaps/slipway-verified"
/* Until every probe runs, and until the probes of an earlier run are deleted. */
#define PODS_SECONDS 300 /* on a busy computer a pod takes minutes */
#define LOOK_MS      100

static void verify_begin(struct verify *v);
static void verify_look(struct verify *v);

void verify_later(struct verify *v, event_callback_fn fn)
{
        static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };
        struct site *s = v->site;
        if (s->verify_timer)
                event_free(s->verify_timer);
        s->verify_timer = evtimer_new(s->base, fn, v);
        event_add(s->verify_timer, &soon);
}

static void verify_ask_pods(struct verify *v, const char *method, const char *path, kube_fn fn)
{
        kube_request(v->site->kube, method, path, NULL, NULL, 0, fn, v);
}

/* ---- the end ---- */

void verify_failed(struct verify *v, const char *hint, const char *fmt, ...)
{
        char *text CLEANUP(free_p) = NULL;
        va_list ap;
        va_start(ap, fmt);
        if (vasprintf(&text, fmt, ap) < 0)
                abort();
        va_end(ap);
        step_changed(v->step, "%s", text);
        if (v->failures++)
                return;
        error_set(&v->err, EHOSTUNREACH, EXIT_UNHEALTHY, "%s", text);
        error_hint(&v->err, "%s", hint);
}

static void verify_finish(struct verify *v)
{
        struct error err CLEANUP(error_release) = v->err;
        v->err = (struct error){ 0 };
        if (v->failures > 1)
                error_wrap(&err, "%zu things do not work; the first", v->failures);
        step_done(v->step, v->failures ? &err : NULL);
}

static void on_marked(const char *error, void *arg)
{
        struct verify *v = arg;
        if (error)
                verify_failed(
                        v, "run again", "cannot record that the cluster was verified: %s", error);
        verify_finish(v);
}

/* Does not wait until the namespace is deleted: the API has accepted the request, and a later run
 * waits if it still exists. */
static void on_verify_removed(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        if (reply->error && reply->status != 404)
                verify_failed(v, "remove it: kubectl delete namespace " VERIFY_NAMESPACE,
                        "cannot remove the namespace " VERIFY_NAMESPACE ": %s", reply->error);
        if (v->failures || v->alone) {
                verify_finish(v);
                return;
        }
        char *text CLEANUP(free_p) = xasprintf(
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"slipway-verified\","
                "\"namespace\":\"kube-system\"},\"data\":{\"digest\":\"%s\"}}",
                v->digest);
        kube_apply(v->site->kube, text, on_marked, v);
}

void verify_end(struct verify *v)
{
        step_doing(v->step, -1, "removing the probes");
        verify_ask_pods(v, "DELETE", VERIFY_NAMESPACE_PATH, on_verify_removed);
}

/* ---- the probes ---- */

const char *verify_pod_why(const json_t *pod)
{
        const json_t *status = json_object_get(pod, "status"),
                     *c = json_array_get(json_object_get(status, "containerStatuses"), 0);
        const json_t *waiting = json_object_get(json_object_get(c, "state"), "waiting");
        /* an evicted pod has no containers */
        const json_t *from = waiting ? waiting : status;
        const char *message = json_string_value(json_object_get(from, "message")),
                   *reason = json_string_value(json_object_get(from, "reason"));
        return message ? message : reason;
}

static void read_pod(struct verify *v, const json_t *pod)
{
        struct arena *a = v->site->arena;
        const char *node =
                json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));
        const json_t *ips = json_object_get(json_object_get(pod, "status"), "podIPs");
        for (size_t i = 0; node && i < v->count; i++) {
                struct probe *p = &v->probes[i];
                if (p->pod || !streq(p->member->node->name, node))
                        continue;
                if (!pod_ready(pod) || !json_array_size(ips)) {
                        const char *why = verify_pod_why(pod);
                        if (why && (!p->waiting || !streq(p->waiting, why)))
                                p->waiting = arena_strdup(a, why);
                        continue;
                }
                p->pod = arena_strdup(a, object_name(pod));
                for (size_t k = 0; k < ARRAY_SIZE(p->ip) && k < json_array_size(ips); k++) {
                        const char *ip =
                                json_string_value(json_object_get(json_array_get(ips, k), "ip"));
                        p->ip[k] = ip ? arena_strdup(a, ip) : NULL;
                }
        }
}

static void on_verify_timer(evutil_socket_t fd, short what, void *arg) { verify_look(arg); }

static void on_verify_pods(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        const json_t *items = json_object_get(reply->body, "items");
        size_t running = 0;
        for (size_t i = 0; i < json_array_size(items); i++)
                read_pod(v, json_array_get(items, i));
        for (size_t i = 0; i < v->count; i++)
                running += v->probes[i].pod != NULL;
        step_doing(v->step, -1, "%zu of %zu probes run", running, v->count);
        if (running == v->count) {
                for (size_t i = 0; i < v->count; i++)
                        verify_row(v, CHECK_START, v->probes[i].member->node->name, NULL, NULL);
                verify_ask(v);
                return;
        }
        if (clock_ms() < v->deadline) {
                verify_later(v, on_verify_timer);
                return;
        }
        for (size_t i = 0; i < v->count; i++) {
                const struct probe *p = &v->probes[i];
                const char *why = p->pod         ? NULL
                                  : p->waiting   ? p->waiting
                                  : reply->error ? reply->error
                                                 : "it has not started";
                verify_row(v, CHECK_START, p->member->node->name, NULL, why);
                if (why)
                        verify_failed(v,
                                "look at the kubelet and the container runtime of that node, and run again",
                                "a pod on %s does not run after %d s: %s", p->member->node->name,
                                PODS_SECONDS, why);
        }
        verify_end(v);
}

static void verify_look(struct verify *v)
{
        verify_ask_pods(v, "GET", VERIFY_NAMESPACE_PATH "/pods", on_verify_pods);
}

static void on_service(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        const json_t *spec = json_object_get(reply->body, "spec"),
                     *ips = json_object_get(spec, "clusterIPs");
        for (size_t i = 0; i < ARRAY_SIZE(v->service) && i < json_array_size(ips); i++) {
                const char *ip = json_string_value(json_array_get(ips, i));
                v->service[i] = ip ? arena_strdup(v->site->arena, ip) : NULL;
        }
        v->deadline = clock_ms() + (int64_t)PODS_SECONDS * 1000;
        verify_look(v);
}

static void on_verify_applied(const char *error, void *arg)
{
        struct verify *v = arg;
        if (!error) {
                verify_ask_pods(v, "GET",
                        arena_printf(v->site->arena, VERIFY_NAMESPACE_PATH "/services/%s", v->name),
                        on_service);
                return;
        }
        verify_failed(v, "run again; if it stays so, see what refuses them in the API server's log",
                "the probes cannot be made: %s", error);
        verify_end(v);
}

/* ---- start ---- */

static void on_again(evutil_socket_t fd, short what, void *arg) { verify_begin(arg); }

static void on_forced(const struct kube_reply *reply, void *arg) { verify_later(arg, on_again); }

/* A probe on a node that is not Ready is deleted only when its kubelet answers, so it is
 * deleted with force. */
static void verify_clear(struct verify *v)
{
        bool lacking = false;
        for (size_t i = 0; i < v->site->count; i++)
                lacking |= v->site->members[i].run.lacking != NULL;
        if (lacking && !v->forced) {
                v->forced = true;
                verify_ask_pods(
                        v, "DELETE", VERIFY_NAMESPACE_PATH "/pods?gracePeriodSeconds=0", on_forced);
        } else {
                verify_later(v, on_again);
        }
}

/* First removes what a killed run left: its pods may be from another cluster.yaml. */
static void on_verify_cleared(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        struct str documents CLEANUP(str_release) = { 0 };
        if (reply->status == 404) {
                step_doing(v->step, -1, "starting the probes");
                addon_verify(v->site->cluster, v->name, &documents);
                kube_apply(v->site->kube, str_text(&documents), on_verify_applied, v);
        } else if (clock_ms() < v->deadline) {
                step_doing(v->step, -1, "waiting until the probes of an earlier run are deleted");
                verify_clear(v);
        } else {
                verify_failed(v,
                        "see what holds it: kubectl get namespace " VERIFY_NAMESPACE " -o yaml",
                        "the namespace " VERIFY_NAMESPACE " of an earlier run is not deleted: %s",
                        reply->error ? reply->error : "it is still there");
                verify_finish(v);
        }
}

static void verify_begin(struct verify *v)
{
        verify_ask_pods(v, "DELETE", VERIFY_NAMESPACE_PATH, on_verify_cleared);
}

void verify_start(struct verify *v)
{
        v->deadline = clock_ms() + (int64_t)PODS_SECONDS * 1000;
        verify_begin(v);
}

static void on_unmarked(const struct kube_reply *reply, void *arg) { verify_start(arg); }

static bool nothing_changed(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].run.apply->state != STEP_KEPT)
                        return false;
        return true;
}

static void on_marker(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        const char *digest =
                json_string_value(json_object_get(json_object_get(reply->body, "data"), "digest"));
        if (nothing_changed(v->site) && digest && streq(digest, v->digest))
                step_unchanged(v->step);
        else
                /* so that the next run verifies again if this one is interrupted */
                verify_ask_pods(v, "DELETE", MARKER_PATH, on_unmarked);
}

static void digest_of(const struct site *s, char out[65])
{
        struct str text CLEANUP(str_release) = { 0 };
        char fabric[SHA256_HEX];
        fabric_digest(s->cluster, fabric);
        str_addf(&text, SLIPWAY_VERSION "\n%s\n", fabric);
        for (size_t i = 0; i < s->count; i++)
                str_addf(&text, "%s %s\n", s->members[i].node->name, s->members[i].plan.wanted);
        verify_promises(s->cluster, &text);
        sha256_hex(text.data, text.len, out);
}

struct verify *verify_new(struct site *site, struct step *s)
{
        struct verify *v = arena_new(site->arena, struct verify);
        *v = (struct verify){ .site = site,
                .step = s,
                .probes = arena_array(site->arena, struct probe, site->count) };
        v->name = arena_printf(site->arena, "probe-%06x", (unsigned)clock_ms() & 0xffffff);
        return v;
}

void verify_add(struct verify *v, struct member *m)
{
        v->probes[v->count++] = (struct probe){ .verify = v, .member = m };
}

void step_verify(struct step *s)
{
        struct site *site = s->arg;
        /* pods start only after the user installs a fabric */
        if (site->cluster->network.fabric.kind == FABRIC_NONE) {
                step_unchanged(s);
                return;
        }
        struct verify *v = verify_new(site, s);
        for (size_t i = 0; i < site->count; i++)
                if (site->members[i].run.ready && !site->members[i].run.lacking)
                        verify_add(v, &site->members[i]);
        digest_of(site, v->digest);
        verify_ask_pods(v, "GET", MARKER_PATH, on_marker);
}
