/* Helpers for answers in JSON. */
#ifndef SLIPWAY_ANSWER_H
#define SLIPWAY_ANSWER_H

#include <jansson.h>

#include "base/base.h"

/* A NULL value becomes null. */
void status_text(json_t *o, const char *key, const char *value);
/* Appends one sentence to the list of problems. */
void status_problem(json_t *problems, const char *fmt, ...) PRINTF(2, 3);

#endif
