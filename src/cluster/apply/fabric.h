/* A fabric of the user's own manifests. */
#ifndef SLIPWAY_FABRIC_H
#define SLIPWAY_FABRIC_H

#include "base/sha256.h"
#include "cluster/site/site.h"

/* Reads the manifests of a custom fabric; an error names the file and the position. No effect
 * with other fabrics. */
int fabric_check(const struct cluster *c, struct error *err);
/* The digest of the manifests: a cluster is verified again when it changes. */
void fabric_digest(const struct cluster *c, char out[SHA256_HEX]);

/* arg: site; this step and the next are only for a custom fabric */
void step_manifests(struct step *s);
void step_fabric(struct step *s); /* arg: site */

#endif
