/* The catalogue: every program and image a cluster is made of, with the versions that belong to one
 * Kubernetes minor. */
#ifndef SLIPWAY_CATALOGUE_H
#define SLIPWAY_CATALOGUE_H

#include "config/cluster.h"

enum artifact_id {
        ART_KUBELET,
        ART_KUBE_PROXY,
        ART_KUBEADM,
        ART_KUBECTL,
        ART_ETCD,
        ART_ETCDCTL,
        ART_ETCDUTL,
        ART_CONTAINERD,
        ART_CONTAINERD_SHIM,
        ART_CTR,
        ART_CRIO,
        ART_CONMON,
        ART_RUNC,
        ART_CRUN,
        ART_CRICTL,
        ART_CNI_PLUGINS, /* a set of programs in /opt/cni/bin */
        ART_FLANNELD,
        ART_FLANNEL_CNI,
        ART_COUNT
};
enum image_id {
        IMG_APISERVER,
        IMG_CONTROLLER_MANAGER,
        IMG_SCHEDULER,
        IMG_COREDNS,
        IMG_PAUSE,
        IMG_HAPROXY,
        IMG_KEEPALIVED,
        IMG_PROBE,
        IMG_ETCD,
        IMG_DEX, /* of services.dex */
        /* Only for machines that kubeadm joined, which pull them: our own nodes have these as
           services. */
        IMG_KUBE_PROXY,
        IMG_FLANNEL,
        IMG_FLANNEL_PLUGIN,
        IMG_COUNT
};

/* Our own image: the agent as the probe that verifies a cluster. It is made of the program that
 * runs, wherever everything else comes from. */
#define PROBE_IMAGE "slipway.dev/probe:"

struct artifact {
        const char *name;    /* "kubelet" */
        const char *version; /* "1.36.1" */
};
struct image {
        const char *name; /* "registry.k8s.io/kube-apiserver:v1.36.1" */
};

struct catalogue {
        struct artifact artifacts[ART_COUNT];
        struct image images[IMG_COUNT];
};

/* Fills the versions for one Kubernetes version; strings live in the arena. False when that minor
 * is not known: catalogue_minors() lists those that are ("1.34, 1.35, 1.36"). */
bool catalogue_for(struct arena *a, const struct version *kubernetes, struct catalogue *out);
const char *catalogue_minors(void);
const char *catalogue_newest(void); /* "1.36.1" */
/* The version of a tool that only the tests use; NULL: there is no such tool. */
const char *catalogue_tool(const char *name);

/* The image with the tag of `wanted`, another image of the same program: in the arena, or `image`
 * itself when its tag says no version, is as new already (`down`: is the same) or a digest pins it.
 */
const char *image_follow(struct arena *a, const char *image, const char *wanted, bool down);

#endif
