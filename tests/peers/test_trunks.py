"""ports.trunk of provider openstack: trunks made before their servers, found again by their ports, and gone before them."""
import json

import pytest
from test_paper import FAULTS, FILE, MARK, Boats, drive, outdated  # noqa: F401

TRUNKS = FILE.replace("OPTIONS", "ports: {trunk: true}")
POST = "POST /network/v2.0/trunks"


@pytest.fixture
def boats(tmp_path):
    b = Boats(tmp_path, text=TRUNKS)
    yield b
    b.cloud.close()


def trunks(cloud):
    """{node: id of its trunk}, each of the node's own port."""
    ports = {p["id"]: p["name"] for p in cloud.things["ports"].values()}
    mine = [t for t in cloud.things["trunks"].values() if t["description"] == MARK]
    assert all(ports[t["port_id"]] == t["name"] for t in mine)
    return {t["name"]: t["id"] for t in mine}


def test_life(boats):
    cloud = boats.cloud
    network = cloud.add("networks", {"name": "elsewhere", "description": ""})
    subnet = cloud.create("subnets", {"network_id": network["id"], "cidr": "10.99.0.0/24", "description": ""})
    port = cloud.create("ports", {"name": "worker-1", "description": "", "network_id": network["id"], "fixed_ips": [{"subnet_id": subnet["id"]}]})
    cloud.create("trunks", {"name": "worker-1", "description": "theirs", "port_id": port["id"]})
    foreign = json.dumps(cloud.things, sort_keys=True)
    assert {"line": "5 trunks"} in boats.must("survey") and not cloud.posts()
    boats.must("up")
    made = trunks(cloud)
    assert set(made) == {"control-1", "control-2", "control-3", "worker-1", "worker-2"}
    order = [c[1] for c in cloud.posts()]
    assert max(i for i, p in enumerate(order) if p.endswith("/trunks")) < min(i for i, p in enumerate(order) if p.endswith("/servers"))
    # found again by the ports: no further call
    cloud.log[:] = []
    assert boats.must("survey")[-1] == {"changes": False} and len(cloud.log) <= 7, cloud.log
    boats.must("up")
    assert not cloud.posts() and trunks(cloud) == made
    # a machine that is made again keeps it, one that is removed does not
    gone = next(s for s in cloud.things["servers"].values() if s["name"] == "worker-1")
    cloud.delete("servers", gone["id"])
    boats.must("up")
    assert trunks(cloud) == made
    boats.must("destroy", "worker-2")
    assert set(trunks(cloud)) == set(made) - {"worker-2"}
    boats.must("up")
    assert set(trunks(cloud)) == set(made) and not cloud.twins(MARK)
    # `down` removes them also if the file no longer asks for them, and if filters are ignored
    boats.write(FILE.replace("OPTIONS", "userData: cloud-init"))
    cloud.blind = True
    boats.must("down")
    assert not cloud.ours(MARK) and json.dumps(cloud.things, sort_keys=True) == foreign


def test_machines_that_exist(boats):
    """Their ports are in use: they get a trunk when they are made anew."""
    cloud = boats.cloud
    cloud.flavors.append({"id": "f2", "name": "m1.large", "vcpus": 4, "ram": 4096, "disk": 40})
    boats.write(FILE.replace("OPTIONS", "userData: cloud-init"))
    boats.must("up")
    boats.write(TRUNKS)
    assert boats.must("survey")[-1] == {"changes": False}
    boats.must("up")
    assert not trunks(cloud)
    boats.write(TRUNKS.replace("flavor: m1.k8s, zones", "flavor: m1.large, zones"))
    boats.must("replace")
    assert set(trunks(cloud)) == {"worker-1", "worker-2"} and not outdated(boats.must("survey"))
    boats.must("down")
    assert not cloud.ours(MARK)


def test_neutron_without_trunks(boats):
    boats.cloud.trunks = False
    status, said = boats.call("up")
    assert status == 1 and {"problem": "provider.openstack.ports.trunk: this neutron has no trunks", "hint": "leave it out, or ask for the extension"} in said
    assert not boats.cloud.posts()
    boats.write(FILE.replace("OPTIONS", "userData: cloud-init"))
    boats.must("up")
    boats.must("down")
    assert not boats.cloud.ours(MARK)


@pytest.mark.parametrize("fault", [*FAULTS, "hidden"])
def test_faults(boats, fault):
    """At the creating call: this run or the next one converges, with one trunk a node, and nothing is left."""
    boats.cloud.faults[POST] = [FAULTS.get(fault, fault)]
    status, said = boats.call("up")
    if status:
        boats.must("up")
    assert len(trunks(boats.cloud)) == 5 and not boats.cloud.twins(MARK), said
    boats.cloud.hidden.clear()
    boats.must("down")
    assert not boats.cloud.ours(MARK)


def test_leaks(boats):
    """Of a cluster whose state directory is lost: listed before the ports, and deleted with everything else."""
    foreign = json.dumps(boats.cloud.things, sort_keys=True)
    boats.must("up")
    kinds = [line.split()[0] for line in drive(boats, "leaks").splitlines() if line.endswith("ab12c")]
    assert kinds.count("trunk") == 5 and kinds.index("trunk") < kinds.index("port")
    drive(boats, "leaks", "--prefix", "ab12c", "--delete", "--yes")
    assert json.dumps(boats.cloud.things, sort_keys=True) == foreign


def test_leaks_of_this_cluster(boats):
    """Of a machine that the file does not have; nova takes a moment to let go of the port."""
    cloud = boats.cloud
    drive(boats, "kubeconfig")  # makes the Identity
    prefix = json.loads((boats.dir / ".slipway/boats/identity.json").read_text())["prefix"]
    assert boats.call("up", prefix=prefix)[0] == 0
    boats.write(TRUNKS.replace("count: 2", "count: 1"))
    leaks = json.loads(drive(boats, "leaks", "-o", "json"))
    assert [(x["kind"], x["name"]) for x in leaks] == [(kind, "worker-2") for kind in ("server", "trunk", "port")]
    in_use = 409, {"NeutronError": {"type": "TrunkInUse", "message": "Trunk is currently in use."}}
    cloud.faults[f"DELETE /network/v2.0/trunks/{leaks[1]['id']}"] = [in_use] * 2
    drive(boats, "leaks", "--delete", "--yes")
    assert "nothing is left over" in drive(boats, "leaks") and len(cloud.things["trunks"]) == 4
