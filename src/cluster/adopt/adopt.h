/* Adopting a cluster that kubeadm made: its state is read from one control-plane host and the API;
 * nothing is changed. */
#ifndef SLIPWAY_ADOPT_H
#define SLIPWAY_ADOPT_H

#include "deliver/link/link.h"
#include "pki/identity.h"

/* Files named by flags of kube-apiserver. */
enum adopt_extra { EXTRA_AUDIT, EXTRA_ENCRYPTION, EXTRA_COUNT };
#define ADOPT_POLICY "audit-policy.yaml" /* beside cluster.yaml */

struct adopt {
        struct arena *arena;
        struct event_base *base;
        struct link_target target;
        const char *extra[EXTRA_COUNT]; /* texts; NULL: none */
        /* from the encryption configuration, after adopt_write has read it; NULL: none */
        const char *key, *key_name;
        const char **files;            /* texts, in the order of adopt_paths; NULL: missing */
        int cgroup;                    /* version on that host */
        json_t *config;                /* kubeadm's ClusterConfiguration */
        json_t *nodes;                 /* the API's list */
        char *version;                 /* the API server's, "1.36.1" */
        const char *endpoint;          /* host:port in the kubeconfigs */
        char *proxy_mode;              /* of kube-proxy's DaemonSet; NULL: there is none */
        char *proxy_image, *dns_image; /* NULL: there is none */
};

/* Reads the host's files over ssh, then queries the API. Refuses what cannot be kept unchanged,
 * with one sentence each. */
int adopt_read(struct adopt *a, struct error *err);
/* Writes a cluster.yaml that changes as little as possible. `name` NULL: the
 * cluster's current name. */
int adopt_write(struct adopt *a, const char *name, struct str *out, struct error *err);
/* The CAs and keys for its Identity; borrowed. */
int adopt_given(struct adopt *a, struct identity_given *out, struct error *err);
void adopt_release(struct adopt *a);

#endif
