/* Returns to the version before the upgrade. That version may not be able to read the stored
 * objects: then the snapshot from before the upgrade is restored as well, on all nodes at once, and
 * the old version starts with it.
 *
 *   rollback_look      what can be returned to, and whether the store must be restored too
 *   upgrade_edit       the file with the old version (version.h)
 *   rollback_open …    if rollback_stores: the snapshot, its approval, its steps
 *   up                 with allow_down
 *
 * If it is killed: the file has the old version as soon as the plan is approved, and the restore is
 * recorded as unfinished; the next rollback continues. */
#ifndef SLIPWAY_UPGRADE_ROLLBACK_H
#define SLIPWAY_UPGRADE_ROLLBACK_H

#include "cluster/etcd/restore/restore.h"
#include "cluster/plan/approval.h"

struct rollback { /* starts zeroed */
        struct version to;
        const char *previous; /* the snapshot in previous.json; NULL: none */
        /* API groups that are stored in another version now; NULL: none */
        const char *changed;
        bool begun;        /* its restore was started and is unfinished */
        struct site *site; /* set by rollback_open */
        struct snapshot snapshot;
        struct restore restore;
};

/* Needs only site_look. `force`: the store is not restored, whatever it contains. */
int rollback_look(struct rollback *b, struct site *s, bool force, struct error *err);
bool rollback_stores(const struct rollback *b);
/* Opens a site for the Cluster with the old version; finds and checks the snapshot. */
int rollback_open(struct rollback *b, struct site *s, struct error *err);
/* The plan as text and as JSON. */
void rollback_text(const struct rollback *b, struct str *out);
json_t *rollback_json(const struct rollback *b);
int rollback_approved(const struct rollback *b, enum approval given, struct error *err);
void rollback_steps(struct rollback *b);
void rollback_release(struct rollback *b);

#endif
