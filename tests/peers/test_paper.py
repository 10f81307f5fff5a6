"""Provider openstack against an OpenStack on paper: what it makes, finds again and removes, and every fault of CALLS at every creating call."""
import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest
from paper_openstack import Paper
from upstream import NEWEST

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("PROVIDER_TOOL") or ROOT / "build" / "tests" / "provider" / "provider_tool")
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("OS_") and not k.lower().endswith("_proxy")}
MARK = "slipway-ab12c"

FILE = """
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: boats}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider:
    openstack: {cloud: paper, image: debian-12, externalNetwork: public, network: {cidr: 10.90.0.0/24, dns: [9.9.9.9]}, OPTIONS}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 3, flavor: m1.k8s}
    - {name: worker, count: 2, flavor: m1.k8s, zones: [nova, other]}
"""
CREATING = ["POST /network/v2.0/networks", "POST /network/v2.0/subnets", "POST /network/v2.0/routers", "POST /network/v2.0/security-groups",
            "POST /network/v2.0/security-group-rules", "POST /network/v2.0/ports", "POST /compute/v2.1/servers", "POST /compute/v2.1/os-server-groups",
            "POST /lb/v2/lbaas/loadbalancers"]
FAULTS = {"drop before": "drop before", "drop after": "drop after", "429": (429, {"overLimit": {"code": 429, "message": "slower"}}), "503": (503, {}),
          "429 Retry-After": (429, {}, {"Retry-After": "1"}), "401": (401, {"error": {"code": 401, "message": "again"}}), "500": (500, {})}


class Boats:
    def __init__(self, directory, options="userData: cloud-init", text=FILE):
        self.dir, self.cloud = Path(directory), Paper()
        self.write(text.replace("OPTIONS", options))

    def write(self, text):
        self.dir.mkdir(parents=True, exist_ok=True)
        (self.dir / "cluster.yaml").write_text(text)
        (self.dir / "clouds.yaml").write_text(json.dumps({"clouds": {"paper": self.cloud.entry()}}))
        self.text = text

    def call(self, verb, *nodes, prefix="ab12c"):
        env = {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(self.dir / "clouds.yaml"), **({"PROVIDER_PREFIX": prefix} if prefix else {})}
        p = subprocess.run([TOOL, self.dir / "cluster.yaml", self.dir / "state", verb, *nodes], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=600)
        try:
            said = [json.loads(line) for line in p.stdout.splitlines()]
        except json.JSONDecodeError:
            pytest.fail(f"{verb}: status {p.returncode}\n{p.stdout}")
        assert "SECRET" not in p.stdout
        return p.returncode, said

    def must(self, verb, *nodes):
        status, said = self.call(verb, *nodes)
        assert status == 0, said[-3:]
        return said

    def listed(self):
        return {m["node"]: m for m in self.must("list")}


@pytest.fixture
def boats(tmp_path):
    b = Boats(tmp_path)
    yield b
    b.cloud.close()


def test_life(boats):
    cloud = boats.cloud
    foreign = json.dumps({k: v for k, v in cloud.things.items()}, sort_keys=True)
    before = boats.listed()
    assert {m["state"] for m in before.values()} == {"absent"} and not cloud.posts()
    said = boats.must("up")
    assert {"line": "5 servers m1.k8s: 2 CPUs, 2048 MB of memory each"} in said, said
    after = boats.listed()
    assert {m["state"] for m in after.values()} == {"running"}
    # addresses were known before the machines
    assert {n: m["ip"] for n, m in before.items()} == {n: m["ip"] for n, m in after.items()} and len({m["ip"] for m in after.values()}) == 5
    assert after["control-1"]["endpoint"] == before["control-1"]["endpoint"] not in {m["ip"] for m in after.values()}
    assert all(m["providerID"].startswith("openstack:///") for m in after.values())
    assert [after[f"worker-{i}"]["zone"] for i in (1, 2)] == ["nova", "other"]
    balancer, = cloud.things["loadbalancers"].values()
    assert {m["address"] for m in balancer["members"]} == {after[f"control-{i}"]["ip"] for i in (1, 2, 3)}
    # nothing is made twice, and nothing is asked in vain
    made, cloud.log[:] = len(cloud.ours(MARK)), []
    boats.must("up")
    assert len(cloud.ours(MARK)) == made
    assert not [p for p in cloud.posts()], cloud.posts()
    cloud.log[:] = []
    boats.must("survey")
    assert len(cloud.log) <= 10, cloud.log
    # a machine that was deleted behind our back has its address again
    gone = next(s for s in cloud.things["servers"].values() if s["name"] == "worker-1")
    cloud.delete("servers", gone["id"])
    assert boats.listed()["worker-1"]["state"] == "absent"
    boats.must("up")
    again = boats.listed()["worker-1"]
    assert again["ip"] == after["worker-1"]["ip"] and again["providerID"] != after["worker-1"]["providerID"]
    # one that failed in nova is made anew
    next(s for s in cloud.things["servers"].values() if s["name"] == "worker-2").update({"status": "ERROR", "OS-EXT-STS:power_state": 0})
    boats.must("up")
    assert boats.listed()["worker-2"]["state"] == "running"
    # fewer and more
    boats.write(boats.text.replace("count: 2", "count: 1"))
    assert {"other": "worker-2"} in boats.must("others")
    boats.write(boats.text.replace("count: 1,", "count: 4,"))
    boats.must("up")
    assert len(boats.listed()) == 7 and not cloud.twins(MARK)
    # and nothing is left, with everybody else's unchanged
    boats.must("down")
    assert not cloud.ours(MARK)
    assert json.dumps(cloud.things, sort_keys=True) == foreign


def test_filters_are_ignored(boats):
    """A service that does not know a filter answers with everything: nobody else's is found, used or deleted."""
    cloud, other = boats.cloud, {"description": "slipway-zz99z"}
    cloud.blind = True
    network = cloud.add("networks", {"name": "boats", **other})
    subnet = cloud.create("subnets", {"network_id": network["id"], "cidr": "10.91.0.0/24", **other})
    for kind in ("routers", "security-groups", "floatingips"):
        cloud.create(kind, {"name": "boats", **other})
    port = cloud.create("ports", {"name": "worker-1", "network_id": network["id"], "fixed_ips": [{"subnet_id": subnet["id"]}], **other})
    cloud.server({"server": {"name": "worker-1", "networks": [{"port": port["id"]}], "tags": ["slipway-zz99z"], "metadata": {}, "user_data": ""}})
    cloud.add("loadbalancers", {"name": "boats", "vip_port_id": port["id"], "vip_address": "10.91.0.9", "pools": [{"id": "theirs"}], "members": [], "tags": ["slipway-zz99z"], "description": ""})
    foreign = json.dumps(cloud.things, sort_keys=True)
    assert {m["state"] for m in boats.listed().values()} == {"absent"} and not boats.must("others")
    boats.must("down")
    assert json.dumps(cloud.things, sort_keys=True) == foreign
    boats.must("up")
    assert {m["state"] for m in boats.listed().values()} == {"running"} and not cloud.twins(MARK)
    boats.must("down")
    assert not cloud.ours(MARK) and json.dumps(cloud.things, sort_keys=True) == foreign


def drive(boats, *words, status=0):
    p = subprocess.run([SLIPWAY, *words], cwd=boats.dir, env={**CLEAN, "OS_CLIENT_CONFIG_FILE": str(boats.dir / "clouds.yaml")}, stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=600)
    assert p.returncode == status, p.stdout + p.stderr
    return p.stdout + p.stderr


def test_lost_state(boats):
    """A cluster whose state directory is not here is not made a second time, and can be found and deleted by its prefix."""
    foreign = json.dumps(boats.cloud.things, sort_keys=True)
    boats.must("up")
    boats.cloud.log[:] = []
    said = drive(boats, "plan", status=8)
    assert "the cloud has another cluster boats, with the prefix ab12c, that this state directory does not know" in said and "--prefix ab12c --delete" in said
    assert "load balancer" in (said := drive(boats, "leaks")) and "belong to other clusters" in said and said.count("ab12c") > 10
    drive(boats, "leaks", "--delete", "--yes")
    assert "type ab12c, or give --yes" in drive(boats, "leaks", "--prefix", "ab12c", "--delete", status=2)
    assert "not five small letters and digits" in drive(boats, "leaks", "--prefix", "../etc", status=2)
    assert "nothing is left over" in drive(boats, "leaks", "--prefix", "zz99z", "--delete", "--yes")
    assert not boats.cloud.posts()
    drive(boats, "leaks", "--prefix", "ab12c", "--delete", "--yes")
    assert json.dumps(boats.cloud.things, sort_keys=True) == foreign
    assert "nothing is left over" in drive(boats, "leaks")


def test_leaks_of_this_cluster(boats):
    """Machines of no node and of no record; what the nodes have and share is none."""
    drive(boats, "kubeconfig")  # makes the Identity
    prefix = json.loads((boats.dir / ".slipway/boats/identity.json").read_text())["prefix"]
    assert boats.call("up", prefix=prefix)[0] == 0
    assert "nothing is left over" in drive(boats, "leaks")
    all, text = len(boats.cloud.ours(f"slipway-{prefix}")), boats.text
    boats.write(text.replace("count: 2", "count: 1"))
    leaks = json.loads(drive(boats, "leaks", "-o", "json"))
    assert sorted((x["kind"], x["name"], x["ours"]) for x in leaks) == [("port", "worker-2", True), ("server", "worker-2", True)]
    assert f"--prefix: {prefix} is this cluster's own" in drive(boats, "leaks", "--prefix", prefix, "--delete", "--yes", status=2)
    drive(boats, "leaks", "--delete", "--yes")
    assert "nothing is left over" in drive(boats, "leaks")
    assert len(boats.cloud.ours(f"slipway-{prefix}")) == all - 2


def test_init_asks(boats):
    """A first file with names that the cloud has; its names are data."""
    boats.cloud.add("networks", {"name": 'odd: "name"\n# x', "description": ""})
    boats.cloud.things["networks"].pop(next(i for i, n in boats.cloud.things["networks"].items() if n["name"] == "theirs"))
    said = drive(boats, "init", "--provider", "openstack", "--name", "mine", "--force")
    assert "look at the names, which the cloud has" in said and not boats.cloud.posts()
    text = (boats.dir / "cluster.yaml").read_text()
    for line in ("cloud: paper ", "image: debian-12 ", "externalNetwork: public ", "loadBalancer: octavia ", "count: 3, flavor: m1.k8s}", '# network: "odd: \\"name\\"\\n# x" '):
        assert line in text, text
    assert {line.index(" # ") for line in text.splitlines() if re.match(r"      (cloud|image|externalNetwork|loadBalancer):", line)} == {46}
    drive(boats, "check")
    assert "openstack: 6 servers m1.k8s" in drive(boats, "plan")
    boats.cloud.close()
    said = drive(boats, "init", "--provider", "openstack", "-f", "other.yaml")
    assert "the cloud could not be asked, so the names in the file are examples: " in said and "no connection" in said
    assert "image: debian-12 " in (boats.dir / "other.yaml").read_text()


def test_plan(boats):
    """What people see before anything is made; the kubeconfig has the address that the balancer will have."""
    def slipway(*words, status=0):
        said = drive(boats, *words, status=status)
        assert not boats.cloud.posts()
        return said
    said = slipway("plan")
    for line in ("network boats, 10.90.0.0/24, with a router to public", "security group boats, with its rules", "6 ports", "load balancer boats", "5 servers m1.k8s"):
        assert f"  openstack: {line}" in said, said
    assert "server: https://10.90.0.10:6443" in slipway("kubeconfig")
    slipway("render", "-d", "out")
    assert "providerID" not in (boats.dir / "out/worker-1/root/var/lib/kubelet/config.yaml").read_text()  # it has none yet
    boats.cloud.quota.update(servers=4, ports=5)
    for verb in (["plan"], ["up", "--yes"]):
        said = slipway(*verb, status=4)
        assert "2 problems: quota: 5 servers are needed, and 4 of 4 are free (ask for" in said and "; quota: 6 ports are needed, and 5 of 5 are free (" in said
    slipway("down", "--yes")


def test_user_data_has_no_secret(boats):
    import base64
    boats.must("up")
    key = (boats.dir / "state" / "ssh" / "id_ed25519").read_text().splitlines()[1]
    for server in boats.cloud.things["servers"].values():
        text = base64.b64decode(server["user_data"]).decode()
        assert "ssh-ed25519 AAAA" in text and key not in text and "PRIVATE KEY" not in text


def test_quota_short_by_one(boats):
    boats.cloud.quota.update(servers=4, ports=5)
    status, said = boats.call("up")
    problems = [line["problem"] for line in said if "problem" in line]
    assert status == 1 and not boats.cloud.posts(), said
    assert "quota: 5 servers are needed, and 4 of 4 are free" in problems and "quota: 6 ports are needed, and 5 of 5 are free" in problems


def test_all_problems_at_once(tmp_path):
    b = Boats(tmp_path, "zones: [mars]", FILE.replace("image: debian-12", "image: plan9").replace("m1.k8s", "m1.none").replace("public", "private").replace(", zones: [nova, other]", ""))
    try:
        status, said = b.call("up")
        text = " ".join(line.get("problem", "") for line in said)
        assert status == 1 and not b.cloud.posts()
        for word in ("image plan9", "no flavor m1.none", "zone mars", "private is no external network"):
            assert word in text, (word, said)
    finally:
        b.cloud.close()


def test_a_taken_address(boats):
    """The cloud chooses another, which is kept."""
    wanted = boats.listed()["control-2"]["ip"]
    cloud = boats.cloud
    made = cloud.port_add

    def somebody(body):
        if body["fixed_ips"][0].get("ip_address") == wanted:
            from paper_openstack import Refused
            raise Refused(409, f"IP address {wanted} already allocated")
        return made(body)
    cloud.port_add = somebody
    boats.must("up")
    assert boats.listed()["control-2"]["ip"] != wanted and not cloud.twins(MARK)
    before = {n: m["ip"] for n, m in boats.listed().items()}
    boats.must("up")
    assert {n: m["ip"] for n, m in boats.listed().items()} == before


FEW = [(call, fault) for call, fault in zip(CREATING, ["drop after", "429", "drop after", "503", "drop before", "drop after", "drop after", "401", "drop after"])]
ALL = [(call, fault) for call in CREATING for fault in FAULTS if (call, fault) not in FEW]


@pytest.mark.parametrize("call,fault", [*FEW, *(pytest.param(*both, marks=pytest.mark.soak) for both in ALL)])
def test_faults(tmp_path, call, fault):
    """A fault at a creating call: this run or the next one converges, without twins, and nothing is left."""
    b = Boats(tmp_path / fault)
    try:
        b.cloud.faults[call] = [FAULTS[fault]]
        status, said = b.call("up")
        if status:
            error = next(line for line in said if line.get("error"))
            assert "req-" in error["error"] or "drop" in fault, error
            b.must("up")
        assert {m["state"] for m in b.listed().values()} == {"running"}
        assert not b.cloud.twins(MARK), (fault, b.cloud.twins(MARK))
        b.must("down")
        assert not b.cloud.ours(MARK), (fault, b.cloud.ours(MARK))
    finally:
        b.cloud.close()


def test_made_but_hidden(boats):
    """A server whose answer is lost, and that no list shows for a while: its port is taken, so there is no second one."""
    boats.cloud.faults["POST /compute/v2.1/servers"] = ["hidden"]
    status, said = boats.call("up")
    if status:
        boats.must("up")
    assert not boats.cloud.twins(MARK) and {m["state"] for m in boats.listed().values()} == {"running"}


@pytest.mark.parametrize("which", ["first", "second"])
def test_made_twice(boats, which):
    """A call that seemed lost is carried out after all, beside the one that was sent again. The server with the port is the node's; the next run
    deletes the other one, and the plan says so."""
    servers = boats.cloud.things["servers"]
    boats.cloud.faults["POST /compute/v2.1/servers"] = [f"late, {which}"]
    boats.must("up")
    twin, = [s for s in servers.values() if s["status"] == "ERROR"]
    node = boats.listed()
    assert {m["state"] for m in node.values()} == {"running"} and node[twin["name"]]["providerID"] != f"openstack:///{twin['id']}"
    assert {"line": f"delete the second server {twin['name']}, {twin['id']}"} in boats.must("survey")
    boats.must("up")
    assert boats.listed() == node and twin["id"] not in servers and len(servers) == 5


@pytest.mark.soak
def test_two_hundred_nodes(tmp_path):
    """A few calls a node, and a list that does not grow in calls or memory."""
    b = Boats(tmp_path, text=FILE.replace("count: 2, flavor", "count: 197, flavor").replace("10.90.0.0/24", "10.90.0.0/22"))
    try:
        b.cloud.quota.update(servers=300)
        b.must("up")
        assert len(b.cloud.log) <= 3 * 200
        b.cloud.log[:] = []
        b.must("survey")
        assert len(b.cloud.log) <= 10, b.cloud.log
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= 64 << 10 or "asan" in str(TOOL)
        b.must("down")
        assert not b.cloud.ours(MARK)
    finally:
        b.cloud.close()


@pytest.mark.parametrize("options", ["loadBalancer: vip", "loadBalancer: none", "apiFloatingIP: true"])
def test_endpoints(tmp_path, options):
    b = Boats(tmp_path, options)
    try:
        b.must("up")
        m = b.listed()
        kinds = {kind for kind, _ in b.cloud.ours(MARK)}
        endpoint = m["control-1"]["endpoint"]
        if "vip" in options:
            pairs = [p["allowed_address_pairs"] for p in b.cloud.things["ports"].values() if p["name"].startswith("control-")]
            assert pairs == [[{"ip_address": endpoint}]] * 3 and "loadbalancers" not in kinds
        elif "none" in options:
            assert endpoint == m["control-1"]["ip"] and "loadbalancers" not in kinds
        else:
            assert endpoint.startswith("203.0.113.") and "floatingips" in kinds
        b.must("down")
        assert not b.cloud.ours(MARK)
    finally:
        b.cloud.close()
