/* Shared by the files of adopt: which files of a control-plane host are read. */
#ifndef SLIPWAY_ADOPT_FILES_H
#define SLIPWAY_ADOPT_FILES_H

#include "cluster/adopt/adopt.h"
#include "config/scalar.h"

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

/* Host and port of the API in a kubeconfig; false: it has none. */
bool adopt_server(const char *url, char host[HOST_MAX], long *port);

json_t *adopt_yaml(struct adopt *a, const char *what, const char *text, struct error *err);
/* The flags of a static pod's first container: {name: value}. NULL: not a pod. */
json_t *adopt_flags(const json_t *pod);
const char *adopt_flag(const json_t *flags, const char *name); /* NULL: not set */

/* The path on the host of a path inside the pod, or NULL. */
const char *adopt_host_path(struct adopt *a, const json_t *pod, const char *path);
/* The volume belongs to a file that is adopted. */
bool adopt_knows_volume(const json_t *flags, const json_t *pod, const char *volume);
/* Further files of the host to read; NULL: none. */
void adopt_extra_paths(struct adopt *a, const char *out[EXTRA_COUNT]);
/* Sets spec.audit and spec.encryption; stores the key in the adopt. */
int adopt_audit(
        struct adopt *a, const json_t *pod, const json_t *flags, json_t *spec, struct error *err);
int adopt_encryption(struct adopt *a, const json_t *flags, json_t *spec, struct error *err);

#endif
