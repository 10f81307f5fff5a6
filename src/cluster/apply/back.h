/* The automatic rollback of one node. */
#ifndef SLIPWAY_BACK_H
#define SLIPWAY_BACK_H

#include "cluster/plan/plan.h"

/* Takes a member that did not become healthy back to the version it had: ends the step, always with
 * a failure that says so. `why`: what it waited for. */
void upgrade_back(struct member *m, struct step *s, const char *why);

#endif
