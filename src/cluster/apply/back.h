/* The automatic rollback of one node. */
#ifndef SLIPWAY_BACK_H
#define SLIPWAY_BACK_H

#include "cluster/plan/plan.h"

/* Returns a member that did not become healthy to its previous version. Always ends the step with a
 * failure that says so. `why`: what was not healthy. */
void upgrade_back(struct member *m, struct step *s, const char *why);

#endif
