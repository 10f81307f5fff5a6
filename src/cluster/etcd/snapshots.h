/* Snapshots of etcd on this computer: STATE/NAME/snapshots/NAME-20261116T002512Z.db, and beside
 * each NAME.db.sha256 (for sha256sum -c) and NAME.db.json. */
#ifndef SLIPWAY_SNAPSHOTS_H
#define SLIPWAY_SNAPSHOTS_H

#include "base/sha256.h"
#include "cluster/site/site.h"

struct snapshot {
        struct site *site;
        const char *path; /* of the .db; in the arena */
        char digest[SHA256_HEX];
        int64_t size, revision, keys; /* revision, keys: -1 without a .json */
        const char *version;          /* of etcd; NULL: unknown */
        const char *taken;            /* "2026-11-16T00:25:12Z"; NULL: unknown */
        const char *node;             /* where it was taken; NULL: unknown */
        const char *cluster, *id;     /* whose data it is; NULL: unknown */
        int64_t expected;             /* size of the store, to check the free space */
};

/* The path of a new snapshot: `to`, or a new name in `dir`, or in the cluster's own directory
 * (which is created). */
int snapshot_name(
        struct snapshot *s, struct site *site, const char *dir, const char *to, struct error *err);
/* Refuses if the file system has no space for `expected` bytes. */
int snapshot_room(const struct snapshot *s, struct error *err);
/* Writes .sha256 and .json once the .db is complete. */
int snapshot_describe(const struct snapshot *s, struct error *err);
json_t *snapshot_json(const struct snapshot *s);

/* A snapshot by path, or by name in the cluster's directory; NULL: the newest there. Its
 * digest is checked. Refuses files that are unknown, damaged, no snapshot, or of another
 * cluster (unless `force`). */
int snapshot_open(
        struct snapshot *s, struct site *site, const char *name, bool force, struct error *err);

/* Reads what a node printed about its snapshot: etcdutl's JSON, the digest and the size, one per
 * line. Returns false if that is invalid. */
bool snapshot_said(struct snapshot *s, const char *lines);
/* Transfers it here from c->remote if there is space, otherwise ends c->step. c has step, member,
 * remote, fn and arg. */
struct transfer;
void snapshot_bring(struct snapshot *s, struct transfer *c);

/* A step: the best of the connected etcd members saves the snapshot and checks it; then it is
 * transferred here. arg: struct snapshot that has its name already. */
void step_snapshot(struct step *s);

#endif
