/* Reads the state of objects. Pure functions; anything may be NULL or of another type, which means
 * not ready. */
#ifndef SLIPWAY_KUBE_WAIT_H
#define SLIPWAY_KUBE_WAIT_H

#include <jansson.h>
#include <stdbool.h>

/* The entry of status.conditions with that type, borrowed, or NULL. */
const json_t *condition_get(const json_t *object, const char *type);
bool condition_true(const json_t *object, const char *type);
/* Its message, else its reason, else NULL: for "not ready: ...". */
const char *condition_why(const json_t *object, const char *type);

const char *object_name(const json_t *object);      /* metadata.name, "" when there is none */
const char *object_namespace(const json_t *object); /* "" when there is none */

bool node_ready(const json_t *node);
/* spec.providerID; NULL when there is none, or no node */
const char *node_provider_id(const json_t *node);
const char *node_internal_ip(const json_t *node); /* the first; NULL when there is none */
bool pod_ready(const json_t *pod);                /* and not being deleted */
/* The status of a container that does not start (no image, a wrong setting, a crash loop),
 * borrowed, or NULL. */
const json_t *pod_failing(const json_t *pod);
/* "pod P on N: CrashLoopBackOff, it ended 4 times: MESSAGE" of the first pod of a list that does
 * not start, allocated; NULL: there is none. */
char *pods_failing(const json_t *list);
/* All replicas have the latest version and are available. */
bool deployment_available(const json_t *deployment);
bool daemonset_ready(const json_t *daemonset);
bool statefulset_ready(const json_t *set);
/* The image of the container of that name in a Deployment's or DaemonSet's pods,
 * borrowed, or NULL. */
const char *workload_image(const json_t *workload, const char *container);
bool crd_established(const json_t *crd);

#endif
