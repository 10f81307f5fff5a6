"""Provider openstack against an OpenStack on paper: what it makes, finds again and removes, and every fault of CALLS at every creating call."""
import base64
import json
import os
import re
import resource
import subprocess
import time
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
    assert len(cloud.log) <= 7, cloud.log
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


def test_who_may_use_the_balancer(boats):
    """access.api: the listener's list, a rule for the balancer itself, and both follow a change of the file; by default neither is set."""
    cloud, own = boats.cloud, ("tcp", 6443, "10.90.0.0/24", None)
    boats.must("up")
    balancer, = cloud.things["loadbalancers"].values()
    assert "allowed_cidrs" not in balancer["listeners"][0] and balancer["tags"] == [MARK] and own not in rules_of(cloud, "boats-ab12c")
    plain = boats.text

    def restricted(*networks):
        boats.write(plain.replace("userData: cloud-init", f"userData: cloud-init, access: {{api: [{', '.join(networks)}]}}"))
        return [s["line"] for s in boats.must("up") if "line" in s]

    named = "networks that may use the load balancer boats-ab12c"
    # cut off after the listener was set, and refused while the balancer is still busy
    cloud.faults["PUT /lb/v2/lbaas/listeners/listener-boats-ab12c"] = [(409, {"faultstring": "Load Balancer is immutable and cannot be updated."})]
    cloud.faults["PUT /lb/v2/lbaas/loadbalancers/*"] = [None, (403, {"faultstring": "no"})]
    boats.write(plain.replace("userData: cloud-init", "userData: cloud-init, access: {api: [192.0.2.0/24, 192.0.2.0/24, 'fd00::/8']}"))
    assert boats.call("up")[0] != 0
    assert balancer["listeners"][0]["allowed_cidrs"] == ["10.90.0.0/24", "192.0.2.0/24"] and balancer["tags"] == [MARK, "api-from-changing"]
    assert named in restricted("192.0.2.0/24", "fd00::/8")
    assert balancer["listeners"][0]["allowed_cidrs"] == ["10.90.0.0/24", "192.0.2.0/24"] and MARK in balancer["tags"] and len(balancer["tags"]) == 2
    assert {own, ("tcp", 6443, "192.0.2.0/24", None)} <= rules_of(cloud, "boats-ab12c")
    # unchanged: nothing more is asked, nothing is said
    cloud.log[:] = []
    said = boats.must("survey")
    assert len(cloud.log) <= 7 and not [s for s in said if "load balancer" in s.get("line", "")], (cloud.log, said)
    assert named in restricted("198.51.100.0/24")
    assert balancer["listeners"][0]["allowed_cidrs"] == ["10.90.0.0/24", "198.51.100.0/24"]
    assert ("tcp", 6443, "192.0.2.0/24", None) not in rules_of(cloud, "boats-ab12c")
    assert named in restricted("0.0.0.0/0", "198.51.100.0/24")
    assert balancer["listeners"][0]["allowed_cidrs"] == [] and balancer["tags"] == [MARK] and own not in rules_of(cloud, "boats-ab12c")
    boats.must("down")
    # and from the first call on
    restricted("192.0.2.0/24")
    balancer, = cloud.things["loadbalancers"].values()
    assert balancer["listeners"][0]["allowed_cidrs"] == ["10.90.0.0/24", "192.0.2.0/24"] and len(balancer["tags"]) == 2
    cloud.log[:] = []
    boats.must("up")
    assert not cloud.posts() and not [c for c in cloud.log if c[0] == "PUT"], cloud.log


@pytest.mark.parametrize("before", ["", ", access: {api: [192.0.2.0/24]}"])
def test_a_change_that_is_taken_back(boats, before):
    """A run that ends when the listener has its new list; then the file is as it was: so is the listener."""
    cloud, octavia = boats.cloud, boats.cloud.octavia
    boats.write(boats.text.replace("userData: cloud-init", "userData: cloud-init" + before))
    boats.must("up")
    first, (balancer,) = boats.text, cloud.things["loadbalancers"].values()
    had = balancer["listeners"][0].get("allowed_cidrs", [])

    def cut_off(method, path, one, body):
        if path[0] == "listeners":
            cloud.faults["PUT /lb/v2/lbaas/loadbalancers/*"] = [(403, {"faultstring": "no"})]
        return octavia(method, path, one, body)
    cloud.octavia = cut_off
    boats.write(boats.text.replace("userData: cloud-init" + before, "userData: cloud-init, access: {api: [198.51.100.0/24]}"))
    assert boats.call("up")[0] and balancer["listeners"][0]["allowed_cidrs"] == ["10.90.0.0/24", "198.51.100.0/24"]
    cloud.octavia = octavia
    boats.write(first)
    boats.must("up")
    assert balancer["listeners"][0]["allowed_cidrs"] == had
    cloud.log[:] = []
    boats.must("up")
    assert not cloud.posts()
    boats.must("down")


def test_tags_of_the_balancer(boats):
    """Those that others have added stay when access.api changes."""
    boats.must("up")
    plain, (balancer,) = boats.text, boats.cloud.things["loadbalancers"].values()
    balancer["tags"].append("cost-7")
    boats.write(plain.replace("userData: cloud-init", "userData: cloud-init, access: {api: [192.0.2.0/24]}"))
    boats.must("up")
    assert {MARK, "cost-7"} < {*balancer["tags"]} and len(balancer["tags"]) == 3
    boats.write(plain)
    boats.must("up")
    assert sorted(balancer["tags"]) == ["cost-7", MARK]
    boats.must("down")
    assert not boats.cloud.ours(MARK)


def test_rules_are_refused(boats):
    """New rules that the quota does not allow: nobody loses the way in that they had."""
    cloud = boats.cloud
    boats.must("up")
    before, plain = rules_of(cloud, "boats-ab12c"), boats.text
    boats.write(plain.replace("userData: cloud-init", "userData: cloud-init, access: {ssh: [192.0.2.0/24], api: [192.0.2.0/24]}"))
    refusal = (409, {"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['security_group_rule'].", "detail": ""}})
    cloud.faults["POST /network/v2.0/security-group-rules"] = [refusal] * 9
    assert boats.call("up")[0] and rules_of(cloud, "boats-ab12c") == before
    cloud.faults.clear()
    boats.must("up")
    after = rules_of(cloud, "boats-ab12c")
    assert ("tcp", 22, "192.0.2.0/24", None) in after and not after & {("tcp", port, "0.0.0.0/0", None) for port in (22, 6443)}
    cloud.log[:] = []
    boats.must("up")
    assert not cloud.posts()
    boats.must("down")


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


LARGE = {"id": "f2", "name": "m1.large", "vcpus": 4, "ram": 4096, "disk": 40}


def outdated(said):
    return {line["outdated"]: line["why"] for line in said if "outdated" in line}


def test_replacement(boats):
    """Another flavor or image in the file makes machines outdated; another image of the same name, or another name of the same one, does not."""
    cloud, text = boats.cloud, boats.text
    cloud.flavors.append(LARGE)
    cloud.images.append({**cloud.images[0], "id": "11111111-2222-3333-4444-555555555555", "name": "debian-13"})
    boats.must("up")
    before, ports = boats.listed(), {p["name"]: p["id"] for p in cloud.things["ports"].values() if p["name"]}
    # a newer image has the name now, and a flavor is given by its id: nothing is outdated
    cloud.images[0] = {**cloud.images[0], "id": "i9"}
    boats.write(text.replace("flavor: m1.k8s, zones", "flavor: f1, zones"))
    assert not outdated(boats.must("survey")) and boats.must("survey")[-1] == {"changes": False}
    # the workers get another flavor, and the plan says so before anything is sent
    cloud.log[:] = []
    boats.write(text.replace("flavor: m1.k8s, zones", "flavor: m1.large, zones"))
    said = boats.must("survey")
    assert outdated(said) == {f"worker-{i}": "flavor m1.large instead of m1.k8s" for i in (1, 2)}
    assert {"line": "made anew, one after the other: 2 servers m1.large: 4 CPUs, 4096 MB of memory each"} in said and not cloud.posts()
    cloud.quota["cores"] = 13  # 10 are used, and 4 more are needed
    assert {"problem": "quota: 4 CPUs are needed, and 3 of 13 are free", "hint": "ask for a larger quota, or delete what is not needed"} in boats.call("survey")[1]
    cloud.quota["cores"] = 14
    boats.must("replace")
    after = boats.listed()
    assert {n: m["ip"] for n, m in after.items()} == {n: m["ip"] for n, m in before.items()} and not cloud.twins(MARK)
    assert {p["name"]: p["id"] for p in cloud.things["ports"].values() if p["name"]} == ports
    assert {n for n in after if after[n]["providerID"] != before[n]["providerID"]} == {"worker-1", "worker-2"}
    cloud.log[:] = []
    assert not outdated(boats.must("survey")) and len(cloud.log) <= 7
    # another image, by its id, for all; `up` of machines that are there replaces none
    boats.write(boats.text.replace("image: debian-12", "image: 11111111-2222-3333-4444-555555555555"))
    assert set(outdated(boats.must("survey")).values()) == {"image 11111111-2222-3333-4444-555555555555 instead of debian-12"}
    boats.must("up")
    assert boats.listed() == after
    boats.must("replace")
    boats.write(boats.text.replace("image: 11111111-2222-3333-4444-555555555555", "image: debian-13"))
    assert not outdated(boats.must("survey")) and len({s["image"]["id"] for s in cloud.things["servers"].values()}) == 1
    # what the file asks for is not there
    boats.write(boats.text.replace("flavor: m1.large", "flavor: m1.none"))
    assert {"problem": "pool worker: there is no flavor m1.none", "hint": "see `openstack flavor list`"} in boats.call("survey")[1]
    boats.must("down")
    assert not cloud.ours(MARK)


@pytest.mark.parametrize("call", ["DELETE", "POST"])
@pytest.mark.parametrize("fault", [f if f in ("drop after", "503") else pytest.param(f, marks=pytest.mark.soak) for f in FAULTS])
def test_replacement_meets_faults(tmp_path, call, fault):
    """At the deletion of the old server and at the creation of the new one."""
    b = Boats(tmp_path)
    try:
        b.cloud.flavors.append(LARGE)
        b.must("up")
        before = b.listed()
        b.write(b.text.replace("flavor: m1.k8s, zones", "flavor: m1.large, zones"))
        first = next(s["id"] for s in b.cloud.things["servers"].values() if s["name"] == "worker-1")
        b.cloud.faults[f"DELETE /compute/v2.1/servers/{first}" if call == "DELETE" else "POST /compute/v2.1/servers"] = [FAULTS[fault]]
        status, said = b.call("replace")
        if status:
            assert any(line.get("error") for line in said)
            b.must("replace")
        assert not outdated(b.must("survey")) and not b.cloud.twins(MARK)
        assert {n: (m["ip"], m["state"]) for n, m in b.listed().items()} == {n: (m["ip"], "running") for n, m in before.items()}
        b.must("down")
        assert not b.cloud.ours(MARK)
    finally:
        b.cloud.close()


DISKS = ("count: 2, flavor: m1.k8s", "count: 2, flavor: m1.k8s, rootVolume: {size: 30GiB, type: fast}, volumes: [{size: 10GiB, mount: /srv/a}, {size: 20GiB, zone: disks, mount: /srv/b}]")


@pytest.fixture
def disks(tmp_path):
    b = Boats(tmp_path, text=FILE.replace(*DISKS))
    yield b
    b.cloud.close()


def volumes(cloud):
    return {v["name"]: v for v in cloud.things["volumes"].values()}


def test_volumes(disks):
    """Made before their servers, found again, attached again, kept by a replacement, and gone with their machines."""
    cloud, theirs = disks.cloud, disks.cloud.add("volumes", {"name": "worker-1-1", "status": "available", "attachments": [], "size": 1, "metadata": {}})
    said = disks.must("up")
    assert {"line": "6 volumes, 120 GB"} in said, said
    servers = {s["name"]: s for s in cloud.things["servers"].values()}
    posts = {b["server"]["name"]: b["server"] for m, p, q, text in cloud.log if (m, p) == ("POST", "/compute/v2.1/servers") for b in [json.loads(text)]}
    ours = {n: v for n, v in volumes(cloud).items() if v is not theirs and v["metadata"].get("slipway-mark") == MARK}
    assert set(ours) == {f"worker-{i}-{d}" for i in (1, 2) for d in ("root", 1, 2)} and {v["status"] for v in ours.values()} == {"in-use"}
    assert ours["worker-1-root"]["imageRef"] == "i1" and ours["worker-1-root"]["volume_type"] == "fast" and ours["worker-2-2"]["availability_zone"] == "disks"
    disk = lambda boot, kind, id, to: {"boot_index": boot, "source_type": kind, "uuid": id, "destination_type": to, "delete_on_termination": to == "local"}  # noqa: E731
    assert posts["worker-1"]["block_device_mapping_v2"] == [disk(0, "volume", ours["worker-1-root"]["id"], "volume"),
                                                            *(disk(-1, "volume", ours[f"worker-1-{i}"]["id"], "volume") for i in (1, 2))]
    assert "imageRef" not in posts["worker-1"] and "block_device_mapping_v2" not in posts["control-1"] and posts["control-1"]["imageRef"] == "i1"
    # the machine finds them by their ids, in every run
    import base64
    data = base64.b64decode(servers["worker-1"]["user_data"]).decode()
    assert all(f"/dev/disk/by-id/virtio-{ours[f'worker-1-{i}']['id'][:20]}" in data for i in (1, 2)), data
    before, cloud.log[:] = disks.listed(), []
    assert disks.must("survey")[-1] == {"changes": False} and len(cloud.log) <= 8, cloud.log
    # one that was detached is attached again; one that the file has now is made
    v = volumes(cloud)["worker-2-1"]
    v.update(status="available", attachments=[])
    assert {"line": "attach volume 1 of worker-2"} in disks.must("survey")
    disks.must("up")
    assert v["status"] == "in-use" and disks.listed() == before
    disks.write(disks.text.replace("mount: /srv/b}", "mount: /srv/b}, {size: 1GiB, mount: /srv/c}"))
    assert {"line": "2 volumes, 2 GB"} in disks.must("up") and volumes(cloud)["worker-1-3"]["attachments"][0]["server_id"] == servers["worker-1"]["id"]
    # another size of the system disk is a replacement: that volume is new, the others stay
    ids = {n: v["id"] for n, v in volumes(cloud).items()}
    disks.write(disks.text.replace("rootVolume: {size: 30GiB", "rootVolume: {size: 40GiB"))
    assert outdated(disks.must("survey"))["worker-2"] == "system disk: a volume of 40 GB, type fast instead of a volume of 30 GB, type fast"
    disks.must("replace")
    assert {n for n, v in volumes(cloud).items() if v["id"] != ids[n]} == {"worker-1-root", "worker-2-root"} and {v["size"] for n, v in volumes(cloud).items() if "root" in n} == {40}
    assert not outdated(disks.must("survey")) and not cloud.twins(MARK)
    # another image too, although nova says no image of a server that boots from a volume
    cloud.images.append({**cloud.images[0], "id": "i2", "name": "debian-13"})
    disks.write(disks.text.replace("image: debian-12", "image: debian-13"))
    assert set(outdated(disks.must("survey"))) == {"control-1", "control-2", "control-3", "worker-1", "worker-2"}
    disks.write(disks.text.replace("image: debian-13", "image: debian-12"))
    # a machine that goes takes its volumes with it
    disks.must("destroy", "worker-2")
    assert {n for n in volumes(cloud) if n.startswith("worker-2")} == set()
    disks.must("up")
    disks.must("down")
    assert not cloud.ours(MARK) and list(cloud.things["volumes"]) == [theirs["id"]]


def test_system_disk_of_an_interrupted_replacement(disks):
    """A run that ends between a server and its system disk: the next one does not boot the new server from the old disk."""
    cloud = disks.cloud
    disks.must("up")
    cloud.images.append({**cloud.images[0], "id": "i2", "name": "debian-13"})
    disks.write(disks.text.replace("image: debian-12", "image: debian-13"))
    cloud.faults["DELETE /volume/v3/p/volumes/*"] = [(403, {"forbidden": {"code": 403, "message": "no"}})]
    assert disks.call("replace")[0]
    old = volumes(cloud)["worker-1-root"]
    assert (old["status"], old["imageRef"]) == ("available", "i1") and "worker-1" not in {s["name"] for s in cloud.things["servers"].values()}
    assert {"line": f"delete the unused volume worker-1-root, {old['id']}"} in disks.must("survey")
    disks.must("up")
    assert volumes(cloud)["worker-1-root"]["imageRef"] == "i2" and old["id"] not in cloud.things["volumes"]
    disks.must("replace")
    assert {v["imageRef"] for n, v in volumes(cloud).items() if n.endswith("root")} == {"i2"} and not outdated(disks.must("survey"))
    disks.must("down")
    assert not cloud.ours(MARK)


def test_volumes_that_cannot_be(disks):
    """Quotas and types, before anything is made; and a volume that cinder gave up on is deleted by the next run."""
    disks.cloud.quota.update(volumes=5, gigabytes=119)
    disks.write(disks.text.replace("type: fast", "type: slow"))
    problems = [line["problem"] for line in disks.call("up")[1] if "problem" in line]
    assert problems == ["pool worker: there is no volume type slow", "quota: 6 volumes are needed, and 5 of 5 are free", "quota: 120 GB of volumes are needed, and 119 of 119 are free"]
    assert not disks.cloud.posts()
    disks.cloud.quota.update(volumes=6, gigabytes=120)
    disks.write(disks.text.replace("type: slow", "type: fast"))
    made = disks.cloud.cinder_answer

    def fails(method, path, one, body):
        status, answer = made(method, path, one, body)
        for v in disks.cloud.things["volumes"].values():
            v["status"] = "error" if v["name"] == "worker-1-2" else v["status"]
        return status, answer
    disks.cloud.cinder_answer = fails
    status, said = disks.call("up")
    assert status == 1 and any("cinder could not make the volume" in (line.get("error") or "") for line in said), said
    disks.cloud.cinder_answer = made
    said = disks.must("up")
    assert any("delete the unused volume worker-1-2" in line.get("line", "") for line in said)
    assert {v["status"] for v in volumes(disks.cloud).values()} == {"in-use"} and len(volumes(disks.cloud)) == 6
    disks.must("down")
    assert not disks.cloud.ours(MARK)


@pytest.mark.parametrize("call", ["POST /volume/v3/p/volumes", "GET /volume/v3/p/volumes/detail", "POST /compute/v2.1/servers"])
@pytest.mark.parametrize("fault", [f if f in ("drop after", "503") else pytest.param(f, marks=pytest.mark.soak) for f in (*FAULTS, "hidden")])
def test_volumes_meet_faults(tmp_path, call, fault):
    b = Boats(tmp_path, text=FILE.replace(*DISKS))
    try:
        b.cloud.faults[call] = [FAULTS.get(fault, fault)] * 2
        for _ in range(3):
            if b.call("up")[0] == 0:
                break
        time.sleep(8 if fault == "hidden" else 0)
        b.must("up")
        assert {m["state"] for m in b.listed().values()} == {"running"} and not b.cloud.twins(MARK), b.cloud.twins(MARK)
        assert len(volumes(b.cloud)) == 6 and {v["status"] for v in volumes(b.cloud).values()} == {"in-use"}
        b.must("down")
        assert not b.cloud.ours(MARK), b.cloud.ours(MARK)
    finally:
        b.cloud.close()


def test_a_cloud_without_cinder(boats):
    boats.cloud.cinder = False
    boats.must("up")
    boats.must("down")
    assert not boats.cloud.ours(MARK)


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
    assert "not five lower-case letters and digits" in drive(boats, "leaks", "--prefix", "../etc", status=2)
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
    # volumes and floating IPs have the name of their node, so that they stay while the record has it
    boats.write(text.replace("count: 2,", "count: 2, floatingIP: true, volumes: [{size: 1GiB, mount: /srv/a}],"))
    assert boats.call("up", prefix=prefix)[0] == 0
    boats.write(boats.text.replace("count: 2,", "count: 1,"))
    leaks = json.loads(drive(boats, "leaks", "-o", "json"))
    assert sorted((x["kind"], x["name"]) for x in leaks) == [(kind, "worker-2") for kind in ("floating IP", "port", "server", "volume")]
    drive(boats, "leaks", "--delete", "--yes")
    drive(boats, "leaks", "--delete", "--yes")  # a volume in use stays for the second time
    assert "nothing is left over" in drive(boats, "leaks")


def test_init_asks(boats):
    """A first file with names that the cloud has; its names are data."""
    boats.cloud.add("networks", {"name": 'odd: "name"\n# x', "description": ""})
    boats.cloud.things["networks"].pop(next(i for i, n in boats.cloud.things["networks"].items() if n["name"] == "theirs"))
    said = drive(boats, "init", "--provider", "openstack", "--name", "mine", "--force")
    assert "check the names, which come from the cloud" in said and not boats.cloud.posts()
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


def test_logs_of_the_first_boot(boats):
    """What cloud-init said, and the console of a machine that nobody can log in to."""
    drive(boats, "kubeconfig")  # makes the Identity
    prefix = json.loads((boats.dir / ".slipway/boats/identity.json").read_text())["prefix"]
    said = drive(boats, "logs", "worker-1", "console", status=5)
    assert "its machine does not exist yet" in said
    assert boats.call("up", prefix=prefix)[0] == 0
    assert drive(boats, "logs", "worker-1").split()[-2:] == ["cloud-init", "console"]
    (boats.dir / "ssh").write_text(f'#!/bin/sh\necho "$@" >>{boats.dir}/asked\n')
    (boats.dir / "ssh").chmod(0o755)
    os.environ["PATH"], CLEAN["PATH"], path = f"{boats.dir}:{CLEAN['PATH']}", f"{boats.dir}:{CLEAN['PATH']}", CLEAN["PATH"]
    try:
        drive(boats, "logs", "worker-1", "cloud-init", "--lines", "7")
    finally:
        os.environ["PATH"] = CLEAN["PATH"] = path
    assert "exec tail -n 7 /var/log/cloud-init-output.log" in (boats.dir / "asked").read_text()
    next(s for s in boats.cloud.things["servers"].values() if s["name"] == "worker-1")["status"] = "SHUTOFF"
    assert drive(boats, "logs", "worker-1", "console") == "booted\n"
    assert "is stopped" in drive(boats, "logs", "worker-1", "kubelet", status=5)


def test_the_end_of_a_console_is_in_the_error(boats):
    """A machine that was made and never answers; every ssh is refused."""
    drive(boats, "kubeconfig")
    boats.write(boats.text.replace("count: 3", "count: 1").replace("count: 2", "count: 0"))
    (boats.dir / "ssh").write_text("#!/bin/sh\necho 'ssh: connect to host x port 22: Connection refused' >&2\nexit 255\n")
    (boats.dir / "ssh").chmod(0o755)
    os.environ["PATH"], CLEAN["PATH"], path = f"{boats.dir}:{CLEAN['PATH']}", f"{boats.dir}:{CLEAN['PATH']}", CLEAN["PATH"]
    try:
        said = drive(boats, "up", "--yes", status=5)
    finally:
        os.environ["PATH"] = CLEAN["PATH"] = path
    assert "refused the connection to port 22; the last line of its console: booted" in said and "slipway logs control-1 console shows" in said, said


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
        assert len(b.cloud.log) <= 7, b.cloud.log
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
            assert pairs == [[{"mac_address": "fa:16:3e:00:00:01", "ip_address": endpoint}]] * 3 and "loadbalancers" not in kinds
        elif "none" in options:
            assert endpoint == m["control-1"]["ip"] and "loadbalancers" not in kinds
        else:
            assert endpoint.startswith("203.0.113.") and "floatingips" in kinds
        b.must("down")
        assert not b.cloud.ours(MARK)
    finally:
        b.cloud.close()


def test_floating_ip_of_the_api_later(tmp_path):
    """Until it was made, the API keeps the address that it has: no certificate loses it."""
    b = Boats(tmp_path, "userData: cloud-init")
    b.must("up")
    vip = b.listed()["control-1"]["endpoint"]
    b.write(b.text.replace("userData: cloud-init", "userData: cloud-init, apiFloatingIP: true"))
    assert b.listed()["control-1"]["endpoint"] == vip
    assert {"line": "1 floating IP from public"} in b.must("survey")
    b.must("up")
    assert b.listed()["control-1"]["endpoint"].startswith("203.0.113.")
    b.must("down")
    assert not b.cloud.ours(MARK)
    b.cloud.close()


BASTION = "userData: cloud-init, bastion: {flavor: m1.tiny, user: jump}, access: {ssh: [192.0.2.0/24]}"


def bastioned(tmp_path, options=BASTION):
    b = Boats(tmp_path, options)
    b.cloud.flavors.append({"id": "f0", "name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 5})
    return b


def rules_of(cloud, name):
    group, = (g for g in cloud.things["security-groups"].values() if g["name"] == name)
    return {(r.get("protocol"), r.get("port_range_min"), r.get("remote_ip_prefix"), r.get("remote_group_id")) for r in group["security_group_rules"]}


def test_bastion(tmp_path):
    b = bastioned(tmp_path)
    cloud, name = b.cloud, "boats-ab12c-bastion"
    foreign = json.dumps(cloud.things, sort_keys=True)
    try:
        before = b.listed()
        assert {m["bastion"] for m in before.values()} == {f"{name}.invalid"}
        said = b.must("up")
        assert {"line": f"bastion {name}, flavor m1.tiny"} in said and {"line": "1 server m1.tiny: 1 CPUs, 512 MB of memory each"} in said
        assert {"line": "7 ports"} in said and {"line": "1 floating IP from public"} in said, said
        # nodes are made once there is a way to them
        order = [json.loads(c[3])["server"]["name"] for c in cloud.posts() if c[:2] == ("POST", "/compute/v2.1/servers")]
        assert order[0] == name and len(order) == 6
        made, = b.must("bastion")
        assert (made["state"], made["host"], made["user"]) == ("running", "203.0.113.11", "jump"), made
        after = b.listed()
        assert {n: m["ip"] for n, m in before.items()} == {n: m["ip"] for n, m in after.items()} and name not in after
        assert {(m["bastion"], m["ownBastion"]) for m in after.values()} == {("jump@203.0.113.11", True)}
        assert all(m["host"] == m["ip"] for m in after.values()) and not b.must("others")
        # its own group: ssh from `access` alone; nodes let in ssh and the API from it
        group, = (g["id"] for g in cloud.things["security-groups"].values() if g["name"] == name)
        port, = (p for p in cloud.things["ports"].values() if p["name"] == name)
        assert port["security_groups"] == [group]
        assert rules_of(cloud, name) == {("tcp", 22, "192.0.2.0/24", None)}
        assert {("tcp", 22, None, group), ("tcp", 6443, None, group)} <= rules_of(cloud, "boats-ab12c")
        # user-data: the login and nothing else
        server, = (s for s in cloud.things["servers"].values() if s["name"] == name)
        text = base64.b64decode(server["user_data"]).decode()
        assert "- name: jump" in text.replace('"', "") and "write_files" not in text and "packages" not in text and "runcmd" not in text, text
        # a second run makes nothing
        cloud.log[:] = []
        b.must("survey")
        assert len(cloud.log) <= 12, cloud.log
        b.must("up")
        assert not cloud.posts()
    finally:
        b.must("down")
        left = json.dumps(cloud.things, sort_keys=True)
        cloud.close()
    assert left == foreign


@pytest.mark.parametrize("cut", [None, "DELETE /network/v2.0/security-groups/*"])
def test_bastion_is_taken_out(tmp_path, cut):
    """With groups that exist: nothing of it is left, also when the run ends before its group has gone."""
    b = bastioned(tmp_path, BASTION + ", securityGroups: [default]")
    cloud, name = b.cloud, "boats-ab12c-bastion"
    try:
        b.must("up")
        assert ("security-groups", name) in cloud.ours(MARK)
        b.write(b.text.replace(re.search(r"bastion: {[^}]*}", b.text)[0] + ", ", ""))
        if cut:
            cloud.faults[cut] = [(403, {"NeutronError": {"message": "no"}})]
            assert b.call("up")[0]
        b.must("up")
        assert not [kind for kind, thing in cloud.ours(MARK) if thing == name]
        b.must("up")
        b.must("down")
        assert not cloud.ours(MARK)
    finally:
        cloud.close()


def test_bastion_comes_back(tmp_path):
    """Deleted or switched off behind our back: made again at the same address, and the key of the one before is forgotten."""
    b = bastioned(tmp_path)
    cloud, name = b.cloud, "boats-ab12c-bastion"
    b.must("up")
    first, = b.must("bastion")
    known = b.dir / "state" / "known_hosts"
    known.write_text(f"{first['host']} ssh-ed25519 AAAA\n10.90.0.77 ssh-ed25519 BBBB\n")
    server = next(s for s in cloud.things["servers"].values() if s["name"] == name)
    cloud.delete("servers", server["id"])
    assert b.must("bastion")[0]["state"] == "absent" and {m["bastion"] for m in b.listed().values()} == {f"{name}.invalid"}
    b.must("up")
    again, = b.must("bastion")
    assert again["host"] == first["host"] and again["providerID"] != first["providerID"] and again["state"] == "running"
    assert known.read_text() == "10.90.0.77 ssh-ed25519 BBBB\n"
    next(s for s in cloud.things["servers"].values() if s["name"] == name)["status"] = "SHUTOFF"
    assert {"line": f"start the bastion {name}"} in b.must("survey")
    b.must("up")
    assert b.must("bastion")[0]["state"] == "running" and not cloud.twins(MARK)
    # without its floating IP there is no way
    cloud.things["floatingips"].clear()
    assert {m["bastion"] for m in b.listed().values()} == {f"{name}.invalid"}
    b.must("up")
    assert b.must("bastion")[0]["host"] and len(cloud.things["floatingips"]) == 1
    b.must("down")
    cloud.close()


def test_bastion_goes(tmp_path):
    """The file no longer wants it: the plan says so, and all of it goes; a run that is interrupted goes on."""
    b = bastioned(tmp_path)
    cloud, name = b.cloud, "boats-ab12c-bastion"
    b.must("up")
    whole = b.text
    b.write(whole.replace("bastion: {flavor: m1.tiny, user: jump}, ", ""))
    assert not b.must("bastion") and not b.must("others")
    assert {"line": f"delete the bastion {name}"} in b.must("survey")
    for call in ("DELETE /network/v2.0/floatingips", "DELETE /compute/v2.1/servers", "DELETE /network/v2.0/ports", "DELETE /network/v2.0/security-groups"):
        kind = call.rsplit("/", 1)[1]
        mine = [t["id"] for t in cloud.things[kind].values() if t.get("name") == name or kind == "floatingips"]
        cloud.faults[f"{call}/{mine[0]}"] = [(403, {"error": {"code": 403, "message": "not now"}})]
        assert b.call("up")[0] == 1, call
    b.must("up")
    assert not [t for t in cloud.ours(MARK) if t[1] == name] and not cloud.things["floatingips"]
    assert not [r for r in rules_of(cloud, "boats-ab12c") if r[3] and r[0] == "tcp"]
    cloud.log[:] = []
    assert {"changes": False} in b.must("survey") and {m["bastion"] for m in b.listed().values()} == {None}
    # an address instead, as ever
    b.write(whole.replace("bastion: {flavor: m1.tiny, user: jump}", "bastion: ops@jump.example.net"))
    assert {(m["bastion"], m["ownBastion"]) for m in b.listed().values()} == {("ops@jump.example.net", False)} and not b.must("bastion")
    b.must("down")
    cloud.close()


@pytest.mark.parametrize("fault", ["drop before", "drop after", "503"])
@pytest.mark.parametrize("call", ["POST /network/v2.0/security-groups", "POST /network/v2.0/security-group-rules", "POST /network/v2.0/ports",
                                  "POST /network/v2.0/floatingips", "POST /compute/v2.1/servers"])
def test_bastion_faults(tmp_path, call, fault):
    b = bastioned(tmp_path)
    b.cloud.faults[call] = [FAULTS[fault]]
    status, said = b.call("up")
    if status:
        b.must("up")
    assert b.must("bastion")[0]["state"] == "running" and not b.cloud.twins(MARK), said[-3:]
    assert len(b.cloud.things["floatingips"]) == 1
    b.must("down")
    assert not b.cloud.ours(MARK)
    b.cloud.close()


def test_bastion_of_a_cluster(tmp_path):
    """What slipway says and does about it; the machines are on paper, so ssh is a script that refuses."""
    b = bastioned(tmp_path)
    drive(b, "kubeconfig")  # makes the Identity
    state = b.dir / ".slipway/boats"
    prefix = json.loads((state / "identity.json").read_text())["prefix"]
    name, mark = f"boats-{prefix}-bastion", f"slipway-{prefix}"
    assert b.call("up", prefix=prefix)[0] == 0
    # it belongs to the cluster as long as the file wants it
    assert "nothing is left over" in drive(b, "leaks")
    whole = b.text
    b.write(whole.replace("bastion: {flavor: m1.tiny, user: jump}, ", ""))
    kinds = sorted(x["kind"] for x in json.loads(drive(b, "leaks", "-o", "json")))
    assert kinds == ["floating IP", "port", "security group", "server"], kinds
    b.write(whole)
    # ways to the nodes
    (state / "ssh").mkdir(exist_ok=True)
    config = drive(b, "inventory", "--ssh-config")
    assert config.count("ProxyJump jump@203.0.113.11") == 5
    jump = config[config.index("Host 203.0.113.11"):]
    assert f'UserKnownHostsFile "{b.dir}/.slipway/boats/known_hosts"' in jump and "IdentitiesOnly yes" in jump
    hint = drive(b, "kubeconfig").splitlines()[-2]
    assert "ssh -N -L 6443:10.90.0." in hint and "-o UserKnownHostsFile=.slipway/boats/known_hosts ssh://jump@203.0.113.11" in hint
    bin = b.dir / "bin"
    bin.mkdir()
    (bin / "ssh").write_text(f'#!/bin/sh\necho "$@" >>{b.dir}/asked\ncase "$*" in *invalid*) echo "ssh: Could not resolve hostname" >&2; '
                             'echo "Connection closed by UNKNOWN port 65535" >&2;; *) echo "ssh: connect to host x port 22: Connection refused" >&2;; esac\nexit 255\n')
    (bin / "ssh").chmod(0o755)
    os.environ["PATH"], path = f"{bin}:{CLEAN['PATH']}", os.environ["PATH"]
    CLEAN["PATH"] = os.environ["PATH"]
    try:
        drive(b, "ssh", "control-1", status=255)
        asked = (b.dir / "asked").read_text()
        assert "ProxyCommand=ssh " in asked and asked.count(".slipway/boats/known_hosts") == 2 and "-i .slipway/boats/ssh/id_ed25519" in asked, asked
        # without it no node can be asked: the plan is to make it, and then another one is made
        server = next(s for s in b.cloud.things["servers"].values() if s["name"] == name)
        b.cloud.delete("servers", server["id"])
        plan = drive(b, "plan")
        assert f"openstack: bastion {name}, flavor m1.tiny" in plan and "what is to do on them is planned when it runs" in plan and "unchanged" not in plan, plan
        said = drive(b, "status", status=7)
        assert "bastion       " in said and "absent" in said, said
        assert "is reached through a bastion that does not run" in said, said
        for verb in (["ssh", "control-1"], ["logs", "control-1", "kubelet"]):
            said = drive(b, *verb, status=5)
            assert "node control-1: it is reached through a bastion that does not run" in said and "slipway up makes" in said and "invalid" not in said, said
        assert "booted" in drive(b, "logs", "control-1", "console")
        (b.dir / "asked").unlink()
        said = drive(b, "up", "--yes", status=5)
        assert [t for t in b.cloud.ours(mark) if t == ("servers", name)] and "refused the connection" in said, said
        assert "slipway logs control-1 console shows how far it has booted" in said, said
        assert "jump@203.0.113.11" in (b.dir / "asked").read_text()
        assert "bastion       running" in drive(b, "status", status=7)
    finally:
        os.environ["PATH"] = CLEAN["PATH"] = path
    b.cloud.close()


def test_bastion_preflight(tmp_path):
    b = bastioned(tmp_path, BASTION.replace("m1.tiny", "m1.gone").replace("user: jump", "user: jump, image: gone"))
    status, said = b.call("survey")
    problems = {x["problem"] for x in said if "problem" in x}
    assert status == 1 and {"bastion: there is no flavor m1.gone", "provider.openstack.image: there is no image gone"} <= problems, said
    b.write(FILE.replace("OPTIONS", BASTION))
    b.cloud.quota["servers"] = 5
    assert any("6 servers are needed, and 5 of 5 are free" in x.get("problem", "") for x in b.call("survey")[1])
    b.cloud.close()
