/* The version in the cluster's files, for upgrade and rollback: edits only, nothing is
 * written to disk. */
#ifndef SLIPWAY_UPGRADE_VERSION_H
#define SLIPWAY_UPGRADE_VERSION_H

#include "config/edited.h"

/* Parses a version that slipway knows; its text is in the arena. */
int upgrade_parse(const char *text, struct arena *a, struct version *out, struct error *err);
/* *c: the Cluster of the current files; afterwards the one with this version, and with the images
 * of the cluster's own components for it. */
int upgrade_edit(
        struct edit *e, const struct version *to, bool down, struct cluster **c, struct error *err);

#endif
