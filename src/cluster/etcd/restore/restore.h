/* Restoring a snapshot, on all nodes or on none. The control plane and etcd are stopped on all
 * their nodes, every member gets the same data under a new cluster token, and all are started at
 * once (a single one would wait for a quorum). The revision is raised far above any that was ever
 * used, and everything before it is marked compacted, so that no kubelet or controller continues
 * with its cache.
 *
 * An interrupted restore continues in the next run: STATE/NAME/etcd-restore.json has what was begun
 * and its token, and each node stores the token that it was restored under. The previous data stays
 * as before-restore in the data directory until the end; etcd-restore.json tells when only its
 * removal is left to do. */
#ifndef SLIPWAY_RESTORE_H
#define SLIPWAY_RESTORE_H

#include <time.h>

#include "cluster/etcd/transfer.h"
#include "cluster/etcd/etcd.h"
#include "cluster/etcd/snapshots.h"
#include "cluster/plan/approval.h"

struct restore;
struct restore_node {
        struct restore *restore;
        struct member *member;
        bool part; /* an etcd node that gets the data */
        /* unreachable and left out, because the user said that it is lost */
        bool left;
        struct transfer transfer;
        struct step *place, *send, *stop, *put, *start;
};

struct restore {
        struct site *site;
        struct snapshot *snapshot;
        /* the nodes are running: before they are stopped they receive new files, but do
         * not install them */
        bool live;
        /* recover: the member with the newest data; NULL: the snapshot is on
         * this computer already */
        struct member *survivor;
        struct etcd_state last; /* of the survivor; its texts are not used */
        time_t until;           /* the survivor has data up to this time (about); 0: unknown */
        struct restore_node *nodes;
        char *marker; /* path of etcd-restore.json */
        const char *token;
        bool restored;       /* an earlier run restored all members, and they are running */
        const char *initial; /* name=url,… of the nodes with `part` */
        time_t begun;
};

/* A restore onto every etcd node of cluster.yaml; missing machines are created. */
void restore_init(struct restore *r, struct site *s, struct snapshot *snapshot);
/* After restore_init: chooses the survivor, or refuses before anything changes. With `force`,
 * unreachable nodes count as lost and are left out. */
int recover_choose(struct restore *r, const struct etcd_view *v, bool force, struct error *err);
/* After restore_init: refuses unless the loss of data was approved; `loss` describes it if it had
 * to be found out. The caller releases the view. */
int restore_prepare(struct restore *r, struct etcd_view *v, enum approval given, struct str *loss,
        struct error *err);
/* Queries (and starts) the members, chooses the survivor, and chooses a name for its snapshot and
 * checks the free space. */
struct recover_options {
        const char *dir, *to; /* of snapshot_name */
        bool force;           /* of recover_choose */
};
int recover_prepare(struct restore *r, struct site *site, struct snapshot *s, struct etcd_view *v,
        const struct recover_options *o, struct error *err);
void restore_steps(struct restore *r);
void restore_release(struct restore *r);
/* Refuses with a sentence if an unfinished restore must be completed first. */
int restore_unfinished(const struct site *s, struct error *err);
/* The unfinished restore belongs to a rollback, which continues it. A rollback leaves any other one
 * alone: that may have another snapshot. */
bool restore_of_rollback(const struct site *s);

/* An earlier run did not finish restoring this snapshot. */
bool restore_begun(const struct restore *r);

/* The age of the survivor's data, as part of a sentence; allocated in the arena. */
const char *recover_until(const struct restore *r);
/* When the newest of these Leases was renewed, in seconds since 1970; 0: unknown. `hex` has values
 * of etcd one after another, as the API server stores them. */
int64_t lease_newest(const char *hex);

/* recover.c: saves the survivor's data as a snapshot on this computer. arg: restore */
void step_recover_save(struct step *s);
/* restore_node.c: arg: restore_node */
void step_restore_room(struct step *s);
void step_restore_place(struct step *s);
void step_restore_send(struct step *s);
void step_restore_stop(struct step *s);
void step_restore_put(struct step *s);
void step_restore_start(struct step *s);
void step_restore_kubelet(struct step *s);
void step_restore_clean(struct step *s);
#define RESTORE_FILE "/var/lib/slipway/etcd/restore.db"

#endif
