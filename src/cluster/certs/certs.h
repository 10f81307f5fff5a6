/* The certificates of a cluster: on its nodes, in kubeconfigs there, and in the state directory. */
#ifndef SLIPWAY_CERTS_H
#define SLIPWAY_CERTS_H

#include "cluster/site/site.h"

/* Queries every node that can be reached. {"certificates": [{"node", "file", "subject", "issuer",
 * "serial", "expires", "secondsLeft", "daysLeft", "state": "good|due|expired", "authority",
 * "usedBy"}], "unreachable": [{"node", "why"}]}; node is null for certificates in the state
 * directory. Changes nothing and reads no key. */
int certs_list(struct site *s, json_t **out, struct error *err);

/* Rewrites every object of the encrypted resources, so that etcd has it encrypted with the current
 * first key. Blocks; `*count` is the number of objects. */
int certs_rewrite(struct site *s, size_t *count, struct error *err);

/* Starts the steps of `up` with leaves issued again; without nodes, also those of users and
 * of the administrator. */
int certs_renew_begin(struct site *s, const struct strings *nodes, struct error *err);

#endif
