/* Objects of every cluster, as YAML for kube_apply: kubeadm's bootstrap objects, permissions of the
 * fabric, DNS. Pure: no network, no disk. */
#ifndef SLIPWAY_ADDON_H
#define SLIPWAY_ADDON_H

#include <jansson.h>

#include "config/addon.h"
#include "node/nodespec.h"

/* kubeadm's ConfigMaps and RBAC. `kubelet` is a worker's rendered /var/lib/kubelet/config.yaml,
 * from which fields of that node are removed. There is no bootstrap token: slipway token create
 * makes one when a machine is to join. */
int addon_bootstrap(const struct cluster *c, const struct identity *id, const char *kubelet,
        struct str *out, struct error *err);
/* The ClusterRoleBinding of users who are administrators. */
#define ADMINS_BINDING "slipway:admins"
void addon_admins(const struct cluster *c, struct str *out);
/* The objects of auth.bindings: one for each role and namespace. No others have both this label and
 * such a name. */
#define BINDINGS_PREFIX "slipway:bindings:"
#define BINDINGS_LABEL  "slipway.dev/auth"
#define BINDINGS_VALUE  "bindings"
json_t *addon_bindings(const struct cluster *c);
/* Permissions and definitions of a built-in fabric; empty for others. */
void addon_fabric(const struct cluster *c, struct str *out);
/* kube-proxy and flannel as pods for nodes that kubeadm joined, with the configuration of `node`;
 * each only if `node` has it. */
void addon_joined(const struct cluster *c, const struct nodespec *node, struct str *out);
void addon_dns(const struct cluster *c, struct str *out);
/* Of an addon that is built in. */
void addon_objects(const struct cluster *c, enum addon_id id, struct str *out);
/* The identity provider of services.dex. Secrets are in it: the texts of files, and its key. */
void addon_dex(const struct cluster *c, const struct identity *id, struct str *out);
/* The namespace slipway-verify: a probe on every node behind a service of that name. */
void addon_verify(const struct cluster *c, const char *service, struct str *out);
/* A pod of that name with a volume of the default StorageClass, in the same namespace: "keep"
 * writes the token to it, "kept" reads it again. */
void addon_verify_storage(const struct cluster *c, const char *name, const char *verb,
        const char *token, struct str *out);
/* An Ingress in the same namespace, whose path leads to the service of that name. */
void addon_verify_ingress(const char *service, struct str *out);

#endif
