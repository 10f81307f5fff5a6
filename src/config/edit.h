/* Edits cluster.yaml as a user would: changes one value and keeps all comments, order and
 * spaces around it. */
#ifndef SLIPWAY_EDIT_H
#define SLIPWAY_EDIT_H

#include "config/cluster.h"

/* The text of the file that contains the pool (*file), with another count. */
int edit_count(const struct pool *pool, long count, const struct tree_file **file, struct str *out,
        struct error *err);
/* The text of the file that contains a value of the spec ("kubernetes", or "etcd", "image"), with
 * another value; `inner` may be NULL. */
int edit_value(const struct cluster *c, const char *key, const char *inner, const char *value,
        const struct tree_file **file, struct str *out, struct error *err);
/* The same without a node: a host is removed from its list; a count is lowered by one, and the
 * node's number is not used again unless it was the last. */
int edit_remove(const struct cluster *c, const struct node *n, const struct tree_file **file,
        struct str *out, struct error *err);

#endif
