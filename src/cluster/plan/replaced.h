/* A node that has another address in the file than in the record. */
#ifndef SLIPWAY_PLAN_REPLACED_H
#define SLIPWAY_PLAN_REPLACED_H

#include "cluster/site/removed.h"

/* A new host takes the place of the old one: its etcd member joins instead of the old one's, and
 * the old address is never connected to. Refused while the old host still serves as that node, and
 * when it is the same host, whose etcd member has the old address. */
int replaced_check(const struct site *s, struct error *err);

#endif
