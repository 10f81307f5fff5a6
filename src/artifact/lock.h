/* bundle.lock and the cache's index: the digest of each item. One line per item, sorted,
 * for readable diffs. */
#ifndef SLIPWAY_ARTIFACT_LOCK_H
#define SLIPWAY_ARTIFACT_LOCK_H

#include <jansson.h>

#include "base/error.h"

#define LOCK_CHART "chart " /* prefix of a chart's key */

struct lock_entry {
        char digest[65];
        int64_t size;
        char source[16];
};

struct locked { /* starts zeroed */
        json_t *items;
        bool changed;
};

/* A missing file is an empty lock. */
int locked_read(struct locked *l, const char *path, struct error *err);
int locked_write(struct locked *l, const char *path, struct error *err);
void locked_release(struct locked *l);
bool locked_get(const struct locked *l, const char *key, struct lock_entry *out);
void locked_put(struct locked *l, const char *key, const struct lock_entry *entry);
void locked_drop(struct locked *l, const char *key);

#endif
