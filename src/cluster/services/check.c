/* The API checks objects before anything is changed: the plan refuses what the API would refuse. */
#include "cluster/services/services.h"

struct judging {
        const char *what;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void on_judged(const char *error, void *arg)
{
        struct judging *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (error) {
                error_set(&err, EINVAL, EXIT_PREFLIGHT, "%s: the API would refuse it: %s", j->what,
                        error);
                error_hint(&err, "nothing was changed; fix the chart, its values or the manifest");
        }
        j->fn(error ? &err : NULL, j->arg);
}

/* helm creates hooks again each time, and deletes the previous ones first. */
static bool is_hook(const json_t *object)
{
        return json_object_get(json_object_get(json_object_get(object, "metadata"), "annotations"),
                "helm.sh/hook");
}

static void add_documents(const json_t *objects, struct str *text)
{
        size_t i;
        json_t *o;
        json_array_foreach(objects, i, o)
        {
                if (is_hook(o))
                        continue;
                char *one = json_dumps(o, JSON_COMPACT);
                str_addf(text, "---\n%s\n", one ? one : "{}");
                free_p(&one);
        }
}

void services_judge(struct site *s, const char *what, json_t *objects,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        struct judging *j = arena_new(s->arena, struct judging);
        add_documents(objects, &text);
        *j = (struct judging){ .what = arena_strdup(s->arena, what), .fn = fn, .arg = arg };
        kube_objects(s->kube, KUBE_CHECK, str_text(&text), on_judged, j);
}

/* ---- objects as they are, and as they would be ---- */

struct comparison {
        struct op op;
        struct service *service;
        objects_refuse_fn refuse;
        struct str documents;
        json_t *wanted, *is; /* the same objects, in the same order */
        struct judging judging;
};

static void comparison_release(struct op *o)
{
        struct comparison *c = (struct comparison *)o;
        str_wipe_release(&c->documents);
        json_decref(TAKE(c->wanted));
        json_decref(TAKE(c->is));
}

static void on_would_be(json_t *objects, const char *error, void *arg)
{
        struct comparison *c = arg;
        if (!error && c->is && c->service->changes)
                service_diff_live(c->wanted, c->is, objects, c->service->changes);
        comparison_release(&c->op);
        op_drop(&c->op);
        on_judged(error, &c->judging);
}

/* Whether what is there can be read or not, the API judges what is wanted. */
static void on_is(json_t *objects, const char *error, void *arg)
{
        struct comparison *c = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (c->refuse && c->refuse(c->service, objects, &err) < 0) {
                comparison_release(&c->op);
                op_drop(&c->op);
                c->judging.fn(&err, c->judging.arg);
                return;
        }
        c->is = json_incref(objects);
        kube_answers(c->op.site->kube, KUBE_CHECK, str_text(&c->documents), on_would_be, c);
}

void objects_compare(struct site *s, struct step *step, struct service *service, json_t *objects,
        objects_refuse_fn refuse, void (*fn)(struct error *err, void *arg), void *arg)
{
        struct comparison *c = arena_new(s->arena, struct comparison);
        const char *what = service->kind == SERVICE_CHART
                                   ? arena_printf(s->arena, "chart %s", service->name)
                                   : service->name;
        size_t i;
        json_t *o;
        *c = (struct comparison){ .service = service,
                .refuse = refuse,
                .wanted = json_array(),
                .judging = { .what = what, .fn = fn, .arg = arg } };
        c->op.release = comparison_release;
        op_begin(&c->op, s, step);
        json_array_foreach(objects, i, o) if (!is_hook(o)) json_array_append(c->wanted, o);
        add_documents(c->wanted, &c->documents);
        kube_answers(s->kube, KUBE_GET, str_text(&c->documents), on_is, c);
}
