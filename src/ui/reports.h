/* The reports of earlier runs: DIR/reports/NUMBER-TIME-VERB-RESULT.html, and DIR/report.html, a
 * link to the newest. The name says all that the list shows, so no report is read. */
#ifndef SLIPWAY_REPORTS_H
#define SLIPWAY_REPORTS_H

#include "base/arena.h"
#include "base/error.h"

struct report_file {
        unsigned long number; /* from 1 */
        const char *when;     /* 2026-11-17 06:40:12 */
        const char *verb, *result;
        const char *path;
};

/* Those of a state directory, oldest first; none when there are none. In the arena. */
struct report_file *reports_list(const char *dir, struct arena *a, size_t *count);
/* The path of the next one; its directory is made. In the arena, NULL on failure. */
const char *reports_next(const char *dir, struct arena *a, int64_t began_ms, const char *verb,
        const char *result, struct error *err);
/* It was written: the link leads to it, and only the first and the newest REPORTS_KEPT stay. */
#define REPORTS_KEPT 50
int reports_written(const char *dir, const char *path, struct error *err);

#endif
