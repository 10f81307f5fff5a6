/* What a change of a chart does, object by object: helm renders the wanted manifest and prints
 * the current one. */
#include "cluster/services/services.h"
#include "kube/documents.h"

#define RENDER_SECONDS 120

struct comparing {
        struct op op;
        struct service *service;
        /* without the API's check of kinds that the chart itself defines */
        bool lenient;
        json_t *before, *after;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static int add_values(struct site *s, const struct chart *c, const char *text, const char **args,
        size_t *n, struct error *err)
{
        char *name CLEANUP(free_p) = xasprintf("values-%s-%s-%zu.yaml", c->namespace, c->name, *n);
        const char *path = NULL;
        if (helm_file(s, name, text, &path, err) < 0)
                return -err->code;
        args[(*n)++] = "-f";
        args[(*n)++] = path;
        return 0;
}

/* In the order in which later ones override earlier ones. */
int chart_values(struct site *s, const struct service *service, const char **args, size_t *n,
        struct error *err)
{
        const struct chart *c = service->chart;
        struct str inlined CLEANUP(str_wipe_release) = { 0 };
        int r = 0;
        if (c->values && c->values->kind == TREE_MAP)
                tree_json(&inlined, c->values);
        if (c->values_text)
                r = add_values(s, c, c->values_text, args, n, err);
        for (size_t i = 0; r == 0 && i < c->values_texts.n; i++)
                r = add_values(s, c, c->values_texts.v[i], args, n, err);
        return r < 0 || !inlined.len ? r : add_values(s, c, str_text(&inlined), args, n, err);
}

static void comparing_release(struct op *o)
{
        struct comparing *c = (struct comparing *)o;
        json_decref(TAKE(c->before));
        json_decref(TAKE(c->after));
}

static void comparing_end(struct comparing *c, struct error *err)
{
        comparing_release(&c->op);
        op_drop(&c->op);
        c->fn(err, c->arg);
}

static void on_crds_compared(struct error *err, void *arg) { comparing_end(arg, err); }

/* Also if its objects cannot be compared: they are applied. */
static void compare_crds(struct comparing *c)
{
        crds_compare(c->op.site, c->op.step, c->service, on_crds_compared, c);
}

static void on_chart_judged(struct error *err, void *arg)
{
        struct comparing *c = arg;
        if (err) {
                comparing_end(c, err);
                return;
        }
        c->service->judged = c->service->placed;
        c->service->changes = service_diff(c->before, c->after, c->service->ns);
        compare_crds(c);
}

/* Sets the release's namespace on objects that have none. */
static void place_objects(json_t *objects, const char *ns)
{
        size_t i;
        json_t *o;
        json_array_foreach(objects, i, o)
        {
                json_t *meta = json_object_get(o, "metadata");
                if (!service_cluster_wide(o) && !json_object_get(meta, "namespace"))
                        json_object_set_new(meta, "namespace", json_string(ns));
        }
}

static void compare_judge(struct comparing *c)
{
        char *what CLEANUP(free_p) = xasprintf("chart %s", c->service->name);
        if (c->op.site->found.services->blind) {
                on_chart_judged(NULL, c);
                return;
        }
        json_t *placed = json_deep_copy(c->after);
        place_objects(placed, c->service->ns);
        services_judge(c->op.site, what, placed, on_chart_judged, c);
        json_decref(placed);
}

/* slipway's reader refuses manifests that helm may accept (a duplicate key, an object without a
 * name): then the plan cannot show what changes. */
static bool read_manifest(struct comparing *c, const char *text, json_t **out)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (documents_read(text, out, &err) == 0)
                return true;
        *out = NULL;
        if (!c->service->note)
                c->service->note = arena_printf(
                        c->op.site->arena, "its objects cannot be compared: %s", err.message);
        return false;
}

static void on_manifest(const struct helm_result *r, void *arg)
{
        struct comparing *c = arg;
        if (r->status == 0 && !read_manifest(c, r->out, &c->before))
                compare_crds(c);
        else
                /* without a current manifest everything is new */
                compare_judge(c);
}

static void ask_manifest(struct comparing *c)
{
        const struct service *s = c->service;
        if (!s->revision || c->op.site->found.services->blind) {
                compare_judge(c);
                return;
        }
        helm_run(c->op.site, c->op.step,
                &(struct helm_call){ .args = { "get", "manifest", s->name, "--namespace", s->ns },
                        .api = true,
                        .seconds = RENDER_SECONDS,
                        .fn = on_manifest,
                        .arg = c });
}

static void chart_render(struct comparing *c);

/* The chart's crds/ define the kinds of some objects, and are not installed yet. */
static bool lacks_kinds(const char *trouble)
{
        return strstr(trouble, "resource mapping not found") ||
               strstr(trouble, "no matches for kind");
}

static void on_rendered(const struct helm_result *r, void *arg)
{
        struct comparing *c = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (r->status && !c->lenient && lacks_kinds(r->trouble)) {
                c->lenient = true;
                chart_render(c);
        } else if (r->status) {
                error_set(&err, EINVAL, EXIT_PREFLIGHT, "chart %s cannot be rendered: %s",
                        c->service->name, r->trouble);
                error_hint(&err, "%s",
                        r->hint ? r->hint : "nothing was changed; fix the chart or its values");
                comparing_end(c, &err);
        } else if (!read_manifest(c, r->out, &c->after)) {
                compare_crds(c);
        } else {
                ask_manifest(c);
        }
}

static void chart_render(struct comparing *c)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct service *s = c->service;
        bool api = !c->op.site->found.services->blind;
        struct helm_call call = { .args = { "template", s->name, s->package, "--namespace", s->ns,
                                          "--no-hooks", "--kube-version",
                                          c->op.site->cluster->kubernetes.text },
                .api = api,
                .seconds = RENDER_SECONDS,
                .fn = on_rendered,
                .arg = c };
        size_t n = 8;
        if (s->revision)
                call.args[n++] = "--is-upgrade";
        if (api)
                call.args[n++] = "--dry-run=server"; /* templates may use lookup */
        /* the API checks schemas: services_judge */
        if (api && !c->lenient) {
                call.args[n++] = "--validate";
                call.args[n++] = "--disable-openapi-validation";
        }
        if (chart_values(c->op.site, s, call.args, &n, &err) < 0)
                comparing_end(c, &err);
        else
                helm_run(c->op.site, c->op.step, &call);
}

void charts_compare(struct site *s, struct step *step, struct service *service,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct comparing *c = arena_new(s->arena, struct comparing);
        *c = (struct comparing){ .service = service, .fn = fn, .arg = arg };
        c->op.release = comparing_release;
        op_begin(&c->op, s, step);
        helm_of(s, step);
        chart_render(c);
}
