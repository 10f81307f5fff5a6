"""A cloud's controller manager, as upstream has it, against a real API server: its objects, its flags and its service account are those of slipway's
addon. Nodes are objects without a kubelet, and no pods are run."""
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from upstream import upstream

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "judges"))
from test_schema import Api, free_port  # noqa: E402

TAINT = "node.cloudprovider.kubernetes.io/uninitialized"


class WithRules(Api):
    authorization = "Node,RBAC"


def until(what, done, child, log, seconds=900):
    end = time.monotonic() + seconds
    while not (got := done()):
        assert child.poll() is None, f"the controller ended:\n{log.read_text(errors='replace')[-4000:]}"
        assert time.monotonic() < end, f"{what}: not within {seconds} s\n{log.read_text(errors='replace')[-4000:]}"
        time.sleep(0.5)
    return got


@pytest.fixture
def api(tmp_path):
    class Here:
        upstream = staticmethod(upstream)
    (tmp_path / "api").mkdir()
    a = WithRules(Here, tmp_path / "api")
    try:
        a.up()
        yield a
    finally:
        a.down()


def get(api, path):
    status, text = api.request("GET", path)
    return json.loads(text) if status == 200 else None


def make(api, *objects):
    r = api.kubectl("apply", "--server-side", "-f", "-", text="\n---\n".join(json.dumps(o) for o in objects))
    assert r.returncode == 0, r.stderr


def node(api, name, machine):
    """As its kubelet registers it."""
    make(api, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"alpha.kubernetes.io/provided-node-ip": machine["ip"]}},
               "spec": {"providerID": machine["providerID"], "taints": [{"key": TAINT, "value": "true", "effect": "NoSchedule"}]}})


def ready(api, name, status):
    """What the kubelet says of its node."""
    said = [{"type": "Ready", "status": status, "reason": "x", "message": "x", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    r = api.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"conditions": said}}))
    assert r.returncode == 0, r.stderr


def taints(api, name):
    return [t["key"] for t in get(api, f"/api/v1/nodes/{name}")["spec"].get("taints", [])]


def initialised(api, name):
    return get(api, f"/api/v1/nodes/{name}") if TAINT not in taints(api, name) else None


def service(api, name, **annotations):
    make(api, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default", "annotations": annotations},
               "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}})


def served(api, name):
    return get(api, f"/api/v1/namespaces/default/services/{name}")["status"].get("loadBalancer", {}).get("ingress")


def run(api, addon, program, conf, directory, env=()):
    """(process, log) of the program with the DaemonSet's own flags, as its own service account. `slipway addons` knows no prefix: conf has the cluster's name."""
    objects = list(yaml.safe_load_all(addon))
    make(api, *[o for o in objects if o["kind"] not in ("DaemonSet", "Secret")])
    daemon = next(o for o in objects if o["kind"] == "DaemonSet")
    account, container = daemon["metadata"]["name"], daemon["spec"]["template"]["spec"]["containers"][0]
    assert container["command"][0] == f"/bin/{program}"
    (directory / "cloud.conf").write_text(conf["config"])
    flags = {"--cloud-config=/etc/cloud/cloud.conf": f"--cloud-config={directory}/cloud.conf", f"--cluster-name={conf['name'].rpartition('-')[0]}": f"--cluster-name={conf['name']}"}
    assert set(flags) <= set(container["command"])
    status, text = api.request("POST", f"/api/v1/namespaces/kube-system/serviceaccounts/{account}/token", json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))
    assert status == 201, text
    (directory / "kubeconfig").write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                                                      "clusters": [{"name": "x", "cluster": {"server": f"https://127.0.0.1:{api.port}", "insecure-skip-tls-verify": True}}],
                                                      "users": [{"name": "x", "user": {"token": json.loads(text)["status"]["token"]}}]}))
    log = directory / "controller.log"
    with open(log, "wb") as out:
        child = subprocess.Popen([upstream(program), *[flags.get(f, f) for f in container["command"][1:]], f"--kubeconfig={directory}/kubeconfig", f"--secure-port={free_port()}",
                                  f"--cert-dir={directory}/certs", "--v=2"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={"PATH": "/usr/bin:/bin", "HOME": str(directory), **dict(env)})
    return child, log


def unrefused(child, log):
    """It ends, and was never refused by the API: its permissions have all that it needs."""
    child.terminate()
    child.wait()
    said = log.read_text(errors="replace")
    assert "forbidden" not in said.lower(), [line for line in said.splitlines() if "forbidden" in line.lower()][:5]


def ended(child):
    if child and child.poll() is None:
        child.kill()
        child.wait()
