/* Between the parts of taking Kubernetes off a host. Each finds by looking what there is to do, and may be done again. */
#ifndef SLIPWAY_RESET_H
#define SLIPWAY_RESET_H

#include "agent/agent.h"

/* Tells of something that was removed, or could not be, and is no entry of the record. */
void reset_event(struct agent *a, enum spec_kind kind, const char *name, enum wire_state state, const char *detail);
bool reset_foreign(struct agent *a, const char *path); /* data of a runtime that was the host's before us */

/* reset_run.c */
void reset_processes(struct agent *a); /* containers and what holds them */
void reset_mounts(struct agent *a);    /* below the directories of the cluster */
void reset_cgroups(struct agent *a);
/* Removes all that is in a directory, never across a mount. How many entries it had, or negative. */
int tree_empty(const char *full, struct error *err);

/* reset_net.c */
void reset_links(struct agent *a); /* and their routes and addresses */

/* reset_rules.c */
void reset_rules(struct agent *a); /* of iptables, nftables, ipvs */

/* package.c */
void reset_packages(struct agent *a); /* those that came with us and nobody else needs */

#endif
