/* Rotations. Each phase is rolled out by one `up`, then the Identity advances to the next. The next
 * `up` continues an interrupted rotation. The loop of a caller:
 *
 *   open a site; while identity_rotating: up_observe, approve, up_apply, rotate_on */
#ifndef SLIPWAY_CERTS_ROTATE_H
#define SLIPWAY_CERTS_ROTATE_H

#include "cluster/site/site.h"

/* "cluster", "etcd", "front-proxy", "sa", "all": bits of 1 << enum rotate_id;
 * without names: all. */
int rotate_parse(const char *const *names, size_t n, unsigned *set, struct error *err);
/* Whether the encryption key can be changed. */
int rotate_check_encryption(const struct cluster *c, struct error *err);
/* Refuses to start if a control plane joined with kubeadm, since it would get neither the new CA
 * nor the new key. If the API does not answer, the rotation is not refused. Blocks. */
int rotate_check_joined(struct site *s, struct error *err);
/* A line with the phase of each rotation in progress. */
void rotate_text(const struct identity *id, struct str *out);
/* After a phase was rolled out: does what the next one requires and advances to it. Returns 1 if
 * another phase must be rolled out. `finish`: the old service-account key is removed at once.
 * `told`: lines about what was done and what is still waited for. Blocks. */
int rotate_on(struct site *s, bool finish, struct str *told, struct error *err);

#endif
