#include "artifact/origin.h"
#include "base/sha256.h"
#include "base/str.h"

#define K8S    "https://dl.k8s.io/release/v{v}/bin/linux/{a}/"
#define GITHUB "https://github.com/"
#define ETCD   GITHUB "etcd-io/etcd/releases/download/v{v}/"
#define CTRD \
        GITHUB "containerd/containerd/releases/download/v{v}/containerd-static-{v}-linux-{a}.tar.gz"
#define PLUGINS \
        GITHUB "containernetworking/plugins/releases/download/v{v}/cni-plugins-linux-{a}-v{v}.tgz"
#define CRICTL \
        GITHUB "kubernetes-sigs/cri-tools/releases/download/v{v}/crictl-v{v}-linux-{a}.tar.gz"
#define CRIO     "https://storage.googleapis.com/cri-o/artifacts/cri-o.{a}.v{v}.tar.gz"
#define HELM     "https://get.helm.sh/helm-v{v}-linux-{a}.tar.gz"
#define RUNC     GITHUB "opencontainers/runc/releases/download/v{v}/runc."
#define ETCD_TAR ETCD "etcd-v{v}-linux-{a}.tar.gz"
#define ETCD_IN  "etcd-v{v}-linux-{a}/"

/* clang-format off */
static const struct origin origins[] = {
        { "kubelet",                 K8S "kubelet",    NULL,                 K8S "kubelet.sha256",    "kubernetes",  "kubelet" },
        { "kube-proxy",              K8S "kube-proxy", NULL,                 K8S "kube-proxy.sha256", "kubernetes",  "kube-proxy" },
        { "kubeadm",                 K8S "kubeadm",    NULL,                 K8S "kubeadm.sha256",    "kubernetes",  "kubeadm" },
        { "kubectl",                 K8S "kubectl",    NULL,                 K8S "kubectl.sha256",    "kubernetes",  "kubectl" },
        { "etcd",                    ETCD_TAR,         ETCD_IN "etcd",       ETCD "SHA256SUMS",       "etcd",        "etcd" },
        { "etcdctl",                 ETCD_TAR,         ETCD_IN "etcdctl",    ETCD "SHA256SUMS",       "etcd",        "etcdctl" },
        { "etcdutl",                 ETCD_TAR,         ETCD_IN "etcdutl",    ETCD "SHA256SUMS",       "etcd",        "etcdutl" },
        { "containerd",              CTRD,             "bin/containerd",     CTRD ".sha256sum",       "containerd",  "containerd" },
        { "containerd-shim-runc-v2", CTRD,             "bin/containerd-shim-runc-v2", CTRD ".sha256sum", "containerd", "containerd-shim-runc-v2" },
        { "ctr",                     CTRD,             "bin/ctr",            CTRD ".sha256sum",       "containerd",  "ctr" },
        { "crio",                    CRIO,             "cri-o/bin/crio",     CRIO ".sha256sum",       NULL,          NULL },
        { "conmon",                  GITHUB "containers/conmon/releases/download/v{v}/conmon.{a}", NULL, NULL, "conmon", "conmon" },
        { "runc",                    RUNC "{a}",       NULL,                 RUNC "sha256sum",        "runc",        "runc" },
        { "crun",                    GITHUB "containers/crun/releases/download/{v}/crun-{v}-linux-{a}", NULL, NULL, "crun", "crun" },
        { "crictl",                  CRICTL,           "crictl",             CRICTL ".sha256",        "crictl",      "crictl" },
        { "cni-plugins",             PLUGINS,          "*",                  PLUGINS ".sha256",       "cni",         "*" },
        { "flanneld",                GITHUB "flannel-io/flannel/releases/download/v{v}/flanneld-{a}", NULL, NULL, "flannel", "flanneld" },
        /* up to 0.9.1 it came with the plugins */
        { "flannel",                 PLUGINS,          "flannel",            PLUGINS ".sha256",       "flannel-cni", "flannel" },
        /* upstream has them only inside images */
        { "calico-node",             NULL,             NULL,                 NULL,                    "calico",      "calico-node" },
        { "calico",                  NULL,             NULL,                 NULL,                    "calico",      "calico" },
        /* on the operator's computer, for services.charts */
        { "helm",                    HELM,             "linux-{a}/helm",     HELM ".sha256sum",       "helm",        "helm" },
        /* tools of the tests: built, never on a node */
        { "coredns",                 NULL,             NULL,                 NULL,                    "coredns",     "coredns" },
        { "ignition-validate",       NULL,             NULL,                 NULL,                    "ignition",    "ignition-validate" },
        { "kube-bench",              NULL,             NULL,                 NULL,                    "kube-bench",  "kube-bench" },
        { "kubelogin",               NULL,             NULL,                 NULL,                    "kubelogin",   "kubelogin" },
        { "dex",                     NULL,             NULL,                 NULL,                    "dex",         "dex" },
        { "tofu",                    NULL,             NULL,                 NULL,                    "opentofu",    "tofu" },
        { "terraform-provider-openstack", NULL,        NULL,                 NULL,                    "terraform-provider-openstack", "terraform-provider-openstack" },
        { "metrics-server",          NULL,             NULL,                 NULL,                    "metrics-server", "metrics-server" },
        { "local-path-provisioner",  NULL,             NULL,                 NULL,                    "local-path-provisioner", "local-path-provisioner" },
        { "kube-state-metrics",      NULL,             NULL,                 NULL,                    "kube-state-metrics", "kube-state-metrics" },
        { "registry",                NULL,             NULL,                 NULL,                    "registry",    "registry" },
        { "node-problem-detector",   NULL,             NULL,                 NULL,                    "node-problem-detector", "node-problem-detector" },
        { "kube-vip",                NULL,             NULL,                 NULL,                    "kube-vip",    "kube-vip" },
        { "kube-vip-cloud-provider", NULL,             NULL,                 NULL,                    "kube-vip-cloud-provider", "kube-vip-cloud-provider" },
        { "openstack-cloud-controller-manager", NULL,  NULL,                 NULL,                    "openstack-cloud-controller-manager", "openstack-cloud-controller-manager" },
        { "cloud-controller-manager", NULL,            NULL,                 NULL,                    "cloud-controller-manager", "aws-cloud-controller-manager" },
        { "csi-provisioner",         NULL,             NULL,                 NULL,                    "csi-provisioner", "csi-provisioner" },
        { "csi-attacher",            NULL,             NULL,                 NULL,                    "csi-attacher", "csi-attacher" },
        { "csi-resizer",             NULL,             NULL,                 NULL,                    "csi-resizer", "csi-resizer" },
        { "cinder-csi-plugin",       NULL,             NULL,                 NULL,                    "cinder-csi-plugin", "cinder-csi-plugin" },
        { "traefik",                 NULL,             NULL,                 NULL,                    "traefik",     "traefik" },
        { "prometheus",              NULL,             NULL,                 NULL,                    "prometheus",  "prometheus" },
        { "node-exporter",           NULL,             NULL,                 NULL,                    "node-exporter", "node_exporter" },
        { "multus",                  NULL,             NULL,                 NULL,                    "multus",      "multus" },
        { "e2e.test",                NULL,             NULL,                 NULL,                    "e2e",         "e2e.test" },
        { "agnhost",                 NULL,             NULL,                 NULL,                    "agnhost",     "agnhost" },
};

#define K8S_CMD  "k8s.io/kubernetes/cmd/"
#define CTRD_MOD "github.com/containerd/containerd/v2"
#define CNI_MOD  "github.com/containernetworking/plugins"
#define CALICO   "github.com/projectcalico/calico"
#define TRAEFIK  "github.com/traefik/traefik/v3"
#define PROMETHEUS "github.com/prometheus/prometheus"
#define MULTUS   "gopkg.in/k8snetworkplumbingwg/multus-cni.v4"
#define TOFU     "github.com/opentofu/opentofu"
#define TF_OPENSTACK "github.com/terraform-provider-openstack/terraform-provider-openstack"
#define CSI      "github.com/kubernetes-csi/external-"
#define OPENSTACK "k8s.io/cloud-provider-openstack"
#define STRIP    "-s -w"
#define K8S_LDFLAGS \
        STRIP " -X k8s.io/component-base/version.gitVersion=v{v} -X k8s.io/client-go/pkg/version.gitVersion=v{v}" \
              " -X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}"

static const struct recipe recipes[] = {
        { "kubernetes", { "k8s.io/kubernetes" },
          { K8S_CMD "kube-apiserver", K8S_CMD "kube-controller-manager", K8S_CMD "kube-scheduler", K8S_CMD "kubelet", K8S_CMD "kube-proxy",
            K8S_CMD "kubeadm", K8S_CMD "kubectl" },
          K8S_LDFLAGS, .staging = true, .minutes = 15 },
        /* upstream's own tests, and the program of their pods */
        { "e2e", { "k8s.io/kubernetes" }, { "k8s.io/kubernetes/test/e2e" }, K8S_LDFLAGS, .staging = true, .test = true, .minutes = 20 },
        { "agnhost", { "k8s.io/kubernetes" }, { "k8s.io/kubernetes/test/images/agnhost" }, K8S_LDFLAGS, .staging = true, .minutes = 4 },
        { "etcd", { "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3" },
          { "etcd=go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3" }, STRIP, .minutes = 3 },
        { "containerd", { CTRD_MOD }, { CTRD_MOD "/cmd/containerd", CTRD_MOD "/cmd/ctr", CTRD_MOD "/cmd/containerd-shim-runc-v2" },
          STRIP " -X " CTRD_MOD "/version.Version=v{v}", .minutes = 3 },
        { "cni", { CNI_MOD },
          { CNI_MOD "/plugins/main/bridge", CNI_MOD "/plugins/main/loopback", CNI_MOD "/plugins/main/ptp", CNI_MOD "/plugins/main/macvlan",
            CNI_MOD "/plugins/ipam/host-local", CNI_MOD "/plugins/ipam/dhcp", CNI_MOD "/plugins/meta/portmap",
            CNI_MOD "/plugins/meta/bandwidth", CNI_MOD "/plugins/meta/firewall", CNI_MOD "/plugins/meta/tuning" }, STRIP },
        { "flannel-cni", { CNI_MOD }, { CNI_MOD "/plugins/meta/flannel" }, STRIP },
        { "flannel", { "github.com/flannel-io/flannel" }, { "flanneld=github.com/flannel-io/flannel" }, STRIP, "netgo,osusergo", .cgo = true, .minutes = 2 },
        { "coredns", { "github.com/coredns/coredns" }, { "github.com/coredns/coredns" }, STRIP, .minutes = 3 },
        { "crictl", { "sigs.k8s.io/cri-tools" }, { "sigs.k8s.io/cri-tools/cmd/crictl" }, STRIP " -X sigs.k8s.io/cri-tools/pkg/version.Version=v{v}", .minutes = 2 },
        { "runc", { "github.com/opencontainers/runc" }, { "github.com/opencontainers/runc" }, STRIP " -X main.version={v}",
          "seccomp,netgo,osusergo", .cgo = true, .library = "libseccomp", .own = true },
        { "helm", { "helm.sh/helm/v3" }, { "helm.sh/helm/v3/cmd/helm" }, STRIP " -X helm.sh/helm/v3/internal/version.version=v{v}", .minutes = 6 },
        { "ignition", { "github.com/coreos/ignition/v2" }, { "ignition-validate=github.com/coreos/ignition/v2/validate" }, STRIP },
        /* the benchmark's tables are data of the module */
        { "kube-bench", { "github.com/aquasecurity/kube-bench" }, { "github.com/aquasecurity/kube-bench" }, STRIP, .data = "cfg", .minutes = 9 },
        { "kubelogin", { "github.com/int128/kubelogin" }, { "github.com/int128/kubelogin" }, STRIP, .minutes = 2 },
        /* its go.mod replaces api/v2 by a directory; its module has commits, but no versions */
        { "dex", { "github.com/dexidp/dex", "github.com/dexidp/dex/api/v2@v2.1.0" }, { "github.com/dexidp/dex/cmd/dex" }, STRIP,
          "netgo,osusergo,sqlite_omit_load_extension", .cgo = true, .builds = "0.0.0-20210917061239-f0186ff2651e", .minutes = 5 },
        { "opentofu", { TOFU }, { TOFU "/cmd/tofu" }, STRIP " -X " TOFU "/version.dev=no", .replaces = true, .minutes = 12 },
        { "terraform-provider-openstack", { TF_OPENSTACK }, { TF_OPENSTACK }, STRIP, .minutes = 4 },
        /* of addons */
        { "metrics-server", { "sigs.k8s.io/metrics-server" }, { "sigs.k8s.io/metrics-server/cmd/metrics-server" },
          STRIP " -X k8s.io/client-go/pkg/version.gitVersion=v{v} -X k8s.io/component-base/version.gitVersion=v{v}", .minutes = 4 },
        { "local-path-provisioner", { "github.com/rancher/local-path-provisioner" }, { "github.com/rancher/local-path-provisioner" },
          STRIP " -X main.VERSION=v{v}", .minutes = 3 },
        { "kube-state-metrics", { "k8s.io/kube-state-metrics/v2" }, { "kube-state-metrics=k8s.io/kube-state-metrics/v2" },
          STRIP " -X github.com/prometheus/common/version.Version=v{v}", .minutes = 5 },
        { "node-problem-detector", { "k8s.io/node-problem-detector" }, { "node-problem-detector=k8s.io/node-problem-detector/cmd/nodeproblemdetector" },
          STRIP " -X k8s.io/node-problem-detector/pkg/version.version=v{v}", "disable_stackdriver_exporter", .minutes = 3 },
        { "kube-vip", { "github.com/kube-vip/kube-vip" }, { "github.com/kube-vip/kube-vip" }, STRIP " -X main.Version=v{v}", .minutes = 4 },
        { "kube-vip-cloud-provider", { "github.com/kube-vip/kube-vip-cloud-provider" }, { "github.com/kube-vip/kube-vip-cloud-provider" },
          STRIP " -X k8s.io/component-base/version.gitVersion=v{v}", .minutes = 5 },
        { "openstack-cloud-controller-manager", { OPENSTACK }, { OPENSTACK "/cmd/openstack-cloud-controller-manager" },
          STRIP " -X " OPENSTACK "/pkg/version.Version=v{v} -X k8s.io/component-base/version.gitVersion=v{v}", .minutes = 6 },
        /* no image is made of it: that one also has the programs that format and mount disks */
        { "cinder-csi-plugin", { OPENSTACK }, { OPENSTACK "/cmd/cinder-csi-plugin" }, STRIP " -X " OPENSTACK "/pkg/version.Version=v{v}", .minutes = 4 },
        { "csi-provisioner", { CSI "provisioner/v6" }, { CSI "provisioner/v6/cmd/csi-provisioner" }, STRIP " -X main.version=v{v}", .minutes = 4 },
        { "csi-attacher", { CSI "attacher/v4" }, { CSI "attacher/v4/cmd/csi-attacher" }, STRIP " -X main.version=v{v}", .minutes = 3 },
        { "csi-resizer", { CSI "resizer/v2" }, { CSI "resizer/v2/cmd/csi-resizer" }, STRIP " -X main.version=v{v}", .minutes = 3 },
        /* of AWS: its image has this name */
        { "cloud-controller-manager", { "k8s.io/cloud-provider-aws" }, { "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager" },
          STRIP " -X k8s.io/component-base/version.gitVersion=v{v}", .minutes = 6 },
        { "registry", { "github.com/distribution/distribution/v3" }, { "github.com/distribution/distribution/v3/cmd/registry" },
          STRIP " -X github.com/distribution/distribution/v3/version.version=v{v}", .minutes = 6 },
        { "traefik", { TRAEFIK }, { TRAEFIK "/cmd/traefik" }, STRIP " -X " TRAEFIK "/pkg/version.Version={v}", .replaces = true, .minutes = 20 },
        /* 3.13.5, as Go modules number it. It finds only targets of Kubernetes; its web pages are
         * built with npm, so there are none */
        { "prometheus", { PROMETHEUS }, { PROMETHEUS "/cmd/prometheus" }, STRIP " -X github.com/prometheus/common/version.Version=3.13.5",
          "netgo,remove_all_sd,enable_kubernetes_sd", .builds = "0.313.5", .same = true, .minutes = 8 },
        { "node-exporter", { "github.com/prometheus/node_exporter" }, { "github.com/prometheus/node_exporter" },
          STRIP " -X github.com/prometheus/common/version.Version={v}", "netgo", .minutes = 2 },
        { "multus", { MULTUS }, { MULTUS "/cmd/multus" }, STRIP " -X " MULTUS "/pkg/multus.version=v{v}", .minutes = 4 },
        /* its go.mod replaces api by a directory; its releases have no tag that Go accepts */
        { "calico", { CALICO, "github.com/projectcalico/api@v0.0.0-20240708202104-e3f70b269c2c" },
          { CALICO "/node/cmd/calico-node", CALICO "/cni-plugin/cmd/calico", CALICO "/kube-controllers/cmd/kube-controllers" },
          STRIP " -X " CALICO "/node/pkg/lifecycle/startup.VERSION=v" CALICO_VERSION " -X " CALICO "/node/buildinfo.GitVersion=v" CALICO_VERSION
          " -X main.VERSION=v" CALICO_VERSION, .builds = "1.11.0-cni-plugin.0.20250813170300-a0db560f0520", .minutes = 15 },
        { "crun", .own = true },   /* C: no module to build */
        { "conmon", .own = true },
        { "pause", .agent = true }, /* the agent, under another name */
        { "probe", .agent = true },
};

static const struct image_origin images[] = {
        { "kube-apiserver",          "kubernetes", "kube-apiserver",          "/usr/local/bin/kube-apiserver",          NULL },
        { "kube-controller-manager", "kubernetes", "kube-controller-manager", "/usr/local/bin/kube-controller-manager", NULL },
        { "kube-scheduler",          "kubernetes", "kube-scheduler",          "/usr/local/bin/kube-scheduler",          NULL },
        { "etcd",                    "etcd",       "etcd",                    "/usr/local/bin/etcd",                    NULL },
        { "coredns",                 "coredns",    "coredns",                 "/coredns",                               NULL },
        { "metrics-server",          "metrics-server", "metrics-server",      "/metrics-server",                        "65534:65534" },
        { "local-path-provisioner",  "local-path-provisioner", "local-path-provisioner", "/usr/bin/local-path-provisioner", NULL },
        { "kube-state-metrics",      "kube-state-metrics", "kube-state-metrics", "/kube-state-metrics",                 "65534:65534" },
        { "registry",                "registry",   "registry",                "/bin/registry",                          "65534:65534" },
        { "node-problem-detector",   "node-problem-detector", "node-problem-detector", "/node-problem-detector",      NULL },
        { "kube-vip",                "kube-vip",   "kube-vip",                "/kube-vip",                              NULL },
        { "kube-vip-cloud-provider", "kube-vip-cloud-provider", "kube-vip-cloud-provider", "/kube-vip-cloud-provider", "65532:65532" },
        { "openstack-cloud-controller-manager", "openstack-cloud-controller-manager", "openstack-cloud-controller-manager", "/bin/openstack-cloud-controller-manager", "65532:65532" },
        { "cloud-controller-manager", "cloud-controller-manager", "aws-cloud-controller-manager", "/bin/aws-cloud-controller-manager", "65532:65532" },
        { "csi-provisioner",         "csi-provisioner", "csi-provisioner",    "/csi-provisioner",                       "65532:65532" },
        { "csi-attacher",            "csi-attacher", "csi-attacher",          "/csi-attacher",                          "65532:65532" },
        { "csi-resizer",             "csi-resizer", "csi-resizer",            "/csi-resizer",                           "65532:65532" },
        { "traefik",                 "traefik",    "traefik",                 "/usr/local/bin/traefik",                 "65532:65532" },
        { "prometheus",              "prometheus", "prometheus",              "/bin/prometheus",                        "65534:65534" },
        { "node-exporter",           "node-exporter", "node_exporter",        "/bin/node_exporter",                     "65534:65534" },
        { "dex",                     "dex",        "dex",                     "/usr/local/bin/dex",                     "1001:1001" },
        { "kube-controllers",        "calico",     "kube-controllers",        "/usr/bin/kube-controllers",              "999:999" },
        { "pause",                   "pause",      "pause",                   "/pause",                                 "65535:65535" },
        { "probe",                   "probe",      "probe",                   "/probe",                                 "65535:65535" },
};
/* clang-format on */

#define FIND(table, wanted) \
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) \
                if (streq(table[i].name, wanted)) \
                        return &table[i]; \
        return NULL

const struct origin *origin_of(const char *name) { FIND(origins, name); }

const struct image_origin *image_origin_of(const char *name) { FIND(images, name); }

const struct recipe *recipe_of(const char *name) { FIND(recipes, name); }

const char *recipe_version(const char *recipe, const struct catalogue *c, struct arena *a)
{
        const struct recipe *r = recipe_of(recipe);
        if (r && r->builds)
                return r->builds;
        for (size_t i = 0; i < ART_COUNT; i++) {
                const struct origin *o = origin_of(c->artifacts[i].name);
                if (o && o->recipe && streq(o->recipe, recipe))
                        return c->artifacts[i].version;
        }
        for (size_t i = 0; i < IMG_COUNT; i++) {
                char *name CLEANUP(free_p) = NULL, *version CLEANUP(free_p) = NULL;
                if (image_words(c->images[i].name, &name, &version) && streq(name, recipe))
                        return arena_strdup(a, version);
        }
        return catalogue_tool(recipe);
}

const struct origin *recipe_origin(const char *recipe)
{
        for (size_t i = 0; i < ARRAY_SIZE(origins); i++)
                if (origins[i].recipe && streq(origins[i].recipe, recipe))
                        return &origins[i];
        return NULL;
}

bool image_words(const char *reference, char **name, char **version)
{
        const char *slash = strrchr(reference, '/'), *last = slash ? slash + 1 : reference,
                   *colon = strchr(last, ':');
        if (!colon || colon == last || !colon[1] || strchr(last, '@'))
                return false;
        *name = xstrndup(last, (size_t)(colon - last));
        const char *tag = colon[1] == 'v' ? colon + 2 : colon + 1, *dash = strrchr(tag, '-');
        /* etcd:3.6.16-0: the number of the packaging */
        bool again = dash && dash[1] && !dash[1 + strspn(dash + 1, "0123456789")];
        *version = xstrndup(tag, again ? (size_t)(dash - tag) : strlen(tag));
        return true;
}

char *origin_expand(const char *pattern, const char *version, const char *arch)
{
        size_t major = strcspn(version, "."),
               minor = version[major] ? strcspn(version + major + 1, ".") : 0;
        const struct {
                const char *word, *value;
                size_t n;
        } words[] = {
                { "{v}", version, strlen(version) },
                { "{a}", arch, strlen(arch) },
                { "{major}", version, major },
                { "{minor}", version + major + !!version[major], minor },
        };
        struct str out = { 0 };
        while (*pattern) {
                size_t i = 0;
                while (i < ARRAY_SIZE(words) && !has_prefix(pattern, words[i].word))
                        i++;
                if (i < ARRAY_SIZE(words)) {
                        str_addn(&out, words[i].value, words[i].n);
                        pattern += strlen(words[i].word);
                } else {
                        str_addc(&out, *pattern++);
                }
        }
        return str_take(&out);
}

char *origin_mirrored(const char *mirror, const char *url)
{
        const char *path = strstr(url, "://");
        size_t n = strlen(mirror);
        while (n && mirror[n - 1] == '/')
                n--;
        return xasprintf("%.*s/%s", (int)n, mirror, path ? path + 3 : url);
}

/* One line: its checksum, if it is for that file. */
static bool line_is(const char *line, size_t n, const char *file, char out[65])
{
        if (n < 64)
                return false;
        for (size_t i = 0; i < 64; i++)
                out[i] = line[i] >= 'A' && line[i] <= 'F' ? (char)(line[i] + 32) : line[i];
        out[64] = 0;
        if (!sha256_valid(out))
                return false;
        const char *name = line + 64, *end = line + n;
        while (name < end && strchr(" \t*", *name))
                name++;
        while (end > name && strchr(" \t\r", end[-1]))
                end--;
        const char *slash = memrchr(name, '/', (size_t)(end - name));
        name = slash ? slash + 1 : name;
        return name == end ||
               ((size_t)(end - name) == strlen(file) && memcmp(name, file, strlen(file)) == 0);
}

bool sums_find(const char *text, const char *file, char out[65])
{
        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");
                if (line_is(line, n, file, out))
                        return true;
                line += n + !!line[n];
        }
        *out = 0;
        return false;
}
