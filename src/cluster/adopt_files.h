/* Between the files of adopt: which files of a control-plane host are read. */
#ifndef SLIPWAY_ADOPT_FILES_H
#define SLIPWAY_ADOPT_FILES_H

#include "cluster/adopt.h"

enum adopt_file {
        AT_ADMIN,
        AT_CA_CRT,
        AT_CA_KEY,
        AT_ETCD_CA_CRT,
        AT_ETCD_CA_KEY,
        AT_FRONT_CA_CRT,
        AT_FRONT_CA_KEY,
        AT_SA_KEY,
        AT_APISERVER,
        AT_CONTROLLER_MANAGER,
        AT_SCHEDULER,
        AT_ETCD,
        AT_KUBELET_CONFIG,
        AT_FILE_COUNT
};

json_t *adopt_yaml(struct adopt *a, const char *what, const char *text, struct error *err);
/* The first container's flags of a static pod: {name: value}. NULL when it is none. */
json_t *adopt_flags(const json_t *pod);
const char *adopt_flag(const json_t *flags, const char *name); /* NULL: not set */

#endif
