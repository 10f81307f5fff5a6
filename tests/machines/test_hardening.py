"""A cluster with kubeadm's looser defaults becomes `cis` while clients write: nothing is lost, every API server reads every Secret at all times, and what was plain is
encrypted at the end."""
import json
import os
import threading
import time

import pytest
from clients import Api
from harness import NEWEST, Cluster, until

NODES = [f"10.154.0.{n}" for n in (10, 11, 12)]
TEXT = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: hardening}}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  hardening: {hardening}
  provider: {{local: {{network: 10.154.0.0/24}}}}
  api: {{vip: 10.154.0.5}}
  pools:
    - {{name: control, roles: [control-plane, etcd, worker], count: 3}}
"""
SECRETS = "/api/v1/namespaces/default/secrets"
ETCDCTL = ("etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/healthcheck-client.crt "
           "--key /etc/kubernetes/pki/etcd/healthcheck-client.key")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


class Secrets(threading.Thread):
    """Writes Secrets through the virtual address, and reads each back from every API server that answers."""

    def __init__(self, kubeconfig):
        super().__init__(daemon=True)
        self.front, self.servers = Api(kubeconfig), [Api(kubeconfig, host=n) for n in NODES]
        self.written, self.unread, self.over = [], [], False

    def turn(self, n):
        body = {"metadata": {"name": f"s{n}"}, "stringData": {"n": str(n)}}
        if self.front.request("POST", SECRETS, body, timeout=10)[0] != 201:
            return
        self.written.append(n)
        for server in self.servers:
            try:
                status, answer = server.request("GET", f"{SECRETS}/s{n}", timeout=10)
            except Exception:
                continue  # it starts again just now
            if status == 500 and b"ready" not in answer:  # what it cannot decrypt is an internal error
                self.unread.append((n, server.host, answer[:200]))

    def run(self):
        n = 0
        while not self.over:
            try:
                self.turn(n)
            except Exception:
                pass
            n += 1
            time.sleep(0.3)


@pytest.fixture(scope="module")
def cluster():
    c = Cluster("hardening", NEWEST, TEXT.format(hardening="kubeadm"))
    c.begin()
    try:
        c.up()
        yield c
    finally:
        c.end()


def stored(cluster, name):
    return cluster.on(NODES[0], f"{ETCDCTL} get /registry/secrets/default/{name} --print-value-only").stdout


def test_becomes_cis(cluster):
    cluster.kubectl("create", "secret", "generic", "before", "--from-literal=word=plaintext")
    assert b"plaintext" in stored(cluster, "before")
    assert cluster.on(NODES[0], "ps -o user= -C etcd").stdout.split() == [b"root"]
    cluster.write(TEXT.format(hardening="cis"))
    plan = cluster.slipway("plan")
    assert plan.returncode == 0 and "will be encrypted" in plan.stdout and "/etc/kubernetes/authentication/config.yaml" in plan.stdout, plan.stdout + plan.stderr
    clients = Secrets(cluster.dir / "kubeconfig")
    clients.start()
    cluster.up()
    clients.over = True
    clients.join()
    assert not clients.unread and len(clients.written) > 20, (clients.unread[:3], len(clients.written))
    have = set(cluster.kubectl("get", "secrets", "-o", "name").split())
    assert {f"secret/s{n}" for n in clients.written} <= have
    assert cluster.kubectl("get", "secret", "before", "-o", "jsonpath={.data.word}") == "cGxhaW50ZXh0"


def test_all_is_encrypted(cluster):
    values = cluster.on(NODES[0], f"{ETCDCTL} get /registry/secrets --prefix --print-value-only").stdout
    keys = cluster.on(NODES[0], f"{ETCDCTL} get /registry/secrets --prefix --keys-only").stdout.split()
    assert values.count(b"k8s:enc:secretbox:v1:key1:") == len(keys) and b"plaintext" not in values


def test_etcd_changed_hands(cluster):
    for n in NODES:
        assert cluster.on(n, "ps -o user= -C etcd; find /var/lib/etcd ! -user etcd").stdout.split() == [b"etcd"]


def test_nothing_is_left_to_do(cluster):
    assert "nothing to do" in cluster.slipway("plan").stdout and not (cluster.state / "rotation.json").exists()
    until("it is healthy", lambda: json.loads(cluster.slipway("status", "-o", "json").stdout)["healthy"])


def test_no_way_back_that_nobody_could_read(cluster):
    cluster.write(TEXT.format(hardening="kubeadm"))
    r = cluster.slipway("plan")
    assert r.returncode == 4 and "are encrypted" in r.stderr and "encryption: secretbox" in r.stderr, r.stderr
