"""Kubernetes on a real OpenStack (openstack.sh: keystone, glance, placement, neutron, nova, Octavia), whose servers boot: nova's hypervisor (nova_boots.py) asks
this process for machines (booting.py), which have the address and MAC of their port and the files of the config drive that nova wrote. Octavia's listener is a
relay to its members. Everything else is as in test_openstack_cluster.py, and an administrator's listing of everything there is judges what is left."""
import base64
import fcntl
import ipaddress
import json
import os
import socketserver
import subprocess
import threading
from pathlib import Path

import openstack
import pytest
from booting import Booting, OnCloud, different, long_life, short_life
from harness import CACHE, NEWEST, PREVIOUS, SHARED_DISK, SLIPWAY, until
from test_openstack_cluster import CLEAN, FILE
from test_tofu import FILE as EXPORTED
from test_tofu import login
from tofu import Tofu

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
NETWORK = "10.187.0.0/24"
SERVICES = Path(__file__).with_name("openstack.sh")


class Hypervisor(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """What nova_boots.py asks. Only servers in the network of `booting` boot: neither Octavia's amphorae nor what others have."""
    daemon_threads = True

    def __init__(self, path, booting):
        self.booting, self.broken = booting, set()  # broken: names of servers that do not boot, once
        super().__init__(str(path), Asked)
        threading.Thread(target=self.serve_forever, args=[0.1], daemon=True).start()

    def spawn(self, id, ports, files):
        mine = [p for p in ports if ipaddress.ip_address(p["address"]) in self.booting.network]
        if mine:
            if (name := json.loads(base64.b64decode(files["openstack/latest/meta_data.json"]))["name"]) in self.broken:
                self.broken.remove(name)
                raise RuntimeError(f"no disk for {name}")
            seed = {f"config_drive/{path}": base64.b64decode(data) for path, data in files.items()}
            self.booting.boot(id, mine[0]["address"], mine[0]["subnet"], mine[0]["mac"], seed)

    def answer(self, what, id, **more):
        b = self.booting
        if what == "spawn":
            self.spawn(id, **more)
        elif id in b.at and what in ("destroy", "off", "on"):
            {"destroy": b.remove, "off": b.off, "on": b.on}[what](id)
        if what == "state":
            return {"runs": id in b.running() if id in b.at else None}
        if what == "console":
            return {"output": b.console(id)[-65536:]}
        failed = b.fails(id) if id in b.at else []
        return {"error": "\n".join(failed)} if failed else {}


class Asked(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            answer = self.server.answer(**json.loads(self.rfile.readline()))
        except Exception as e:  # for nova to know
            answer = {"error": repr(e)}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


def ordered(thing):
    """Services give lists in any order: of a group's rules for example."""
    if isinstance(thing, dict):
        return {k: ordered(v) for k, v in sorted(thing.items())}
    return sorted(map(ordered, thing), key=json.dumps) if isinstance(thing, list) else thing


class Services:
    """OpenStack, as OnCloud asks it, and as its administrator sees it."""

    def __init__(self, booting, clouds):
        self.booting, self.clouds, self.ended = booting, clouds, threading.Event()
        os.environ["OS_CLIENT_CONFIG_FILE"] = clouds
        self.admin, self.member = openstack.connect(cloud="peer-admin"), openstack.connect(cloud="peer")
        self.hypervisor = Hypervisor(Path(clouds).parent / "run" / "boots", booting)
        self.what_others_have()
        self.watching = threading.Thread(target=self.watch, daemon=True)
        self.watching.start()

    def close(self):
        self.ended.set()
        self.watching.join()

    def what_others_have(self):
        """An image, a flavor and a way out for all; a network, a router, a group and a server of the same project."""
        a, m = self.admin, self.member
        a.create_flavor("m1.k8s", ram=2048, vcpus=2, disk=20)
        a.image.create_image(name="debian-12", data=b"x" * 4096, disk_format="raw", container_format="bare", visibility="public", validate_checksum=False)
        public = a.network.create_network(name="public", is_router_external=True, provider_network_type="flat", provider_physical_network="outside")
        a.network.create_subnet(name="public", network_id=public.id, ip_version=4, cidr="203.0.113.0/24", is_dhcp_enabled=False)
        theirs = m.network.create_network(name="theirs", description="somebody else's")
        subnet = m.network.create_subnet(name="theirs", network_id=theirs.id, ip_version=4, cidr="10.77.0.0/24")
        router = m.network.create_router(name="theirs", external_gateway_info={"network_id": public.id})
        m.network.put(f"/routers/{router.id}/add_router_interface", json={"subnet_id": subnet.id})
        group = m.network.create_security_group(name="theirs", description="slipway-not")
        port = m.network.create_port(name="worker-1", network_id=theirs.id, security_groups=[group.id])
        m.create_server("theirs", image="debian-12", flavor="m1.k8s", nics=[{"port-id": port.id}], config_drive=True, auto_ip=False, wait=True, timeout=900)

    # ---- the balancer ----

    def get(self, service, path, key, **more):
        r = getattr(self.admin, service).get(path, **more)
        openstack.exceptions.raise_from_response(r)
        return r.json()[key]

    def balancers(self):
        """{id: (address, port, its members' addresses)} of those that serve."""
        found = {}
        for b in self.get("load_balancer", "/lbaas/loadbalancers", "loadbalancers"):
            if b["provisioning_status"] in ("ACTIVE", "PENDING_UPDATE") and ipaddress.ip_address(b["vip_address"]) in self.booting.network and b["listeners"] and b["pools"]:
                listener = self.get("load_balancer", f"/lbaas/listeners/{b['listeners'][0]['id']}", "listener")
                members = self.get("load_balancer", f"/lbaas/pools/{b['pools'][0]['id']}/members", "members")
                found[b["id"]] = (b["vip_address"], listener["protocol_port"], [(m["address"], m["protocol_port"]) for m in members])
        return found

    def watch(self):
        """A relay for each load balancer, in place of its amphora."""
        known = {}
        while not self.ended.wait(3):
            try:
                now = self.balancers()
            except openstack.exceptions.SDKException:  # one was deleted in between, or they are slow
                continue
            for id in known.keys() - now.keys():
                self.booting.unbalance(id)
            known = now
            for id, (address, port, _) in now.items():
                self.booting.balance(id, address, port, lambda id=id: known[id][2])

    def clients(self):
        """Networks that the only listener lets in; none: all."""
        listener, = self.get("load_balancer", "/lbaas/listeners", "listeners")
        return listener["allowed_cidrs"]

    # ---- as OnCloud asks ----

    def env(self):
        return {**CLEAN, "OS_CLIENT_CONFIG_FILE": self.clouds, "HOME": str(self.booting.dir), "SLIPWAY_CACHE": str(CACHE)}

    def servers(self):
        all = self.get("compute", "/servers/detail?all_tenants=1", "servers", microversion="2.64")
        return {s["name"]: {"id": s["id"], "address": next(iter(s["addresses"].values()))[0]["addr"], "zone": s["OS-EXT-AZ:availability_zone"],
                            "provider": f"openstack:///{s['id']}"}
                for s in all if s["status"] == "ACTIVE" and any(t.startswith("slipway-") for t in s["tags"])}

    def delete(self, name):
        id = self.servers()[name]["id"]
        self.member.compute.delete_server(id)
        until(f"{name} is deleted", lambda: name not in self.servers() and id not in self.booting.running())

    def stop(self, name):
        id = self.servers()[name]["id"]
        self.member.compute.stop_server(id)
        until(f"{name} is off", lambda: name not in self.servers() and id not in self.booting.running())

    def listing(self):
        """Everything of all projects, as two looks one after the other find it: when no service is still at work at something."""
        looks = [None]

        def again():
            looks.append(self.look())
            return looks[-1] if looks[-1] == looks[-2] else None
        return until("all services are at rest", again, every=3)

    def look(self):
        network = {k: self.get("network", f"/{k}", k.replace("-", "_")) for k in
                   ("networks", "subnets", "routers", "ports", "security-groups", "security-group-rules", "floatingips")}
        credentials = [c for u in self.get("identity", "/users", "users") if u["name"] == "demo"
                       for c in self.member.identity.get(f"/users/{u['id']}/application_credentials").json()["application_credentials"]]
        everything = {**network, "credentials": credentials,
                      "servers": self.get("compute", "/servers/detail?all_tenants=1", "servers", microversion="2.64"),
                      "groups": self.get("compute", "/os-server-groups?all_projects=True", "server_groups", microversion="2.64"),
                      "balancers": self.get("load_balancer", "/lbaas/loadbalancers", "loadbalancers"),
                      "images": self.get("image", "/images", "images"), "flavors": self.get("compute", "/flavors/detail", "flavors")}
        return {f"{kind} {t.get('name')} {t['id']}": json.dumps(ordered(t)) for kind, all in everything.items() for t in all}

    def ours(self, prefix):
        return [name for name, thing in self.listing().items() if prefix in thing]


@pytest.fixture
def cloud():
    with open(CACHE / "openstack.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            clouds = subprocess.run([SERVICES, "up"], env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
            with Booting("openstack-real", NETWORK, "ConfigDrive") as booting:
                services = Services(booting, clouds)
                yield booting, services
                services.close()
        finally:
            subprocess.run([SERVICES, "down"], env=CLEAN, stdin=subprocess.DEVNULL, check=True)


def cluster(booting, services, control, worker, kubernetes=NEWEST):
    text = FILE.format(kubernetes, NETWORK, control, worker, SHARED_DISK).replace("cloud: paper", "cloud: peer").replace("zones: [nova, other]", "zones: [nova]")
    c = OnCloud(booting, services, text)
    assert any(k.startswith("servers theirs ") for k in c.before) and any(k.startswith("networks theirs ") for k in c.before)
    return c


def test_life(cloud):
    """A server that does not boot is told in the words of nova, and the next run makes it; who may use the load balancer follows the file."""
    c = cluster(*cloud, 1, 1)
    text = c.file.read_text()
    c.cloud.hypervisor.broken.add("worker-1")
    c.file.write_text(text.replace("openstack: {", "openstack: {access: {api: [192.0.2.0/24]}, "))
    r = c.run(SLIPWAY, "up", "--yes")
    assert r.returncode == 6 and "no disk for worker-1" in r.stderr, r.stdout + r.stderr
    assert c.cloud.clients() == [NETWORK, "192.0.2.0/24"]
    c.file.write_text(text)
    c.slipway("up", "--yes")
    assert not c.cloud.clients()
    short_life(c)


def test_long_life(cloud):
    long_life(cluster(*cloud, 3, 2, PREVIOUS))


def test_terraform(cloud):
    """Files of `slipway export terraform`: OpenTofu creates everything in them, has nothing more to do, and deletes it again. Then others, with Kubernetes."""
    c = cluster(*cloud, 1, 1)
    tofu, key = Tofu(c.dir / "infra", c.dir, c.cloud.env()), login(c.dir)
    c.cloud.env = lambda: tofu.env

    def machines(variables):
        """The output, when they run."""
        text = EXPORTED.format(version=NEWEST, variables=f"cidr: {NETWORK}{variables}", key=key, directory=c.dir, control=1, more=SHARED_DISK)
        c.file.write_text(text.replace("cloud: paper", "cloud: peer").replace("worker.zones: other", "worker.zones: nova"))
        c.slipway("export", "terraform")
        tofu.init()
        tofu.apply()
        tofu.has_nothing_to_do()
        said = json.loads(tofu("output", "-json"))["slipway"]["value"]
        assert c.booting.running() == {v["id"]: v["ip"] for v in said["nodes"].values()} and set(said["nodes"]) == {"control-1", "worker-1"}
        return said

    def nothing_is_left():
        tofu.destroy()
        now = c.cloud.listing()
        assert c.booting.running() == {} and now == c.before, different(c.before, now)

    said = machines(", external_network: public, public: control-plane, api_from: 192.0.2.0/24, dns_servers: 9.9.9.9")
    assert said["endpoint"].startswith("203.0.113.") and said["nodes"]["control-1"]["address"].startswith("203.0.113.")
    assert c.cloud.clients() == [NETWORK, "192.0.2.0/24"]
    nothing_is_left()
    # no address is outside, where nothing is routed
    said = machines("")
    c.up()
    assert c.nodes() == {n: (v["ip"], None, "nova", f"v{NEWEST}") for n, v in said["nodes"].items()}
    assert f"https://{said['endpoint']}:6443" in (c.dir / "kubeconfig").read_text()
    tofu.has_nothing_to_do()
    c.slipway("down", "--yes")
    nothing_is_left()
