/* Services in a plan, for people and for programs. */
#include "addon/service.h"
#include "base/print.h"

#define SHOWN 8 /* objects of one service, where not all are wanted */

const char *service_kind_name(enum service_kind k)
{
        static const char *const names[] = { "namespace", "addon", "manifest", "service", "chart" };
        return names[k];
}

const char *service_section(enum service_kind k)
{
        static const char *const names[] = { [SERVICE_ADDON] = "addons",
                [SERVICE_MANIFEST] = "manifests",
                [SERVICE_BUILTIN] = "builtin",
                [SERVICE_CHART] = NULL };
        return names[k];
}

const char *service_action_name(enum service_action a)
{
        static const char *const names[] = { "unchanged", "install", "change", "adopt", "recover",
                "remove", "stays" };
        return names[a];
}

bool services_any(const struct services_found *f)
{
        for (size_t i = 0; f && i < f->n; i++)
                if (f->v[i].action != SERVICE_KEEP && f->v[i].action != SERVICE_STAYS)
                        return true;
        return false;
}

static void show_changes(const json_t *changes, bool all, struct str *out)
{
        size_t i, k, n = json_array_size(changes);
        json_t *c, *field;
        json_array_foreach(changes, i, c)
        {
                if (!all && i == SHOWN) {
                        text_addf(out, "      and %zu more (slipway plan shows all)\n", n - SHOWN);
                        return;
                }
                text_addf(out, "      %-8s %s\n", json_string_value(json_object_get(c, "action")),
                        json_string_value(json_object_get(c, "object")));
                json_array_foreach(json_object_get(c, "fields"), k, field)
                        text_addf(out, "               %s\n", json_string_value(field));
        }
}

static void show_service(const struct service *s, bool all, struct str *out)
{
        text_addf(out, "  %s %s%s%s  %s%s%s%s%s\n", service_kind_name(s->kind), s->ns,
                *s->ns ? "/" : "", s->name, service_action_name(s->action), s->version ? " " : "",
                s->version ? s->version : "", s->note ? ": " : "", s->note ? s->note : "");
        show_changes(s->changes, all, out);
}

void services_text(const struct services_found *f, bool all, struct str *out)
{
        for (size_t i = 0; f && i < f->n; i++)
                if (f->v[i].action != SERVICE_KEEP)
                        show_service(&f->v[i], all, out);
}

json_t *services_json(const struct services_found *f)
{
        json_t *list = json_array();
        for (size_t i = 0; f && i < f->n; i++) {
                const struct service *s = &f->v[i];
                json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "kind", service_kind_name(s->kind),
                        "name", s->name, "namespace", s->ns, "action",
                        service_action_name(s->action));
                if (s->version)
                        json_object_set_new(o, "version", json_string(s->version));
                if (s->note)
                        json_object_set_new(o, "note", json_string(s->note));
                if (s->kind == SERVICE_CHART)
                        json_object_set_new(o, "inputs", json_string(s->inputs));
                if (s->changes)
                        json_object_set(o, "changes", s->changes);
                json_array_append_new(list, o);
        }
        return list;
}
