/* Deployments, DaemonSets and StatefulSets among applied objects: waited for one after another. */
#ifndef SLIPWAY_WORKLOADS_H
#define SLIPWAY_WORKLOADS_H

#include "cluster/site/op.h"

struct workloads;

/* Valid while the step runs. */
struct workloads *workloads_new(struct site *s, struct step *step);
void workloads_add(struct workloads *w, json_t *objects);
/* Calls fn when all are ready, at once or from the loop; not after the step's deadline. */
void workloads_wait(struct workloads *w, void (*fn)(void *arg), void *arg);

#endif
