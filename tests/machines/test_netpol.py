"""Upstream's own tests of NetworkPolicy (`[sig-network] Netpol` of Kubernetes' e2e.test) on a small cluster with calico: pods of three namespaces on two workers, and every pair of them asked whether it connects."""
import json
import os
import socket
import subprocess

import pytest
from harness import HERE, NEWEST, Machines, programs

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.153.0.0/24}}
  network: {fabric: calico}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 2}
"""
WORKERS = ("worker-1", "worker-2")
FOCUS = r"\[sig-network\] Netpol"
LEAST = 47  # specs of 1.36 without SCTP: a focus that finds none must not pass


def left_out():
    """{specs that cannot run here: why}"""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
        return {}
    except OSError:
        return {r"\[Feature:SCTPConnectivity\]": "this computer's kernel, which the machines share, has no SCTP"}


def e2e(directory, name, *args):
    """{spec: its report} of those that the focus and the skips leave; what it printed is in NAME.log."""
    report, log = directory / f"{name}.json", directory / f"{name}.log"
    skips = [f"--ginkgo.skip={pattern}" for pattern in left_out()]
    with open(log, "wb") as f:
        status = subprocess.run([programs("e2e") / "e2e.test", "--provider=skeleton", f"--ginkgo.focus={FOCUS}", *skips, "--ginkgo.no-color", "--ginkgo.timeout=24h",
                                 f"--ginkgo.json-report={report}", *args], cwd=directory, stdin=subprocess.DEVNULL, stdout=f, stderr=f).returncode
    suites = json.loads(report.read_text()) if report.exists() else []
    specs = [r for suite in suites for r in suite["SpecReports"] if r["State"] != "skipped"]
    faults = "\n\n".join(f"{title(r)}: {r['State']}: {r.get('Failure', {}).get('Message', '')}\n{r.get('CapturedGinkgoWriterOutput', '')[-4000:]}" for r in specs if r["State"] != "passed")
    assert status == 0 and not faults, f"status {status}\n{faults or log.read_text(errors='replace')[-8000:]}"
    return {title(r): r for r in specs if r["LeafNodeType"] == "It"}


def title(spec):
    return " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"] or spec["LeafNodeType"]])


def agnhost():
    """The image of the tests' pods, under the newest name that the tests have for it."""
    listed = subprocess.run([programs("e2e") / "e2e.test", "--list-images"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout.split()
    return max((i for i in listed if "/e2e-test-images/agnhost:" in i), key=lambda i: [int(n) for n in i.rpartition(":")[2].split(".")])


@pytest.fixture(scope="module")
def cluster():
    with Machines("netpol", SPEC) as c:
        c.slipway("up")
        c.kubeconfig()
        subprocess.run([HERE / "image.sh", agnhost(), c.dir / "agnhost.tar", f"{programs('agnhost') / 'agnhost'}=/agnhost"], check=True, stdin=subprocess.DEVNULL)
        for node in WORKERS:
            with open(c.dir / "agnhost.tar", "rb") as f:
                subprocess.run(c.ssh_argv(node, "ctr -n k8s.io images import --label io.cri-containerd.pinned=pinned -"), stdin=f, check=True, capture_output=True)
        yield c


def test_upstreams_tests_of_network_policies(cluster):
    for pattern, why in left_out().items():
        print(f"left out: {pattern}: {why}")
    listed = e2e(cluster.dir, "listed", "--ginkgo.dry-run")
    assert len(listed) >= LEAST, sorted(listed)
    ran = e2e(cluster.dir, "ran", f"--kubeconfig={cluster.dir / 'kubeconfig'}", f"--num-nodes={len(WORKERS)}")
    for name, spec in ran.items():
        print(f"{spec['State']} in {spec['RunTime'] / 1e9:.0f} s: {name}")
    print(f"{len(ran)} of {len(listed)} tests of Kubernetes {NEWEST} passed with calico")
    assert set(ran) == set(listed)
