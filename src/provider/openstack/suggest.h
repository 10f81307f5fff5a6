#ifndef SLIPWAY_PROVIDER_OPENSTACK_SUGGEST_H
#define SLIPWAY_PROVIDER_OPENSTACK_SUGGEST_H

#include "provider/suggest.h"

/* cloud, image, flavor, external, network, balancer: what is missing, the cloud does not have. */
int openstack_suggest(struct arena *a, struct suggestions *out, struct error *err);

#endif
