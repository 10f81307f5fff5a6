/* Cordon and drain, as kubectl drain --ignore-daemonsets --delete-emptydir-data does: pods are evicted, so PodDisruptionBudgets hold. */
#ifndef SLIPWAY_DRAIN_H
#define SLIPWAY_DRAIN_H

#include "kube/kube.h"

struct drain;

/* `say` tells what is waited for; `fn` is called once: error NULL when the node is empty (or there is none of that name), else a sentence with the pod and what
 * keeps it, and the node is uncordoned again. The drain is freed before fn is called. */
struct drain *drain_start(struct kube *k, struct event_base *base, const char *node, unsigned seconds, void (*say)(const char *what, void *arg),
        void (*fn)(const char *error, void *arg), void *arg);
void drain_free(struct drain *d); /* without callbacks; the node stays as it is; NULL is fine */
/* Whether new pods may be put on it. fn once; error NULL when it is so. A node that is not there is no error. */
void node_cordon(struct kube *k, const char *node, bool cordon, void (*fn)(const char *error, void *arg), void *arg);

#endif
