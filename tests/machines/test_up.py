"""A real cluster from one command: up, up again, killed in the middle, down."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import KUBECTL, NEWEST, programs

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-up"
CLUSTER = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: up}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.119.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1, labels: {example.net/kind: control}}
    - {name: worker, count: 1, taints: ["example.net/only=yes:PreferNoSchedule"]}
"""
WORKER = "10.119.0.40"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


def slipway(*args, **kw):
    return subprocess.run([SLIPWAY, *args], cwd=WORK, capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)


def kubectl(*args):
    r = subprocess.run([KUBECTL, "--kubeconfig", WORK / "kubeconfig", *args], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return r.stdout


def on_worker(command):
    ssh = WORK / ".slipway" / "up"
    subprocess.run(["ssh", "-i", ssh / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={ssh / 'known_hosts'}", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256", f"root@{WORKER}", command],
                   check=True, capture_output=True, text=True)


def probes_are_gone():
    """The API has the order when up ends; the namespace goes when its pods have."""
    for _ in range(150):
        if "slipway-verify" not in kubectl("get", "namespaces", "-o", "name"):
            return True
        time.sleep(0.2)
    return False


def ids():
    """The cluster's mark and its machines', as src/provider/local/local.h says they are made."""
    def short(text):
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    cluster = short(f"up {WORK / '.slipway' / 'up'}")
    return [cluster, *(short(f"{cluster}/{node}") for node in ("control-1", "worker-1"))]


def computer():
    """What a run could leave behind: links, mounts, cgroups, processes of machines. Other tests' machines come and go meanwhile."""
    def ours(text):
        return f"{WORK}/" in text or any(i in text for i in ids())

    # os.walk does not mind directories that go while it looks
    cgroups = sorted(os.path.join(d, n) for d, names, _ in os.walk("/sys/fs/cgroup") for n in names if "slipway" in n and ours(n))
    keepers = subprocess.run(["pgrep", "-fa", "machine-keeper|systemd-nspawn"], capture_output=True, text=True).stdout.splitlines()
    return {"links": [p.name for p in Path("/sys/class/net").iterdir() if ours(p.name)], "cgroups": cgroups, "keepers": [k for k in keepers if ours(k)],
            "mounts": [m for m in Path("/proc/self/mountinfo").read_text().splitlines() if ours(m)]}


@pytest.fixture(scope="module")
def before():
    if WORK.exists():  # a run before this one was killed
        slipway("down")
        shutil.rmtree(WORK)
    WORK.mkdir(parents=True)
    (WORK / "cluster.yaml").write_text(CLUSTER)
    state = computer()
    yield state
    slipway("down")
    shutil.rmtree(WORK)


def test_killed_in_the_middle(before):
    """kill -9 while the nodes are being applied: the next run says so and finishes."""
    proc = subprocess.Popen([SLIPWAY, "up"], cwd=WORK, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for line in proc.stderr:
        if "check: done" in line:  # of the machines that this run made: after the plan
            break
    else:
        raise AssertionError("it ended before it came to its nodes")
    time.sleep(1)
    proc.send_signal(signal.SIGKILL)
    proc.wait()
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert "going on: 'up'" in r.stderr and "stopped in: " in r.stderr, r.stderr
    assert "up is up: 2 nodes" in r.stdout
    assert "verify: done in" in r.stderr, r.stderr
    (WORK / "kubeconfig").write_text(slipway("kubeconfig").stdout)
    assert probes_are_gone()


def test_every_node_is_ready(before):
    assert computer()["links"] and computer()["cgroups"] and computer()["keepers"]
    nodes = {n["metadata"]["name"]: n for n in json.loads(kubectl("get", "nodes", "-o", "json"))["items"]}
    assert set(nodes) == {"control-1", "worker-1"}
    for n in nodes.values():
        assert any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"]["conditions"])
        assert n["status"]["nodeInfo"]["kubeletVersion"] == f"v{NEWEST}"
    assert "node-role.kubernetes.io/control-plane" in nodes["control-1"]["metadata"]["labels"]
    assert nodes["control-1"]["metadata"]["labels"]["example.net/kind"] == "control"
    assert any(t["key"] == "example.net/only" for t in nodes["worker-1"]["spec"]["taints"])


def test_dns_runs(before):
    kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=600s")
    assert kubectl("-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIP}") == "10.96.0.10"
    assert "CoreDNS" in kubectl("-n", "kube-system", "logs", "deployment/coredns")


def test_kubeadm_knows_the_cluster(before):
    kubeadm = programs("kubernetes") / "kubeadm"
    assert slipway("token", "create").returncode == 0  # none stands
    for args, word in ((["token", "list"], "made by slipway"), (["config", "images", "list"], f"kube-apiserver:v{NEWEST}")):
        r = subprocess.run([kubeadm, *args, "--kubeconfig", WORK / "kubeconfig"], capture_output=True, text=True)
        assert r.returncode == 0 and word in r.stdout, r.stderr


def test_a_second_run_changes_nothing(before):
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert r.stderr.count("apply: unchanged") == 2 and "going on" not in r.stderr, r.stderr
    assert r.stderr.count("compare: unchanged") == 2 and "plan: unchanged" in r.stderr and "verify: unchanged" in r.stderr, r.stderr
    assert "plan for" not in r.stderr and "machine:" not in r.stderr, r.stderr
    r = slipway("plan", "--exit-code")
    assert r.returncode == 0 and r.stdout == "plan for up: nothing to do, 2 nodes are unchanged\n", r.stdout + r.stderr


def test_verify_sees_a_broken_fabric(before):
    """All nodes are Ready, and no pod reaches a pod of another node."""
    on_worker("iptables -I INPUT -p udp --dport 8472 -j DROP")
    try:
        kubectl("-n", "kube-system", "delete", "configmap", "slipway-verified")
        r = slipway("up")
        assert r.returncode == 7, r.stderr
        for a, b in (("control-1", "worker-1"), ("worker-1", "control-1")):
            assert f"from a pod on {a} to the pod on {b} (10.244." in r.stderr, r.stderr
        assert "UDP port 8472" in r.stderr and "is up" not in r.stdout
        assert slipway("up").returncode == 7, "it is verified again until it works"
        assert probes_are_gone()
    finally:
        on_worker("iptables -D INPUT -p udp --dport 8472 -j DROP")
    r = slipway("up")
    assert r.returncode == 0 and "verify: done in" in r.stderr, r.stderr
    assert "verify: unchanged" in slipway("up").stderr


def test_verify_after_it_was_killed(before):
    """kill -9 while the probes run: the next run removes them and verifies."""
    kubectl("-n", "kube-system", "delete", "configmap", "slipway-verified")
    assert probes_are_gone()
    proc = subprocess.Popen([SLIPWAY, "up"], cwd=WORK, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for _ in range(500):
        if "daemonset" in kubectl("-n", "slipway-verify", "get", "daemonsets", "-o", "name"):
            break
        time.sleep(0.05)
    proc.send_signal(signal.SIGKILL)
    proc.wait()
    assert "slipway-verify" in kubectl("get", "namespaces", "-o", "name")
    r = slipway("up")
    assert r.returncode == 0 and "verify: done in" in r.stderr, r.stderr
    assert probes_are_gone()


def test_two_runs_at_once(before):
    with open(WORK / ".slipway" / "up" / "lock") as lock:
        import fcntl
        fcntl.flock(lock, fcntl.LOCK_EX)
        r = slipway("up")
    assert r.returncode == 8 and "locked by" in r.stderr


def test_down_leaves_nothing(before):
    r = slipway("down")
    assert r.returncode == 0, r.stderr
    for _ in range(100):
        if computer() == before:
            break
        time.sleep(0.2)
    assert computer() == before
    assert not (WORK / ".slipway" / "up" / "machines").exists() or not any((WORK / ".slipway" / "up" / "machines").iterdir())
