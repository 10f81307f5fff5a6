/* Kubelets of machines that kubeadm joined ask for serving certificates; a person says once that a
 * machine is who it says it is. What may be approved at all is judged in cluster/plan/serving.h. */
#ifndef SLIPWAY_CERTS_APPROVE_H
#define SLIPWAY_CERTS_APPROVE_H

#include "cluster/site/site.h"

/* Approves what these nodes ask for; no names: approves nothing, and lists those that wait. `list`
 * gets {"node", "names", "trouble" (or null), "approved"} of each, also of those before a failure.
 * Blocks. */
int approve_serving(
        struct site *s, const char *const *nodes, size_t n, json_t *list, struct error *err);

#endif
