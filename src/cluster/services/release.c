/* A release: recovered from an unfinished state, installed or upgraded; or uninstalled. */
#include "cluster/services/services.h"
#include "kube/wait.h"

#define ASK_MS  15000
#define PODS_MS 3000
/* Between checks whether the helm of a killed run has ended. */
#define ENDING_MS    1000
#define ENDING_TRIES 10
#define HISTORY      "10"
#define SHORT_CALL   120 /* seconds */

struct releasing {
        struct op op;
        const struct task *task;
        struct service *service;
        unsigned looks;      /* how often an unfinished state was seen */
        bool running;        /* helm is installing or upgrading */
        const char *failing; /* a pod that does not start; NULL: none */
};

static void release_look(struct op *o);

static unsigned release_timeout(const struct service *s)
{
        return s->chart ? (unsigned)s->chart->timeout : 300;
}

/* ---- failures ---- */

#define LATE_HINT \
        "kubectl get pods and kubectl describe say what they wait for; fix the chart or its values, or set a longer timeout, and run slipway up again"

static const struct {
        const char *words, *hint;
} release_hints[] = {
        { "being terminated",
                "the namespace is being deleted: kubectl get namespace NAME -o yaml says what it waits for; then run slipway up again" },
        { "cannot be imported into the current release",
                "an object of that name is there already and belongs to something else: delete or rename it, then run slipway up again" },
        { "conflict occurred while applying",
                "somebody else manages that field: kubectl get -o yaml --show-managed-fields says who; then run slipway up again" },
        { "hooks failed",
                "kubectl get events and the logs of the hook's pod say why; fix the chart or its values, and run slipway up again" },
        { "timed out", LATE_HINT },
        { "deadline exceeded", LATE_HINT },
};

static const char *release_hint(const char *trouble)
{
        for (size_t i = 0; i < ARRAY_SIZE(release_hints); i++)
                if (strstr(trouble, release_hints[i].words))
                        return release_hints[i].hint;
        return "fix the chart or its values, and run slipway up again: it continues from here";
}

static void release_failed(struct releasing *r, const char *what, const struct helm_result *h)
{
        op_fail(&r->op, EIO, EXIT_STEP, h->hint ? h->hint : release_hint(h->trouble), "%s: %s%s%s",
                what, h->trouble, r->failing ? "; " : "", r->failing ? r->failing : "");
}

/* ---- pods that do not start, while helm waits ---- */

static void release_pods(struct op *o);

static void on_release_pods(const struct kube_reply *reply, void *arg)
{
        struct releasing *r = arg;
        size_t i;
        const json_t *pod, *c;
        if (op_over(&r->op) || !r->running)
                return;
        json_array_foreach(json_object_get(reply->body, "items"), i, pod)
        {
                if (!(c = pod_failing(pod)))
                        continue;
                const char *why = json_string_value(json_object_get(
                                   json_object_get(json_object_get(c, "state"), "waiting"),
                                   "reason")),
                           *image = json_string_value(json_object_get(c, "image"));
                r->failing = arena_printf(r->op.site->arena, "pod %s: %s, image %s",
                        object_name(pod), why ? why : "it does not start", image ? image : "-");
                step_doing(r->op.step, -1, "%s", r->failing);
                break;
        }
        op_later(&r->op, PODS_MS, release_pods);
}

static void release_pods(struct op *o)
{
        struct releasing *r = (struct releasing *)o;
        char *path CLEANUP(free_p) =
                xasprintf("/api/v1/namespaces/%s/pods?limit=500", r->service->ns);
        if (r->running)
                kube_request(o->site->kube, "GET", path, NULL, NULL, ASK_MS, on_release_pods, r);
}

/* ---- install, upgrade ---- */

static void on_upgraded(const struct helm_result *h, void *arg)
{
        struct releasing *r = arg;
        const struct service *s = r->service;
        r->running = false;
        if (op_over(&r->op))
                return;
        if (h->status) {
                release_failed(
                        r, s->revision ? "it cannot be upgraded" : "it cannot be installed", h);
                return;
        }
        step_changed(r->op.step, "%s release %s in namespace %s: revision %ld",
                s->revision ? "upgraded" : "installed", s->name, s->ns, s->revision + 1);
        op_done(&r->op, NULL);
}

/* A label's value: at most 63 letters, digits, dots, underscores and dashes. */
static const char *label_text(struct arena *a, const char *text)
{
        char *s = arena_strndup(a, text, 63);
        for (char *p = s; *p; p++)
                if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-",
                            *p))
                        *p = '_';
        for (size_t n = strlen(s); n && strchr("._-", s[n - 1]); n--)
                s[n - 1] = 0;
        return s;
}

static void release_upgrade(struct releasing *r)
{
        struct site *site = r->op.site;
        struct arena *a = site->arena;
        const struct service *s = r->service;
        const struct chart *c = s->chart;
        struct error err CLEANUP(error_release) = { 0 };
        unsigned seconds = release_timeout(s);
        struct helm_call call = {
                .args = { "upgrade", s->name, s->package, "--install", "--namespace", s->ns,
                        "--history-max", HISTORY, "--timeout", arena_printf(a, "%us", seconds),
                        "--labels",
                        arena_printf(a,
                                SERVICE_LABEL_INPUTS "=%s," SERVICE_LABEL_REVISION
                                                     "=%ld," SERVICE_LABEL_CHART "=%s",
                                s->inputs, s->revision + 1,
                                label_text(a, s->version ? s->version : "unknown")) },
                .api = true,
                .seconds = seconds * 3 + SHORT_CALL, /* also for a rollback, which waits too */
                .fn = on_upgraded,
                .arg = r
        };
        size_t n = 12;
        const char *const flags[] = { c->wait ? "--wait" : NULL, c->atomic ? "--atomic" : NULL,
                c->create_namespace ? "--create-namespace" : NULL,
                s->judged ? "--disable-openapi-validation" : NULL };
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                if (flags[i])
                        call.args[n++] = flags[i];
        helm_of(site, r->op.step);
        if (chart_values(site, s, call.args, &n, &err) < 0) {
                op_done(&r->op, &err);
                return;
        }
        step_doing(r->op.step, -1, s->revision ? "upgrading" : "installing");
        r->running = true;
        helm_run(site, r->op.step, &call);
        if (!op_over(&r->op) && r->running)
                op_later(&r->op, PODS_MS, release_pods);
}

/* ---- unfinished states ---- */

static void on_recovered(const struct helm_result *h, void *arg)
{
        struct releasing *r = arg;
        if (op_over(&r->op))
                return;
        if (h->status) {
                release_failed(r, "it was interrupted and cannot be rolled back", h);
                return;
        }
        step_changed(r->op.step, "repaired release %s, which was %s", r->service->name,
                r->service->state);
        release_look(&r->op);
}

/* Returns to the last deployed revision; uninstalls a release that was never deployed. */
static void release_recover(struct releasing *r)
{
        const struct service *s = r->service;
        struct arena *a = r->op.site->arena;
        const char *timeout = arena_printf(a, "%us", release_timeout(s));
        bool back = s->deployed && !streq(s->state, "uninstalling");
        struct helm_call call = { .api = true,
                .seconds = release_timeout(s) + SHORT_CALL,
                .fn = on_recovered,
                .arg = r };
        const char *const rollback[] = { "rollback", s->name, arena_printf(a, "%ld", s->deployed),
                "--namespace", s->ns, "--timeout", timeout };
        const char *const uninstall[] = { "uninstall", s->name, "--namespace", s->ns, "--wait",
                "--timeout", timeout };
        memcpy(call.args, back ? rollback : uninstall, sizeof(rollback));
        helm_run(r->op.site, r->op.step, &call);
}

static bool half_done(const struct service *s)
{
        return s->state && (has_prefix(s->state, "pending-") || streq(s->state, "uninstalling"));
}

static void release_begin(struct releasing *r)
{
        struct service *s = r->service;
        if (half_done(s) && r->looks++ < ENDING_TRIES) {
                step_doing(r->op.step, -1, "it is %s: waiting for a helm that may still run",
                        s->state);
                op_later(&r->op, ENDING_MS, release_look);
        } else if (half_done(s)) {
                release_recover(r);
        } else {
                service_decide(s, r->op.site->arena);
                if (s->action == SERVICE_KEEP)
                        op_unchanged(&r->op);
                else
                        release_upgrade(r);
        }
}

static void on_release_secrets(json_t *items, const char *error, void *arg)
{
        struct releasing *r = arg;
        struct service *s = r->service;
        if (op_over(&r->op))
                return;
        if (error) {
                op_fail(&r->op, EIO, EXIT_STEP, "run slipway up again: it continues from here",
                        "its revisions cannot be listed: %s", error);
                return;
        }
        s->revision = s->deployed = 0;
        s->state = s->had = NULL;
        s->drifted = s->went_back = false;
        service_revisions(s, r->op.site->arena, items);
        release_begin(r);
}

/* The plan's state may be outdated, or the API did not answer then. */
static void release_look(struct op *o)
{
        struct releasing *r = (struct releasing *)o;
        char *path CLEANUP(free_p) = xasprintf("/api/v1/namespaces/%s/secrets", r->service->ns),
                   *selector CLEANUP(free_p) =
                           xasprintf("owner%%3Dhelm,name%%3D%s", r->service->name);
        kube_list_metadata(o->site->kube, path, selector, SECRETS_MAX, on_release_secrets, r);
}

static struct releasing *releasing_new(struct step *step)
{
        const struct task *t = step->arg;
        struct releasing *r = arena_new(t->site->arena, struct releasing);
        r->task = t;
        r->service = t->service;
        op_begin(&r->op, t->site, step);
        return r;
}

void step_chart(struct step *step) { release_look(&releasing_new(step)->op); }

/* ---- uninstall ---- */

static void on_uninstalled(const struct helm_result *h, void *arg)
{
        struct releasing *r = arg;
        if (op_over(&r->op))
                return;
        if (h->status && !strstr(h->trouble, "release: not found")) {
                if (r->task->failed)
                        r->task->failed(&r->op, r->task, h);
                else
                        release_failed(r, "it cannot be uninstalled", h);
                return;
        }
        step_changed(r->op.step, "uninstalled release %s in namespace %s", r->service->name,
                r->service->ns);
        op_done(&r->op, NULL);
}

void step_uninstall(struct step *step)
{
        struct releasing *r = releasing_new(step);
        const struct service *s = r->service;
        struct arena *a = r->op.site->arena;
        unsigned seconds = r->task->seconds ? r->task->seconds : release_timeout(s);
        helm_run(r->op.site, step,
                &(struct helm_call){ .args = { "uninstall", s->name, "--namespace", s->ns, "--wait",
                                             "--timeout", arena_printf(a, "%us", seconds) },
                        .api = true,
                        .seconds = seconds + SHORT_CALL,
                        .fn = on_uninstalled,
                        .arg = r });
}
