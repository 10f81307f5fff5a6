/* Inside the room. */
#ifndef SLIPWAY_ADDON_IMPL_H
#define SLIPWAY_ADDON_IMPL_H

#include "config/cluster.h"

/* host:port of the cluster's endpoint, brackets around IPv6; malloc'd. */
char *endpoint_text(const struct cluster *c);

#endif
