"""Other shapes of cluster: etcd on hosts of its own, five control planes, hosts you have. Each is made, verified, left alone by a second run, and taken away."""
import json
import os

import pytest

from harness import SHARED_DISK, Machines, cluster_yaml, until

NETWORK = "10.123.0"
HEAD = f"""\
  kubernetes: 1.36.3
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
    assert r.stderr.count("apply: so already") == len(nodes | members) and "verify: so already" in r.stderr, r.stderr


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


def ashore(m, controls):
    """The machines as hosts that somebody has; the fourth was to be a worker."""
    hosts = ", ".join(f"{{name: control-{i}, address: {m.address(f'control-{i}' if i < 4 else 'worker-2')}}}" for i in controls)
    return cluster_yaml("ashore", f"""\
  kubernetes: 1.36.3
  provider: {{ssh: {{user: root, key: {m.state}/ssh/id_ed25519}}}}
  api: {{vip: {NETWORK}.5}}
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
        assert "control-1: API leave: stopped the API server" in r.stderr, r.stderr
        assert set(m.ready()) == {"control-2", "control-3", "control-4", "worker-1"} and all(m.ready().values())
        assert {e["name"] for e in json.loads(m.slipway("etcd", "members", "-o", "json").stdout)["members"]} == {"control-2", "control-3", "control-4"}
        m.kubectl("get", "configmap", "kept")
        m.healthy()
        m.slipway("plan", "--exit-code")
        assert m.on("control-1", "systemctl is-active kubelet etcd; ls /etc/kubernetes", check=False).stdout.split() == ["inactive", "inactive"], "it is as it was"
