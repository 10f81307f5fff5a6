/* What a cluster holds from the first minute, as YAML for kube_apply: kubeadm's bootstrap objects, the fabric's permissions, DNS. Pure: no network, no disk. */
#ifndef SLIPWAY_ADDON_H
#define SLIPWAY_ADDON_H

#include "node/nodespec.h"

/* kubeadm's ConfigMaps, bootstrap token and RBAC. `kubelet` is a worker's rendered /var/lib/kubelet/config.yaml: what is the node's own is taken out of it. The token expires a day after `now`. */
int addon_bootstrap(const struct cluster *c, const struct identity *id, const char *kubelet, time_t now, struct str *out, struct error *err);
/* The binding of the users who are admins. */
#define ADMINS_BINDING "slipway:admins"
void addon_admins(const struct cluster *c, struct str *out);
/* Empty unless the fabric is flannel. */
void addon_fabric(const struct cluster *c, struct str *out);
/* kube-proxy and flannel as pods on nodes that kubeadm joined, with the configuration `node` has; without either where it has none. */
void addon_joined(const struct cluster *c, const struct nodespec *node, struct str *out);
void addon_dns(const struct cluster *c, struct str *out);
/* The namespace slipway-verify: a probe on every node behind a service of that name. */
void addon_verify(const struct cluster *c, const char *service, struct str *out);

#endif
