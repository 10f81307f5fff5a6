"""The application credential of the cloud's controller and CSI driver: made once, with few rights, found again, made anew with another secret, and
removed; and what the controller left behind is swept by its own marks."""
import json

import pytest
from test_paper import CLEAN, FAULTS, FILE, MARK, SLIPWAY, TOOL, Boats, drive  # noqa: F401

WITH = FILE.replace("cloud: paper", "cloud: {name: paper, controller: true, csi: true}")
SECRET = "5" * 64
POST = "POST /identity/v3/users/u1/application_credentials"


class Credential(Boats):
    def call(self, verb, *nodes, prefix="ab12c", secret=SECRET):
        CLEAN["PROVIDER_SECRET"] = secret
        try:
            status, said = super().call(verb, *nodes, prefix=prefix)
        finally:
            del CLEAN["PROVIDER_SECRET"]
        assert secret not in json.dumps(said), "the secret was said"
        return status, said

    def all(self):
        return list(self.cloud.things["credentials"].values())


@pytest.fixture
def boats(tmp_path):
    b = Credential(tmp_path, text=WITH)
    yield b
    b.cloud.close()


def test_life(boats):
    cloud = boats.cloud
    foreign = cloud.add("credentials", {"name": "somebody", "description": "theirs", "secret": "x"})
    said = boats.must("survey")
    assert {"line": "application credential for the cloud's controller and CSI driver"} in said and not cloud.posts()
    boats.must("up")
    made, = [c for c in boats.all() if c is not foreign]
    # few rights: the project's member, never its administrator, and no further credentials
    assert made["description"] == MARK and made["name"].startswith("boats-ab12c-") and made["secret"] == SECRET
    assert {r["name"] for r in made["roles"]} == {"member", "load-balancer_member"} and made["unrestricted"] is False
    # found again
    cloud.log[:] = []
    boats.must("up")
    assert len(boats.all()) == 2 and not cloud.posts()
    cloud.log[:] = []
    boats.must("survey")
    assert len(cloud.log) <= 9, cloud.log  # two more than without: the credential, and the external network's id
    # deleted behind our back
    cloud.delete("credentials", made["id"])
    boats.must("up")
    assert len(boats.all()) == 2
    # another secret is another credential, and the old one goes
    assert boats.call("up", secret="6" * 64)[0] == 0
    now, = [c for c in boats.all() if c is not foreign]
    assert now["secret"] == "6" * 64 and now["name"] != made["name"]
    boats.must("down")
    assert boats.all() == [foreign] and not cloud.ours(MARK)


MORE = "floatingIP: true, volumes: [{size: 1GiB, mount: /srv/a}]"
ALL = "cloud: {name: paper, controller: true, csi: true}, apiFloatingIP: true, ports: {trunk: true}, bastion: {flavor: m1.k8s}"


def calls_of_a_plan(boats):
    boats.cloud.log[:] = []
    assert boats.must("survey")[-1] == {"changes": False}
    return boats.cloud.log


@pytest.mark.parametrize("workers", [2, pytest.param(297, marks=pytest.mark.soak)])
def test_calls_of_a_plan(boats, workers):
    """Without changes at most ten, if the file has everything, and however many nodes there are."""
    cloud = boats.cloud
    cloud.quota.update(servers=1000, ports=1000, volumes=1000, floatingips=1000)
    boats.write(boats.text.replace("count: 2,", f"count: {workers}, {MORE},").replace("cloud: {name: paper, controller: true, csi: true}", ALL).replace("10.90.0.0/24", "10.90.0.0/22"))
    boats.must("up")
    assert len(calls_of_a_plan(boats)) <= 10, cloud.log
    # one list has all networks that are known by their names
    assert sorted(c[2] for c in cloud.log if c[1].endswith("/networks")) == ["name=public&name=boats-ab12c"] and not [c for c in cloud.log if c[1].endswith("/subnets")]
    boats.must("down")
    assert not cloud.ours(MARK)


def test_networks_by_name(boats):
    """An own network that somebody has renamed is found by its mark; one that exists already is in the same list as the external one."""
    cloud = boats.cloud
    boats.must("up")
    network, = (n for n in cloud.things["networks"].values() if n["description"] == MARK)
    network["name"] = "renamed"
    assert len(calls_of_a_plan(boats)) <= 10
    boats.must("up")
    assert not cloud.twins(MARK)
    # a machine more needs the subnet's range
    network["name"] = "boats-ab12c"
    boats.write(boats.text.replace("count: 2,", "count: 3,"))
    boats.must("up")
    assert len(boats.listed()) == 6 and not cloud.twins(MARK)
    boats.must("down")
    assert not cloud.ours(MARK)
    theirs, = (n for n in cloud.things["networks"].values() if n["name"] == "theirs")
    cloud.create("subnets", {"network_id": theirs["id"], "cidr": "10.92.0.0/24", "description": "theirs", "ip_version": 4})
    for name in ("theirs", theirs["id"]):
        boats.write(WITH.replace("OPTIONS", "userData: cloud-init, loadBalancer: vip").replace("network: {cidr: 10.90.0.0/24, dns: [9.9.9.9]}", f"network: {name}"))
        boats.must("up")
        assert {m["ip"][:8] for m in boats.listed().values()} == {"10.92.0."}
        assert len(calls_of_a_plan(boats)) <= 7, cloud.log
        boats.must("down")
        assert not cloud.ours(MARK) and theirs["id"] in cloud.things["networks"]
    boats.write(boats.text.replace(f"network: {theirs['id']}", "network: none"))
    assert "provider.openstack.network: there is no network none" in json.dumps(boats.call("survey")[1])


def test_taken_out_of_the_file(boats):
    """`down` removes it also if the file no longer asks for it."""
    boats.must("up")
    boats.write(FILE.replace("OPTIONS", "userData: cloud-init"))
    boats.must("down")
    assert not boats.all() and not boats.cloud.ours(MARK)


def test_roles_of_another_cloud(boats):
    """Who has no role of the known names gets a credential with all of theirs."""
    boats.cloud.roles = ["tenant_operator"]
    boats.must("up")
    assert [r["name"] for r in boats.all()[0]["roles"]] == ["tenant_operator"]


def test_refused(boats):
    """Logged in with an application credential that makes no others: one sentence, and what to do."""
    boats.cloud.restricted = True
    status, said = boats.call("up")
    error = next(line for line in said if line.get("error"))
    assert status == 1 and "keystone: create application credential boats-ab12c-" in error["error"] and "status 403" in error["error"] and "req-" in error["error"]
    assert "log in with a password" in error["hint"]
    boats.cloud.restricted = False
    boats.must("up")


def test_too_many(boats):
    boats.cloud.quota["credentials"] = 0
    status, said = boats.call("up")
    assert status == 1 and "maximum of 0 already exceeded" in next(line for line in said if line.get("error"))["error"]


@pytest.mark.parametrize("fault", [*FAULTS, "hidden"])
def test_faults(boats, fault):
    """At the creating call: this run or the next one converges, with one credential, and nothing is left."""
    boats.cloud.faults[POST] = [FAULTS.get(fault, fault)]
    status, said = boats.call("up")
    if status:
        boats.must("up")
    assert len(boats.all()) == 1, said
    boats.cloud.hidden.clear()  # a quick computer comes to this line before it is listed
    boats.must("down")
    assert not boats.all() and not boats.cloud.ours(MARK)


def test_what_the_controller_left(boats):
    """`down` deletes load balancers and floating IPs of Services by the controller's marks, and nobody else's."""
    cloud = boats.cloud
    boats.must("up")
    subnet, = cloud.things["subnets"].values()
    theirs = []
    for name in ("boats-ab12c", "boats-zz99z"):
        port = cloud.port_add({"name": "octavia-lb", "description": "", "network_id": subnet["network_id"], "fixed_ips": [{"subnet_id": subnet["id"]}]})
        balancer = cloud.add("loadbalancers", {"name": f"kube_service_{name}_shop_web", "description": f"Kubernetes external service shop/web from cluster {name}", "vip_port_id": port["id"],
                                               "provisioning_status": "ACTIVE", "pools": [{"id": f"pool-{name}"}], "members": []})
        floating = cloud.create("floatingips", {"description": f"Floating IP for Kubernetes external service shop/web from cluster {name}", "port_id": port["id"]})
        theirs = [balancer["id"], floating["id"]]
        if name.endswith("zz99z"):
            port["fixed_ips"] = [{"subnet_id": "elsewhere", "ip_address": "192.0.2.9"}]
        else:
            gone = cloud.delete

            def delete(kind, id, gone=gone, mine=balancer["id"], port=port["id"]):
                gone(kind, id)
                if id == mine:
                    cloud.things["ports"].pop(port, None)  # its port goes with it
            cloud.delete = delete
    said = boats.must("down")
    left = {t["id"] for kind in ("loadbalancers", "floatingips") for t in cloud.things[kind].values()}
    assert left == set(theirs), (left, theirs, said)
    assert not cloud.ours(MARK)


def test_addons_of_the_file(boats):
    """`slipway addons` shows the objects; the credential is in none of them, because nobody is asked."""
    said = drive(boats, "addons", "openstack-cloud-controller")
    assert "--cluster-name=boats\n" in said and "kind: Secret" in said and "application-credential" not in said
    assert "set provider.aws.cloud.csi: true first" in drive(boats, "addons", "ebs-csi", status=2)
