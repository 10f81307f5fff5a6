"""The OpenStack on paper (paper_openstack.py) with the calls that Terraform's provider for OpenStack makes besides: the versions of keystone, one object by its
id, Octavia's listeners, pools, members and monitors, Designate's records, and the fields that the provider compares with its files. As the references of these APIs describe them, with
what they refuse: a floating IP of a port that no router leads to, a router's interface that floating IPs need, a rule that exists, changes of a load balancer
that has not settled."""
import copy
import uuid

from paper_openstack import NEUTRON, PROJECT, Paper, Refused

COMMON = {"tenant_id": PROJECT, "project_id": PROJECT, "description": "", "revision_number": 1}
FIELDS = {
    "networks": {"status": "ACTIVE", "admin_state_up": True, "shared": False, "router:external": False, "mtu": 1500, "port_security_enabled": True, "subnets": [],
                 "availability_zone_hints": [], "qos_policy_id": None, "dns_domain": ""},
    "subnets": {"enable_dhcp": True, "ip_version": 4, "dns_nameservers": [], "host_routes": [], "service_types": [], "subnetpool_id": None, "ipv6_address_mode": None, "ipv6_ra_mode": None},
    "routers": {"status": "ACTIVE", "admin_state_up": True, "distributed": False, "ha": False, "routes": [], "availability_zone_hints": [], "external_gateway_info": None},
    "security-groups": {"stateful": True},
    "security-group-rules": {"protocol": None, "port_range_min": None, "port_range_max": None, "remote_ip_prefix": None, "remote_group_id": None, "ethertype": "IPv4"},
    "ports": {"status": "DOWN", "admin_state_up": True, "name": "", "allowed_address_pairs": [], "extra_dhcp_opts": [], "port_security_enabled": True, "dns_name": "", "dns_assignment": [],
              "qos_policy_id": None, "binding:vnic_type": "normal", "binding:host_id": "", "binding:profile": {}, "binding:vif_details": {}, "binding:vif_type": "unbound"},
    "floatingips": {"port_id": None, "fixed_ip_address": None, "router_id": None, "dns_name": "", "dns_domain": ""},
    "loadbalancers": {"operating_status": "ONLINE", "provisioning_status": "ACTIVE", "provider": "amphora", "flavor_id": None, "availability_zone": None, "admin_state_up": True},
    "listeners": {"admin_state_up": True, "connection_limit": -1, "timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000, "timeout_tcp_inspect": 0,
                  "insert_headers": {}, "sni_container_refs": [], "default_tls_container_ref": None, "allowed_cidrs": None, "default_pool_id": None},
    "pools": {"admin_state_up": True, "session_persistence": None, "healthmonitor_id": None, "members": [], "listeners": [], "loadbalancers": []},
    "members": {"admin_state_up": True, "weight": 1, "backup": False, "monitor_address": None, "monitor_port": None},
    "healthmonitors": {"admin_state_up": True, "max_retries_down": 3, "http_method": None, "url_path": None, "expected_codes": None},
}
SETTLED = {"provisioning_status": "ACTIVE", "operating_status": "ONLINE"}
OCTAVIA = {"loadbalancers": "loadbalancer", "listeners": "listener", "pools": "pool", "healthmonitors": "healthmonitor"}


def as_python(value):
    """Of a query."""
    return [as_python(v) for v in value] if isinstance(value, list) else {"true": "True", "false": "False"}.get(value, value)


class WithNames:
    """Of a handler: the catalogue that comes with a token has Designate too."""

    def send(self, status, body, headers=None):
        if isinstance(body, dict) and "token" in body:
            body["token"]["catalog"].append({"type": "dns", "endpoints": [{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": self.paper.url + "/dns"}]})
        super().send(status, body, headers)


class TerraformPaper(Paper):
    settles = True  # a load balancer says once that it is being changed; until then it refuses another change

    def __init__(self):
        super().__init__()
        self.things |= {kind: {} for kind in ("listeners", "pools", "members", "healthmonitors", "zones", "recordsets")}
        self.add("zones", {"name": "example.net.", "type": "PRIMARY", "email": "ops@example.net", "ttl": 3600, "status": "ACTIVE"})
        self.http.RequestHandlerClass = type("H", (WithNames, self.http.RequestHandlerClass), {})
        self.changing = set()  # load balancers
        for kind in ("networks", "security-groups"):
            for thing in self.things[kind].values():
                self.complete(kind, thing)

    def complete(self, kind, thing):
        for name, value in {**FIELDS.get(kind, {}), **COMMON}.items():
            thing.setdefault(name, copy.deepcopy(value))

    def get(self, kind, id):
        if id not in self.things[kind]:
            raise Refused(404, f"{kind} {id} could not be found")
        return self.things[kind][id]

    def answer(self, method, path, query, body):
        if path.rstrip("/") == "/identity":
            return 300, {"versions": {"values": [{"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{self.url}/identity/v3/"}]}]}}
        if path.startswith("/dns/v2/zones"):
            return self.designate(method, path.split("/")[4:], {k: v[0] for k, v in query.items()}, body)
        if method == "GET" and path.startswith("/image/v2/images/"):
            image = next((i for i in self.images if i["id"] == path.split("/")[-1]), None)
            return (200, image) if image else (404, {})
        return super().answer(method, path.replace("/lb/v2.0/", "/lb/v2/", 1), query, body)

    # ---- neutron ----

    def neutron(self, method, path, one, body):
        if method == "GET" and len(path) == 2 and path[0] in NEUTRON:
            return 200, {NEUTRON[path[0]]: self.get(*path)}
        if method == "PUT" and path[2:] == ["add_router_interface"]:
            super().neutron(method, path, one, body)
            port = next(p for p in reversed(self.things["ports"].values()) if p["device_id"] == path[1])
            self.complete("ports", port)
            port.update(status="ACTIVE", mac_address=self.mac(port))
            return 200, {"id": path[1], "subnet_id": body["subnet_id"], "port_id": port["id"], "tenant_id": PROJECT}
        if method == "PUT" and path[2:] == ["remove_router_interface"]:
            return self.interface_removed(path[1], body["subnet_id"])
        if method == "PUT" and len(path) == 2 and path[0] in NEUTRON:
            self.get(*path).update(body[NEUTRON[path[0]]])
            return 200, {NEUTRON[path[0]]: self.get(*path)}
        return super().neutron(method, path, {k: as_python(v) for k, v in one.items()}, body)

    def interface_removed(self, router, subnet):
        ports = [p for p in self.things["ports"].values() if p["device_id"] == router and p["fixed_ips"][0]["subnet_id"] == subnet]
        if not ports:
            raise Refused(404, f"Router {router} has no interface on subnet {subnet}")
        if any(f["router_id"] == router and self.things["ports"][f["port_id"]]["fixed_ips"][0]["subnet_id"] == subnet for f in self.things["floatingips"].values()):
            raise Refused(409, f"Router interface for subnet {subnet} on router {router} cannot be deleted, as it is required by one or more floating IPs.")
        del self.things["ports"][ports[0]["id"]]
        return 200, {"id": router, "subnet_id": subnet, "port_id": ports[0]["id"], "tenant_id": PROJECT}

    @staticmethod
    def mac(port):
        return "fa:16:3e:" + ":".join(port["id"][i:i + 2] for i in (0, 2, 4))

    def create(self, kind, body):
        if kind == "security-group-rules":
            self.rule_is_new(body)
        reached = self.router_of(body) if kind == "floatingips" else None
        new = super().create(kind, body)
        if kind in FIELDS:
            self.complete(kind, new)
        if kind == "subnets":
            self.things["networks"][new["network_id"]].setdefault("subnets", []).append(new["id"])
        if kind == "security-groups":
            for family in ("IPv4", "IPv6"):
                self.create("security-group-rules", {"security_group_id": new["id"], "direction": "egress", "ethertype": family})
        if kind == "routers" and new["external_gateway_info"]:
            new["external_gateway_info"] = {"enable_snat": True, "external_fixed_ips": [], **new["external_gateway_info"]}
        if kind == "floatingips":
            port = self.things["ports"].get(new["port_id"])
            taken = {f["floating_ip_address"] for f in self.things["floatingips"].values()}
            new.update(floating_ip_address=next(a for n in range(10, 250) if (a := f"198.51.100.{n}") not in taken), router_id=reached, status="ACTIVE" if port else "DOWN",
                       fixed_ip_address=port["fixed_ips"][0]["ip_address"] if port else None)
        return new

    def port_add(self, body):
        port = super().port_add(body)
        self.complete("ports", port)
        port.setdefault("security_groups", [g["id"] for g in self.things["security-groups"].values() if g["name"] == "default"])
        port["mac_address"] = body.get("mac_address") or self.mac(port)
        port["allowed_address_pairs"] = [{"mac_address": port["mac_address"], **pair} for pair in body.get("allowed_address_pairs", [])]
        return port

    def rule_is_new(self, body):
        keys = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id")
        for rule in self.get("security-groups", body["security_group_id"])["security_group_rules"]:
            if all(rule.get(k) == body.get(k, FIELDS["security-group-rules"].get(k)) for k in keys):
                raise Refused(409, f"Security group rule already exists. Rule id is {rule['id']}.")

    def router_of(self, body):
        """The router between a port and the external network."""
        if not body.get("port_id"):
            return None
        subnet = self.get("ports", body["port_id"])["fixed_ips"][0]["subnet_id"]
        for p in self.things["ports"].values():
            router = self.things["routers"].get(p["device_id"])
            if router and p["fixed_ips"][0]["subnet_id"] == subnet and (router["external_gateway_info"] or {}).get("network_id") == body["floating_network_id"]:
                return router["id"]
        raise Refused(404, f"External network {body['floating_network_id']} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {body['port_id']} with a Floating IP.")

    def delete(self, kind, id):
        if kind == "networks" and any(p["network_id"] == id for p in self.things["ports"].values()):
            raise Refused(409, f"Unable to complete operation on network {id}. There are one or more ports still in use on the network.")
        if kind == "loadbalancers":
            mine = [p for p in self.things["ports"].values() if p["device_id"] == f"lb-{id}"]
        gone = copy.copy(self.things[kind].get(id))
        super().delete(kind, id)
        if kind == "loadbalancers":
            for port in mine:
                del self.things["ports"][port["id"]]
            self.changing.discard(id)
        if kind == "ports":
            for f in self.things["floatingips"].values():
                if f["port_id"] == id:
                    f.update(port_id=None, fixed_ip_address=None, router_id=None, status="DOWN")
        if kind == "subnets" and gone["network_id"] in self.things["networks"]:
            self.things["networks"][gone["network_id"]]["subnets"].remove(id)

    # ---- nova ----

    def server(self, body, late=False):
        """Of a client of the first version, which has no tags."""
        s = body["server"]
        body = {**body, "server": {"tags": [], "metadata": {}, **s}}
        made = super().server(body, late)
        server = self.things["servers"][made["server"]["id"]]
        server.update(security_groups=[{"name": "default"}], key_name=s.get("key_name"), flavor_id=s["flavorRef"], updated=server["created"])
        for port in self.things["ports"].values():
            if port["device_id"] == server["id"]:
                port["status"] = "ACTIVE"
        return made

    def server_told(self, server):
        """As versions before 2.47 tell it."""
        addresses = {}
        for p in self.things["ports"].values():
            if p["device_id"] == server["id"]:
                network = self.things["networks"][p["network_id"]]["name"]
                addresses.setdefault(network, []).extend({"addr": f["ip_address"], "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": p["mac_address"]} for f in p["fixed_ips"])
        return {**server, "flavor": {"id": server["flavor_id"], "links": []}, "addresses": addresses, "accessIPv4": "", "accessIPv6": "", "tenant_id": PROJECT, "user_id": "u1",
                "hostId": "", "progress": 0}

    def nova(self, method, path, one, body):
        if method == "GET" and path[0] == "servers" and path[1:] != ["detail"]:
            server = self.get("servers", path[1])
            return (200, {"tags": server["tags"]}) if path[2:] == ["tags"] else (200, {"server": self.server_told(server)})
        if method == "GET" and path[0] == "flavors" and path[1:] != ["detail"]:
            flavor = next((f for f in self.flavors if f["id"] == path[1]), None)
            return (200, {"flavor": flavor}) if flavor else (404, {"itemNotFound": {"code": 404, "message": "Flavor could not be found."}})
        if path[0] == "os-server-groups" and method == "POST":
            group = body["server_group"]
            policy = group.get("policy") or group["policies"][0]
            return 200, {"server_group": self.add("server_groups", {"name": group["name"], "policies": [policy], "members": [], "metadata": {}})}
        if path[0] == "os-server-groups" and method == "GET" and len(path) == 2:
            return 200, {"server_group": self.get("server_groups", path[1])}
        return super().nova(method, path, one, body)

    # ---- octavia ----

    def change(self, id):
        """Of a load balancer or anything of it."""
        if id in self.changing:
            raise Refused(409, f"Load Balancer {id} is immutable and cannot be updated.")
        if self.settles:
            self.changing.add(id)

    def balancer_of(self, kind, thing):
        if kind == "listeners":
            return thing["loadbalancers"][0]["id"]
        if kind == "pools":
            return (thing["loadbalancers"] or self.get("listeners", thing["listeners"][0]["id"])["loadbalancers"])[0]["id"]
        return self.balancer_of("pools", self.get("pools", thing["pools"][0]["id"]))

    def octavia(self, method, path, one, body):
        if path[0] == "pools" and path[2:3] == ["members"] and path[1] in self.things["pools"]:
            return self.members(method, self.get("pools", path[1]), path[3:], body)
        kind = path[0]
        if kind not in OCTAVIA or (method == "GET" and len(path) == 1) or one.get("cascade") or (method == "POST" and "listeners" in next(iter(body.values()))):
            return super().octavia(method, path, one, body)
        if method == "POST":
            return 201, {OCTAVIA[kind]: getattr(self, f"{OCTAVIA[kind]}_add")(body[OCTAVIA[kind]])}
        thing = self.get(kind, path[1])
        if method == "GET":
            status = SETTLED
            if kind == "loadbalancers" and path[1] in self.changing:
                self.changing.remove(path[1])
                status = {**SETTLED, "provisioning_status": "PENDING_UPDATE"}
            return 200, {OCTAVIA[kind]: {**thing, **status}}
        self.change(path[1] if kind == "loadbalancers" else self.balancer_of(kind, thing))
        self.part_delete(kind, thing)
        return 204, None

    def part_add(self, kind, thing):
        new = self.add(kind, thing)
        self.complete(kind, new)
        return new

    def loadbalancer_add(self, body):
        """Octavia makes the port."""
        subnet = self.get("subnets", body["vip_subnet_id"])
        id = str(uuid.uuid4())
        fixed = {"subnet_id": subnet["id"], **({"ip_address": body["vip_address"]} if body.get("vip_address") else {})}
        port = self.port_add({"name": f"octavia-lb-{id}", "network_id": subnet["network_id"], "fixed_ips": [fixed], "device_id": f"lb-{id}", "device_owner": "Octavia"})
        new = self.part_add("loadbalancers", {"id": id, **body, "vip_port_id": port["id"], "vip_network_id": subnet["network_id"], "vip_address": port["fixed_ips"][0]["ip_address"], "listeners": [],
                                              "pools": [], "members": []})
        self.change(id)
        return new

    def listener_add(self, body):
        self.change(body["loadbalancer_id"])
        new = self.part_add("listeners", {**body, "loadbalancers": [{"id": body["loadbalancer_id"]}]})
        self.get("loadbalancers", body["loadbalancer_id"])["listeners"].append({"id": new["id"]})
        return new

    def pool_add(self, body):
        listener = self.get("listeners", body["listener_id"])
        if listener["default_pool_id"]:
            raise Refused(409, f"Listener {listener['id']} is already using pool {listener['default_pool_id']}.")
        balancer = listener["loadbalancers"][0]["id"]
        self.change(balancer)
        new = self.part_add("pools", {**body, "listeners": [{"id": listener["id"]}], "loadbalancers": [{"id": balancer}]})
        listener["default_pool_id"] = new["id"]
        self.get("loadbalancers", balancer)["pools"].append({"id": new["id"]})
        return new

    def healthmonitor_add(self, body):
        pool = self.get("pools", body["pool_id"])
        self.change(self.balancer_of("pools", pool))
        new = self.part_add("healthmonitors", {**body, "pools": [{"id": pool["id"]}]})
        pool["healthmonitor_id"] = new["id"]
        return new

    def members(self, method, pool, rest, body):
        balancer = self.balancer_of("pools", pool)
        if method == "GET":
            return (200, {"member": {**self.get("members", rest[0]), **SETTLED}}) if rest else (200, {"members": [self.things["members"][m["id"]] for m in pool["members"]]})
        if method == "POST":
            wanted = body["member"]
            if any((m["address"], m["protocol_port"]) == (wanted["address"], wanted["protocol_port"]) for m in (self.things["members"][i["id"]] for i in pool["members"])):
                raise Refused(409, "Another member on this pool is already using ip and port")
            self.change(balancer)
            new = self.part_add("members", wanted)
            pool["members"].append({"id": new["id"]})
            return 201, {"member": {**new, **SETTLED}}
        self.get("members", rest[0])
        self.change(balancer)
        del self.things["members"][rest[0]]
        pool["members"].remove({"id": rest[0]})
        return 204, None

    def part_delete(self, kind, thing):
        id = thing["id"]
        if kind == "loadbalancers" and (thing["listeners"] or thing["pools"]):
            self.changing.discard(id)
            raise Refused(409, f"Cannot delete Load Balancer {id} - it has children")
        if kind in ("listeners", "pools"):
            self.get("loadbalancers", self.balancer_of(kind, thing))[kind].remove({"id": id})
        if kind == "pools":
            for listener in thing["listeners"]:
                self.get("listeners", listener["id"])["default_pool_id"] = None
            for part, of in (("members", [m["id"] for m in thing["members"]]), ("healthmonitors", [thing["healthmonitor_id"]])):
                for i in of:
                    self.things[part].pop(i, None)
        if kind == "healthmonitors":
            self.get("pools", thing["pools"][0]["id"])["healthmonitor_id"] = None
        self.delete(kind, id)

    # ---- designate ----

    def designate(self, method, path, one, body):
        """A change is accepted, and active when it is looked at."""
        if path[1:] == ["recordsets"] and method == "POST":
            zone = self.get("zones", path[0])
            if not body["name"].endswith("." + zone["name"]) or any(r["name"] == body["name"] and r["type"] == body["type"] for r in self.things["recordsets"].values()):
                raise Refused(409, "Duplicate RecordSet" if body["name"].endswith(zone["name"]) else "RecordSet is not in the zone")
            return 202, {**self.add("recordsets", {"ttl": None, "description": None, **body, "zone_id": zone["id"], "zone_name": zone["name"], "status": "ACTIVE"}), "status": "PENDING"}
        if path[1:2] == ["recordsets"]:
            record = self.get("recordsets", path[2])
            if method == "DELETE":
                self.delete("recordsets", path[2])
            return (202 if method == "DELETE" else 200), record
        if path:
            return 200, self.get("zones", path[0])
        return 200, {"zones": [z for z in self.things["zones"].values() if one.get("name") in (None, z["name"])], "links": {}, "metadata": {"total_count": 1}}
