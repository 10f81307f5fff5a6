/* inventory: the nodes for other programs that log in to them (cluster/site/inventory.h). */
#include "cluster/site/inventory.h"
#include "cmd/reach.h"

static int inventory_which(const struct options *o, struct error *err)
{
        if (o->ssh_config == o->ansible) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "inventory needs either --ssh-config or --ansible");
                return error_hint(
                        err, "slipway inventory --ssh-config > ssh.conf; ssh -F ssh.conf NODE");
        }
        if (o->ssh_config && cmd_json(o)) {
                error_set(err, EINVAL, EXIT_USAGE, "an OpenSSH configuration has no JSON form");
                return error_hint(
                        err, "slipway inventory --ansible -o json prints the nodes as JSON");
        }
        return 0;
}

int cmd_inventory(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        int e = inventory_which(o, err);
        if (e == 0)
                e = reach_open(&r, o, err);
        if (e < 0)
                return e;
        if (o->ssh_config) {
                site_inventory_ssh(&r.site, &text);
        } else {
                json_t *inventory = site_inventory(&r.site);
                if (cmd_json(o))
                        print_json(inventory, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
                else
                        site_inventory_yaml(&r.site, inventory, &text);
                json_decref(inventory);
        }
        print_text(stdout, str_text(&text));
        return EXIT_OK;
}
