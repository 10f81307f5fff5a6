"""status, verify, ssh, logs and token, on paper and on a real cluster."""
import fcntl
import hashlib
import json
import re
import subprocess
import time

import pytest
from harness import NEWEST


def everything(site):
    """The state directory: names, times and bytes."""
    return {str(p): (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(site.state.rglob("*")) if p.is_file()
            and "machines" not in p.relative_to(site.state).parts}


def status(site):
    r = site("status", "-o", "json", ok=False)
    answer = json.loads(r.stdout)
    assert r.returncode == (0 if answer["healthy"] else 7), r.stderr
    return answer


def until(what, seconds=120):
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(1)
    return found


# ---- before there is a cluster ----

def test_nothing_is_there_yet(paper):
    r = paper("status", ok=False)
    assert r.returncode == 7 and "its machine is absent: slipway up creates it" in r.stdout
    r = paper("ssh", "worker-1", ok=False)
    assert r.returncode == 5 and "does not exist yet" in r.stderr
    for verb in (["token", "list"], ["verify"]):
        r = paper(*verb, ok=False)
        assert r.returncode == 8 and "does not exist yet" in r.stderr
    assert sorted(p.name for p in paper.path.iterdir()) == ["cluster.yaml"], "asking makes no state"


@pytest.mark.parametrize("args,word", [
    (["ssh"], "needs an argument: NODE"), (["ssh", "wroker-1"], "did you mean worker-1?"), (["logs", "zzz"], "it has: control-1, worker-1"),
    (["logs", "worker-1", "--lines", "x"], "not a number"), (["token", "creat"], "did you mean 'slipway token create'?"),
    (["token", "list", "abc"], "does not take the argument 'abc'"), (["token", "create", "abcdef.0123456789abcdef"], "name that with --token-file"),
    (["token", "create", "--token", "abcdef.0123456789abcdef"], "did you mean --token-file?"), (["status", "now"], "does not take the argument 'now'"),
])
def test_said_wrong(paper, args, word):
    r = paper(*args, ok=False)
    assert r.returncode == 2 and word in r.stderr, r.stderr


# ---- status ----

def test_status_of_a_healthy_cluster(cluster):
    before = everything(cluster)
    answer = status(cluster)
    assert answer["healthy"] and answer["problems"] == [] and answer["run"] is None
    assert [(n["name"], n["machine"], n["ready"], n["version"], n["drift"]) for n in answer["nodes"]] == [
        ("control-1", "running", True, f"v{NEWEST}", 0), ("worker-1", "running", True, f"v{NEWEST}", 0)]
    assert answer["api"]["ready"] and answer["api"]["version"] == f"v{NEWEST}"
    assert answer["api"]["servers"] == [{"node": "control-1", "ready": True, "trouble": None}]
    (etcd,) = answer["etcd"]
    assert etcd["healthy"] and etcd["leader"] and etcd["node"] == "control-1" and etcd["dbSize"] > 0
    assert 300 < answer["certificates"]["days"] < 400
    assert answer["kubernetes"] == {"wanted": f"v{NEWEST}", "running": 2, "nodes": 2}
    text = cluster("status").stdout
    assert re.search(rf"^worker-1 +worker +running +yes +v{re.escape(NEWEST)} +0 +10\.122\.0\.", text, re.M) and "verbs is healthy." in text
    assert everything(cluster) == before, "status writes nothing"


def test_status_while_a_run_goes_on(cluster):
    with open(cluster.state / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = status(cluster)
    assert answer["healthy"] and "process" in answer["run"]


def test_status_sees_drift(cluster):
    path = "/etc/sysctl.d/99-slipway.conf"
    cluster("ssh", "worker-1", "--", "sh", "-c", f"cp -p {path} /root/kept && echo '# mine' >> {path}")
    answer = status(cluster)
    cluster("ssh", "worker-1", "--", "cp", "-p", "/root/kept", path)
    assert answer["nodes"][1]["drift"] == 1 and any("drifted" in p for p in answer["problems"]), answer
    assert status(cluster)["healthy"]


def test_status_sees_a_component_that_cannot_run(cluster):
    path = "/etc/kubernetes/manifests/kube-scheduler.yaml"
    cluster("ssh", "control-1", "--", "sh", "-c", f"cp -p {path} /root/kept && sed -i 's|image: .*|image: example.invalid/none:1|' {path}")
    try:
        answer = until(lambda: (a := status(cluster))["pods"] and a)
    finally:
        cluster("ssh", "control-1", "--", "cp", "-p", "/root/kept", path)
    (pod,) = answer["pods"]
    assert (pod["name"], pod["node"], pod["container"]) == ("kube-scheduler-control-1", "control-1", "kube-scheduler") and "Image" in pod["reason"], pod
    assert any(p.startswith("pod kube-scheduler-control-1: ") and "slipway logs control-1 scheduler" in p for p in answer["problems"]), answer["problems"]
    assert until(lambda: status(cluster)["healthy"]), status(cluster)


def test_status_without_etcd(cluster):
    """etcd stopped: the API is not ready, and both are said."""
    cluster("ssh", "control-1", "--", "systemctl", "stop", "etcd")
    answer = status(cluster)
    cluster("ssh", "control-1", "--", "systemctl", "start", "etcd")
    assert not answer["api"]["ready"] and not answer["etcd"][0]["healthy"]
    assert any(p.startswith("the API is not ready: ") for p in answer["problems"]) and any(p.startswith("etcd on control-1: ") for p in answer["problems"])
    assert answer["nodes"][0]["machine"] == "running"
    assert until(lambda: status(cluster)["healthy"]), status(cluster)


def test_status_without_a_machine(cluster):
    cluster("ssh", "worker-1", "--", "systemd-run", "--on-active=20", "systemctl", "start", "ssh")
    cluster("ssh", "worker-1", "--", "systemctl", "stop", "ssh")
    answer = status(cluster)
    assert answer["nodes"][1]["machine"] == "unreachable" and answer["nodes"][1]["trouble"] and answer["nodes"][1]["drift"] is None
    assert answer["nodes"][0]["machine"] == "running" and answer["api"]["ready"]
    assert until(lambda: status(cluster)["healthy"])


# ---- ssh, logs ----

def test_ssh(cluster):
    r = cluster("ssh", "worker-1", "--", "sh", "-c", "hostname; printf '%s\\n' \"$1\"", "-", "a  'b' $HOME")
    assert r.stdout == "worker-1\na  'b' $HOME\n"
    assert cluster("ssh", "worker-1", "--", "sh", "-c", "exit 42", ok=False).returncode == 42


@pytest.mark.parametrize("node,there", [
    ("control-1", "apiserver controller-manager scheduler etcd kubelet containerd kube-proxy flanneld haproxy"),
    ("worker-1", "kubelet containerd kube-proxy flanneld haproxy"),
])
def test_logs(cluster, node, there):
    assert cluster("logs", node).stdout.split() == there.split()
    for component in there.split():
        out = cluster("logs", node, component, "--lines", "3").stdout.splitlines()
        assert 1 <= len(out) <= 4 and "No entries" not in out[0], (component, out)
    r = cluster("logs", node, "kubelt", ok=False)
    assert r.returncode == 2 and "did you mean kubelet?" in r.stderr


def test_logs_by_other_names(cluster):
    assert "std" not in cluster("logs", "control-1", "kube-apiserver", "--lines", "1").stdout.split(" ", 2)[1]
    r = cluster("logs", "worker-1", "etcd", ok=False)
    assert r.returncode == 2 and "node worker-1 runs no component 'etcd'" in r.stderr


def test_logs_follow(cluster):
    p = subprocess.Popen([cluster.program, "logs", "worker-1", "kubelet", "--follow", "--lines", "1"], cwd=cluster.path, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline()
    assert p.poll() is None
    cluster("ssh", "worker-1", "--", "systemctl", "reload-or-restart", "kubelet")
    assert p.stdout.readline()
    p.terminate()
    p.wait()
    p.stdout.close()
    assert until(lambda: status(cluster)["healthy"])


# ---- token ----

def test_token(cluster):
    line = cluster("token", "create", "--ttl", "2h").stdout.strip()
    m = re.fullmatch(r"kubeadm join 10\.122\.0\.10:6443 --token (\w{6})\.\w{16} --discovery-token-ca-cert-hash sha256:([0-9a-f]{64})", line)
    assert m, line
    public = subprocess.run(["openssl", "x509", "-in", cluster.state / "pki" / "ca.crt", "-pubkey", "-noout"], capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, capture_output=True, check=True).stdout
    assert m[2] == hashlib.sha256(der).hexdigest()
    (row,) = [r for r in cluster.tool("kubeadm", "token", "list").splitlines() if r.startswith(m[1])]
    assert re.search(r"\s(1h|2h)\s", row) and "authentication,signing" in row and "system:bootstrappers:kubeadm:default-node-token" in row
    assert m[1] in [t["id"] for t in json.loads(cluster("token", "list", "-o", "json").stdout)]
    assert line.split("--token ")[1].split()[0] not in cluster("token", "list").stdout, "secrets are not listed"
    assert "was deleted" in cluster("token", "delete", m[1]).stdout
    r = cluster("token", "delete", m[1], ok=False)
    assert r.returncode == 2 and f"there is no token {m[1]}" in r.stderr


@pytest.mark.parametrize("args,word", [(["create", "--ttl", "soon"], "--ttl: 'soon'"), (["create", "--ttl", "0h"], "--ttl"), (["delete"], "needs the ID of a token"),
                                       (["delete", "../../x"], "not a token's ID")])
def test_token_said_wrong(cluster, args, word):
    r = cluster("token", *args, ok=False)
    assert r.returncode == 2 and word in r.stderr, r.stderr


def test_a_chosen_token(cluster, tmp_path):
    """Twice is once, and never another's ID. (Files and messages: tests/unit/test_token.py.)"""
    file = tmp_path / "token"
    file.touch(0o600)

    def create(text, *args, **more):
        file.write_text(text)
        return cluster("token", "create", "--token-file", file, *args, **more)

    def listed():
        (one,) = [t for t in json.loads(cluster("token", "list", "-o", "json").stdout) if t["id"] == "abcdef"]
        return one["expires"]

    assert " --token abcdef.0123456789abcdef " in create("abcdef.0123456789abcdef\n", "--ttl", "1h").stdout
    first = listed()
    create("abcdef.0123456789abcdef", "--ttl", "3h")
    assert listed() > first
    r = create("abcdef.fedcba9876543210", ok=False)
    assert r.returncode == 2 and "there is already a token abcdef, with another secret" in r.stderr, r.stderr
    cluster("token", "delete", "abcdef")


# ---- verify ----

def namespaces(cluster):
    return cluster.tool("kubectl", "get", "namespaces", "-o", "name")


def test_verify(cluster):
    """Every check of every node is a row; nothing of it is left."""
    lock = str(cluster.state / "lock")  # it says who had it last
    before = everything(cluster)
    r = cluster("verify", "-o", "json")
    answer = json.loads(r.stdout)
    assert answer["works"] and answer["cluster"] == "verbs" and all(c["works"] and c["why"] is None for c in answer["checks"]), r.stdout
    rows = [(c["check"], c["from"]) for c in answer["checks"]]
    assert sorted(rows) == sorted((check, node) for node in ("control-1", "worker-1")
                                  for check in ("node is Ready", "pod starts", "pod to pod", "service address", "DNS", "API service", "exec", "logs")), rows
    (pair,) = [c for c in answer["checks"] if c["check"] == "pod to pod" and c["from"] == "worker-1"]
    assert re.fullmatch(r"control-1 \(10\.244\.\d+\.\d+:8080\)", pair["to"])
    assert until(lambda: "slipway-verify" not in namespaces(cluster))
    assert everything(cluster) | {lock: 0} == before | {lock: 0}, "verify writes nothing"


def test_verify_names_the_path_that_fails(cluster):
    """Packets of the fabric are dropped at one node: pods there are not reached, and the table says from where to where."""
    drop = "INPUT -p udp --dport 8472 -j DROP"
    cluster("ssh", "worker-1", "--", "sh", "-c", f"iptables -I {drop}")
    try:
        r = cluster("verify", ok=False)
    finally:
        cluster("ssh", "worker-1", "--", "sh", "-c", f"iptables -D {drop}")
    assert r.returncode == 7, r.stdout + r.stderr
    assert re.search(r"^pod to pod +control-1 to worker-1 \(10\.244\.\S+\) +(?!works)\S", r.stdout, re.M), r.stdout
    assert re.search(r"^pod starts +worker-1 +works$", r.stdout, re.M), r.stdout
    assert "from a pod on control-1 to the pod on worker-1" in r.stderr and "VXLAN" in r.stderr, r.stderr


def test_verify_waits_for_no_run(cluster):
    assert until(lambda: "slipway-verify" not in namespaces(cluster))  # of the test before
    with open(cluster.state / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        r = cluster("verify", ok=False)
    assert r.returncode == 8 and "slipway-verify" not in namespaces(cluster), r.stderr


def test_merged_kubeconfig_works(cluster):
    path = cluster.path / "merged"
    cluster("kubeconfig", "--merge", "--kubeconfig", path)
    out = cluster.tool("kubectl", "--kubeconfig", str(path), "get", "nodes", "-o", "name")
    assert out.split() == ["node/control-1", "node/worker-1"]
