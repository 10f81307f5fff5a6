/* The first cluster.yaml of `slipway init`: short, commented and valid, with names that the cloud
 * has. */
#ifndef SLIPWAY_FIRST_FILE_H
#define SLIPWAY_FIRST_FILE_H

#include "base/error.h"
#include "base/str.h"

/* `name`: the cluster's, or NULL. `before` is what to do before `slipway check`, or "". A cloud
 * that cannot be asked is no failure: the names are then examples, and `unasked` says why. */
int first_file(const char *provider, const char *name, struct str *out, const char **before,
        struct error *unasked, struct error *err);

#endif
