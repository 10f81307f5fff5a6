"""OpenStack's cloud controller manager, as upstream has it, with slipway's flags, permissions, cloud.conf and application credential: against a real API
server and the OpenStack on paper. It initialises a node, makes a load balancer for a Service and deletes it, and what it leaves behind is swept by
`down`. The images are not run, and so are no pods."""
import json
import subprocess
from pathlib import Path

import pytest
from controllers import api, ended, initialised, node, ready, run, served, service, unrefused, until  # noqa: F401
from paper_openstack import Paper, Refused
from test_credential import SECRET, WITH, Credential
from test_paper import CLEAN, MARK, TOOL, drive

pytestmark = pytest.mark.soak
NAME = "openstack-cloud-controller"


class Cloud(Paper):
    """The calls that the controller makes, besides those of slipway."""

    def answer(self, method, path, query, body):
        one = {k: v[0] for k, v in query.items()}
        words = path.strip("/").split("/")
        if words[:3] == ["compute", "v2.1", "servers"] and len(words) == 4 and words[3] != "detail" and method == "GET":
            return self.one_server(words[3])
        if words[:2] == ["network", "v2.0"] and words[2:] == ["extensions"]:
            return 200, {"extensions": []}
        if words[:2] == ["network", "v2.0"] and len(words) == 4 and method in ("GET", "PUT"):
            return self.one_of_neutron(method, words[2], words[3], body)
        if words == ["network"]:
            return 200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": f"{self.url}/network/v2.0/"}]}]}
        if words[:1] == ["lb"] and words[2] == "lbaas":
            return self.lbaas(method, words[3:], one, body)
        return super().answer(method, path, query, body)

    def one_server(self, id):
        s = self.things["servers"].get(id)
        if not s:
            raise Refused(404, f"Instance {id} could not be found.")
        ports = [p for p in self.things["ports"].values() if p["device_id"] == id]
        addresses = [{"addr": f["ip_address"], "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"} for p in ports for f in p["fixed_ips"]]
        return 200, {"server": {**s, "flavor": {"id": "f1", "original_name": "m1.k8s"}, "addresses": {"boats": addresses}}}

    def one_of_neutron(self, method, kind, id, body):
        thing = self.things[kind].get(id)
        if not thing:
            raise Refused(404, f"{kind} {id} could not be found")
        if method == "PUT":
            thing.update(next(iter(body.values())))
        return 200, {kind.rstrip("s"): thing}

    def lbaas(self, method, path, one, body):
        """Load balancers of Services: flat, as octavia answers for them."""
        all = self.things["loadbalancers"]
        if path == ["loadbalancers"] and method == "GET":
            return 200, {"loadbalancers": [b for b in all.values() if one.get("name") in (None, b["name"]) and one.get("tags") in (None, *b["tags"])]}
        if path == ["loadbalancers"] and body["loadbalancer"]["name"].startswith("kube_service_"):
            return 201, {"loadbalancer": self.of_service(body["loadbalancer"])}
        if path[0] == "loadbalancers" and len(path) == 2 and method == "GET":
            return (200, {"loadbalancer": all[path[1]]}) if path[1] in all else (404, {"faultstring": "not found"})
        if path[0] == "loadbalancers" and len(path) == 2 and method == "PUT":
            all[path[1]].update(body["loadbalancer"])
            return 200, {"loadbalancer": all[path[1]]}
        if path[0] == "loadbalancers" and method == "DELETE":
            port = all[path[1]]["vip_port_id"]
            self.delete("loadbalancers", path[1])
            self.things["ports"].pop(port, None)
            return 204, None
        mine = [b for b in all.values() if one.get("loadbalancer_id") in (None, b["id"])]
        if path == ["listeners"] and method == "GET":
            return 200, {"listeners": [x for b in mine for x in b.get("made", {}).get("listeners", [])]}
        if path == ["pools"] and method == "GET":
            return 200, {"pools": [x for b in mine for x in b.get("made", {}).get("pools", [])]}
        if path[0] == "listeners":
            listener = next(x for b in all.values() for x in b.get("made", {}).get("listeners", []) if x["id"] == path[1])
            listener.update((body or {}).get("listener", {}))
            return 200, {"listener": listener}
        for b in all.values():
            for pool in b.get("made", {}).get("pools", []):
                if path[:2] == ["pools", pool["id"]]:
                    if method == "PUT" and path[2:] == ["members"]:
                        pool["members"] = [dict(m, id=m["address"]) for m in body["members"]]
                        return 202, None
                    return 200, {"members": pool["members"]} if path[2:] == ["members"] else {"pool": pool}
        return super().octavia(method, path, one, body)

    def of_service(self, body):
        subnet = self.things["subnets"][body["vip_subnet_id"]]
        port = self.port_add({"name": "octavia-lb", "description": "", "network_id": subnet["network_id"], "device_owner": "Octavia", "fixed_ips": [{"subnet_id": subnet["id"]}]})
        new = self.add("loadbalancers", {**body, "provisioning_status": "ACTIVE", "operating_status": "ONLINE", "vip_port_id": port["id"], "vip_address": port["fixed_ips"][0]["ip_address"],
                                         "vip_network_id": subnet["network_id"], "tags": body.get("tags") or []})
        made = new["made"] = {"listeners": [], "pools": []}
        for i, listener in enumerate(body.get("listeners", [])):
            pool = listener.pop("default_pool", {})
            pool = {**pool, "id": f"{new['id']}-p{i}", "members": [dict(m, id=m["address"]) for m in pool.get("members", [])], "loadbalancers": [{"id": new["id"]}]}
            listener = {**listener, "id": f"{new['id']}-l{i}", "default_pool_id": pool["id"], "loadbalancers": [{"id": new["id"]}], "tags": listener.get("tags") or [], "provisioning_status": "ACTIVE"}
            pool["listeners"] = [{"id": listener["id"]}]
            made["listeners"].append(listener)
            made["pools"].append(pool)
        new["listeners"] = [{"id": x["id"]} for x in made["listeners"]]
        new["pools"] = [{"id": x["id"]} for x in made["pools"]]
        return new


class Boats(Credential):
    def __init__(self, directory):
        self.dir, self.cloud = Path(directory), Cloud()
        self.write(WITH.replace("OPTIONS", "userData: cloud-init"))

    def conf(self):
        env = {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(self.dir / "clouds.yaml"), "PROVIDER_PREFIX": "ab12c", "PROVIDER_SECRET": SECRET}
        said = subprocess.run([TOOL, self.dir / "cluster.yaml", self.dir / "state", "conf"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=True)
        return json.loads(said.stdout)


def test_controller(api, tmp_path):  # noqa: F811
    boats = Boats(tmp_path / "boats")
    cloud, child = boats.cloud, None
    try:
        boats.must("up")
        machine = boats.listed()["worker-2"]
        for name in ("control-1", "worker-2"):
            node(api, name, boats.listed()[name])
        conf = boats.conf()
        child, log = run(api, drive(boats, "addons", NAME), "openstack-cloud-controller-manager", conf, tmp_path)

        # it initialises the node
        n = until("the node is initialised", lambda: initialised(api, "worker-2"), child, log)
        labels = n["metadata"]["labels"]
        assert n["spec"]["providerID"] == machine["providerID"]
        assert {"type": "InternalIP", "address": machine["ip"]} in n["status"]["addresses"]
        assert (labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"], labels["node.kubernetes.io/instance-type"]) == ("other", "RegionOne", "m1.k8s")

        # and makes a load balancer, with the cluster's full name in its own
        ready(api, "worker-2", "True")
        for name in ("web", "left"):
            service(api, name)
        for name in ("web", "left"):
            ingress = until(f"Service {name} has an address", lambda: served(api, name), child, log)
            assert ingress[0]["ip"].startswith("203.0.113.")
        names = {b["name"] for b in cloud.things["loadbalancers"].values()}
        assert names == {"boats-ab12c", "kube_service_boats-ab12c_default_web", "kube_service_boats-ab12c_default_left"}
        assert machine["ip"] in {m["address"] for b in cloud.things["loadbalancers"].values() for p in b.get("made", {}).get("pools", []) for m in p["members"]}

        # a Service that is deleted has none
        assert api.kubectl("delete", "service", "web", "--wait=false").returncode == 0
        until("its load balancer is gone", lambda: len(cloud.things["loadbalancers"]) == 2 and len(cloud.things["floatingips"]) == 1, child, log)

        unrefused(child, log)

        # what it left behind goes with the cluster
        boats.must("down")
        assert not cloud.ours(MARK) and not cloud.things["loadbalancers"] and not cloud.things["floatingips"] and not boats.all()
    finally:
        ended(child)
        cloud.close()
