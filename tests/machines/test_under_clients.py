"""Three control-plane nodes behind a virtual address, upgraded, renewed and given new authorities while clients use the API.

In `make test`: no acknowledged write is lost, no pod is refused, the budget is kept. In `make soak` also: nobody waits longer than LONGEST."""
import json
import os
import time

import asking
import pytest
from clients import NAMESPACE, Api, Client, Reader, Writer
from harness import APP, NEWEST, PREVIOUS, Machines, until

OLD, NEW = PREVIOUS, NEWEST
NETWORK = "10.135.0"
VIP = f"{NETWORK}.5"
SPEC = f"""\
  kubernetes: {OLD}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  api: {{vip: {VIP}}}
  encryption: secretbox
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 3}}
    - {{name: worker, count: 2}}
"""
LONGEST = 5  # seconds without an answer, on a computer that does nothing else
LIMITS = [pytest.param(None, id="nothing-lost"), pytest.param(LONGEST, id="in-time", marks=pytest.mark.soak)]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


@pytest.fixture(scope="module")
def cluster():
    with Machines("clients", SPEC) as m:
        m.slipway("up", "--yes")
        m.kubeconfig()
        if m.kubectl("get", "namespace", NAMESPACE, check=False).returncode:
            m.kubectl("create", "namespace", NAMESPACE)
        (m.dir / "app.yaml").write_text(APP)
        m.kubectl("apply", "-f", str(m.dir / "app.yaml"))
        until("two pods run", lambda: m.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")
        m.healthy()
        yield m


@pytest.fixture(scope="module")
def pods(cluster):
    return asking.start(cluster, "worker-1")


class Budget(Client):
    """The fewest pods of the Deployment that were available at once."""

    def __init__(self, api):
        super().__init__(api, 0.2)
        self.least = 2

    def turn(self):
        status, text = self.api.request("GET", "/apis/apps/v1/namespaces/default/deployments/app")
        if status == 200:
            self.least = min(self.least, json.loads(text)["status"].get("availableReplicas", 0))
        return status == 200


def longest(client):
    """The longest gaps: how long, and when it ended, in seconds since the first success."""
    pairs = sorted(((b - a, b - client.ok[0]) for a, b in zip(client.ok, client.ok[1:])), reverse=True)
    return ", ".join(f"{gap:.2f} s at {at:.0f}" for gap, at in pairs[:5])


class Watched:
    """A writer, a reader and an observer of the budget through the virtual address, and two pods, for as long as something goes on."""

    def __init__(self, m, pods=(), limit=None):
        self.m, self.pods, self.limit = m, pods, limit
        api = lambda: Api(m.dir / "kubeconfig")
        self.writer = Writer(api())
        self.clients = {"writes": self.writer, "reads": Reader(api(), self.writer), "budget": Budget(api())}
        assert self.writer.api.host == VIP
        self.writer.number = int(time.time()) % 10**8 * 100  # numbers of its own in each test

    def __enter__(self):
        for c in self.clients.values():
            c.start()
        until("all clients work", lambda: all(len(c.ok) > 20 for c in self.clients.values()))
        self.began, self.before = time.monotonic(), {p: len(asking.asked(self.m, p)) for p in self.pods}
        return self

    def renew(self):
        """The clients go on with the kubeconfig as it is now, as people are told to."""
        path = self.m.kubeconfig()
        for c in self.clients.values():
            c.api.again(path)

    def __exit__(self, kind, *_):
        try:
            if not kind:
                until("all clients still work", lambda: all(c.ok[-1] > time.monotonic() - 2 for c in self.clients.values()))
        finally:
            gaps = {name: c.gap(self.began) for name, c in self.clients.items()}
            for name, c in self.clients.items():
                print(f"{name}: {len(c.ok)}, longest gaps: {longest(c)}; last troubles: {c.troubles[-5:]}")
                c.stop()
        if not kind:
            self.judge(gaps)

    def judge(self, gaps):
        asks = {p: asking.asked(self.m, p)[self.before[p] - 1:] for p in self.pods}
        pods = {p: asking.gap(a) for p, a in asks.items()}
        print(f"{time.monotonic() - self.began:.0f} s, {len(self.writer.acknowledged)} writes; longest without an answer: "
              + ", ".join(f"{k} {v:.1f} s" for k, v in (gaps | pods).items()))
        assert not {p: r for p, a in asks.items() if (r := asking.refused(a))}
        assert not self.clients["reads"].lost
        have = {i["metadata"]["name"] for i in json.loads(self.m.kubectl("-n", NAMESPACE, "get", "configmaps", "-o", "json"))["items"]}
        assert not {f"n{n}" for n in self.writer.acknowledged} - have, "every acknowledged write is there"
        assert self.clients["budget"].least >= 1, "the budget was kept all the time"
        if self.limit:
            assert max(gaps.values()) <= self.limit, (gaps, {n: c.troubles[-20:] for n, c in self.clients.items()})
            assert max(pods.values(), default=0) <= 2 * self.limit, pods  # their way leads through the Service, whose endpoints are told a moment later


@pytest.mark.parametrize("limit", LIMITS)
def test_upgrade(cluster, limit):
    with Watched(cluster, limit=limit):
        r = cluster.slipway("upgrade", NEW, "--yes", ok=None)
        (cluster.dir / "upgrade.log").write_text(r.stderr)
        assert r.returncode == 0, r.stderr
    versions = {n["metadata"]["name"]: n["status"]["nodeInfo"]["kubeletVersion"] for n in json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]}
    assert set(versions.values()) == {f"v{NEW}"}, versions
    cluster.healthy()


@pytest.mark.parametrize("limit", LIMITS[1:])
def test_renew(cluster, pods, limit):
    with Watched(cluster, pods, limit):
        cluster.slipway("certs", "renew")
        cluster.kubeconfig()
    cluster.slipway("plan", "--exit-code")


def rotate(cluster, pods, limit, what):
    """A kubeconfig is good for as long as its authority is trusted; with the third phase that ends, so the clients take the new one after the second."""
    with Watched(cluster, pods, limit) as w:
        p = cluster.popen("certs", "rotate-ca", what, "--yes")
        said = []
        for line in p.stderr:
            said.append(line)
            if "rotation of cluster, phase finish" in line:
                w.renew()
        assert p.wait() == 0, "".join(said[-40:])
        cluster.kubeconfig()
    for name in pods:
        asking.goes_on(cluster, name)
    cluster.healthy()
    cluster.slipway("plan", "--exit-code")


def test_rotate_cluster_ca(cluster, pods):
    rotate(cluster, pods, None, "cluster")


@pytest.mark.soak
def test_rotate_all(cluster, pods):
    rotate(cluster, pods, LONGEST, "all")
    cluster.kubectl("delete", "pod", *pods, "--now")
    cluster.slipway("certs", "rotate-ca", "sa", "--finish", "--yes")
    assert not (cluster.state / "rotation.json").exists()


@pytest.mark.soak
def test_encryption_key(cluster):
    with Watched(cluster, limit=LONGEST):
        cluster.slipway("encryption", "rotate", "--yes")
    cluster.slipway("plan", "--exit-code")
