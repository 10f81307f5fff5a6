/* Progress as one line an event, for logs and pipes. */
#ifndef SLIPWAY_LINES_H
#define SLIPWAY_LINES_H

#include "cluster/run.h"

/* Writes to stderr for as long as the run lives. */
void lines_observe(struct run *r);

#endif
