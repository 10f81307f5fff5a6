"""Clusters that kubeadm makes on this computer: kubelets that evict by amounts, and an eviction
that is said instead of waited for."""
import json
import re

import pytest
import yaml
from harness import EVICTION, EVICTION_FLAGS, HERE, SHARED_DISK

BENCH = HERE.parent / "bench"
EVICTED = {"metadata": {"namespace": "default", "name": "web-1"}, "spec": {"nodeName": "k2"},
           "status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}}
PENDING = {"metadata": {"namespace": "default", "name": "web-2"}, "spec": {}, "status": {"phase": "Pending"}}


@pytest.fixture
def adopt(monkeypatch):
    import test_adopt
    said = {"items": []}
    monkeypatch.setattr(test_adopt, "kubectl", lambda *args, **_: json.dumps(said) if "json" in args else "waiting for it")
    monkeypatch.setattr(test_adopt.time, "sleep", lambda _: None)
    test_adopt.said = said
    return test_adopt


def test_an_eviction_ends_the_wait(adopt):
    adopt.said["items"] = [EVICTED]
    for look in (lambda: adopt.rolled_out("deployment/web"), adopt.pods):
        with pytest.raises(AssertionError, match="default/web-1 on k2: Evicted: The node was low on resource"):
            look()


def test_a_pod_without_containers_is_named(adopt):
    adopt.said["items"] = [PENDING]
    with pytest.raises(AssertionError, match="web-2 has not started"):
        adopt.pods()


def amounts(config):
    return all(re.fullmatch(r"\d+[MG]i", config["evictionHard"][k]) for k in ("nodefs.available", "imagefs.available")) and config["imageGCHighThresholdPercent"] == 100


def test_every_kubeadm_cluster_evicts_by_amounts(adopt):
    """In one place, the same that slipway gives machines of this computer; shares would be those
    of the computer's disk."""
    kubelet = next(d for d in yaml.safe_load_all(adopt.CONFIG) if d["kind"] == "KubeletConfiguration")
    assert amounts(kubelet) and amounts(EVICTION)
    ours = yaml.safe_load(SHARED_DISK)["components"]["kubelet"]
    assert ours["evictionHard"] == EVICTION["evictionHard"] and ours["config"]["imageGCHighThresholdPercent"] == 100
    assert "nodefs.available<1Gi" in EVICTION_FLAGS and "EVICTION_FLAGS" in (HERE.parent / "verbs" / "test_with_kubeadm.py").read_text()


def test_the_benches_cluster_too(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    bench = __import__("kubeadm")
    rendered = yaml.safe_dump({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "clusterDNS": ["10.96.0.10"], **EVICTION})

    class Fake:
        address, vip = {"control-1": "10.0.0.1"}, None

        def run(self, _, command):
            return "registry.k8s.io/coredns/coredns:v1.14.6" if "coredns" in command else rendered

    kubelet = next(d for d in yaml.safe_load_all(bench.init_config(Fake())) if d["kind"] == "KubeletConfiguration")
    assert amounts(kubelet) and "clusterDNS" not in kubelet
