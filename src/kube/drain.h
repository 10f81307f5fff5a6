/* Taking the pods off a node, as the API lets one: evictions, so that disruption budgets are kept. */
#ifndef SLIPWAY_DRAIN_H
#define SLIPWAY_DRAIN_H

#include "kube/kube.h"

#define CORDON_ANNOTATION "slipway.dev/cordoned" /* we did it, so we undo it; a person's own cordon stays */

/* Whether a node is cordoned, and by us. */
bool node_cordoned(const json_t *node, bool *ours);
/* Cordons (marked as ours) or uncordons; fn once, error NULL when it is so. */
void kube_cordon(struct kube *k, const char *node, bool on, void (*fn)(const char *error, void *arg), void *arg);

/* Whether a drain leaves it: of a DaemonSet, the node's own, or ended. */
bool pod_stays(const json_t *pod);

struct drain;
struct drain_events {
        /* How many pods are still there, and what holds the first that may not go ("" when nothing does: it is on its way). */
        void (*on_progress)(size_t left, const char *held, void *arg);
        /* A pod was evicted that nothing will make again. */
        void (*on_orphan)(const char *pod, void *arg);
        /* error NULL: the node is empty. Else the time is over, and the sentence names the pod and its budget. */
        void (*on_done)(const char *error, void *arg);
        void *arg;
};
/* Evicts all pods of the node but those of DaemonSets and the node's own static ones, and waits until they are gone. Ends with on_done, or with drain_free. */
struct drain *drain_start(struct kube *k, struct event_base *base, const char *node, unsigned seconds, const struct drain_events *events);
void drain_free(struct drain *d); /* NULL is fine */

#endif
