#include "base/base.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "node_fixture.h"
#include "node/context.h"

#define MANIFESTS "/etc/kubernetes/manifests/"

/* Units that a file restarts are units of the node or of its OS. */
static void test_units(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        fixture_render(&f, "c1", &s);
        static const char *const started[] = { "etcd.service", "containerd.service",
                "slipway-haproxy.service", "slipway-keepalived.service", "kubelet.service",
                "kube-proxy.service", "flanneld.service" };
        for (size_t i = 0; i < ARRAY_SIZE(started); i++) {
                const struct spec_entry *e = nodespec_find(&s, SPEC_UNIT, started[i]);
                char *path CLEANUP(free_p) = xasprintf("/etc/systemd/system/%s", started[i]);
                assert_non_null(e);
                assert_int_equal(e->flags & (SPEC_ENABLE | SPEC_START), SPEC_ENABLE | SPEC_START);
                has(&s, path,
                        "ConditionPathExists="); /* or it would fail until the other files come */
        }
        assert_int_equal(nodespec_find(&s, SPEC_UNIT, "haproxy.service")->flags, SPEC_DISABLE);
        assert_int_equal(nodespec_find(&s, SPEC_UNIT, "keepalived.service")->flags, SPEC_DISABLE);
        assert_string_equal(nodespec_find(&s, SPEC_FILE, "/etc/containerd/config.toml")->units,
                "containerd.service");
        nodespec_release(&s);
        fixture_release(&f);
}

/* ---- values ---- */

static void test_control_plane(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        fixture_render(&f, "c2", &s);
        const char *m = MANIFESTS "kube-apiserver.yaml";
        static const char *const flags[] = { "--advertise-address=192.0.2.12",
                "--etcd-servers=https://127.0.0.1:2379",
                "--encryption-provider-config=/etc/kubernetes/encryption/config.yaml",
                "--audit-policy-file=/etc/kubernetes/audit/policy.yaml",
                "--admission-control-config-file=/etc/kubernetes/admission/config.yaml",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                "kube-apiserver.advertise-address.endpoint: \"192.0.2.12:6443\"",
                "image: registry.k8s.io/kube-apiserver:v" KUBERNETES_NEWEST };
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                has(&s, m, flags[i]);
        has(&s, MANIFESTS "kube-controller-manager.yaml", "--node-cidr-mask-size=24");
        has(&s, "/etc/kubernetes/encryption/config.yaml", "secret: U0VDUkVU");
        has(&s, "/etc/kubernetes/controller-manager.conf",
                "server: https://127.0.0.2:7443\n    tls-server-name: \"127.0.0.1\"");
        has(&s, "/etc/kubernetes/admin.conf", "server: https://192.0.2.10:6443");
        has(&s, "/etc/kubernetes/kubelet.conf", "server: https://127.0.0.1:7443");
        has(&s, "/etc/etcd/etcd.yaml",
                "initial-cluster: \"c1=https://192.0.2.11:2380,c2=https://192.0.2.12:2380,c3=https://192.0.2.13:2380\"");
        has(&s, "/etc/etcd/etcd.yaml", "initial-cluster-token: ha-ab12c");
        has(&s, "/etc/slipway/haproxy.cfg", "server c3 192.0.2.13:6443");
        has(&s, "/var/lib/kubelet/config.yaml", "key: node-role.kubernetes.io/control-plane");
        nodespec_release(&s);
        fixture_release(&f);
}

static void test_keepalived(void **state)
{
        static const struct {
                const char *vip;
                const char *id;
        } table[] = { { "192.0.2.10", "virtual_router_id 12\n" },
                { "10.0.255.255", "virtual_router_id 255\n" },
                { "10.0.1.255", "virtual_router_id 1\n" },
                { "10.0.0.0", "virtual_router_id 255\n" }, { "fd00::1:2", "virtual_router_id 3\n" },
                { "fd00::ffff:ffff", "virtual_router_id 255\n" } };
        struct fixture f;
        fixture_init(&f, ha_yaml);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct nodespec s;
                f.cluster->api.vip = table[i].vip;
                fixture_render(&f, "c1", &s);
                has(&s, "/etc/slipway/keepalived.conf", table[i].id);
                assert_int_equal(
                        nodespec_find(&s, SPEC_FILE, "/etc/slipway/keepalived.conf")->class,
                        CLASS_SECRET);
                nodespec_release(&s);
        }
        struct nodespec s;
        f.cluster->api.vip = "192.0.2.10";
        f.cluster->api.virtual_router_id = 77;
        fixture_render(&f, "c3", &s);
        static const char *const lines[] = { "virtual_router_id 77\n", "priority 198\n",
                "unicast_src_ip 192.0.2.13\n",
                "                192.0.2.11\n                192.0.2.12\n",
                "192.0.2.10/32 dev eth0", "auth_pass secretpw", "</dev/tcp/127.0.0.3/343'\"" };
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                has(&s, "/etc/slipway/keepalived.conf", lines[i]);
        has(&s, "/etc/slipway/haproxy.cfg",
                "bind 127.0.0.3:343\n"); /* below 1024: not for everybody to take */
        nodespec_release(&s);
        f.cluster->api.local_balancer =
                false; /* then the API server is asked, and has to show its certificate */
        fixture_render(&f, "c3", &s);
        has(&s, "/etc/slipway/keepalived.conf",
                "\"/usr/bin/curl -sf --cacert /etc/slipway/api-ca.crt --max-time 4 -o /dev/null https://127.0.0.1:6443/readyz\"");
        assert_string_equal(
                content(&s, "/etc/slipway/api-ca.crt"), f.identity.ca[CA_CLUSTER].bundle);
        has(&s, "/etc/kube-flannel/flanneld.env", "API=https://192.0.2.10:6443\n");
        nodespec_release(&s);
        fixture_release(&f);
}

/* Who listens where an API server should has to show that it is one: no check takes just any
 * certificate. */
static void test_checks_verify(void **state)
{
        static const char *const names[] = { "c1", "w1" };
        struct fixture f;
        fixture_init(&f, ha_yaml);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct nodespec s;
                fixture_render(&f, names[i], &s);
                has_not(&s, "/etc/slipway/haproxy.cfg", "verify none");
                has(&s, "/etc/slipway/haproxy.cfg",
                        "check-ssl verify required ca-file /etc/slipway/api-ca.crt verifyhost kubernetes");
                assert_string_equal(nodespec_find(&s, SPEC_FILE, "/etc/slipway/api-ca.crt")->units,
                        "slipway-haproxy.service");
                nodespec_release(&s);
        }
        struct nodespec s;
        fixture_render(&f, "c1", &s);
        has(&s, MANIFESTS "kube-apiserver.yaml",
                "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt");
        nodespec_release(&s);
        f.cluster->certificates.verify_kubelets = false;
        fixture_render(&f, "c1", &s);
        has_not(&s, MANIFESTS "kube-apiserver.yaml", "kubelet-certificate-authority");
        nodespec_release(&s);
        fixture_release(&f);
}

/* Both renderings of the facts that real machines showed. */
static void test_facts_decide(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        fixture_render(&f, "w1", &s);
        has(&s, "/var/lib/kubelet/config.yaml", "cgroupDriver: systemd");
        has_not(&s, "/var/lib/kubelet/config.yaml", "failCgroupV1");
        has_not(&s, "/var/lib/kubelet/config.yaml", "oomScoreAdj");
        has(&s, "/etc/containerd/config.toml", "SystemdCgroup = true");
        has_not(&s, "/etc/containerd/config.toml", "restrict_oom_score_adj");
        has(&s, "/etc/systemd/system/containerd.service", "OOMScoreAdjust=-999");
        has_not(&s, "/var/lib/kube-proxy/config.conf", "conntrack");
        nodespec_release(&s);
        f.facts.cgroup = 1;
        f.facts.sys_resource = false;
        fixture_render(&f, "w1", &s);
        has(&s, "/var/lib/kubelet/config.yaml", "cgroupDriver: cgroupfs");
        has(&s, "/var/lib/kubelet/config.yaml", "failCgroupV1: false");
        has(&s, "/var/lib/kubelet/config.yaml", "oomScoreAdj: 0");
        has(&s, "/etc/containerd/config.toml", "SystemdCgroup = false");
        has(&s, "/etc/containerd/config.toml", "restrict_oom_score_adj = true");
        has_not(&s, "/etc/systemd/system/containerd.service", "OOMScoreAdjust");
        has(&s, "/var/lib/kube-proxy/config.conf", "maxPerCore: 0");
        has(&s, "/var/lib/kube-proxy/config.conf", "oomScoreAdj: 0");
        nodespec_release(&s);
        fixture_release(&f);
}

static void test_no_ipvs(void **state)
{
        struct fixture f;
        struct nodespec s;
        struct error err CLEANUP(error_release) = { 0 };
        fixture_init(&f, ha_yaml);
        struct spec_input in = fixture_input(&f, "w1");
        f.cluster->network.proxy_mode = PROXY_IPVS;
        f.facts.ipvs = false;
        assert_true(node_render(&in, &s, &err) < 0);
        assert_int_equal(err.status, EXIT_PREFLIGHT);
        assert_string_equal(
                err.message, "node w1: network.proxyMode is ipvs, but the kernel has no IPVS");
        f.facts.ipvs = true;
        assert_int_equal(node_render(&in, &s, &err), 0);
        has(&s, "/etc/modules-load.d/slipway.conf", "ip_vs_wrr");
        nodespec_release(&s);
        fixture_release(&f);
}

/* NodeRestriction: the kubelet may not give itself every label. */
static void test_labels(void **state)
{
        struct pair labels[] = { { "zone", "a" }, { "node-role.kubernetes.io/worker", "" },
                { "topology.kubernetes.io/zone", "z" }, { "x.node.kubernetes.io/y", "1" },
                { "node-restriction.kubernetes.io/a", "1" }, { "foo.k8s.io/a", "1" },
                { "example.net/a", "b" } };
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        ((struct pool *)(uintptr_t)cluster_node(f.cluster, "w2")->pool)->labels =
                (struct pairs){ ARRAY_SIZE(labels), labels };
        fixture_render(&f, "w2", &s);
        has(&s, "/var/lib/kubelet/kubeadm-flags.env",
                "--node-labels=slipway.dev/pool=worker,zone=a,topology.kubernetes.io/zone=z,x.node.kubernetes.io/y=1,example.net/a=b\"");
        nodespec_release(&s);
        fixture_release(&f);
}

/* The kubelet takes its client certificate over: a link that is written only where nothing is. */
/* A share of a disk that is not its own means nothing. */
static void test_shared_disk(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, NODE_HEAD
                "  provider: {local: {}}\n"
                "  pools: [{name: c, roles: [control-plane, etcd], count: 1}, {name: w, count: 1, kubelet: {evictionHard: {nodefs.available: 2Gi}}}]\n");
        fixture_render(&f, "c-1", &s);
        has(&s, "/var/lib/kubelet/config.yaml",
                "evictionHard:\n  imagefs.available: \"1Gi\"\n  memory.available: \"100Mi\"\n  nodefs.available: \"1Gi\"\n");
        has(&s, "/var/lib/kubelet/config.yaml", "imageGCHighThresholdPercent: 100\n");
        nodespec_release(&s);
        fixture_render(&f, "w-1", &s);
        has(&s, "/var/lib/kubelet/config.yaml", "nodefs.available: \"2Gi\"\n");
        nodespec_release(&s);
        fixture_release(&f);
}

static void test_kubelet_client(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        fixture_render(&f, "w1", &s);
        const struct spec_entry *link =
                nodespec_find(&s, SPEC_LINK, "/var/lib/kubelet/pki/kubelet-client-current.pem");
        assert_non_null(link);
        assert_int_equal(link->flags, SPEC_ONCE);
        const struct spec_entry *file = nodespec_find(&s, SPEC_FILE, link->target);
        assert_non_null(file);
        assert_int_equal(file->flags, SPEC_ONCE);
        assert_int_equal(file->class, CLASS_SECRET);
        assert_int_equal(file->mode, 0600);
        nodespec_release(&s);
        fixture_release(&f);
}

static void test_overlay(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, NODE_HEAD
                "  provider: {ssh: {user: root}}\n "
                " components:\n"
                "    kubelet: {config: {imageMinimumGCAge: 5m, containerLogMaxSize: 5Mi}, systemReserved: {cpu: 100m, memory: 1Gi}}\n"
                "    kubeProxy: {flags: {metrics-bind-address: \"0.0.0.0:10249\", v: 4, conntrack-min: 0}}\n"
                "    etcd: {flags: {grpc-keepalive-interval: 1h30m, max-request-bytes: 100, log-level: warn}}\n"
                "  pools:\n    - {name: c, roles: [control-plane, etcd], hosts: [{name: c1, address: 192.0.2.11}], kubelet: {config: "
                "{containerLogMaxSize: 9Mi}, systemReserved: {cpu: 200m}}}\n");
        fixture_render(&f, "c1", &s);
        has(&s, "/var/lib/kubelet/config.yaml", "imageMinimumGCAge: \"5m\"\n");
        has(&s, "/var/lib/kubelet/config.yaml", "containerLogMaxSize: \"9Mi\"\n");
        has(&s, "/var/lib/kubelet/config.yaml",
                "systemReserved:\n  cpu: \"200m\"\n  memory: \"1Gi\"\n");
        has(&s, "/var/lib/kubelet/config.yaml",
                "authentication:\n  anonymous:\n    enabled: false\n");
        has(&s, "/var/lib/kubelet/config.yaml",
                "registerWithTaints:\n- key: node-role.kubernetes.io/control-plane\n  effect: NoSchedule\n");
        has(&s, "/var/lib/kube-proxy/config.conf", "metricsBindAddress: \"0.0.0.0:10249\"\n");
        has(&s, "/var/lib/kube-proxy/config.conf", "conntrack:\n  min: 0\n");
        has(&s, "/var/lib/kube-proxy/flags.env", "KUBE_PROXY_ARGS=\"--v=4\"\n");
        has(&s, "/etc/etcd/etcd.yaml", "grpc-keepalive-interval: 5400000000000\n");
        has(&s, "/etc/etcd/etcd.yaml", "max-request-bytes: 100\n");
        has(&s, "/etc/etcd/etcd.yaml", "log-level: warn\n");
        nodespec_release(&s);
        fixture_release(&f);
}

/* ---- classes ---- */

static bool same_entry(const struct spec_entry *a, const struct spec_entry *b)
{
        const char *const pa[] = { a->path, a->name, a->target, a->version, a->owner, a->units,
                a->content },
                          *const pb[] = { b->path, b->name, b->target, b->version, b->owner,
                                  b->units, b->content };
        for (size_t i = 0; i < ARRAY_SIZE(pa); i++)
                if (!pa[i] != !pb[i] || (pa[i] && !streq(pa[i], pb[i])))
                        return false;
        return a->kind == b->kind && a->class == b->class && a->flags == b->flags &&
               a->mode == b->mode && a->len == b->len;
}

/* What user-data holds is, byte for byte, what the whole NodeSpec says of the same entries. */
static void test_immutable(void **state)
{
        static const char *const ids[] = { "debian", "ubuntu", "rocky", "fedora", "opensuse-leap",
                "flatcar" };
        struct fixture f;
        fixture_init(&f, ha_yaml);
        static const char *const nodes[] = { "c1", "w1" };
        for (size_t i = 0; i < ARRAY_SIZE(ids) * 2; i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct nodespec all, some;
                struct node bare = *cluster_node(f.cluster, nodes[i % 2]);
                ((struct pool *)(uintptr_t)bare.pool)->os = ids[i / 2];
                f.facts = (struct facts){ 0 };
                fixture_render(&f, nodes[i % 2], &all);
                bare.ip[0] = bare.ip[1] = (struct ip){ 0 };
                bare.address = NULL;
                struct spec_input in = { .cluster = f.cluster, .node = &bare, .facts = &f.facts };
                assert_int_equal(node_render_immutable(&in, &some, &err), 0);
                size_t k = 0;
                for (size_t j = 0; j < all.count; j++) {
                        if (all.entries[j].class != CLASS_IMMUTABLE)
                                continue;
                        assert_true(k < some.count);
                        assert_true(same_entry(&all.entries[j], &some.entries[k]));
                        k++;
                        const char *text = all.entries[j].content;
                        if (text && (strstr(text, "192.0.2.") || strstr(text, KUBERNETES_NEWEST) ||
                                            strstr(text, "SECRET")))
                                fail_msg(
                                        "%s is immutable but has an address, a version or a secret in it",
                                        all.entries[j].path);
                }
                assert_int_equal(k, some.count);
                nodespec_release(&all);
                nodespec_release(&some);
        }
        fixture_release(&f);
}

/* Secrets are secret, nothing else is, and none of their digests is in the JSON. */
static void test_secrets(void **state)
{
        struct fixture f;
        struct nodespec s;
        struct str json CLEANUP(str_release) = { 0 };
        fixture_init(&f, ha_yaml);
        f.cluster->registry = (struct registry){
                .mirror = "r.example.net", .username = "u", .password = "SECRETpw"
        };
        f.cluster->proxy.http = "http://u:SECRETproxy@p:1";
        f.cluster->etcd.snapshots.copy_key = "ID:SECRETkey";
        fixture_render(&f, "c1", &s);
        for (size_t i = 0; i < s.count; i++) {
                const struct spec_entry *e = &s.entries[i];
                bool secret = e->content &&
                              (strstr(e->content, "SECRET") || strstr(e->content, "secretpw") ||
                                      strstr(e->content, "U0VDUkVU") ||
                                      strstr(e->content, "client-key-data"));
                if (secret != (e->class == CLASS_SECRET) &&
                        !has_suffix(e->path ? e->path : "", "hosts.toml"))
                        fail_msg("%s is %s", e->path, spec_class_name(e->class));
                if (e->class == CLASS_SECRET)
                        assert_int_equal(e->mode, 0600);
        }
        assert_int_equal(
                nodespec_find(&s, SPEC_FILE, "/etc/containerd/certs.d/_default/hosts.toml")->class,
                CLASS_SECRET);
        assert_int_equal(
                nodespec_find(&s, SPEC_FILE, "/etc/slipway/proxy.env")->class, CLASS_SECRET);
        for (size_t i = 0; i < 3; i++) { /* pods' environments can be read through the API */
                static const char *const pods[] = { MANIFESTS "kube-apiserver.yaml",
                        MANIFESTS "kube-controller-manager.yaml", MANIFESTS "kube-scheduler.yaml" };
                has_not(&s, pods[i], "_PROXY");
        }
        assert_int_equal(nodespec_find(&s, SPEC_FILE, "/etc/slipway/s3.curl")->class, CLASS_SECRET);
        nodespec_json(&s, &json);
        json_error_t e;
        json_t *j = json_loads(str_text(&json), JSON_REJECT_DUPLICATES, &e);
        assert_non_null(j);
        size_t i;
        json_t *entry;
        json_array_foreach(json_object_get(j, "entries"), i, entry)
        {
                const char *class = json_string_value(json_object_get(entry, "class"));
                bool file = streq(json_string_value(json_object_get(entry, "kind")), "file");
                assert_int_equal(
                        !!json_object_get(entry, "sha256"), file && !streq(class, "secret"));
        }
        json_decref(j);
        assert_null(strstr(str_text(&json), "SECRET"));
        nodespec_release(&s);
        fixture_release(&f);
}

static void test_same_bytes(void **state)
{
        struct fixture f;
        struct nodespec a, b;
        fixture_init(&f, ha_yaml);
        fixture_render(&f, "c1", &a);
        fixture_render(&f, "c1", &b);
        assert_int_equal(a.count, b.count);
        for (size_t i = 0; i < a.count; i++)
                assert_true(same_entry(&a.entries[i], &b.entries[i]));
        nodespec_release(&a);
        nodespec_release(&b);
        fixture_release(&f);
}

/* ---- hostile values, end to end ---- */

#define EVIL "x\"\n'; touch pwned; #\n[evil]\nevil = 1\n- --evil=1\nExecStart=/evil\n%n $(evil) \\"

static void no_evil_line(const struct spec_entry *e)
{
        if (!e->content || e->class == CLASS_SECRET)
                return;
        for (const char *p = e->content; p; p = strchr(p, '\n')) {
                p += *p == '\n';
                const char *t = p + strspn(p, " ");
                if (has_prefix(t, "evil") || has_prefix(t, "[evil") || has_prefix(t, "- --evil") ||
                        has_prefix(t, "ExecStart=/evil") || has_prefix(t, "'; touch"))
                        fail_msg("something broke out in %s:\n%s", e->path, e->content);
                if (!*p)
                        break;
        }
}

static void test_hostile(void **state)
{
        static struct pair evil[] = { { "node-labels-x", EVIL } };
        static const char *words[] = { EVIL };
        const struct pairs pairs = { 1, evil };
        const struct strings strings = { 1, words };
        struct disk disk = { .device = "/dev/" EVIL,
                .filesystem = "ext4",
                .mount = "/mnt/" EVIL,
                .options = strings };
        struct taint taint = { EVIL, EVIL, EVIL };
        struct fixture f;
        fixture_init(&f, ha_yaml);
        struct cluster *c = f.cluster;
        c->components.apiserver.flags = c->components.controller_manager.flags =
                c->components.kubelet.flags = c->components.kube_proxy.flags =
                        c->components.etcd.flags = pairs;
        c->components.kubelet.system_reserved = c->components.kubelet.eviction_hard = pairs;
        c->os.sysctls = pairs;
        c->os.modules = c->os.ntp = c->os.packages = strings;
        c->admission.enable = strings;
        c->registry = (struct registry){ .mirror = EVIL, .mirrors = pairs };
        c->proxy = (struct proxies){
                .http = "http://" EVIL, .https = "http://" EVIL, .no_proxy = strings
        };
        c->auth.oidc = (struct oidc){
                .issuer = EVIL, .client_id = EVIL, .username_claim = EVIL, .groups_claim = EVIL
        };
        c->api.vip_interface = c->network.fabric.interface = c->runtime.pause = EVIL;
        c->etcd.data_dir = c->runtime.data_dir = "/var/" EVIL;
        c->os.updates = (struct os_updates){ .strategy = UPDATE_REBOOT,
                .group = EVIL,
                .server = EVIL,
                .window_start = EVIL,
                .window_length = EVIL };
        static const char *const ids[] = { "debian", "rocky", "opensuse-leap", "flatcar" };
        for (size_t i = 0; i < ARRAY_SIZE(ids) * 2; i++) {
                struct nodespec s;
                struct pool *p = (struct pool *)(uintptr_t)cluster_node(c, "c1")->pool;
                p->labels = pairs;
                p->taints = (struct taints){ 1, &taint };
                p->disks = (struct disks){ 1, &disk };
                p->os = ids[i / 2];
                c->runtime.kind = i % 2 ? RUNTIME_CRIO : RUNTIME_CONTAINERD;
                f.facts = (struct facts){ 0 };
                fixture_render(&f, "c1", &s);
                for (size_t k = 0; k < s.count; k++)
                        no_evil_line(&s.entries[k]);
                /* the flag arrives whole */
                struct arena a CLEANUP(arena_release) = { 0 };
                struct error err CLEANUP(error_release) = { 0 };
                struct tree *t;
                const char *text = content(&s, MANIFESTS "kube-apiserver.yaml");
                assert_int_equal(tree_parse(&a, "manifest", text, strlen(text), &t, &err), 0);
                bool found = false;
                const struct tree *containers = tree_get(tree_get(t, "spec"), "containers");
                tree_each (flag, tree_get(containers->first, "command"))
                        found |= streq(flag->text, "--node-labels-x=" EVIL);
                assert_true(found);
                nodespec_release(&s);
        }
        fixture_release(&f);
}

/* ---- small things ---- */

static void test_unit_escape(void **state)
{
        static const char *const table[][2] = {
                { "/", "-" },
                { "/var/lib/etcd", "var-lib-etcd" },
                { "//var//lib/", "var-lib" },
                { "/dev/disk/by-id/a b", "dev-disk-by\\x2did-a\\x20b" },
                { "/.hidden/.x", "\\x2ehidden-.x" },
                { "/a%b\xc3\xa9", "a\\x25b\\xc3\\xa9" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct str s CLEANUP(str_release) = { 0 };
                unit_escape(&s, table[i][0]);
                assert_string_equal(str_text(&s), table[i][1]);
        }
}

static void test_disks(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, NODE_HEAD
                "  provider: {aws: {region: eu-central-1, zones: [eu-central-1a], image: ami-1}}\n  pools:\n"
                "    - {name: c, roles: [control-plane, etcd], count: 1, instanceType: m7i.large, "
                "volumes: [{size: 20GiB, mount: /var/lib/etcd}, "
                "{size: 20GiB, mount: /var/lib/my-data, filesystem: xfs}]}\n");
        fixture_render(&f, "c-1", &s);
        has(&s, "/etc/systemd/system/var-lib-etcd.mount",
                "What=/dev/nvme1n1\nWhere=/var/lib/etcd\nType=ext4\n");
        has(&s, "/etc/systemd/system/var-lib-my\\x2ddata.mount",
                "What=/dev/nvme2n1\nWhere=/var/lib/my-data\nType=xfs\n");
        has(&s, "/etc/systemd/system/slipway-format-var-lib-my\\x2ddata.service",
                "ExecStart=/opt/slipway/format-blank /dev/nvme2n1 xfs\n");
        has(&s, "/etc/systemd/system/etcd.service", "RequiresMountsFor=/var/lib/etcd\n");
        assert_non_null(nodespec_find(&s, SPEC_PACKAGE, "xfsprogs"));
        assert_string_equal(nodespec_find(&s, SPEC_UNIT, "var-lib-etcd.mount")->units,
                "slipway-format-var-lib-etcd.service");
        assert_string_equal(nodespec_find(&s, SPEC_MOUNT, "/var/lib/etcd")->name, "/dev/nvme1n1");
        nodespec_release(&s);
        fixture_release(&f);
}

static void test_flatcar(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        ((struct pool *)(uintptr_t)cluster_node(f.cluster, "c1")->pool)->os = "flatcar";
        fixture_render(&f, "c1", &s);
        for (size_t i = 0; i < s.count; i++)
                assert_int_not_equal(s.entries[i].kind, SPEC_PACKAGE);
        assert_null(nodespec_find(&s, SPEC_UNIT, "slipway-haproxy.service"));
        has(&s, MANIFESTS "slipway-haproxy.yaml", "/etc/slipway/haproxy.cfg");
        has(&s, MANIFESTS "slipway-keepalived.yaml", "NET_ADMIN");
        static const char *const pods[] = { MANIFESTS "slipway-haproxy.yaml",
                MANIFESTS "slipway-keepalived.yaml" };
        for (size_t i = 0; i < ARRAY_SIZE(pods);
                i++) { /* no key is in their reach, and a new authority starts them again */
                has_not(&s, pods[i], "/etc/kubernetes/pki");
                has(&s, pods[i], "path: /etc/slipway/api-ca.crt\n");
                has_not(&s, pods[i], "@digest@");
        }
        has(&s, "/etc/slipway/keepalived.conf",
                "openssl s_client -quiet -verify_return_error -verify_ip 127.0.0.1 -CAfile /etc/slipway/api-ca.crt");
        has(&s, "/etc/systemd/system/kubelet.service", "ExecStart=/opt/bin/kubelet\n");
        has(&s, "/etc/flatcar/update.conf", "REBOOT_STRATEGY=off\n");
        has_not(&s, "/etc/slipway/haproxy.cfg", "user haproxy");
        assert_string_equal(nodespec_find(&s, SPEC_ARTIFACT, "kubelet")->path, "/opt/bin/kubelet");
        nodespec_release(&s);
        fixture_release(&f);
}

/* Behind an intermediate, clients are checked against its certificate alone; the bundle with its
 * root is for checking servers. */
static void test_intermediate(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        f.identity.ca[CA_CLUSTER].chain = PEM("root");
        f.identity.ca[CA_CLUSTER].bundle = PEM("bundle");
        fixture_render(&f, "c1", &s);
        has(&s, MANIFESTS "kube-controller-manager.yaml",
                "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt");
        has(&s, MANIFESTS "kube-controller-manager.yaml",
                "--root-ca-file=/etc/kubernetes/pki/ca-bundle.crt");
        has(&s, MANIFESTS "kube-apiserver.yaml", "--client-ca-file=/etc/kubernetes/pki/ca.crt");
        assert_string_equal(content(&s, "/etc/kubernetes/pki/ca.crt"), PEM("cert"));
        assert_string_equal(content(&s, "/etc/kubernetes/pki/ca-bundle.crt"), PEM("bundle"));
        nodespec_release(&s);
        fixture_release(&f);
}

/* While keys change, both are believed and one signs: whoever signs must be given that one alone.
 */
static void test_rotation(void **state)
{
        struct fixture f;
        struct nodespec s;
        fixture_init(&f, ha_yaml);
        f.identity.ca[CA_CLUSTER].clients = f.identity.ca[CA_CLUSTER].bundle = PEM("both");
        f.identity.sa_other = PEM("other");
        f.facts.kubelet_again = true;
        fixture_render(&f, "c1", &s);
        has(&s, MANIFESTS "kube-controller-manager.yaml",
                "--cluster-signing-cert-file=/etc/kubernetes/pki/ca-signing.crt");
        has(&s, MANIFESTS "kube-controller-manager.yaml",
                "--root-ca-file=/etc/kubernetes/pki/ca.crt");
        has(&s, MANIFESTS "kube-apiserver.yaml",
                "--service-account-key-file=/etc/kubernetes/pki/sa.pub");
        has(&s, MANIFESTS "kube-apiserver.yaml",
                "--service-account-key-file=/etc/kubernetes/pki/sa-other.pub");
        assert_string_equal(content(&s, "/etc/kubernetes/pki/ca.crt"), PEM("both"));
        assert_string_equal(content(&s, "/etc/kubernetes/pki/ca-signing.crt"), PEM("cert"));
        nodespec_release(&s);
        fixture_release(&f);
}

/* ---- the script that formats, on a real block device ---- */

#define DISK ((off_t)24 << 20)

/* Exit status of a program; what it says goes to `out`. */
static int run(struct str *out, const char *const *argv)
{
        int pipes[2], status;
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                dup2(pipes[1], STDOUT_FILENO);
                dup2(pipes[1], STDERR_FILENO);
                execvp(argv[0], (char *const *)(uintptr_t)argv);
                _exit(127);
        }
        close(pipes[1]);
        char buf[4096];
        for (ssize_t n; (n = read(pipes[0], buf, sizeof(buf))) > 0;)
                str_addn(out, buf, (size_t)n);
        close(pipes[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int format(const char *script, const char *device, const char *filesystem, const char *said)
{
        struct str out CLEANUP(str_release) = { 0 };
        const char *const argv[] = { "sh", script, device, filesystem, NULL };
        int rc = run(&out, argv);
        if (!strstr(str_text(&out), said))
                fail_msg("\"%s\" does not say \"%s\"", str_text(&out), said);
        return rc;
}

static void put_byte(const char *device, off_t at)
{
        int fd CLEANUP(close_p) = open(device, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, "x", 1, at), 1);
        fsync(fd);
}

static void make_blank(const char *device)
{
        char *zero CLEANUP(free_p) = xcalloc(1, (size_t)DISK);
        int fd CLEANUP(close_p) = open(device, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, zero, (size_t)DISK, 0), DISK);
        fsync(fd);
}

static void format_cases(const char *script, const char *device)
{
        assert_int_equal(format(script, device, "ext4", ""), 0);
        put_byte(device, DISK - 1); /* the filesystem's own business from now on */
        assert_int_equal(format(script, device, "ext4", ""), 0);
        assert_int_equal(format(script, device, "xfs", "is left alone: it holds ext4, not xfs"), 1);
        static const off_t places[] = { 0, 100, ((off_t)4 << 20) - 1, DISK - ((off_t)4 << 20),
                DISK - 1 };
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                make_blank(device);
                put_byte(device, places[i]);
                assert_int_equal(
                        format(script, device, "ext4", "is left alone: it is not blank"), 1);
        }
        make_blank(device);
        assert_int_equal(
                format(script, device, "vfat", "is not a filesystem this script makes"), 1);
        assert_int_equal(format(script, script, "ext4", "is not a block device"), 1);
        assert_int_equal(format(script, "/dev/null", "ext4", "is not a block device"), 1);
        assert_int_equal(
                format(script, device, "ext4", ""), 0); /* none of the above wrote anything */
}

static void test_format_blank(void **state)
{
        struct fixture f;
        struct nodespec s;
        struct str device CLEANUP(str_release) = { 0 };
        char image[] = "/tmp/slipway-disk-XXXXXX", script[] = "/tmp/slipway-format-XXXXXX";
        int fd CLEANUP(close_p) = mkstemp(image), sfd CLEANUP(close_p) = mkstemp(script);
        assert_true(fd >= 0 && sfd >= 0);
        assert_int_equal(ftruncate(fd, DISK), 0);
        const char *const attach[] = { "losetup", "-f", "--show", image, NULL };
        bool attached = run(&device, attach) == 0;
        unlink(image);
        if (!attached) {
                unlink(script);
                print_message("skip: %s\n",
                        geteuid() ? "loop devices need root" : "this computer has no loop devices");
                skip();
        }
        str_truncate(&device, strcspn(device.data, "\n"));
        fixture_init(&f, ha_yaml);
        fixture_render(&f, "w1", &s);
        const struct spec_entry *e = nodespec_find(&s, SPEC_FILE, "/opt/slipway/format-blank");
        assert_non_null(e);
        assert_int_equal(write(sfd, e->content, e->len), (ssize_t)e->len);
        format_cases(script, str_text(&device));
        struct str ignored CLEANUP(str_release) = { 0 };
        const char *const detach[] = { "losetup", "-d", str_text(&device), NULL };
        run(&ignored, detach);
        unlink(script);
        nodespec_release(&s);
        fixture_release(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_units),
                cmocka_unit_test(test_control_plane),
                cmocka_unit_test(test_keepalived),
                cmocka_unit_test(test_checks_verify),
                cmocka_unit_test(test_facts_decide),
                cmocka_unit_test(test_no_ipvs),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_shared_disk),
                cmocka_unit_test(test_kubelet_client),
                cmocka_unit_test(test_overlay),
                cmocka_unit_test(test_immutable),
                cmocka_unit_test(test_secrets),
                cmocka_unit_test(test_same_bytes),
                cmocka_unit_test(test_hostile),
                cmocka_unit_test(test_unit_escape),
                cmocka_unit_test(test_disks),
                cmocka_unit_test(test_flatcar),
                cmocka_unit_test(test_intermediate),
                cmocka_unit_test(test_rotation),
                cmocka_unit_test(test_format_blank),
        };
        return cmocka_run_group_tests_name("nodespec", tests, NULL, NULL);
}
