/* Progress as a block at the bottom of a terminal: a line a node, one for the cluster, one for the
 * total. */
#ifndef SLIPWAY_LIVE_H
#define SLIPWAY_LIVE_H

#include "run/run.h"

struct live;

/* Whether stderr is a terminal that can move its cursor. */
bool live_possible(void);
struct live *live_observe(struct run *r);
/* Removes the block from the terminal for other output; it comes back with the next drawing, unless
 * the run ends. */
void live_pause(struct live *l);
/* Draws the block a last time, shows the cursor and frees the block. */
void live_end(struct live *l, const char *result);

#endif
