"""kubeadm's tools on a cluster of slipway's (the one that the verbs were tried on): what it tells on a control-plane node, and a machine that it joins."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "machines"))
from clusters import HERE, Cluster, until  # noqa: E402

KUBERNETES = "1.36.3"
CONTROL, WORKER, JOINER = "10.122.0.10", "10.122.0.40", "10.122.0.200"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: on-NODE, labels: {app: on-NODE}}
spec:
  nodeName: NODE
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 1
  containers:
  - {name: probe, image: IMAGE, imagePullPolicy: Never, args: [serve, "8080", NODE]}
---
apiVersion: v1
kind: Service
metadata: {name: on-NODE}
spec: {selector: {app: on-NODE}, ports: [{port: 80, targetPort: 8080}]}
---
"""
NODES = ("joiner", "worker-1", "control-1")


def machine(*args, script="machine.sh"):
    """machine.sh or joiner.sh, with the cluster's bridge."""
    mark = machine.cluster.state / "machines" / "id"
    env = os.environ | {"SLIPWAY_SET": "kubeadm", "KUBERNETES": KUBERNETES, "SLIPWAY_BRIDGE": f"slw-{mark.read_text().strip()}" if mark.exists() else "none"}
    return subprocess.run([HERE / script, *args], env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def cluster(cluster):
    c = machine.cluster = Cluster("verbs", KUBERNETES, None)
    assert c.dir == cluster.path
    machine("stop", "--all")
    (c.dir / "kubeconfig").write_text(c.slipway("kubeconfig").stdout)
    yield c
    machine("stop", "--all")


@pytest.fixture(scope="module")
def joined(cluster):
    """The machine after kubeadm join: all that is done to it by hand is what upstream's packages would do, and images its registry would serve."""
    images = cluster.dir / "images"
    for args, script in ((["images", images], "joiner.sh"), (["start", "joiner", JOINER], "machine.sh")):
        r = machine(*args, script=script)
        assert r.returncode == 0, r.stderr
    probe = cluster.on(WORKER, "ctr -n k8s.io images export /tmp/probe.tar $(ctr -n k8s.io images ls -q | grep slipway.dev/probe: | head -n 1) && cat /tmp/probe.tar")
    assert probe.returncode == 0, probe.stderr
    (images / "probe.tar").write_bytes(probe.stdout)
    r = machine("install", "joiner", *sorted(images.glob("*.tar")), script="joiner.sh")
    assert r.returncode == 0, r.stderr
    command = cluster.slipway("token", "create").stdout.split()
    assert command[:2] == ["kubeadm", "join"]
    if Path("/sys/fs/cgroup/memory").exists():  # kubeadm refuses cgroup v1 unless told
        command.append("--ignore-preflight-errors=SystemVerification")
    r = machine("exec", "joiner", *command)
    assert r.returncode == 0 and "This node has joined the cluster" in r.stdout, r.stdout + r.stderr
    r.cluster = cluster
    return r


# ---- on a control-plane node ----

@pytest.mark.parametrize("command, words", [
    ("kubeadm certs check-expiration", ["admin.conf", "apiserver ", "apiserver-kubelet-client", "controller-manager.conf", "front-proxy-client", "scheduler.conf", "front-proxy-ca"]),
    (f"kubeadm config images list --kubernetes-version v{KUBERNETES}", [f"registry.k8s.io/kube-apiserver:v{KUBERNETES}", "registry.k8s.io/coredns/coredns:"]),
    ("kubeadm config print init-defaults", ["kind: ClusterConfiguration"]),
    ("kubeadm config print join-defaults", ["kind: JoinConfiguration"]),
    ("kubeadm token list", ["made by slipway with the cluster", "system:bootstrappers:kubeadm:default-node-token"]),
    ("kubeadm token create --print-join-command", [f"kubeadm join {CONTROL}:6443 --token"]),
    ("kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get configmap kubeadm-config -o jsonpath={.data.ClusterConfiguration} >/tmp/c.yaml"
     " && kubeadm config validate --config /tmp/c.yaml && kubeadm config images list --config /tmp/c.yaml", ["ok\n", f"kube-scheduler:v{KUBERNETES}"]),
])
def test_it_knows_the_cluster(cluster, command, words):
    r = cluster.on(CONTROL, command)
    assert r.returncode == 0, r.stderr
    assert all(w in r.stdout.decode() for w in words), r.stdout
    assert not [line for line in r.stderr.decode().splitlines() if line.startswith(("W", "E")) or "error" in line], r.stderr


def test_check_expiration_finds_nothing_missing(cluster):
    out = cluster.on(CONTROL, "kubeadm certs check-expiration").stdout.decode()
    assert "MISSING" not in out and "<invalid>" not in out, out


# ---- a machine that joins ----

def test_it_joins(joined):
    """Without a word of complaint, but about this computer's cgroups."""
    said = [line for line in (joined.stdout + joined.stderr).splitlines() if "WARNING" in line or line.startswith("W")]
    assert all("cgroups v1" in line for line in said), said
    until("joiner is Ready", lambda: joined.cluster.ready("joiner"))


def test_its_services_are_pods_and_ours_are_not(joined):
    """Not even for a moment: the controller made one pod of each, and our nodes had their label when they registered."""
    c = joined.cluster
    for name in ("kube-proxy", "kube-flannel"):
        until(f"{name} runs", lambda n=name: c.kubectl("-n", "kube-system", "get", "daemonset", n, "-o", "jsonpath={.status.numberReady}") == "1")
        made = [e for e in json.loads(c.kubectl("-n", "kube-system", "get", "events", "-o", "json"))["items"]
                if e["involvedObject"]["name"] == name and e["reason"] == "SuccessfulCreate"]
        assert sum(e.get("count") or 1 for e in made) == 1, made
    for node in ("control-1", "worker-1"):
        fields = json.loads(c.kubectl("get", "node", node, "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]
        assert any(f["manager"] == "kubelet" and f["operation"] == "Update" and "f:slipway.dev/pool" in f["fieldsV1"]["f:metadata"].get("f:labels", {})
                   for f in fields), fields


def test_pods_on_it_reach_the_others(joined):
    """Both ways: by address, by service address, by service name."""
    c = joined.cluster
    image = c.on(WORKER, "ctr -n k8s.io images ls -q | grep slipway.dev/probe: | head -n 1").stdout.decode().strip()
    c.kubectl("apply", "-f", "-", text="".join(POD.replace("NODE", n).replace("IMAGE", image) for n in NODES))

    def of_each(kind, *path):
        found = {o["metadata"]["name"]: o for o in json.loads(c.kubectl("get", kind, "-o", "json"))["items"]}
        for key in path:
            found = {name: o.get(key, {}) for name, o in found.items()}
        return found

    until("the pods run", lambda: all(of_each("pods", "status", "phase").get(f"on-{n}") == "Running" for n in NODES))
    pods, services = of_each("pods", "status", "podIP"), of_each("services", "spec", "clusterIP")
    urls = [u for b in NODES for u in (f"http://{pods[f'on-{b}']}:8080/", f"http://{services[f'on-{b}']}/", f"http://on-{b}.default.svc.cluster.local./")]
    for a in NODES:
        out = c.kubectl("exec", f"on-{a}", "--", "/probe", "ask", "-t", "120", *urls, good=range(10))
        assert out.count("ok ") == len(urls) and all(out.count(f" {b}\n") == 3 for b in NODES), f"from {a}:\n{out}"
    assert "GET /" in c.kubectl("logs", "on-joiner")


def test_up_leaves_it_alone(joined):
    c = joined.cluster
    before = c.kubectl("get", "node", "joiner", "-o", "jsonpath={.metadata.labels}")
    r = c.up()
    assert r.stderr.count("apply: so already") == 2 and "verify: so already" in r.stderr, r.stderr
    assert c.kubectl("get", "node", "joiner", "-o", "jsonpath={.metadata.labels}") == before
    for name in ("kube-proxy", "kube-flannel"):
        assert c.kubectl("-n", "kube-system", "get", "daemonset", name, "-o", "jsonpath={.metadata.generation}") == "1"


def test_status_tells_of_it(joined):
    r = joined.cluster.slipway("status")
    assert r.returncode == 0, r.stdout + r.stderr
    assert f"joiner: Ready, v{KUBERNETES}, {JOINER} (joined from outside, not in cluster.yaml)" in r.stdout, r.stdout
    o = json.loads(joined.cluster.slipway("status", "-o", "json").stdout)
    assert o["healthy"] and not o["problems"] and [(n["name"], n["ready"], n["pool"]) for n in o["others"]] == [("joiner", True, None)]
    assert {n["name"] for n in o["nodes"]} == {"control-1", "worker-1"}
