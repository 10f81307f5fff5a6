/* Removes nodes from the cluster, and Kubernetes from their hosts. */
#ifndef SLIPWAY_CLUSTER_LEAVE_H
#define SLIPWAY_CLUSTER_LEAVE_H

#include "cluster/plan/plan_steps.h"
#include "cluster/site/site.h"

enum leave_how {           /* bits in struct member's `leaving` */
        LEAVE_YES = 1,     /* set for every node to be removed */
        LEAVE_FORCE = 2,   /* no drain, and also without an API */
        LEAVE_ALL = 4,     /* the whole cluster is removed: no other node has to be updated */
        LEAVE_MACHINE = 8, /* the machine is destroyed; otherwise its host is reset */
        LEAVE_ANEW = 16,   /* the machine is made anew: the node leaves only to come back */
};

/* ---- reset and down: begin with these, go on with leave_apply (cluster/up/up.h) ---- */

/* Marks the nodes to be removed; without `names`, all of them. how: LEAVE_FORCE,
 * LEAVE_MACHINE. Refuses unknown names, and refuses to leave a cluster without a control plane
 * or etcd. Changes nothing. */
int leave_choose(struct site *s, const struct strings *names, unsigned how, struct error *err);
/* The whole cluster is to be removed. */
bool leave_all(const struct site *s);
/* Makes the plan (s->steps) for the chosen nodes: connections, the check of the quorum, and
 * leave_steps for each; etcd members one after another. */
void leave_build(struct site *s);
/* After all steps: if the whole cluster was removed, removes the record and what
 * the provider stored. */
int leave_end(struct site *s, struct error *err);

/* ---- one node ---- */

/* Those that apply of: drain, API server, etcd member, Node object, machine or host, Node object
 * again if it came back, record. m->seen.answers and m->seen.known must be set; bits of `how`:
 * LEAVE_ALL, LEAVE_MACHINE, LEAVE_ANEW. Never empty for a node that is in the record, in the file
 * or known to the API or etcd. */
struct leave_span {
        struct plan_step *first, *last;
};
struct leave_span leave_steps(struct plan *p, struct member *m, unsigned how);

void step_leave_drain(struct step *s); /* arg: member */
/* arg: member; removes the API server from the API's Service */
void step_api_leave(struct step *s);
void step_etcd_leave(struct step *s); /* arg: member */
void step_members(struct step *s);    /* arg: member; api_leave.c */
void step_members_back(struct step *s);
void step_delete_node(struct step *s); /* arg: member; forget.c */
void step_reset_host(struct step *s);  /* arg: member; needs an open link: APPLY_RESET */
void step_unrecord(struct step *s);    /* arg: member */
void step_etcd_quorum(struct step *s); /* arg: site */
/* arg: site; waits a minute; a missing API is no failure if all removed nodes are forced */
void step_api_optional(struct step *s);

#endif
