/* The name of the virtual IP (api.vipName). */
#ifndef SLIPWAY_PLAN_ENDPOINT_H
#define SLIPWAY_PLAN_ENDPOINT_H

#include "config/cluster.h"

/* Refuses a name that this computer's resolver does not answer with exactly api.vip (of its address
 * family) within a few seconds: clients would reach another host, or none. Nothing else is decided
 * by the answer. Blocks. */
int endpoint_check(const struct cluster *c, struct error *err);

#endif
