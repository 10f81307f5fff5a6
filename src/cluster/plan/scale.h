/* More or fewer nodes, as edits of the cluster's files. Nothing is written to disk here. */
#ifndef SLIPWAY_CLUSTER_SCALE_H
#define SLIPWAY_CLUSTER_SCALE_H

#include "config/edited.h"

struct scale_count {
        const char *pool;
        long count;
};

/* "worker=3" */
int scale_parse(struct arena *a, const char *word, struct scale_count *out, struct error *err);
/* *c: the Cluster of the current files; afterwards the one with these counts. Refuses edits that
 * would change other nodes too or leave no cluster. */
int scale_pools(struct edit *e, const struct scale_count *v, size_t n, struct cluster **c,
        struct error *err);
/* The same without these nodes. */
int scale_remove(
        struct edit *e, const struct strings *names, struct cluster **c, struct error *err);

#endif
