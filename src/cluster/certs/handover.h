/* What a machine needs to join as a control plane with kubeadm: the Secret kubeadm-certs, as
 * kubeadm's phase upload-certs creates it. */
#ifndef SLIPWAY_CERTS_HANDOVER_H
#define SLIPWAY_CERTS_HANDOVER_H

#include "cluster/site/site.h"

/* Refuses clusters whose control plane kubeadm cannot join, with the reason. */
int handover_check(const struct site *s, struct error *err);
/* Encrypts CAs, keys and etcd's client certificate with `key` (pki/identity.h: seal_key) and stores
 * them in the API. The Secret and the permission to read it are owned by the bootstrap token's
 * Secret `owner` and deleted with it. Blocks. */
int handover_upload(struct site *s, const json_t *owner, const char *key, struct error *err);

#endif
