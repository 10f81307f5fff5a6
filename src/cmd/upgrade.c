/* upgrade: edits the version in the file, then does what `up` does. */
#include "cluster/upgrade/version.h"
#include "cmd/operate.h"

int cmd_upgrade(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct edit e;
        struct cluster *c;
        struct version to;
        int r = upgrade_parse(o->args.v[0], &a, &to, err);
        if (r == 0)
                r = cmd_edit(o, &a, &e, &c, err);
        if (r == 0)
                r = upgrade_edit(&e, &to, false, &c, err);
        struct up_call call = {
                .verb = "upgrade", .edit = &e, .force = o->force, .only_stage = o->stage
        };
        return r < 0 ? r : cmd_up_cluster(o, &call, &a, c, err);
}
