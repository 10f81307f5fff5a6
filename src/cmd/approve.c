/* certs approve (cluster/certs/approve.h). */
#include "cluster/certs/approve.h"
#include "cmd/reach.h"

static void approve_print(const struct options *o, const json_t *list)
{
        const json_t *one;
        size_t i;
        if (cmd_json(o)) {
                print_json(list, JSON_INDENT(2));
                return;
        }
        json_array_foreach(list, i, one)
        {
                const char *node = json_string_value(json_object_get(one, "node")),
                           *names = json_string_value(json_object_get(one, "names"));
                const char *trouble = json_string_value(json_object_get(one, "trouble"));
                if (json_is_true(json_object_get(one, "approved")))
                        print("%s: its kubelet's serving certificate is approved, for %s; 'slipway up' approves renewals for the same names and addresses\n",
                                node, names);
                else
                        print("%s: asks for %s; %s%s\n", node,
                                *names ? names : "nothing that can be read",
                                trouble ? "it is not approved: " : "slipway certs approve ",
                                trouble ? trouble : node);
        }
        if (!i)
                print("no kubelet waits for a serving certificate.\n");
}

int certs_approve(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        json_t *list = json_array();
        int e = reach_api(&r, o, err);
        if (e == 0)
                e = approve_serving(
                        &r.site, (const char *const *)o->args.v + 1, o->args.n - 1, list, err);
        if (e == 0 || json_array_size(list))
                approve_print(o, list);
        json_decref(list);
        return e;
}
