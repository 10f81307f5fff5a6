/* The versions with which nodes were healthy, kept in the record. A node that does not become
 * healthy with a new version is returned to the one before. The API cannot always tell which one
 * that was: it may be down, or a Node may report the new version although the node is not healthy.
 *
 *   proven_begin     before a node is changed to another version: the one before is kept
 *   proven_healthy   it was seen healthy with the wanted version
 *   proven_back      it was returned to the one before
 *
 * A run that is killed in between leaves both versions in the record. */
#ifndef SLIPWAY_PROVEN_H
#define SLIPWAY_PROVEN_H

#include "cluster/site/site.h"

/* The version with which this node was last healthy. NULL: unknown, or it was on another machine.
 */
const char *member_healthy_version(const struct member *m);
/* A run has begun to change its version, and none has seen it healthy since. */
bool member_unproven(const struct member *m);
/* The same, and the version is the one that is wanted now. */
bool member_unproven_wanted(const struct member *m);

/* `before`: its version now, from the API or the record. */
void proven_begin(struct member *m, const char *before);
/* Not written to disk if nothing was begun: the end of the run does that, for all nodes at once. */
void proven_healthy(struct member *m);
void proven_back(struct member *m);

#endif
