/* Shared by the writers of the schema table. */
#ifndef SLIPWAY_EMIT_H
#define SLIPWAY_EMIT_H

#include <jansson.h>

#include "config/schema.h"

/* The spec's schema. Plain JSON Schema puts each sub-schema once into `defs`; a structural one
 * (crd) has no use for it. */
json_t *emit_spec(bool crd, json_t *defs);
/* Whether the default is one: a count of -1 only stands for "not given". */
bool emit_has_default(const struct field *f);

#endif
