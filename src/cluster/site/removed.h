/* What the record says of the cluster and its nodes, and nodes that are no longer in the file. */
#ifndef SLIPWAY_REMOVED_H
#define SLIPWAY_REMOVED_H

#include "cluster/site/site.h"

/* Whether the cluster has ever had an API: a blank etcd beside that is a loss, not a beginning. */
bool site_existed(const struct site *s);
/* It has one: recorded. */
void site_record_cluster(struct site *s);
/* A run is over: who was to leave has left, and is no longer in the record. */
void site_record_prune(struct site *s);
/* The cluster is no more: nobody is in the record. */
void site_record_clear(struct site *s);

/* ---- nodes that are no longer in the file ---- */
/* A node of the file is about to be changed, or is as it should be: the record has it from now on.
 */
void member_record(struct member *m);
/* Its host was reset. */
void member_unrecord(struct member *m);
/* Its host says another machine-id than the record has: a sentence, or NULL. */
const char *member_replaced(const struct member *m);
/* The file has another address for it than the record: the record's row, or NULL. */
const struct host_record *member_moved(const struct member *m);
/* s->gone: those of the record that are not in the file; and steps before `observe` that see
 * whether they answer. */
void removed_read(struct site *s);
void removed_steps(struct site *s, struct step *observe);
/* Adds what the API, etcd and the provider know beyond that, and drops who has left already. */
void removed_observed(struct site *s);
/* Steps before `next` that connect to those of them whose host is known and was not asked yet. */
void removed_connect(struct site *s, struct step *next);
struct member *removed_find(const struct site *s, const char *name);

#endif
