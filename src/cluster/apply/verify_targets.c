/* What the addon prometheus promises: every target is up, and every node has one. Prometheus is
 * asked through the API server, which connects to its pod: nothing of the cluster needs to be
 * reached from here. */
#include "cluster/apply/verify_promise.h"

#define TARGETS \
        "/api/v1/namespaces/prometheus/services/http:prometheus:http/proxy/api/v1/targets?state=active"

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
