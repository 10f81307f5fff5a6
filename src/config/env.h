/* Values of cluster.yaml from the environment. */
#ifndef SLIPWAY_ENV_H
#define SLIPWAY_ENV_H

#include "base/sha256.h"
#include "config/problem.h"

/* Replaces ${NAME} and ${NAME:-DEFAULT} in the scalars of one document, for the names that
 * its spec.env lists; everything else stays as it is written. Keys are not replaced, and a
 * value stays one scalar whatever it holds. The values become part of the digest, and are
 * masked in the problems. */
void env_expand(
        struct arena *a, struct tree *document, struct sha256 *digest, struct problems *problems);

#endif
