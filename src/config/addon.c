#include "config/addon.h"

/* clang-format off */
#define LISTED \
        [ADDON_METRICS_SERVER] = "metrics-server", \
        [ADDON_LOCAL_PATH] = "local-path", \
        [ADDON_KUBE_STATE_METRICS] = "kube-state-metrics", \
        [ADDON_NODELOCALDNS] = "nodelocaldns", \
        [ADDON_DNS_AUTOSCALER] = "dns-autoscaler", \
        [ADDON_REGISTRY] = "registry", \
        [ADDON_NODE_PROBLEM_DETECTOR] = "node-problem-detector", \
        [ADDON_KUBE_VIP] = "kube-vip", \
        [ADDON_INGRESS] = "ingress", \
        [ADDON_PROMETHEUS] = "prometheus", \
        [ADDON_MULTUS] = "multus", \
        [ADDON_CERT_MANAGER] = "cert-manager", \
        [ADDON_METALLB] = "metallb", \
        [ADDON_TRAEFIK] = "traefik", \
        [ADDON_ENVOY_GATEWAY] = "envoy-gateway", \
        [ADDON_KUBE_PROMETHEUS] = "kube-prometheus", \
        [ADDON_FLUENT_BIT] = "fluent-bit", \
        [ADDON_HEADLAMP] = "headlamp", \
        [ADDON_CEPH_CSI_RBD] = "ceph-csi-rbd", \
        [ADDON_CEPH_CSI_CEPHFS] = "ceph-csi-cephfs", \
        [ADDON_CLUSTER_AUTOSCALER] = "cluster-autoscaler", \
        [ADDON_NODE_FEATURE_DISCOVERY] = "node-feature-discovery"
/* clang-format on */

const char *const addon_names[] = {
        LISTED,
        [ADDON_OPENSTACK_CLOUD] = "openstack-cloud-controller",
        [ADDON_CINDER_CSI] = "cinder-csi",
        [ADDON_AWS_CLOUD] = "aws-cloud-controller",
        [ADDON_EBS_CSI] = "ebs-csi",
        NULL,
};
const char *const addon_choices[] = { LISTED, NULL };

/* They answer only on the loopback address of their node, so a scrape from a pod would report them
 * as down. */
#define WITHOUT_LOOPBACK_TARGETS \
        "kubeControllerManager: {enabled: false}\n" \
        "kubeScheduler: {enabled: false}\n" \
        "kubeEtcd: {enabled: false}\n" \
        "kubeProxy: {enabled: false}\n"
#define CEPH_NEEDS "a Ceph cluster: its monitors and pools in values, its key in a Secret"

#define BALANCERS_STAY \
        "Services of type LoadBalancer keep their load balancers, and nothing deletes them any longer"
#define VOLUMES_STAY "volumes and their data stay, and nothing deletes or attaches them any longer"

static const struct addon_row addon_table[] = {
        [ADDON_METRICS_SERVER] = { "0.9.0", "kube-system",
                "CPU and memory of nodes and pods: kubectl top, HorizontalPodAutoscalers",
                .needs =
                        "kubelets with certificates of the cluster's CA (slipway's nodes have them)",
                .home = "https://github.com/kubernetes-sigs/metrics-server",
                .template = "metrics-server.yaml" },
        [ADDON_LOCAL_PATH] = { "0.0.30", "local-path-storage",
                "volumes in a directory of the pod's node, as the default StorageClass",
                .home = "https://github.com/rancher/local-path-provisioner",
                .template = "local-path.yaml",
                .stays = "volumes and their data stay, and nothing deletes them any longer" },
        [ADDON_KUBE_STATE_METRICS] = { "2.18.0", "kube-system",
                "the state of objects as metrics for a Prometheus of yours (kube-prometheus has its own)",
                .home = "https://github.com/kubernetes/kube-state-metrics",
                .template = "kube-state-metrics.yaml" },
        [ADDON_NODELOCALDNS] = { "1.14.6", "kube-system",
                "a DNS cache on every node (CoreDNS), which pods ask instead of the cluster's DNS",
                .home = "https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns",
                .template = "nodelocaldns.yaml",
                .stays = "pods that run keep its address as their DNS server: restart them" },
        [ADDON_DNS_AUTOSCALER] = { "v2", "kube-system",
                "more or fewer replicas of CoreDNS, as their load requires (HorizontalPodAutoscaler)",
                .needs = "the addon metrics-server",
                .home = "https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale",
                .template = "dns-autoscaler.yaml" },
        [ADDON_REGISTRY] = { "3.0.0", "registry",
                "a registry for images, at localhost:5000 of every node",
                .needs = "a default StorageClass, for example the addon local-path",
                .home = "https://distribution.github.io/distribution",
                .template = "registry.yaml" },
        [ADDON_NODE_PROBLEM_DETECTOR] = { "1.34.0", "kube-system",
                "problems of a node's kernel as conditions and events of the Node",
                .home = "https://github.com/kubernetes/node-problem-detector",
                .template = "node-problem-detector.yaml",
                .stays = "its conditions stay at the Nodes" },
        [ADDON_KUBE_VIP] = { "0.9.1", "kube-system",
                "addresses for Services of type LoadBalancer on bare metal (ARP)",
                .needs = "values.addresses: free addresses of the nodes' network",
                .home = "https://kube-vip.io", .template = "kube-vip.yaml" },
        [ADDON_INGRESS] = { "3.6.12", "ingress",
                "HTTP and TLS from outside to Services, as Ingresses say (Traefik)",
                .needs =
                        "a load balancer, for example the addon kube-vip; else its node ports are used",
                .home = "https://doc.traefik.io/traefik", .template = "ingress.yaml" },
        [ADDON_PROMETHEUS] = { "3.13.5", "prometheus",
                "metrics of API servers, kubelets, nodes, DNS and annotated pods, with node-exporter",
                .home = "https://prometheus.io", .template = "prometheus.yaml" },
        [ADDON_MULTUS] = { "4.2.4", "kube-system",
                "more network interfaces for pods (NetworkAttachmentDefinition)",
                .needs = "the fabric flannel, canal or calico",
                .home = "https://github.com/k8snetworkplumbingwg/multus-cni",
                .template = "multus.yaml",
                .stays =
                        "NetworkAttachmentDefinitions stay, and pods that run keep their interfaces" },
        [ADDON_CERT_MANAGER] = { "v1.21.2", "cert-manager",
                "certificates for services, from ACME, Vault or an own CA",
                .needs = "an Issuer, once it runs", .home = "https://cert-manager.io",
                .repository = "jetstack", .url = "https://charts.jetstack.io",
                .chart = "cert-manager", .values = "crds: {enabled: true}\n" },
        [ADDON_METALLB] = { "0.16.1", "metallb-system",
                "addresses for Services of type LoadBalancer on bare metal",
                .needs = "an address range: an IPAddressPool and an L2Advertisement, once it runs",
                .home = "https://metallb.io", .repository = "metallb",
                .url = "https://metallb.github.io/metallb", .chart = "metallb",
                .privileged = true },
        [ADDON_TRAEFIK] = { "41.6.0", "traefik", "an ingress controller",
                .needs = "a load balancer, or values: {service: {spec: {type: NodePort}}}",
                .home = "https://traefik.io", .repository = "traefik",
                .url = "https://traefik.github.io/charts", .chart = "traefik" },
        [ADDON_ENVOY_GATEWAY] = { "v1.9.1", "envoy-gateway-system",
                "the Gateway API, with Envoy as the proxy",
                .needs = "a load balancer for the Gateways that you create",
                .home = "https://gateway.envoyproxy.io", .repository = "envoyproxy",
                .url = "oci://docker.io/envoyproxy", .chart = "gateway-helm" },
        [ADDON_KUBE_PROMETHEUS] = { "86.2.0", "monitoring",
                "Prometheus, Alertmanager, Grafana, node-exporter and kube-state-metrics",
                .home = "https://github.com/prometheus-operator/kube-prometheus",
                .repository = "prometheus-community",
                .url = "https://prometheus-community.github.io/helm-charts",
                .chart = "kube-prometheus-stack", .values = WITHOUT_LOOPBACK_TARGETS,
                .privileged = true },
        [ADDON_FLUENT_BIT] = { "0.57.0", "logging", "logs of all pods, sent to a store of yours",
                .needs = "a store, in values: {config: {outputs: …}}",
                .home = "https://fluentbit.io", .repository = "fluent",
                .url = "https://fluent.github.io/helm-charts", .chart = "fluent-bit",
                .privileged = true },
        [ADDON_HEADLAMP] = { "0.43.0", "headlamp", "a web page of the cluster",
                .needs = "a token or an OIDC provider to log in with",
                .home = "https://headlamp.dev", .repository = "headlamp",
                .url = "https://kubernetes-sigs.github.io/headlamp", .chart = "headlamp" },
        [ADDON_CEPH_CSI_RBD] = { "3.17.0", "ceph-csi-rbd", "block volumes of a Ceph cluster",
                .needs = CEPH_NEEDS, .home = "https://github.com/ceph/ceph-csi",
                .repository = "ceph-csi", .url = "https://ceph.github.io/csi-charts",
                .chart = "ceph-csi-rbd", .privileged = true },
        [ADDON_CEPH_CSI_CEPHFS] = { "3.17.0", "ceph-csi-cephfs", "shared volumes of a Ceph cluster",
                .needs = CEPH_NEEDS, .home = "https://github.com/ceph/ceph-csi",
                .repository = "ceph-csi", .url = "https://ceph.github.io/csi-charts",
                .chart = "ceph-csi-cephfs", .privileged = true },
        [ADDON_CLUSTER_AUTOSCALER] = { "9.59.1", "cluster-autoscaler",
                "more or fewer machines of a cloud, as pods need them",
                .needs =
                        "a cloud whose machines it may create: cloudProvider and its settings in values",
                .home = "https://github.com/kubernetes/autoscaler", .repository = "autoscaler",
                .url = "https://kubernetes.github.io/autoscaler", .chart = "cluster-autoscaler" },
        [ADDON_NODE_FEATURE_DISCOVERY] = { "0.18.1", "node-feature-discovery",
                "labels of nodes for their hardware and kernel",
                .home = "https://github.com/kubernetes-sigs/node-feature-discovery",
                .repository = "nfd",
                .url = "https://kubernetes-sigs.github.io/node-feature-discovery/charts",
                .chart = "node-feature-discovery", .privileged = true },
        [ADDON_OPENSTACK_CLOUD] = { "1.36.0", "kube-system",
                "OpenStack's cloud controller: load balancers for Services, and what nodes are",
                .needs = "provider openstack",
                .home = "https://github.com/kubernetes/cloud-provider-openstack",
                .template = "openstack-cloud-controller.yaml", .stays = BALANCERS_STAY,
                .asked = "provider.openstack.cloud.controller" },
        [ADDON_CINDER_CSI] = { "1.36.0", "kube-system",
                "volumes of OpenStack (Cinder), with the StorageClass cinder",
                .needs = "provider openstack",
                .home = "https://github.com/kubernetes/cloud-provider-openstack",
                .template = "cinder-csi.yaml", .stays = VOLUMES_STAY,
                .asked = "provider.openstack.cloud.csi" },
        [ADDON_AWS_CLOUD] = { "1.36.0", "kube-system",
                "AWS's cloud controller: load balancers for Services, and what nodes are",
                .needs = "provider aws, with an instance profile: provider.aws.iam.control",
                .home = "https://github.com/kubernetes/cloud-provider-aws",
                .template = "aws-cloud-controller.yaml", .stays = BALANCERS_STAY,
                .asked = "provider.aws.cloud.controller" },
        [ADDON_EBS_CSI] = { "1.64.0", "kube-system",
                "volumes of AWS (EBS), with the StorageClass ebs",
                .needs = "provider aws, with an instance profile: provider.aws.iam.control",
                .home = "https://github.com/kubernetes-sigs/aws-ebs-csi-driver",
                .template = "ebs-csi.yaml", .stays = VOLUMES_STAY,
                .asked = "provider.aws.cloud.csi" },
};
_Static_assert(ARRAY_SIZE(addon_table) == ADDON_COUNT, "a row for each addon");
_Static_assert(ARRAY_SIZE(addon_names) == ADDON_COUNT + 1, "a name for each addon");

const struct addon_row *addon_row(enum addon_id id) { return &addon_table[id]; }

enum addon_id addon_named(const char *name)
{
        for (size_t i = 0; name && i < ADDON_COUNT; i++)
                if (streq(addon_names[i], name))
                        return (enum addon_id)i;
        return ADDON_COUNT;
}

bool cluster_addon(const struct cluster *c, enum addon_id id)
{
        for (size_t i = 0; i < c->services.addons.n; i++)
                if (addon_named(c->services.addons.v[i].name) == id)
                        return true;
        return false;
}

bool cluster_cloud_controller(const struct cluster *c)
{
        return cluster_addon(c, ADDON_OPENSTACK_CLOUD) || cluster_addon(c, ADDON_AWS_CLOUD);
}

bool addon_privileged(const struct cluster *c, const char *space)
{
        for (size_t i = 0; i < ADDON_COUNT; i++)
                if (addon_table[i].privileged && streq(addon_table[i].space, space) &&
                        cluster_addon(c, (enum addon_id)i))
                        return true;
        return false;
}

/* ---- rows of charts ---- */

static bool repository_listed(const struct repositories *all, const char *name)
{
        for (size_t i = 0; i < all->n; i++)
                if (all->v[i].name && streq(all->v[i].name, name))
                        return true;
        return false;
}

void services_repository(
        struct services *s, const struct tree *src, const char *name, const char *url)
{
        if (!repository_listed(&s->repositories, name))
                s->repositories.v[s->repositories.n++] =
                        (struct repository){ .src = src, .name = name, .url = url };
}

/* A list that is being complained about may have holes. */
static bool namespace_listed(const struct strings *all, const char *name)
{
        for (size_t i = 0; i < all->n; i++)
                if (all->v[i] && streq(all->v[i], name))
                        return true;
        return false;
}

/* The label that lets its pods run must be there before them, so such a namespace is one of
 * services.namespaces. */
static void expand_chart(
        struct arena *arena, struct services *s, const struct addon *a, const struct addon_row *row)
{
        s->charts.v[s->charts.n++] = (struct chart){ .src = a->src,
                .name = a->name,
                .chart = arena_printf(arena, "%s/%s", row->repository, row->chart),
                .version = row->version,
                .namespace = row->space,
                .create_namespace = true,
                .wait = true,
                .atomic = true,
                .values = a->values,
                .values_text = row->values,
                .timeout = 600 };
        if (row->privileged && !namespace_listed(&s->namespaces, row->space))
                strings_add(arena, &s->namespaces, row->space);
}

static void *grown(struct arena *a, const void *v, size_t n, size_t more, size_t size)
{
        char *all = arena_array(a, char, (n + more) * size);
        if (n)
                memcpy(all, v, n * size);
        return all;
}

void services_grow(struct cluster *c, size_t more)
{
        struct services *s = &c->services;
        s->charts.v = grown(c->arena, s->charts.v, s->charts.n, more, sizeof(*s->charts.v));
        s->repositories.v = grown(
                c->arena, s->repositories.v, s->repositories.n, more, sizeof(*s->repositories.v));
}

/* What the provider's section asks for becomes rows of services.addons, before the others: their
 * pods are not scheduled until the controller has initialised a node. */
static void addons_imply(struct cluster *c)
{
        const struct os_cloud_options *os = &c->provider.openstack.cloud;
        const struct cloud_parts *aws = &c->provider.aws.cloud;
        const struct {
                enum provider_kind kind;
                bool wanted;
                enum addon_id id;
                const struct tree *src;
        } rows[] = { { PROVIDER_OPENSTACK, os->controller, ADDON_OPENSTACK_CLOUD, os->src },
                { PROVIDER_OPENSTACK, os->csi, ADDON_CINDER_CSI, os->src },
                { PROVIDER_AWS, aws->controller, ADDON_AWS_CLOUD, aws->src },
                { PROVIDER_AWS, aws->csi, ADDON_EBS_CSI, aws->src } };
        struct addons *all = &c->services.addons, made = { 0 };
        made.v = arena_array(c->arena, struct addon, all->n + ARRAY_SIZE(rows));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (rows[i].kind == c->provider.kind && rows[i].wanted)
                        made.v[made.n++] = (struct addon){ .src = rows[i].src,
                                .name = addon_names[rows[i].id] };
        if (!made.n)
                return;
        for (size_t i = 0; i < all->n; i++)
                made.v[made.n++] = all->v[i];
        *all = made;
}

void addons_expand(struct cluster *c)
{
        struct services *s = &c->services;
        addons_imply(c);
        if (!s->addons.n)
                return;
        services_grow(c, s->addons.n);
        for (size_t i = 0; i < s->addons.n; i++) {
                const struct addon *a = &s->addons.v[i];
                enum addon_id id = addon_named(a->name);
                if (id == ADDON_COUNT || addon_built_in(id))
                        continue;
                services_repository(s, a->src, addon_row(id)->repository, addon_row(id)->url);
                expand_chart(c->arena, s, a, addon_row(id));
        }
}
