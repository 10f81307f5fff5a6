/* What the addons ingress and prometheus promise. Both are asked through the API server, which
 * connects to a pod of their Service: so nothing of the cluster needs to be reached from here. */
#include "addon/addon.h"
#include "cluster/apply/verify_promise.h"

#define THROUGH "/api/v1/namespaces/ingress/services/%s:ingress:%s/proxy/%s"
#define TARGETS \
        "/api/v1/namespaces/prometheus/services/http:prometheus:http/proxy/api/v1/targets?state=active"

/* ---- an Ingress that leads to the probes, by HTTP and by TLS ---- */

static void ingress_look(struct verify *v);
static void on_ingress_timer(evutil_socket_t fd, short what, void *arg) { ingress_look(arg); }

static const char *ingress_way(const struct verify *v) { return v->tls ? "TLS" : "HTTP"; }

static void ingress_end(struct verify *v, const char *why)
{
        verify_row(v, CHECK_INGRESS, "cluster", ingress_way(v), why);
        if (why)
                verify_failed(v, "see its log: kubectl -n ingress logs deployment/ingress",
                        "ingress (%s): %s", ingress_way(v), why);
        if (v->tls || why) {
                promise_next(v);
                return;
        }
        v->tls = true;
        ingress_look(v);
}

/* A probe answers with the name of its node. */
static bool ingress_answered(const struct verify *v, const struct kube_reply *reply)
{
        size_t n = reply->text ? strcspn(reply->text, "\n") : 0;
        for (size_t i = 0; !reply->error && i < v->count; i++) {
                const char *node = v->probes[i].member->node->name;
                if (n == strlen(node) && memcmp(reply->text, node, n) == 0)
                        return true;
        }
        return false;
}

static void on_ingress(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        if (ingress_answered(v, reply)) {
                ingress_end(v, NULL);
                return;
        }
        promise_waits(v, reply->error ? reply->error : "something else answered than the probes");
        if (clock_ms() < v->deadline)
                verify_later(v, on_ingress_timer);
        else
                ingress_end(v, v->waiting);
}

static void ingress_look(struct verify *v)
{
        const char *scheme = v->tls ? "https" : "http";
        promise_ask(v, arena_printf(v->site->arena, THROUGH, scheme, scheme, v->name), on_ingress);
}

static void on_ingress_applied(const char *error, void *arg)
{
        if (error)
                ingress_end(arg, error);
        else
                ingress_look(arg);
}

void verify_ingress(struct verify *v)
{
        struct str documents CLEANUP(str_release) = { 0 };
        promise_begin(v, verify_patience(v), "asking through the ingress controller");
        addon_verify_ingress(v->name, &documents);
        kube_apply(v->site->kube, str_text(&documents), on_ingress_applied, v);
}

/* ---- targets of Prometheus: every one is up, and every node has one ---- */

static void targets_look(struct verify *v);
static void on_targets_timer(evutil_socket_t fd, short what, void *arg) { targets_look(arg); }

static const char *job_text(const json_t *target, const char *name)
{
        const char *text = json_string_value(json_object_get(target, name));
        return text ? text : "";
}

/* NULL: all targets of the job are up, and there are enough. */
static const char *job_why(
        const struct verify *v, const json_t *list, const char *job, size_t least)
{
        struct arena *a = v->site->arena;
        size_t i, found = 0;
        const json_t *t;
        json_array_foreach(list, i, t)
        {
                if (!streq(job_text(t, "scrapePool"), job))
                        continue;
                found++;
                if (!streq(job_text(t, "health"), "up"))
                        return arena_printf(a, "%.100s is %.20s: %.150s", job_text(t, "scrapeUrl"),
                                job_text(t, "health"), job_text(t, "lastError"));
        }
        return found < least ? arena_printf(a, "%zu of %zu targets were found", found, least)
                             : NULL;
}

/* The jobs of the template prometheus.yaml, and how many targets each has at least. */
static size_t targets_failing(struct verify *v, const json_t *list, bool tell)
{
        const struct cluster *c = v->site->cluster;
        const struct {
                const char *job;
                size_t least;
        } jobs[] = { { "prometheus", 1 }, { "apiserver", 1 }, { "kubelet", v->count },
                { "cadvisor", v->count }, { "node-exporter", v->count },
                { "coredns", c->network.manage_dns },
                { "kube-state-metrics", cluster_addon(c, ADDON_KUBE_STATE_METRICS) } };
        size_t failing = 0;
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
                const char *why = job_why(v, list, jobs[i].job, jobs[i].least);
                failing += why != NULL;
                if (!tell || (!why && !jobs[i].least))
                        continue;
                if (why && v->waiting)
                        why = v->waiting;
                verify_row(v, CHECK_TARGETS, "cluster", jobs[i].job, why);
                if (why)
                        verify_failed(v,
                                "see its log: kubectl -n prometheus logs deployment/prometheus",
                                "targets of Prometheus (%s): %s", jobs[i].job, why);
        }
        return failing;
}

static void on_targets(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        const json_t *list = json_object_get(json_object_get(reply->body, "data"), "activeTargets");
        v->waiting = NULL;
        promise_waits(v, reply->error);
        if (targets_failing(v, list, false) && clock_ms() < v->deadline) {
                verify_later(v, on_targets_timer);
                return;
        }
        targets_failing(v, list, true);
        promise_next(v);
}

static void targets_look(struct verify *v) { promise_ask(v, TARGETS, on_targets); }

void verify_targets(struct verify *v)
{
        promise_begin(v, verify_patience(v), "waiting for the targets of Prometheus");
        targets_look(v);
}
