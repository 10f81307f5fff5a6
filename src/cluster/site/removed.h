/* The record of the cluster and its nodes, and nodes that are no longer in the file. */
#ifndef SLIPWAY_REMOVED_H
#define SLIPWAY_REMOVED_H

#include "cluster/site/site.h"

/* Whether the cluster's API has answered before: then a blank etcd means lost data. */
bool site_existed(const struct site *s);
/* Whether there may be a cluster: a run has begun to change nodes, or it was adopted. An Identity
 * alone is none, since 'render' makes one too. */
bool site_begun(const struct site *s);
/* For verbs that change an existing cluster: refuses one that was never created. */
int site_must_exist(const struct site *s, struct error *err);
/* Writes the record, unless the run only looks. */
void site_record_save(struct site *s);
/* The API has answered: writes that into the record. */
void site_record_cluster(struct site *s);
/* At the end of a run: deletes the removed nodes from the record. */
void site_record_prune(struct site *s);
/* The cluster was removed: deletes all nodes from the record. */
void site_record_clear(struct site *s);

/* ---- nodes that are no longer in the file ---- */
/* Adds a node of the file to the record when it is about to be changed, or is unchanged. */
void member_record(struct member *m);
/* Deletes a node from the record after its host was reset. */
void member_unrecord(struct member *m);
/* A sentence if the host's machine-id differs from the recorded one, otherwise NULL. */
const char *member_replaced(const struct member *m);
/* The node's row if the file has another address than the record, otherwise NULL. */
const struct host_record *member_moved(const struct member *m);
/* Fills found.removed with the nodes that are in the record but not in the file, and adds steps
 * before `observe` that check whether they can be reached. */
void removed_read(struct site *s);
void removed_steps(struct site *s, struct step *observe);
/* Adds removed nodes that only the API, etcd or the provider knows, and drops those that are
 * fully removed already. */
void removed_observed(struct site *s);
/* Adds steps before `next` that connect to removed nodes whose host is known and was not
 * connected to yet. */
void removed_connect(struct site *s, struct step *next);
struct member *removed_find(const struct site *s, const char *name);

#endif
