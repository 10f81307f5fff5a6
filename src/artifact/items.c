/* The items that a cluster's nodes need. */
#include "artifact/fetch.h"
#include "config/addon.h"
#include "config/fabric.h"

enum need {
        ON_ETCD = 1 << 0,
        ON_KUBE = 1 << 1, /* a node of the cluster: control plane or worker */
        ON_CONTROL_PLANE = 1 << 2,
        WITH_CONTAINERD = 1 << 3,
        WITH_CRIO = 1 << 4,
        WITH_RUNC = 1 << 5,
        WITH_CRUN = 1 << 6,
        WITH_FLANNEL = 1 << 7,
        WITH_KUBE_PROXY = 1 << 8,
        WITH_VIP = 1 << 9,
        WITH_ETCD_SERVICE = 1 << 11,
        WITH_ETCD_POD = 1 << 12,
        WITH_BALANCER = 1 << 13,
        WITH_RUNTIME = 1 << 14, /* managed by slipway */
        WITH_DNS = 1 << 15,
        /* an OS without packages of haproxy, which then is an image */
        WITHOUT_PACKAGES = 1 << 10,
        WITH_DEX = 1 << 18,
        WITH_FELIX = 1 << 19,
        WITH_CALICO_IPAM = 1 << 20,
        WITH_MULTUS = 1 << 21,
        ON_JOINED = 1 << 16, /* a machine that joined with kubeadm, not slipway's */
};

static const unsigned artifact_needs[ART_COUNT] = {
        [ART_KUBELET] = ON_KUBE,
        [ART_KUBE_PROXY] = ON_KUBE | WITH_KUBE_PROXY,
        [ART_KUBEADM] = ON_CONTROL_PLANE,
        [ART_KUBECTL] = ON_CONTROL_PLANE,
        [ART_ETCD] = ON_ETCD | WITH_ETCD_SERVICE,
        [ART_ETCDCTL] = ON_ETCD,
        [ART_ETCDUTL] = ON_ETCD,
        [ART_CONTAINERD] = ON_KUBE | WITH_CONTAINERD,
        [ART_CONTAINERD_SHIM] = ON_KUBE | WITH_CONTAINERD,
        [ART_CTR] = ON_KUBE | WITH_CONTAINERD,
        [ART_CRIO] = ON_KUBE | WITH_CRIO,
        [ART_CONMON] = ON_KUBE | WITH_CRIO,
        [ART_RUNC] = ON_KUBE | WITH_RUNC,
        [ART_CRUN] = ON_KUBE | WITH_CRUN,
        [ART_CRICTL] = ON_KUBE,
        [ART_CNI_PLUGINS] = ON_KUBE | WITH_RUNTIME,
        [ART_FLANNELD] = ON_KUBE | WITH_FLANNEL,
        [ART_FLANNEL_CNI] = ON_KUBE | WITH_FLANNEL,
        [ART_CALICO_NODE] = ON_KUBE | WITH_FELIX,
        [ART_CALICO_CNI] = ON_KUBE | WITH_FELIX,
        [ART_MULTUS] = ON_KUBE | WITH_MULTUS,
};

static const unsigned image_needs[IMG_COUNT] = {
        [IMG_APISERVER] = ON_CONTROL_PLANE,
        [IMG_CONTROLLER_MANAGER] = ON_CONTROL_PLANE,
        [IMG_SCHEDULER] = ON_CONTROL_PLANE,
        [IMG_COREDNS] = ON_KUBE | WITH_DNS,
        [IMG_PAUSE] = ON_KUBE,
        [IMG_HAPROXY] = ON_KUBE | WITH_BALANCER | WITHOUT_PACKAGES,
        [IMG_KEEPALIVED] = ON_CONTROL_PLANE | WITH_VIP | WITHOUT_PACKAGES,
        [IMG_PROBE] = ON_KUBE,
        [IMG_KUBE_PROXY] = ON_JOINED,
        [IMG_FLANNEL] = ON_JOINED,
        [IMG_FLANNEL_PLUGIN] = ON_JOINED,
        [IMG_ETCD] = ON_ETCD | WITH_ETCD_POD,
        [IMG_METRICS_SERVER] = ON_KUBE,
        [IMG_LOCAL_PATH] = ON_KUBE,
        [IMG_KUBE_STATE_METRICS] = ON_KUBE,
        [IMG_REGISTRY] = ON_KUBE,
        [IMG_NODE_PROBLEM_DETECTOR] = ON_KUBE,
        [IMG_KUBE_VIP] = ON_KUBE,
        [IMG_KUBE_VIP_CLOUD] = ON_KUBE,
        [IMG_OPENSTACK_CLOUD] = ON_CONTROL_PLANE,
        [IMG_CINDER_CSI] = ON_KUBE,
        [IMG_AWS_CLOUD] = ON_CONTROL_PLANE,
        [IMG_EBS_CSI] = ON_KUBE,
        [IMG_CSI_PROVISIONER] = ON_CONTROL_PLANE,
        [IMG_CSI_ATTACHER] = ON_CONTROL_PLANE,
        [IMG_CSI_RESIZER] = ON_CONTROL_PLANE,
        [IMG_CSI_REGISTRAR] = ON_KUBE,
        [IMG_CSI_LIVENESS] = ON_KUBE,
        [IMG_TRAEFIK] = ON_KUBE,
        [IMG_PROMETHEUS] = ON_KUBE,
        [IMG_NODE_EXPORTER] = ON_KUBE,
        [IMG_DEX] = ON_CONTROL_PLANE | WITH_DEX,
        [IMG_CALICO_CONTROLLERS] = ON_KUBE | WITH_CALICO_IPAM,
};

/* The union over all nodes. */
static unsigned cluster_has(const struct cluster *c, const struct catalogue *cat)
{
        const char *etcd = c->etcd.image, *dns = c->network.dns_image;
        unsigned has = 0;
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *p = &c->pools.v[i];
                has |= p->roles & ROLE_ETCD ? ON_ETCD : 0;
                has |= p->roles & ROLE_CONTROL_PLANE ? ON_CONTROL_PLANE : 0;
                has |= p->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) ? ON_KUBE : 0;
                has |= p->os && streq(p->os, "flatcar") ? WITHOUT_PACKAGES : 0;
        }
        if (!cluster_count(c, ROLE_ETCD)) /* beside the control plane */
                has |= ON_ETCD;
        if (c->runtime.managed)
                has |= WITH_RUNTIME |
                       (c->runtime.kind == RUNTIME_CRIO ? WITH_CRIO : WITH_CONTAINERD) |
                       (c->runtime.oci == OCI_CRUN ? WITH_CRUN : WITH_RUNC);
        has |= c->etcd.run == ETCD_RUN_SERVICE                    ? WITH_ETCD_SERVICE
               : etcd && !streq(etcd, cat->images[IMG_ETCD].name) ? 0
                                                                  : WITH_ETCD_POD;
        has |= c->api.local_balancer ? WITH_BALANCER : 0;
        has |= c->network.manage_dns || (dns && streq(dns, cat->images[IMG_COREDNS].name))
                       ? WITH_DNS
                       : 0;
        has |= fabric_has(c, FABRIC_FLANNELD) ? WITH_FLANNEL : 0;
        has |= fabric_has(c, FABRIC_FELIX) ? WITH_FELIX : 0;
        has |= fabric_has(c, FABRIC_CALICO_IPAM) ? WITH_CALICO_IPAM : 0;
        has |= c->network.proxy_mode != PROXY_NONE && c->network.proxy_run == PROXY_RUN_SERVICE
                       ? WITH_KUBE_PROXY
                       : 0;
        has |= c->api.vip ? WITH_VIP : 0;
        has |= c->services.dex.host ? WITH_DEX : 0;
        has |= cluster_addon(c, ADDON_MULTUS) ? WITH_MULTUS : 0;
        return has;
}

struct item *fetch_items(const struct cluster *c, struct arena *a, size_t *count, struct error *err)
{
        struct catalogue cat;
        if (!catalogue_for(a, &c->kubernetes, &cat)) {
                error_set(err, EINVAL, EXIT_CONFIG,
                        "Kubernetes %s is not in the catalogue, which has %s", c->kubernetes.text,
                        catalogue_minors());
                return NULL;
        }
        struct item *items = xcalloc(ART_COUNT + IMG_COUNT, sizeof(*items));
        unsigned has = cluster_has(c, &cat);
        size_t n = 0;
        for (size_t i = 0; i < ART_COUNT; i++)
                if ((artifact_needs[i] & ~has) == 0)
                        items[n++] = (struct item){ .name = cat.artifacts[i].name,
                                .version = cat.artifacts[i].version };
        for (size_t i = 0; i < IMG_COUNT; i++) {
                const char *name =
                        i == IMG_PAUSE && c->runtime.pause ? c->runtime.pause : cat.images[i].name;
                if ((image_needs[i] & ~has) == 0 && image_wanted(c, i))
                        items[n++] = (struct item){ .name = name, .image = true };
        }
        *count = n;
        return items;
}

void items_free(struct item *items, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(items[i].path);
        free(items);
}
