"""A cluster on virtual machines: user-data at the first boot, disks that it formats and mounts, control groups v2, Debian trixie, WireGuard between the nodes, and IPVS
for Services. None of it can be had on machines that share this computer's kernel."""
import json
import os
import subprocess
from contextlib import ExitStack

import pytest

from harness import NEWEST, PATIENCE, WORK, Machines, until
from vm import LOGIN, NETWORK, Network, Vm

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="bridges and taps need root")]
NODES = {"control-1": 11, "worker-1": 21}
DISKS = {"control-1": ("ext4", "/var/lib/etcd"), "worker-1": ("xfs", "/var/lib/containerd")}
SLOW = 4 * PATIENCE


def pool(name, node, more=""):
    kind, mount = DISKS[node]
    return f"    - {{name: {name}, {more}hosts: [{{name: {node}, address: {NETWORK}.{NODES[node]}}}], disks: [{{device: /dev/ubdc, filesystem: {kind}, mount: {mount}}}]}}\n"


SPEC = f"""\
  kubernetes: {NEWEST}
  provider: {{ssh: {{user: {LOGIN}, key: key, options: ["ConnectTimeout=120", "UserKnownHostsFile={WORK}/slipway-test-virtual/known_hosts"]}}}}
  readiness: {{wait: 60m}}
  network: {{proxyMode: ipvs, fabric: {{name: flannel, backend: wireguard}}}}
  pools:
""" + pool("control", "control-1", "roles: [control-plane, etcd], ") + pool("worker", "worker-1")


class Virtual(Machines):
    """The hosts are no machines of slipway's: they are reached as the user reaches them, and stay when the cluster goes."""

    def address(self, node):
        return f"{NETWORK}.{NODES[node]}"

    def ssh_argv(self, node, *command):
        return ["ssh", "-F", "none", "-i", self.dir / "key", "-o", f"UserKnownHostsFile={self.dir}/known_hosts", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes",
                "-o", "KexAlgorithms=curve25519-sha256", "-o", "ConnectTimeout=60", f"{LOGIN}@{self.address(node)}", *command]

    def root(self, node, command):
        return self.on(node, f"sudo sh -c '{command}'")

    def down(self):
        subprocess.run(["rm", "-rf", self.dir], check=True)


@pytest.fixture(scope="module")
def cluster():
    with Network(), Virtual("virtual", SPEC) as m, ExitStack() as machines:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", m.dir / "key"], check=True)
        m.slipway("render", "--format", "cloud-init", "-d", "out")
        for node, number in NODES.items():
            machines.enter_context(Vm(m.dir / "vm", node, number, (m.dir / "out" / node / "user-data").read_text(), (m.dir / "key.pub").read_text(), ["4G"]))
        yield m


def test_first_boot(cluster):
    """What user-data carries is there before slipway has touched the machine."""
    for node, (kind, mount) in DISKS.items():
        until(f"{node} has applied its user-data", lambda: "status: done" in (said := cluster.on(node, "cloud-init status --long", check=False).stdout) or "status: error" in said, SLOW, 10)
        said = json.loads(cluster.on(node, "cloud-init status --format json", check=False).stdout)
        assert said["status"] == "done" and not said["errors"], (said, cluster.on(node, "sudo tail -50 /var/log/cloud-init-output.log"))
        assert cluster.on(node, "hostname") == node and "VERSION_CODENAME=trixie" in cluster.on(node, "cat /etc/os-release")
        assert cluster.on(node, "stat -fc %T /sys/fs/cgroup") == "cgroup2fs"
        assert cluster.on(node, f"findmnt -no SOURCE,FSTYPE {mount}").split() == ["/dev/ubdc", kind]
        assert cluster.root(node, "sysctl -n net.ipv4.ip_forward kernel.panic").split() == ["1", "10"]
        assert cluster.on(node, "systemctl is-enabled kubelet.service") == "enabled"
        assert "does not exist" not in cluster.root(node, "cat /var/log/cloud-init-output.log"), "every unit that is enabled is there"


def test_up(cluster):
    r = cluster.slipway("up", "--yes")
    assert "virtual is up: " in r.stdout and "verify: done in" in r.stderr, r.stderr
    assert set(cluster.ready().values()) == {True}
    answer = json.loads(cluster.slipway("verify", "-o", "json").stdout)
    assert answer["works"] and {"pod to pod", "service address"} <= {c["check"] for c in answer["checks"]}


def test_control_groups_v2(cluster):
    for node in NODES:
        assert "SystemdCgroup = true" in cluster.root(node, "cat /etc/containerd/config.toml")
        assert "cgroupDriver: systemd" in cluster.root(node, "cat /var/lib/kubelet/config.yaml")
        assert cluster.root(node, "ls -d /sys/fs/cgroup/kubepods.slice") == "/sys/fs/cgroup/kubepods.slice"


def test_wireguard(cluster):
    """Packets between pods are encrypted: both nodes have shaken hands, and bytes went through."""
    for node in NODES:
        peers = cluster.root(node, "wg show all dump").splitlines()
        peers = [line.split("\t") for line in peers if len(line.split("\t")) == 9]
        assert len(peers) == 1, peers
        handshake, received, sent = map(int, peers[0][5:8])
        assert handshake and received and sent, peers
        assert not cluster.on(node, "ip -o link show type vxlan")


def test_ipvs(cluster):
    address = json.loads(cluster.kubectl("get", "service", "kubernetes", "-o", "json"))["spec"]["clusterIP"]
    for node in NODES:
        assert f"TCP  {address}:443" in cluster.root(node, "ipvsadm -Ln")
        assert "KUBE-SVC-" not in cluster.root(node, "iptables-save -t nat"), "no chains for single Services"


def test_nothing_is_left_to_do(cluster):
    r = cluster.slipway("up", "--yes")
    assert r.stderr.count("apply: unchanged") == 2, r.stderr


def test_reboot(cluster):
    before = cluster.on("worker-1", "cat /proc/sys/kernel/random/boot_id")
    cluster.root("worker-1", "systemctl --no-block reboot")
    until("worker-1 has booted again", lambda: cluster.on("worker-1", "cat /proc/sys/kernel/random/boot_id") != before, SLOW, 10)
    assert cluster.on("worker-1", "findmnt -no FSTYPE /var/lib/containerd") == "xfs"
    cluster.healthy(SLOW)
    cluster.slipway("verify")


def test_reset(cluster):
    """The links, rules and modules' tables of this fabric and of IPVS go too."""
    cluster.slipway("reset", "worker-1", "--yes", "--force")
    assert not cluster.on("worker-1", "ip -o link show type wireguard") and "kube-ipvs0" not in cluster.on("worker-1", "ip -o link")
    assert not [line for line in cluster.root("worker-1", "ipvsadm -Ln").splitlines() if line.startswith(("TCP", "UDP"))]
