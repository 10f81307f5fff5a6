/* A table of texts, as `status` and `etcd members` print it. */
#ifndef SLIPWAY_TABLE_H
#define SLIPWAY_TABLE_H

#include <jansson.h>

#include "base/arena.h"

/* The titles and a row per entry, each column as wide as its widest text. `row_of` fills the row of
 * one entry; NULL is shown as "-". */
void table_text(struct str *out, const char *const *titles, size_t columns, const json_t *entries,
        void (*row_of)(const json_t *entry, const char **row, struct arena *a), struct arena *a);

#endif
