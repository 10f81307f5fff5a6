/* The version in the cluster's files, for upgrade and rollback: an edit, nothing is written. */
#ifndef SLIPWAY_UPGRADE_VERSION_H
#define SLIPWAY_UPGRADE_VERSION_H

#include "config/edited.h"

/* A version that slipway knows; its text in the arena. */
int upgrade_parse(const char *text, struct arena *a, struct version *out, struct error *err);
/* *c: the Cluster of the files as they are; then that with this version, and with the images that
 * belong to it: those of parts that the cluster has as pods of its own. */
int upgrade_edit(
        struct edit *e, const struct version *to, bool down, struct cluster **c, struct error *err);

#endif
