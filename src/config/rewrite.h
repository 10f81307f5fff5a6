/* Changing one value in a person's file and nothing else of it. */
#ifndef SLIPWAY_REWRITE_H
#define SLIPWAY_REWRITE_H

#include "base/str.h"
#include "base/tree.h"

/* Puts `text` in the place of a scalar, in the file it was read from: quotes, comments and everything around it stay. Atomic. Refused when the file is no longer what
 * was read. `*before` (malloc'd, may be NULL) is the whole file as it was, for rewrite_undo. */
int rewrite_scalar(const struct tree *value, const char *text, char **before, struct error *err);
int rewrite_undo(const struct tree *value, const char *before, struct error *err);

#endif
