#ifndef SLIPWAY_CMD_HARDENING_H
#define SLIPWAY_CMD_HARDENING_H

#include "cmd/cmd.h"
#include "node/cis.h"

/* Evaluates each control from the file; writes nothing and connects to nothing. */
int hardening_check(const struct options *o, struct cluster *c, struct error *err);
/* A line with the counts, then the failed controls, or all. */
void hardening_print(struct str *out, const json_t *report, const char *label, bool all);

#endif
