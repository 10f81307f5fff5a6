#include "cluster/plan/approval.h"

/* Without a terminal a run continues, but removes no node without --yes: a mistake in the file must
 * not do that. */
int plan_approved(const struct site *s, enum approval given, const json_t *saved, struct error *err)
{
        if (saved)
                return plan_compare(s, saved, err);
        if (plan_empty(s) || given == APPROVAL_YES)
                return APPROVED;
        if (given == APPROVAL_ASK)
                return APPROVAL_WANTED;
        if (!s->found.removed_count)
                return APPROVED;
        error_set(err, EPERM, EXIT_USAGE,
                "the plan removes %zu node%s, and there is no terminal to ask on",
                s->found.removed_count, s->found.removed_count == 1 ? "" : "s");
        return error_hint(err, "confirm with --yes; nothing was changed");
}
