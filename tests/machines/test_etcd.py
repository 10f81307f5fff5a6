"""The store on real machines: snapshots, a drill, a restore, a lost quorum, all members lost."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
KUBECTL = CACHE / "artifacts" / "kubernetes-1.36.3" / "kubectl"
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-etcd"
STATE = WORK / ".slipway" / "etcd"
CLUSTER = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: etcd}
spec:
  kubernetes: 1.36.3
  provider: {local: {network: 10.127.0.0/24}}
  encryption: secretbox
  etcd: {snapshots: {every: 1h, keep: 2, copyTo: /var/tmp/copies}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 3}
    - {name: worker, count: 1}
"""
CONTROL = ["10.127.0.10", "10.127.0.11", "10.127.0.12"]
# in `make soak` until the whole file has been seen to pass in one go
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]


def slipway(*args):
    return subprocess.run([SLIPWAY, *args], cwd=WORK, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=3000)


def good(*args):
    r = slipway(*args)
    assert r.returncode == 0, r.stderr
    return r


def refused(status, words, *args):
    """It says why and what to do, and does nothing."""
    r = slipway(*args)
    assert r.returncode == status and words in r.stderr and "hint: " in r.stderr, r.stderr
    return r


def kubectl(*args, patience=900):
    """What the API answers; it may be away for a moment after a restore."""
    end = time.monotonic() + patience
    while True:
        r = subprocess.run([KUBECTL, "--kubeconfig", WORK / "kubeconfig", "--request-timeout=30s", *args], capture_output=True, text=True)
        if r.returncode == 0 or "NotFound" in r.stderr or "AlreadyExists" in r.stderr or time.monotonic() > end:
            return r
        time.sleep(2)


def has(name):
    return kubectl("get", "configmap", name).returncode == 0


def on(address, command):
    r = subprocess.run(["ssh", "-i", STATE / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={STATE / 'known_hosts'}", "-o", "BatchMode=yes", f"root@{address}", command],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return r.stdout


def destroy(*names):
    """For good: the keeper is killed, and all that the machine was is removed once its last process is gone."""
    for name in names:
        os.kill(int((STATE / "machines" / name / "lock").read_text().split()[0]), signal.SIGKILL)
    for name in names:
        for _ in range(120):
            shutil.rmtree(STATE / "machines" / name, ignore_errors=True)
            if not (STATE / "machines" / name).exists():
                break
            time.sleep(1)
        assert not (STATE / "machines" / name).exists()


def boot_id(address):
    return on(address, "cat /proc/1/stat | cut -d' ' -f22; cat /etc/machine-id")


@pytest.fixture(scope="module")
def cluster():
    if WORK.exists():
        slipway("down")
        shutil.rmtree(WORK)
    WORK.mkdir(parents=True)
    (WORK / "cluster.yaml").write_text(CLUSTER)
    good("up")
    (WORK / "kubeconfig").write_text(slipway("kubeconfig").stdout)
    yield
    slipway("down")
    shutil.rmtree(WORK)


@pytest.fixture(scope="module")
def snapshot(cluster):
    assert kubectl("create", "configmap", "before").returncode == 0
    assert kubectl("create", "secret", "generic", "hidden", "--from-literal=word=rosebud").returncode == 0
    path = WORK / json.loads(good("etcd", "snapshot", "-o", "json").stdout.splitlines()[-1])["snapshot"]
    assert kubectl("create", "configmap", "after").returncode == 0
    return path


def test_members(cluster):
    o = json.loads(good("etcd", "members", "-o", "json").stdout)
    assert o["quorum"] and not o["problems"]
    assert {m["name"] for m in o["members"]} == {"control-1", "control-2", "control-3"}
    assert sum(m["leader"] for m in o["members"]) == 1 and all(m["started"] and m["raftIndex"] > 0 and m["node"] for m in o["members"])
    status = json.loads(good("status", "-o", "json").stdout)
    assert all(e["inUse"] > 0 and e["alarms"] == [] for e in status["etcd"])


def test_snapshot(snapshot):
    said = json.loads(Path(f"{snapshot}.json").read_text())
    assert hashlib.sha256(snapshot.read_bytes()).hexdigest() == said["sha256"]
    assert snapshot.stat().st_mode & 0o777 == 0o600 and said["revision"] > 100 and said["cluster"] == "etcd"
    assert subprocess.run(["sha256sum", "-c", f"{snapshot.name}.sha256"], cwd=snapshot.parent, capture_output=True).returncode == 0


def test_timer_and_its_copies(cluster):
    """Each member keeps two; the leader alone copies, and what it forgets goes from the copies too."""
    on_each = []
    for address in CONTROL:
        on(address, "mkdir -p /var/tmp/copies; for i in 1 2 3; do systemctl start slipway-etcd-snapshot.service; sleep 1.1; done")
        on(address, "systemctl is-active slipway-etcd-snapshot.timer; cd /var/lib/slipway/snapshots && sha256sum -c *.sha256")
        assert on(address, "ls /var/lib/slipway/snapshots/*.db | wc -l").strip() == "2"
        on_each.append(int(on(address, "ls /var/tmp/copies | grep -c 'db$' || true").strip()))
    assert sorted(on_each) == [0, 0, 2]


def test_refusals(snapshot):
    refused(2, "there is no snapshot 'nope.db'", "etcd", "restore", "nope.db")
    refused(2, "needs a snapshot", "etcd", "restore")
    refused(2, "is no snapshot of etcd", "etcd", "restore", str(WORK / "cluster.yaml"))
    refused(2, "there is nothing to recover", "etcd", "recover")
    bad = WORK / "bad.db"
    shutil.copy(snapshot, bad)
    shutil.copy(f"{snapshot}.sha256", f"{bad}.sha256")
    with open(bad, "r+b") as f:
        f.seek(5000)
        f.write(b"x" * 100)
    refused(8, "is damaged", "etcd", "restore", str(bad))
    Path(f"{bad}.sha256").unlink()
    shutil.copy(snapshot, bad)
    Path(f"{bad}.json").write_text(json.dumps(dict(json.loads(Path(f"{snapshot}.json").read_text()), id="other")))
    refused(8, "is of another cluster", "etcd", "restore", str(bad))
    tiny = WORK / "tiny"
    tiny.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tiny], check=True)
    try:
        refused(4, "has no room for the snapshot", "etcd", "snapshot", "-d", str(tiny))
        assert not list(tiny.iterdir())
    finally:
        subprocess.run(["umount", tiny], check=True)
    assert has("after")


def test_drill(snapshot):
    o = json.loads(good("etcd", "drill", snapshot.name, "-o", "json").stdout.splitlines()[-1])
    kinds = {k["resource"]: k for k in o["kinds"]}
    assert all(k["keys"] == k["objects"] for k in o["kinds"]) and kinds["nodes"]["objects"] == 4 and kinds["secrets"]["objects"] > 0
    assert not (STATE / "drill").exists()
    assert subprocess.run(["pgrep", "-f", str(STATE / "drill")], capture_output=True).returncode == 1


def test_restore(snapshot):
    worker = boot_id("10.127.0.40")
    good("etcd", "restore", snapshot.name)
    assert has("before") and not has("after")
    assert boot_id("10.127.0.40") == worker
    assert "rosebud" == subprocess.run(["base64", "-d"], input=kubectl("get", "secret", "hidden", "-o", "jsonpath={.data.word}").stdout, capture_output=True, text=True).stdout
    good("up")
    assert good("etcd", "members").returncode == 0


@pytest.mark.soak
def test_restore_killed(snapshot):
    """kill -9 once the members are stopped: up refuses, and the next restore finishes."""
    proc = subprocess.Popen([SLIPWAY, "etcd", "restore", snapshot.name], cwd=WORK, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in proc.stderr:
        if "all stopped: done" in line:
            break
    proc.send_signal(signal.SIGKILL)
    proc.wait()
    refused(8, "a restore of etcd was begun", "up")
    good("etcd", "restore", snapshot.name)
    assert has("before") and not (STATE / "etcd-restore.json").exists()
    good("up")


def test_lost_quorum(cluster):
    """Two of three destroyed for good: one command, and everything the third holds is there."""
    assert kubectl("create", "configmap", "last-write").returncode == 0
    time.sleep(3)  # in step
    destroy("control-1", "control-3")
    time.sleep(10)  # the third sees it
    refused(7, "etcd has no quorum", "etcd", "snapshot")
    r = good("etcd", "recover")
    assert "was rebuilt from control-2, which wrote last at" in r.stdout, r.stdout
    assert has("last-write")
    good("up")
    o = json.loads(good("etcd", "members", "-o", "json").stdout)
    assert o["quorum"] and len(o["members"]) == 3 and not o["problems"]


def test_all_lost(cluster):
    """All three destroyed: a snapshot onto new machines; the worker is not rebuilt."""
    assert kubectl("create", "configmap", "in-snapshot").returncode == 0
    good("etcd", "snapshot")
    worker = boot_id("10.127.0.40")
    destroy("control-1", "control-2", "control-3")
    refused(7, "no member of etcd is left", "etcd", "recover")
    newest = sorted((STATE / "snapshots").glob("*.db"))[-1].name
    good("etcd", "restore", newest)
    assert has("in-snapshot") and boot_id("10.127.0.40") == worker
    good("up")
    assert json.loads(good("status", "-o", "json").stdout)["healthy"]
