/* Shared by the parts of a reset. Each finds out what there is to remove, and may run again. */
#ifndef SLIPWAY_RESET_H
#define SLIPWAY_RESET_H

#include "agent/agent.h"

/* Reports something that was removed, or could not be, and is no entry of the record. */
void reset_event(struct agent *a, enum spec_kind kind, const char *name, enum wire_state state,
        const char *detail);

/* data.c */
/* Data of a runtime that the host had before the first run. */
bool reset_foreign(struct agent *a, const char *path);
bool reset_mounted(struct agent *a, const struct entry *e, const char *mount);
/* Refuses the reset when a directory of the spec may not be emptied. */
int reset_allowed(struct agent *a, struct error *err);
void reset_data(struct agent *a);
void places_restore(struct agent *a);

/* run.c */
void reset_processes(struct agent *a); /* processes of containers, and their shims */
void reset_mounts(struct agent *a);    /* below the directories of the cluster */
void reset_cgroups(struct agent *a);
/* Removes the entries of a directory that `goes` accepts, never across a mount. Returns how many,
 * or negative. */
int tree_empty(
        const char *full, bool (*goes)(const char *name, void *arg), void *arg, struct error *err);

/* net.c */
void reset_links(struct agent *a); /* and their routes and addresses */

/* rules.c */
void reset_rules(struct agent *a); /* of iptables, nftables and ipvs */

/* package.c */
void reset_packages(struct agent *a); /* those that the agent installed and nothing else needs */

#endif
