/* What joining, promotion and leaving have in common. */
#ifndef SLIPWAY_ETCD_MEMBER_H
#define SLIPWAY_ETCD_MEMBER_H

#include "cluster/etcd/etcd.h"
#include "cluster/site/op.h"

#define ETCD_ASK_SECONDS 20

/* Steps; arg: member. */
void step_etcd_join(struct step *s); /* as a learner; after this its NodeSpec says whom it joins */
void step_etcd_promote(struct step *s);

/* A voter that can be asked and stays, other than `m` itself; by the site's peers. NULL: there is
 * none. */
struct member *etcd_voter(const struct member *m);
/* Ends the operation and its step; why NULL: nobody could be asked. */
void etcd_member_fail(struct op *o, const char *what, const char *why);
void etcd_peers_read(struct site *s, const json_t *answer);
/* etcd changes its members only when all that vote have been together for five seconds: right after
 * one came it says no, and means not yet. */
bool etcd_not_yet(const char *trouble);
/* fn in a second; the step says why. */
void etcd_later(struct op *o, const char *why, void (*fn)(struct op *o));

#endif
