/* Drains a node with evictions, so that disruption budgets are respected. */
#ifndef SLIPWAY_DRAIN_H
#define SLIPWAY_DRAIN_H

#include "kube/kube.h"

/* Set by slipway, which uncordons only such nodes; other cordons stay. */
#define CORDON_ANNOTATION "slipway.dev/cordoned"

/* Whether a node is cordoned; *ours: by slipway. */
bool node_cordoned(const json_t *node, bool *ours);
/* Cordons (with CORDON_ANNOTATION) or uncordons; fn once. */
void kube_cordon(struct kube *k, const char *node, bool on, kube_fn fn, void *arg);

/* Whether a drain ignores it: a pod of a DaemonSet, a static pod, or one that has ended. */
bool pod_stays(const json_t *pod);

struct drain;
struct drain_events {
        /* How many pods are left, and why the first that cannot be evicted is held
         * ("": none is). */
        void (*on_progress)(size_t left, const char *held, void *arg);
        /* A pod without a controller was evicted: nothing creates it again. */
        void (*on_orphan)(const char *pod, void *arg);
        /* error NULL: all pods are evicted. Otherwise the time is over, and the sentence names the
         * pod and its budget. */
        void (*on_done)(const char *error, void *arg);
        void *arg;
};
/* Evicts all pods of the node except those of pod_stays, and waits until they are deleted. Ends
 * with on_done, or with drain_free. */
struct drain *drain_start(struct kube *k, struct event_base *base, const char *node,
        unsigned seconds, const struct drain_events *events);
void drain_free(struct drain *d); /* NULL is fine */

#endif
