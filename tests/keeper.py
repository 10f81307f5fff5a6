#!/usr/bin/env python3
"""The processes of a run of tests, and how all of them end, with the machines that they made.

Every command of a run is the first of a session of its own, has the run's name in its environment,
and works in the run's directory. So a run that is stopped finds all it started: commands are asked
to end (pytest's fixtures take their clusters down), what is still there then is taken down from
outside, and processes that are left are killed. Should the run itself be killed, a keeper does the
same: a small process that waits for the end of a pipe.

    tests/keeper.py DIRECTORY      (the keeper; started by Children)
"""
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "SLIPWAY_RUN"
PATIENCE = int(os.environ.get("SLIPWAY_PATIENCE") or 300)  # seconds for fixtures to take their clusters down


# ---- processes ----

def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def processes(mark=None):
    """{pid: command} of every process but this one; with a mark, of those that have it in their
    environment."""
    found = {}
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if int(p.name) != os.getpid() and (not mark or mark in (p / "environ").read_bytes().split(b"\0")) and alive(p.name):
                found[int(p.name)] = (p / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            pass
    return found


def marked(name):
    """Those that have this run's name."""
    return processes(f"{MARK}={name}".encode())


def send(pids, number, to=os.killpg):
    for pid in pids:
        try:
            to(pid, number)
        except OSError:
            pass


def gone(pids, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(alive(p) for p in pids):
            return True
        time.sleep(0.1)
    return False


# ---- the computer's settings ----

# No namespace holds these: machines of all stages share them, and each stage would put back what it
# found while others still need it. So a run sets what nodes want before its first machine, and puts
# back what it found after its last.
SETTINGS = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1",
            "fs/inotify/max_user_instances": "8192", "fs/inotify/max_user_watches": "524288"}


def set_computer(values):
    """Sets what can be set; what there was before."""
    before = {}
    for name, value in values.items():
        try:
            path = Path("/proc/sys", name)
            before[name] = path.read_text().strip()
            if before[name] != value:
                path.write_text(value)
        except OSError:
            pass  # no root, or a container
    return before


def put_back(work):
    try:
        set_computer(json.loads((work / "settings.json").read_text()))
    except (OSError, ValueError):
        pass


# ---- machines ----

def states(work):
    """The state directories of clusters that have machines; what is inside a machine is not looked
    at."""
    found = []
    for path, below, files in os.walk(work):
        if ".not-ours" in files:
            below.clear()
        elif os.path.exists(os.path.join(path, "machines", "id")):
            found.append(Path(path))
            below.clear()
        below[:] = [d for d in below if d != "sets" and not os.path.ismount(os.path.join(path, d))]
    return found


def take_down(state, build):
    """Ends the machines of one cluster; what went wrong, or None."""
    home = next((p for p in state.parents if (p / "cluster.yaml").exists()), state)
    ours = state.parent.name == ".slipway"
    command = [build / "slipway", "down", "--no-cleanup"] if ours else [build / "tests" / "provider" / "provider_tool", home / "cluster.yaml", state, "down"]
    try:
        r = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as e:
        r = subprocess.CompletedProcess(command, 1, "", str(e))
    if r.returncode == 0:
        return None
    send([pid for pid, command in processes().items() if str(state) in command], signal.SIGKILL, os.kill)  # a machine ends with its keeper
    bridge = "slw-" + (state / "machines" / "id").read_text().strip()
    subprocess.run(["ip", "link", "delete", bridge], stdin=subprocess.DEVNULL, capture_output=True)  # who uses the range next would be refused
    return (r.stderr or r.stdout).strip()[-2000:]


def sweep(work, build, say=print):
    """Takes down every machine below a run's directory; the number of clusters that would not go."""
    bad = 0
    for state in states(work):
        why = take_down(state, build)
        bad += why is not None
        say(f"machines of {state.relative_to(work)}: " + (f"cannot be taken down: {why}" if why else "taken down"))
    for each in sorted((work / "sets").glob("*/")):
        env = dict(os.environ, SLIPWAY_SET=each.name, SLIPWAY_MACHINES=str(work / "sets"), SLIPWAY_BRIDGE="")
        subprocess.run([ROOT / "tests" / "machines" / "machine.sh", "stop", "--all"], env=env, stdin=subprocess.DEVNULL, capture_output=True)
        say(f"machines of the set {each.name}: taken down")
    return bad


def remove(work):
    subprocess.run(["rm", "-rf", "--one-file-system", work], stderr=subprocess.DEVNULL)


def end(work, build, leaders, say=print, patience=PATIENCE):
    """Ends everything of a run. Interrupted in its wait it stops waiting, and goes on."""
    send(leaders, signal.SIGTERM)
    try:
        gone(leaders, patience)
    except KeyboardInterrupt:
        say("not waiting any longer")
    send([p for p in leaders if alive(p)], signal.SIGKILL)
    bad = sweep(work, build, say)
    left = marked(work.name)
    send(left, signal.SIGKILL, os.kill)
    gone(left, 10)
    put_back(work)
    if not bad:
        remove(work)
    return bad, left


# ---- the run's side ----

def lock(path):
    """The open lock of a run's directory, or None when another process has it."""
    fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd
    except OSError:
        os.close(fd)
        return None


class Children:
    """Starts the commands of one run, in a directory of its own below `base`."""

    def __init__(self, base, build):
        base.mkdir(parents=True, exist_ok=True)
        self.clear_killed(base, build)
        self.work, self.build = Path(tempfile.mkdtemp(prefix="slipway-run-", dir=base)), build
        self.work.chmod(0o755)
        (self.work / "settings.json").write_text(json.dumps(set_computer(SETTINGS)))
        self.guard, self.leaders, self.stopping = threading.Lock(), set(), False
        held = lock(self.work)
        self.keeper = subprocess.Popen([sys.executable, __file__, self.work, build, str(held)], stdin=subprocess.PIPE, pass_fds=[held], start_new_session=True)
        os.close(held)

    @staticmethod
    def clear_killed(base, build):
        """Runs that were killed together with their keepers, as by a power cut."""
        for d in base.glob("slipway-run-*"):
            if (held := lock(d)) is not None:
                end(d, build, ())
                os.close(held)

    def tell(self, text):
        try:
            self.keeper.stdin.write(text.encode())
            self.keeper.stdin.flush()
        except OSError:
            pass

    def run(self, command, env, polite=False, **more):
        """The status that a command ended with. A polite one gives way to the others: where the kernel
        shares the processors between sessions first, a nice value counts only within one, so its session gets it too."""
        with self.guard:
            if self.stopping:
                return -signal.SIGTERM
            p = subprocess.Popen([*(["nice"] if polite else []), *map(str, command)], env=env | {MARK: self.work.name}, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **more)
            if polite:
                give_way(p.pid)
            self.leaders.add(p.pid)
            self.tell(f"+{p.pid}\n")
        try:
            return p.wait()
        finally:
            with self.guard:
                self.leaders.discard(p.pid)
                self.tell(f"-{p.pid}\n")

    def stop(self, say):
        """Ends what runs; nothing starts any more."""
        with self.guard:
            self.stopping = True
            leaders = set(self.leaders)
        return self.close(leaders, say)

    def close(self, leaders=(), say=print):
        bad, left = end(self.work, self.build, leaders, say)
        self.tell("end\n")
        self.keeper.stdin.close()
        self.keeper.wait()
        return bad, left


def give_way(leader):
    try:
        Path(f"/proc/{leader}/autogroup").write_text("10")
    except OSError:  # this kernel has no such groups, or it has ended
        pass


def keep(work, build):
    """The keeper: knows who runs, and ends them when the run ends without a word."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    leaders = set()
    for line in sys.stdin:
        if line == "end\n":
            return
        (leaders.add if line[0] == "+" else leaders.discard)(int(line[1:]))
    said = []
    end(work, build, leaders, said.append)
    try:
        print("the run was killed: its processes and machines are gone", *said, sep="\n", file=sys.stderr)
    except OSError:
        pass


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
