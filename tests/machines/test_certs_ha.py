"""Certificates are renewed and all authorities and keys changed under clients: no write is lost, the API answers, and pods are believed all the time."""
import json
import os
import time

import asking
import pytest
from clients import NAMESPACE, Api, Reader, Writer
from harness import Machines, until

NETWORK = "10.133.0"
VIP = f"{NETWORK}.5"
SPEC = f"""\
  kubernetes: 1.36.3
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  api: {{vip: {VIP}}}
  encryption: secretbox
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 3}}
    - {{name: worker, count: 2}}
"""
LONGEST = 5  # seconds without an answer
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]


@pytest.fixture(scope="module")
def cluster():
    with Machines("certsha", SPEC) as m:
        m.slipway("up")
        m.kubeconfig()
        if m.kubectl("get", "namespace", NAMESPACE, check=False).returncode:
            m.kubectl("create", "namespace", NAMESPACE)
        m.healthy()
        yield m


class Watched:
    """A writer and a reader through the virtual address and two pods, for as long as something goes on. The kubeconfig is fetched anew, as people are told to."""

    def __init__(self, m, pods):
        self.m, self.pods = m, pods
        self.writer = Writer(Api(m.dir / "kubeconfig"))
        self.reader = Reader(Api(m.dir / "kubeconfig"), self.writer)
        assert self.writer.api.host == VIP
        self.writer.number = int(time.time()) % 10**8 * 100  # of its own in each test

    def __enter__(self):
        for c in (self.writer, self.reader):
            c.start()
        until("both work", lambda: len(self.writer.ok) > 20 and len(self.reader.ok) > 20)
        self.began, self.before = time.monotonic(), {p: len(asking.asked(self.m, p)) for p in self.pods}
        return self

    def renew(self):
        """The clients go on with the kubeconfig as it is now."""
        path = self.m.kubeconfig()
        self.writer.api.again(path)
        self.reader.api.again(path)

    def __exit__(self, kind, *_):
        until("both still work", lambda: self.writer.ok[-1] > time.monotonic() - 2 and self.reader.ok[-1] > time.monotonic() - 2)
        gaps = {"writes": self.writer.gap(self.began), "reads": self.reader.gap(self.began)}
        for c in (self.writer, self.reader):
            c.stop()
        if kind:
            return
        asks = {p: asking.asked(self.m, p)[self.before[p] - 1:] for p in self.pods}
        gaps |= {p: asking.gap(a) for p, a in asks.items()}
        print(f"{time.monotonic() - self.began:.0f} s, {len(self.writer.acknowledged)} writes, {len(self.reader.ok)} reads; longest without an answer: "
              + ", ".join(f"{k} {v:.1f} s" for k, v in gaps.items()))
        assert max(gaps["writes"], gaps["reads"]) <= LONGEST, (gaps, self.writer.troubles[-20:], self.reader.troubles[-20:])
        assert not {p: r for p, a in asks.items() if (r := asking.refused(a))}
        assert max((gaps[p] for p in self.pods), default=0) <= 2 * LONGEST, gaps  # its way leads through the Service, whose ends are told a moment later
        assert not self.reader.lost
        have = {i["metadata"]["name"] for i in json.loads(self.m.kubectl("-n", NAMESPACE, "get", "configmaps", "-o", "json"))["items"]}
        assert not {f"n{n}" for n in self.writer.acknowledged} - have


@pytest.fixture(scope="module")
def pods(cluster):
    return asking.start(cluster, "worker-1")


def test_renew(cluster, pods):
    with Watched(cluster, pods):
        cluster.slipway("certs", "renew")
        cluster.kubeconfig()
    cluster.slipway("plan", "--exit-code")


def test_rotate_all(cluster, pods):
    """A kubeconfig is good for as long as its authority is believed; with the third phase it ends, so the clients take the new one when the second is through."""
    with Watched(cluster, pods) as w:
        p = cluster.popen("certs", "rotate-ca", "all", "--yes")
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
    cluster.kubectl("delete", "pod", *pods, "--now")
    cluster.slipway("certs", "rotate-ca", "sa", "--finish", "--yes")
    assert not (cluster.state / "rotation.json").exists()


def test_encryption_key(cluster):
    with Watched(cluster, []):
        cluster.slipway("encryption", "rotate", "--yes")
    cluster.slipway("plan", "--exit-code")
