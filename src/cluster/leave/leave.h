/* Nodes leave the cluster, and Kubernetes leaves their hosts. */
#ifndef SLIPWAY_CLUSTER_LEAVE_H
#define SLIPWAY_CLUSTER_LEAVE_H

#include "cluster/plan/plan_steps.h"
#include "cluster/site/site.h"

enum leave_how {           /* bits, of struct member's `leaving` */
        LEAVE_YES = 1,     /* set on every member that goes */
        LEAVE_FORCE = 2,   /* no drain, and an API that does not answer stops nothing */
        LEAVE_ALL = 4,     /* the whole cluster goes: nobody stays who would have to be told */
        LEAVE_MACHINE = 8, /* its machine is removed; else Kubernetes is taken off its host */
};

/* ---- reset and down: begin with these, go on with leave_apply (cluster/up/up.h) ---- */

/* Marks the nodes as leaving; `names` empty: all of them. how: LEAVE_FORCE, LEAVE_MACHINE. Refuses
 * unknown names, and a rest without a control plane or etcd. Changes nothing. */
int leave_choose(struct site *s, const struct strings *names, unsigned how, struct error *err);
/* The whole cluster goes. */
bool leave_all(const struct site *s);
/* The plan (s->steps) of all that were chosen: connections, the quorum guard, and leave_steps for
 * each; etcd members one after another. */
void leave_build(struct site *s);
/* All steps are done: of a cluster that went whole the record and what the provider keeps go too.
 */
int leave_end(struct site *s, struct error *err);

/* ---- one node ---- */

/* Drain → API server → etcd member → Node object → its machine or host → Node object again if it
 * came back → record: those of them that apply. m->answers and m->known must be so as they are;
 * bits of `how`: LEAVE_ALL, LEAVE_MACHINE. Never empty for a node that is in the record, in the
 * file or known to the API or etcd. */
struct leave_span {
        struct plan_step *first, *last;
};
struct leave_span leave_steps(struct plan *p, struct member *m, unsigned how);

void step_leave_drain(struct step *s); /* arg: member */
void step_api_leave(
        struct step *s); /* arg: member; in order, so that nobody is sent to it any more */
void step_etcd_leave(struct step *s);   /* arg: member */
void step_delete_node(struct step *s);  /* arg: member; forget.c */
void step_reset_host(struct step *s);   /* arg: member; its link must be open: APPLY_RESET */
void step_unrecord(struct step *s);     /* arg: member */
void step_etcd_quorum(struct step *s);  /* arg: site */
void step_api_optional(struct step *s); /* arg: site; waits a minute; an API that is not there is no
                                           failure when all that leave are forced */

#endif
