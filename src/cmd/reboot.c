/* reboot: nodes one after another, as `up` changes them. */
#include "cluster/plan/reboot.h"
#include "cmd/operate.h"

int cmd_reboot(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c;
        struct reboot_request request = { .names = &o->args, .all = o->all };
        int r = cmd_load(o, &a, &c, err);
        if (r == 0 && o->all && o->args.n)
                r = error_set(err, EINVAL, EXIT_USAGE, "--all means every node: name none");
        struct up_call call = { .verb = "reboot", .reboot = &request };
        return r < 0 ? r : cmd_up_cluster(o, &call, &a, c, err);
}
