/* Back to the version before the upgrade. What is stored may be in a form that this version does
 * not read: then the snapshot that was taken before the upgrade is put back as well, everywhere at
 * once, with the old version started upon it.
 *
 *   rollback_look      what there is to return to, and whether the store has to go back too
 *   upgrade_edit       the file with the old version (version.h)
 *   rollback_open …    where rollback_stores says so: the snapshot, approved, then its steps
 *   up                 with allow_down
 *
 * Killed: the file names the old version from the moment the plan was approved, and the restore
 * knows that it was begun; the next rollback goes on with it. */
#ifndef SLIPWAY_UPGRADE_ROLLBACK_H
#define SLIPWAY_UPGRADE_ROLLBACK_H

#include "cluster/etcd/restore/restore.h"
#include "cluster/plan/approval.h"

struct rollback { /* starts zeroed */
        struct version to;
        const char *previous; /* the snapshot that previous.json names; NULL: none */
        const char *changed;  /* groups of the API that are stored in another version now; NULL:
                                 none */
        bool begun;           /* a restore of it was, and has not ended */
        struct site *site;    /* from rollback_open on */
        struct snapshot snapshot;
        struct restore restore;
};

/* Needs no more than site_look. `force`: the store stays as it is, whatever is in it. */
int rollback_look(struct rollback *b, struct site *s, bool force, struct error *err);
bool rollback_stores(const struct rollback *b);
/* A site of the Cluster with the old version; finds the snapshot and checks it. */
int rollback_open(struct rollback *b, struct site *s, struct error *err);
/* The plan, for people and for programs. */
void rollback_text(const struct rollback *b, struct str *out);
json_t *rollback_json(const struct rollback *b);
int rollback_approved(const struct rollback *b, enum approval given, struct error *err);
void rollback_steps(struct rollback *b);
void rollback_release(struct rollback *b);

#endif
