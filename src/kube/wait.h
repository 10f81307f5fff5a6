/* Reading objects: is it ready? Pure; everything may be NULL or not what it should be, and is then not ready. */
#ifndef SLIPWAY_KUBE_WAIT_H
#define SLIPWAY_KUBE_WAIT_H

#include <jansson.h>
#include <stdbool.h>

/* The entry of status.conditions of that type, borrowed, or NULL. */
const json_t *condition_get(const json_t *object, const char *type);
bool condition_true(const json_t *object, const char *type);
/* Its message, else its reason, else NULL: for "not ready: ...". */
const char *condition_why(const json_t *object, const char *type);

const char *object_name(const json_t *object);      /* metadata.name, "" when there is none */
const char *object_namespace(const json_t *object); /* "" when there is none */

bool node_ready(const json_t *node);
const char *node_internal_ip(const json_t *node); /* the first; NULL when there is none */
bool pod_ready(const json_t *pod);                /* and not on its way out */
/* The status of a container that does not come up by itself (no image, a setting that is wrong, ended again and again), borrowed, or NULL. */
const json_t *pod_failing(const json_t *pod);
/* What runs is what was asked for last, all of it available. */
bool deployment_available(const json_t *deployment);
bool daemonset_ready(const json_t *daemonset);
/* The image of a container of that name in a Deployment's or DaemonSet's pods, borrowed, or NULL. */
const char *workload_image(const json_t *workload, const char *container);
bool crd_established(const json_t *crd);

#endif
