/* Approval is a value that is passed in: no code here asks the user. */
#ifndef SLIPWAY_CLUSTER_APPROVAL_H
#define SLIPWAY_CLUSTER_APPROVAL_H

#include "cluster/plan/plan.h"

enum approval {
        APPROVAL_NOBODY, /* nobody can be asked: refuse to remove a node or lose data */
        APPROVAL_ASK,    /* the caller can ask the user */
        APPROVAL_YES,    /* approved */
};

/* Results of functions that check an approval, other than an error: continue, or ask the user and
 * continue if the answer is yes. */
enum { APPROVED = 0, APPROVAL_WANTED = 1 };

/* For a plan of `up`. `saved`: a plan that was approved earlier, as JSON, which must be
 * equal; or NULL. */
int plan_approved(
        const struct site *s, enum approval given, const json_t *saved, struct error *err);

#endif
