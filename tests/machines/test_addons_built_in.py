"""Built-in addons together on one small cluster: a DNS cache that follows its load, a load balancer's address, a registry that nodes pull from, problems of the kernel as conditions; verify proves them, and status tells what somebody else changed."""
import json
import os
import subprocess
import urllib.request
from contextlib import contextmanager

import pytest
from harness import BALANCED, HERE, NEWEST, SLIPWAY, WithAddons, programs, until

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.175.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
  services:
    addons:
      - metrics-server
      - local-path
      - nodelocaldns
      - dns-autoscaler
      - registry
      - node-problem-detector
      - {name: kube-vip, values: {addresses: [10.175.0.200-10.175.0.203, 10.175.0.208/30]}}
"""
PULLED = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: pulled}
spec:
  selector: {matchLabels: {app: pulled}}
  template:
    metadata: {labels: {app: pulled}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers: [{name: app, image: "localhost:5000/team/app:1", imagePullPolicy: Always, args: [serve, "8080", pulled]}]
"""


@pytest.fixture(scope="module")
def cluster():
    with WithAddons("addons-own", SPEC) as c:
        c.slipway("up")
        yield c


def conditions(cluster, node):
    found = json.loads(cluster.kubectl("get", "node", node, "-o", "json"))["status"]["conditions"]
    return {c["type"]: c for c in found}


@contextmanager
def forwarded(cluster, *what):
    """kubectl port-forward to a free port of this computer, which is the value."""
    p = subprocess.Popen([programs("kubernetes") / "kubectl", "--kubeconfig", cluster.kubeconfig(), "port-forward", *what], stdout=subprocess.PIPE, text=True)
    try:
        line = p.stdout.readline()
        assert "Forwarding from 127.0.0.1:" in line, line
        yield int(line.split("127.0.0.1:")[1].split(" ")[0])
    finally:
        p.terminate()
        p.wait()


def said(url):
    """None while nobody answers."""
    try:
        return urllib.request.urlopen(url, timeout=5).read()
    except OSError:
        return None


def test_what_they_promise_is_proven(cluster):
    answer = json.loads(cluster.slipway("verify", "-o", "json").stdout)
    assert answer["works"]
    checks = {(c["check"], c["from"]): c for c in answer["checks"]}
    for check in ("metrics", "DNS"):
        assert {name for c, name in checks if c == check} == {"control-1", "worker-1"}, check
    assert ("storage", "cluster") in checks


def test_a_load_balancer_has_an_address_of_the_range(cluster):
    """Asked from this computer, which is no node."""
    cluster.kubectl("apply", "-f", "-", text=BALANCED)
    ip = until("the Service has an address", lambda: cluster.kubectl("get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"))
    assert ip in [f"10.175.0.{n}" for n in (*range(200, 204), *range(208, 212))]
    assert until("it answers", lambda: said(f"http://{ip}/")) == b"web\n"
    cluster.kubectl("delete", "service/web", "deployment/web")


def test_an_image_is_pushed_from_here_and_pulled_on_every_node(cluster):
    archive, agent = cluster.dir / "app.tar", os.environ.get("AGENT") or SLIPWAY.parent / "src/agent/agent"
    # not the nodes' own image: a kubelet that pulled the same one by another name asks for its own name again
    subprocess.run([HERE / "image.sh", "team/app:1", archive, f"{agent}=/probe"], check=True)
    with forwarded(cluster, "-n", "registry", "service/registry", ":80") as port:
        subprocess.run(["skopeo", "copy", "--dest-tls-verify=false", f"docker-archive:{archive}", f"docker://localhost:{port}/team/app:1"], check=True, capture_output=True)
        tags = json.loads(urllib.request.urlopen(f"http://localhost:{port}/v2/team/app/tags/list", timeout=20).read())
    assert tags["tags"] == ["1"]
    cluster.kubectl("apply", "-f", "-", text=PULLED)
    until("both nodes have pulled it", lambda: cluster.kubectl("get", "daemonset", "pulled", "-o", "jsonpath={.status.numberReady}") == "2")
    assert "localhost:5000/team/app" in cluster.on("worker-1", "ctr -n k8s.io images ls -q")
    cluster.kubectl("delete", "daemonset", "pulled")


def test_pods_ask_the_cache_of_their_node(cluster):
    for node in ("control-1", "worker-1"):
        assert "169.254.20.10" in cluster.on(node, "grep -A1 clusterDNS /var/lib/kubelet/config.yaml")
        assert "169.254.20.10:53" in cluster.on(node, "ss -Hlun sport = :53")
    assert "2" == cluster.kubectl("-n", "kube-system", "get", "daemonset", "nodelocaldns", "-o", "jsonpath={.status.numberReady}")


def test_coredns_follows_its_load(cluster):
    scaler = until("it knows the load", lambda: cluster.kubectl("-n", "kube-system", "get", "hpa", "coredns", "-o", "jsonpath={.status.currentMetrics[0].resource.current.averageUtilization}"))
    assert int(scaler) >= 0
    until("there are two replicas", lambda: cluster.kubectl("-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath={.status.readyReplicas}") == "2")
    assert "nothing to do" in cluster.slipway("plan", "--exit-code").stdout


def test_a_problem_of_the_kernel_is_a_condition(cluster):
    """All machines of this computer have one kernel: the message of a run less than five minutes ago counts too."""
    until("the condition is there", lambda: "ReadonlyFilesystem" in conditions(cluster, "worker-1"))
    cluster.on("worker-1", "echo '<3>EXT4-fs (vdz): Remounting filesystem read-only' > /dev/kmsg")
    until("it is true", lambda: conditions(cluster, "worker-1")["ReadonlyFilesystem"]["status"] == "True")
    assert conditions(cluster, "worker-1")["ReadonlyFilesystem"]["reason"] == "FilesystemIsReadOnly"


def test_status_shows_them(cluster):
    status, answer = cluster.status()
    rows = {a["name"]: a for a in answer["addons"]}
    assert status == 0 and set(rows) == {"metrics-server", "local-path", "nodelocaldns", "dns-autoscaler", "registry", "node-problem-detector", "kube-vip"}
    assert all(a["works"] and a["ready"] == a["wanted"] and a["drift"] is None for a in rows.values()), rows
    assert (rows["registry"]["wanted"], rows["kube-vip"]["wanted"], rows["dns-autoscaler"]["wanted"]) == (3, 3, 0)


def test_what_somebody_changed_is_told(cluster):
    cluster.kubectl("-n", "registry", "set", "env", "deployment/registry", "REGISTRY_LOG_LEVEL=debug")
    cluster.kubectl("-n", "registry", "scale", "deployment/registry", "--replicas=0")
    until("its pods are gone", lambda: not json.loads(cluster.kubectl("-n", "registry", "get", "pods", "-l", "part=server", "-o", "json"))["items"])
    status, answer = cluster.status()
    assert status == 7 and any("addon registry: registry was changed by kubectl" in p for p in answer["problems"]), answer["problems"]
    cluster.kubectl("-n", "registry", "scale", "deployment/registry", "--replicas=1")


def test_what_is_taken_out_goes(cluster):
    """Also the addresses of the cache, and the volume of the registry."""
    cluster.write()
    cluster.slipway("up")
    for what in (("-n", "kube-system", "daemonset", "nodelocaldns"), ("-n", "kube-system", "hpa", "coredns"), ("-n", "registry", "deployment", "registry"), ("-n", "registry", "daemonset", "registry-forwarder"),
                 ("-n", "registry", "pvc", "registry"), ("-n", "kube-system", "daemonset", "node-problem-detector"), ("-n", "kube-system", "daemonset", "kube-vip"),
                 ("-n", "kube-system", "deployment", "kube-vip-cloud-provider"), ("clusterrole", "system:kube-vip"), ("-n", "kube-system", "deployment", "metrics-server"), ("storageclass", "local-path")):
        until(f"{what[-1]} is gone", lambda: cluster.gone(*what))
    for node in ("control-1", "worker-1"):
        assert "169.254.20.10" not in cluster.on(node, "grep -A1 clusterDNS /var/lib/kubelet/config.yaml")
        until("the cache's address is gone", lambda: "169.254.20.10" not in cluster.on(node, "ip -o address"))
    assert json.loads(cluster.slipway("verify", "-o", "json").stdout)["works"] and cluster.status()[0] == 0
