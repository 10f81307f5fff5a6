/* ssh: runs the user's ssh with the node's address and options. */
#include "cmd/reach.h"

int cmd_ssh(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        int e = reach_open(&r, o, err);
        struct member *m = e < 0 ? NULL : reach_member(&r, o->args.v[0], err);
        if (!m || reach_way(m, err) < 0)
                return e < 0 ? e : -err->code;
        const char **remote = arena_array(&r.arena, const char *, o->args.n);
        for (size_t i = 1; i < o->args.n; i++)
                remote[i - 1] = o->args.v[i];
        return reach_exec(link_argv(&m->machine->target, remote, &r.arena), err);
}
