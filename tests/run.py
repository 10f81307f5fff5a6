#!/usr/bin/env python3
"""Runs the tests, stage by stage, and counts them.

    tests/run.py [STAGE...]     (default: all of STAGES)
    tests/run.py soak           (all of SOAK, and what it needs)

A stage is one row of STAGES or SOAK. Each lane takes the first row that has all it needs, so that long stages stand first and short
ones fill up. Two lanes are for real clusters, which wait for something much of the time. In a third, what only computes (QUIET) goes
on beside them, with what they leave of the processors, and then the rooms on their own (ROOMS). The slow builds of the upstream
programs (UPSTREAM) go on in the background from the start. A line a stage, when it has ended; the last line is `N passed, N failed`.
"""
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
VENV = CACHE / "venv" / "bin"
LOGS = ROOT / "build" / "logs"
CHECKS = "-fno-sanitize-recover=all"  # undefined behaviour is a failure, not a remark
LANE = threading.local()  # of the thread: quiet, when it gives way to the others

ENV = dict(os.environ, PATH=f"{os.environ['PATH']}:{VENV}", LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=1:abort_on_error=0",
           UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1", PYTHONDONTWRITEBYTECODE="1",
           CCACHE_DIR=str(CACHE / "ccache"), CCACHE_MAXSIZE="1G", CCACHE_NOHASHDIR="1")  # wherever the checkout is


def run(cmd, log, env=None):
    """Runs a command with its output in a log; returns (status, output)."""
    with open(log, "ab") as f:
        f.write(f"$ {' '.join(map(str, cmd))}\n".encode())
        f.flush()
        start = f.tell()
        polite = ["nice"] if getattr(LANE, "quiet", False) else []
        status = subprocess.run([*polite, *map(str, cmd)], cwd=ROOT, env=dict(ENV, **(env or {})), stdin=subprocess.DEVNULL, stdout=f, stderr=f).returncode
    with open(log, "rb") as f:
        f.seek(start)
        return status, f.read().decode(errors="replace")


def count(status, output, ok, bad):
    """Counts by two patterns; a command that fails without naming a failed test is one failure."""
    passed = sum(int(n) for n in re.findall(ok, output, re.M))
    failed = sum(int(n) for n in re.findall(bad, output, re.M))
    return passed, failed or (1 if status else 0)


def build(directory, log, *options, env=None, targets=()):
    if not (ROOT / directory / "build.ninja").exists():
        status, _ = run(["meson", "setup", directory, *options], log, env)
        if status:
            return status
    return run(["ninja", "-C", directory, *targets], log)[0]


def meson_tests(directory, log, *options, env=None):
    if build(directory, log, *options, env=env):
        return 0, 1
    status, out = run(["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", "-t", "5"], log)
    return count(status, out, r"^Ok: +(\d+)", r"^(?:Fail|Timeout|Unexpected Pass): +(\d+)")


def pytest(log, *paths, env=None):
    status, out = run([VENV / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--durations=15", "--durations-min=5", *paths], log, env)
    if status == 5:  # all of it is for `make soak`
        return 0, 0
    return count(status, out, r"(\d+) passed", r"(\d+) (?:failed|error)")


def build_slipway(log):
    """Everything waits for this one. It counts as a test only when it fails."""
    return 0, int(build("build", log, "-Dwerror=true") != 0)


def unit(log):
    return meson_tests("build", log, "-Dwerror=true")


def sanitizers(log):
    passed, failed = meson_tests("build-asan", log, "-Doptimization=1", "-Db_sanitize=address,undefined", "-Db_lundef=false", f"-Dc_args={CHECKS}", "-Dwerror=true")
    p, f = pytest(log, "tests/golden", env={"SLIPWAY": str(ROOT / "build-asan" / "slipway")})
    return passed + p, failed + f


def fuzz(log, runs=2500):
    """Each harness, a fixed count from a fixed seed, on top of the saved corpus."""
    harnesses = [f"tests/fuzz/{p.stem}" for p in sorted((ROOT / "tests" / "fuzz").glob("fuzz_*.c"))]
    if build("build-fuzz", log, "-Dfuzz=true", "-Dtests=disabled", "-Db_sanitize=address,undefined", "-Db_lundef=false", f"-Dc_args={CHECKS}",
             env={"CC": "ccache clang" if shutil.which("ccache") else "clang"}, targets=harnesses):  # and not the rooms that no harness reaches
        return 0, 1
    passed = failed = 0
    runs = os.environ.get("FUZZ_RUNS", runs)
    for harness in (ROOT / "build-fuzz" / h for h in harnesses):
        found = ROOT / "build-fuzz" / "found" / harness.name
        found.mkdir(parents=True, exist_ok=True)
        corpus = ROOT / "tests" / "fuzz" / "corpus" / harness.name.removeprefix("fuzz_")
        status, _ = run([harness, f"-runs={runs}", "-seed=1", "-max_len=4096", "-timeout=120", f"-artifact_prefix={found}/", found, corpus], log)
        passed, failed = passed + (status == 0), failed + (status != 0)
    return passed, failed


def golden(log):
    return pytest(log, "tests/golden", "tests/unit")


def judges(log):
    return pytest(log, "tests/judges")


# What parses others' bytes is run under the sanitizers too (the machines have no sanitizer's libraries, so not there).
def room(*paths, build_dir="build", agent="build/src/agent/agent"):
    """A room that talks to others, driven by a small program against the real thing: sshd, an API server, a mirror, machines."""
    tools = {"KUBE_TOOL": "tests/kube/kube_tool", "LINK_TOOL": "tests/link/link_tool", "PROVIDER_TOOL": "tests/provider/provider_tool", "UI_TOOL": "tests/ui/ui_tool",
             "SLIPWAY": "slipway"}
    env = {name: str(ROOT / build_dir / path) for name, path in tools.items()} | {"AGENT": str(ROOT / agent)}
    return lambda log: pytest(log, *(f"tests/{p}" for p in paths), env=env)


def by_hand(log):
    status, out = run(["tests/machines/by-hand.sh"], log)
    return count(status, out, r"^(\d+) passed", r"^\d+ passed, (\d+) failed")


def clusters(*paths):
    """Real clusters. Files that share a network are one stage, one after the other, or one stage waits for the other."""
    return lambda log: pytest(log, *(f"tests/{p}" for p in paths))


def other_clusters(log):
    """Whatever is in tests/machines and in no row: a new file runs without one."""
    named = {p for row in OWN_STAGE.values() for p in row}
    rest = [p for p in sorted((ROOT / "tests" / "machines").glob("test_*.py")) if f"machines/{p.name}" not in named]
    return pytest(log, *rest)


def soak(name, *which, env=None):
    """What is too long for every time, of one file; what it printed (seeds, counts of kills) is in the log."""
    return lambda log: pytest(log, "-rP", "-m", "soak", f"tests/machines/test_{name}.py", *which, env=env)


OWN_STAGE = {
    "scale": ["machines/test_scale.py"],
    "ha": ["machines/test_ha.py", "machines/test_faults.py", "machines/test_topologies.py"],
    "etcd": ["machines/test_etcd.py"],
    "verbs": ["verbs"],
    "reset": ["machines/test_reset.py"],
    "ssh-hosts": ["machines/test_ssh_hosts.py"],
    "fabric": ["machines/test_fabric.py"],
    "upgrade": ["machines/test_upgrade.py"],
    "certs": ["machines/test_certs.py"],
}
# name: (what it runs, what must have ended before: stages, or builds of UPSTREAM)
STAGES = {
    "build": (build_slipway, []),
    "unit": (unit, ["build"]),
    "sanitizers": (sanitizers, ["build"]),
    **{name: (clusters(*paths), ["build", "upstream"]) for name, paths in OWN_STAGE.items()},
    "fabric": (clusters(*OWN_STAGE["fabric"]), ["build", "upstream", "kubernetes-1.35.4"]),
    "upgrade": (clusters(*OWN_STAGE["upgrade"]), ["build", "upstream", "kubernetes-1.35.4"]),
    "machines": (other_clusters, ["build", "upstream"]),
    "judges": (judges, ["build", "upstream"]),
    "provider": (room("provider"), ["build", "upstream"]),
    "agent": (room("agent"), ["build", "upstream"]),
    "kube": (room("kube"), ["build", "upstream"]),
    "link": (room("link"), ["build"]),
    "artifact": (room("artifact"), ["build", "upstream"]),
    "fuzz": (fuzz, []),
    "golden": (golden, ["build"]),
    "ui": (room("ui"), ["build"]),
}
# `make soak`: only when asked for.
SOAKED = [p.stem.removeprefix("test_") for p in sorted((ROOT / "tests" / "machines").glob("test_*.py")) if "mark.soak" in p.read_text()]
SOAK = {name: (fn, ["build", "upstream", "kubernetes-1.35.4"]) for name, fn in {
    "soak-kills": soak("kills", "-k", "not test_up_"),  # the longest, so in two rows, and first
    **{f"soak-{name}": soak(name) for name in SOAKED if name != "kills"},
    "soak-kills-up": soak("kills", "-k", "test_up_", env={"NETWORKS": "10.136", "SLIPWAY_WORK": "/var/tmp/slipway-kills-up"}),
}.items()} | {
    "by-hand": (by_hand, ["build", "upstream"]),
    "fuzz-longer": (lambda log: fuzz(log, 20000), []),
    "agent-sanitizers": (room("agent/test_agent.py", "agent/test_probe.py", build_dir="build-asan", agent="build-asan/src/agent/agent-checked"), ["build", "sanitizers"]),
    "kube-sanitizers": (room("kube", build_dir="build-asan"), ["build", "sanitizers", "upstream"]),
    "link-sanitizers": (room("link", build_dir="build-asan"), ["build", "sanitizers"]),
}
ALL = STAGES | SOAK
QUIET = {"unit", "sanitizers", "judges", "golden", "fuzz", "fuzz-longer"}  # no time is measured in these
ROOMS = {"provider", "agent", "kube", "link", "artifact", "ui"}
# The kinds of stage that each lane takes, and which it likes best.
LANES = [("cluster", "room", "quiet"), ("cluster", "room", "quiet"), ("quiet", "room")]


def kind(name):
    return "quiet" if name in QUIET else "room" if name in ROOMS else "cluster"


# Programs to test with, one build after the other; stages name those they wait for.
UPSTREAM = {
    "upstream": (["scripts/artifacts.sh"], {}),
    "kubernetes-1.35.4": (["scripts/artifacts.sh", "kubernetes"], {"KUBERNETES_VERSION": "1.35.4"}),  # to upgrade from
}


class Run:
    """The stages that were asked for, in lanes, and the builds behind them. What is not asked for counts as done."""

    def __init__(self, names):
        self.left, self.busy = list(names), set()
        self.passed = self.failed = 0
        self.changed = threading.Condition()
        needed = {n for name in names for n in ALL[name][1]}
        self.building, self.broken = [u for u in UPSTREAM if u in needed], set()

    def build_upstream(self):
        (LOGS / "artifacts.log").unlink(missing_ok=True)
        for name in list(self.building):
            command, env = UPSTREAM[name]
            with open(LOGS / "artifacts.log", "ab") as f:
                status = subprocess.run(["nice", *command], cwd=ROOT, env=dict(ENV, **env), stdin=subprocess.DEVNULL, stdout=f, stderr=f).returncode
            with self.changed:
                self.building.remove(name)
                if status:
                    self.broken.add(name)
                self.changed.notify_all()

    def take(self, kinds):
        """The next stage that can run, or None when none is left for this lane."""
        with self.changed:
            while mine := [n for n in self.left if kind(n) in kinds]:
                waits = {*self.left, *self.busy, *self.building}
                for name in sorted(mine, key=lambda n: kinds.index(kind(n))):
                    if not waits.intersection(ALL[name][1]):
                        self.left.remove(name)
                        self.busy.add(name)
                        return name
                self.changed.wait()
        return None

    def stage(self, name):
        log, start = LOGS / f"{name}.log", time.monotonic()
        log.unlink(missing_ok=True)
        missing = self.broken.intersection(ALL[name][1])
        try:
            passed, failed = (0, 1) if missing else ALL[name][0](log)
        except Exception:  # a stage that cannot run is a failure, not the end of the others
            passed, failed = 0, 1
            log.write_text(traceback.format_exc())
        with self.changed:
            self.passed, self.failed = self.passed + passed, self.failed + failed
            print(f"{name}: {passed} passed, {failed} failed ({time.monotonic() - start:.0f} s)", flush=True)
            if missing:
                print(f"  building {', '.join(missing)} failed: {LOGS}/artifacts.log", flush=True)
            if failed and log.exists():
                print(*log.read_text(errors="replace").splitlines()[-150:], sep="\n", flush=True)
            self.busy.remove(name)
            self.changed.notify_all()

    def lane(self, kinds):
        while name := self.take(kinds):
            LANE.quiet = name in QUIET
            self.stage(name)

    def all(self):
        threading.Thread(target=self.build_upstream, daemon=True).start()
        lanes = [threading.Thread(target=self.lane, args=[kinds]) for kinds in LANES]
        for t in lanes:
            t.start()
        for t in lanes:
            t.join()


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    names = ["build", "sanitizers", *SOAK] if sys.argv[1:] == ["soak"] else sys.argv[1:] or list(STAGES)
    unknown = [n for n in names if n not in ALL]
    if unknown:
        sys.exit(f"no such stage: {' '.join(unknown)} (there are: {' '.join(ALL)})")
    r = Run(names)
    r.all()
    print(f"{r.passed} passed, {r.failed} failed")
    sys.exit(1 if r.failed or not r.passed else 0)


if __name__ == "__main__":
    main()
