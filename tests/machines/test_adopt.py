"""A cluster that kubeadm made, two nodes with etcd as a static pod and kube-proxy as a DaemonSet, is taken over in place and upgraded: its pods go on running."""
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from harness import EVICTION
from upstream import IMAGES, NEWEST, PREVIOUS, programs

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
VERSION, NEW = PREVIOUS, NEWEST
PROGRAMS = programs("kubernetes", VERSION)
# The same programs under older names, so that the upgrade has something to change them to.
ETCD, DNS = "registry.k8s.io/etcd:3.6.15-0", "registry.k8s.io/coredns/coredns:v1.14.5"
NEW_IMAGES = {name: IMAGES[name] for name in ("etcd", "kube-proxy", "coredns")}
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-adopt"
HERE = ROOT / "tests" / "machines"
ENV = dict(os.environ, SLIPWAY_SET="adopt", SLIPWAY_MACHINE_KEY=str(WORK / "key.pub"), KUBERNETES=VERSION)
HOSTS = {"k1": "10.128.0.31", "k2": "10.128.0.32"}
PODS = {"k1": "10.244.0", "k2": "10.244.1"}
SYSTEM = ("kube-apiserver-", "kube-controller-manager-", "kube-scheduler-", "etcd-")
EVICT = "\n".join(f"{key}: {json.dumps(value)}" for key, value in EVICTION.items())
CONFIG = f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {HOSTS["k1"]}}}
nodeRegistration: {{name: k1, taints: [], ignorePreflightErrors: [all], kubeletExtraArgs: [{{name: node-ip, value: {HOSTS["k1"]}}}]}}
bootstrapTokens: [{{token: abcdef.0123456789abcdef}}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: taken
kubernetesVersion: v{VERSION}
networking: {{podSubnet: 10.244.0.0/16}}
etcd: {{local: {{imageTag: {ETCD.rsplit(":", 1)[1]}}}}}
dns: {{imageTag: {DNS.rsplit(":", 1)[1]}}}
apiServer:
  certSANs: [api.example.net]
  extraArgs:
    - {{name: profiling, value: "false"}}
    - {{name: audit-policy-file, value: /etc/own/audit/policy.yaml}}
    - {{name: audit-log-path, value: /var/log/own/audit.log}}
    - {{name: encryption-provider-config, value: /etc/own/encryption.yaml}}
  extraVolumes:
    - {{name: own, hostPath: /srv/own, mountPath: /etc/own, readOnly: true}}
    - {{name: own-log, hostPath: /srv/log, mountPath: /var/log/own, pathType: DirectoryOrCreate}}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
oomScoreAdj: 0
maxPods: 77
{EVICT}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
oomScoreAdj: 0
conntrack: {{maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
"""
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, resources: [{group: \"\", resources: [secrets]}]}, {level: None}]\n"
ENCRYPTION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - secretbox: {keys: [{name: first, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
      - identity: {}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "registry.k8s.io/pause:3.10.2"}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-nspawn"), reason="machines on this computer need root")


def machine(*args, **kw):
    kw = {"check": True, "capture_output": True, **kw}
    r = subprocess.run([HERE / "machine.sh", *args], env=ENV, text=True, stdin=kw.pop("stdin", subprocess.DEVNULL), **{**kw, "check": False})
    assert not kw["check"] or r.returncode == 0, f"{args}: {r.stdout}{r.stderr}"
    return r.stdout


def on(host, *argv, **kw):
    return machine("exec", host, *argv, **kw)


def slipway(*args):
    return subprocess.run([HERE / "machine.sh", "net", SLIPWAY, *args], env=ENV, cwd=WORK, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def kubectl(*args, check=True):
    return on("k1", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", *args, check=check)


def images(out):
    subprocess.run([HERE / "joiner.sh", "images", out], env=ENV, check=True, capture_output=True)
    packed = {f"registry.k8s.io/{p}:v{VERSION}": (PROGRAMS / p, f"/usr/local/bin/{p}") for p in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")}
    packed[ETCD] = (programs("etcd") / "etcd", "/usr/local/bin/etcd")
    packed[DNS] = (programs("coredns") / "coredns", "/coredns")
    for name, (program, path) in packed.items():
        subprocess.run([HERE / "image.sh", name, out / f"{path.rsplit('/', 1)[1]}.tar", f"{program}={path}"], check=True)
    # The one image that hosts pull by themselves in an upgrade: there is no registry here.
    subprocess.run([HERE / "joiner.sh", "images", out / "new"], env=dict(ENV, KUBERNETES=NEW), check=True, capture_output=True)
    (out / "new" / "kube-proxy.tar").rename(out / "kube-proxy-new.tar")
    return sorted(p for p in out.glob("*.tar") if "flannel" not in p.name)


def network(host):
    """A fabric that slipway knows nothing of: a bridge a node, and routes."""
    conf = {"cniVersion": "1.0.0", "name": "own", "plugins": [
        {"type": "bridge", "bridge": "own0", "isGateway": True, "ipMasq": True, "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS[host] + ".0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
    root = Path(machine("root", host).strip())
    (root / "etc/cni/net.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/cni/net.d/10-own.conflist").write_text(json.dumps(conf))
    for other in HOSTS:
        if other != host:
            on(host, "ip", "route", "replace", PODS[other] + ".0/24", "via", HOSTS[other])


def wait(what, fn):
    end = time.monotonic() + 900
    while time.monotonic() < end:
        got = fn()
        if got:
            return got
        time.sleep(1)
    raise AssertionError(f"{what} never came")


def refuse_evicted(items):
    """A pod that a kubelet put out, or that has failed for good, will not come: whoever waits for it is told why."""
    for p in items:
        status, name = p["status"], f"{p['metadata']['namespace']}/{p['metadata']['name']}"
        assert status.get("phase") != "Failed", f"{name} on {p['spec'].get('nodeName')}: {status.get('reason') or 'Failed'}: {status.get('message') or 'no reason is given'}"


def all_pods():
    return json.loads(kubectl("get", "pods", "-A", "-o", "json"))["items"]


def rolled_out(*what):
    """Waits in short steps, so that an eviction is seen when it happens and not after fifteen minutes."""
    def look():
        refuse_evicted(all_pods())
        return "successfully rolled out" in kubectl(*what[:-1], "rollout", "status", what[-1], "--timeout=10s", check=False)
    wait(f"{what[-1]} rolled out", look)


def make():
    for name, address in HOSTS.items():
        machine("start", name, address)
    tars = images(WORK / "images")
    for host in HOSTS:
        subprocess.run([HERE / "joiner.sh", "install", host, *tars], env=ENV, check=True, capture_output=True)
        shutil.copy(PROGRAMS / "kubectl", Path(machine("root", host).strip()) / "usr/bin/kubectl")
        network(host)
    root = Path(machine("root", "k1").strip())
    (root / "root/kubeadm.yaml").write_text(CONFIG)
    (root / "srv/own/audit").mkdir(parents=True)
    (root / "srv/own/audit/policy.yaml").write_text(POLICY)
    (root / "srv/own/encryption.yaml").write_text(ENCRYPTION)
    (root / "etc/resolv.conf").write_text("nameserver 10.128.0.1\n")
    (Path(machine("root", "k2").strip()) / "etc/resolv.conf").write_text("nameserver 10.128.0.1\n")
    on("k1", "kubeadm", "init", "--config", "/root/kubeadm.yaml", "--ignore-preflight-errors=all")
    on("k2", "kubeadm", "join", HOSTS["k1"] + ":6443", "--token", "abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification",
       "--node-name", "k2", "--ignore-preflight-errors=all")
    wait("two nodes that are Ready", lambda: kubectl("get", "nodes", "--no-headers", check=False).count(" Ready ") == 2)
    (root / "root/web.yaml").write_text(WEB)
    kubectl("apply", "-f", "/root/web.yaml")
    kubectl("create", "secret", "generic", "before", "--from-literal=word=kept")
    rolled_out("-n", "kube-system", "deployment/coredns")
    rolled_out("deployment/web")


@pytest.fixture(scope="module")
def cluster():
    keep = os.environ.get("SLIPWAY_KEEP")
    if not (keep and WORK.exists()):
        machine("stop", "--all")
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", WORK / "key"], check=True)
    try:
        if not (WORK / "made").exists():
            make()
            (WORK / "made").touch()
        yield pods()
    finally:
        if not keep:
            machine("stop", "--all", check=False)
            shutil.rmtree(WORK, ignore_errors=True)


def pods():
    """Of each pod, when its containers started and how often: what must not change."""
    out, items = {}, all_pods()
    refuse_evicted(items)
    for p in items:
        name = p["metadata"]["name"]
        if name.startswith(SYSTEM):
            continue  # the plan names them
        containers = p["status"].get("containerStatuses", [])
        assert containers and all("containerID" in c for c in containers), f"{name} has not started: {p['status']}"
        out[name] = (p["metadata"]["uid"], [(c["restartCount"], c["state"].get("running", {}).get("startedAt"), c["containerID"]) for c in p["status"]["containerStatuses"]])
    return out


def test_refusals(cluster):
    r = slipway("adopt", "root@" + HOSTS["k2"], "--key", "key", "--ssh-option", f"UserKnownHostsFile={WORK}/known")
    assert r.returncode == 4 and "has no /etc/kubernetes/" in r.stderr and "name a control-plane host" in r.stderr, r.stderr
    assert not (WORK / "cluster.yaml").exists() and not (WORK / ".slipway").exists()


def test_adopt_changes_nothing(cluster):
    before = on("k1", "sh", "-c", "find /etc /usr /opt -xdev -type f -exec sha256sum {} + | sort")
    r = slipway("adopt", "root@" + HOSTS["k1"], "--key", "key", "--ssh-option", f"UserKnownHostsFile={WORK}/known")
    assert r.returncode == 0, r.stderr
    assert "taken: 2 nodes, Kubernetes " + VERSION in r.stdout
    assert on("k1", "sh", "-c", "find /etc /usr /opt -xdev -type f -exec sha256sum {} + | sort") == before
    text = (WORK / "cluster.yaml").read_text()
    for part in ("run: static-pod", f"image: {ETCD}", "proxyRun: daemonset", f"proxyImage: registry.k8s.io/kube-proxy:v{VERSION}", f"dnsImage: {DNS}", "managed: false", "manageDNS: false", "api.example.net", "profiling:",
                 "maxPods: 77", "localBalancer: false", HOSTS["k1"] + ":6443", "provider: secretbox", "policyFile: audit-policy.yaml", "path: /srv/log/audit.log",
                 "verifyKubelets: false"):
        assert part in text, text
    assert (WORK / "audit-policy.yaml").read_text() == POLICY and "MDEyMzQ1" not in text
    assert slipway("check").returncode == 0
    for name in ("ca", "etcd/ca", "front-proxy-ca"):
        ours = (WORK / ".slipway/taken/pki" / f"{name}.crt").read_text()
        assert ours == on("k1", "cat", f"/etc/kubernetes/pki/{name}.crt")
    assert pods() == cluster


def test_up_keeps_the_pods(cluster):
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert pods() == cluster
    kubectl("get", "--raw", "/readyz")
    assert kubectl("get", "secret", "before", "-o", "jsonpath={.data.word}") == "a2VwdA==", "it is decrypted with the key that was taken in"
    assert "secrets" in on("k1", "tail", "-n", "3", "/srv/log/audit.log")
    assert "taken" in kubectl("-n", "kube-system", "get", "configmap", "kubeadm-config", "-o", "yaml")


def serves(node):
    return kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/healthz", check=False).strip() == "ok"


def test_kubelets_are_reached_before_and_after(cluster):
    """First without a look at their certificates, as kubeadm's API server has it; then, every node being brought over, with one."""
    text = (WORK / "cluster.yaml").read_text()
    assert all(serves(n) for n in HOSTS)
    (WORK / "cluster.yaml").write_text(text.replace("verifyKubelets: false", "verifyKubelets: true"))
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt" in on("k1", "cat", "/etc/kubernetes/manifests/kube-apiserver.yaml")
    for node in HOSTS:
        wait(f"the kubelet of {node} is reached", lambda n=node: serves(n))
    assert pods() == cluster


def test_up_again_is_nothing(cluster):
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert r.stderr.count("apply: unchanged") == 2, r.stderr
    assert pods() == cluster
    r = slipway("status")
    assert r.returncode == 0, r.stdout + r.stderr


class Watch(threading.Thread):
    """The fewest pods of the Deployment that were available at once, seen all the time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.least, self.seen, self.over = 2, 0, False

    def run(self):
        while not self.over:
            try:
                text = kubectl("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}", check=False)
            except OSError:
                continue
            if text.strip().isdigit():
                self.least, self.seen = min(self.least, int(text)), self.seen + 1
            time.sleep(0.3)

    def stop(self):
        self.over = True
        self.join()


def image(kind, name):
    spec = json.loads(kubectl("-n", "kube-system", "get", kind, name, "-o", "json"))["spec"]
    return (spec if kind == "pod" else spec["template"]["spec"])["containers"][0]["image"]


def test_upgrade(cluster):
    """The control plane, etcd's static pod, the cluster's own kube-proxy and CoreDNS, the kubelets; the Deployment never below its budget."""
    watch = Watch()
    watch.start()
    r = slipway("upgrade", NEW, "--yes")
    watch.stop()
    assert r.returncode == 0, r.stderr
    for part in ("plan for taken, now " + VERSION, f"the cluster's own kube-proxy: image {NEW_IMAGES['kube-proxy']} instead of", "k2: drain: done"):
        assert part in r.stderr, r.stderr
    nodes = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
    assert {n["status"]["nodeInfo"]["kubeletVersion"] for n in nodes} == {"v" + NEW} and not [n for n in nodes if n["spec"].get("unschedulable")]
    found = {"etcd": image("pod", "etcd-k1"), "kube-proxy": image("daemonset", "kube-proxy"), "coredns": image("deployment", "coredns")}
    assert found == NEW_IMAGES
    assert image("pod", "kube-apiserver-k1").endswith(":v" + NEW)
    text = (WORK / "cluster.yaml").read_text()
    for part in ("kubernetes: " + NEW, *NEW_IMAGES.values()):
        assert part in text, text
    assert watch.seen > 20 and watch.least >= 1, "the budget was kept all the time"
    for what in ("daemonset/kube-proxy", "deployment/coredns"):
        rolled_out("-n", "kube-system", what)
    rolled_out("deployment/web")


def test_afterwards_it_is_as_any_cluster(cluster):
    r = slipway("up")
    assert r.returncode == 0 and r.stderr.count("apply: unchanged") == 2 and "plan: unchanged" in r.stderr, r.stderr
    r = slipway("certs", "list", "-o", "json")
    assert r.returncode == 0, r.stderr
    text = r.stdout
    for part in ("k1", "k2", "apiserver", "etcd"):
        assert part in text, text
    assert slipway("status").returncode == 0
