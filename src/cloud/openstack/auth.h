/* What is sent to keystone for a token. */
#ifndef SLIPWAY_CLOUD_AUTH_H
#define SLIPWAY_CLOUD_AUTH_H

#include <jansson.h>

#include "cloud/openstack/clouds.h"

/* The body of POST /v3/auth/tokens. An application credential has its scope in itself: none is
 * sent. */
json_t *os_token_body(const struct os_cloud *c);

#endif
