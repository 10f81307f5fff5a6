"""From one minor version to the next and back: refusals, a kill in the middle, pods with a budget, what is left."""
import json
import os
import signal
import threading
import time

import pytest
from harness import APP, NEWEST, PATIENCE, PREVIOUS, Machines, until

OLD, NEW = PREVIOUS, NEWEST
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
    assert "was not upgraded from this computer" in r.stderr


# ---- a node that does not become healthy goes back by itself ----

# Whatever starts of the new version ends at once, and only there: the manifest says which one the node has.
BROKEN = {"kubelet": "30s", "kube-apiserver": "60s"}
BREAK = "systemd-run -q --unit=broken sh -c 'while :; do grep -q :v{new} /etc/kubernetes/manifests/kube-apiserver.yaml && pkill -KILL -x {what}; sleep 0.2; done'"


class Broken:
    """Something on control-1 works with the old version only, and an upgraded node has little time to become healthy."""

    def __init__(self, m, what):
        self.m, self.what = m, what

    def __enter__(self):
        self.text = text(self.m)
        (self.m.dir / "cluster.yaml").write_text(self.text.replace("drainTimeout: 10m", f"drainTimeout: 10m, healthTimeout: {BROKEN[self.what]}"))
        self.m.on("control-1", BREAK.format(new=NEW, what=self.what))

    def __exit__(self, *_):
        self.m.on("control-1", "systemctl stop broken")
        (self.m.dir / "cluster.yaml").write_text(self.text)


def all_old(m):
    """No node runs the new version, none is cordoned, and the API answers."""
    until("every node runs the old version", lambda: m.kubectl("get", "nodes", check=False).returncode == 0 and set(versions(m).values()) == {f"v{OLD}"})
    assert not cordoned(m)
    assert f"v{OLD}" in m.on("control-1", "/usr/local/bin/kubelet --version; grep image: /etc/kubernetes/manifests/kube-apiserver.yaml")


@pytest.mark.parametrize("what", BROKEN)
def test_unhealthy_goes_back(cluster, what):
    with Broken(cluster, what):
        r = cluster.slipway("upgrade", NEW, "--yes", ok=6)
        assert f"unhealthy after the upgrade to {NEW}" in r.stderr and f"was rolled back to {OLD}" in r.stderr, r.stderr
        assert "worker-1: apply: done" not in r.stderr and "worker-2: apply: done" not in r.stderr, "the nodes after it were not touched"
        all_old(cluster)
    cluster.healthy()


def ssh_of(pid, address):
    """The process of the link: a child of slipway's."""
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return next(int(c) for c in children if address in open(f"/proc/{c}/cmdline").read())


@pytest.mark.soak
def test_cut_while_it_goes_back(cluster):
    """The run ends and says what it could not do; the next one does it."""
    with Broken(cluster, "kubelet"):
        proc = cluster.popen("upgrade", NEW, "--yes", "-o", "json")
        for line in proc.stdout:
            event = json.loads(line)
            if event["event"] == "change" and event["step"] == "healthy":  # the first entry that goes back
                os.kill(ssh_of(proc.pid, cluster.address("control-1")), signal.SIGKILL)
                break
        out, err = proc.communicate(timeout=PATIENCE)
        assert proc.returncode == 6 and f"cannot be rolled back to {OLD}" in err, out + err
        r = cluster.slipway("up", "--yes", ok=6)
        assert f"was rolled back to {OLD}" in r.stderr, r.stderr
        all_old(cluster)
    cluster.healthy()


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
    assert "going on: 'upgrade'" in r.stderr and "control-1: apply: unchanged" in r.stderr, r.stderr
    assert "snapshot: done" not in r.stderr, "it was taken before the first node changed"
    watch.over = True
    watch.join()
    assert watch.least >= 1, "the budget was kept all the time"
    assert set(versions(cluster).values()) == {f"v{NEW}"} and not cordoned(cluster)
    r = cluster.slipway("up")
    assert r.stderr.count("apply: unchanged") == 3 and "plan: unchanged" in r.stderr, r.stderr
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
    for part in ("these groups of the API have another version now: apps (v1, was v1beta2)", previous["snapshot"], "every object created or changed since then is lost", "confirm with --yes"):
        assert part in r.stderr, r.stderr
    assert text(cluster) == before and set(versions(cluster).values()) == {f"v{NEW}"} and has(cluster, "since"), "nothing was changed"
    r = cluster.slipway("rollback", "--yes")
    assert "etcd holds what" in r.stderr, r.stderr
    assert set(versions(cluster).values()) == {f"v{OLD}"} and not cordoned(cluster), r.stderr
    assert has(cluster, "before") and not has(cluster, "since")
    assert f"kubernetes: {OLD}  # said here" in text(cluster)
    cluster.healthy()
    until("two pods run", lambda: cluster.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")
