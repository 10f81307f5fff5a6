"""The store on real machines: members, snapshots and their copies, a drill, a restore, a lost quorum, all members lost. One cluster, in this order."""
import calendar
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import NEWEST, SLIPWAY, Machines, until
from objectstore import REGION, ObjectStore

NETWORK = "10.127.0"
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {{local: {{network: {network}.0/24}}}}
  encryption: secretbox
  etcd: {{snapshots: {{every: 1h, keep: 2, copyTo: "s3://backups/etcd/?endpoint=http://{network}.1:{port}&region={region}", copyKeyFile: s3-key}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 3}}
    - {{name: worker, count: 1}}
"""
CONTROL = ["control-1", "control-2", "control-3"]
KINDS = "namespaces,nodes,configmaps,secrets,serviceaccounts,services,deployments,daemonsets,roles,rolebindings,clusterroles,clusterrolebindings,apiservices"
OURS = "/var/lib/slipway/snapshots"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


class Store(Machines):
    def refused(self, status, words, *args):
        """It says why and what to do."""
        r = self.slipway(*args, ok=status)
        assert words in r.stderr and "hint: " in r.stderr, r.stderr

    def s3_key(self, key):
        path = self.dir / "s3-key"
        path.touch(mode=0o600)
        path.write_text(f"{key}\n")

    def make(self, *what):
        """Something that the API acknowledged."""
        until(f"{what} is made", lambda: self.kubectl("create", *what, check=False).returncode == 0)

    def has(self, name):
        """The API may be away for a moment after a restore."""
        def asked():
            r = self.kubectl("get", "configmap", name, check=False)
            return "yes" if r.returncode == 0 else "no" if "NotFound" in r.stderr else None
        return until("the API answers", asked) == "yes"

    def objects(self):
        """Everything that lasts, by its unique id."""
        items = json.loads(self.kubectl("get", KINDS, "-A", "-o", "json"))["items"]
        return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"], o["metadata"]["uid"]) for o in items}

    def members(self):
        return json.loads(self.slipway("etcd", "members", "-o", "json", ok=None).stdout)

    def leader(self):
        return next(m["node"] for m in self.members()["members"] if m["leader"])

    def snapshot(self):
        return self.dir / json.loads(self.slipway("etcd", "snapshot", "-o", "json").stdout.splitlines()[-1])["snapshot"]

    def etcdctl(self, *words):
        pki = "/etc/kubernetes/pki/etcd"
        return self.on(CONTROL[0], f"etcdctl --cacert {pki}/ca.crt --cert {pki}/healthcheck-client.crt --key {pki}/healthcheck-client.key {' '.join(words)}")

    def destroy(self, *names):
        """For good: the keeper is killed, and all that the machine was is removed once its last process is gone."""
        for name in names:
            os.kill(int((self.state / "machines" / name / "lock").read_text().split()[0]), signal.SIGKILL)
        for name in names:
            place = self.state / "machines" / name
            until(f"{name} is gone", lambda: shutil.rmtree(place, ignore_errors=True) or not place.exists())

    def worker(self):
        """Changes when the machine is rebuilt or booted, or when the pod on it is started anew."""
        return self.on("worker-1", "cut -d' ' -f22 /proc/1/stat; cat /etc/machine-id; crictl ps -q --name '^stays$'")

    def healthy_three(self):
        o = self.members()
        assert o["quorum"] and not o["problems"] and {m["name"] for m in o["members"]} == set(CONTROL), o
        assert all(m["started"] and not m["learner"] for m in o["members"]), o
        self.healthy()


@pytest.fixture(scope="module")
def objectstore():
    with ObjectStore("backups") as s:
        yield s


@pytest.fixture(scope="module")
def store(objectstore):
    with Store("etcd", SPEC.format(network=NETWORK, port=objectstore.port, region=REGION)) as s:
        s.s3_key(f"{objectstore.key}x")
        s.slipway("up")
        pause = s.on("worker-1", "crictl images -o json")
        image = next(t for i in json.loads(pause)["images"] for t in i["repoTags"] if "/pause:" in t)
        s.make("deployment", "stays", f"--image={image}")
        until("the pod runs", lambda: "stays" in s.on("worker-1", "crictl ps"))
        yield s


@pytest.fixture(scope="module")
def snapshot(store):
    store.make("configmap", "before")
    store.make("secret", "generic", "hidden", "--from-literal=word=rosebud")
    until("the namespace of the verification is gone", lambda: "slipway-verify" not in store.kubectl("get", "namespaces", "-o", "name"))  # what counts objects needs quiet
    path = store.snapshot()
    store.make("configmap", "after")
    return path


def test_members(store):
    o = store.members()
    assert o["quorum"] and not o["problems"]
    assert {m["name"] for m in o["members"]} == set(CONTROL)
    assert sum(m["leader"] for m in o["members"]) == 1 and all(m["started"] and m["raftIndex"] > 0 and m["node"] for m in o["members"])
    assert all(e["inUse"] > 0 and e["alarms"] == [] for e in store.status()[1]["etcd"])


def test_snapshot(snapshot):
    said = json.loads(Path(f"{snapshot}.json").read_text())
    assert hashlib.sha256(snapshot.read_bytes()).hexdigest() == said["sha256"]
    assert snapshot.stat().st_mode & 0o777 == 0o600 and said["revision"] > 100 and said["cluster"] == "etcd"
    assert subprocess.run(["sha256sum", "-c", f"{snapshot.name}.sha256"], cwd=snapshot.parent, capture_output=True).returncode == 0


def take_three(store, node, prefix=""):
    store.on(node, f"for i in 1 2 3; do {prefix or 'systemctl start slipway-etcd-snapshot.service'} || exit 1; sleep 1.1; done")
    assert store.on(node, f"cd {OURS} && sha256sum -c *.sha256 >/dev/null && ls *.db | wc -l") == "2"


def test_timer_and_copies_to_s3(store, objectstore):
    """Each member keeps two; the leader alone copies, signed, and what it forgets goes from the copies too."""
    leader = store.leader()
    for words in ("403", "s3.curl is not there"):  # first with the wrong key
        assert store.on(leader, "systemctl start slipway-etcd-snapshot.service", check=False).returncode != 0
        assert words in store.on(leader, "journalctl -u slipway-etcd-snapshot.service -o cat | tail -9")
        store.on(leader, "rm -f /etc/slipway/s3.curl")
    assert not objectstore.digests()
    store.s3_key(objectstore.key)
    store.slipway("up")
    for node in CONTROL:
        assert store.on(node, "stat -c %a /etc/slipway/s3.curl") == "600"
        store.on(node, "systemctl is-active slipway-etcd-snapshot.timer")
        take_three(store, node)
    there = store.on(leader, f"cd {OURS} && cat *.sha256").split()
    copies = objectstore.digests()
    assert set(copies) == {f"etcd/{n}{more}" for n in there[1::2] for more in ("", ".sha256")}
    for digest, name in zip(there[::2], there[1::2]):
        assert copies[f"etcd/{name}"] == digest and objectstore.text(f"etcd/{name}.sha256").decode().split() == [digest, name]


def test_copies_to_a_directory(store, objectstore):
    """As if copyTo had been changed: the copies under the old name go when they are too old."""
    leader = store.leader()
    run = "(set -a; . /etc/slipway/etcd-snapshot.env; COPY_TO=/var/tmp/copies; /opt/slipway/etcd-snapshot)"
    assert "is it mounted?" in store.on(leader, run, check=False).stderr
    store.on(leader, "mkdir /var/tmp/copies")
    take_three(store, leader, run)
    assert store.on(leader, "cd /var/tmp/copies && sha256sum -c *.sha256 >/dev/null && ls -A") == store.on(leader, f"cd {OURS} && ls -A | grep -v copied")
    assert not objectstore.digests()


def answer(store, text, *args):
    """What it says on a terminal when that is typed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(store.dir)
        os.execv(SLIPWAY, [str(SLIPWAY), *args])
    os.write(fd, text)
    said = b""
    try:
        while piece := os.read(fd, 4096):
            said += piece
    except OSError:  # it has ended
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def test_refusals(store, snapshot):
    """Each says why and what to do, and has changed nothing."""
    store.refused(2, "there is no snapshot 'nope.db'", "etcd", "restore", "nope.db")
    store.refused(2, "needs a snapshot", "etcd", "restore")
    store.refused(2, "is not an etcd snapshot", "etcd", "restore", str(store.dir / "cluster.yaml"))
    store.refused(2, "there is nothing to recover", "etcd", "recover")
    store.refused(2, "everything written since then is lost: etcd is at revision", "etcd", "restore", snapshot.name)
    status, said = answer(store, b"no\n", "etcd", "restore", snapshot.name)
    assert status == 2 and "everything written since then is lost" in said and "nothing was changed" in said, said
    bad = store.dir / "bad.db"
    shutil.copy(snapshot, bad)
    shutil.copy(f"{snapshot}.sha256", f"{bad}.sha256")
    with open(bad, "r+b") as f:
        f.seek(5000)
        f.write(b"x" * 100)
    store.refused(8, "is damaged", "etcd", "restore", str(bad), "--yes")
    Path(f"{bad}.sha256").unlink()
    shutil.copy(snapshot, bad)
    Path(f"{bad}.json").write_text(json.dumps(dict(json.loads(Path(f"{snapshot}.json").read_text()), id="other")))
    store.refused(8, "is of another cluster", "etcd", "restore", str(bad), "--yes")
    assert store.has("after") and not (store.state / "etcd-restore.json").exists()


def test_no_room(store, snapshot):
    """Here, on the node that would take it, on a node that would get it."""
    tiny = store.dir / "tiny"
    tiny.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tiny], check=True)
    try:
        store.refused(4, "has no room for the snapshot", "etcd", "snapshot", "-d", str(tiny))
        assert not list(tiny.iterdir())
    finally:
        subprocess.run(["umount", tiny], check=True)
    before = [store.on(n, "systemctl show -P MainPID etcd kubelet") for n in CONTROL]
    there = sorted(snapshot.parent.iterdir())
    for n in CONTROL:
        store.on(n, "mkdir -p /var/lib/slipway/etcd && mount -t tmpfs -o size=1m tmpfs /var/lib/slipway/etcd")
    try:
        store.refused(4, "has no room for the snapshot", "etcd", "snapshot")
        store.refused(4, "no room: ", "etcd", "restore", snapshot.name, "--yes")
    finally:
        for n in CONTROL:
            store.on(n, "umount /var/lib/slipway/etcd")
    assert [store.on(n, "systemctl show -P MainPID etcd kubelet") for n in CONTROL] == before and sorted(snapshot.parent.iterdir()) == there
    assert store.has("after") and not (store.state / "etcd-restore.json").exists()


def nothing_left(store):
    assert not (store.state / "drill").exists()
    assert subprocess.run(["pgrep", "-f", str(store.state / "drill")], capture_output=True).returncode == 1


def test_drill(store, snapshot):
    o = json.loads(store.slipway("etcd", "drill", snapshot.name, "-o", "json").stdout.splitlines()[-1])
    kinds = {k["resource"]: k for k in o["kinds"]}
    assert all(k["keys"] == k["objects"] for k in o["kinds"]) and kinds["secrets"]["objects"] > 0
    assert kinds["nodes"]["objects"] == kinds["nodes"]["live"] == 4
    assert kinds["configmaps"]["live"] == kinds["configmaps"]["objects"] + 1, "'after' came after the snapshot"
    assert o["objects"] == sum(k["objects"] for k in o["kinds"]) and o["live"] > 100
    nothing_left(store)


@pytest.mark.soak
def test_drill_of_what_does_not_read_back(store):
    """An object that no API server can read."""
    store.etcdctl("put", "/registry/podtemplates/default/broken", "nonsense")
    try:
        bad = store.snapshot()
    finally:
        store.etcdctl("del", "/registry/podtemplates/default/broken")
    store.refused(7, "podtemplates: 1 in the snapshot, 0 read back", "etcd", "drill", bad.name)
    bad.unlink()
    nothing_left(store)


@pytest.mark.soak
def test_restore(store, snapshot):
    worker = store.worker()
    store.slipway("etcd", "restore", snapshot.name, "--yes")
    assert store.has("before") and not store.has("after")
    assert store.worker() == worker
    assert store.kubectl("get", "secret", "hidden", "-o", "go-template={{.data.word | base64decode}}") == "rosebud"
    store.slipway("up")
    store.healthy_three()


@pytest.mark.soak
def test_restore_killed(store, snapshot):
    """kill -9 once the members are stopped: up refuses, and the next restore finishes, without a question."""
    proc = store.popen("etcd", "restore", snapshot.name, "--yes")
    for line in proc.stderr:
        if "all stopped: done" in line:
            break
    proc.send_signal(signal.SIGKILL)
    proc.communicate()
    store.refused(8, "a restore of etcd has not finished", "up")
    store.slipway("etcd", "restore", snapshot.name)
    assert store.has("before") and not (store.state / "etcd-restore.json").exists()
    store.slipway("up")


def test_lost_quorum(store):
    """Two of three destroyed for good: one command, and everything the third holds is there."""
    store.make("configmap", "last-write")
    time.sleep(3)  # in step
    before, lost = store.objects(), time.time()
    store.destroy("control-1", "control-3")
    until("the third sees it", lambda: not store.members()["quorum"])
    store.refused(7, "etcd has no quorum", "etcd", "snapshot")
    store.refused(7, "2 of its 3 members have lost their data", "up")
    store.on("control-2", "systemctl stop etcd")  # as after a boot, or as a recovery leaves it that was cut off: it answers no more
    said = store.slipway("etcd", "recover").stdout
    until_when = re.search(r"rebuilt from control-2 .raft index \d+.: its data goes up to (\S+ \S+) UTC, \d+ s before this command", said)
    assert until_when, said
    assert -15 < calendar.timegm(time.strptime(until_when[1], "%Y-%m-%d %H:%M:%S")) - lost < 30, said
    assert store.has("last-write") and before <= store.objects()
    store.slipway("up")
    store.healthy_three()


def test_all_lost(store):
    """All three destroyed: a snapshot onto new machines; the worker is not rebuilt, and its pod goes on."""
    store.make("configmap", "in-snapshot")
    before, worker = store.objects(), store.worker()
    newest = store.snapshot().name
    store.destroy(*CONTROL)
    store.refused(7, "no etcd member that answers has data", "etcd", "recover")
    store.refused(7, "no etcd member still has its data", "up")
    store.slipway("etcd", "restore", newest, "--yes")
    assert store.has("in-snapshot") and before <= store.objects()
    assert store.worker() == worker
    store.slipway("up")
    store.healthy_three()
