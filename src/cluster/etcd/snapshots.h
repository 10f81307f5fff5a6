/* Snapshots of etcd as files here: STATE/NAME/snapshots/NAME-20261116T002512Z.db, beside each
 * NAME.db.sha256 (as sha256sum -c reads it) and NAME.db.json. */
#ifndef SLIPWAY_SNAPSHOTS_H
#define SLIPWAY_SNAPSHOTS_H

#include "base/sha256.h"
#include "cluster/site/site.h"

struct snapshot {
        struct site *site;
        const char *path; /* of the .db; in the arena */
        char digest[SHA256_HEX];
        int64_t size, revision, keys; /* revision, keys: -1 when no .json says them */
        const char *version;          /* of etcd; NULL: unknown */
        const char *taken;            /* "2026-11-16T00:25:12Z"; NULL: unknown */
        const char *node;             /* where; NULL: unknown */
        const char *cluster, *id;     /* whose it is; NULL: unknown */
        int64_t expected; /* bytes of the store when it was looked at: for the check of room */
};

/* Where one that is taken now would go: `to`, or a new name in `dir`, or in the cluster's own
 * directory (which is made). */
int snapshot_name(
        struct snapshot *s, struct site *site, const char *dir, const char *to, struct error *err);
/* Refuses when the file system there has no room for `expected`. */
int snapshot_room(const struct snapshot *s, struct error *err);
/* What stands beside it, once the .db is whole. */
int snapshot_describe(const struct snapshot *s, struct error *err);
json_t *snapshot_json(const struct snapshot *s);

/* A snapshot by its path, or its name in the cluster's directory; NULL: the newest there. Its
 * digest is compared with what stands beside it. Refused: unknown, damaged, of another cluster
 * (unless `force`), not a snapshot at all. */
int snapshot_open(
        struct snapshot *s, struct site *site, const char *name, bool force, struct error *err);

/* What the node says of one that it made: three lines, etcdutl's JSON, the digest, the size. false:
 * that cannot be read. */
bool snapshot_said(struct snapshot *s, const char *lines);
/* Brings it here from c->remote, when there is room; ends c->step when there is none. c has step,
 * member, remote, fn and arg. */
struct transfer;
void snapshot_bring(struct snapshot *s, struct transfer *c);

/* The step: the healthiest of the etcd members that are connected takes it, it is checked there,
 * and comes here. arg: struct snapshot, named already. */
void step_snapshot(struct step *s);

#endif
