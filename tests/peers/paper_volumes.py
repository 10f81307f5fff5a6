"""What Cinder's CSI driver asks besides what slipway and the cloud controller ask (test_controller.py): the OpenStack on paper with volumes that are made,
attached, enlarged, detached and deleted one by one. `disks` is told when a disk appears at a server, grows or goes; without it they are only rows."""
from paper_openstack import Refused
from test_controller import Cloud


class Volumes(Cloud):
    disks = None

    def answer(self, method, path, query, body):
        one = {k: v[0] for k, v in query.items()}
        words = path.strip("/").split("/")
        if words[:3] == ["volume", "v3", "p"]:
            found = self.of_cinder(method, words[3:], one, body)
            if found:
                return found
        if words[:3] == ["compute", "v2.1", "servers"] and words[4:5] == ["os-volume_attachments"]:
            return self.at_server(method, words[3], words[5:], body)
        return super().answer(method, path, query, body)

    def of_cinder(self, method, path, one, body):
        """None: Paper knows it."""
        if len(path) < 2 or path[0] != "volumes" or method == "DELETE" or "metadata" in one:
            return None
        if path[1] == "detail":
            self.settled()
            return 200, {"volumes": [v for v in self.things["volumes"].values() if one.get("name") in (None, v["name"])]}
        self.settled()
        volume = self.things["volumes"].get(path[1])
        if not volume:
            raise Refused(404, f"Volume {path[1]} could not be found.")
        if path[2:] == ["action"]:
            size = body["os-extend"]["new_size"]
            if size <= volume["size"] or volume["status"] not in ("available", "in-use"):
                raise Refused(400, f"Invalid volume: it has {volume['size']} GiB and is {volume['status']}")
            volume["size"] = size
            if self.disks:
                self.disks.grow(volume)
            return 202, None
        return 200, {"volume": volume}

    def settled(self):
        for v in self.things["volumes"].values():
            v["status"] = "available" if v["status"] == "creating" else v["status"]

    def at_server(self, method, server, path, body):
        if server not in self.things["servers"]:
            raise Refused(404, f"Instance {server} could not be found.")
        if method == "POST":
            self.attach(body["volumeAttachment"]["volumeId"], server)
            return 200, {"volumeAttachment": {"volumeId": body["volumeAttachment"]["volumeId"], "serverId": server, "device": "/dev/vdb"}}
        volume = self.things["volumes"].get(path[0])
        if not volume or not any(a["server_id"] == server for a in volume["attachments"]):
            raise Refused(404, f"volume_id not found: {path[0]}")
        assert method == "DELETE"
        if self.disks:
            self.disks.detach(volume)
        volume.update(status="available", attachments=[])
        return 202, None

    def attach(self, volume, server):
        super().attach(volume, server)
        v = self.things["volumes"][volume]
        v["attachments"][0].update(id=volume, volume_id=volume, attachment_id=volume)
        if self.disks:
            self.disks.attach(v, server)

    def delete(self, kind, id):
        gone = [v for v in self.things["volumes"].values() if kind == "servers" and any(a["server_id"] == id for a in v["attachments"])]
        super().delete(kind, id)
        for v in gone if self.disks else []:
            self.disks.detach(v)
        if kind == "volumes" and self.disks:
            self.disks.remove(id)
