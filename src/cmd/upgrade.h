/* Between upgrade and rollback: the edit of the version in the file. */
#ifndef SLIPWAY_CMD_UPGRADE_H
#define SLIPWAY_CMD_UPGRADE_H

#include "cmd/edited.h"

/* A version that slipway knows; its text in the arena. */
int upgrade_parse(const char *text, struct arena *a, struct version *out, struct error *err);
/* The Cluster of the file with that version, and with the images that belong to it: those of parts that the cluster has as pods of its own. Nothing is written. */
int upgrade_edit(struct edit *e, const struct version *to, bool down, struct cluster **out, struct error *err);

#endif
