/* Versions of Kubernetes in the plan: which one each node had before, and which changes of the
 * version are refused. What the API reports counts; where it reports nothing, slipway's own record
 * does (cluster/site/proven.h). */
#ifndef SLIPWAY_PLAN_VERSIONS_H
#define SLIPWAY_PLAN_VERSIONS_H

#include "cluster/plan/plan.h"

/* The version to which the node is returned if it does not become healthy. NULL: unknown. In the
 * arena. */
const char *version_before(const struct member *m);
/* Its pods are evicted before it changes. */
bool version_drains(const struct member *m);

#endif
