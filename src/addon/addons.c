/* The objects of built-in addons. */
#include "addon/addon.h"
#include "node/template.h"

void addon_objects(const struct cluster *c, enum addon_id id, struct str *out)
{
        static const enum image_id images[ADDON_COUNT] = {
                [ADDON_METRICS_SERVER] = IMG_METRICS_SERVER,
                [ADDON_LOCAL_PATH] = IMG_LOCAL_PATH,
                [ADDON_KUBE_STATE_METRICS] = IMG_KUBE_STATE_METRICS,
        };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        if (!catalogue_for(&a, &c->kubernetes, &catalogue))
                return;
        json_t *v = json_pack("{s:s, s:s}", "image", catalogue.images[images[id]].name, "helper",
                catalogue.images[IMG_PROBE].name);
        template_render(addon_row(id)->template, v, out);
        json_decref(v);
}
