/* A node's NodeSpec or user-data as a directory, for `slipway render`. */
#ifndef SLIPWAY_RENDERED_H
#define SLIPWAY_RENDERED_H

#include "deliver/outdir.h"
#include "node/nodespec.h"

/* Both write root/NODE. Secret files only with `secrets`, then readable by their owner only. */
int rendered_tree(
        const struct outroot *root, const struct nodespec *s, bool secrets, struct error *err);
int rendered_userdata(const struct outroot *root, const char *node, bool ignition,
        const struct str *data, struct error *err);

#endif
