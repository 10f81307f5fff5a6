#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "node_fixture.h"
#include "node/context.h"

#define MANIFESTS "/etc/kubernetes/manifests/"

/* ---- who has what ---- */

static void test_roles(void **state)
{
        static const struct {
                const char *path;
                bool control, etcd, worker;
        } table[] = {
                { "/etc/etcd/etcd.yaml", false, true, false },
                { "/etc/systemd/system/etcd.service", false, true, false },
                { "/etc/kubernetes/pki/etcd/server.key", false, true, false },
                { "/etc/kubernetes/pki/etcd/ca.crt", true, true, false },
                { "/etc/kubernetes/pki/etcd/ca.key", false, false, false },
                { "/etc/kubernetes/pki/front-proxy-ca.key", false, false,
                        false }, /* nothing on a node reads it, nor etcd's */
                { "/etc/kubernetes/pki/ca.crt", true, false, true },
                { "/etc/kubernetes/pki/ca.key", true, false, false },
                { "/etc/kubernetes/pki/sa.key", true, false, false },
                { MANIFESTS "kube-apiserver.yaml", true, false, false },
                { MANIFESTS "kube-scheduler.yaml", true, false, false },
                { "/etc/kubernetes/admin.conf", true, false, false },
                { "/etc/kubernetes/kubelet.conf", true, false, true },
                { "/var/lib/kubelet/config.yaml", true, false, true },
                { "/var/lib/kubelet/instance-config.yaml", true, false, true },
                { "/var/lib/kube-proxy/config.conf", true, false, true },
                { "/etc/slipway/haproxy.cfg", true, false, true },
                { "/etc/slipway/keepalived.conf", true, false, false },
                { "/etc/containerd/config.toml", true, false, true },
                { "/etc/kube-flannel/cni-conf.json", true, false, true },
        };
        struct fixture f;
        fixture_init(&f, NODE_HEAD
                "  provider: {ssh: {user: root}}\n "
                " api: {vip: 192.0.2.10}\n  pools:\n"
                "    - {name: control, roles: [control-plane], hosts: [{name: c1, address: 192.0.2.11}]}\n"
                "    - {name: etcd, roles: [etcd], hosts: [{name: e1, address: 192.0.2.31}]}\n"
                "    - {name: worker, hosts: [{name: w1, address: 192.0.2.21}]}\n");
        for (size_t i = LEAF_ETCD_SERVER; i <= LEAF_ETCD_HEALTHCHECK;
                i++) /* as pki gives them out: only where etcd runs */
                f.leaves[0].leaf[i] = (struct leaf){ 0 };
        struct nodespec c, e, w;
        fixture_render(&f, "c1", &c);
        fixture_render(&f, "w1", &w);
        f.leaves[0] =
                (struct node_identity){ .leaf = { [LEAF_ETCD_SERVER] = { PEM("s"), PEM("SECRET") },
                                                [LEAF_ETCD_PEER] = { PEM("p"), PEM("SECRET") } } };
        fixture_render(&f, "e1", &e);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const char *p = table[i].path;
                if (!!nodespec_find(&c, SPEC_FILE, p) != table[i].control ||
                        !!nodespec_find(&e, SPEC_FILE, p) != table[i].etcd ||
                        !!nodespec_find(&w, SPEC_FILE, p) != table[i].worker)
                        fail_msg("%s is on the wrong nodes", p);
        }
        has(&c, MANIFESTS "kube-apiserver.yaml", "--etcd-servers=https://192.0.2.31:2379");
        assert_null(nodespec_find(&e, SPEC_UNIT, "kubelet.service"));
        assert_null(nodespec_find(&e, SPEC_PACKAGE, "haproxy"));
        nodespec_release(&c);
        nodespec_release(&e);
        nodespec_release(&w);
        fixture_release(&f);
}

/* What a cloud says about a machine is in its Node from the first registration; the file's own
 * labels come before it. */
static void test_cloud_facts(void **state)
{
        struct fixture f;
        struct nodespec w;
        fixture_init(&f, NODE_HEAD
                "  provider: {ssh: {user: root}}\n  pools:\n"
                "    - {name: control, roles: [control-plane, etcd], hosts: [{name: c1, address: 192.0.2.11}]}\n"
                "    - {name: worker, labels: {topology.kubernetes.io/region: mine}, hosts: [{name: w1, address: 192.0.2.21}]}\n");
        fixture_input(&f, "w1");
        f.facts.provider_id = "openstack:///1-2";
        f.facts.zone = "nova";
        f.facts.region = "RegionOne";
        fixture_render(&f, "w1", &w);
        has(&w, "/var/lib/kubelet/config.yaml", "\nproviderID: openstack:///1-2\n");
        has(&w, "/var/lib/kubelet/kubeadm-flags.env",
                "topology.kubernetes.io/zone=nova,topology.kubernetes.io/region=mine");
        nodespec_release(&w);
        fixture_release(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_roles),
                cmocka_unit_test(test_cloud_facts) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
