"""services.addons on one small cluster: metrics-server measures, local-path keeps data, kube-state-metrics counts, one that is a chart comes from its repository, and each goes when it is taken out of the file."""
import json
import os
import subprocess

import charts
import pytest
from harness import NEWEST, SLIPWAY, WithAddons, programs, until

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.170.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
# The nodes have no image with a shell: the pod takes the node's own.
APP = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: default}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: {runAsUser: 1234, runAsGroup: 1234}
      containers:
      - name: app
        image: "slipway.dev/probe:0.1.0"
        imagePullPolicy: IfNotPresent
        command: [/bin/sh, -c, "mkdir -p -m 0700 /data/own; hostname >> /data/own/starts; ln -sfn /usr/bin /data/own/link; while :; do /bin/sleep 60; done"]
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: bin, mountPath: /bin, readOnly: true}
        - {name: usr, mountPath: /usr, readOnly: true}
        - {name: lib, mountPath: /lib, readOnly: true}
        - {name: lib64, mountPath: /lib64, readOnly: true}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: bin, hostPath: {path: /usr/bin}}
      - {name: usr, hostPath: {path: /usr}}
      - {name: lib, hostPath: {path: /usr/lib}}
      - {name: lib64, hostPath: {path: /usr/lib64}}
"""
VERSIONS = {row["name"]: row["version"] for row in json.loads(subprocess.run([SLIPWAY, "addons", "-o", "json"], cwd="/", capture_output=True, check=True).stdout)}


class Addons(WithAddons):
    def write(self, *addons):
        self.text = self.text.split("  services:")[0] + f"""\
  services:
    addons: [{", ".join(addons)}]
    repositories: [{{name: metallb, url: "{self.repository.url}", username: me, passwordFile: password}}]
"""
        (self.dir / "cluster.yaml").write_text(self.text)

    def pods(self, label):
        found = json.loads(self.kubectl("-n", "default", "get", "pods", "-l", label, "-o", "json"))["items"]
        return [p for p in found if not p["metadata"].get("deletionTimestamp") and p["status"]["phase"] == "Running"]


@pytest.fixture(scope="module")
def cluster():
    c = Addons("addons", SPEC)
    c.repository = charts.Repository("me", "secret")
    c.repository.add("metallb", VERSIONS["metallb"], deployment=charts.DEPLOYMENT, map=charts.MAP)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{programs('helm')}:{before}"
    with c:
        (c.dir / "password").write_text("secret\n")
        (c.dir / "password").chmod(0o600)
        c.write("metrics-server", "local-path", "kube-state-metrics")
        c.slipway("up")
        yield c
    os.environ["PATH"] = before
    c.repository.close()


def test_metrics_of_both_nodes(cluster):
    rows = until("both nodes are measured", lambda: len(cluster.kubectl("top", "nodes", "--no-headers").splitlines()) == 2 and cluster.kubectl("top", "nodes", "--no-headers"))
    assert {line.split()[0] for line in rows.splitlines()} == {"control-1", "worker-1"} and "<unknown>" not in rows
    assert "metrics-server" in cluster.kubectl("-n", "kube-system", "top", "pods", "--no-headers")
    args = json.loads(cluster.kubectl("-n", "kube-system", "get", "deployment", "metrics-server", "-o", "json"))["spec"]["template"]["spec"]["containers"][0]["args"]
    assert not any("insecure" in a for a in args) and any(a.startswith("--kubelet-certificate-authority=") for a in args)


def test_verify_proves_what_they_promise(cluster):
    """Twice: the second run waits until the volume of the first is deleted."""
    for _ in range(2):
        answer = json.loads(cluster.slipway("verify", "-o", "json").stdout)
        found = {(c["check"], c["from"]) for c in answer["checks"] if c["works"]}
        assert answer["works"] and {("metrics", "control-1"), ("metrics", "worker-1"), ("storage", "cluster")} <= found, answer
    until("no volume is left", lambda: not json.loads(cluster.kubectl("get", "pv", "-o", "json"))["items"])


def test_nothing_is_left_to_do(cluster):
    assert "nothing to do" in cluster.slipway("plan", "--exit-code").stdout
    found = json.loads(cluster.slipway("addons", "-o", "json").stdout)
    assert {a["name"] for a in found if a["enabled"]} == {"metrics-server", "local-path", "kube-state-metrics"}


def test_the_state_of_objects_is_served(cluster):
    pod = json.loads(cluster.kubectl("-n", "kube-system", "get", "pods", "-l", "app.kubernetes.io/name=kube-state-metrics", "-o", "json"))["items"][0]
    text = cluster.on("control-1", f"curl -s --max-time 20 http://{pod['status']['podIP']}:8080/metrics")
    assert 'kube_node_info{node="worker-1"' in text and "kube_secret_info" not in text
    assert 'kube_deployment_status_replicas_available{namespace="kube-system",deployment="metrics-server"} 1' in text
    log = cluster.kubectl("-n", "kube-system", "logs", pod["metadata"]["name"])
    assert "forbidden" not in log, log


def starts(cluster):
    pod = cluster.pods("app=app")[0]["metadata"]["name"]
    return cluster.kubectl("exec", pod, "--", "/bin/cat", "/data/own/starts").split()


def test_a_volume_keeps_its_data_and_goes_with_its_claim(cluster):
    cluster.kubectl("apply", "-f", "-", text=APP)
    first = until("the pod runs", lambda: cluster.pods("app=app"))[0]
    volume = cluster.kubectl("get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
    until("it has written", lambda: len(starts(cluster)) == 1)
    node, where = first["spec"]["nodeName"], f"/opt/local-path-provisioner/{volume}_default_data"
    cluster.kubectl("delete", "pod", first["metadata"]["name"])
    until("the next pod finds what the first wrote", lambda: cluster.pods("app=app") and len(starts(cluster)) == 2)
    assert starts(cluster)[0] == first["metadata"]["name"] and cluster.on(node, f"stat -c %a {where}") == "777"
    cluster.kubectl("delete", "deployment", "app")
    cluster.kubectl("delete", "pvc", "data")
    until("the volume is deleted", lambda: cluster.gone("pv", volume))
    assert cluster.on(node, f"ls -a /opt/local-path-provisioner").split() == [".", ".."]
    assert cluster.on(node, "ls /usr/bin/env") == "/usr/bin/env"  # a link in a volume is not followed


def test_another_text_of_the_program_is_a_change(cluster):
    """As a newer slipway would have it: the inventory has the digest of what was applied."""
    name = ("-n", "kube-system", "configmap", "slipway-services")
    found = json.loads(json.loads(cluster.kubectl("get", *name, "-o", "json"))["data"]["inventory"])
    assert set(found["addons"]) == {"metrics-server", "local-path", "kube-state-metrics"}
    found["addons"]["metrics-server"]["digest"] = "0" * 64
    cluster.kubectl("patch", *name, "--type=merge", "-p", json.dumps({"data": {"inventory": json.dumps(found)}}))
    plan = cluster.slipway("plan", "--exit-code", ok=9).stdout
    assert f"addon metrics-server  change {VERSIONS['metrics-server']}" in plan and "local-path" not in plan
    cluster.slipway("up")
    assert "nothing to do" in cluster.slipway("plan").stdout


def test_an_addon_that_is_a_chart_is_a_release(cluster):
    cluster.write("metrics-server", "local-path", "kube-state-metrics", "{name: metallb, values: {color: blue}}")
    plan = cluster.slipway("plan", "--exit-code", ok=9).stdout
    assert f"chart metallb-system/metallb  install metallb-{VERSIONS['metallb']}" in plan and "namespace metallb-system  install" in plan
    cluster.slipway("up")
    assert cluster.kubectl("-n", "metallb-system", "get", "configmap", "metallb-map", "-o", "jsonpath={.data.color}") == "blue"
    assert cluster.kubectl("get", "namespace", "metallb-system", "-o", "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}") == "privileged"
    status, answer = cluster.status()
    assert status == 0 and [(r["name"], r["chart"], r["state"], r["ready"]) for r in answer["releases"]] == [("metallb", f"metallb-{VERSIONS['metallb']}", "deployed", True)]
    assert f"chart metallb/metallb@{VERSIONS['metallb']}" in json.loads((cluster.dir / "bundle.lock").read_text())["items"]
    assert "nothing to do" in cluster.slipway("plan").stdout


def test_what_is_taken_out_is_removed(cluster):
    cluster.write("local-path")
    plan = cluster.slipway("plan", "--exit-code", ok=9).stdout
    assert "addon metrics-server  remove" in plan and "APIService v1beta1.metrics.k8s.io" in plan and "chart metallb-system/metallb  remove" in plan and "local-path" not in plan
    assert "addon kube-state-metrics  remove" in plan
    cluster.slipway("up", "--yes")
    assert cluster.gone("apiservice", "v1beta1.metrics.k8s.io") and cluster.gone("-n", "kube-system", "deployment", "metrics-server")
    assert cluster.gone("-n", "metallb-system", "configmap", "metallb-map") and not cluster.gone("storageclass", "local-path")
    cluster.write()
    plan = cluster.slipway("plan", "--exit-code", ok=9).stdout
    assert "addon local-path  remove: volumes and their data stay" in plan and "stays    Namespace local-path-storage" in plan
    cluster.slipway("up", "--yes")
    assert cluster.gone("storageclass", "local-path") and cluster.gone("-n", "local-path-storage", "deployment", "local-path-provisioner")
    assert "nothing to do" in cluster.slipway("plan").stdout and cluster.status()[0] == 0
