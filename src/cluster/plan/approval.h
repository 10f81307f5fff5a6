/* Approval is a value that is handed in: nothing here asks anybody. */
#ifndef SLIPWAY_CLUSTER_APPROVAL_H
#define SLIPWAY_CLUSTER_APPROVAL_H

#include "cluster/plan/plan.h"

enum approval {
        APPROVAL_NOBODY, /* nobody can be asked: what removes a node or loses data is refused */
        APPROVAL_ASK,    /* the caller can ask a person */
        APPROVAL_YES,    /* it was given */
};

/* The answers of functions that judge an approval, besides a refusal: go on, or ask and go on when
 * the person agrees. */
enum { APPROVED = 0, APPROVAL_WANTED = 1 };

/* A plan of up. `saved`: one that was read and approved earlier, as JSON, which must be the same;
 * NULL: none. */
int plan_approved(
        const struct site *s, enum approval given, const json_t *saved, struct error *err);

#endif
