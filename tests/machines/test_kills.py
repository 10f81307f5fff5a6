"""Killed anywhere, the next run finishes: kill -9 at every boundary between steps (SLIPWAY_TEST_KILL, see src/cluster/run.c) and at random moments.

A chain: each run is killed one boundary further than the one before, on what that one left, until one comes to its end. So every boundary there is is hit once, also
those that only exist after a kill. Then the cluster must be what an undisturbed run makes.

KILLS=N: how many fresh clusters are killed at a boundary, and as many at a random moment. SEED=N: the same dice again. CHAIN_SECONDS=N: after this time a chain
leaves boundaries out, so that it comes to its end on a slow computer too."""
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from harness import PATIENCE, SLIPWAY, Machines, until

OLD, NEW = "1.35.4", "1.36.3"
KILLS, CHAIN_SECONDS, SEED = int(os.environ.get("KILLS") or 4), int(os.environ.get("CHAIN_SECONDS") or 600), int(os.environ.get("SEED") or time.time())
SPEC = """\
  kubernetes: VERSION
  provider: {local: {network: 10.131.NET.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
KINDS = ("nodes,namespaces,services,endpoints,deployments,daemonsets,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,"
         "priorityclasses,poddisruptionbudgets,persistentvolumes,resourcequotas")
MEMBERS = ["member", "target"]  # lines of an agent's record that say how, not what
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]


def spec(version, network):
    return SPEC.replace("VERSION", version).replace("NET", str(network))


class Victim(Machines):
    kills = 0

    def killed(self, at, *args):
        """Runs it until its boundary `at`: True when it was killed there, False when it had come to its end before."""
        r = subprocess.run([SLIPWAY, *args], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * PATIENCE,
                           env=dict(os.environ, SLIPWAY_TEST_KILL=str(at)))
        where = [f"{line['step']} {line.get('node', '')}: {line['state']}" for line in self.journal() if "state" in line][-1:]
        print(f"{time.strftime('%T')} {' '.join(args)}: {'killed' if r.returncode < 0 else 'not killed'} at boundary {at}, {where}", flush=True)
        assert r.returncode in (0, -signal.SIGKILL), f"slipway {' '.join(args)} after {self.kills} kills: status {r.returncode}\n{r.stdout}{r.stderr}"
        self.kills += r.returncode != 0
        return r.returncode != 0

    def killed_after(self, seconds, *args):
        p = self.popen(*args)
        try:
            p.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
        print(f"{time.strftime('%T')} {' '.join(args)}: {'killed' if p.returncode < 0 else 'ended'} after {seconds:.2f} s", flush=True)
        assert p.returncode in (0, -signal.SIGKILL), f"status {p.returncode}"
        self.kills += p.returncode != 0

    def journal(self):
        path = self.state / "journal.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def boundaries(self):
        """How many the last run had."""
        lines = self.journal()
        lines = lines[max(i for i, line in enumerate(lines) if "run" in line):]
        return sum({"begin": 1, "done": 2, "kept": 2, "failed": 2}.get(line.get("state"), 0) for line in lines)

    def nodes(self):
        return {n["metadata"]["name"]: n for n in json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]}

    def well(self, *names):
        """Exactly those nodes, each of them as it should be, and nothing left to do."""
        self.kubeconfig()
        nodes = self.nodes()
        assert set(nodes) == set(names)
        for name, n in nodes.items():
            assert not n["spec"].get("unschedulable") and "slipway.dev/cordoned" not in n["metadata"]["annotations"], f"{name} is still cordoned"
        until("all are Ready", lambda: all(self.ready().values()))
        etcd = json.loads(self.slipway("etcd", "members", "-o", "json").stdout)
        assert etcd["quorum"] and not etcd["problems"]
        assert sorted((x["name"], x["learner"]) for x in etcd["members"]) == sorted((n, False) for n in names if n.startswith("control"))
        self.slipway("plan", "--exit-code")
        assert {p.name for p in (self.state / "machines").iterdir() if p.is_dir()} == set(names)
        self.healthy()
        until("the namespace of the verification is gone", lambda: "slipway-verify" not in self.kubectl("get", "namespaces", "-o", "name"))
        assert "restored" not in self.on("control-1", "ls -a /var/lib/etcd")

    def result(self):
        """What a run makes, without what is made by chance: {node: entries of the agent's record}, names of objects, files on the nodes that hold the cluster."""
        out = {}
        for name in self.nodes():
            record = [line.split("\t") for line in self.on(name, "cat /var/lib/slipway/applied").splitlines()[3:]]
            out[name] = sorted((f[0], f[1], "" if f[4].startswith("/etc/kubernetes/pki") or f[4].endswith((".conf", ".pem", ".crt", ".key")) else f[2], f[4])
                               for f in record if f[0] not in MEMBERS)
            out[f"files of {name}"] = self.on(name, "find /etc/kubernetes /etc/cni /etc/containerd /etc/systemd/system /opt/cni /usr/local/bin "
                                              "/var/lib/slipway/store -not -type d | sort").splitlines()
        names = self.kubectl("get", KINDS, "-A", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{'\\n'}{end}").splitlines()
        out["objects"] = sorted(n for n in names if not re.search(r"/bootstrap-token-|/slipway-verified|slipway-verify", n))
        return out


def same(now, was):
    """Said line by line: a comparison of it all would say nothing."""
    assert set(now) == set(was)
    for what in was:
        gone, new = [x for x in was[what] if x not in now[what]], [x for x in now[what] if x not in was[what]]
        assert not gone and not new, f"{what}: not there: {gone}; too much: {new}"


def chain(m, *args, phase=lambda: None):
    """Killed at one boundary after the other until a run comes to its end. Where a verb has phases that are not gone through again, each has its own boundaries."""
    before, begun = m.kills, time.monotonic()
    at, now, left_out = 1, phase(), 0
    while m.killed(at, *args):
        stride = 1 if time.monotonic() < begun + CHAIN_SECONDS else 7
        left_out += stride - 1
        at, now = (at + stride, now) if phase() == now else (stride, phase())
    print(f"{' '.join(args)}: {m.kills - before} kills in {time.monotonic() - begun:.0f} s, {left_out} boundaries left out", flush=True)
    assert m.kills - before > 20


# ---- up ----

@pytest.fixture(scope="module")
def undisturbed():
    """(what up makes, how many boundaries it has, how long it takes)"""
    with Victim("kills-up", spec(NEW, 1)) as m:
        begun = time.monotonic()
        m.slipway("up")
        seconds, n = time.monotonic() - begun, m.boundaries()
        m.well("control-1", "worker-1")
        print(f"undisturbed: {n} boundaries, {seconds:.0f} s", flush=True)
        return m.result(), n, seconds


def test_up_killed_at_every_boundary(undisturbed):
    with Victim("kills-up", spec(NEW, 1)) as m:
        chain(m, "up")
        m.well("control-1", "worker-1")
        same(m.result(), undisturbed[0])


@pytest.mark.parametrize("kill", range(2 * KILLS))
def test_up_of_a_new_cluster_killed_once(undisturbed, kill):
    """At boundaries all over the run, and at random moments."""
    result, boundaries, seconds = undisturbed
    dice = random.Random(SEED + kill)
    with Victim("kills-up", spec(NEW, 1)) as m:
        if kill < KILLS:
            m.killed(dice.randint(boundaries * kill // KILLS + 1, boundaries * (kill + 1) // KILLS), "up")
        else:
            print(f"SEED={SEED}")
            m.killed_after(dice.uniform(seconds * (kill - KILLS) / KILLS, seconds * (kill - KILLS + 1) / KILLS), "up")
        r = m.slipway("up")
        assert m.kills == 0 or "going on: 'up'" in r.stderr or kill >= KILLS, r.stderr
        m.well("control-1", "worker-1")
        same(m.result(), result)


# ---- the second day, on one cluster ----

@pytest.fixture(scope="module")
def cluster():
    with Victim("kills", spec(OLD, 2)) as m:
        m.slipway("up")
        m.kubectl("create", "configmap", "kept")
        yield m


def rotation(m):
    path = m.state / "rotation.json"
    return path.read_text() if path.exists() else ""


def versions(m):
    return {n["status"]["nodeInfo"]["kubeletVersion"] for n in m.nodes().values()}


@pytest.mark.parametrize("what", ["upgrade", "add", "remove", "restore", "rotate-ca"])
def test_killed_at_every_boundary(cluster, what):
    m = cluster
    m.kubectl("get", "configmap", "kept")
    one, three = ("control-1", "worker-1"), ("control-1", "control-2", "control-3", "worker-1")
    before = m.result()
    if what == "upgrade":
        chain(m, "upgrade", NEW, "--yes")
        m.well(*one)
        assert versions(m) == {f"v{NEW}"}
    elif what == "add":
        chain(m, "scale", "control=3", "--yes")
        m.well(*three)
    elif what == "remove":
        m.slipway("scale", "control=3", "--yes")  # there already after "add"
        chain(m, "scale", "control=1", "--yes")
        m.well(*one)
    elif what == "rotate-ca":
        chain(m, "certs", "rotate-ca", "cluster", "etcd", "front-proxy", "--yes", phase=lambda: rotation(m))
        m.well(*one)
        assert not rotation(m) and not (m.state / "next").exists()
        same(m.result(), before)
    else:
        m.slipway("etcd", "snapshot", "--to", str(m.dir / "kept.db"))
        m.kubectl("create", "configmap", "lost")
        chain(m, "etcd", "restore", str(m.dir / "kept.db"))
        m.well(*one)
        same(m.result(), before)
    m.kubectl("get", "configmap", "kept")
