#include "artifact/catalogue.h"
#include "config/addon.h"
#include "config/minors.h"

/* One row per minor version. Kubernetes' own programs have the cluster's version; the rest are the
 * newest that work with that minor. */
struct row {
        unsigned minor;
        const char *etcd, *containerd, *crio, *conmon, *runc, *crun, *crictl, *cni, *flannel,
                *flannel_cni;
        const char *coredns, *pause, *haproxy, *keepalived, *flannel_plugin;
};

/* clang-format off */
static const struct row rows[] = {
        { 34, "3.6.16", "2.4.2", "1.34.5", "2.1.13", "1.5.2", "1.29.1", "1.36.0", "1.9.1", "0.26.7", "0.9.1", "1.14.6", "3.10.1", "3.2.4-alpine", "2.0.20", "1.6.2-flannel1" },
        { 35, "3.6.16", "2.4.2", "1.35.0", "2.1.13", "1.5.2", "1.29.1", "1.36.0", "1.9.1", "0.26.7", "0.9.1", "1.14.6", "3.10.1", "3.2.4-alpine", "2.0.20", "1.6.2-flannel1" },
        { 36, "3.6.16", "2.4.2", "1.36.0", "2.1.13", "1.5.2", "1.29.1", "1.36.0", "1.9.1", "0.26.7", "0.9.1", "1.14.6", "3.10.2", "3.2.4-alpine", "2.0.20", "1.6.2-flannel1" },
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(rows) == KUBERNETES_NEWEST_MINOR - KUBERNETES_OLDEST_MINOR + 1,
        "a row for each minor the rules let through");

const char *catalogue_minors(void) { return KUBERNETES_MINORS; }

const char *catalogue_newest(void) { return KUBERNETES_NEWEST; }

const char *catalogue_tool(const char *name)
{
        static const struct artifact tools[] = { { "ignition", "2.24.0" },
                { "kube-bench", "0.8.0" }, { "helm", "3.22.0" }, { "kubelogin", "1.36.3" },
                { "e2e", KUBERNETES_NEWEST }, { "agnhost", KUBERNETES_NEWEST },
                { "opentofu", "1.12.6" }, { "terraform-provider-openstack", "1.54.1" } };
        for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
                if (streq(tools[i].name, name))
                        return tools[i].version;
        return NULL;
}

static void set_programs(struct artifact *out, const struct row *r, const char *kubernetes)
{
        const struct artifact table[ART_COUNT] = {
                [ART_KUBELET] = { "kubelet", kubernetes },
                [ART_KUBE_PROXY] = { "kube-proxy", kubernetes },
                [ART_KUBEADM] = { "kubeadm", kubernetes },
                [ART_KUBECTL] = { "kubectl", kubernetes },
                [ART_ETCD] = { "etcd", r->etcd },
                [ART_ETCDCTL] = { "etcdctl", r->etcd },
                [ART_ETCDUTL] = { "etcdutl", r->etcd },
                [ART_CONTAINERD] = { "containerd", r->containerd },
                [ART_CONTAINERD_SHIM] = { "containerd-shim-runc-v2", r->containerd },
                [ART_CTR] = { "ctr", r->containerd },
                [ART_CRIO] = { "crio", r->crio },
                [ART_CONMON] = { "conmon", r->conmon },
                [ART_RUNC] = { "runc", r->runc },
                [ART_CRUN] = { "crun", r->crun },
                [ART_CRICTL] = { "crictl", r->crictl },
                [ART_CNI_PLUGINS] = { "cni-plugins", r->cni },
                [ART_FLANNELD] = { "flanneld", r->flannel },
                [ART_FLANNEL_CNI] = { "flannel", r->flannel_cni },
                [ART_CALICO_NODE] = { "calico-node", CALICO_VERSION },
                [ART_CALICO_CNI] = { "calico", CALICO_VERSION },
                [ART_MULTUS] = { "multus", addon_row(ADDON_MULTUS)->version },
        };
        memcpy(out, table, sizeof(table));
}

static void set_images(
        struct arena *a, struct image *out, const struct row *r, const char *kubernetes)
{
        const struct {
                const char *repository, *tag;
        } table[IMG_COUNT] = {
                [IMG_APISERVER] = { "registry.k8s.io/kube-apiserver:v", kubernetes },
                [IMG_CONTROLLER_MANAGER] = { "registry.k8s.io/kube-controller-manager:v",
                        kubernetes },
                [IMG_SCHEDULER] = { "registry.k8s.io/kube-scheduler:v", kubernetes },
                [IMG_COREDNS] = { "registry.k8s.io/coredns/coredns:v", r->coredns },
                [IMG_PAUSE] = { "registry.k8s.io/pause:", r->pause },
                [IMG_HAPROXY] = { "docker.io/library/haproxy:", r->haproxy },
                [IMG_KEEPALIVED] = { "docker.io/osixia/keepalived:", r->keepalived },
                [IMG_PROBE] = { PROBE_IMAGE, SLIPWAY_VERSION },
                [IMG_KUBE_PROXY] = { "registry.k8s.io/kube-proxy:v", kubernetes },
                [IMG_FLANNEL] = { "ghcr.io/flannel-io/flannel:v", r->flannel },
                [IMG_FLANNEL_PLUGIN] = { "ghcr.io/flannel-io/flannel-cni-plugin:v",
                        r->flannel_plugin },
                [IMG_ETCD] = { "registry.k8s.io/etcd:", arena_printf(a, "%s-0", r->etcd) },
                [IMG_METRICS_SERVER] = { "registry.k8s.io/metrics-server/metrics-server:v",
                        addon_row(ADDON_METRICS_SERVER)->version },
                [IMG_LOCAL_PATH] = { "docker.io/rancher/local-path-provisioner:v",
                        addon_row(ADDON_LOCAL_PATH)->version },
                [IMG_KUBE_STATE_METRICS] = { "registry.k8s.io/kube-state-metrics/kube-state-metrics:v",
                        addon_row(ADDON_KUBE_STATE_METRICS)->version },
                [IMG_REGISTRY] = { "docker.io/library/registry:",
                        addon_row(ADDON_REGISTRY)->version },
                [IMG_NODE_PROBLEM_DETECTOR] = { "registry.k8s.io/node-problem-detector/node-problem-detector:v",
                        addon_row(ADDON_NODE_PROBLEM_DETECTOR)->version },
                [IMG_KUBE_VIP] = { "ghcr.io/kube-vip/kube-vip:v",
                        addon_row(ADDON_KUBE_VIP)->version },
                [IMG_KUBE_VIP_CLOUD] = { "ghcr.io/kube-vip/kube-vip-cloud-provider:v", "0.0.12" },
                [IMG_OPENSTACK_CLOUD] = { "registry.k8s.io/provider-os/openstack-cloud-controller-manager:v",
                        addon_row(ADDON_OPENSTACK_CLOUD)->version },
                [IMG_CINDER_CSI] = { "registry.k8s.io/provider-os/cinder-csi-plugin:v",
                        addon_row(ADDON_CINDER_CSI)->version },
                [IMG_AWS_CLOUD] = { "registry.k8s.io/provider-aws/cloud-controller-manager:v",
                        addon_row(ADDON_AWS_CLOUD)->version },
                [IMG_EBS_CSI] = { "public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v",
                        addon_row(ADDON_EBS_CSI)->version },
                [IMG_CSI_PROVISIONER] = { "registry.k8s.io/sig-storage/csi-provisioner:v",
                        "6.3.0" },
                [IMG_CSI_ATTACHER] = { "registry.k8s.io/sig-storage/csi-attacher:v", "4.12.0" },
                [IMG_CSI_RESIZER] = { "registry.k8s.io/sig-storage/csi-resizer:v", "2.2.0" },
                [IMG_CSI_REGISTRAR] = { "registry.k8s.io/sig-storage/csi-node-driver-registrar:v",
                        "2.15.0" },
                [IMG_CSI_LIVENESS] = { "registry.k8s.io/sig-storage/livenessprobe:v", "2.17.0" },
                [IMG_TRAEFIK] = { "docker.io/library/traefik:v",
                        addon_row(ADDON_INGRESS)->version },
                [IMG_PROMETHEUS] = { "docker.io/prom/prometheus:v",
                        addon_row(ADDON_PROMETHEUS)->version },
                [IMG_NODE_EXPORTER] = { "docker.io/prom/node-exporter:v", NODE_EXPORTER_VERSION },
                [IMG_DEX] = { "ghcr.io/dexidp/dex:v", "2.45.1" },
                [IMG_CALICO_CONTROLLERS] = { "docker.io/calico/kube-controllers:v",
                        CALICO_VERSION },
        };
        for (size_t i = 0; i < IMG_COUNT; i++)
                out[i].name = arena_printf(a, "%s%s", table[i].repository, table[i].tag);
}

bool catalogue_for(struct arena *a, const struct version *kubernetes, struct catalogue *out)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                if (kubernetes->major != 1 || kubernetes->minor != rows[i].minor)
                        continue;
                const char *text = arena_printf(
                        a, "%u.%u.%u", kubernetes->major, kubernetes->minor, kubernetes->patch);
                set_programs(out->artifacts, &rows[i], text);
                set_images(a, out->images, &rows[i], text);
                return true;
        }
        return false;
}

bool image_wanted(const struct cluster *c, enum image_id id)
{
        static const struct {
                enum image_id image;
                enum addon_id addon;
        } rows_of_addons[] = { { IMG_METRICS_SERVER, ADDON_METRICS_SERVER },
                { IMG_LOCAL_PATH, ADDON_LOCAL_PATH },
                { IMG_KUBE_STATE_METRICS, ADDON_KUBE_STATE_METRICS },
                { IMG_REGISTRY, ADDON_REGISTRY },
                { IMG_NODE_PROBLEM_DETECTOR, ADDON_NODE_PROBLEM_DETECTOR },
                { IMG_KUBE_VIP, ADDON_KUBE_VIP }, { IMG_KUBE_VIP_CLOUD, ADDON_KUBE_VIP },
                { IMG_TRAEFIK, ADDON_INGRESS }, { IMG_PROMETHEUS, ADDON_PROMETHEUS },
                { IMG_NODE_EXPORTER, ADDON_PROMETHEUS },
                { IMG_OPENSTACK_CLOUD, ADDON_OPENSTACK_CLOUD }, { IMG_AWS_CLOUD, ADDON_AWS_CLOUD },
                { IMG_CINDER_CSI, ADDON_CINDER_CSI }, { IMG_EBS_CSI, ADDON_EBS_CSI },
                { IMG_CSI_PROVISIONER, ADDON_CINDER_CSI }, { IMG_CSI_PROVISIONER, ADDON_EBS_CSI },
                { IMG_CSI_ATTACHER, ADDON_CINDER_CSI }, { IMG_CSI_ATTACHER, ADDON_EBS_CSI },
                { IMG_CSI_RESIZER, ADDON_CINDER_CSI }, { IMG_CSI_RESIZER, ADDON_EBS_CSI },
                { IMG_CSI_REGISTRAR, ADDON_CINDER_CSI }, { IMG_CSI_REGISTRAR, ADDON_EBS_CSI },
                { IMG_CSI_LIVENESS, ADDON_CINDER_CSI }, { IMG_CSI_LIVENESS, ADDON_EBS_CSI } };
        bool of_addon = false;
        for (size_t i = 0; i < ARRAY_SIZE(rows_of_addons); i++) {
                if (rows_of_addons[i].image != id)
                        continue;
                of_addon = true;
                if (cluster_addon(c, rows_of_addons[i].addon))
                        return true;
        }
        return !of_addon;
}

/* Where the tag begins, and the version it says: "v1.14.6", "3.6.16-0". */
static const char *image_version(const char *image, struct version *out)
{
        const char *slash = strrchr(image, '/'), *tag = strchr(slash ? slash : image, ':');
        char *text CLEANUP(free_p) =
                tag && !strchr(image, '@') ? xstrndup(tag + 1, strcspn(tag + 1, "-")) : NULL;
        return text && version_parse(text, out) ? tag + 1 : NULL;
}

const char *image_follow(struct arena *a, const char *image, const char *wanted, bool down)
{
        struct version is, want;
        const char *tag = image_version(image, &is), *new = image_version(wanted, &want);
        int order = tag && new ? version_compare(&want, &is) : 0;
        return order > 0 || (down && order < 0)
                       ? arena_printf(a, "%.*s%s", (int)(tag - image), image, new)
                       : image;
}
