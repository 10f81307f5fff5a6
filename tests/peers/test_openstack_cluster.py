"""Kubernetes on provider openstack, on machines that boot: the OpenStack on paper with a machine for every server (booting.py), which has the address of its
port and a config drive with the server's user-data, and Octavia's listener relayed to its members."""
import base64
import json
import os
import time

import pytest
from booting import Booting, OnCloud, long_life, short_life
from harness import CACHE, NEWEST, PREVIOUS, SHARED_DISK
from paper_openstack import Paper

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("OS_") and not k.lower().endswith("_proxy")}
NETWORK = "10.191.0.0/24"
FILE = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: boats}}
spec:
  kubernetes: {}
  provider:
    openstack: {{cloud: paper, image: debian-12, externalNetwork: public, network: {{cidr: {}}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: {}, flavor: m1.k8s}}
    - {{name: worker, count: {}, flavor: m1.k8s, zones: [nova, other]}}
{}"""


class BootingPaper(Paper):
    def __init__(self, booting):
        self.booting = booting
        super().__init__()

    def server(self, body, late=False):
        made = super().server(body, late)
        id = made["server"]["id"]
        port = next(p for p in self.things["ports"].values() if p["device_id"] == id)
        fixed = port["fixed_ips"][0]
        self.things["servers"][id]["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        mac = "fa:16:3e:" + ":".join(port["id"][i:i + 2] for i in (0, 2, 4))
        self.booting.boot(id, fixed["ip_address"], self.things["subnets"][fixed["subnet_id"]]["cidr"], mac, base64.b64decode(body["server"]["user_data"]))
        return made

    def delete(self, kind, id):
        super().delete(kind, id)
        {"servers": self.booting.remove, "loadbalancers": self.booting.unbalance}.get(kind, lambda _: None)(id)

    def nova(self, method, path, one, body):
        answer = super().nova(method, path, one, body)
        if path[2:] == ["action"]:
            if "os-getConsoleOutput" in body:
                return 200, {"output": self.booting.console(path[1])[-65536:]}
            {"os-stop": self.booting.off, "os-start": self.booting.on}[next(iter(body))](path[1])
        return answer

    def octavia(self, method, path, one, body):
        status, answer = super().octavia(method, path, one, body)
        if path == ["loadbalancers"] and method == "POST":
            b = answer["loadbalancer"]
            address = self.things["ports"][b["vip_port_id"]]["fixed_ips"][0]["ip_address"]
            self.booting.balance(b["id"], address, b["listeners"][0]["protocol_port"], lambda: [(m["address"], m["protocol_port"]) for m in b["members"]])
        return status, answer


class OpenStack:
    """The cloud, as OnCloud asks it."""

    def __init__(self, booting, paper=BootingPaper):
        self.paper, self.dir = paper(booting), booting.dir
        (self.dir / "clouds.yaml").write_text(json.dumps({"clouds": {"paper": self.paper.entry()}}))

    def env(self):
        return {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(self.dir / "clouds.yaml"), "HOME": str(self.dir), "SLIPWAY_CACHE": str(CACHE)}

    def servers(self):
        ports = {p["device_id"]: p["fixed_ips"][0]["ip_address"] for p in self.paper.things["ports"].values()}
        return {s["name"]: {"id": s["id"], "address": ports[s["id"]], "zone": s["OS-EXT-AZ:availability_zone"], "provider": f"openstack:///{s['id']}"}
                for s in self.paper.things["servers"].values() if s["status"] == "ACTIVE"}

    def delete(self, name):
        with self.paper.lock:
            self.paper.delete("servers", self.servers()[name]["id"])

    def stop(self, name):
        with self.paper.lock:
            self.paper.nova("POST", ["servers", self.servers()[name]["id"], "action"], {}, {"os-stop": None})

    def ours(self, prefix):
        return self.paper.ours(f"slipway-{prefix}")

    def listing(self):
        return json.dumps(self.paper.things, sort_keys=True)


def cluster(booting, cloud, control, worker, kubernetes=NEWEST):
    return OnCloud(booting, cloud, FILE.format(kubernetes, NETWORK, control, worker, SHARED_DISK))


@pytest.fixture
def cloud():
    with Booting("openstack", NETWORK, "ConfigDrive") as booting:
        o = OpenStack(booting)
        yield booting, o
        o.paper.close()


def test_life(cloud):
    short_life(cluster(*cloud, 1, 1))


@pytest.mark.soak
def test_long_life(cloud):
    long_life(cluster(*cloud, 3, 2, PREVIOUS))
