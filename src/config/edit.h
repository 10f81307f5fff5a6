/* cluster.yaml changed as a person would: one value, and every comment, order and space around it
 * kept. */
#ifndef SLIPWAY_EDIT_H
#define SLIPWAY_EDIT_H

#include "config/cluster.h"

/* The text of the file that the pool stands in (*file), with another count. */
int edit_count(const struct pool *pool, long count, const struct tree_file **file, struct str *out,
        struct error *err);
/* The file that a value of the spec stands in ("kubernetes", or "etcd", "image"), with another one;
 * `inner` may be NULL. */
int edit_value(const struct cluster *c, const char *key, const char *inner, const char *value,
        const struct tree_file **file, struct str *out, struct error *err);
/* The same without a node: a host leaves its list; of counted machines there is one less, and its
 * number is not used again unless it was the last. */
int edit_remove(const struct cluster *c, const struct node *n, const struct tree_file **file,
        struct str *out, struct error *err);

#endif
