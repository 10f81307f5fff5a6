/* The name of the virtual IP (api.vipName). */
#ifndef SLIPWAY_PLAN_ENDPOINT_H
#define SLIPWAY_PLAN_ENDPOINT_H

#include "config/cluster.h"

/* Refuses a name that this computer's resolver does not resolve to exactly api.vip (of its
 * address family) within a few seconds: clients would reach another host, or none. The answer has
 * no other use. Blocks. */
int endpoint_check(const struct cluster *c, struct error *err);

#endif
