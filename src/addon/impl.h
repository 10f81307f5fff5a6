/* Internal declarations of src/addon. */
#ifndef SLIPWAY_ADDON_IMPL_H
#define SLIPWAY_ADDON_IMPL_H

#include <jansson.h>

#include "artifact/catalogue.h"
#include "config/addon.h"

/* host:port of the cluster's endpoint, IPv6 in brackets; malloc'd. */
char *endpoint_text(const struct cluster *c);
/* cloud.c: what the templates of the cloud's controller and CSI driver use. */
void addon_cloud_values(
        const struct cluster *c, enum addon_id id, const struct catalogue *catalogue, json_t *v);

#endif
