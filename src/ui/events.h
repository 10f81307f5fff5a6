/* Progress as JSON on stdout: one object a line, for programs. */
#ifndef SLIPWAY_EVENTS_H
#define SLIPWAY_EVENTS_H

#include "run/run.h"

void events_observe(struct run *r);
/* The last line: how it ended, and where the report is (NULL: nowhere). */
void events_end(const struct run *r, const char *result, const char *report);

#endif
