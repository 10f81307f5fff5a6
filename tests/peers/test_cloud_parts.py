"""A cluster whose file asks for the cloud's controller and CSI driver, on machines that boot: both in pods, as slipway installs them, at the OpenStack on
paper. Nodes are initialised; a Service of type LoadBalancer gets an address, at which it answers; a claim becomes a volume, which is formatted, mounted,
detached, attached again and enlarged; and `down` takes all of it.

What is not upstream's here: a volume is a file behind a loop device, because machines are containers, and the test makes its node in /dev as udev would;
a balancer is a relay; the metadata service is reached through a socket on the machine itself, because the kernel knows no file system of a config drive.
node-driver-registrar and livenessprobe are the tests' own (sidecar/), because their modules are not served. The driver's image is made here, of its
program and of this computer's programs that format and mount."""
import fcntl
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from booting import Booting, OnCloud
from harness import BALANCED, HERE, NEWEST, SHARED_DISK, until
from paper_volumes import Volumes
from test_openstack_cluster import FILE, BootingPaper, OpenStack
from upstream import IMAGES, upstream

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
NETWORK, GATEWAY = "10.197.0.0/24", "10.197.0.1"
DRIVER = IMAGES["cinder-csi-plugin"]
TOOLS = ["blkid", "blockdev", "cat", "df", "dumpe2fs", "findmnt", "fsck", "fsck.ext4", "mkfs.ext4", "mount", "resize2fs", "sh", "sleep", "sync", "tune2fs", "umount"]
UNITS = {"metadata.socket": "[Socket]\nExecStartPre=/sbin/ip address replace 169.254.169.254/32 dev lo scope host\nListenStream=169.254.169.254:80\nFreeBind=yes\n",
         "metadata.service": "[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd {}:{}\n", "sockets.target.d/metadata.conf": "[Unit]\nWants=metadata.socket\n"}
WEB = BALANCED + """\
---
apiVersion: v1
kind: Service
metadata: {name: other}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
DATA = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: data}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: data}}
  template:
    metadata: {labels: {app: data}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: data
        image: "%s"
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "echo $HOSTNAME >>/data/said && sync && exec sleep 1000000"]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
""" % DRIVER

LOOP_CONFIGURE, LOOP_SET_CAPACITY, LOOP_CTL_GET_FREE, LO_FLAGS_AUTOCLEAR = 0x4C0A, 0x4C07, 0x4C82, 4


def loop_device(path):
    """(number, descriptor) of a loop device that goes with its last user: this process, or a machine that has mounted it."""
    while True:
        with open("/dev/loop-control") as control:
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
        device = os.open(f"/dev/loop{number}", os.O_RDWR)
        with open(path, "r+b") as file:
            try:
                fcntl.ioctl(device, LOOP_CONFIGURE, struct.pack("<2I5Q4I64s64s32s2Q8Q", file.fileno(), *[0] * 9, LO_FLAGS_AUTOCLEAR, b"", b"", b"", *[0] * 10))
                return number, device
            except BlockingIOError:
                os.close(device)
            except OSError as e:
                os.close(device)
                if e.errno != 16:  # EBUSY: somebody else took it
                    raise


class Disks:
    """Of volumes: a file of this computer, which a machine sees under the name that udev gives to a disk of KVM's."""

    def __init__(self, booting):
        self.booting, self.at = booting, {}  # {volume: (server, its letter, descriptor)}

    def file(self, volume):
        return self.booting.dir / f"volume-{volume}"

    def attach(self, volume, server):
        id = volume["id"]
        path = self.file(id)
        with open(path, "ab") as f:
            f.truncate(volume["size"] << 30)
        number, device = loop_device(path)
        letter = next(c for c in "bcdefghij" if (server, c) not in [(s, c) for s, c, _ in self.at.values()])
        self.at[id] = server, letter, device
        self.booting.on_machine(server, "sh", "-c", f"mkdir -p /dev/disk/by-id && mknod -m 660 /dev/vd{letter} b 7 {number} && ln -sfn ../../vd{letter} /dev/disk/by-id/virtio-{id[:20]}")

    def grow(self, volume):
        os.truncate(self.file(volume["id"]), volume["size"] << 30)
        if volume["id"] in self.at:
            fcntl.ioctl(self.at[volume["id"]][2], LOOP_SET_CAPACITY, 0)

    def detach(self, volume):
        server, letter, device = self.at.pop(volume["id"])
        os.close(device)
        if server in self.booting.running():
            self.booting.on_machine(server, "rm", "-f", f"/dev/vd{letter}", f"/dev/disk/by-id/virtio-{volume['id'][:20]}")

    def remove(self, id):
        self.file(id).unlink(missing_ok=True)


class Parts(Volumes, BootingPaper):
    """On the bridge of the machines, where their pods reach it."""
    host = GATEWAY

    def __init__(self, booting):
        super().__init__(booting)
        self.disks = Disks(booting)

    def create(self, kind, body):
        """A floating IP of a load balancer is a relay to its members' NodePorts."""
        new = super().create(kind, body)
        for b in self.things["loadbalancers"].values() if kind == "floatingips" else []:
            if b["vip_port_id"] == new["port_id"]:
                self.booting.balance(b["id"], new["floating_ip_address"], b["made"]["listeners"][0]["protocol_port"],
                                     lambda b=b: [(m["address"], m["protocol_port"]) for p in b["made"]["pools"] for m in p["members"]])
        return new

    def at_address(self, ip):
        return next((self.things["servers"][p["device_id"]] for p in self.things["ports"].values() if p["fixed_ips"][0]["ip_address"] == ip and p["device_id"] in self.things["servers"]), None)


class Metadata(BaseHTTPRequestHandler):
    """Who asks is known by its address."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server.paper.at_address(self.client_address[0])
        found = server and self.path.endswith("/meta_data.json")
        text = json.dumps({"uuid": server["id"], "name": server["name"], "availability_zone": server["OS-EXT-AZ:availability_zone"]}).encode() if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


# ---- images ----

def with_libraries(paths):
    """Programs of this computer, and what they are linked with."""
    found = {}
    for path in paths:
        found[path] = path
        linked = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        found.update({p: p for p in re.findall(r"(/\S+) \(0x", linked)})
    return [f"{os.path.realpath(k)}={v}" for k, v in found.items()]


def packed(bundle, name, *files):
    """An image in the bundle, from which slipway takes it."""
    out = bundle / "image.tar"
    subprocess.run([HERE / "image.sh", name, out, *files], check=True)
    digest, size = hashlib.sha256(out.read_bytes()).hexdigest(), out.stat().st_size
    out.rename(bundle / "blobs" / "sha256" / digest)
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    return {f"{name}/{arch}": {"sha256": digest, "size": size, "source": "bundle"}}


def bundled(directory):
    """Images that are not built from Go modules."""
    bundle, sidecar = directory / "bundle", directory / "sidecar"
    (bundle / "blobs" / "sha256").mkdir(parents=True)
    subprocess.run(["go", "build", "-o", sidecar, "."], cwd=Path(__file__).parent / "sidecar", env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -trimpath"}, check=True)
    tools = [shutil.which(t, path="/usr/sbin:/usr/bin:/sbin:/bin") for t in TOOLS]
    assert all(tools), tools
    items = packed(bundle, DRIVER, f"{upstream('cinder-csi-plugin')}=/bin/cinder-csi-plugin", *with_libraries(tools))
    for name in ("csi-node-driver-registrar", "livenessprobe"):
        items |= packed(bundle, IMAGES[name], f"{sidecar}=/{name}")
    (bundle / "bundle.lock").write_text(json.dumps({"version": 1, "items": items}))


# ---- the cluster ----

@pytest.fixture
def cluster():
    with Booting("openstack-parts", NETWORK, "ConfigDrive") as booting:
        booting.carry(f"{GATEWAY}/24")
        cloud = OpenStack(booting, Parts)
        http = ThreadingHTTPServer((GATEWAY, 0), Metadata)
        http.daemon_threads, http.paper = True, cloud.paper
        threading.Thread(target=http.serve_forever, args=[0.05], daemon=True).start()
        booting.units = {name: text.format(GATEWAY, http.server_port) for name, text in UNITS.items()}
        bundled(booting.dir)
        file = FILE.format(NEWEST, NETWORK, 1, 1, SHARED_DISK + "  artifacts: {bundle: ./bundle}\n")
        yield OnCloud(booting, cloud, file.replace("cloud: paper", "cloud: {name: paper, controller: true, csi: true}"))
        http.shutdown()
        http.server_close()
        cloud.paper.close()


def got(c, *words):
    return json.loads(c.kubectl("get", *words, "-o", "json"))


def applied(c, text):
    (c.dir / "objects.yaml").write_text(text)
    c.kubectl("apply", "-f", "objects.yaml")


def address(c, name):
    return next((i["ip"] for i in got(c, "service", name)["status"].get("loadBalancer", {}).get("ingress", [])), None)


def fetched(url):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as reply:
            return reply.read().decode()
    except OSError:
        return None


def pod(c, app):
    """Its name, when it is ready and the only one."""
    found = got(c, "pods", "-l", f"app={app}")["items"]
    ready = [p["metadata"]["name"] for p in found if any(s["type"] == "Ready" and s["status"] == "True" for s in p["status"].get("conditions", []))]
    return ready[0] if len(found) == 1 and ready else None


def may_resize():
    """CAP_SYS_RESOURCE, which ext4 asks for when it is mounted."""
    return bool(int(re.search(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())[1], 16) >> 24 & 1)


def test_parts(cluster):
    c, things = cluster, cluster.cloud.paper.things
    c.up()
    c.is_whole()
    for node in got(c, "nodes")["items"]:
        assert "node.cloudprovider.kubernetes.io/uninitialized" not in [t["key"] for t in node["spec"].get("taints", [])]
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m1.k8s"  # the controller's word
    drivers = lambda: {n["metadata"]["name"]: [(d["name"], d["nodeID"]) for d in n["spec"]["drivers"] or []] for n in got(c, "csinodes")["items"]}  # noqa: E731
    until("the kubelets know the driver", lambda: drivers() == {name: [("cinder.csi.openstack.org", s["id"])] for name, s in c.cloud.servers().items()})

    # a Service has an address, and answers at it; one that is deleted has no load balancer
    applied(c, WEB)
    at = {name: until(f"Service {name} has an address", lambda: address(c, name)) for name in ("web", "other")}
    for ip in at.values():
        until(f"it answers at {ip}", lambda: fetched(f"http://{ip}/"))
    c.kubectl("delete", "service", "other")
    names = {b["name"] for b in things["loadbalancers"].values()}
    assert names == {f"boats-{c.prefix()}", f"kube_service_boats-{c.prefix()}_default_web"} and [f["floating_ip_address"] for f in things["floatingips"].values()] == [at["web"]]
    assert fetched(f"http://{at['web']}/")

    # a claim is a volume with a file system, which keeps what its pods write
    applied(c, DATA)
    first = until("the pod has its volume", lambda: pod(c, "data"))
    volume, = things["volumes"].values()
    worker = c.cloud.servers()["worker-1"]["id"]
    assert [a["server_id"] for a in volume["attachments"]] == [worker] and volume["metadata"]["cinder.csi.openstack.org/cluster"] == f"boats-{c.prefix()}"
    assert " /data ext4 " in c.kubectl("exec", first, "--", "cat", "/proc/mounts")
    c.kubectl("delete", "pod", first)
    second = until("another pod has it", lambda: pod(c, "data"))
    assert c.kubectl("exec", second, "--", "cat", "/data/said").split() == [first, second]

    # without a pod it is at no server, and with one again
    c.kubectl("scale", "deployment", "data", "--replicas=0")
    until("it is detached", lambda: not volume["attachments"] and volume["status"] == "available")
    c.kubectl("scale", "deployment", "data", "--replicas=1")
    third = until("the pod has it again", lambda: pod(c, "data"))
    assert c.kubectl("exec", third, "--", "cat", "/data/said").split() == [first, second, third]

    # it is enlarged under its pod, and so is the file system, where the kernel lets this computer's root do that
    c.kubectl("patch", "pvc", "data", "--type=merge", "-p", json.dumps({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}))
    until("the volume has grown", lambda: volume["size"] == 2)
    if may_resize():
        until("the file system has grown", lambda: int(c.kubectl("exec", third, "--", "df", "-k", "/data").split()[-5]) > 1500000)
    else:
        until("the driver has tried to", lambda: "Permission denied to resize filesystem" in c.kubectl("get", "pvc", "data", "-o", "json"))

    c.slipway("verify")
    c.slipway("plan", "--exit-code")
    assert not c.booting.failed, c.booting.failed
    # the volume that a pod uses, the load balancer of the Service, and everything else
    c.down()
    assert not list(c.dir.glob("volume-*"))


def test_a_server_that_is_gone(cluster):
    """The controller deletes its Node; `up` makes both again, and the Service answers from there."""
    c = cluster
    c.up()
    applied(c, WEB)
    ip = until("the Service has an address", lambda: address(c, "web"))
    until(f"it answers at {ip}", lambda: fetched(f"http://{ip}/"))
    old = c.cloud.servers()["worker-1"]
    c.cloud.delete("worker-1")
    until("its Node is deleted", lambda: [n["metadata"]["name"] for n in got(c, "nodes")["items"]] == ["control-1"])
    c.up()
    c.is_whole()
    new = c.cloud.servers()["worker-1"]
    assert new["address"] == old["address"] and new["id"] != old["id"]
    until(f"it answers at {ip} again", lambda: fetched(f"http://{ip}/"))
    c.down()
