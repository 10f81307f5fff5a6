"""Killed anywhere, the next run finishes: kill -9 at every boundary between steps (SLIPWAY_TEST_KILL, see src/run/run.c) and at random moments.

A chain: each run is killed one boundary further than the one before, on what that one left, until one comes to its end. So every boundary there is is hit once, also
those that only exist after a kill. Then the cluster must be what an undisturbed run makes.

KILLS=N: how many fresh clusters are killed at a boundary, and as many at a random moment. SEED=N: the same dice again. CHAIN_SECONDS=N: after this time a chain
leaves boundaries out, so that it comes to its end on a slow computer too. NETWORKS=10.N and SLIPWAY_WORK=DIRECTORY: for a second run beside one."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from harness import NEWEST, PATIENCE, PREVIOUS, SLIPWAY, Machines, until

OLD, NEW = PREVIOUS, NEWEST
NETWORKS = os.environ.get("NETWORKS") or "10.131"
KILLS, CHAIN_SECONDS, SEED = int(os.environ.get("KILLS") or 4), int(os.environ.get("CHAIN_SECONDS") or 600), int(os.environ.get("SEED") or time.time())
SPEC = """\
  kubernetes: VERSION
  provider: {local: {network: NETWORK.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
KINDS = ("nodes,namespaces,services,endpoints,deployments,daemonsets,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,"
         "priorityclasses,poddisruptionbudgets,persistentvolumes,resourcequotas")
ENTRY = 5  # fields of a line that is an entry in an agent's record; other lines have fewer
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]


def spec(version, network):
    return SPEC.replace("VERSION", version).replace("NETWORK", f"{NETWORKS}.{network}")


class Victim(Machines):
    kills = 0

    def down(self):
        """What it was made from stays here: with the same Identity the same bytes come about."""
        r = subprocess.run([SLIPWAY, "down"], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        assert r.returncode == 0, r.stderr
        self.kept = {p.relative_to(self.state): p.read_bytes() for p in self.state.rglob("*") if p.is_file() and "journal" not in p.name}
        shutil.rmtree(self.dir)

    def born_of(self, identity):
        for path, content in identity.items():
            (self.state / path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.state / path).touch(mode=0o600)
            (self.state / path).write_bytes(content)

    def killed(self, at, *args):
        """Runs it until its boundary `at`, a number or a name: True when it was killed there, False when it had come to its end before."""
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

    def last_run(self):
        lines = self.journal()
        return lines[max((i for i, line in enumerate(lines) if "run" in line), default=0):]

    def boundaries(self):
        """How many the last run had."""
        return sum({"begin": 1, "done": 2, "kept": 2, "failed": 2}.get(line.get("state"), 0) for line in self.last_run())

    def changing(self, after="plan"):
        """What the last run did after that step: the begin and the end of each of its steps that changed something, in their order."""
        lines = [line for line in self.last_run() if "state" in line]
        lines = lines[max(i for i, line in enumerate(lines) if line["step"] == after) + 1:]
        done = {(line["step"], line.get("node")) for line in lines if line["state"] == "done"}
        return [f"{'begin' if line['state'] == 'begin' else 'end'} {line['step']} {line.get('node', '')}".strip()
                for line in lines if (line["step"], line.get("node")) in done and line["state"] in ("begin", "done")]

    def only_looked(self):
        """The last run did not come to the end of its plan: it changed nothing."""
        return not any(line.get("step") in ("plan", "checked") and line.get("state") in ("done", "kept") for line in self.last_run())

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
        for name in names:
            assert "restor" not in self.on(name, "ls -a /var/lib/etcd 2>/dev/null || :")

    def result(self, digests=True):
        """What a run makes: {node: entries of the agent's record}, files on the nodes that are the cluster's, names of objects. Without digests: what all Identities share."""
        out = {}
        self.kubeconfig()  # the only control plane may be another one
        for name in self.nodes():
            record = [line.split("\t") for line in self.on(name, "cat /var/lib/slipway/applied").splitlines()]
            out[name] = sorted((f[0], f[1], f[2] if digests else "", f[4]) for f in record if len(f) == ENTRY)
            out[f"files of {name}"] = self.on(name, "find /etc/kubernetes /etc/cni /etc/containerd /etc/systemd/system /opt/cni /usr/local/bin "
                                              "/var/lib/slipway/store -not -type d | sort").splitlines()
        names = self.kubectl("get", KINDS, "-A", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{'\\n'}{end}").splitlines()
        out["objects"] = sorted(n for n in names if not re.search(r"/bootstrap-token-|slipway-verify", n))
        return out


def same(now, was):
    """Said line by line: a comparison of it all would say nothing."""
    assert set(now) == set(was)
    for what in was:
        gone, new = [x for x in was[what] if x not in now[what]], [x for x in now[what] if x not in was[what]]
        assert not gone and not new, f"{what}: not there: {gone}; too much: {new}"


def chain(m, *args, phase=lambda: None, looks=4):
    """Killed at one boundary after the other until a run comes to its end. Where a verb has phases that are not gone through again, each has its own boundaries.
    While it only looks, which all verbs do alike, each fourth is enough."""
    before, begun = m.kills, time.monotonic()
    at, now, left_out = 1, phase(), 0
    while m.killed(at, *args):
        stride = 7 if time.monotonic() > begun + CHAIN_SECONDS else looks if m.only_looked() else 1
        left_out += stride - 1
        at, now = (at + stride, now) if phase() == now else (stride, phase())
    print(f"{' '.join(args)}: {m.kills - before} kills in {time.monotonic() - begun:.0f} s, {left_out} boundaries left out", flush=True)
    assert m.kills - before > 20


def each(m, steps, *args, back=lambda: None):
    """Killed when each of these steps begins, and when it ends, by name. Where a run does not come to it, because the one before had done it, the same from the
    beginning: back() makes that."""
    before, begun, missed = m.kills, time.monotonic(), []
    for at in steps:
        if not m.killed(at, *args):
            back()
            if not m.killed(at, *args):
                missed.append(at)
                back()
    m.slipway(*args)
    print(f"{' '.join(args)}: {m.kills - before} kills at the begin and the end of {len(steps) // 2} steps in {time.monotonic() - begun:.0f} s", flush=True)
    assert steps and not missed


# ---- up ----

class Undisturbed:
    """What up makes, how many boundaries it has, how long it takes."""

    def __init__(self):
        with Victim("kills-up", spec(NEW, 1)) as m:
            begun = time.monotonic()
            m.slipway("up")
            self.seconds, self.boundaries = time.monotonic() - begun, m.boundaries()
            m.well("control-1", "worker-1")
            self.result, self.names = m.result(), m.result(digests=False)
        self.identity = m.kept
        print(f"undisturbed: {self.boundaries} boundaries, {self.seconds:.0f} s", flush=True)


@pytest.fixture(scope="module")
def undisturbed():
    return Undisturbed()


def test_up_killed_at_every_boundary(undisturbed):
    with Victim("kills-up", spec(NEW, 1)) as m:
        m.born_of(undisturbed.identity)
        chain(m, "up", looks=1)
        m.well("control-1", "worker-1")
        same(m.result(), undisturbed.result)


@pytest.mark.parametrize("kill", range(2 * KILLS))
def test_up_of_a_new_cluster_killed_once(undisturbed, kill):
    """At boundaries all over the run, and at random moments."""
    dice, turn = random.Random(SEED + kill), kill % KILLS
    with Victim("kills-up", spec(NEW, 1)) as m:
        m.born_of(undisturbed.identity)
        if kill < KILLS:
            m.killed(dice.randint(undisturbed.boundaries * turn // KILLS + 1, undisturbed.boundaries * (turn + 1) // KILLS), "up")
        else:
            print(f"SEED={SEED}")
            m.killed_after(dice.uniform(undisturbed.seconds * turn / KILLS, undisturbed.seconds * (turn + 1) / KILLS), "up")
        r = m.slipway("up")
        assert "going on: 'up'" in r.stderr or kill >= KILLS, r.stderr
        m.well("control-1", "worker-1")
        same(m.result(), undisturbed.result)


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


def words(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


class Undisturbed3:
    """From one control plane to three and back: what there is then, and the steps."""

    def __init__(self, m):
        self.one = m.result()
        m.slipway("scale", "control=3", "--yes")
        self.adding, self.names = m.changing(), m.result(digests=False)  # those that come again have other certificates
        m.slipway("scale", "control=1", "--yes")
        self.removing = m.changing()
        same(m.result(), self.one)


@pytest.fixture(scope="module")
def three(cluster):
    return Undisturbed3(cluster)


def upgrade(m, request):
    chain(m, "upgrade", NEW, "--yes")
    m.well("control-1", "worker-1")
    assert versions(m) == {f"v{NEW}"}
    m.kubectl("delete", "configmap", "kept")
    same(m.result(digests=False), request.getfixturevalue("undisturbed").names)
    m.kubectl("create", "configmap", "kept")


def add(m, request):
    three = request.getfixturevalue("three")
    chain(m, "scale", "control=3", "--yes")
    m.well("control-1", "control-2", "control-3", "worker-1")
    same(m.result(digests=False), three.names)
    back = lambda: m.slipway("scale", "control=1", "--yes")
    back()
    each(m, three.adding, "scale", "control=3", "--yes", back=back)
    m.well("control-1", "control-2", "control-3", "worker-1")
    same(m.result(digests=False), three.names)
    back()


def remove(m, request):
    three = request.getfixturevalue("three")
    back = lambda: m.slipway("scale", "control=3", "--yes")
    back()
    chain(m, "scale", "control=1", "--yes")
    m.well("control-1", "worker-1")
    same(m.result(), three.one)
    back()
    each(m, three.removing, "scale", "control=1", "--yes", back=back)
    m.well("control-1", "worker-1")
    same(m.result(), three.one)


def replace(m, request):
    """The only one goes and another comes, in one edit: it joins, is promoted, and only then the old one leaves."""
    file, first = m.dir / "cluster.yaml", m.result(digests=False)

    def back():
        words(file, "without: [1]", "without: [2]")
        m.slipway("up", "--yes")
        words(file, "without: [2]", "without: [1]")

    words(file, "etcd], count: 1}", "etcd], count: 1, without: [1]}")
    m.slipway("up", "--yes")
    steps, second = m.changing(), m.result(digests=False)
    back()
    chain(m, "up", "--yes")
    m.well("control-2", "worker-1")
    same(m.result(digests=False), second)
    back()
    each(m, steps, "up", "--yes", back=back)
    m.well("control-2", "worker-1")
    same(m.result(digests=False), second)
    back()
    words(file, ", without: [1]}", "}")
    m.well("control-1", "worker-1")
    same(m.result(digests=False), first)


def restore(m, request):
    """The second worker came after the snapshot: what is put back does not know it, and it runs."""
    snapshot, nodes = str(m.dir / "kept.db"), ("control-1", "worker-1", "worker-2")
    m.slipway("etcd", "snapshot", "--to", snapshot)
    m.slipway("scale", "worker=2", "--yes")
    before = m.result()
    m.kubectl("create", "configmap", "lost")
    chain(m, "etcd", "restore", snapshot, "--yes")
    steps = m.changing("checked")
    m.well(*nodes)
    same(m.result(), before)
    each(m, steps, "etcd", "restore", snapshot, "--yes")
    m.well(*nodes)
    same(m.result(), before)
    assert m.killed("end end", "etcd", "restore", snapshot, "--yes")  # the workers' kubelets have not started again, or not all
    m.slipway("up")
    m.well(*nodes)
    same(m.result(), before)
    m.slipway("scale", "worker=1", "--yes")


def rotate_ca(m, request):
    names = m.result(digests=False)
    chain(m, "certs", "rotate-ca", "cluster", "etcd", "front-proxy", "--yes", phase=lambda: rotation(m))
    m.well("control-1", "worker-1")
    assert not rotation(m) and not (m.state / "next").exists()
    same(m.result(digests=False), names)


@pytest.mark.parametrize("what", [upgrade, add, remove, restore, rotate_ca, replace], ids=lambda f: f.__name__.replace("_", "-"))
def test_killed_at_every_boundary(cluster, request, what):
    """In this order on one cluster; each also alone."""
    cluster.kubectl("get", "configmap", "kept")
    what(cluster, request)
    cluster.kubectl("get", "configmap", "kept")
