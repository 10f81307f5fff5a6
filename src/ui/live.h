/* Progress as a block at the foot of a terminal: a line a node, one for the cluster, one for the whole. */
#ifndef SLIPWAY_LIVE_H
#define SLIPWAY_LIVE_H

#include "cluster/run.h"

struct live;

/* Whether stderr is a terminal that can move its cursor. */
bool live_possible(void);
struct live *live_observe(struct run *r);
/* Takes the block off the terminal, so that something else can be written there; it comes back with the next drawing, unless the run ends. */
void live_pause(struct live *l);
/* Draws the block a last time, gives the cursor back and frees it. */
void live_end(struct live *l, const char *result);

#endif
