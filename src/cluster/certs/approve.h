/* Kubelets of machines that joined with kubeadm request serving certificates; an operator
 * approves the first one of each machine. cluster/plan/serving.h decides which requests may be
 * approved at all. */
#ifndef SLIPWAY_CERTS_APPROVE_H
#define SLIPWAY_CERTS_APPROVE_H

#include "cluster/site/site.h"

/* Approves the requests of these nodes; without names it only lists pending requests.
 * `list` gets {"node", "names", "trouble" (or null), "approved"} for each, including those
 * before a failure. Blocks. */
int approve_serving(
        struct site *s, const char *const *nodes, size_t n, json_t *list, struct error *err);

#endif
