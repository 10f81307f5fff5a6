/* Which paths on a node may be given to the cluster's programs: one table for the rules of the file
 * and for the agent, which checks again. */
#ifndef SLIPWAY_PATHS_H
#define SLIPWAY_PATHS_H

#include "base/base.h"

/* What a path is used for; PATH_FILE: one file that the user adds. */
enum path_use {
        PATH_ETCD,
        PATH_RUNTIME,
        PATH_AUDIT,
        PATH_MOUNT,
        PATH_COPY,
        PATH_FILE,
        PATH_USE_COUNT
};

/* One slash where there were several, none at the end; malloc'd. */
char *path_clean(const char *path);
/* `path` is `dir`, or below it. Both clean. */
bool path_within(const char *dir, const char *path);
/* A directory of the system or of users: slipway sets neither its mode nor its owner, and never
 * empties it. Clean. */
bool path_shared(const char *path);
/* Why the path must not be used: the rest of a sentence that starts with the path; NULL: it may be.
 * `of` is set to the path that it is about, or NULL. Clean. */
const char *path_refused(const char *path, enum path_use use, const char **of);

#endif
