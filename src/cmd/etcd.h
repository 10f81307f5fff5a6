/* The actions of `slipway etcd`, shared by its files. */
#ifndef SLIPWAY_CMD_ETCD_H
#define SLIPWAY_CMD_ETCD_H

#include "cluster/etcd/etcd.h"
#include "cmd/operate.h"

int etcd_snapshot_run(const struct options *o, struct error *err);
int etcd_restore_run(const struct options *o, struct error *err);
int etcd_recover_run(const struct options *o, struct error *err);
int etcd_drill_run(const struct options *o, struct error *err);
int etcd_defrag_run(const struct options *o, struct error *err);

/* Starts zeroed. What every action needs: the file, the site with its lock, the event loop. */
struct etcd_job {
        const struct options *o;
        struct arena arena;
        struct event_base *base;
        struct cluster *cluster;
        struct site site;
        bool opened;
        struct etcd_view view;
};
int etcd_job_open(struct etcd_job *j, const struct options *o, const char *verb, struct error *err);
void etcd_job_release(struct etcd_job *j);

#endif
