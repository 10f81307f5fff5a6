/* The objects of built-in addons. */
#include "addon/addon.h"
#include "addon/impl.h"
#include "node/template.h"

/* "10.0.0.200-10.0.0.220,10.0.1.0-10.0.1.7": what kube-vip-cloud-provider reads. */
static char *ranges_ends(const char *ranges)
{
        char *text CLEANUP(free_p) = xstrdup(ranges), *rest = text;
        struct str out = { 0 };
        for (char *one; (one = strsep(&rest, ","));) {
                struct ip first, last;
                char from[IP_TEXT], to[IP_TEXT];
                if (option_range(one, &first, &last))
                        str_addf(&out, "%s%s-%s", out.len ? "," : "", ip_format(&first, from),
                                ip_format(&last, to));
        }
        return str_take(&out);
}

/* A value is a text in templates, whatever it is in the file. */
static void values_of_file(const struct cluster *c, enum addon_id id, json_t *v)
{
        for (const struct addon_option *o = addon_options(); o->name; o++) {
                if (o->addon != id)
                        continue;
                const char *text = addon_value(c, id, o->name);
                char *made CLEANUP(free_p) = o->kind == OPTION_RANGES ? ranges_ends(text)
                                             : o->kind == OPTION_SIZE
                                                     ? xstrndup(text, strcspn(text, "B"))
                                                     : NULL; /* the API says 10Gi for 10GiB */
                json_object_set_new(v, o->name, json_string(made ? made : text));
        }
}

static void values_of_dns(const struct cluster *c, json_t *v)
{
        struct ip dns[2];
        char text[IP_TEXT];
        struct str all CLEANUP(str_release) = { 0 };
        size_t n = cluster_dns(c, dns);
        for (size_t i = 0; i < n; i++)
                str_addf(&all, "%s%s", i ? " " : "", ip_format(&dns[i], text));
        json_object_set_new(v, "dns", json_string(str_text(&all)));
}

void addon_objects(const struct cluster *c, enum addon_id id, struct str *out)
{
        static const enum image_id images[ADDON_COUNT] = {
                [ADDON_METRICS_SERVER] = IMG_METRICS_SERVER,
                [ADDON_LOCAL_PATH] = IMG_LOCAL_PATH,
                [ADDON_KUBE_STATE_METRICS] = IMG_KUBE_STATE_METRICS,
                [ADDON_NODELOCALDNS] = IMG_COREDNS,
                [ADDON_REGISTRY] = IMG_REGISTRY,
                [ADDON_NODE_PROBLEM_DETECTOR] = IMG_NODE_PROBLEM_DETECTOR,
                [ADDON_KUBE_VIP] = IMG_KUBE_VIP,
                [ADDON_OPENSTACK_CLOUD] = IMG_OPENSTACK_CLOUD,
                [ADDON_CINDER_CSI] = IMG_CINDER_CSI,
                [ADDON_AWS_CLOUD] = IMG_AWS_CLOUD,
                [ADDON_EBS_CSI] = IMG_EBS_CSI,
                [ADDON_INGRESS] = IMG_TRAEFIK,
                [ADDON_PROMETHEUS] = IMG_PROMETHEUS,
        };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct catalogue catalogue;
        if (!catalogue_for(&a, &c->kubernetes, &catalogue))
                return;
        json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:o}", "image",
                catalogue.images[images[id]].name, "helper", catalogue.images[IMG_PROBE].name,
                "cloud", catalogue.images[IMG_KUBE_VIP_CLOUD].name, "exporter",
                catalogue.images[IMG_NODE_EXPORTER].name, "target",
                json_sprintf("%s.%s.svc.%s", "registry", addon_row(ADDON_REGISTRY)->space,
                        c->network.domain));
        values_of_file(c, id, v);
        values_of_dns(c, v);
        if (addon_row(id)->asked)
                addon_cloud_values(c, id, &catalogue, v);
        template_render(addon_row(id)->template, v, out);
        json_decref(v);
}
