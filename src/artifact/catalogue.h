/* The catalogue: all programs and images of a cluster, with the versions for
 * each Kubernetes minor. */
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
        ART_CALICO_NODE,
        ART_CALICO_CNI, /* calico and calico-ipam: one program */
        ART_MULTUS,     /* of the addon */
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
        /* Of addons: only where the file has them. */
        IMG_METRICS_SERVER,
        IMG_LOCAL_PATH,
        IMG_KUBE_STATE_METRICS,
        IMG_REGISTRY,
        IMG_NODE_PROBLEM_DETECTOR,
        IMG_KUBE_VIP,
        IMG_KUBE_VIP_CLOUD,
        IMG_OPENSTACK_CLOUD,
        IMG_CINDER_CSI,
        IMG_AWS_CLOUD,
        IMG_EBS_CSI,
        IMG_CSI_PROVISIONER,
        IMG_CSI_ATTACHER,
        IMG_CSI_RESIZER,
        IMG_CSI_REGISTRAR,
        IMG_CSI_LIVENESS,
        IMG_TRAEFIK,
        IMG_PROMETHEUS,
        IMG_NODE_EXPORTER,
        IMG_DEX,                /* of services.dex */
        IMG_CALICO_CONTROLLERS, /* of the fabric calico */
        /* Only for machines that kubeadm joined, which pull them: our own nodes have these as
           services. */
        IMG_KUBE_PROXY,
        IMG_FLANNEL,
        IMG_FLANNEL_PLUGIN,
        IMG_COUNT
};

/* slipway's own image: the agent as the probe that verifies a cluster. It is made from the running
 * program, wherever everything else comes from. */
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

/* Fills in the versions for one Kubernetes version; strings are in the arena. False: unknown minor;
 * catalogue_minors() lists the known ones ("1.34, 1.35, 1.36"). */
bool catalogue_for(struct arena *a, const struct version *kubernetes, struct catalogue *out);
const char *catalogue_minors(void);
const char *catalogue_newest(void);    /* "1.36.1" */
#define CALICO_VERSION        "3.28.5" /* the same for every minor */
#define NODE_EXPORTER_VERSION "1.9.1"
/* The version of a tool that only the tests use; NULL: there is no such tool. */
const char *catalogue_tool(const char *name);

/* Whether the cluster needs it at all: images of addons only if the file has the addon. */
bool image_wanted(const struct cluster *c, enum image_id id);

/* The image with the tag of `wanted`, another image of the same program: in the arena, or `image`
 * itself if its tag has no version, is not older (`down`: is equal) or a digest pins it. */
const char *image_follow(struct arena *a, const char *image, const char *wanted, bool down);

#endif
