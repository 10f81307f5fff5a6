"""Hosts you have: how they are reached comes from the file, and nothing is made or removed."""
import os

from conftest import Tool
from upstream import NEWEST

SSH = """
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: boats}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider:
    ssh: {user: ops, key: ~/.ssh/boats, port: 2222, bastion: ops@jump.example.net, options: [ServerAliveInterval=5]}
  pools:
    - {name: control, roles: [control-plane, etcd], hosts: [192.0.2.11]}
    - name: worker
      hosts:
        - {name: w1, address: w1.example.net, ip: 192.0.2.21, user: root, port: 22}
        - {name: w2, address: 192.0.2.22}
"""


def test_targets(tmp_path):
    t = Tool(tmp_path, SSH)
    c, w1, w2 = t.must("list", env=dict(os.environ, HOME="/home/ann"))
    assert c == {"node": "ip-192-0-2-11", "state": "running", "host": "192.0.2.11", "user": "ops", "key": "/home/ann/.ssh/boats", "bastion": "ops@jump.example.net", "ownBastion": False,
                 "port": 2222, "sudo": True, "knownHosts": None, "acceptNew": True, "options": ["ServerAliveInterval=5"], "ip": "192.0.2.11", "providerID": None, "zone": None, "endpoint": "192.0.2.11", "balancer": None}
    assert (w1["host"], w1["user"], w1["port"], w1["sudo"]) == ("w1.example.net", "root", 22, False)
    assert (w2["host"], w2["user"], w2["port"], w2["sudo"]) == ("192.0.2.22", "ops", 2222, True)


def test_key_beside_the_file(tmp_path):
    t = Tool(tmp_path, SSH.replace("~/.ssh/boats", "keys/boats"))
    assert t.must("list")[0]["key"] == str(tmp_path / "keys/boats")


def test_nothing_is_made(tmp_path):
    t = Tool(tmp_path, SSH)
    assert len(t.must("up")) == 4 and len(t.must("down")) == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster.yaml"]
