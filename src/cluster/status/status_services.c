/* services.dex, asked at the address that people use; and releases of services.charts: read from
 * helm's Secrets (only their labels) and from the workloads that helm labelled. */
#include "addon/service.h"
#include "cluster/plan/issuer.h"
#include "cluster/status/status.h"
#include "kube/wait.h"

#define SECRETS_MAX 20000
#define HELMS       "?labelSelector=app.kubernetes.io%2Fmanaged-by%3DHelm"

static const struct {
        const char *path, *kind;
        bool (*ready)(const json_t *object);
} status_workloads[] = {
        { "/apis/apps/v1/deployments" HELMS, "Deployment", deployment_available },
        { "/apis/apps/v1/daemonsets" HELMS, "DaemonSet", daemonset_ready },
        { "/apis/apps/v1/statefulsets" HELMS, "StatefulSet", statefulset_ready },
};

static void on_status_secrets(json_t *items, const char *error, void *arg)
{
        struct status *st = arg;
        json_decref(st->secrets);
        st->secrets = json_incref(items);
        status_answered(st, &st->api_waiting);
}

static void keep_workloads(struct status *st, const struct kube_reply *reply, size_t which)
{
        json_decref(st->workloads[which]);
        st->workloads[which] =
                reply->status == 200 ? json_incref(json_object_get(reply->body, "items")) : NULL;
        status_answered(st, &st->api_waiting);
}

static void on_deployments(const struct kube_reply *reply, void *arg)
{
        keep_workloads(arg, reply, 0);
}
static void on_daemonsets(const struct kube_reply *reply, void *arg)
{
        keep_workloads(arg, reply, 1);
}
static void on_statefulsets(const struct kube_reply *reply, void *arg)
{
        keep_workloads(arg, reply, 2);
}

void status_ask_services(struct status *st, unsigned timeout_ms)
{
        static const kube_fn fns[] = { on_deployments, on_daemonsets, on_statefulsets };
        if (!st->site->cluster->services.charts.n)
                return;
        st->api_waiting += 1 + ARRAY_SIZE(fns);
        kube_list_metadata(st->site->kube, "/api/v1/secrets", "owner%3Dhelm", SECRETS_MAX,
                on_status_secrets, st);
        for (size_t i = 0; i < ARRAY_SIZE(fns); i++)
                kube_request(st->site->kube, "GET", status_workloads[i].path, NULL, NULL,
                        timeout_ms, fns[i], st);
}

/* The annotations name the release; the name label depends on the chart. */
static bool of_release(const json_t *object, const struct service *s)
{
        const json_t *notes = json_object_get(json_object_get(object, "metadata"), "annotations");
        const char *name = json_string_value(json_object_get(notes, "meta.helm.sh/release-name")),
                   *ns = json_string_value(
                           json_object_get(notes, "meta.helm.sh/release-namespace"));
        return name && ns && streq(name, s->name) && streq(ns, s->ns);
}

/* The first workload of the release that is not ready; malloc'd. NULL: all are ready. */
static char *not_ready(const struct status *st, const struct service *s)
{
        size_t i;
        const json_t *o;
        for (size_t k = 0; k < ARRAY_SIZE(status_workloads); k++)
                json_array_foreach(st->workloads[k], i, o)
                {
                        if (of_release(o, s) && !status_workloads[k].ready(o))
                                return xasprintf("%s %s/%s", status_workloads[k].kind,
                                        object_namespace(o), object_name(o));
                }
        return NULL;
}

static json_t *release_json(const struct status *st, const struct service *s, json_t *problems)
{
        char *waits CLEANUP(free_p) = s->revision ? not_ready(st, s) : NULL;
        bool there = s->revision && !streq(s->state, "uninstalled");
        json_t *o = json_object();
        status_text(o, "name", s->name);
        status_text(o, "namespace", s->ns);
        status_text(o, "chart", s->version);
        json_object_set_new(o, "revision", json_integer(s->revision));
        status_text(o, "state", there ? s->state : "absent");
        json_object_set_new(o, "ready", json_boolean(there && !waits));
        json_object_set_new(o, "drift", json_boolean(there && (s->drifted || !s->had)));
        if (!there)
                status_problem(problems, "release %s/%s is not installed: slipway up installs it",
                        s->ns, s->name);
        else if (!streq(s->state, "deployed"))
                status_problem(problems, "release %s/%s is %s: slipway up continues it", s->ns,
                        s->name, s->state);
        else if (waits)
                status_problem(problems, "release %s/%s: %s is not ready", s->ns, s->name, waits);
        return o;
}

json_t *status_releases_json(const struct status *st, json_t *problems)
{
        const struct charts *charts = &st->site->cluster->services.charts;
        struct arena a CLEANUP(arena_release) = { 0 };
        json_t *list = json_array();
        for (size_t i = 0; st->secrets && i < charts->n; i++) {
                struct service s = { .kind = SERVICE_CHART,
                        .name = charts->v[i].name,
                        .ns = charts->v[i].namespace };
                service_revisions(&s, &a, st->secrets);
                json_array_append_new(list, release_json(st, &s, problems));
        }
        return list;
}

/* ---- login ---- */

static void on_status_login(const char *why, void *arg)
{
        struct status *st = arg;
        free(st->login_trouble);
        st->login_trouble = why ? xstrdup(why) : NULL;
        st->login_known = true;
        st->login_asking = false;
        status_answered(st, &st->api_waiting);
}

/* Behind a jump host people reach it from elsewhere. */
void status_ask_login(struct status *st)
{
        if (!st->site->cluster->services.dex.host || st->site->tunnel_count || st->login_asking)
                return;
        st->login_asking = true;
        st->api_waiting++;
        issuer_ask(st->site, on_status_login, st);
}

json_t *status_login_json(const struct status *st, json_t *problems)
{
        const char *issuer = st->site->cluster->auth.oidc.issuer;
        if (!st->login_known)
                return NULL;
        json_t *o = json_object();
        status_text(o, "issuer", issuer);
        json_object_set_new(o, "works", json_boolean(!st->login_trouble));
        status_text(o, "trouble", st->login_trouble);
        if (st->login_trouble)
                status_problem(problems, "login at %s: %s", issuer, st->login_trouble);
        return o;
}
