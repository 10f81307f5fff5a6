/* Common to joining, promotion and removal of members. */
#ifndef SLIPWAY_ETCD_MEMBER_H
#define SLIPWAY_ETCD_MEMBER_H

#include "cluster/etcd/etcd.h"
#include "cluster/site/op.h"

#define ETCD_ASK_SECONDS 20

/* Steps; arg: member. step_etcd_join adds a learner; afterwards its NodeSpec names the members
 * that it joins. */
void step_etcd_join(struct step *s);
void step_etcd_promote(struct step *s);

/* A reachable voter other than `m` that is not being removed, according to the site's
 * peers, or NULL. */
struct member *etcd_voter(const struct member *m);
/* Ends the operation and its step. why NULL: no member could be queried. */
void etcd_member_fail(struct op *o, const char *what, const char *why);
/* Asks a voter for the list of members; fn gets the operation as `arg`. Ends the operation if none
 * can be asked. */
void etcd_ask_voter(struct op *o, const struct member *m, etcd_fn fn);
void etcd_peers_read(struct site *s, const json_t *answer);
/* etcd changes its members only when all voters have been connected for five seconds. Right after a
 * member joined it refuses, and the request is repeated. */
bool etcd_not_yet(const char *trouble);
/* Calls fn in a second; `why` is shown as the step's progress. */
void etcd_later(struct op *o, const char *why, void (*fn)(struct op *o));

#endif
