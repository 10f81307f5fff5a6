/* Certificates of a cluster: those on its nodes, in kubeconfigs there, and in the state. */
#ifndef SLIPWAY_CERTS_H
#define SLIPWAY_CERTS_H

#include "cluster/site/site.h"

/* Asks every node that can be reached. {"certificates": [{"node", "file", "subject", "issuer",
 * "serial", "expires", "secondsLeft", "daysLeft", "state": "good|due|expired", "authority",
 * "usedBy"}], "unreachable": [{"node", "why"}]}; node is null for those in the state. Nothing is
 * changed and no key leaves its place. */
int certs_list(struct site *s, json_t **out, struct error *err);

/* Writes every object of the resources that are encrypted again, so that etcd holds it under the
 * key that is first now. Blocks; `*count` were written. */
int certs_rewrite(struct site *s, size_t *count, struct error *err);

/* up's steps with leaves issued anew; the users' and the administrator's too when no nodes are
 * named. */
int certs_renew_begin(struct site *s, const struct strings *nodes, struct error *err);

#endif
