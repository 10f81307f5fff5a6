"""Machines of Terraform: their addresses come from its outputs, which are data; then they are hosts as with provider ssh."""
import json
import os

import pytest
from conftest import Tool
from upstream import NEWEST

FILE = """
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: boats}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider:
    terraform: {platform: hetzner, dir: infra, user: ops, key: keys/boats, port: 2222, options: [ServerAliveInterval=5], variables: {image: debian-12, size: cx32, zones: fsn1}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 2}
"""
NODES = {
    "control-1": {"id": "1", "ip": "10.64.0.11", "address": "192.0.2.11", "zone": "fsn1"},
    "worker-1": {"id": "2", "ip": "10.64.0.21", "address": "192.0.2.21", "zone": "fsn1"},
    "worker-2": {"id": "3", "ip": "10.64.0.22", "address": None, "zone": None},
}
MISSING = "is not in the Terraform output \"slipway\": its machine was not created yet"


def said(nodes=NODES, **more):
    return {"slipway": {"sensitive": False, "type": "dynamic", "value": {"nodes": nodes, "endpoint": None, "bastion": None, **more}}}


def tool(tmp_path, outputs):
    t = Tool(tmp_path, FILE)
    (tmp_path / "infra").mkdir(exist_ok=True)
    if outputs is not None:
        (tmp_path / "infra/outputs.json").write_text(outputs if isinstance(outputs, str) else json.dumps(outputs))
    return t


def test_targets(tmp_path):
    c, w1, w2 = tool(tmp_path, said()).must("list")
    assert c == {"node": "control-1", "state": "running", "host": "192.0.2.11", "user": "ops", "key": str(tmp_path / "keys/boats"), "bastion": None, "ownBastion": False, "port": 2222, "sudo": True,
                 "knownHosts": None, "acceptNew": True, "options": ["ServerAliveInterval=5"], "ip": "10.64.0.11", "providerID": None, "zone": "fsn1", "endpoint": "10.64.0.11", "balancer": None}
    assert [m["host"] for m in (w1, w2)] == ["192.0.2.21", "10.64.0.22"], "without an address it is the ip"


def test_a_bastion_of_the_outputs(tmp_path):
    assert tool(tmp_path, said(bastion="ops@jump.example.net:2022")).must("list")[0]["bastion"] == "ops@jump.example.net:2022"
    t = tool(tmp_path, said(bastion="other@evil.example.net"))
    t.file.write_text(FILE.replace("user: ops,", "user: ops, bastion: mine.example.net,"))
    assert t.must("list")[0]["bastion"] == "mine.example.net", "the file's comes first"


def test_only_nodes_of_the_file(tmp_path):
    nodes = {**NODES, "stranger-1": {"id": "9", "ip": "10.64.0.99", "address": "192.0.2.99", "zone": None}, "worker-3": {"ip": "rubbish"}}
    assert [m["node"] for m in tool(tmp_path, said(nodes)).must("list")] == ["control-1", "worker-1", "worker-2"]


@pytest.mark.parametrize("outputs", [{}, said({}), said(None)])
def test_not_applied_yet(tmp_path, outputs):
    t = tool(tmp_path, outputs)
    assert [m["state"] for m in t.must("list")] == ["absent"] * 3
    for verb, key in (("up", "problem"), ("create", "error")):
        status, lines = t.call(verb)
        assert status == 1 and [line[key] for line in lines if line.get(key)] == [f"node {n} {MISSING}" for n in NODES], lines
        assert all("tofu apply" in line["hint"] for line in lines if line.get(key))


def test_the_endpoint_of_the_outputs(tmp_path):
    assert tool(tmp_path, said(endpoint="api.example.net")).must("list")[0]["endpoint"] == "api.example.net"
    t = tool(tmp_path, said(endpoint="api.example.net"))
    t.file.write_text(FILE.replace("  pools:", "  api: {loadBalancer: mine.example.net}\n  pools:"))
    assert t.must("list")[0]["endpoint"] == "mine.example.net", "the file's comes first"


def replaced(node, **fields):
    return said({**NODES, node: {**NODES[node], **fields}})


BAD = {
    "two nodes with one ip": (replaced("worker-2", ip="10.64.0.21"), "node worker-2: ip 10.64.0.21: is also that of node worker-1"),
    "two nodes with one address": (replaced("worker-1", address="192.0.2.11"), "node worker-1: address 192.0.2.11: is also that of node control-1"),
    "an address that is another's ip": (replaced("worker-1", address="-oProxyCommand=x"), "node worker-1: address: "),
    "no ip": (replaced("worker-1", ip=None), "node worker-1: ip: it is not an IP address"),
    "an ip of nobody": (replaced("worker-1", ip="127.0.0.1"), "node worker-1: ip 127.0.0.1: is a loopback address"),
    "an ip of a pod": (replaced("worker-1", ip="10.244.3.1"), "node worker-1: ip 10.244.3.1: is in the range of pods"),
    "another family": (replaced("worker-1", ip="fd00::5"), "node worker-1: ip: it is not of the family"),
    "a list of rubbish": (replaced("worker-1", ip=["10.64.0.21", 7]), "node worker-1: ip: it is not an IP address"),
    "a node that is a text": (said({**NODES, "worker-1": "10.64.0.21"}), "node worker-1: ip: it is not an IP address"),
    "a zone that is no label": (replaced("worker-1", zone="a,b=c"), "node worker-1: zone: "),
    "an address that is a number": (replaced("worker-1", address=7), "node worker-1: address: it is not a text"),
    "an endpoint that is an option": (said(endpoint="-x"), "the output: endpoint: "),
    "a bastion that is an option": (said(bastion="-oProxyCommand=x"), "the output: bastion: it is not [user@]host[:port]"),
    "a bastion with a command": (said(bastion="$(x)@jump.example.net"), "the output: bastion: its user has characters"),
    "a list of bastions": (said(bastion="a.example.net,b.example.net"), "the output: bastion: "),
    "no JSON": ("{", "infra/outputs.json: "),
    "a key twice": ('{"slipway": {}, "slipway": {}}', "duplicate object key"),
    "a list": ("[]", "the output slipway is not an object"),
    "no value": ({"slipway": {"value": []}}, "the output slipway is not an object"),
    "too much": ('{"x": "' + "y" * (9 << 20) + '"}', "infra/outputs.json"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_outputs(case, tmp_path):
    outputs, sentence = BAD[case]
    status, lines = tool(tmp_path, outputs).call("list")
    assert status == 1 and sentence in lines[-1]["error"], lines


def program(directory, name, text):
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)
    return dict(os.environ, PATH=f"{directory}:/usr/bin:/bin")


def test_asked_of_tofu_or_terraform(tmp_path):
    t, answer = tool(tmp_path, None), tmp_path / "answer.json"
    answer.write_text(json.dumps(said()))
    status, lines = t.call("list", env=dict(os.environ, PATH="/nowhere"))
    assert status == 1 and "neither tofu nor terraform is in PATH" in lines[-1]["error"] and "tofu output -json" in lines[-1]["hint"]
    env = program(tmp_path / "bin", "terraform", f'echo "$@" > {tmp_path}/argv; cat {answer}')
    assert t.must("list", env=env)[0]["host"] == "192.0.2.11"
    assert (tmp_path / "argv").read_text() == f"-chdir={tmp_path}/infra output -json -no-color\n"
    env = program(tmp_path / "bin", "tofu", "echo; echo 'Error: no state' >&2; exit 1")
    status, lines = t.call("list", env=env)
    assert status == 1 and "failed with status 1: Error: no state" in lines[-1]["error"], "tofu comes first"
    program(tmp_path / "bin", "tofu", "head -c 9000000 /dev/zero")
    status, lines = t.call("list", env=env)
    assert status == 1 and "larger than 8 MiB" in lines[-1]["error"]
    (tmp_path / "infra/outputs.json").write_text(json.dumps(replaced("control-1", address="192.0.2.99")))
    assert t.must("list", env=env)[0]["host"] == "192.0.2.99", "a saved file comes before both"


def test_nothing_is_made(tmp_path):
    t = tool(tmp_path, said())
    assert len(t.must("up")) == 5 and len(t.must("down")) == 4
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["cluster.yaml", "infra", "outputs.json"]
