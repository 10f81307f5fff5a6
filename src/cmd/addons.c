/* addons: what services.addons can install, and what of it the file has. Asks no cluster. */
#include <jansson.h>

#include "addon/addon.h"
#include "base/print.h"
#include "cmd/cmd.h"
#include "config/addon.h"

static const char *addon_kind(enum addon_id id)
{
        return addon_built_in(id) ? "built-in" : "chart";
}

/* Also from a directory without a file: then nothing is said about one. */
static int addons_load(
        const struct options *o, struct arena *a, struct cluster **out, struct error *err)
{
        if (!o->files.n && access("cluster.yaml", F_OK) < 0)
                return 0;
        return cmd_load(o, a, out, err);
}

/* What a built-in one takes: {"addresses": {"what", "default" (null: it must be given),
 * "example"}}.
 */
static json_t *addon_options_json(enum addon_id id)
{
        json_t *all = json_object();
        for (const struct addon_option *o = addon_options(); o->name; o++)
                if (o->addon == id)
                        json_object_set_new(all, o->name,
                                json_pack("{s:s, s:s?, s:s}", "what", o->what, "default",
                                        o->fallback, "example", o->example));
        return all;
}

static json_t *addon_json(enum addon_id id, const struct cluster *c)
{
        const struct addon_row *row = addon_row(id);
        json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:s}", "name", addon_names[id],
                "version", row->version, "kind", addon_kind(id), "namespace", row->space, "what",
                row->what, "needs", row->needs, "home", row->home);
        if (row->chart)
                json_object_set_new(o, "chart",
                        json_pack("{s:s, s:s, s:s}", "repository", row->repository, "url", row->url,
                                "name", row->chart));
        json_t *values = addon_options_json(id);
        if (json_object_size(values))
                json_object_set(o, "values", values);
        json_decref(values);
        if (c)
                json_object_set_new(o, "enabled", json_boolean(cluster_addon(c, id)));
        return o;
}

static void addons_text(const struct cluster *c)
{
        print("%-28s%-10s%-10s%-24s%s%s\n", "NAME", "VERSION", "KIND", "NAMESPACE",
                c ? "ENABLED  " : "", "WHAT");
        for (enum addon_id id = 0; id < ADDON_COUNT; id++) {
                const struct addon_row *row = addon_row(id);
                print("%-28s%-10s%-10s%-24s%s%s\n", addon_names[id], row->version, addon_kind(id),
                        row->space,
                        !c                     ? ""
                        : cluster_addon(c, id) ? "yes      "
                                               : "no       ",
                        row->what);
                if (row->needs)
                        print("  needs %s\n", row->needs);
                for (const struct addon_option *o = addon_options(); o->name; o++)
                        if (o->addon == id)
                                print("  values.%s: %s%s%s%s\n", o->name, o->what,
                                        o->fallback && *o->fallback ? " (default " : "",
                                        o->fallback && *o->fallback ? o->fallback : "",
                                        o->fallback && *o->fallback ? ")" : "");
        }
}

/* The objects of one that is built in, with the values of the file. */
static int addon_print(const char *name, const struct cluster *c, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        enum addon_id id = addon_named(name);
        if (id == ADDON_COUNT) {
                error_set(err, ENOENT, EXIT_USAGE, "there is no addon '%s'", name);
                return error_hint(err, "'slipway addons' lists them");
        }
        const char *asked = addon_row(id)->asked;
        if (!addon_built_in(id) || !c || !cluster_addon(c, id)) {
                error_set(err, EINVAL, EXIT_USAGE, "%s %s", name,
                        asked                ? "is not enabled in the file"
                        : addon_built_in(id) ? "is not listed under services.addons in the file"
                                             : "is a chart: helm creates its objects");
                return asked ? error_hint(err, "set %s: true first", asked)
                             : error_hint(err, addon_built_in(id)
                                                       ? "add it to services.addons first"
                                                       : "'slipway plan' shows them");
        }
        addon_objects(c, id, &text);
        print_bytes(stdout, str_text(&text), text.len);
        return EXIT_OK;
}

int cmd_addons(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c = NULL;
        int r = addons_load(o, &a, &c, err);
        if (r < 0)
                return r;
        if (o->args.n)
                return addon_print(o->args.v[0], c, err);
        if (!cmd_json(o)) {
                addons_text(c);
                return EXIT_OK;
        }
        json_t *list = json_array();
        for (enum addon_id id = 0; id < ADDON_COUNT; id++)
                json_array_append_new(list, addon_json(id, c));
        print_json(list, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        json_decref(list);
        return EXIT_OK;
}
