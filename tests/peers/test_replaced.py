"""A rolling replacement with Kubernetes on machines: another flavor or image in the file, and each machine is made anew, one after another, while clients use the
API through the balancer. The cloud is the OpenStack on paper whose machines boot."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from booting import Booting, OnCloud, named
from clients import NAMESPACE, Api, Reader, Writer
from harness import NEWEST, SHARED_DISK, SLIPWAY, until
from test_openstack_cluster import FILE, BootingPaper, OpenStack

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root"), pytest.mark.soak]
NETWORK = "10.195.0.0/24"
CONTROL = [f"control-{i}" for i in (1, 2, 3)]
ETCDCTL = ("etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/healthcheck-client.crt "
           "--key /etc/kubernetes/pki/etcd/healthcheck-client.key --command-timeout 60s ")


class Told(BootingPaper):
    """Calls told(method, name) when it has deleted or made a server, before it answers."""
    told = staticmethod(lambda method, name: None)

    def server(self, body, late=False):
        made = super().server(body, late)
        self.told("POST", body["server"]["name"])
        return made

    def delete(self, kind, id):
        name = self.things[kind].get(id, {}).get("name")
        super().delete(kind, id)
        if kind == "servers":
            self.told("DELETE", name)


class Replaced(OnCloud):
    def popen(self, *args):
        argv = [str(a) for a in named(self.hosts, SLIPWAY, *args)]
        return subprocess.Popen(argv, env=self.cloud.env(), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def members(self, asked):
        """{name: whether it votes}, as the member of a node that the test asks on its machine says; every one must be healthy."""
        id = self.cloud.servers()[asked]["id"]
        list = json.loads(self.booting.on_machine(id, "sh", "-c", f"{ETCDCTL} member list -w json"))["members"]
        healthy = json.loads(self.booting.on_machine(id, "sh", "-c", f"{ETCDCTL} endpoint health --cluster -w json"))
        assert len(healthy) == len(list) and all(h["health"] for h in healthy), (list, healthy)
        return {m["name"]: not m.get("isLearner") for m in list}

    def replaced(self, before, names, **with_):
        """Other machines with the names, ports and addresses of those before; the others are the same ones."""
        now = self.cloud.servers()
        assert set(now) == set(before)
        for name, s in now.items():
            assert s["address"] == before[name]["address"] and (s["id"] != before[name]["id"]) == (name in names), name
            assert name not in names or with_.items() <= self.made_from(name).items(), self.made_from(name)
        self.is_whole()
        assert self.members("control-1") == dict.fromkeys(CONTROL, True)
        self.slipway("plan", "--exit-code")
        assert json.loads(self.slipway("status", "-o", "json"))["healthy"]

    def made_from(self, name):
        s, = (s for s in self.cloud.paper.things["servers"].values() if s["name"] == name)
        return {"flavor": s["flavor"]["original_name"], "image": s["image"]["id"]}


class Clients:
    """One writes and one reads through the balancer for as long as something goes on: nothing acknowledged is lost, and the balancer always has a server."""

    def __init__(self, c):
        self.c = c
        self.relay, = c.booting.relays.values()

    def __enter__(self):
        api = lambda: Api(self.c.dir / "kubeconfig")  # noqa: E731
        self.writer = Writer(api())
        self.writer.number = int(time.time()) % 10**8 * 100  # numbers of its own in each test
        self.all = {"writes": self.writer, "reads": Reader(api(), self.writer)}
        assert self.writer.api.host == self.relay.server_address[0]
        for client in self.all.values():
            client.start()
        until("both work", lambda: all(len(x.ok) > 20 for x in self.all.values()))
        self.began, self.in_vain = time.monotonic(), self.relay.in_vain
        return self

    def __exit__(self, kind, *_):
        try:
            if not kind:
                until("both still work", lambda: all(x.ok[-1] > time.monotonic() - 2 for x in self.all.values()))
        finally:
            gaps = {name: f"{x.gap(self.began):.1f} s" for name, x in self.all.items()}
            for x in self.all.values():
                x.stop()
            print(f"{time.monotonic() - self.began:.0f} s, {len(self.writer.acknowledged)} writes; longest without an answer: {gaps}; "
                  f"troubles: {[x.troubles for x in self.all.values()]}")
        if not kind:
            have = {i["metadata"]["name"] for i in json.loads(self.c.kubectl("-n", NAMESPACE, "get", "configmaps", "-o", "json"))["items"]}
            assert not {f"n{n}" for n in self.writer.acknowledged} - have and not self.all["reads"].lost, "every acknowledged write is there"
            assert self.relay.in_vain == self.in_vain, "the balancer had a server for every connection"


@pytest.fixture(scope="module")
def cluster():
    with Booting("replaced", NETWORK, "ConfigDrive") as booting:
        o = OpenStack(booting, Told)
        o.paper.flavors.append({"id": "f2", "name": "m1.more", "vcpus": 4, "ram": 4096, "disk": 20})
        o.paper.images.append({"id": "i2", "name": "debian-new", "status": "active", "min_disk": 2, "min_ram": 0})
        c = Replaced(booting, o, FILE.format(NEWEST, NETWORK, 3, 1, SHARED_DISK))
        c.up()
        c.is_whole()
        c.kubectl("create", "namespace", NAMESPACE)
        yield c
        c.down()
        o.paper.close()


def test_flavor(cluster):
    """All four, control plane first. When a machine is deleted, the members that stay have a quorum without it."""
    c, order, seen = cluster, [], []

    def told(method, name):
        order.append((method, name))
        if method == "DELETE" and name in CONTROL:
            try:
                seen.append((name, c.members(next(n for n in CONTROL if n != name))))
            except Exception as e:  # in a thread of the cloud
                seen.append((name, repr(e)))
    c.edit("flavor: m1.k8s", "flavor: m1.more")
    plan = c.slipway("plan", "--exit-code", ok=9)
    for name in (*CONTROL, "worker-1"):
        assert re.search(rf"{name} +replace +rolling replacement: drain it, make its machine anew \(flavor m1\.more instead of m1\.k8s\) with the same address", plan), plan
    before, ports = c.cloud.servers(), set(c.cloud.paper.things["ports"])
    c.cloud.paper.told = told
    try:
        with Clients(c):
            c.slipway("up", "--yes")
    finally:
        c.cloud.paper.told = Told.told
    assert order == [(method, name) for name in (*CONTROL, "worker-1") for method in ("DELETE", "POST")]
    assert seen == [(name, {n: True for n in CONTROL if n != name}) for name in CONTROL]
    assert set(c.cloud.paper.things["ports"]) == ports
    c.replaced(before, (*CONTROL, "worker-1"), flavor="m1.more")


def killed(c, *, call=None, line=None):
    """An `up` that is killed when the cloud has done the call, before its answer, or when it prints the line."""
    p = c.popen("up", "--yes")

    def told(*what):
        if what == call:
            os.kill(p.pid, signal.SIGKILL)
    c.cloud.paper.told = told
    said = []
    for text in p.stderr:
        said.append(text)
        if line and re.search(line, text):
            os.kill(p.pid, signal.SIGKILL)
    status = p.wait()
    c.cloud.paper.told = Told.told
    assert status == -signal.SIGKILL, "".join(said[-40:])


def test_killed(cluster):
    """Killed three times while the second control-plane node is replaced: the next run goes on, and no machine is made twice."""
    c = cluster
    c.edit("count: 3, flavor", "count: 3, image: debian-new, flavor")
    before, booted = c.cloud.servers(), len(c.booting.booted)
    with Clients(c):
        killed(c, call=("DELETE", "control-2"))
        killed(c, call=("POST", "control-2"))
        killed(c, line=r"control-2.*etcd promote|etcd promote.*control-2")
        c.slipway("up", "--yes")
    assert len(c.booting.booted) == booted + 3
    c.replaced(before, CONTROL, image="i2")
