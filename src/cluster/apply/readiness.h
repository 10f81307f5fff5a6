/* How many workers must be Ready for `up` to succeed (cluster.yaml: readiness). The others are
 * named and left as they are. Control-plane and etcd nodes are always needed. */
#ifndef SLIPWAY_READINESS_H
#define SLIPWAY_READINESS_H

#include "cluster/site/site.h"

/* Before the first step: marks the workers that a run may go on without (planned.spare). None in an
 * upgrade or a rotation, which must reach every node. */
void readiness_begin(struct site *s);
/* Of all workers, how many must be Ready. */
size_t readiness_needed(const struct cluster *c);
/* Refuses a plan that must reach every node when a worker cannot be reached. */
int readiness_check(const struct site *s, struct error *err);
/* The deadline of a step "Ready": readiness.wait. */
void readiness_wait(struct step *s, const char *hint);
/* After a step "Ready" began or ended: when only workers are left that are late or cannot be
 * reached, their steps end. */
void readiness_look(struct site *s);

#endif
