"""A run of tests that is stopped, or killed, ends at once and leaves nothing: no process, no
machine, no directory."""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import until

TESTS = Path(__file__).resolve().parent.parent
sys.path.append(str(TESTS))
import keeper  # noqa: E402

# Five stages in three lanes: commands that hear SIGTERM and one that does not, and a process that
# went into the background.
STAGES = """
import sys
sys.path.insert(0, {tests!r})
import run
def stage(script):
    return lambda log: (run.run(["sh", "-c", script], log)[0] == 0, 0)
run.QUIET = {{"c"}}
run.ALL = {{"a": (stage("sleep 1000"), []), "b": (stage("trap '' TERM; sleep 1000; sleep 1000"), []), "c": (stage("setsid sleep 1000 & sleep 1000"), []),
           "d": (stage("touch {after}"), []), "e": (stage("touch {after}"), [])}}
run.main()
"""


@pytest.fixture
def stopped(tmp_path):
    """A run in a place of its own; ended at the end of the test, whatever came of it."""
    base = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-stop"
    base.mkdir(parents=True, exist_ok=True)
    runs = []

    def start(*command, **env):
        env = dict(os.environ, **env, SLIPWAY_WORK=str(base), SLIPWAY_TEST_LOGS=str(tmp_path / "logs"))
        runs.append(subprocess.Popen([*command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                                     preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)))  # whoever started us may be under nohup
        runs[-1].work = until("the run has its directory", lambda: next(base.glob("slipway-run-*"), None))
        return runs[-1]

    yield start
    for r in runs:
        if r.poll() is None:
            r.terminate()
            r.communicate()
        until("the keeper has cleared up", lambda: not keeper.marked(r.work.name) and not r.work.exists())
    base.rmdir()


def ended(run, number):
    """What it said, after everything of it is gone."""
    begun = time.monotonic()
    run.send_signal(number)
    out = run.communicate()[0]
    assert run.returncode == (-number if number == signal.SIGKILL else 128 + number), out
    until("nothing is left", lambda: not run.work.exists() and not keeper.marked(run.work.name), 60 if number == signal.SIGKILL else 1)
    print(f"{signal.Signals(number).name}: all gone after {time.monotonic() - begun:.1f} s", out, sep="\n")
    return out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda n: n.name)
def test_commands(stopped, tmp_path, number):
    after = tmp_path / "after"
    run = stopped(sys.executable, "-c", STAGES.format(tests=str(TESTS), after=after), "a", "b", "c", "d", "e", SLIPWAY_PATIENCE="2")
    until("three stages run", lambda: sum("sleep 1000" in c for c in keeper.marked(run.work.name).values()) >= 5)
    out = ended(run, number)
    assert not after.exists(), "no stage began afterwards"
    if number != signal.SIGKILL:
        assert "stopping: a, b, c" in out and "a: stopped" in out and "nothing is left" in out and "had to be killed: sleep 1000" in out, out


@pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
def test_machines(stopped, number):
    """A real stage, in the middle of `slipway up`."""
    run = stopped(TESTS / "run.py", "one-machine")
    state = run.work / "one-machine" / "slipway-test-one" / ".slipway" / "one"

    def runs():
        assert run.poll() is None, run.communicate()[0]
        return any(p.read_text().split() for p in state.glob("machines/*/lock")) and any(state.glob("machines/*/machine.json"))

    until("its machine runs", runs)
    mark = (state / "machines" / "id").read_text().strip()
    machine = next(state.glob("machines/*/machine.json")).read_text()
    out = ended(run, number)
    assert number == signal.SIGKILL or ("stopping: one-machine" in out and "nothing is left" in out), out
    assert not Path(f"/sys/class/net/slw-{mark}").exists(), "its bridge is gone"
    link = re.search(r'"interface": ?"([^"]+)"', machine)[1]
    assert not Path(f"/sys/class/net/{link}").exists(), "its cable is gone"
    assert str(run.work) not in Path("/proc/self/mountinfo").read_text()
    assert not [d for d, _, _ in os.walk("/sys/fs/cgroup") if re.search(rf"slipway[.-]\w*{mark}", d)]


def test_what_a_power_cut_left(tmp_path):
    """A run without a keeper is cleared by the next one; one that runs is let alone."""
    dead, alive = tmp_path / "slipway-run-dead", tmp_path / "slipway-run-alive"
    for d in (dead, alive):
        (d / "unit").mkdir(parents=True)
    held = keeper.lock(alive)
    children = keeper.Children(tmp_path, TESTS.parent / "build-test")
    try:
        assert not dead.exists() and (alive / "unit").exists() and children.work.exists()
    finally:
        children.close()
        os.close(held)
    assert not children.work.exists() and alive.exists()


def test_machines_of_others_are_not_looked_for(tmp_path):
    """A fresh root has processes with numbers of its own: it takes its machines down itself."""
    for d in ("a/.slipway/one", "root.x/home/.slipway/one"):
        (tmp_path / d / "machines").mkdir(parents=True)
        (tmp_path / d / "machines" / "id").touch()
    assert len(keeper.states(tmp_path)) == 2
    (tmp_path / "root.x" / ".not-ours").touch()
    assert keeper.states(tmp_path) == [tmp_path / "a/.slipway/one"]


@pytest.mark.skipif(os.geteuid() != 0, reason="bridges need root")
def test_killed_with_its_keeper_before_slipway_is_built(tmp_path):
    """The next run may be that of a fresh checkout, which has no slipway yet: the range of the dead run's bridge must be free all the same."""
    machines = tmp_path / "slipway-run-dead" / "c" / ".slipway" / "c" / "machines"
    machines.mkdir(parents=True)
    (machines / "id").write_text("0dead0ff\n")
    bridge = Path("/sys/class/net/slw-0dead0ff")
    subprocess.run(["ip", "link", "add", bridge.name, "type", "bridge"], check=True)
    try:
        keeper.Children.clear_killed(tmp_path, tmp_path / "not-built")
        assert not bridge.exists()
        assert machines.exists(), "what could not be taken down is tried again by a run that can"
    finally:
        if bridge.exists():
            subprocess.run(["ip", "link", "delete", bridge.name], check=True)
