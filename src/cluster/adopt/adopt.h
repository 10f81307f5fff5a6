/* Taking over a cluster that kubeadm made: what it is, read from one control-plane host and the
 * API; nothing is changed. */
#ifndef SLIPWAY_ADOPT_H
#define SLIPWAY_ADOPT_H

#include "deliver/link/link.h"
#include "pki/identity.h"

/* Files that flags of kube-apiserver name. */
enum adopt_extra { EXTRA_AUDIT, EXTRA_ENCRYPTION, EXTRA_COUNT };
#define ADOPT_POLICY "audit-policy.yaml" /* beside cluster.yaml */

struct adopt {
        struct arena *arena;
        struct event_base *base;
        struct link_target target;
        const char *extra[EXTRA_COUNT]; /* texts; NULL: none */
        const char *key, *key_name;    /* of the encryption configuration, once adopt_write has read
                                          it; NULL: none */
        const char **files;            /* texts, as adopt_paths; NULL: not there */
        int cgroup;                    /* version, on that host */
        json_t *config;                /* kubeadm's ClusterConfiguration */
        json_t *nodes;                 /* the API's list */
        char *version;                 /* the API server's, "1.36.1" */
        const char *endpoint;          /* host:port, where kubeconfigs point */
        char *proxy_mode;              /* of kube-proxy's DaemonSet; NULL: there is none */
        char *proxy_image, *dns_image; /* NULL: there is none */
};

/* Reads the host's files over ssh, then asks the API. Refuses what cannot be kept as it is, with a
 * sentence each. */
int adopt_read(struct adopt *a, struct error *err);
/* cluster.yaml, such that what need not change stays. `name` NULL: as the cluster is called. */
int adopt_write(struct adopt *a, const char *name, struct str *out, struct error *err);
/* What its Identity is made of; borrowed. */
int adopt_given(struct adopt *a, struct identity_given *out, struct error *err);
void adopt_release(struct adopt *a);

#endif
