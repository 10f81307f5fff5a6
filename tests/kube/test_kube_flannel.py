"""What flannel of one node may do to Nodes, by the API server's own judgement of our role and policy: for a service with a certificate, and for a pod with a token."""
import copy
import json
import ssl
import time
import urllib.error
import urllib.request

import pytest

from conftest import ROOT

ACCOUNT = "/api/v1/namespaces/kube-system/serviceaccounts/flannel"
MERGE = "application/strategic-merge-patch+json"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"kept": "yes"}, "annotations": {"kept": "yes", "flannel.alpha.coreos.com/public-ip": "192.0.2.9"}},
        "spec": {"podCIDR": "10.244.9.0/24"}}
STATUS = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}], "capacity": {"cpu": "2"},
                     "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}, {"type": "NetworkUnavailable", "status": "True"}]}}
# As flannel writes them.
UP = {"status": {"conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "FlannelIsUp", "message": "Flannel is running on this node"}]}}
LEASE = {"metadata": {"annotations": {"flannel.alpha.coreos.com/backend-data": '{"VNI":1}', "flannel.alpha.coreos.com/backend-type": "vxlan",
                                      "flannel.alpha.coreos.com/kube-subnet-manager": "true", "flannel.alpha.coreos.com/public-ip": "192.0.2.10"}}}
REFUSED = {
    "a label": {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
    "a label taken away": {"metadata": {"labels": {"kept": None}}},
    "an annotation": {"metadata": {"annotations": {"slipway.dev/cordoned": "true"}}},
    "an annotation taken away": {"metadata": {"annotations": {"kept": None}}},
    "a finalizer": {"metadata": {"finalizers": ["slipway.dev/stay"]}},
    "an address": {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}},
    "capacity": {"status": {"capacity": {"cpu": "64"}}},
    "a new part of the status": {"status": {"volumesInUse": ["kubernetes.io/csi/x"]}},
    "another condition": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "a condition of its own": {"status": {"conditions": [{"type": "Own", "status": "True"}]}},
}


class Client:
    """One credential: a certificate, or a token."""

    def __init__(self, control, pair=None, token=None):
        self.url, self.token = control.servers[0], token
        self.tls = ssl.create_default_context(cafile=control.ca)
        if pair:
            self.tls.load_cert_chain(*pair)
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.tls))

    def __call__(self, method, path, body=None, kind="application/json"):
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body is not None else None, headers, method=method)
        try:
            with self.opener.open(request, timeout=90) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)

    def patch(self, node, body, part="/status"):
        return self("PATCH", f"/api/v1/nodes/{node}{part}", body, MERGE)


@pytest.fixture(scope="module")
def flannel(control):
    """Three Nodes; flannel of fn1 by certificate, and of fn2 by the token of its pod."""
    joined = (ROOT / "src/addon/templates/joined-flannel.yaml").read_text().split("\n---\n")
    assert control.apply("\n---\n".join([(ROOT / "src/addon/templates/flannel.yaml").read_text(), *joined[:2]])) is None
    admin = Client(control, control.admin)
    for name in ("fn1", "fn2", "fn3"):
        node = copy.deepcopy(NODE)
        node["metadata"]["name"] = name
        assert admin("POST", "/api/v1/nodes", node)[0] == 201
        assert admin.patch(name, STATUS)[0] == 200
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "flannel-fn2", "namespace": "kube-system"},
           "spec": {"nodeName": "fn2", "serviceAccountName": "flannel", "containers": [{"name": "c", "image": "none"}]}}
    status, made = admin("POST", "/api/v1/namespaces/kube-system/pods", pod)
    assert status == 201, made
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "flannel-fn2", "uid": made["metadata"]["uid"]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
    status, token = admin("POST", f"{ACCOUNT}/token", request)
    assert status == 201, token
    of = {"certificate": ("fn1", Client(control, control.pki.leaf("flannel-fn1", "/O=slipway:flannel/CN=slipway:flannel:fn1"))),
          "token": ("fn2", Client(control, token=token["status"]["token"]))}
    status, token = admin("POST", f"{ACCOUNT}/token", {**request, "spec": {}})
    of["unbound"] = Client(control, token=token["status"]["token"])
    of["shared"] = Client(control, control.pki.leaf("flannel-old", "/CN=slipway:flannel"))
    of["admin"] = admin
    # A policy counts from when the API server has seen it.
    deadline = time.monotonic() + 90
    while of["certificate"][1].patch("fn3", UP)[0] == 200:
        assert time.monotonic() < deadline, "the policy does nothing"
        time.sleep(0.2)
    return of


@pytest.mark.parametrize("who", ["certificate", "token"])
def test_its_own_node(flannel, who):
    node, client = flannel[who]
    for change in (LEASE, UP):
        status, said = client.patch(node, change)
        assert status == 200, said
    now = flannel["admin"]("GET", f"/api/v1/nodes/{node}")[1]
    assert now["metadata"]["annotations"]["flannel.alpha.coreos.com/public-ip"] == "192.0.2.10"
    assert {c["type"]: c["status"] for c in now["status"]["conditions"]} == {"Ready": "True", "NetworkUnavailable": "False"}
    assert client("GET", "/api/v1/nodes")[0] == 200


@pytest.mark.parametrize("who", ["certificate", "token"])
@pytest.mark.parametrize("change", [LEASE, UP], ids=["annotations", "condition"])
def test_no_other_node(flannel, who, change):
    node, client = flannel[who]
    for other in {"fn1", "fn2", "fn3"} - {node}:
        before = flannel["admin"]("GET", f"/api/v1/nodes/{other}")[1]["metadata"]["resourceVersion"]
        status, said = client.patch(other, change)
        assert status == 422 and "that node's Node and no other" in said["message"], said
        assert flannel["admin"]("GET", f"/api/v1/nodes/{other}")[1]["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize("who", ["certificate", "token"])
@pytest.mark.parametrize("what", REFUSED)
def test_nothing_else_of_its_own(flannel, who, what):
    node, client = flannel[who]
    status, said = client.patch(node, REFUSED[what])
    assert status == 422 and "nothing else" in said["message"], said


@pytest.mark.parametrize("who", ["certificate", "token"])
def test_not_its_spec_and_not_the_node_itself(flannel, who):
    node, client = flannel[who]
    for method, path, body, kind in (("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": []}}, MERGE), ("DELETE", f"/api/v1/nodes/{node}", None, "application/json"),
                                     ("POST", "/api/v1/nodes", {**NODE, "metadata": {"name": "n9"}}, "application/json")):
        status, said = client(method, path, body, kind)
        assert status == 403, said
    taint = {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    client.patch(node, taint)  # the API server takes no spec by this way: refused or without effect
    assert not [t for t in flannel["admin"]("GET", f"/api/v1/nodes/{node}")[1]["spec"].get("taints", []) if t["key"] == "x"]


def test_a_policy_stands_behind_the_role(flannel):
    """With more rights than ours the policy still refuses."""
    rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "too-much"},
              "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
              "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "slipway:flannel"}]}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    assert flannel["admin"]("POST", path, rights)[0] == 201
    node, client = flannel["certificate"]
    try:
        taint = {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
        deadline = time.monotonic() + 90
        while (answer := client.patch(node, taint, part=""))[0] == 403:
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        assert answer[0] == 422 and "metadata and spec" in answer[1]["message"], answer
        assert client("DELETE", "/api/v1/nodes/fn3")[0] == 422
    finally:
        assert flannel["admin"]("DELETE", f"{path}/too-much")[0] == 200


def test_credentials_without_a_node(flannel):
    """The credential that all nodes shared, and a token that no pod holds."""
    assert flannel["shared"].patch("fn1", UP)[0] == 403
    status, said = flannel["unbound"].patch("fn2", UP)
    assert status == 422 and "no other" in said["message"], said
