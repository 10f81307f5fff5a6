/* Logs of the components of a node. */
#ifndef SLIPWAY_LOGS_H
#define SLIPWAY_LOGS_H

#include "cluster/site/site.h"

struct log_component;

/* The names of the logs that the node has. */
void logs_list(const struct member *m, struct str *out, const char *between);
/* NULL and an error with "did you mean": the node runs no such component. */
const struct log_component *logs_find(const struct member *m, const char *name, struct error *err);
/* The ssh command that prints the last `lines` lines, and with `follow` also those that come. */
const char *const *logs_command(const struct member *m, const struct log_component *row,
        const char *lines, bool follow, struct arena *a);

#endif
