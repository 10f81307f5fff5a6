/* Progress as a line an event, for logs and pipes. */
#ifndef SLIPWAY_LINES_H
#define SLIPWAY_LINES_H

#include "run/run.h"

/* Writes to stderr while the run lives. */
void lines_observe(struct run *r);

#endif
