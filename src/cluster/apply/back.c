/* Returns a node that is not healthy after an upgrade to its previous version. */
#include "cluster/apply/back.h"
#include "cluster/apply/readiness.h"
#include "cluster/site/op.h"
#include "cluster/site/proven.h"
#include "kube/drain.h"

/* To uncordon it, through an API that was just ready. */
#define BACK_CORDON_MS 60000
/* Until the API of a node that was returned is ready, whatever upgrade.healthTimeout says: a slow
 * computer would leave the node cordoned. */
#define BACK_API_SECONDS 300

struct back {
        struct op op;
        struct member *m;
        struct cluster cluster; /* as before, except for the version */
        struct item *items;
        size_t count;
        struct fetch *fetch;
        struct kube_call *wait;
        const char *why, *from;
};

static void back_release(struct op *o)
{
        struct back *b = (struct back *)o;
        fetch_free(TAKE(b->fetch));
        items_free(TAKE(b->items), b->count);
}

static void back_over(struct back *b, const char *trouble)
{
        struct member *m = b->m;
        struct error err CLEANUP(error_release) = { 0 };
        if (b->wait)
                kube_cancel(TAKE(b->wait));
        error_set(&err, EIO, EXIT_STEP,
                "it was unhealthy after the upgrade to %s (waiting for %s); it %s%s%s%s",
                m->site->cluster->kubernetes.text, b->why,
                trouble ? "cannot be rolled back to " : "was rolled back to ", b->from,
                trouble ? ": " : "", trouble ? trouble : "");
        error_hint(&err,
                "'slipway logs %s' says why; the nodes after it were not touched; run the same command again to retry",
                m->node->name);
        op_done(&b->op, &err);
}

static void on_back_late(struct op *o)
{
        struct back *b = (struct back *)o;
        back_over(b,
                b->m->run.cordoned ? "the API does not answer; the node is still cordoned" : NULL);
}

static void on_back_uncordoned(const struct kube_reply *reply, void *arg)
{
        back_over(arg, reply->error);
}

/* Only slipway's own cordon: this run's, or one that an interrupted run left. */
static void on_back_node(const struct kube_reply *reply, void *arg)
{
        struct back *b = arg;
        bool ours = false;
        if (op_over(&b->op))
                return;
        if (reply->error && reply->status != 404)
                back_over(b, reply->error);
        else if (reply->body && node_cordoned(reply->body, &ours) && ours)
                kube_cordon(b->op.site->kube, b->m->node->name, false, on_back_uncordoned, b);
        else
                back_over(b, NULL);
}

/* Its API server may be the only one and may still be starting. */
static void on_back_api(void *arg)
{
        struct back *b = arg;
        b->wait = NULL;
        if (op_over(&b->op))
                return;
        op_later(&b->op, BACK_CORDON_MS, on_back_late);
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", b->m->node->name);
        kube_request(b->op.site->kube, "GET", path, NULL, NULL, 5000, on_back_node, b);
}

static void back_uncordon(struct back *b)
{
        struct site *s = b->op.site;
        unsigned seconds = (unsigned)s->cluster->upgrade.health_timeout;
        op_later(&b->op, (seconds > BACK_API_SECONDS ? seconds : BACK_API_SECONDS) * 1000,
                on_back_late);
        b->wait = kube_wait_ready(s->kube, 300, on_back_api, b);
}

static void on_back_applied(struct member *m, unsigned failed, struct error *cut, void *arg)
{
        struct back *b = arg;
        const struct site *s = m->site;
        if (cut) {
                back_over(b, cut->message ? cut->message : "the connection was cut");
                return;
        }
        if (failed) {
                back_over(b, "some entries could not be applied");
                return;
        }
        proven_back(m);
        /* without the API nobody knew whether an interrupted run had cordoned it */
        if (s->kube && (m->run.cordoned || !s->found.api_up))
                back_uncordon(b);
        else
                back_over(b, NULL);
}

static void on_back_fetched(struct error *err, void *arg)
{
        struct back *b = arg;
        struct member *m = b->m;
        struct error failed CLEANUP(error_release) = { 0 };
        struct spec_input in = { .cluster = &b->cluster,
                .identity = &m->site->identity,
                .leaves = &m->plan.leaves,
                .node = m->node,
                .facts = &m->seen.facts };
        if (op_over(&b->op))
                return;
        if (err || !member_reachable(m)) {
                back_over(b, err ? err->message : "the connection was cut");
                return;
        }
        member_forget_spec(m);
        if (node_render(&in, &m->plan.spec, &failed) < 0) {
                back_over(b, failed.message);
                return;
        }
        m->plan.rendered = true;
        member_apply(m, b->op.step,
                &(struct apply_request){
                        .items = b->items, .count = b->count, .fn = on_back_applied, .arg = b });
}

void upgrade_back(struct member *m, struct step *step, const char *why)
{
        struct site *s = m->site;
        struct back *b = arena_new(s->arena, struct back);
        struct error err CLEANUP(error_release) = { 0 };
        const char *from = m->seen.before;
        size_t n;
        *b = (struct back){
                .op.release = back_release,
                .m = m,
                .cluster = *s->cluster,
                .why = arena_strdup(s->arena, why),
                .from = from ? arena_strdup(s->arena, from) : "",
        };
        op_begin(&b->op, s, step);
        readiness_back(m);
        step_doing(step, -1, "unhealthy: rolling back to %s", b->from);
        if (!from || !version_parse(from, &b->cluster.kubernetes) ||
                version_compare(&b->cluster.kubernetes, &s->cluster->kubernetes) == 0) {
                back_over(b, "the previous version is not known");
                return;
        }
        b->cluster.kubernetes.text = b->from;
        b->items = fetch_items(&b->cluster, s->arena, &b->count, &err);
        struct fetch_request request = { .cluster = &b->cluster,
                .arch = member_arch(m),
                .lock = s->lock_path,
                .items = b->items,
                .count = b->count,
                .on_done = on_back_fetched,
                .arg = b };
        request.agent = agent_for(request.arch, &n);
        request.agent_len = n;
        if (!b->items || fetch_start(s->base, &request, &b->fetch, &err) < 0)
                back_over(b, err.message);
}
