"""What Calico of one node may do to pods and Nodes, by the API server's own judgement of our roles and policies; and that it takes our definitions, pools and controller."""
import copy
import re
import time

import pytest

from conftest import ROOT
from test_kube_flannel import MERGE, NODE, STATUS, Client

PLACE = ROOT / "src/addon/templates"
VALUES = {"crd": "ippools.crd.projectcalico.org", "scope": "Cluster", "kind": "IPPool", "list": "IPPoolList", "plural": "ippools", "singular": "ippool", "name": "default-ipv4-ippool",
          "cidr": "10.244.0.0/16", "block": "26", "mode": "Always", "version": "v3.28.5", "controllers": "docker.io/calico/kube-controllers:v3.28.5"}
INFORMATION = {"crd": "clusterinformations.crd.projectcalico.org", "kind": "ClusterInformation", "list": "ClusterInformationList", "plural": "clusterinformations", "singular": "clusterinformation"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "labels": {"kept": "yes"}, "annotations": {"kept": "yes"}},
       "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "none"}]}}
# As the CNI plugin writes it.
ADDRESS = {"metadata": {"annotations": {"cni.projectcalico.org/podIP": "10.244.1.7/32", "cni.projectcalico.org/containerID": "0123"}}}
REFUSED = {
    "a label": {"metadata": {"labels": {"app": "other"}}},
    "an annotation": {"metadata": {"annotations": {"kept": "no"}}},
    "an annotation taken away": {"metadata": {"annotations": {"kept": None}}},
    "its address": {"status": {"podIP": "192.0.2.66", "podIPs": [{"ip": "192.0.2.66"}]}},
    "its phase": {"status": {"phase": "Succeeded"}},
}
TUNNEL = {"metadata": {"annotations": {"projectcalico.org/IPv4VXLANTunnelAddr": "10.244.1.0", "projectcalico.org/IPv4Address": "192.0.2.10/24"}}}


def rendered(name, *kinds):
    """A template with each of its sections once for these values."""
    text = re.sub(r"(?m)^#.*\n", "", (PLACE / name).read_text())
    section = re.search(r"(?s)\{\{#(\w+)\}\}\n(.*?)\{\{/\1\}\}\n", text)
    fill = lambda t, v: re.sub(r"\{\{(\w+)\}\}", lambda m: v[m[1]], t)  # noqa: E731
    return fill(text.replace(section[0], "".join(fill(section[2], VALUES | k) for k in kinds)), VALUES)


@pytest.fixture(scope="module")
def calico(control):
    """Two Nodes with a pod each; Calico of the first."""
    assert control.apply("\n---\n".join([rendered("calico.yaml", {}, INFORMATION), rendered("calico-ipam.yaml", {})])) is None
    admin = Client(control, control.admin)
    for name in ("kn1", "kn2"):
        node, pod = copy.deepcopy(NODE), copy.deepcopy(POD)
        node["metadata"]["name"], pod["metadata"]["name"], pod["spec"]["nodeName"] = name, f"pod-{name}", name
        assert admin("POST", "/api/v1/nodes", node)[0] == 201
        assert admin.patch(name, STATUS)[0] == 200
        status, said = admin("POST", "/api/v1/namespaces/default/pods", pod)
        assert status == 201, said
    client = Client(control, control.pki.leaf("calico-kn1", "/O=slipway:calico/CN=slipway:calico:kn1"))
    deadline = time.monotonic() + 600  # policies and roles count from when the API server has seen them
    while pod_patch(client, "kn2", ADDRESS)[0] != 422 or client.patch("kn2", TUNNEL)[0] != 422:
        assert time.monotonic() < deadline, "the policies do nothing"
        time.sleep(0.2)
    return client, admin


def pod_patch(client, node, body):
    return client("PATCH", f"/api/v1/namespaces/default/pods/pod-{node}/status", body, MERGE)


def test_the_pool_is_there(calico):
    status, pool = calico[1]("GET", "/apis/crd.projectcalico.org/v1/ippools/default-ipv4-ippool")
    assert status == 200 and pool["spec"]["cidr"] == "10.244.0.0/16" and pool["spec"]["blockSize"] == 26 and pool["spec"]["allowedUses"] == ["Workload", "Tunnel"], pool
    assert calico[1]("GET", "/apis/crd.projectcalico.org/v1/clusterinformations/default")[1]["spec"]["datastoreReady"] is True
    assert calico[1]("GET", "/apis/apps/v1/namespaces/kube-system/deployments/calico-kube-controllers")[0] == 200


def test_pods_of_its_own_node(calico):
    client, admin = calico
    status, said = pod_patch(client, "kn1", ADDRESS)
    assert status == 200, said
    assert admin("GET", "/api/v1/namespaces/default/pods/pod-kn1")[1]["metadata"]["annotations"]["cni.projectcalico.org/podIP"] == "10.244.1.7/32"
    status, said = pod_patch(client, "kn2", ADDRESS)
    assert status == 422 and "that node's pods and no others" in said["message"], said


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_else_of_a_pod(calico, what):
    status, said = pod_patch(calico[0], "kn1", REFUSED[what])
    assert status == 422 and "nothing else" in said["message"], said
    assert calico[0]("PATCH", "/api/v1/namespaces/default/pods/pod-kn1", ADDRESS, MERGE)[0] == 403
    assert calico[0]("DELETE", "/api/v1/namespaces/default/pods/pod-kn1")[0] == 403


def test_its_own_node(calico):
    client, admin = calico
    status, said = client.patch("kn1", TUNNEL)
    assert status == 200, said
    assert admin("GET", "/api/v1/nodes/kn1")[1]["metadata"]["annotations"]["projectcalico.org/IPv4VXLANTunnelAddr"] == "10.244.1.0"
    assert client.patch("kn2", TUNNEL)[0] == 422
    newer = {"status": {"features": {"supplementalGroupsPolicy": True}, "nodeInfo": {"swap": {"capacity": 1}}}}
    assert admin.patch("kn1", newer)[0] == 200
    status, said = client.patch("kn1", {"status": {"features": None, "nodeInfo": {"swap": None}}})  # which Calico's client does not know
    assert status == 200, said
    for change in ({"status": {"nodeInfo": {"kubeletVersion": "v9"}}}, {"status": {"allocatable": None, "capacity": None}},
                   {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, {"status": {"capacity": {"cpu": "64"}}}):
        status, said = client.patch("kn1", change)
        assert status == 422 and "nothing else" in said["message"], said
    assert client("GET", "/api/v1/secrets")[0] == 403
