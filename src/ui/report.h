/* report.html: the steps of a run, their times and changes, as one self-contained file. */
#ifndef SLIPWAY_REPORT_H
#define SLIPWAY_REPORT_H

#include "run/run.h"

struct report;

struct report *report_observe(struct run *r);
/* Writes the report atomically and frees it; without a path (err says why) it only frees it. */
int report_write(struct report *p, const char *path, const char *result, struct error *err);

#endif
