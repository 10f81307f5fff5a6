/* For comparison: the number of objects of each kind in the live cluster. That cluster has changed
 * since the snapshot, or may be lost, so neither a difference nor a missing answer is a failure. */
#include "cluster/etcd/drill/drill.h"

#define ANSWER_MS 15000

static void drill_live_over(struct drill *d)
{
        if (--d->open)
                return;
        struct step *s = d->step;
        d->step = NULL;
        int64_t sum = 0;
        for (size_t i = 0; i < d->kind_count; i++) {
                /* not all kinds could be counted: show no sum */
                if (d->kinds[i].live < 0) {
                        step_doing(s, -1, "the live cluster does not list its %s",
                                d->kinds[i].resource);
                        step_unchanged(s);
                        return;
                }
                sum += d->kinds[i].live;
        }
        d->live = sum;
        step_changed(s, "%zu objects in the snapshot, %" PRId64 " in the live cluster now",
                d->objects, sum);
        step_done(s, NULL);
}

/* Counts page by page, because remainingItemCount is only an estimate. */
static void on_drill_live_page(const struct kube_reply *reply, void *arg)
{
        struct drill_kind *k = arg;
        struct drill *d = k->drill;
        const char *next = json_string_value(
                json_object_get(json_object_get(reply->body, "metadata"), "continue"));
        /* only the drill serves this API: it is disabled in the live cluster */
        if (reply->status == 404 && k->live < 0)
                k->live = 0;
        if (reply->status != 200) {
                if (reply->status != 404)
                        k->live = -1;
                drill_live_over(d);
                return;
        }
        k->live = (k->live < 0 ? 0 : k->live) +
                  (int64_t)json_array_size(json_object_get(reply->body, "items"));
        if (!next || !*next) {
                drill_live_over(d);
                return;
        }
        char *query CLEANUP(free_p) = xasprintf("limit=500&continue=%s", next);
        kube_request(d->site->kube, "GET", drill_kind_path(k, query), NULL, NULL, ANSWER_MS,
                on_drill_live_page, k);
}

static void on_drill_live_ready(const struct kube_reply *reply, void *arg)
{
        struct drill *d = arg;
        if (reply->status != 200) {
                struct step *s = TAKE(d->step);
                step_doing(s, -1, "the live cluster does not answer");
                step_unchanged(s);
                return;
        }
        d->open = d->kind_count + 1;
        for (size_t i = 0; i < d->kind_count; i++)
                kube_request(d->site->kube, "GET", drill_kind_path(&d->kinds[i], "limit=500"), NULL,
                        NULL, ANSWER_MS, on_drill_live_page, &d->kinds[i]);
        drill_live_over(d);
}

void step_drill_live(struct step *s)
{
        struct drill *d = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        d->step = s;
        if (site_kube(d->site, &err) < 0)
                on_drill_live_ready(&(struct kube_reply){ 0 }, d);
        else
                kube_request(d->site->kube, "GET", "/readyz", NULL, NULL, ANSWER_MS,
                        on_drill_live_ready, d);
}

json_t *drill_json(const struct drill *d)
{
        json_t *kinds = json_array(), *o = json_object();
        for (size_t i = 0; i < d->kind_count; i++) {
                const struct drill_kind *k = &d->kinds[i];
                if (!k->keys && !k->objects)
                        continue;
                json_t *row = json_pack("{s:s, s:s, s:I, s:I}", "group", k->group, "resource",
                        k->resource, "keys", (json_int_t)k->keys, "objects",
                        (json_int_t)k->objects);
                json_object_set_new(row, "live", k->live < 0 ? json_null() : json_integer(k->live));
                json_array_append_new(kinds, row);
        }
        json_object_set_new(o, "snapshot", json_string(d->snapshot->path));
        json_object_set_new(o, "revision", json_integer(d->revision));
        json_object_set_new(o, "keys", json_integer((json_int_t)d->key_count));
        json_object_set_new(o, "objects", json_integer((json_int_t)d->objects));
        json_object_set_new(o, "own", json_integer((json_int_t)d->own));
        json_object_set_new(o, "live", d->live < 0 ? json_null() : json_integer(d->live));
        json_object_set_new(o, "kinds", kinds);
        return o;
}
