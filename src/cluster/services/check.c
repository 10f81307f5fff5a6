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

void services_judge(struct site *s, const char *what, json_t *objects,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        struct judging *j = arena_new(s->arena, struct judging);
        size_t i;
        json_t *o;
        json_array_foreach(objects, i, o)
        {
                if (is_hook(o))
                        continue;
                char *one = json_dumps(o, JSON_COMPACT);
                str_addf(&text, "---\n%s\n", one ? one : "{}");
                free_p(&one);
        }
        *j = (struct judging){ .what = arena_strdup(s->arena, what), .fn = fn, .arg = arg };
        kube_objects(s->kube, KUBE_CHECK, str_text(&text), on_judged, j);
}
