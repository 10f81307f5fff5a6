"""Fabrics that are not slipway's: none, and the manifests of the user's own. On the older minor where the cache has it: so that is seen end to end too."""
import os
import shutil
import subprocess

import pytest
from harness import HERE, NEWEST, PREVIOUS, Cluster, programs, until

KUBERNETES = PREVIOUS if (programs("kubernetes", PREVIOUS) / "kubectl").exists() else NEWEST
MACHINES = {"control-1": "10.124.0.10", "worker-1": "10.124.0.40"}
CLUSTER = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: fabric}}
spec:
  kubernetes: {KUBERNETES}
  provider: {{local: {{network: 10.124.0.0/24}}}}
  network: {{fabric: none}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
    - {{name: worker, count: 1}}
"""
CUSTOM = CLUSTER.replace("fabric: none", "fabric: {name: custom, manifests: [net/fabric-rbac.yaml, net/fabric.yaml]}")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


@pytest.fixture(scope="module")
def cluster():
    c = Cluster("fabric", KUBERNETES, CLUSTER)
    c.begin()
    yield c
    c.end()


def manifests(cluster):
    (cluster.dir / "net").mkdir(exist_ok=True)
    for name in ("fabric-rbac.yaml", "fabric.yaml"):
        shutil.copy(HERE / "manifests" / name, cluster.dir / "net")


def test_a_broken_manifest_is_told_before_a_machine_is_made(cluster):
    manifests(cluster)
    cluster.write(CUSTOM)
    for text, words in (("a: [1\n", "fabric.yaml: line 1, column 4: "), ("kind: Pod\n", "fabric.yaml: the document on line 1 has no apiVersion"),
                        ("# nothing\n", "fabric.yaml: there is no object in it"), (None, "fabric.yaml")):
        path = cluster.dir / "net" / "fabric.yaml"
        path.unlink() if text is None else path.write_text(text)
        for verb in ("check", "up"):
            r = cluster.slipway(verb)
            assert r.returncode == 3 and "network.fabric.manifests: " in r.stderr and words in r.stderr, r.stderr
    assert not any((cluster.state / "machines").glob("*-1/machine.json"))


def test_none(cluster):
    """The nodes are registered, and it is said what they wait for."""
    cluster.write(CLUSTER)
    r = cluster.up()
    assert "registered and become Ready with a fabric" in r.stdout and "network.fabric: custom" in r.stdout, r.stdout
    for node in MACHINES:
        assert not cluster.ready(node)
        assert cluster.kubectl("get", "node", node, "-o", "jsonpath={.status.nodeInfo.kubeletVersion}") == f"v{KUBERNETES}"


def test_custom(cluster):
    """The same cluster with a fabric of our own, and the same proof that pods reach each other. Its images come to the nodes as from a registry."""
    images = cluster.dir / "images"
    subprocess.run([HERE / "joiner.sh", "images", images], check=True, env=os.environ | {"KUBERNETES": KUBERNETES})
    for address in MACHINES.values():
        for image in ("flannel", "flannel-cni-plugin"):
            with open(images / f"{image}.tar", "rb") as f:
                r = cluster.on(address, "ctr -n k8s.io images import -", stdin=f)
                assert r.returncode == 0, r.stderr
    manifests(cluster)
    cluster.write(CUSTOM)
    r = cluster.up()
    assert "fabric: done in" in r.stderr and "verify: done in" in r.stderr, r.stderr
    for node in MACHINES:
        assert cluster.ready(node)
    assert cluster.kubectl("-n", "own-fabric", "get", "daemonset", "own-fabric", "-o", "jsonpath={.status.numberReady}") == "2"
    assert cluster.on(MACHINES["worker-1"], "ip route show 10.244.0.0/16; ip route").stdout.count(b" via 10.124.0.10 ") == 1
    assert cluster.slipway("status").returncode == 0


def test_a_second_run_changes_nothing(cluster):
    r = cluster.up()
    assert r.stderr.count("apply: unchanged") == 2 and "verify: unchanged" in r.stderr, r.stderr
    assert cluster.kubectl("-n", "own-fabric", "get", "daemonset", "own-fabric", "-o", "jsonpath={.metadata.generation}") == "1"


def test_a_changed_manifest_is_applied_and_verified(cluster):
    path = cluster.dir / "net" / "fabric.yaml"
    path.write_text(path.read_text().replace("metadata: {labels: {app: own-fabric}}", "metadata: {labels: {app: own-fabric, changed: \"yes\"}}"))
    r = cluster.up()
    assert "verify: done in" in r.stderr, r.stderr
    until("it rolled out", lambda: cluster.kubectl("-n", "own-fabric", "get", "pods", "-l", "changed=yes", "-o", "name").count("pod/") == 2)


def test_what_the_api_refuses_names_the_file(cluster):
    path = cluster.dir / "net" / "fabric.yaml"
    path.write_text(path.read_text().replace("hostNetwork: true", "hostNetwork: 7"))
    r = cluster.slipway("up")
    assert r.returncode == 6 and "net/fabric.yaml: DaemonSet own-fabric/own-fabric: " in r.stderr, r.stderr
