/* Shared by the two files of the verb `status`. */
#ifndef SLIPWAY_CMD_STATUS_H
#define SLIPWAY_CMD_STATUS_H

#include "cluster/status/status.h"
#include "cmd/reach.h"

/* The answer as a table. */
void status_print(struct str *out, const json_t *o, bool all, struct arena *a);
/* --watch: returns an exit status, or an error in err. */
int status_follow(struct reach *r, const struct options *o, struct error *err);

#endif
