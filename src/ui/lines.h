/* Progress as a line an event, for logs and pipes. */
#ifndef SLIPWAY_LINES_H
#define SLIPWAY_LINES_H

#include "run/run.h"

struct lines;

/* Writes to stderr until lines_end. */
struct lines *lines_observe(struct run *r);
void lines_end(struct lines *l);

#endif
