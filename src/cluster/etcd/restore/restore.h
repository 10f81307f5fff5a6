/* Putting a snapshot back: everywhere or nowhere. The control plane and etcd are stopped on all of
 * their nodes, every member gets the same data under a new cluster token, and all are started at
 * once (one that is started alone waits for a quorum). The revision is raised far beyond any that
 * was ever seen and all before it is marked compacted, so that no kubelet or controller goes on
 * with what it remembers.
 *
 * Interrupted: STATE/NAME/etcd-restore.json says what was begun and under which token; each node
 * remembers the token it was restored under, so the next run goes on. The data that was there
 * before stays as before-restore in the data directory until the end; etcd-restore.json says when
 * nothing but that is left to do. */
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
        bool part; /* it gets the data: an etcd node that takes part */
        bool left; /* it is left out: unreachable, and its owner says that it is gone for good */
        struct transfer transfer;
        struct step *place, *send, *stop, *put, *start;
};

struct restore {
        struct site *site;
        struct snapshot *snapshot;
        bool live; /* the nodes are whole: before all is stopped they get what is new, and nothing
                      of it is put in its place */
        struct member *
                survivor; /* recover: who has the newest data; NULL: the snapshot is here already */
        struct etcd_state last; /* of the survivor; its texts are not used */
        time_t until; /* the survivor's data goes up to then, to a few seconds; 0: unknown */
        struct restore_node *nodes;
        char *marker; /* path */
        const char *token;
        bool restored;       /* by a run before this one: all members have the data and live */
        const char *initial; /* name=url,… of those that take part */
        time_t begun;
};

/* Onto every etcd node of cluster.yaml; machines that are not there are made. */
void restore_init(struct restore *r, struct site *s, struct snapshot *snapshot);
/* After restore_init: chooses the survivor, or refuses before anything changes. `force`: nodes that
 * cannot be reached are gone for good, and left out. */
int recover_choose(struct restore *r, const struct etcd_view *v, bool force, struct error *err);
/* After restore_init: whether what is lost by it was approved; `loss` says what, where that had to
 * be found out. The view is the caller's to release. */
int restore_prepare(struct restore *r, struct etcd_view *v, enum approval given, struct str *loss,
        struct error *err);
/* The members looked at (and started), the survivor chosen, a name and room for its snapshot. */
struct recover_options {
        const char *dir, *to; /* of snapshot_name */
        bool force;           /* of recover_choose */
};
int recover_prepare(struct restore *r, struct site *site, struct snapshot *s, struct etcd_view *v,
        const struct recover_options *o, struct error *err);
void restore_steps(struct restore *r);
void restore_release(struct restore *r);
/* A restore that was begun and did not end must end first: refuses with a sentence. */
int restore_unfinished(const struct site *s, struct error *err);
/* That one is part of a rollback, which goes on with it. Any other is none of its business: it may
 * be of another snapshot, and ends as it was begun. */
bool restore_of_rollback(const struct site *s);

/* The same snapshot was being put back when a run before this one ended. */
bool restore_begun(const struct restore *r);

/* How old the survivor's data is, as a part of a sentence; in the arena. */
const char *recover_until(const struct restore *r);
/* When the newest of these Leases was renewed, in seconds since 1970; 0: none says. `hex`: values
 * of etcd one after another, as the API server stores them. */
int64_t lease_newest(const char *hex);

/* recover.c: the survivor's newest data as a snapshot, here. arg: restore */
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
