/* Packages of the OS, programs and images of the catalogue. */
#include "node/context.h"

/* ---- packages ---- */

static void package_add(struct nodespec *s, const char *name)
{
        if (!name || nodespec_find(s, SPEC_PACKAGE, name))
                return;
        nodespec_add(s, SPEC_PACKAGE, CLASS_IMMUTABLE)->name = arena_strdup(&s->arena, name);
}

void packages_add(const struct context *x, struct nodespec *s)
{
        const struct pool *p = x->node->pool;
        if (!(x->with & WITH_PACKAGES))
                return;
        for (size_t i = 0; x->with & ON_KUBE && i < ARRAY_SIZE(x->os->node) && x->os->node[i]; i++)
                package_add(s, x->os->node[i]);
        if (needs_met(x, ON_KUBE | WITH_BALANCER))
                package_add(s, "haproxy");
        if (needs_met(x, ON_CONTROL_PLANE | WITH_VIP))
                package_add(s, "keepalived");
        for (size_t i = 0; i < p->disks.n; i++)
                package_add(s, os_mkfs_package(p->disks.v[i].filesystem));
        for (size_t i = 0; i < p->volumes.n; i++)
                package_add(s, os_mkfs_package(p->volumes.v[i].filesystem));
        package_add(s, x->os->ntp_package);
        for (size_t i = 0; i < x->cluster->os.packages.n; i++)
                package_add(s, x->cluster->os.packages.v[i]);
}

/* ---- programs ---- */

static const struct {
        enum artifact_id id;
        with_set need;
        const char *path; /* NULL: under the OS's directory for programs */
        const char *units;
} artifacts[] = {
        { ART_ETCD, ON_ETCD | WITH_ETCD_SERVICE, NULL, "etcd.service" },
        { ART_ETCDCTL, ON_ETCD, NULL, NULL },
        { ART_ETCDUTL, ON_ETCD, NULL, NULL },
        { ART_RUNC, ON_KUBE | WITH_RUNC, NULL, NULL },
        { ART_CRUN, ON_KUBE | WITH_CRUN, NULL, NULL },
        { ART_CONTAINERD, ON_KUBE | WITH_CONTAINERD, NULL, "containerd.service" },
        { ART_CONTAINERD_SHIM, ON_KUBE | WITH_CONTAINERD, NULL, NULL },
        { ART_CTR, ON_KUBE | WITH_CONTAINERD, NULL, NULL },
        { ART_CRIO, ON_KUBE | WITH_CRIO, NULL, "crio.service" },
        { ART_CONMON, ON_KUBE | WITH_CRIO, NULL, NULL },
        { ART_CRICTL, ON_KUBE, NULL, NULL },
        { ART_CNI_PLUGINS, ON_KUBE, "/opt/cni/bin", NULL },
        { ART_FLANNEL_CNI, ON_KUBE | WITH_FLANNEL, "/opt/cni/bin/flannel", NULL },
        { ART_FLANNELD, ON_KUBE | WITH_FLANNEL, NULL, "flanneld.service" },
        { ART_CALICO_CNI, ON_KUBE | WITH_FELIX, "/opt/cni/bin/calico", NULL },
        { ART_MULTUS, ON_KUBE | WITH_MULTUS, "/opt/cni/bin/multus", NULL },
        { ART_CALICO_NODE, ON_KUBE | WITH_FELIX, NULL, "calico-node.service" },
        { ART_KUBELET, ON_KUBE, NULL, "kubelet.service" },
        { ART_KUBE_PROXY, ON_KUBE | WITH_KUBE_PROXY, NULL, "kube-proxy.service" },
        { ART_KUBEADM, ON_CONTROL_PLANE, NULL, NULL },
        { ART_KUBECTL, ON_CONTROL_PLANE, NULL, NULL },
};

void artifacts_add(const struct context *x, struct nodespec *s)
{
        for (size_t i = 0; !x->immutable && i < ARRAY_SIZE(artifacts); i++) {
                if (!needs_met(x, artifacts[i].need) ||
                        (artifacts[i].id == ART_CNI_PLUGINS && x->with & WITH_HOST_RUNTIME))
                        continue;
                const struct artifact *a = &x->catalogue.artifacts[artifacts[i].id];
                struct spec_entry *e = nodespec_add(s, SPEC_ARTIFACT, CLASS_MUTABLE);
                e->name = a->name;
                e->version = a->version;
                e->path = artifacts[i].path
                                  ? artifacts[i].path
                                  : arena_printf(&s->arena, "%s/%s", x->os->bin_dir, a->name);
                e->mode = 0755;
                e->flags = artifacts[i].id == ART_CNI_PLUGINS ? SPEC_SET : 0;
                e->units = artifacts[i].units;
        }
}

/* ---- images ---- */

static const struct {
        enum image_id id;
        with_set need;
} images[] = {
        { IMG_PAUSE, ON_KUBE },
        { IMG_PROBE, ON_KUBE },
        { IMG_ETCD, ON_ETCD | ON_KUBE | WITH_ETCD_POD },
        { IMG_HAPROXY, ON_KUBE | WITH_BALANCER | WITH_STATIC_BALANCERS },
        { IMG_KEEPALIVED, ON_CONTROL_PLANE | WITH_VIP | WITH_STATIC_BALANCERS },
        { IMG_APISERVER, ON_CONTROL_PLANE },
        { IMG_CONTROLLER_MANAGER, ON_CONTROL_PLANE },
        { IMG_SCHEDULER, ON_CONTROL_PLANE },
        { IMG_COREDNS, ON_KUBE },
        { IMG_METRICS_SERVER, ON_KUBE },
        { IMG_LOCAL_PATH, ON_KUBE },
        { IMG_KUBE_STATE_METRICS, ON_KUBE },
        { IMG_REGISTRY, ON_KUBE },
        { IMG_NODE_PROBLEM_DETECTOR, ON_KUBE },
        { IMG_KUBE_VIP, ON_KUBE },
        { IMG_KUBE_VIP_CLOUD, ON_KUBE },
        { IMG_OPENSTACK_CLOUD, ON_CONTROL_PLANE },
        { IMG_CINDER_CSI, ON_KUBE },
        { IMG_AWS_CLOUD, ON_CONTROL_PLANE },
        { IMG_EBS_CSI, ON_KUBE },
        { IMG_CSI_PROVISIONER, ON_CONTROL_PLANE },
        { IMG_CSI_ATTACHER, ON_CONTROL_PLANE },
        { IMG_CSI_RESIZER, ON_CONTROL_PLANE },
        { IMG_CSI_REGISTRAR, ON_KUBE },
        { IMG_CSI_LIVENESS, ON_KUBE },
        { IMG_TRAEFIK, ON_KUBE },
        { IMG_PROMETHEUS, ON_KUBE },
        { IMG_NODE_EXPORTER, ON_KUBE },
        { IMG_DEX, ON_CONTROL_PLANE | WITH_DEX },
        { IMG_CALICO_CONTROLLERS, ON_KUBE | WITH_CALICO_IPAM },
};

/* An image that the user chose: the host has it, or pulls it. */
static bool is_theirs(const struct cluster *c, enum image_id id, const char *name)
{
        const char *image = id == IMG_ETCD ? c->etcd.image : c->network.dns_image;
        if (id != IMG_ETCD && (id != IMG_COREDNS || c->network.manage_dns))
                return false;
        return image ? !streq(image, name) : id == IMG_COREDNS;
}

void images_add(const struct context *x, struct nodespec *s)
{
        for (size_t i = 0; !x->immutable && i < ARRAY_SIZE(images); i++) {
                if (!needs_met(x, images[i].need) || !image_wanted(x->cluster, images[i].id))
                        continue;
                const char *name = x->catalogue.images[images[i].id].name;
                if (images[i].id == IMG_PAUSE && x->cluster->runtime.pause)
                        name = arena_strdup(&s->arena, x->cluster->runtime.pause);
                if (!is_theirs(x->cluster, images[i].id, name))
                        nodespec_add(s, SPEC_IMAGE, CLASS_MUTABLE)->name = name;
        }
}
