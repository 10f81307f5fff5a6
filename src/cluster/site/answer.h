/* Parts that answers in JSON have in common. */
#ifndef SLIPWAY_ANSWER_H
#define SLIPWAY_ANSWER_H

#include <jansson.h>

#include "base/base.h"

/* NULL: null. */
void status_text(json_t *o, const char *key, const char *value);
/* A sentence more. */
void status_problem(json_t *problems, const char *fmt, ...) PRINTF(2, 3);

#endif
