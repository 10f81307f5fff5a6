/* User-data: the immutable entries of a NodeSpec as cloud-init or Ignition, with the node's name and the operators' ssh keys.
 * It is readable in the cloud's API: an entry of another class in it is a mistake of ours and aborts. */
#ifndef SLIPWAY_USERDATA_H
#define SLIPWAY_USERDATA_H

#include "node/nodespec.h"

/* One #cloud-config, or multipart MIME where parts differ in kind. */
void cloudinit_write(const struct cluster *c, const struct nodespec *s, struct str *out);
/* Ignition specification 3.4.0. */
void ignition_write(const struct cluster *c, const struct nodespec *s, struct str *out);

#define USERDATA_LIMIT_OPENSTACK ((size_t)65535)    /* of base64: nova counts the encoded text */
#define USERDATA_LIMIT_AWS       ((size_t)16 << 10) /* of raw bytes, before base64 */

/* What goes to the platform: compressed where the plain text is over the limit and the format allows it (cloud-init takes gzip; Ignition takes a gzip'd
 * data URL inside a small outer config). Over the limit still: EXIT_CONFIG, naming the biggest entries. */
int userdata_fit(const struct cluster *c, const struct nodespec *s, enum user_data format, enum provider_kind provider, struct str *data, struct error *err);

#endif
