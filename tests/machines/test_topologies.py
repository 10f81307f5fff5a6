"""Other shapes of cluster: etcd on hosts of its own, five control planes, hosts you have. Each is made, verified, left alone by a second run, and taken away."""
import json
import os
import subprocess

import pytest

from harness import KUBECTL, NEWEST, SHARED_DISK, SLIPWAY, Machines, Refused, cluster_yaml, until

NETWORK = "10.123.0"
HEAD = f"""\
  kubernetes: {NEWEST}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
"""
EXTERNAL = HEAD + """\
  pools:
    - {name: etcd, roles: [etcd], count: COUNT}
    - {name: control, roles: [control-plane, worker], count: 1}
"""
FIVE = HEAD + f"""\
  api: {{vip: {NETWORK}.5}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 5}}
    - {{name: worker, count: 1}}
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


def made(m, nodes, members):
    """Up, verified, and left alone by a second run."""
    r = m.slipway("up")
    assert "verify: done in" in r.stderr and f"{m.name} is up: " in r.stdout
    assert set(m.ready()) == nodes and all(m.ready().values())
    m.healthy()
    status, answer = m.status()
    assert {e["node"] for e in answer["etcd"]} == members and sum(e["leader"] for e in answer["etcd"]) == 1
    r = m.slipway("up")
    assert r.stderr.count("apply: unchanged") == len(nodes | members) and "verify: unchanged" in r.stderr, r.stderr


def test_etcd_on_a_host_of_its_own():
    with Machines("external", EXTERNAL.replace("COUNT", "1")) as m:
        made(m, {"control-1"}, {"etcd-1"})
        assert m.on("etcd-1", "systemctl is-active etcd kubelet", check=False).stdout.split() == ["active", "inactive"]
        assert m.on("control-1", "systemctl is-active etcd kubelet", check=False).stdout.split() == ["inactive", "active"]


@pytest.mark.soak
def test_etcd_on_three_hosts_of_its_own():
    with Machines("external", EXTERNAL.replace("COUNT", "3") + "    - {name: worker, count: 1}\n") as m:
        made(m, {"control-1", "worker-1"}, {"etcd-1", "etcd-2", "etcd-3"})
        m.power("kill", "etcd-2")  # one of three may go
        until("writes go on", lambda: m.kubectl("create", "configmap", "after-one", check=False).returncode == 0)
        assert "etcd on etcd-2: " in m.problems()


@pytest.mark.soak
def test_five_control_planes():
    control = {f"control-{i}" for i in range(1, 6)}
    with Machines("five", FIVE) as m:
        made(m, control | {"worker-1"}, control)
        for node in ("control-2", "control-4"):  # two of five may go
            m.power("kill", node)
        until("writes go on", lambda: m.kubectl("create", "configmap", "after-two", check=False).returncode == 0)
        problems = m.problems()
        assert "node control-2: its machine is stopped" in problems and "etcd on control-4: " in problems
        m.slipway("up")
        m.healthy()


def ashore(m, controls, api=f"{{vip: {NETWORK}.5}}"):
    """The machines as hosts that somebody has, control-N each; the fourth was to be a worker. A pair is another machine under that name."""
    pairs = [(i, i) if isinstance(i, int) else i for i in controls]
    hosts = ", ".join(f"{{name: control-{i}, address: {m.address(f'control-{k}' if k < 4 else 'worker-2')}}}" for i, k in pairs)
    return cluster_yaml("ashore", f"""\
  kubernetes: {NEWEST}
  provider: {{ssh: {{user: root, key: {m.state}/ssh/id_ed25519, options: ["UserKnownHostsFile={m.dir}/known_hosts"]}}}}
  api: {api}
  pools:
    - {{name: control, roles: [control-plane, etcd], hosts: [{hosts}]}}
    - {{name: worker, hosts: [{{name: worker-1, address: {m.address("worker-1")}}}]}}
""" + SHARED_DISK)


@pytest.mark.soak
def test_a_control_plane_on_hosts_is_replaced():
    """Three hosts with a virtual address; the first one ever made goes and a fourth comes, in one edit."""
    with Machines("hosts", HEAD + "  pools:\n    - {name: control, roles: [control-plane, etcd], count: 3}\n    - {name: worker, count: 2}\n") as m:
        m.power("up")
        m.at, m.name = m.dir / "ashore", "ashore"
        m.at.mkdir()
        (m.at / "cluster.yaml").write_text(ashore(m, [1, 2, 3]))
        made(m, {"control-1", "control-2", "control-3", "worker-1"}, {"control-1", "control-2", "control-3"})
        m.kubectl("create", "configmap", "kept")
        (m.at / "cluster.yaml").write_text(ashore(m, [2, 3, 4]))
        r = m.slipway("up", "--yes")
        assert "control-1: API stop: stopped the API server" in r.stderr, r.stderr
        assert set(m.ready()) == {"control-2", "control-3", "control-4", "worker-1"} and all(m.ready().values())
        assert {e["name"] for e in json.loads(m.slipway("etcd", "members", "-o", "json").stdout)["members"]} == {"control-2", "control-3", "control-4"}
        m.kubectl("get", "configmap", "kept")
        m.healthy()
        m.slipway("plan", "--exit-code")
        assert m.on("control-1", "systemctl is-active kubelet etcd; ls /etc/kubernetes", check=False).stdout.split() == ["inactive", "inactive"], "it is as it was"


class Named(Machines):
    """Where the virtual address has a name: slipway and kubectl see an /etc/hosts of the test's own."""

    def named(self, *argv):
        return ["unshare", "-m", "sh", "-c", f'mount --bind {self.dir}/hosts /etc/hosts && exec "$@"', "sh", *map(str, argv)]

    def says(self, *addresses):
        (self.dir / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} vip.ashore.test\n" for a in addresses))

    def slipway(self, *args, ok=0):
        r = subprocess.run(self.named(SLIPWAY, *args), cwd=self.at, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3600)
        assert ok is None or r.returncode == ok, f"slipway {' '.join(args)}: status {r.returncode}\n{r.stdout}{r.stderr}"
        return r

    def kubectl(self, *args, check=True):
        r = subprocess.run(self.named(KUBECTL, "--kubeconfig", self.at / "kubeconfig", *args), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
        if check and r.returncode:
            raise Refused(r.stderr)
        return r.stdout if check else r


@pytest.mark.soak
def test_a_control_plane_is_replaced_under_its_name():
    """control-2's host is lost, and another one at another address gets its name. The virtual address has a name, too."""
    with Named("named", HEAD + "  pools:\n    - {name: control, roles: [control-plane, etcd], count: 3}\n    - {name: worker, count: 2}\n") as m:
        vip, api = f"{NETWORK}.5", f"{{vip: {NETWORK}.5, vipName: vip.ashore.test}}"
        m.says(vip)
        m.power("up")
        m.at, m.name = m.dir / "ashore", "ashore"
        m.at.mkdir()
        (m.at / "cluster.yaml").write_text(ashore(m, [1, 2, 3], api))
        (m.at / "kubeconfig").write_text(m.slipway("kubeconfig").stdout)
        assert "server: https://vip.ashore.test:6443" in (m.at / "kubeconfig").read_text()
        for addresses, word in (([], "vip.ashore.test does not resolve"), ([vip, f"{NETWORK}.6"], f"{NETWORK}.6"), ([f"{NETWORK}.6"], f"vip.ashore.test resolves to {NETWORK}.6, and api.vip is {vip}")):
            m.says(*addresses)
            r = m.slipway("up", ok=4)
            assert word in r.stderr, r.stderr
        m.says(vip)
        made(m, {"control-1", "control-2", "control-3", "worker-1"}, {"control-1", "control-2", "control-3"})
        m.kubectl("create", "configmap", "kept")
        m.slipway("verify")
        old, new = m.address("control-2"), m.address("worker-2")
        (m.at / "cluster.yaml").write_text(ashore(m, [1, (2, 4), 3], api))
        r = m.slipway("plan", ok=4)
        assert f"the old one ({old}) is still Ready in the API" in r.stderr, r.stderr
        m.power("kill", "control-2")
        until("it is missed", lambda: not m.ready()["control-2"])
        assert f"its host was {old} and was replaced: that host is not changed" in m.slipway("plan").stdout
        r = m.slipway("up", "--yes")
        assert "removed its lost member from etcd" in r.stderr and "added to etcd as a learner" in r.stderr, r.stderr
        assert set(m.ready()) == {"control-1", "control-2", "control-3", "worker-1"} and all(m.ready().values())
        members = json.loads(m.slipway("etcd", "members", "-o", "json").stdout)["members"]
        assert {e["name"] for e in members} == {"control-1", "control-2", "control-3"} and new in str(members) and old not in str(members), members
        for node in ("control-1", "control-3", "worker-1"):
            found = m.on(node, "cat /etc/slipway/haproxy.cfg /etc/slipway/keepalived.conf /etc/kubernetes/manifests/kube-apiserver.yaml 2>/dev/null", check=False).stdout
            assert new in found and old not in found, node
        assert json.loads((m.at / ".slipway" / "ashore" / "record.json").read_text())["nodes"][1]["address"] == new
        m.kubectl("get", "configmap", "kept")
        m.healthy()
        m.slipway("plan", "--exit-code")
