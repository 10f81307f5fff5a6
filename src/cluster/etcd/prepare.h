/* Before an operation on etcd begins: all members are looked at, and what cannot be done now is
 * refused. Foreground; the view is released by the caller in any case. */
#ifndef SLIPWAY_ETCD_PREPARE_H
#define SLIPWAY_ETCD_PREPARE_H

#include "cluster/etcd/etcd.h"
#include "cluster/etcd/snapshots.h"

/* A snapshot with a name (snapshot_name has dir and to) and room for it; then its steps. */
int snapshot_prepare(struct snapshot *s, struct site *site, struct etcd_view *v, const char *dir,
        const char *to, struct error *err);
void snapshot_steps(struct snapshot *s, const struct etcd_view *v);
/* Then defrag_steps. */
int defrag_prepare(struct site *site, struct etcd_view *v, struct error *err);

#endif
