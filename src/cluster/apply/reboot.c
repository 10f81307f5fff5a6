/* The step "reboot". Whether the machine was booted again is decided by what its agent reports
 * afterwards, not by the answer to the command, which may be lost when the machine goes down. */
#include "cluster/apply/roll.h"
#include "cluster/plan/reboot.h"
#include "cluster/site/op.h"

#define OUTPUT_MAX   (1 << 12)
#define BOOT_SECONDS 1800 /* servers with many disks take long */
#define DOWN_MS      2000 /* until the first try to connect again */

struct rebooting {
        struct op op;
        struct member *member;
};

static void reboot_reconnect(struct op *o)
{
        struct rebooting *r = (struct rebooting *)o;
        struct member *m = r->member;
        const char *before = arena_strdup(o->site->arena, member_boot(m));
        op_drop(o);
        member_hang_up(m);
        m->run.made = true; /* it is booting, and its health is looked at afterwards */
        step_doing(o->step, -1, "waiting until it answers again");
        member_connect_again(m, o->step, before);
}

static void on_reboot_ordered(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct rebooting *r = arg;
        char *line CLEANUP(free_p) = str_last_line_of(errors ? errors : "");
        if (op_over(&r->op))
                return;
        if (status > 0)
                op_fail(&r->op, EIO, EXIT_STEP,
                        "the node is cordoned: repair it, then run 'slipway up', which uncordons it",
                        "systemctl reboot failed: %.400s", *line ? line : "it says nothing");
        else
                op_later(&r->op, DOWN_MS, reboot_reconnect);
}

void step_reboot(struct step *s)
{
        static const char *const argv[] = { "systemctl", "reboot", "--no-block", NULL };
        struct member *m = s->arg;
        if (member_cut(m, s))
                return;
        if (!member_boot(m)) {
                step_fail(s, ENOTSUP, EXIT_STEP, NULL,
                        "its agent does not report when the machine was booted");
                return;
        }
        struct rebooting *r = arena_new(m->site->arena, struct rebooting);
        *r = (struct rebooting){ .member = m };
        op_begin(&r->op, m->site, s);
        step_deadline(
                s, BOOT_SECONDS, "look at its console; when it is back, 'slipway up' uncordons it");
        step_doing(s, -1, "rebooting");
        member_run(m, argv, NULL, OUTPUT_MAX, on_reboot_ordered, r);
}
