/* scale and remove-node: edit the file, then do what `up` does. */
#include "cmd/operate.h"
#include "cluster/plan/scale.h"

int cmd_scale(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct edit e;
        struct cluster *c;
        struct scale_count *counts = arena_array(&a, struct scale_count, o->args.n);
        int r = 0;
        for (size_t i = 0; r == 0 && i < o->args.n; i++)
                r = scale_parse(&a, o->args.v[i], &counts[i], err);
        if (r == 0)
                r = cmd_edit(o, &a, &e, &c, err);
        if (r == 0)
                r = scale_pools(&e, counts, o->args.n, &c, err);
        struct up_call call = { .verb = "scale", .edit = &e };
        return r < 0 ? r : cmd_up_cluster(o, &call, &a, c, err);
}

int cmd_remove_node(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct edit e;
        struct cluster *c;
        int r = cmd_edit(o, &a, &e, &c, err);
        if (r == 0)
                r = scale_remove(&e, &o->args, &c, err);
        struct up_call call = { .verb = "remove-node", .edit = &e };
        return r < 0 ? r : cmd_up_cluster(o, &call, &a, c, err);
}
