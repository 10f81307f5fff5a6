/* The pod network of a running cluster stays: its pods have addresses and links of it. */
#ifndef SLIPWAY_CLUSTER_FABRIC_CHANGE_H
#define SLIPWAY_CLUSTER_FABRIC_CHANGE_H

#include "cluster/site/site.h"

/* Refuses a plan in which a node that stays would lose its pod network for another one. */
int fabric_change_check(const struct site *s, struct error *err);

#endif
