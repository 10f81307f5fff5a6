"""The addons prometheus and multus on one small cluster: metrics of everything, a second interface of a pod; and each goes when it is taken out of the file."""
import json
import os

import pytest
from harness import NEWEST, PROBE, WithAddons, until

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.176.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
WEB = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
  annotations: {prometheus.io/scrape: "true", prometheus.io/port: "8080"}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: web, image: "%s", imagePullPolicy: IfNotPresent, args: [serve, "8080", web]}]
""" % PROBE
SECOND = """\
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: second}
spec:
  config: '{"cniVersion": "0.3.1", "type": "bridge", "bridge": "second0", "isGateway": true, "ipam": {"type": "host-local", "subnet": "10.99.0.0/24"}}'
---
apiVersion: v1
kind: Pod
metadata: {name: two, annotations: {k8s.v1.cni.cncf.io/networks: second}}
spec:
  terminationGracePeriodSeconds: 0
  nodeName: worker-1
  containers: [{name: two, image: "%s", imagePullPolicy: IfNotPresent, args: [serve, "8080", two]}]
""" % PROBE
ONE = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {k8s.v1.cni.cncf.io/networks: second}}
spec:
  terminationGracePeriodSeconds: 0
  nodeName: worker-1
  containers: [{name: one, image: "%s", imagePullPolicy: IfNotPresent, args: [serve, "8080", one]}]
""" % PROBE
ALL = ("kube-state-metrics", "prometheus", "multus")


class More(WithAddons):
    def metrics(self, path):
        return json.loads(self.kubectl("get", "--raw", f"/api/v1/namespaces/prometheus/services/http:prometheus:http/proxy/api/v1/{path}"))["data"]

    def pod(self, name):
        return json.loads(self.kubectl("get", "pod", name, "-o", "json"))


@pytest.fixture(scope="module")
def cluster():
    c = More("addons-more", SPEC)
    with c:
        c.write(*ALL)
        c.slipway("up")
        yield c


def test_what_they_promise_is_proven(cluster):
    answer = json.loads(cluster.slipway("verify", "-o", "json").stdout)
    found = [(c["check"], c["to"]) for c in answer["checks"] if c["check"] == "targets"]
    jobs = ("prometheus", "apiserver", "kubelet", "cadvisor", "node-exporter", "coredns", "kube-state-metrics")
    assert answer["works"] and found == [("targets", job) for job in jobs]


def test_status_shows_them(cluster):
    status, answer = cluster.status()
    rows = {a["name"]: a for a in answer["addons"]}
    assert status == 0 and set(rows) == set(ALL)
    assert all(a["works"] and a["ready"] == a["wanted"] and a["drift"] is None for a in rows.values()), rows
    assert (rows["prometheus"]["wanted"], rows["multus"]["wanted"]) == (3, 0)
    assert "nothing to do" in cluster.slipway("plan", "--exit-code").stdout


def test_metrics_of_everything(cluster):
    """Also of a pod that somebody annotated, which answers no metrics: it is found, and nothing else suffers."""
    cluster.kubectl("apply", "-f", "-", text=WEB)
    until("the annotated pod is found", lambda: any(t["labels"].get("pod") == "web" for t in cluster.metrics("targets?state=active")["activeTargets"]))
    targets = [t for t in cluster.metrics("targets?state=active")["activeTargets"] if t["labels"].get("pod") != "web"]
    assert all(t["health"] == "up" for t in targets), [t for t in targets if t["health"] != "up"]
    for query, least in (("count(node_load1)", 2), ("count(kube_node_info)", 2), ("sum(apiserver_request_total)", 100), ("sum(kubelet_running_pods)", 5),
                         ("count(container_memory_working_set_bytes)", 10), ("count(coredns_dns_requests_total)", 1)):
        until(query, lambda: (r := cluster.metrics(f"query?query={query}")["result"]) and float(r[0]["value"][1]) >= least)


def test_prometheus_may_not_read_secrets(cluster):
    who = ("--as=system:serviceaccount:prometheus:prometheus",)
    assert cluster.kubectl("auth", "can-i", "get", "nodes", "--subresource=metrics", *who).strip() == "yes"
    for what in (("list", "secrets"), ("list", "configmaps"), ("get", "nodes", "--subresource=proxy"), ("delete", "pods")):
        assert cluster.kubectl("auth", "can-i", *what, "-A", *who, check=False).stdout.strip() == "no", what


def test_a_pod_has_a_second_interface(cluster):
    until("the definition is known", lambda: cluster.kubectl("apply", "-f", "-", text=SECOND))
    until("the pod runs", lambda: cluster.pod("two")["status"]["phase"] == "Running")
    pod = cluster.pod("two")
    status = json.loads(pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"])
    assert [s.get("interface") for s in status] == ["eth0", "net1"] and status[0]["default"] and status[0]["ips"] == [pod["status"]["podIP"]]
    assert status[1]["ips"][0].startswith("10.99.0.")
    for ip in (pod["status"]["podIP"], status[1]["ips"][0]):
        assert cluster.on("worker-1", f"curl -sf http://{ip}:8080/").strip() == "two"


def test_multus_of_a_node_changes_only_that_nodes_pods(cluster):
    """With the certificate of another node it is refused."""
    api = "kubectl --kubeconfig /etc/kubernetes/multus.conf"
    own = cluster.on("control-1", f"{api} get pod web -o name").strip()
    assert own == "pod/web"
    patch = """'{"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status": "[]"}}}'"""
    said = cluster.on("control-1", f"{api} patch pod two --subresource=status --type=merge -p {patch} 2>&1 || :")
    assert "forbidden" in said, said
    raw = cluster.on("control-1", f"{api} get pod two -o json > /tmp/two.json && {api} replace --raw /api/v1/namespaces/default/pods/two/status -f /tmp/two.json 2>&1 || :")
    assert "multus of one node may change that node's pods and no others" in raw, raw


def test_what_is_taken_out_goes(cluster):
    cluster.write()
    plan = cluster.slipway("plan").stdout
    for addon in ALL:
        assert addon in plan, plan
    cluster.slipway("up")
    for what in (("-n", "prometheus", "deployment", "prometheus"),
                 ("-n", "prometheus", "daemonset", "node-exporter"), ("clusterrole", "slipway:prometheus"), ("clusterrole", "slipway:multus")):
        assert cluster.gone(*what), what
    assert "multus" not in cluster.on("worker-1", "cat /etc/cni/net.d/*.conflist; ls /opt/cni/bin /etc/kubernetes")
    cluster.kubectl("apply", "-f", "-", text=ONE.replace("NAME", "one"))
    until("pods start", lambda: cluster.pod("one")["status"]["phase"] == "Running")
    assert "k8s.v1.cni.cncf.io/network-status" not in cluster.pod("one")["metadata"]["annotations"]
    cluster.kubectl("delete", "pod", "two", "one")
    assert json.loads(cluster.slipway("verify", "-o", "json").stdout)["works"]


def test_they_come_back(cluster):
    cluster.write("multus")
    cluster.slipway("up")
    cluster.kubectl("apply", "-f", "-", text=ONE.replace("NAME", "again"))
    until("the pod runs", lambda: cluster.pod("again")["status"]["phase"] == "Running")
    assert '"net1"' in cluster.pod("again")["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"]
    assert cluster.status()[0] == 0
