#ifndef SLIPWAY_MERGE_H
#define SLIPWAY_MERGE_H

#include "cmd/cmd.h"

/* Merges the text of identity_kubeconfig into the user's own file and reports it. */
int merge_kubeconfig(const struct options *o, const char *ours, struct error *err);

#endif
