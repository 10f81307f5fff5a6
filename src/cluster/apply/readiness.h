/* How many workers must be Ready for `up` to succeed (cluster.yaml: readiness). The others are
 * named and not changed. Control-plane and etcd nodes are always required. */
#ifndef SLIPWAY_READINESS_H
#define SLIPWAY_READINESS_H

#include "cluster/site/site.h"

/* Before the first step: marks the workers that a run may continue without (planned.spare). None in
 * an upgrade or a rotation, which must reach every node. */
void readiness_begin(struct site *s);
/* The number of workers that must be Ready. */
size_t readiness_needed(const struct cluster *c);
/* Refuses a plan that must reach every node if a worker cannot be reached. */
int readiness_check(const struct site *s, struct error *err);
/* Sets the deadline of a step "Ready": readiness.wait. */
void readiness_wait(struct step *s, const char *hint);
/* The node is rolled back: ends its step "Ready", or lets it end when it starts. */
void readiness_back(struct member *m);
/* After a step "Ready" started or ended: if only late or unreachable workers are left,
 * ends their steps. */
void readiness_look(struct site *s);

#endif
