/* logs: the log of a component on a node (cluster/status/logs.h), or a machine's console. */
#include "cluster/status/logs.h"
#include "cmd/reach.h"

/* The console of a machine that a cloud has made: there before anything can be logged in to. */
static int logs_console(struct member *m, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        const struct provider_ops *ops = m->site->ops;
        if (!ops->console) {
                error_set(err, ENOTSUP, EXIT_USAGE, "provider %s has no consoles", ops->name);
                return error_hint(err, "slipway logs %s lists what it runs", m->node->name);
        }
        int r = ops->console(&m->site->provider, m->machine, &text, err);
        if (r == 0)
                print_text(stdout, str_text(&text));
        return r;
}

int cmd_logs(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        const char *lines = o->lines ? o->lines : "100";
        if (!*lines || strspn(lines, "0123456789") != strlen(lines) || strlen(lines) > 9)
                return error_set(
                        err, EINVAL, EXIT_USAGE, "--lines: '%s' is not a number of lines", lines);
        bool console = o->args.n > 1 && streq(o->args.v[1], "console");
        int e = reach_open(&r, o, err);
        struct member *m =
                e < 0 ? NULL : (console ? reach_machine : reach_member)(&r, o->args.v[0], err);
        if (!m)
                return e < 0 ? e : -err->code;
        if (console)
                return logs_console(m, err);
        if (o->args.n < 2) {
                struct str all CLEANUP(str_release) = { 0 };
                logs_list(m, &all, "\n");
                print_text(stdout, str_text(&all));
                print("\n");
                return EXIT_OK;
        }
        const struct log_component *row = logs_find(m, o->args.v[1], err);
        if (!row || reach_way(m, err) < 0)
                return -err->code;
        const struct link_target *t = &m->machine->target;
        if (t->sudo && t->sudo_password && (e = reach_input(t->sudo_password, err)) < 0)
                return e;
        return reach_show(logs_command(m, row, lines, o->follow, &r.arena), err);
}
