"""`up` on a cluster that an earlier slipway made: the plan is shown, applied without loss, and then
there is nothing left to do.

The earlier program is built from this repository's own history, once, and kept in the cache. What
was written before and meanwhile must be there afterwards."""
import base64
import io
import json
import os
import shutil
import subprocess
import tarfile
import time

import pytest

from clients import NAMESPACE, Api, Reader, Writer
from harness import APP, CACHE, NEWEST, ROOT, Machines, until
from test_ha import numbers

COMMIT = "d7a8d37"  # the last one without hardening: what the clusters of its time were made with
NETWORK = "10.158.0"
VIP = f"{NETWORK}.5"
SPEC = f"""\
  kubernetes: {NEWEST}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
"""
LONGEST = float(os.environ.get("LONGEST") or 5)  # seconds without an answer, where there is more than one API server
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


def pools(controls):
    return ("  pools:\n" f"    - {{name: control, roles: [control-plane, etcd], count: {controls}}}\n"
            "    - {name: worker, count: 1}\n")


def must(*argv, **more):
    r = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, **more)
    assert r.returncode == 0, f"{' '.join(map(str, argv))}: status {r.returncode}\n{r.stdout[-3000:].decode()}{r.stderr[-3000:].decode()}"
    return r.stdout


@pytest.fixture(scope="module")
def earlier():
    """The program of that commit."""
    program = CACHE / f"before-{COMMIT}" / "slipway"
    if not program.exists():
        source = program.with_name("source")
        shutil.rmtree(program.parent, ignore_errors=True)
        source.mkdir(parents=True)
        archive = subprocess.run(["git", "-C", ROOT, "archive", COMMIT], stdin=subprocess.DEVNULL, capture_output=True)
        assert archive.returncode == 0, (f"the history here has no commit {COMMIT}, so the slipway of that time cannot be built: {archive.stderr.decode().strip()}; "
                                         "in a shallow clone, git fetch --unshallow brings it")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(source)
        must("meson", "setup", "build", "-Dtests=disabled", cwd=source)
        must("ninja", "-C", "build", "slipway", cwd=source)
        shutil.copy2(source / "build" / "slipway", program.with_suffix(".new"))
        program.with_suffix(".new").rename(program)
        shutil.rmtree(source)
    return program


def make(m, earlier):
    """The cluster as it was made then, with something in it."""
    def old(*args):
        return must(earlier, *args, cwd=m.dir).decode()

    old("up", "--yes")
    (m.dir / "kubeconfig").write_text(old("kubeconfig"))
    m.kubectl("create", "namespace", NAMESPACE)
    m.kubectl("create", "secret", "generic", "kept", "--from-literal=word=harbour")
    (m.dir / "app.yaml").write_text(APP)
    m.kubectl("apply", "-f", str(m.dir / "app.yaml"))
    until("two pods run", lambda: m.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")


def show_plan(m):
    """What `up` would do: no node comes, goes or is made again."""
    r = m.slipway("plan", "--exit-code", ok=None)
    assert r.returncode in (0, 9), r.stdout + r.stderr
    print(r.stdout)
    plan = json.loads(m.slipway("plan", "-o", "json").stdout)
    actions = {n["node"]: n["action"] for n in plan["nodes"]}
    assert set(actions.values()) <= {"keep", "change"}, actions
    hardens = "hardening" in m.slipway("schema").stdout
    assert not hardens or (r.returncode == 9 and any(a == "change" for a in actions.values())), "a cluster from before is not hardened, and the plan says so"


def go_on(m):
    """The plan applied while clients write and read: every write that was acknowledged is there."""
    writer = Writer(Api(m.dir / "kubeconfig"))
    reader = Reader(Api(m.dir / "kubeconfig"), writer)
    for c in (writer, reader):
        c.start()
    try:
        until("both work", lambda: len(writer.ok) > 20 and len(reader.ok) > 20)
        begun = time.monotonic()
        r = m.slipway("up", "--yes", ok=None)
        took, gaps = time.monotonic() - begun, {"writes": writer.gap(begun), "reads": reader.gap(begun)}
    finally:
        for c in (writer, reader):
            c.stop()
    (m.dir / "up.log").write_text(r.stderr)
    assert r.returncode == 0, r.stderr
    print(f"up took {took:.0f} s; {len(writer.acknowledged)} writes; the longest gap of writes {gaps['writes']:.1f} s,"
          f" of reads {gaps['reads']:.1f} s", *writer.troubles[-10:], sep="\n  ")
    assert not reader.lost and not set(writer.acknowledged) - numbers(m), "every acknowledged write is there"
    return gaps


def well(m):
    m.slipway("plan", "--exit-code")
    m.healthy()
    assert base64.b64decode(m.kubectl("get", "secret", "kept", "-o", "jsonpath={.data.word}")) == b"harbour"
    until("two pods run", lambda: m.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")


def test_one_control_plane(earlier):
    with Machines("before-one", SPEC + pools(1)) as m:
        make(m, earlier)
        show_plan(m)
        go_on(m)
        well(m)


@pytest.mark.soak
def test_three_control_planes(earlier):
    with Machines("before", SPEC + f"  api: {{vip: {VIP}}}\n" + pools(3)) as m:
        make(m, earlier)
        show_plan(m)
        gaps = go_on(m)
        well(m)
        assert max(gaps.values()) < LONGEST, gaps
