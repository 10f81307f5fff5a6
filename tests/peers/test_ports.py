"""ports of provider openstack: further networks, security groups or none, and address pairs; made, found again, compared, changed and removed."""
import json

import pytest
from test_paper import FAULTS, FILE, MARK, Boats, drive, outdated

PLAIN = FILE.replace("OPTIONS", "userData: cloud-init")


def with_ports(ports):
    return FILE.replace("OPTIONS", f"ports: {{{ports}}}")


@pytest.fixture
def boats(tmp_path):
    b = Boats(tmp_path, text=PLAIN)
    for i, name in enumerate(("storage", "backup")):
        network = b.cloud.add("networks", {"name": name, "description": "theirs"})
        b.cloud.create("subnets", {"network_id": network["id"], "cidr": f"10.9{i + 3}.0.0/24", "description": "theirs", "ip_version": 4})
    b.cloud.add("security-groups", {"name": "clients", "description": "theirs", "security_group_rules": []})
    yield b
    b.cloud.close()


def network(cloud, name):
    return next(n["id"] for n in cloud.things["networks"].values() if n["name"] == name)


def ports(cloud, name=None):
    """{node: port} on that network, or on the machines' own."""
    on = network(cloud, name or "boats-ab12c")
    mine = [p for p in cloud.things["ports"].values() if p.get("description") == MARK and p["network_id"] == on and not p["name"].endswith("-api")]
    assert len({p["name"] for p in mine}) == len(mine)
    return {p["name"]: p for p in mine}


def groups(cloud, port):
    return sorted(cloud.things["security-groups"][g]["name"] for g in port.get("security_groups", []))


def pairs(port):
    return sorted(p["ip_address"] for p in port["allowed_address_pairs"])


def unchanged(boats):
    boats.cloud.log[:] = []
    assert boats.must("survey")[-1] == {"changes": False} and len(boats.cloud.log) <= 7, boats.cloud.log
    boats.must("up")
    assert not boats.cloud.posts()


def test_networks(boats):
    cloud, foreign = boats.cloud, json.dumps(boats.cloud.things, sort_keys=True)
    boats.write(with_ports("networks: [storage]"))
    assert {"line": "11 ports"} in boats.must("survey")
    boats.must("up")
    main, more = ports(cloud), ports(cloud, "storage")
    assert set(main) == set(more) and len(main) == 5
    for name, p in more.items():
        assert p["device_id"] == main[name]["device_id"] and groups(cloud, p) == ["boats-ab12c"]
    assert {m["ip"][:6] for m in boats.listed().values()} == {"10.90."}
    assert {s["metadata"]["slipway-networks"] for s in cloud.things["servers"].values()} == {"storage"} and not boats.must("others")
    unchanged(boats)
    # one that somebody deleted is made and attached again
    cloud.things["ports"].pop(more["worker-1"]["id"])
    said = boats.must("survey")
    assert {"line": "1 port"} in said and {"line": "attach the port of worker-1 on storage"} in said, said
    boats.must("up")
    assert ports(cloud, "storage")["worker-1"]["device_id"] == main["worker-1"]["device_id"]
    # a machine that is made again keeps its ports
    before = {n: p["id"] for n, p in ports(cloud, "storage").items()}
    cloud.delete("servers", main["worker-2"]["device_id"])
    boats.must("up")
    assert {n: p["id"] for n, p in ports(cloud, "storage").items()} == before
    assert ports(cloud, "storage")["worker-2"]["device_id"] == ports(cloud)["worker-2"]["device_id"] != ""
    unchanged(boats)
    # another list replaces machines, and ports on networks that the file has no longer go
    boats.write(with_ports(f"networks: [{network(cloud, 'backup')}]"))
    assert outdated(boats.must("survey"))["worker-1"] == f"further networks: {network(cloud, 'backup')} instead of storage"
    boats.must("replace")
    assert not ports(cloud, "storage") and len(ports(cloud, "backup")) == 5 and all(p["device_id"] for p in ports(cloud, "backup").values())
    unchanged(boats)
    # one machine that goes takes its ports with it, also those of an earlier list
    boats.write(PLAIN)
    assert outdated(boats.must("survey"))["control-1"].startswith("further networks: none instead of")
    boats.must("destroy", "worker-2")
    assert "worker-2" not in ports(cloud) and "worker-2" not in ports(cloud, "backup") and len(ports(cloud, "backup")) == 4
    boats.must("down")
    assert not cloud.ours(MARK) and json.dumps(cloud.things, sort_keys=True) == foreign


def test_security(boats):
    """Further groups, none at all, and back; without the field nothing is changed."""
    cloud = boats.cloud
    boats.must("up")
    one = ports(cloud)["worker-1"]
    one["security_groups"].append(next(g["id"] for g in cloud.things["security-groups"].values() if g["name"] == "default"))
    assert boats.must("survey")[-1] == {"changes": False}
    boats.write(with_ports("security: [clients]"))
    assert {"line": "security and addresses of 5 ports"} in boats.must("survey")
    boats.must("up")
    assert {tuple(groups(cloud, p)) for p in ports(cloud).values()} == {("boats-ab12c", "clients")}
    unchanged(boats)
    boats.write(with_ports("security: none"))
    boats.must("up")
    assert {(p["port_security_enabled"], len(p["security_groups"])) for p in ports(cloud).values()} == {(False, 0)}
    unchanged(boats)
    boats.write(boats.text.replace("count: 2,", "count: 3,"))
    boats.must("up")
    assert ports(cloud)["worker-3"]["port_security_enabled"] is False
    boats.write(with_ports("security: []"))
    boats.must("up")
    assert {(p["port_security_enabled"], *groups(cloud, p)) for n, p in ports(cloud).items() if n != "worker-3"} == {(True, "boats-ab12c")}
    boats.write(with_ports("security: [nobody]"))
    assert {"problem": "provider.openstack.ports.security: there is no group nobody", "hint": "see `openstack security group list`"} in boats.call("survey")[1]
    boats.must("down")
    assert not cloud.ours(MARK)


def test_cut_off_between(boats):
    """A run that ends between a machine and its ports on networks that the file has no longer: the next one deletes these, or `leaks` shows them."""
    cloud, refused, call = boats.cloud, (403, {"NeutronError": {"message": "no"}}), "DELETE /network/v2.0/ports/*"
    boats.write(with_ports("networks: [storage]"))
    boats.must("up")
    boats.write(with_ports("networks: [backup]"))
    cloud.faults[call] = [refused]
    assert boats.call("replace")[0]
    boats.must("replace")
    assert not ports(cloud, "storage") and len(ports(cloud, "backup")) == 5
    boats.write(PLAIN)
    cloud.faults[call] = [refused] * 2
    assert boats.call("destroy", "worker-2")[0] and "worker-2" not in {s["name"] for s in cloud.things["servers"].values()}
    cloud.faults.clear()
    boats.must("destroy", "worker-2")
    assert "worker-2" not in ports(cloud) and "worker-2" not in ports(cloud, "backup")
    boats.must("down")
    assert not cloud.ours(MARK)


def test_long_lists(boats):
    """What a server was made with has 255 characters there: the ninth network is noticed too."""
    cloud = boats.cloud
    ids = [cloud.add("networks", {"name": f"n{i}", "description": "theirs"})["id"] for i in range(9)]
    for i, id in enumerate(ids):
        cloud.create("subnets", {"network_id": id, "cidr": f"10.8{i}.0.0/24", "description": "theirs", "ip_version": 4})
    boats.write(with_ports(f"networks: [{', '.join(ids[:8])}]"))
    boats.must("up")
    assert boats.must("survey")[-1] == {"changes": False} and not outdated(boats.must("survey"))
    boats.write(with_ports(f"networks: [{', '.join(ids)}]"))
    assert len(outdated(boats.must("survey"))) == 5
    boats.must("down")
    assert not cloud.ours(MARK)


def test_leaks(boats):
    """Only ports that no machine has, on a network that the file does not name."""
    cloud = boats.cloud
    drive(boats, "kubeconfig")  # makes the Identity
    prefix = json.loads((boats.dir / ".slipway/boats/identity.json").read_text())["prefix"]
    boats.write(with_ports("networks: [storage]"))
    assert boats.call("up", prefix=prefix)[0] == 0
    assert "nothing is left over" in drive(boats, "leaks")
    body = {"name": "worker-1", "description": f"slipway-{prefix}", "network_id": network(cloud, "backup")}
    loose, used = cloud.create("ports", dict(body)), cloud.create("ports", dict(body))
    used["device_id"] = next(iter(cloud.things["servers"]))
    (boats.dir / ".slipway/boats/record.json").write_text(json.dumps({"version": 1, "existed": True, "nodes": [{"name": "worker-1"}, {"name": "worker-9"}]}))
    cloud.create("ports", {**body, "name": "worker-9"})  # a node that `up` will remove
    assert [x["id"] for x in json.loads(drive(boats, "leaks", "-o", "json"))] == [loose["id"]]


def test_without_port_security(boats):
    boats.cloud.port_security = False
    boats.write(with_ports("security: none, networks: [nowhere]"))
    problems = {line.get("problem") for line in boats.call("up")[1]}
    assert {"provider.openstack.ports.security: this neutron cannot switch it off", "provider.openstack.ports.networks: there is not one network nowhere"} <= problems
    assert not boats.cloud.posts()


def test_pairs(boats):
    """On the ports of the machines' own network, with those that keepalived or a routed pod network needs."""
    cloud = boats.cloud
    boats.write(with_ports("networks: [storage], addressPairs: [10.90.0.200/32, 10.244.0.0/16]").replace("ports:", "loadBalancer: vip, ports:"))
    boats.must("up")
    vip = boats.listed()["control-1"]["endpoint"]
    for node, p in ports(cloud).items():
        assert pairs(p) == sorted(["10.90.0.200/32", "10.244.0.0/16", *([vip] if node.startswith("control") else [])])
    assert not any(pairs(p) for p in ports(cloud, "storage").values())
    unchanged(boats)
    # neutron may leave the length of one address out
    ports(cloud)["worker-1"]["allowed_address_pairs"][0]["ip_address"] = "10.90.0.200"
    assert boats.must("survey")[-1] == {"changes": False}
    # somebody has added one, and the file drops another
    ports(cloud)["worker-2"]["allowed_address_pairs"].append({"ip_address": "10.1.1.1"})
    assert {"line": "security and addresses of 1 port"} in boats.must("survey")
    boats.write(boats.text.replace("[10.90.0.200/32, 10.244.0.0/16]", "[10.244.0.0/16]"))
    assert {"line": "security and addresses of 5 ports"} in boats.must("survey")
    boats.must("up")
    assert pairs(ports(cloud)["worker-2"]) == ["10.244.0.0/16"] and vip in pairs(ports(cloud)["control-2"])
    unchanged(boats)
    # without the field they stay
    boats.write(boats.text.replace(", addressPairs: [10.244.0.0/16]", ""))
    unchanged(boats)
    assert pairs(ports(cloud)["worker-2"]) == ["10.244.0.0/16"]
    boats.must("down")
    assert not cloud.ours(MARK)


def problem(boats):
    return [line["problem"] for line in boats.call("up")[1] if "problem" in line]


def test_one_network_twice(boats):
    """By its name and its id, or the machines' own: every run would make one more port."""
    cloud, words = boats.cloud, "provider.openstack.ports.networks: machines have a port on {} already"
    storage = network(cloud, "storage")
    boats.write(with_ports(f"networks: [storage, {storage}]"))
    assert problem(boats) == [words.format(storage)] and not cloud.posts()
    own = with_ports(f"networks: [{network(cloud, 'backup')}]").replace("network: {cidr: 10.90.0.0/24, dns: [9.9.9.9]}", "network: backup").replace("externalNetwork: public, ", "")
    boats.write(own)
    assert problem(boats) == [words.format(network(cloud, "backup"))] and not cloud.posts()
    boats.write(PLAIN)
    boats.must("up")
    boats.write(with_ports("networks: [boats-ab12c]"))
    assert problem(boats) == [words.format("boats-ab12c")]
    boats.must("down")


def test_the_same_twice(boats):
    """A group by its name and its id, a pair that the fabric needs anyway."""
    cloud = boats.cloud
    clients = next(g["id"] for g in cloud.things["security-groups"].values() if g["name"] == "clients")
    text = with_ports(f"security: [clients, {clients}], addressPairs: [10.244.0.0/16, 10.244.0.0/16]")
    boats.write(text.replace("  pools:", "  network: {fabric: {name: flannel, backend: host-gw}, pods: 10.244.0.0/16}\n  pools:"))
    boats.must("up")
    assert {(*groups(cloud, p), *pairs(p)) for p in ports(cloud).values()} == {("boats-ab12c", "clients", "10.244.0.0/16")}
    unchanged(boats)
    cloud.add("security-groups", {"name": "clients", "description": "a third one's", "security_group_rules": []})
    boats.write(with_ports("security: [clients]"))
    assert problem(boats) == ["provider.openstack.ports.security: there are several groups clients"]
    boats.write(with_ports("").replace("ports: {}", "securityGroups: [clients]"))
    cloud.things["ports"].pop(ports(cloud)["worker-1"]["id"])
    cloud.delete("servers", next(s["id"] for s in cloud.things["servers"].values() if s["name"] == "worker-1"))
    assert problem(boats) == ["provider.openstack.securityGroups: there are several groups clients"]
    boats.must("down")


def test_security_again(boats):
    """Switched off and on again: the address that keepalived moves is allowed as before."""
    cloud = boats.cloud
    boats.write(with_ports("security: none").replace("ports:", "loadBalancer: vip, ports:"))
    boats.must("up")
    vip = boats.listed()["control-1"]["endpoint"]
    assert not any(pairs(p) for p in ports(cloud).values())
    boats.write(boats.text.replace("security: none", "security: []"))
    boats.must("up")
    assert {n: pairs(p) for n, p in ports(cloud).items()} == {n: [vip] if n.startswith("control") else [] for n in ports(cloud)}
    unchanged(boats)
    boats.must("down")


FEW = [f if f in ("drop after", "503") else pytest.param(f, marks=pytest.mark.soak) for f in FAULTS]


@pytest.mark.parametrize("call", ["POST /network/v2.0/ports", "PUT /network/v2.0/ports/*", "POST /compute/v2.1/servers/*/os-interface", "DELETE /network/v2.0/ports/*", "GET /network/v2.0/ports"])
@pytest.mark.parametrize("fault", FEW)
def test_faults(boats, call, fault):
    """This run or the next one converges, with one port a node and network, and nothing is left."""
    cloud = boats.cloud

    def converges(verb="up"):
        cloud.faults[call] = [FAULTS[fault]]
        if boats.call(verb)[0]:
            boats.must(verb)
        cloud.faults.clear()
    boats.write(with_ports("networks: [storage]"))
    converges()
    assert len(ports(cloud, "storage")) == 5 and all(p["device_id"] for p in ports(cloud, "storage").values())
    cloud.things["ports"].pop(ports(cloud, "storage")["worker-1"]["id"])
    boats.write(with_ports("networks: [storage], security: [clients]"))
    converges()
    assert all(p["device_id"] and groups(cloud, p) == ["boats-ab12c", "clients"] for name in (None, "storage") for p in ports(cloud, name).values())
    boats.write(with_ports("networks: [backup]"))
    converges("replace")
    assert len(ports(cloud, "backup")) == 5 and all(p["device_id"] for p in ports(cloud, "backup").values())
    converges("down")
    assert not cloud.ours(MARK)
