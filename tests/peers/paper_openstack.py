"""An OpenStack on paper: keystone, nova, neutron, octavia, glance and cinder, as many calls as slipway makes, answered from memory. It keeps what real ones
keep (a port binds to one server, an address is given once, a network with ports is not deleted, quotas), and misbehaves by (call, nth).
For tests that must be quick; the real services judge in test_openstack_real.py."""
import hashlib
import ipaddress
import json
import re
import threading
import time
import uuid
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PROJECT, PASSWORD = "0123456789abcdef0123456789abcdef", "correct SECRET horse"
NEUTRON = {"networks": "network", "subnets": "subnet", "routers": "router", "ports": "port", "security-groups": "security_group",
           "security-group-rules": "security_group_rule", "floatingips": "floatingip", "trunks": "trunk"}


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


class Paper:
    host = "127.0.0.1"

    def __init__(self):
        self.faults, self.asked, self.log, self.hidden, self.late = {}, Counter(), [], {}, []
        self.lock = threading.RLock()
        self.blind = False  # filters for marks are not known, and therefore ignored
        self.quota = {"servers": 100, "ports": 500, "cores": -1, "volumes": 100, "gigabytes": -1, "credentials": 10}
        self.cinder = True  # the catalogue has it
        self.trunks = self.port_security = True  # neutron has the extension
        self.flavors = [{"id": "f1", "name": "m1.k8s", "vcpus": 2, "ram": 2048, "disk": 20}]
        self.images = [{"id": "i1", "name": "debian-12", "status": "active", "min_disk": 2, "min_ram": 0}]
        self.import_methods, self.web = ["glance-direct"], {}  # what glance downloads: {url: bytes}
        self.filtered = False  # glance's settings do not allow the URL
        self.endless = False  # the answer with an image's bytes does not end
        self.hashes, self.tamper = "sha512", False  # the algorithm of os_hash_value, None: it only has MD5; it keeps other bytes than it got
        self.cut = "saving"  # the status of an image whose upload ended in the middle
        self.stalled, self.go = threading.Event(), threading.Event()  # the fault "stall" of an upload
        self.roles = ["admin", "member", "reader", "load-balancer_member"]
        self.restricted = False  # who is logged in has an application credential, which makes no others
        self.things = {kind: {} for kind in (*NEUTRON, "servers", "server_groups", "loadbalancers", "credentials", "volumes")}
        self.add("networks", {"name": "public", "router:external": True, "description": ""})
        self.add("networks", {"name": "theirs", "description": "somebody else's"})
        self.add("security-groups", {"name": "default", "description": "Default", "security_group_rules": []})
        self.http = ThreadingHTTPServer((self.host, 0), type("H", (Handler,), {"paper": self}))
        self.http.daemon_threads, self.http.handle_error = True, lambda *_: None
        self.url = f"http://{self.host}:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=[0.05], daemon=True).start()

    def entry(self):
        """Of clouds.yaml."""
        return {"region_name": "RegionOne", "auth": {"auth_url": f"{self.url}/identity", "username": "anna", "password": PASSWORD, "project_name": "p",
                                                     "user_domain_name": "Default", "project_domain_name": "Default"}}

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    # --- what tests ask ---
    def ours(self, mark):
        """Everything with the mark, and server groups by their name."""
        return [("images", i["name"]) for i in self.images if i.get("slipway-mark") == mark] + [(kind, t.get("name")) for kind, all in self.things.items() for t in all.values()
                if t.get("description") == mark or mark in t.get("tags", []) or t.get("metadata", {}).get("slipway-mark") == mark or (kind == "server_groups" and mark.removeprefix("slipway-") in t["name"])]

    def posts(self):
        return [c for c in self.log if c[0] in ("POST", "PUT", "DELETE") and not c[1].endswith("/auth/tokens")]

    def twins(self, mark):
        return [k for k, n in Counter(self.ours(mark)).items() if n > 1]

    # --- things ---
    def add(self, kind, thing):
        new = {"id": str(uuid.uuid4()), "tags": [], **thing}
        self.things[kind][new["id"]] = new
        return new

    def port_add(self, body):
        if len(self.things["ports"]) >= self.quota["ports"]:
            raise Refused(409, "Quota exceeded for resources: ['port'].")
        on = [s for s in self.things["subnets"].values() if s["network_id"] == body["network_id"]]
        body = {"fixed_ips": [{"subnet_id": on[0]["id"]}] if on else [], **body}
        subnet = self.things["subnets"][body["fixed_ips"][0]["subnet_id"]]
        taken = {f["ip_address"] for p in self.things["ports"].values() for f in p["fixed_ips"]}
        ip = body["fixed_ips"][0].get("ip_address") or next(str(i) for i in list(ipaddress.ip_network(subnet["cidr"]).hosts())[100:] if str(i) not in taken)
        if ip in taken:
            raise Refused(409, f"IP address {ip} already allocated in subnet {subnet['id']}")
        return self.add("ports", {"device_id": "", "device_owner": "", **self.port_settings({"port_security_enabled": True}, body), "fixed_ips": [{"subnet_id": subnet["id"], "ip_address": ip}]})

    def port_settings(self, port, body):
        """What neutron says of a port afterwards; without port security it has neither groups nor pairs."""
        new = {**port, **body}
        new["allowed_address_pairs"] = [{"mac_address": "fa:16:3e:00:00:01", **p} for p in new.get("allowed_address_pairs", [])]
        for pair in new["allowed_address_pairs"]:
            ipaddress.ip_network(pair["ip_address"])
        if len({p["ip_address"] for p in new["allowed_address_pairs"]}) < len(new["allowed_address_pairs"]):
            raise Refused(400, f"Request contains duplicate address pair: {new['allowed_address_pairs']}")
        if "security_groups" in new:
            new["security_groups"] = list(dict.fromkeys(new["security_groups"]))
        if "port_security_enabled" in body and not self.port_security:
            raise Refused(400, "Unrecognized attribute(s) 'port_security_enabled'")
        if not new["port_security_enabled"] and (new.get("security_groups") or new["allowed_address_pairs"]):
            raise Refused(409, "Port Security must be enabled in order to have allowed address pairs or security groups on a port.")
        missing = [g for g in new.get("security_groups", []) if g not in self.things["security-groups"]]
        if missing:
            raise Refused(404, f"Security group {missing} does not exist")
        return new

    def create(self, kind, body):
        if kind == "ports":
            return self.port_add(body)
        new = self.add(kind, body)
        if kind == "subnets":
            hosts = list(ipaddress.ip_network(body["cidr"]).hosts())
            new.update(gateway_ip=str(hosts[0]), allocation_pools=[{"start": str(hosts[1]), "end": str(hosts[-1])}])
        if kind == "security-groups":
            new["security_group_rules"] = []
        if kind == "security-group-rules":
            self.things["security-groups"][body["security_group_id"]]["security_group_rules"].append(new)
        if kind == "floatingips":
            new["floating_ip_address"] = f"203.0.113.{len(self.things['floatingips']) + 10}"
        if kind == "trunks":
            port = self.things["ports"].get(body["port_id"]) or {}
            if not port or port.get("trunk_details") or port["device_id"]:
                del self.things[kind][new["id"]]
                raise Refused(409 if port else 404, f"Port {body['port_id']} is currently in use and is not eligible for use as a parent port.")
            new.update(status="DOWN", admin_state_up=True, sub_ports=body.get("sub_ports", []))
            port["trunk_details"] = {"trunk_id": new["id"], "sub_ports": []}
        return new

    def delete(self, kind, id):
        if id not in self.things[kind]:
            raise Refused(404, f"{kind} {id} could not be found")
        users = {"networks": [s for s in self.things["subnets"].values() if s["network_id"] == id],
                 "subnets": [p for p in self.things["ports"].values() if p["fixed_ips"][0]["subnet_id"] == id],
                 "security-groups": [p for p in self.things["ports"].values() if id in p.get("security_groups", [])],
                 "routers": [p for p in self.things["ports"].values() if p["device_id"] == id],
                 "ports": [t for t in self.things["trunks"].values() if t["port_id"] == id],
                 "trunks": [p for p in self.things["ports"].values() if p.get("trunk_details", {}).get("trunk_id") == id and p["device_id"]]}.get(kind)
        if users:
            raise Refused(409, f"{kind} {id} is in use")
        gone = self.things[kind].pop(id)
        if kind == "trunks":
            self.things["ports"][gone["port_id"]].pop("trunk_details")
        if kind == "security-group-rules":
            self.things["security-groups"][gone["security_group_id"]]["security_group_rules"].remove(gone)
        for rule in gone.get("security_group_rules", []):
            self.things["security-group-rules"].pop(rule["id"], None)
        if kind == "volumes" and gone["status"] not in ("available", "error"):
            self.things[kind][id] = gone
            raise Refused(400, f"Invalid volume: Volume status must be available or error, not {gone['status']}")
        if kind == "servers":
            for v in self.things["volumes"].values():
                if any(a["server_id"] == id for a in v["attachments"]):
                    v.update(status="available", attachments=[])
            for p in self.things["ports"].values():
                p["device_id"] = "" if p["device_id"] == id else p["device_id"]
        if kind == "loadbalancers" and not [n for n in self.things["ports"].values() if n["id"] == gone["vip_port_id"]]:
            raise Refused(500, "its port is gone")

    def attach(self, volume, server):
        v = self.things["volumes"].get(volume)
        if not v or v["status"] != "available":
            raise Refused(400, f"Invalid volume: {volume} is {v['status'] if v else 'absent'}")
        v.update(status="in-use", attachments=[{"server_id": server, "device": "/dev/vdb"}])

    def cinder_answer(self, method, path, one, body):
        volumes = self.things["volumes"]
        if path == ["types"]:
            return 200, {"volume_types": [{"id": "t1", "name": "fast"}]}
        if path == ["limits"]:
            return 200, {"limits": {"absolute": {"maxTotalVolumes": self.quota["volumes"], "totalVolumesUsed": len(volumes), "maxTotalVolumeGigabytes": self.quota["gigabytes"],
                                                 "totalGigabytesUsed": sum(v["size"] for v in volumes.values())}}}
        if path == ["volumes", "detail"]:
            wanted = {} if self.blind else json.loads(one.get("metadata") or "{}")
            listed = [dict(v) for v in self.visible("volumes") if wanted.items() <= v["metadata"].items()]
            for v in volumes.values():  # it takes a while
                v["status"] = "available" if v["status"] == "creating" else v["status"]
            return 200, {"volumes": listed}
        if method == "DELETE":
            self.delete("volumes", path[1])
            return 202, None
        if len(volumes) >= self.quota["volumes"]:
            raise Refused(413, "VolumeLimitExceeded")
        new = self.add("volumes", {"status": "creating", "attachments": [], "description": None, **body["volume"]})
        if "imageRef" in new:
            new["volume_image_metadata"] = {"image_id": new["imageRef"]}
        return 202, {"volume": new}

    def flavor(self, id):
        """As nova tells it of a server (2.47 and later): without its id."""
        f = next((f for f in self.flavors if f["id"] == id), self.flavors[0])
        return {"original_name": f["name"], "vcpus": f["vcpus"], "ram": f["ram"], "disk": f["disk"]}

    def server(self, body, late=False):
        """late: as nova ends a call that began before another one took the port."""
        s = body["server"]
        if len(self.things["servers"]) >= self.quota["servers"]:
            raise Refused(403, "Quota exceeded for instances: Requested 1, but already used all")
        port = self.things["ports"][s["networks"][0]["port"]]
        if port["device_id"] and not late:
            raise Refused(409, f"Port {port['id']} is still in use.")
        new = self.add("servers", {"name": s["name"], "status": "ACTIVE", "tags": s["tags"], "metadata": s["metadata"], "user_data": s["user_data"],
                                   "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(0)), "OS-EXT-AZ:availability_zone": s.get("availability_zone") or "nova",
                                   "OS-EXT-STS:power_state": 1, "hint": body.get("os:scheduler_hints"), "image": {"id": s["imageRef"]} if s.get("imageRef") else "",
                                   "flavor": self.flavor(s.get("flavorRef"))})
        if late and port["device_id"]:
            s = {**s, "block_device_mapping_v2": []}
        for disk in s.get("block_device_mapping_v2", []):
            if disk["source_type"] == "volume":
                self.attach(disk["uuid"], new["id"])
        if port["device_id"]:
            new.update({"status": "ERROR", "OS-EXT-STS:power_state": 0, "fault": {"message": f"Port {port['id']} is still in use."}})
        else:
            for more in s["networks"]:
                self.things["ports"][more["port"]].update(device_id=new["id"], device_owner="compute:nova")
        return {"server": {"id": new["id"]}}

    def server_after_lost(self, body):
        """A call that was lost comes to its end beside the next one of the same name, before it or after it."""
        mine = [(late, b) for late, b in self.late if b["server"]["name"] == body["server"]["name"]]
        self.late = [x for x in self.late if x not in mine]
        for late, b in mine:
            if late == "late, first":
                self.server(b)
        made = self.server(body, bool(mine))
        for late, b in mine:
            if late == "late, second":
                self.server(b, True)
        return made

    # --- answers ---
    def answer(self, method, path, query, body):
        one = {k: v[0] for k, v in query.items() if not (self.blind and k in ("description", "tags"))}
        if path.startswith("/network/v2.0/"):
            return self.neutron(method, path.removeprefix("/network/v2.0/").split("/"), {k: query[k] for k in one}, body)
        if path.startswith("/compute/v2.1/"):
            return self.nova(method, path.removeprefix("/compute/v2.1/").split("/"), one, body)
        if path.startswith("/lb/v2/lbaas/"):
            return self.octavia(method, path.removeprefix("/lb/v2/lbaas/").split("/"), one, body)
        if path.startswith("/volume/v3/p/"):
            return self.cinder_answer(method, path.removeprefix("/volume/v3/p/").split("/"), one, body)
        if path.startswith("/identity/v3/users/u1/application_credentials"):
            return self.keystone(method, path.split("/")[6:], body)
        if path.startswith("/image/v2/"):
            return self.glance(method, path.removeprefix("/image/v2/").split("/"), one, body)
        raise Refused(404, path)

    def glance(self, method, path, one, body):
        if path == ["info", "import"]:
            return 200, {"import-methods": {"description": "", "type": "array", "value": self.import_methods}}
        if path == ["images"] and method == "GET":
            self.importing()
            fits = lambda i, k, v: v in i.get("tags", []) if k == "tag" else str(i.get(k)) == v  # noqa: E731
            return 200, {"images": [{k: v for k, v in i.items() if k != "bytes"} for i in self.images if self.hidden.get(i["id"], 0) < time.time()
                                    and all(fits(i, k, v) for k, v in one.items() if not (self.blind and k == "slipway-mark"))]}
        if path == ["images"]:
            self.images.append({"id": str(uuid.uuid4()), "status": "queued", "size": None, "min_ram": 0, "tags": [], **body})
            return 201, self.images[-1]
        image = next((i for i in self.images if i["id"] == path[1]), None)
        if not image:
            raise Refused(404, f"Failed to find image {path[1]}")
        if method == "DELETE":
            if image.get("protected"):
                raise Refused(403, f"Image {path[1]} is protected and cannot be deleted.")
            self.images.remove(image)
            return 204, None
        if path[2:] == ["import"]:
            assert body["method"]["name"] in self.import_methods
            if self.filtered:
                raise Refused(400, f"URI for web-download does not pass filtering: {body['method']['uri']}")
            image["uri"] = body["method"]["uri"]
            return 202, None
        if path[2] == "file" and self.endless:
            return 200, iter(lambda: bytes(1 << 16), None)
        if path[2] == "tags":
            image["tags"] = [*image["tags"], *({path[3]} - {*image["tags"]})]
            return 204, None
        return (200, image["bytes"]) if image["status"] == "active" else (204, None)

    def importing(self):
        """An import that was asked for goes on from one list to the next, and a failed one is queued again."""
        for i in self.images:
            if "uri" in i and i["status"] == "queued":
                i["status"] = "importing"
            elif i["status"] == "importing":
                data = self.web.get(i.pop("uri"))
                if data is None:
                    i.update(status="queued", os_glance_failed_import="ceph")
                else:
                    self.stored(i, [data])
                    i["bytes"] = data

    def stored(self, image, pieces):
        """Its bytes, which are not kept."""
        sums, size = {name: hashlib.new(name) for name in {"md5", self.hashes or "md5"}}, 0
        for piece in pieces:
            for s in sums.values():
                s.update(piece)
            size += len(piece)
        if self.tamper:
            sums["md5"].update(b"x") or sums[self.hashes or "md5"].update(b"x")
        image.update(status="active", size=size, checksum=sums["md5"].hexdigest())
        if self.hashes:
            image.update(os_hash_algo=self.hashes, os_hash_value=sums[self.hashes].hexdigest())

    def keystone(self, method, path, body):
        """Application credentials of the one user there is: a name is given once, and the secret is never shown again."""
        all = self.things["credentials"]
        if method == "GET":
            return 200, {"application_credentials": [{k: v for k, v in c.items() if k != "secret"} for c in self.visible("credentials")], "links": {"next": None}}
        if self.restricted:
            raise Refused(403, "Using method 'application_credential' is not allowed for managing additional application credentials.")
        if method == "DELETE":
            self.delete("credentials", path[0])
            return 204, None
        new = body["application_credential"]
        if new["name"] in [c["name"] for c in all.values()]:
            raise Refused(409, "Conflict occurred attempting to store application_credential - Duplicate entry found with name " + new["name"])
        if len(all) >= self.quota["credentials"]:
            raise Refused(403, f"Unable to create additional application credentials, maximum of {self.quota['credentials']} already exceeded for user.")
        missing = [r["name"] for r in new.get("roles", []) if r["name"] not in self.roles]
        if missing:
            raise Refused(404, f"Could not find role assignment with role: {missing}.")
        made = self.add("credentials", {"description": None, "roles": [{"name": r} for r in self.roles], "unrestricted": False, **new})
        return 201, {"application_credential": made}

    def neutron(self, method, path, many, body):
        """many: {filter: values}, of which one must fit."""
        kind = path[0]
        if kind == "extensions":
            return 200, {"extensions": [{"alias": a, "name": a} for a in ("router", "security-group", *(("trunk", "trunk-details") if self.trunks else ()), *(("port-security",) if self.port_security else ()))]}
        if kind == "trunks" and not self.trunks:
            raise Refused(404, "The resource could not be found.")
        if kind == "quotas":
            free = {"limit": 10, "used": 0, "reserved": 0}
            free["limit"] = self.quota.get("floatingips", 10)
            return 200, {"quota": {k: free for k in ("network", "subnet", "router", "floatingip", "security_group", "security_group_rule")}
                         | {"port": {"limit": self.quota["ports"], "used": len(self.things["ports"]), "reserved": 0}}}
        if path[2:] == ["add_router_interface"]:
            subnet = self.things["subnets"][body["subnet_id"]]
            self.add("ports", {"name": "", "description": "", "device_id": path[1], "device_owner": "network:router_interface", "network_id": subnet["network_id"],
                               "fixed_ips": [{"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}]})
            return 200, {}
        if path[2:] == ["remove_router_interface"]:
            mine = [p["id"] for p in self.things["ports"].values() if p["device_id"] == path[1]]
            for i in mine:
                self.things["ports"].pop(i)
            return (200, {}) if mine else (404, {"NeutronError": {"message": "no interface"}})
        word = NEUTRON[kind]
        if method == "GET":
            plural = kind.replace("-", "_")
            return 200, {plural: [t for t in self.visible(kind) if all(str(t.get(k)) in v for k, v in many.items() if k != "limit")]}
        if method == "DELETE":
            self.delete(kind, path[1])
            return 204, None
        if method == "PUT" and kind == "ports" and path[1] in self.things[kind]:
            port = self.things[kind][path[1]]
            port.update(self.port_settings(port, body[word]))
            return 200, {word: port}
        plural = word + "s"
        if plural in body:
            before = {k: dict(v) for k, v in self.things.items()}
            try:
                return 201, {plural: [self.create(kind, b) for b in body[plural]]}
            except Refused:
                self.things = before
                raise
        return 201, {word: self.create(kind, body[word])}

    def visible(self, kind):
        return [t for t in self.things[kind].values() if self.hidden.get(t["id"], 0) < time.time()]

    def nova(self, method, path, one, body):
        if path == [""]:
            return 200, {"version": {"id": "v2.1", "version": "2.96", "min_version": "2.1"}}
        if path == ["servers", "detail"]:
            return 200, {"servers": [s for s in self.visible("servers") if one.get("tags") in (None, *s["tags"])]}
        if path == ["servers"]:
            return 202, self.server_after_lost(body)
        if path[0] == "servers" and method == "DELETE":
            self.delete("servers", path[1])
            return 204, None
        if path[0] == "servers" and path[2:] == ["os-volume_attachments"]:
            self.attach(body["volumeAttachment"]["volumeId"], path[1])
            return 200, {"volumeAttachment": {}}
        if path[0] == "servers" and path[2:] == ["os-interface"]:
            port = self.things["ports"][body["interfaceAttachment"]["port_id"]]
            if port["device_id"]:
                raise Refused(409, f"Port {port['id']} is still in use.")
            port.update(device_id=path[1], device_owner="compute:nova")
            return 200, {"interfaceAttachment": {"port_id": port["id"]}}
        if path[0] == "servers" and path[2:] == ["action"]:
            server = self.things["servers"][path[1]]
            server["status"] = {"os-start": "ACTIVE", "os-stop": "SHUTOFF"}.get(next(iter(body)), server["status"])
            return (200, {"output": "booted\n"}) if "os-getConsoleOutput" in body else (202, None)
        if path == ["flavors", "detail"]:
            return 200, {"flavors": self.flavors}
        if path == ["os-availability-zone"]:
            return 200, {"availabilityZoneInfo": [{"zoneName": z, "zoneState": {"available": True}} for z in ("nova", "other")]}
        if path == ["limits"]:
            return 200, {"limits": {"absolute": {"maxTotalInstances": self.quota["servers"], "totalInstancesUsed": len(self.things["servers"]), "maxTotalCores": self.quota["cores"],
                                                 "totalCoresUsed": sum(s["flavor"]["vcpus"] for s in self.things["servers"].values()), "maxTotalRAMSize": -1, "totalRAMUsed": 0}}}
        if path[0] == "os-server-groups":
            if method == "GET":
                return 200, {"server_groups": list(self.things["server_groups"].values())}
            if method == "DELETE":
                self.delete("server_groups", path[1])
                return 204, None
            return 200, {"server_group": self.add("server_groups", body["server_group"])}
        raise Refused(404, "/".join(path))

    def octavia(self, method, path, one, body):
        balancers = self.things["loadbalancers"]
        if path == ["loadbalancers"] and method == "GET":
            return 200, {"loadbalancers": [b for b in self.visible("loadbalancers") if one.get("tags") in (None, *b["tags"])]}
        if path == ["loadbalancers"]:
            b = body["loadbalancer"]
            new = self.add("loadbalancers", {**b, "provisioning_status": "ACTIVE", "pools": [{"id": "pool-" + b["name"]}]})
            new["members"] = [dict(m, id=m["address"]) for m in b["listeners"][0]["default_pool"]["members"]]
            new["listeners"] = [{**b["listeners"][0], "id": "listener-" + b["name"]}]
            return 201, {"loadbalancer": new}
        if path[0] == "loadbalancers" and method == "DELETE":
            self.delete("loadbalancers", path[1])
            return 204, None
        if path[0] == "loadbalancers":
            balancers[path[1]].update(body["loadbalancer"])
            return 200, {"loadbalancer": balancers[path[1]]}
        if path[0] == "listeners":
            b, = (b for b in balancers.values() if b["listeners"][0]["id"] == path[1])
            assert len(set(body["listener"]["allowed_cidrs"])) == len(body["listener"]["allowed_cidrs"])
            b["listeners"][0].update(body["listener"])
            return 200, {"listener": b["listeners"][0]}
        b = next(b for b in balancers.values() if b["pools"][0]["id"] == path[1])
        if method == "PUT":
            b["members"] = [dict(m, id=m["address"]) for m in body["members"]]
            return 202, None
        return 200, {"members": b["members"]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send_endless(self, pieces):
        self.close_connection = True
        self.send_response_only(200)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)

    def send(self, status, body, headers=None):
        text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header("Date", formatdate(usegmt=True))
        for name, value in {"Content-Type": "application/json", "x-openstack-request-id": f"req-{len(self.paper.log)}", **(headers or {})}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def token(self):
        stamp = lambda t: time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(t))  # noqa: E731
        at = lambda path: [{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": self.paper.url + path}]  # noqa: E731
        catalog = [{"type": t, "endpoints": at(p)} for t, p in (("compute", "/compute/v2.1"), ("network", "/network"), ("load-balancer", "/lb"), ("image", "/image"),
                                                                              *([("volumev3", "/volume/v3/p")] if self.paper.cinder else []))]
        self.send(201, {"token": {"expires_at": stamp(time.time() + 3600), "issued_at": stamp(time.time()), "project": {"id": PROJECT}, "user": {"id": "u1"},
                                  "roles": [{"id": r, "name": r} for r in self.paper.roles], "catalog": catalog}}, {"X-Subject-Token": "gAAAA-SECRET"})

    def login(self, text):
        """With a password, or with an application credential by its name."""
        given = json.loads(text)["auth"]["identity"].get("application_credential")
        known = [c for c in self.paper.things["credentials"].values() if given and c["name"] == given.get("name") and c["secret"] == given.get("secret")]
        if given and not (known and given.get("user", {}).get("id") == "u1"):
            self.send(401, {"error": {"code": 401, "message": "The request you have made requires authentication."}})
        else:
            self.token()

    def take_image(self, id, fault):
        """Of any size, in pieces."""
        paper, left = self.paper, int(self.headers["Content-Length"])
        image = next(i for i in paper.images if i["id"] == id)
        assert self.headers["Content-Type"] == "application/octet-stream"

        def pieces():
            nonlocal left
            while left and (piece := self.rfile.read1(min(left, 1 << 20))):
                left -= len(piece)
                if fault == "stall":
                    paper.stalled.set()
                    paper.go.wait()
                yield piece
                if fault == "drop before":
                    return
        if isinstance(fault, tuple):
            while left and (piece := self.rfile.read1(min(left, 1 << 20))):
                left -= len(piece)
            self.send(*fault)
            return
        if image["status"] != "queued":
            self.send(409, {"error": {"code": 409, "message": f"Image status transition from {image['status']} to saving is not allowed"}})
            return
        image["status"] = "saving"
        try:
            paper.stored(image, pieces())
        except OSError:
            left = left or 1
        if left:
            image["status"] = paper.cut
        self.close_connection = bool(left) or fault == "drop after"
        if not self.close_connection:
            self.send(204, None)

    def handle_one(self):
        url, paper = urlsplit(self.path), self.paper
        upload = self.command == "PUT" and url.path.endswith("/file")
        text = b"" if upload else self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = f"{self.command} {url.path}"
        with paper.lock:
            paper.asked[call] += 1
            paper.log.append((self.command, url.path, url.query, text.decode()))
            kinds = paper.faults.get(call) or paper.faults.get(re.sub(r"[0-9a-f]{8}-[-0-9a-f]{27}", "*", call)) or []
            fault = kinds.pop(0) if kinds else None
        if upload:
            self.take_image(url.path.split("/")[-2], fault)
            return
        if fault == "drop before" or str(fault).startswith("late"):
            if fault != "drop before":
                paper.late.append((fault, json.loads(text)))
            self.close_connection = True
            return
        if isinstance(fault, tuple):
            self.send(*fault)
            return
        if url.path.endswith("/auth/tokens"):
            self.login(text)
            return
        if url.path == "/lb/":
            self.send(200, {"versions": [{"id": "v2.0"}, {"id": "v2.26"}]})
            return
        with paper.lock:
            before = {t["id"] for all in paper.things.values() for t in all.values()}
            try:
                status, body = paper.answer(self.command, url.path, parse_qs(url.query), json.loads(text) if text else None)
            except Refused as e:
                status, body = e.status, {"error": {"code": e.status, "message": e.message}}
            if fault == "hidden":
                for all in paper.things.values():
                    paper.hidden.update({i: time.time() + 8 for i in all if i not in before})
        if fault == "drop after" or fault == "hidden":
            self.close_connection = True
        elif hasattr(body, "__next__"):
            self.send_endless(body)
        else:
            self.send(status, body)

    do_GET = do_POST = do_DELETE = do_PUT = handle_one
