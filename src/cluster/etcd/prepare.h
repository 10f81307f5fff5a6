/* Checks before an operation on etcd: all members are queried, and an operation that cannot work
 * now is refused. Blocks; the caller releases the view in any case. */
#ifndef SLIPWAY_ETCD_PREPARE_H
#define SLIPWAY_ETCD_PREPARE_H

#include "cluster/etcd/etcd.h"
#include "cluster/etcd/snapshots.h"

/* Chooses a name (`dir` and `to` as in snapshot_name) and checks the free space.
 * Its steps follow. */
int snapshot_prepare(struct snapshot *s, struct site *site, struct etcd_view *v, const char *dir,
        const char *to, struct error *err);
void snapshot_steps(struct snapshot *s, const struct etcd_view *v);
/* defrag_steps follows. */
int defrag_prepare(struct site *site, struct etcd_view *v, struct error *err);

#endif
