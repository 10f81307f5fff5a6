/* kubeconfig_merge (pki/identity.h) in the user's own file. */
#ifndef SLIPWAY_MERGE_FILE_H
#define SLIPWAY_MERGE_FILE_H

#include "base/error.h"

/* The file is `given`, or the one that kubectl would write to: of KUBECONFIG, or ~/.kube/config. It
 * is changed under kubectl's lock. *path and *current are malloc'd, also after an error. */
int kubeconfig_merge_file(const char *given, const char *ours, bool use, char **path,
        char **current, struct error *err);

#endif
