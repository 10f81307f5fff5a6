/* What is deleted before the machines go, for people, for programs and for the API. */
#include "addon/outside.h"
#include "base/print.h"

#define SHOWN 8

bool outside_any(const struct outside *o)
{
        return o && (o->release_count || o->balancers.n || o->claims.n);
}

static void outside_add_name(struct str *s, size_t i, const char *ns, const char *name)
{
        if (i < SHOWN)
                str_addf(s, "%s%s%s%s", i ? ", " : "", ns, *ns ? "/" : "", name);
}

static void add_rest(struct str *s, size_t n)
{
        if (n > SHOWN)
                str_addf(s, " and %zu more", n - SHOWN);
}

char *outside_names(const struct outside_objects *v, bool why)
{
        struct str s = { 0 };
        for (size_t i = 0; i < v->n && i < SHOWN; i++) {
                const struct outside_object *o = &v->v[i];
                str_addf(&s, "%s%s %s%s%s", i ? ", " : "", o->kind, o->ns, *o->ns ? "/" : "",
                        o->name);
                if (why && *o->waits)
                        str_addf(&s, " (%s)", o->waits);
        }
        add_rest(&s, v->n);
        return str_take(&s);
}

static void show_releases(const struct outside *o, struct str *out)
{
        struct str names CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < o->release_count; i++)
                outside_add_name(&names, i, o->releases[i].ns, o->releases[i].name);
        add_rest(&names, o->release_count);
        if (o->release_count)
                text_addf(out, "  %zu release%s: %s\n", o->release_count,
                        o->release_count == 1 ? "" : "s", str_text(&names));
}

static void outside_show_objects(const struct outside_objects *v, const char *one, const char *many,
        const char *more, struct str *out)
{
        struct str names CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < v->n; i++)
                outside_add_name(&names, i, v->v[i].ns, v->v[i].name);
        add_rest(&names, v->n);
        if (v->n)
                text_addf(out, "  %zu %s: %s%s\n", v->n, v->n == 1 ? one : many, str_text(&names),
                        more);
}

void outside_text(const struct outside *o, struct str *out)
{
        if (o && o->blind)
                text_addf(out,
                        "The API does not answer (%s): load balancers and volumes that the cluster has outside itself are not deleted, and may remain.\n",
                        o->blind);
        if (!o || o->blind)
                return;
        if (outside_any(o))
                text_addf(out, "Before the nodes are removed, this is deleted in the cluster:\n");
        show_releases(o, out);
        outside_show_objects(&o->balancers, "Service of type LoadBalancer",
                "Services of type LoadBalancer", "", out);
        outside_show_objects(&o->claims, "PersistentVolumeClaim with its volume",
                "PersistentVolumeClaims with their volumes",
                o->holders.n ? ", and the pods that use them" : "", out);
        if (o->kept.n)
                text_addf(out, "This is not deleted, because its reclaim policy is Retain:\n");
        outside_show_objects(&o->kept, "PersistentVolume", "PersistentVolumes", "", out);
}

/* ---- JSON ---- */

static json_t *objects_json(const struct outside_objects *v)
{
        json_t *all = json_array();
        for (size_t i = 0; i < v->n; i++) {
                const struct outside_object *o = &v->v[i];
                json_t *one = json_pack(
                        "{s:s, s:s, s:s}", "kind", o->kind, "namespace", o->ns, "name", o->name);
                if (o->volume)
                        json_object_set_new(one, "volume", json_string(o->volume));
                json_array_append_new(all, one);
        }
        return all;
}

json_t *outside_json(const struct outside *o)
{
        json_t *releases = json_array();
        for (size_t i = 0; i < o->release_count; i++)
                json_array_append_new(
                        releases, json_pack("{s:s, s:s}", "namespace", o->releases[i].ns, "name",
                                          o->releases[i].name));
        return json_pack("{s:s, s:s?, s:o, s:o, s:o, s:o, s:o}", "event", "cleanup", "unreachable",
                o->blind, "releases", releases, "loadBalancers", objects_json(&o->balancers),
                "claims", objects_json(&o->claims), "holders", objects_json(&o->holders), "kept",
                objects_json(&o->kept));
}

/* ---- documents ---- */

void outside_documents(const struct outside_objects *v, bool all, struct str *out)
{
        for (size_t i = 0; i < v->n; i++) {
                const struct outside_object *o = &v->v[i];
                if (o->going && !all)
                        continue;
                json_t *one = json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", o->api_version,
                        "kind", o->kind, "metadata", "name", o->name, "namespace", o->ns);
                char *text CLEANUP(free_p) = json_dumps(one, JSON_COMPACT);
                str_addf(out, "---\n%s\n", text);
                json_decref(one);
        }
}
