/* Nodes leave the cluster, and Kubernetes leaves their hosts. */
#ifndef SLIPWAY_CLUSTER_RESET_H
#define SLIPWAY_CLUSTER_RESET_H

#include "cluster/site.h"

enum reset_how {
        RESET_LEAVES = 1,    /* set on every member that goes */
        RESET_FORCE = 2,     /* no drain, and an API that does not answer stops nothing */
        RESET_ALL = 4,       /* the whole cluster goes: there is nobody to take leave of */
        RESET_HOST_DEAD = 8, /* nothing can be done on the host itself: only etcd and the API are told */
};

/* Marks the nodes as leaving; `names` empty: all of them. Refuses unknown names, and a rest without a control plane or etcd. Changes nothing. */
int reset_choose(struct site *s, const struct strings *names, bool force, struct error *err);
/* The steps of all that leave: connections, the quorum guard, and reset_member for each. */
void reset_steps(struct site *s);

/* ---- the parts, for other operations ----
 * One member leaves: drain → etcd member → Node object → host → Node object again if it came back. Begins after `after` (NULL: at once); the last step is returned.
 * m->leaving must be set on all that leave before the first of these begins. A connection to every other etcd member that can be reached is needed (reset_askers),
 * and one to m itself unless RESET_HOST_DEAD. */
struct step *reset_member(struct member *m, struct step *after);
/* Connects to the etcd members that stay, as far as they answer, and refuses when those that leave would take the quorum with them. Returns the step to wait for;
 * NULL when no etcd member leaves. */
struct step *reset_guard(struct site *s);

void step_drain_member(struct step *s); /* arg: member */
void step_delete_node(struct step *s);  /* arg: member; forget.c */
void step_reset_host(struct step *s);   /* arg: member; its link must be open: APPLY mode 3 */
void step_etcd_quorum(struct step *s);  /* arg: site */
void step_api_optional(struct step *s); /* arg: site; waits a minute; an API that is not there is no failure when all that leave are forced */

#endif
