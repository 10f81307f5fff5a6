/* Nodes whose address in the file differs from the recorded one. */
#ifndef SLIPWAY_PLAN_REPLACED_H
#define SLIPWAY_PLAN_REPLACED_H

#include "cluster/site/removed.h"

/* A new host replaces the old one: its etcd member joins in place of the old one, and slipway never
 * connects to the old address. Refused while the old host still serves as that node, and if it is
 * the same host, because its etcd member has the old address. */
int replaced_check(const struct site *s, struct error *err);

#endif
