/* Which paths on a node may be given to a program of the cluster: one table for who reads the file
 * and for the agent, which does not take the operator's word for it. */
#ifndef SLIPWAY_PATHS_H
#define SLIPWAY_PATHS_H

#include "base/base.h"

/* What is kept in a path; PATH_FILE: one file that the user adds. */
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
/* A directory of the system or of people: its mode and owner are not ours to set, nor is it ours to
 * empty. Clean. */
bool path_shared(const char *path);
/* Why the path may not be used so: the rest of a sentence that begins with the path; NULL: it may.
 * `of` is set to what it speaks of, or NULL. Clean. */
const char *path_refused(const char *path, enum path_use use, const char **of);

#endif
