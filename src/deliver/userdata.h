/* User-data: the immutable entries of a NodeSpec as cloud-init or Ignition, with the node's
 * name and the operators' ssh keys. It is readable in the cloud's API, so an entry of
 * another class aborts. */
#ifndef SLIPWAY_USERDATA_H
#define SLIPWAY_USERDATA_H

#include "node/nodespec.h"

/* One #cloud-config, or multipart MIME with a boothook. */
void cloudinit_write(const struct cluster *c, const struct nodespec *s, struct str *out);
/* Ignition specification 3.4.0. */
void ignition_write(const struct cluster *c, const struct nodespec *s, struct str *out);

#define USERDATA_LIMIT_OPENSTACK ((size_t)65535)    /* of base64: Nova counts the encoded text */
#define USERDATA_LIMIT_AWS       ((size_t)16 << 10) /* of raw bytes, before base64 */

/* Whether machines of the provider get user-data in this format. */
bool userdata_is_given(const struct cluster *c, enum user_data format);
/* What the provider's images read, or without a cloud what the node's OS reads. */
enum user_data userdata_format(const struct cluster *c, const struct node *n);

/* User-data within the platform's limit, compressed if necessary (cloud-init: gzip; Ignition: a
 * gzip'd data URL in a small outer config). If that is still too large: EXIT_CONFIG, naming the
 * biggest entries. */
int userdata_fit(const struct cluster *c, const struct nodespec *s, enum user_data format,
        enum provider_kind provider, struct str *data, struct error *err);

#endif
