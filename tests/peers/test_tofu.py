"""Provider terraform on platform openstack: slipway writes the files, OpenTofu with its provider creates everything from them in the OpenStack on paper
(paper_terraform.py), whose servers are machines that boot with the user-data of the files (booting.py), and slipway makes a cluster of these. Then more and fewer
nodes, another version, and nothing is left. Files with other options: only the infrastructure."""
import json
import os
import re
import subprocess

import pytest
from booting import Booting, OnCloud
from harness import NEWEST, PREVIOUS, SHARED_DISK, SLIPWAY
from paper_terraform import TerraformPaper
from test_openstack_cluster import CLEAN, BootingPaper, OpenStack
from tofu import Tofu

pytestmark = pytest.mark.soak
NETWORK = "10.186.0.0/24"
FILE = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: boats}}
spec:
  kubernetes: {version}
  provider:
    terraform:
      platform: openstack
      dir: infra
      user: debian
      key: login
      options: [UserKnownHostsFile={directory}/known_hosts]
      variables: {{cloud: paper, image: debian-12, size: m1.k8s, worker.zones: other, {variables}}}
  os: {{authorizedKeys: ["{key}"]}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: {control}}}
    - {{name: worker, count: 1}}
{more}"""


def login(directory):
    """The public key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ops", "-f", directory / "login"], check=True)
    return (directory / "login.pub").read_text().strip()


class BootingTerraformPaper(BootingPaper, TerraformPaper):
    """A load balancer is a relay at its address, and at its floating IP."""

    def octavia(self, method, path, one, body):
        answer = TerraformPaper.octavia(self, method, path, one, body)
        self.relays()
        return answer

    def create(self, kind, body):
        new = super().create(kind, body)
        self.relays()
        return new

    def relays(self):
        for b in self.things["loadbalancers"].values():
            for listener in (self.things["listeners"][i["id"]] for i in b["listeners"]):
                port, members = listener["protocol_port"], lambda b=b: self.members_of(b)
                self.booting.balance(b["id"], b["vip_address"], port, members)
                for f in self.things["floatingips"].values():
                    if f["port_id"] == b["vip_port_id"]:
                        self.booting.balance(f["id"], f["floating_ip_address"], port, members)

    def members_of(self, balancer):
        pools = [self.things["pools"][p["id"]] for p in balancer["pools"]]
        return [(m["address"], m["protocol_port"]) for p in pools for m in (self.things["members"][i["id"]] for i in p["members"])]

    def delete(self, kind, id):
        super().delete(kind, id)
        if kind == "floatingips":
            self.booting.unbalance(id)


class Cloud(OpenStack):
    def __init__(self, booting):
        super().__init__(booting, BootingTerraformPaper)
        self.tofu = Tofu(self.dir / "infra", self.dir, super().env())

    def env(self):
        return self.tofu.env


class OnTofu(OnCloud):
    def export(self):
        """What it said."""
        return json.loads(self.slipway("export", "terraform", "-o", "json"))

    def is_made(self, *nodes):
        """The nodes of the cluster are the machines that the cloud has."""
        servers = {name.removeprefix("boats-"): s for name, s in self.cloud.servers().items()}
        assert set(servers) == set(nodes)
        assert self.nodes() == {n: (s["address"], None, s["zone"], f"v{NEWEST}") for n, s in servers.items()}
        assert self.booting.running() == {s["id"]: s["address"] for s in servers.values()}
        for name, s in servers.items():
            assert self.booting.on_machine(s["id"], "hostname").strip() == name
        assert not self.booting.failed, self.booting.failed


@pytest.fixture
def cluster():
    with Booting("tofu", NETWORK, "ConfigDrive") as booting:
        cloud = Cloud(booting)
        yield OnTofu(booting, cloud, FILE.format(version=NEWEST, variables=f"external_network: public, cidr: {NETWORK}", key=login(booting.dir), directory=booting.dir, control=1, more=SHARED_DISK))
        cloud.paper.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")
def test_life(cluster):
    c, tofu = cluster, cluster.cloud.tofu
    c.export()
    r = c.run(SLIPWAY, "plan")
    assert r.returncode == 4 and "node control-1 is not in the Terraform output" in r.stderr, r.stderr
    tofu.init()
    tofu.apply()
    c.up()
    c.is_made("control-1", "worker-1")
    c.slipway("verify")
    balancer, = c.cloud.paper.things["floatingips"].values()
    assert f"https://{balancer['floating_ip_address']}:6443" in (c.dir / "kubeconfig").read_text()
    tofu.has_nothing_to_do()
    # another version of Kubernetes
    c.edit(f"kubernetes: {NEWEST}", f"kubernetes: {PREVIOUS}")
    assert c.export()["changed"] == 0
    tofu.has_nothing_to_do()
    c.edit(f"kubernetes: {PREVIOUS}", f"kubernetes: {NEWEST}")
    # one worker more, and one less
    old = c.cloud.servers()
    c.edit("name: worker, count: 1", "name: worker, count: 2")
    c.export()
    tofu.apply()
    c.up()
    c.is_made("control-1", "worker-1", "worker-2")
    assert old.items() <= c.cloud.servers().items()
    c.edit("name: worker, count: 2", "name: worker, count: 1")
    c.slipway("up", "--yes")
    c.export()
    tofu.apply()
    c.is_made("control-1", "worker-1")
    assert c.cloud.servers() == old
    c.slipway("plan", "--exit-code")
    tofu.has_nothing_to_do()
    # a machine that is made anew has its address again, and another host key
    tofu.apply("-replace", 'module.pool-worker.openstack_compute_instance_v2.machine["worker-1"]')
    r = c.run(SLIPWAY, "up", "--yes")
    assert r.returncode == 5, r.stdout + r.stderr
    forget = c.run("sh", "-c", re.search(r"remove its old key: (ssh-keygen .*?);", r.stderr)[1])
    assert forget.returncode == 0, forget.stderr
    c.up()
    c.is_made("control-1", "worker-1")
    new = c.cloud.servers()
    assert new["boats-control-1"] == old["boats-control-1"] and new["boats-worker-1"]["address"] == old["boats-worker-1"]["address"]
    assert new["boats-worker-1"]["id"] != old["boats-worker-1"]["id"]
    # and nothing is left
    c.slipway("down", "--yes")
    tofu.has_nothing_to_do()
    tofu.destroy()
    assert c.booting.running() == {} and c.cloud.listing() == c.before
    assert not [p for p in (c.dir / "infra").rglob("*") if p.is_file() and b"SECRET" in p.read_bytes()]


# ---- only the infrastructure ----

CASES = {
    "vip": ("external_network: public, cidr: 10.70.0.0/24, public: control-plane", "  api: {vip: 10.70.0.9}\n  network: {fabric: {backend: host-gw}}\n"),
    "balancer": ("external_network: public, cidr: 10.71.0.0/24, public: all, api_from: '192.0.2.0/24', node_ports_from: 0.0.0.0/0, dns_servers: '9.9.9.9, 1.1.1.1', "
                 "dns_zone: example.net", ""),
    "inside": ("cidr: 10.72.0.0/24", ""),
    "given": ("network: theirs, subnet: inner, cidr: 10.73.0.0/24, external_network: public, public: control-plane", ""),
}


@pytest.fixture
def paper():
    p = TerraformPaper()
    subnet = p.create("subnets", {"name": "inner", "network_id": next(n["id"] for n in p.things["networks"].values() if n["name"] == "theirs"), "cidr": "10.73.0.0/24"})
    router = p.create("routers", {"name": "theirs", "external_gateway_info": {"network_id": next(n["id"] for n in p.things["networks"].values() if n["name"] == "public")}})
    p.neutron("PUT", ["routers", router["id"], "add_router_interface"], {}, {"subnet_id": subnet["id"]})
    yield p
    p.close()


@pytest.mark.parametrize("case", CASES)
def test_infrastructure(case, paper, tmp_path):
    """Everything is created as the files say it, no second apply is needed, and everything is deleted again."""
    before, (variables, more) = json.dumps(paper.things, sort_keys=True), CASES[case]
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"paper": paper.entry()}}))
    (tmp_path / "cluster.yaml").write_text(FILE.format(version=NEWEST, variables=variables, key=login(tmp_path), directory=tmp_path, control=3, more=more))
    r = subprocess.run([SLIPWAY, "export", "terraform"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    tofu = Tofu(tmp_path / "infra", tmp_path, {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"), "HOME": str(tmp_path)})
    tofu.init()
    tofu.apply()
    tofu.has_nothing_to_do()
    said = json.loads(tofu("output", "-json"))["slipway"]["value"]
    things, cidr = paper.things, re.search(r"cidr: ([\d./]+)", variables)[1]
    ports = {p["name"]: p for p in things["ports"].values()}
    assert {n: v["ip"] for n, v in said["nodes"].items()} == {n: ports[f"boats-{n}"]["fixed_ips"][0]["ip_address"] for n in ("control-1", "control-2", "control-3", "worker-1")}
    assert {n: v["id"] for n, v in said["nodes"].items()} == {s["name"].removeprefix("boats-"): s["id"] for s in things["servers"].values()}
    floating = {f["fixed_ip_address"]: f["floating_ip_address"] for f in things["floatingips"].values()}
    public = {"vip": ("control",), "balancer": ("control", "worker"), "inside": (), "given": ("control",)}[case]
    assert {n: v["address"] for n, v in said["nodes"].items()} == {n: floating[v["ip"]] if n.startswith(public) and public else v["ip"] for n, v in said["nodes"].items()}
    if case == "vip":
        assert said["endpoint"] == "10.70.0.9" and ports["boats-vip"]["fixed_ips"][0]["ip_address"] == "10.70.0.9" and not things["loadbalancers"]
        pairs = {n: {a["ip_address"] for a in ports[f"boats-{n}"]["allowed_address_pairs"]} for n in said["nodes"]}
        assert pairs == {n: {"10.244.0.0/16"} | ({"10.70.0.9"} if n.startswith("control") else set()) for n in said["nodes"]}
    else:
        balancer, = things["loadbalancers"].values()
        listener, = things["listeners"].values()
        address = balancer["vip_address"] if case == "inside" else floating[balancer["vip_address"]]
        assert [(r["name"], r["type"], r["records"]) for r in things["recordsets"].values()] == ([("boats.example.net.", "A", [address])] if case == "balancer" else [])
        assert said["endpoint"] == ("boats.example.net" if case == "balancer" else address)
        assert {(m["address"], m["protocol_port"]) for m in things["members"].values()} == {(v["ip"], 6443) for n, v in said["nodes"].items() if n.startswith("control")}
        # who connects through it has its address: only the load balancer itself can tell who may
        assert listener["allowed_cidrs"] == ([cidr, "192.0.2.0/24"] if case == "balancer" else None)
    tofu.destroy()
    assert json.dumps(things, sort_keys=True) == before
