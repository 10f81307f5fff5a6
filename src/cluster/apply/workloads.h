/* Deployments, DaemonSets and StatefulSets among applied objects: waited for one after another. */
#ifndef SLIPWAY_WORKLOADS_H
#define SLIPWAY_WORKLOADS_H

#include "cluster/site/op.h"

/* The API's path of a Deployment, DaemonSet or StatefulSet, in the arena; NULL: it is none. */
const char *workload_path(struct arena *a, const json_t *object);
/* Whether it is ready, as the API has it. */
bool workload_ready(const json_t *object);
/* Adds its pods, and those of them that are ready. */
void workload_pods(const json_t *object, json_int_t *ready, json_int_t *wanted);

struct workloads;

/* Valid while the step runs. */
struct workloads *workloads_new(struct site *s, struct step *step);
void workloads_add(struct workloads *w, json_t *objects);
/* Calls fn when all are ready, at once or from the loop; not after the step's deadline. */
void workloads_wait(struct workloads *w, void (*fn)(void *arg), void *arg);

#endif
