/* Internal declarations of src/addon. */
#ifndef SLIPWAY_ADDON_IMPL_H
#define SLIPWAY_ADDON_IMPL_H

#include "config/cluster.h"

/* host:port of the cluster's endpoint, IPv6 in brackets; malloc'd. */
char *endpoint_text(const struct cluster *c);

#endif
