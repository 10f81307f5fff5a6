/* Before a whole cluster goes: what it has outside itself is deleted through its API, and waited
 * for. addon/outside.h says what that is; docs/services.md says it to people. */
#ifndef SLIPWAY_CLEANUP_H
#define SLIPWAY_CLEANUP_H

#include "addon/outside.h"
#include "cluster/plan/plan_steps.h"
#include "cluster/services/services.h"

#define CLEANUP_SECONDS 300 /* site.cleanup, unless somebody says otherwise */

/* The step that looks what there is (site.found.outside); NULL: the cluster has never had an API,
 * it has no machine of the control plane, or site.cleanup is 0. An API that does not answer is no
 * failure: found.outside->blind. */
struct step *cleanup_observe_step(struct site *s);
/* Adds the plan's steps for what was found. Every step that touches a node waits for all of them.
 */
void cleanup_steps(struct site *s, struct plan *p);

void step_policies(struct step *s);  /* arg: site */
void step_balancers(struct step *s); /* arg: site */
void step_volumes(struct step *s);   /* arg: site */

/* ---- between the files ---- */

/* Lists of the API, asked one after another. */
struct outside_look {
        struct op op;
        json_t *lists[OUTSIDE_LISTS];
        unsigned wanted;      /* 1 << enum outside_list: still to be asked */
        enum outside_list at; /* which is asked now */
        void (*then)(struct outside_look *l, const char *error);
};
/* Asks the lists of the set anew, then calls `then`, with an error when one of them failed. Not
 * when the operation is over. */
void outside_ask(struct outside_look *l, unsigned set,
        void (*then)(struct outside_look *l, const char *error));
void outside_look_release(struct op *o); /* for op.release */

#endif
