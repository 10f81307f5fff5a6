#ifndef SLIPWAY_MERGE_H
#define SLIPWAY_MERGE_H

#include "cmd/cmd.h"

/* Puts the text of identity_kubeconfig into the person's own file and says so. */
int merge_kubeconfig(const struct options *o, const char *ours, struct error *err);

#endif
