/* Machines that are made anew, because the file asks for another flavor or image than they were
 * made from: a rolling replacement. The provider says which machines are outdated. */
#ifndef SLIPWAY_PLAN_ANEW_H
#define SLIPWAY_PLAN_ANEW_H

#include "cluster/site/site.h"

/* Some running machine is outdated. */
bool anew_any(const struct site *s);
/* Sets the fate of a node whose machine is outdated. */
void anew_decide(struct member *m);
/* Refused if a quorum of etcd or the API could be lost, while the cluster does not work, and
 * together with a change of the version. */
int anew_check(const struct site *s, struct error *err);
/* What the plan says of it. */
void anew_words(const struct member *m, struct str *out);

#endif
