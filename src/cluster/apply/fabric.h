/* A fabric of the user's own manifests. */
#ifndef SLIPWAY_FABRIC_H
#define SLIPWAY_FABRIC_H

#include "base/sha256.h"
#include "cluster/site/site.h"

/* Reads the manifests of a custom fabric; an error says the file and the place in it. Others have
 * nothing to check. */
int fabric_check(const struct cluster *c, struct error *err);
/* Of what the manifests say: a cluster is verified again when they change. */
void fabric_digest(const struct cluster *c, char out[SHA256_HEX]);

void step_manifests(struct step *s); /* arg: site; only where the fabric is custom, as the next */
void step_fabric(struct step *s);    /* arg: site */

#endif
