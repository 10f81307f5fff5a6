"""Cinder's CSI driver and its sidecars, as upstream has them, with slipway's flags, permissions, cloud.conf and application credential: against a real API
server and the OpenStack on paper. A claim becomes a volume in the zone of its pod, is attached to the server of the pod's node, enlarged, detached and
deleted. There are no kubelets here, so nothing is mounted; that is in test_cloud_parts.py. Of the sidecars, node-driver-registrar and livenessprobe
do not run: their modules are not served."""
import json
import subprocess
from pathlib import Path

import pytest
import yaml
from controllers import api, free_port, get, make, until  # noqa: F401
from paper_volumes import Volumes
from test_controller import Boats as WithController
from test_credential import WITH
from test_paper import MARK, drive
from upstream import upstream

pytestmark = pytest.mark.soak
DRIVER, TOPOLOGY = "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
CONTROLLERS = ["persistentvolume-binder-controller", "persistentvolume-attach-detach-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller"]
PROGRAMS = {"driver": "cinder-csi-plugin", "provisioner": "csi-provisioner", "attacher": "csi-attacher", "resizer": "csi-resizer"}


class Boats(WithController):
    def __init__(self, directory):
        self.dir, self.cloud = Path(directory), Volumes()
        self.write(WITH.replace("OPTIONS", "userData: cloud-init"))


def kubeconfig(api, token):  # noqa: F811
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                       "clusters": [{"name": "x", "cluster": {"server": f"https://127.0.0.1:{api.port}", "insecure-skip-tls-verify": True}}],
                       "users": [{"name": "x", "user": {"token": token}}]})


class Children:
    """Processes with a log each; poll() and read_text() as controllers.until asks them."""

    def __init__(self, directory):
        self.dir, self.all = directory, {}

    def start(self, name, program, *args, **env):
        log = self.dir / f"{name}.log"
        with open(log, "wb") as out:
            self.all[name] = subprocess.Popen([upstream(program), *args], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={"PATH": "/usr/bin:/bin", "HOME": str(self.dir), **env})

    def poll(self):
        return next((c.returncode for c in self.all.values() if c.poll() is not None), None)

    def text(self, name):
        return (self.dir / f"{name}.log").read_text(errors="replace")

    def read_text(self, **_):
        return "\n".join(f"--- {name}\n{self.text(name)[-1500:]}" for name in self.all)

    def end(self):
        for c in self.all.values():
            c.terminate()
        for c in self.all.values():
            c.wait()


@pytest.fixture
def children(tmp_path):
    c = Children(tmp_path)
    yield c
    c.end()


def of_addon(api, addon):  # noqa: F811
    """(its Deployment, its objects), of which the API has all but the pods and the Secret."""
    objects = [o for o in yaml.safe_load_all(addon) if o]
    make(api, *[o for o in objects if o["kind"] not in ("DaemonSet", "Deployment", "Secret")])
    return next(o for o in objects if o["kind"] == "Deployment"), objects


def start(api, children, deployment, conf, directory):  # noqa: F811
    """The containers of the Deployment, as its service account."""
    spec = deployment["spec"]["template"]["spec"]
    status, text = api.request("POST", f"/api/v1/namespaces/kube-system/serviceaccounts/{spec['serviceAccountName']}/token",
                               json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))
    assert status == 201, text
    (directory / "kubeconfig").write_text(kubeconfig(api, json.loads(text)["status"]["token"]))
    (directory / "cloud.conf").write_text(conf["config"])
    socket, name = f"{directory}/csi.sock", conf["name"]
    here = {"--endpoint=unix:///csi/csi.sock": f"--endpoint=unix://{socket}", "--csi-address=/csi/csi.sock": f"--csi-address={socket}",
            "--cloud-config=/etc/cloud/cloud.conf": f"--cloud-config={directory}/cloud.conf", f"--cluster={name.rpartition('-')[0]}": f"--cluster={name}"}
    said = {c["name"]: c.get("command", [""])[1:] + c.get("args", []) for c in spec["containers"]}
    assert set(said) == {*PROGRAMS, "liveness"} and set(here) <= {flag for flags in said.values() for flag in flags}
    for container, program in PROGRAMS.items():
        more = [] if container == "driver" else [f"--kubeconfig={directory}/kubeconfig", "--v=2"]
        children.start(container, program, *[here.get(f, f) for f in said[container]], *more, POD_NAMESPACE="kube-system")


def claim_and_pod(name, node):
    """A claim that the scheduler has given a node, and a pod there."""
    return [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default", "annotations": {"volume.kubernetes.io/selected-node": node}},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
             "spec": {"nodeName": node, "containers": [{"name": "x", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
                      "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}}]


def of_kubelet(api, name, machine, zone):  # noqa: F811
    """What a kubelet says of its node and of the driver on it."""
    id = machine["providerID"].rpartition("/")[2]
    make(api, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {TOPOLOGY: zone}, "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
               "spec": {"providerID": machine["providerID"]}})
    uid = get(api, f"/api/v1/nodes/{name}")["metadata"]["uid"]
    make(api, {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]},
               "spec": {"drivers": [{"name": DRIVER, "nodeID": id, "topologyKeys": [TOPOLOGY]}]}})
    return id


def test_driver(api, children, tmp_path):  # noqa: F811
    boats = Boats(tmp_path / "boats")
    cloud, volumes = boats.cloud, boats.cloud.things["volumes"]
    try:
        boats.must("up")
        machines = boats.listed()
        servers = {name: of_kubelet(api, name, machines[name], zone) for name, zone in (("worker-1", "nova"), ("worker-2", "other"))}
        deployment, _ = of_addon(api, drive(boats, "addons", "cinder-csi"))
        start(api, children, deployment, boats.conf(), tmp_path)
        (tmp_path / "admin").write_text(kubeconfig(api, api.token))
        children.start("manager", "kube-controller-manager", f"--kubeconfig={tmp_path}/admin", "--leader-elect=false", f"--cert-dir={tmp_path}/certs", f"--secure-port={free_port()}",
                       f"--controllers={','.join(CONTROLLERS)}", f"--flex-volume-plugin-dir={tmp_path}/flex")

        def claim(name):
            return get(api, f"/api/v1/namespaces/default/persistentvolumeclaims/{name}")

        def volume_of(name):
            found = [v for v in volumes.values() if v["metadata"].get("csi.storage.k8s.io/pvc/name") == name]
            assert len(found) < 2
            return found[0] if found else None

        # a claim of the default class becomes a volume, in the zone of its pod, with the cluster's full name, and is at the server of the node
        make(api, *claim_and_pod("data", "worker-2"), *claim_and_pod("left", "worker-1"))
        for name in ("data", "left"):
            until(f"claim {name} is bound", lambda: claim(name)["status"].get("phase") == "Bound", children, children)
            until(f"the volume of {name} is attached", lambda: volume_of(name)["attachments"], children, children)
        volume = volume_of("data")
        assert volume["availability_zone"] == "other" and volume["size"] == 1 and volume["metadata"]["cinder.csi.openstack.org/cluster"] == "boats-ab12c"
        assert [a["server_id"] for a in volume["attachments"]] == [servers["worker-2"]]
        attached = lambda: {a["spec"]["nodeName"]: a.get("status", {}).get("attached") for a in get(api, "/apis/storage.k8s.io/v1/volumeattachments")["items"]}  # noqa: E731
        until("the API knows it", lambda: attached() == {"worker-1": True, "worker-2": True}, children, children)

        # it is enlarged while it is attached
        r = api.kubectl("patch", "pvc", "data", "--type=merge", "-p", json.dumps({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}))
        assert r.returncode == 0, r.stderr
        until("it has grown", lambda: volume_of("data")["size"] == 3, children, children)
        until("the API knows it", lambda: get(api, f"/api/v1/persistentvolumes/{claim('data')['spec']['volumeName']}")["spec"]["capacity"]["storage"] == "3Gi", children, children)

        # without its pod it is detached, and goes with its claim
        assert api.kubectl("delete", "pod", "data", "--grace-period=0", "--force").returncode == 0
        assert api.kubectl("annotate", "node", "worker-2", "x=no-volume-is-in-use").returncode == 0  # what its kubelet says is read when it says something
        until("it is detached", lambda: not volume_of("data")["attachments"], children, children)
        assert api.kubectl("delete", "pvc", "data", "--wait=false").returncode == 0
        until("it is deleted", lambda: not volume_of("data"), children, children)
        assert [v["metadata"]["csi.storage.k8s.io/pvc/name"] for v in volumes.values()] == ["left"]

        children.end()
        for name in PROGRAMS:
            assert "forbidden" not in children.text(name).lower(), [line for line in children.text(name).splitlines() if "forbidden" in line.lower()][:5]

        # a volume is never deleted by its name: what the API has not deleted stays
        boats.must("down")
        assert not cloud.ours(MARK) and not boats.all() and len(volumes) == 1
    finally:
        cloud.close()
