/* The actions of `slipway etcd`, between its files. */
#ifndef SLIPWAY_CMD_ETCD_H
#define SLIPWAY_CMD_ETCD_H

#include "cmd/cmd.h"

int etcd_snapshot_run(const struct options *o, struct error *err);
int etcd_restore_run(const struct options *o, struct error *err);
int etcd_recover_run(const struct options *o, struct error *err);
int etcd_drill_run(const struct options *o, struct error *err);
int etcd_defrag_run(const struct options *o, struct error *err);

#endif
