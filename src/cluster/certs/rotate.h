/* Rotations: each phase is one roll of up, then the Identity goes on to the next. What was stopped
 * goes on with the next up. The loop of whoever drives one:
 *
 *   open a site; while identity_rotating: up_observe, approve, up_apply, rotate_on */
#ifndef SLIPWAY_CERTS_ROTATE_H
#define SLIPWAY_CERTS_ROTATE_H

#include "cluster/site/site.h"

/* "cluster", "etcd", "front-proxy", "sa", "all": bits of 1 << enum rotate_id; no name: all. */
int rotate_parse(const char *const *names, size_t n, unsigned *set, struct error *err);
/* Whether the key that encrypts objects can be changed. */
int rotate_check_encryption(const struct cluster *c, struct error *err);
/* Refuses to begin while a control plane that kubeadm joined is there, which would get neither the
 * new CA nor the new key. An API that does not answer is no reason against it. Blocks. */
int rotate_check_joined(struct site *s, struct error *err);
/* A line for each rotation that is under way: its phase. */
void rotate_text(const struct identity *id, struct str *out);
/* The phase was rolled out: does what has to be done before the next, and goes on to it. 1: there
 * is another to be rolled out. `finish`: the old service-account key goes at once. `told`: lines of
 * what was done and what is waited for. Blocks. */
int rotate_on(struct site *s, bool finish, struct str *told, struct error *err);

#endif
