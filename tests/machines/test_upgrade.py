"""From one minor version to the next and back: refusals, a kill in the middle, pods with a budget, what is left."""
import json
import os
import signal
import threading
import time

import pytest
from harness import APP, Machines, until

OLD, NEW = "1.35.4", "1.36.3"
SPEC = f"""\
  kubernetes: {OLD}  # said here
  provider: {{local: {{network: 10.134.0.0/24}}}}
  upgrade: {{drainTimeout: 10m}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
    - {{name: worker, count: 2}}
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


@pytest.fixture(scope="module")
def cluster():
    with Machines("upgrade", SPEC) as m:
        m.slipway("up", "--yes")
        yield m


def versions(m):
    return {n["metadata"]["name"]: n["status"]["nodeInfo"]["kubeletVersion"] for n in json.loads(m.kubectl("get", "nodes", "-o", "json"))["items"]}


def cordoned(m):
    return [n["metadata"]["name"] for n in json.loads(m.kubectl("get", "nodes", "-o", "json"))["items"] if n["spec"].get("unschedulable")]


def text(m):
    return (m.dir / "cluster.yaml").read_text()


@pytest.mark.parametrize("version, word", [("1.30.1", "does not know Kubernetes 1.30"), ("next", "is not a version"), ("1.34.1", "is older")])
def test_refused(cluster, version, word):
    before = text(cluster)
    r = cluster.slipway("upgrade", version, "--yes", ok=None)
    assert r.returncode and word in r.stderr and "nothing was changed" in r.stderr, r.stderr
    assert text(cluster) == before and set(versions(cluster).values()) == {f"v{OLD}"}


def test_rollback_without_upgrade(cluster):
    r = cluster.slipway("rollback", "--yes", ok=2)
    assert "was not upgraded from here" in r.stderr


class Watch(threading.Thread):
    """The fewest pods of the Deployment that were available at once, seen all the time."""

    def __init__(self, m):
        super().__init__(daemon=True)
        self.m, self.least, self.over = m, 2, False

    def run(self):
        while not self.over:
            r = self.m.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}", check=False)
            if r.returncode == 0 and r.stdout:
                self.least = min(self.least, int(r.stdout))
            time.sleep(0.3)


def app(m):
    (m.dir / "app.yaml").write_text(APP)
    m.kubectl("apply", "-f", str(m.dir / "app.yaml"))
    until("two pods run", lambda: m.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")


def test_upgrade_killed_and_gone_on_with(cluster):
    """kill -9 when the control plane is done and a worker is being drained: the next run does the rest, and no node twice."""
    app(cluster)
    watch = Watch(cluster)
    watch.start()
    proc = cluster.popen("upgrade", NEW, "--yes")
    for line in proc.stderr:
        if "control-1: uncordon: done" in line:
            break
    until("a worker is cordoned", lambda: cordoned(cluster), every=0.1)
    proc.send_signal(signal.SIGKILL)
    proc.wait()
    assert f"kubernetes: {NEW}  # said here" in text(cluster), "the file says what is meant"
    r = cluster.slipway("up", "--yes")
    assert "going on: 'upgrade'" in r.stderr and "control-1: apply: so already" in r.stderr, r.stderr
    assert "snapshot: done" not in r.stderr, "it was taken before the first node changed"
    watch.over = True
    watch.join()
    assert watch.least >= 1, "the budget was kept all the time"
    assert set(versions(cluster).values()) == {f"v{NEW}"} and not cordoned(cluster)
    r = cluster.slipway("up")
    assert r.stderr.count("apply: so already") == 3 and "plan: so already" in r.stderr, r.stderr
    assert json.loads((cluster.state / "previous.json").read_text())["version"] == OLD
    assert list((cluster.state / "snapshots").glob("*.db"))


def test_back(cluster):
    r = cluster.slipway("rollback", "--yes", "--force")
    assert set(versions(cluster).values()) == {f"v{OLD}"} and not cordoned(cluster), r.stderr
    assert f"kubernetes: {OLD}  # said here" in text(cluster)
    cluster.healthy()


def has(m, name):
    return m.kubectl("get", "configmap", name, check=False).returncode == 0


@pytest.mark.soak
def test_back_with_the_snapshot(cluster):
    """A group of the API is stored in another version since: then the store of before the upgrade comes back with the old version."""
    app(cluster)
    cluster.kubectl("create", "configmap", "before")
    cluster.slipway("upgrade", NEW, "--yes")
    cluster.kubectl("create", "configmap", "since")
    cluster.kubectl("delete", "configmap", "before")
    path = cluster.state / "previous.json"
    previous = json.loads(path.read_text())
    previous["groups"]["apps"] = "v1beta2"
    path.write_text(json.dumps(previous))
    before = text(cluster)
    r = cluster.slipway("rollback", ok=2)
    for part in ("these groups of the API have another version now: apps (v1, was v1beta2)", previous["snapshot"], "lost is every object", "give --yes when that is meant"):
        assert part in r.stderr, r.stderr
    assert text(cluster) == before and set(versions(cluster).values()) == {f"v{NEW}"} and has(cluster, "since"), "nothing was changed"
    r = cluster.slipway("rollback", "--yes")
    assert "etcd holds what" in r.stderr, r.stderr
    assert set(versions(cluster).values()) == {f"v{OLD}"} and not cordoned(cluster), r.stderr
    assert has(cluster, "before") and not has(cluster, "since")
    assert f"kubernetes: {OLD}  # said here" in text(cluster)
    cluster.healthy()
    until("two pods run", lambda: cluster.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")
