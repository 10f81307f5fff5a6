/* A hash index of strings, for what would else be a search of a list for each of its entries. Keys
 * are borrowed. Starts zeroed: struct index x CLEANUP(index_release) = { 0 }; */
#ifndef SLIPWAY_INDEX_H
#define SLIPWAY_INDEX_H

#include "base/base.h"

struct index {
        struct index_slot *slots;
        size_t cap, used;
};

void *index_get(const struct index *x, const char *key); /* NULL when it is not there */
/* Puts the value in unless the key is there already; returns the one that was, or NULL. */
void *index_put(struct index *x, const char *key, void *value);
void index_clear(struct index *x);
void index_release(struct index *x);

#endif
