"""canal and calico on machines: pods reach each other, NetworkPolicies block and let through between nodes (also after a reboot and an upgrade), verify tells the path where they do not, another pod network is refused, and a reset leaves nothing."""
import json
import os

import pytest

from harness import NEWEST, PREVIOUS, Machines, until

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
# its network, its option, the links between nodes, the version that is upgraded
FABRICS = {
    "canal": ("10.150.0.0/24", "canal", ["flannel.1"], PREVIOUS),
    "calico": ("10.151.0.0/24", "calico", ["vxlan.calico"], NEWEST),
    "routed": ("10.152.0.0/24", "{name: calico, backend: host-gw}", [], NEWEST),
}
NODES = ("control-1", "worker-1", "worker-2")
# What Calico has in the kernel for policies, on a node where it does not run to put it back.
UNDO = """systemctl stop calico-node && for table in raw mangle nat filter; do iptables-save -t $table | grep -v cali | iptables-restore -T $table; done"""


def spec(network, fabric, version):
    return f"""\
  kubernetes: {version}
  provider: {{local: {{network: {network}}}}}
  network: {{fabric: {fabric}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
    - {{name: worker, count: 2}}
"""


@pytest.fixture(scope="module", params=FABRICS)
def cluster(request):
    network, fabric, links, version = FABRICS[request.param]
    with Machines(request.param, spec(network, fabric, version)) as c:
        c.slipway("up")
        c.kubeconfig()
        c.links, c.network, c.fabric, c.version = links, network, fabric, version
        yield c


def policies(cluster):
    answer = json.loads(cluster.slipway("verify", "-o", "json").stdout)
    assert answer["works"], answer
    return [(c["from"], c["to"]) for c in answer["checks"] if c["check"] == "network policy"]


def test_policies_between_nodes(cluster):
    assert policies(cluster) == list(zip(NODES, NODES[1:] + NODES[:1]))
    r = cluster.slipway("up")
    assert r.stderr.count("apply: unchanged") == 3 and "verify: unchanged" in r.stderr, r.stderr
    cluster.healthy()
    for link in cluster.links:
        assert link in cluster.on("worker-1", f"ip -o link show {link}")
    assert cluster.slipway("logs", "worker-1", "calico-node").returncode == 0


def test_a_policy_without_effect_is_told(cluster):
    cluster.on("worker-1", UNDO)
    r = cluster.slipway("verify", ok=7)
    assert "from a pod on control-1 to the pod on worker-1: a NetworkPolicy denies it, and it works" in r.stderr, r.stderr
    cluster.on("worker-1", "systemctl start calico-node")
    assert policies(cluster)


def test_policies_after_a_reboot(cluster):
    cluster.power("kill", "worker-1")
    cluster.slipway("up")
    until("worker-1 is Ready", lambda: cluster.ready()["worker-1"])
    assert policies(cluster)


def test_policies_after_an_upgrade(cluster):
    if cluster.version != NEWEST:
        cluster.slipway("upgrade", NEWEST, "--yes")
        assert len(policies(cluster)) == 3
    assert cluster.slipway("plan", "--exit-code").returncode == 0


def test_another_pod_network_is_refused(cluster):
    file = cluster.dir / "cluster.yaml"
    text = file.read_text()
    file.write_text(text.replace(f"fabric: {cluster.fabric}", "fabric: flannel"))
    r = cluster.slipway("plan", ok=4)
    assert "network.fabric is now flannel, but the pods of" in r.stderr, r.stderr
    file.write_text(text)


def test_reset_leaves_nothing(cluster):
    cluster.slipway("reset", "worker-1", "--yes")
    left = cluster.on("worker-1", "ip -o link; ip route; iptables-save; ipset list -n; ls /etc/cni/net.d /opt/cni/bin /etc/calico /run/calico /var/lib/calico 2>/dev/null || :")
    assert "cali" not in left and "10.244." not in left and "flannel" not in left, left
