/* report.html: who did what when, as one file that needs nothing else. */
#ifndef SLIPWAY_REPORT_H
#define SLIPWAY_REPORT_H

#include "cluster/run.h"

struct report;

struct report *report_observe(struct run *r);
/* Writes it (atomically) and frees the report. */
int report_write(struct report *p, const char *path, const char *result, struct error *err);

#endif
