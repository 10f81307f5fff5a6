#!/usr/bin/env python3
"""Runs the tests, stage by stage, and counts them.

    tests/run.py [STAGE...]     (default: all of STAGES)
    tests/run.py soak           (all of SOAK, and what it needs)

A stage is one row of STAGES, SOAK or ASKED. Each lane takes the first row that has all it needs, so that long stages stand first and short
ones fill up. Two lanes are for real clusters, which wait for something much of the time. In a third, what only computes (QUIET) goes
on beside them, with what they leave of the processors, and then the rooms on their own (ROOMS). The slow builds of the upstream
programs (UPSTREAM) go on in the background as soon as slipway is built. A line a stage, when it has ended; the last line is
`N passed, N failed, N skipped`. What is missing, and what root skips on a computer that could run it, has failed (counts.py).

Everything is built in build-test, whatever build/ holds. Ctrl-C and SIGTERM end the stages, take their machines down and end the
run with status 130 or 143 (keeper.py). See tests/README.md.
"""
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from counts import Count, by_words, of_meson, of_pytest
from keeper import Children

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
VENV = CACHE / "venv" / "bin"
LOGS = Path(os.environ.get("SLIPWAY_TEST_LOGS") or ROOT / "build" / "logs")
BUILD = "build-test"
CHECKS = "-fno-sanitize-recover=all"  # undefined behaviour is a failure, not a remark
# Meson gives each test a session of its own, which gives way to the other stages only if it is asked to (keeper.py).
POLITE = "sh -c '(echo 10 >/proc/self/autogroup) 2>/dev/null; exec \"$@\"' sh"
LANE = threading.local()  # of the thread: its stage, and quiet, when it gives way to the others
CHILDREN = None  # of this run


def programs(directory):
    """The programs under test, by the names that the tests look for."""
    tools = {"SLIPWAY": "slipway", "AGENT": "src/agent/agent", "KUBE_TOOL": "tests/kube/kube_tool", "LINK_TOOL": "tests/link/link_tool",
             "CLOUD_TOOL": "tests/cloud/cloud_tool", "PROVIDER_TOOL": "tests/provider/provider_tool", "UI_TOOL": "tests/ui/ui_tool"}
    return {name: str(ROOT / directory / path) for name, path in tools.items()}


ENV = dict(os.environ, PATH=f"{CACHE / 'go' / 'bin'}:{os.environ['PATH']}:{VENV}", LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=1:abort_on_error=0",
           UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1", PYTHONDONTWRITEBYTECODE="1",
           CCACHE_DIR=str(CACHE / "ccache"), CCACHE_MAXSIZE="1G", CCACHE_NOHASHDIR="1", **programs(BUILD))  # wherever the checkout is


def run(cmd, log, env=None):
    """Runs a command with its output in a log; returns (status, output)."""
    with open(log, "ab") as f:
        f.write(f"$ {' '.join(map(str, cmd))}\n".encode())
        f.flush()
        start = f.tell()
        status = CHILDREN.run(cmd, dict(ENV, **places(), **(env or {})), getattr(LANE, "quiet", False), cwd=ROOT, stdout=f, stderr=f)
    with open(log, "rb") as f:
        f.seek(start)
        return status, f.read().decode(errors="replace")


def places():
    """Where a stage's clusters and machines lie: below the run's own directory, so that whoever
    ends the run finds them."""
    work = CHILDREN.work / getattr(LANE, "stage", "other")
    work.mkdir(exist_ok=True)
    return {"SLIPWAY_WORK": str(work), "SLIPWAY_MACHINES": str(CHILDREN.work / "sets")}


def is_set_up(directory, options):
    """Whether a build directory belongs to this checkout and has these options, whoever set it up."""
    def plain(value):
        return str(value).lower() if isinstance(value, bool) else ",".join(value) if isinstance(value, list) else str(value)

    info = ROOT / directory / "meson-info"
    try:
        about = json.loads((info / "meson-info.json").read_text())
        has = {o["name"]: plain(o["value"]) for o in json.loads((info / "intro-buildoptions.json").read_text())}
        same = not about["error"] and about["directories"]["source"] == str(ROOT)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    wanted = dict(o.removeprefix("-D").split("=", 1) for o in options)
    return same and (ROOT / directory / "build.ninja").exists() and all(has.get(k) == v for k, v in wanted.items())


def set_up(directory, log, options, env):
    """Anew, whatever is there: other options, a set-up that was killed, one of another checkout.
    Objects stay."""
    for name in ("meson-private", "meson-info", "meson-logs"):
        shutil.rmtree(ROOT / directory / name, ignore_errors=True)
    (ROOT / directory / "build.ninja").unlink(missing_ok=True)
    return run(["meson", "setup", directory, *options], log, env)[0]


def build(directory, log, *options, env=None, targets=()):
    if not is_set_up(directory, options) and (status := set_up(directory, log, options, env)):
        return status
    return run(["ninja", "-C", directory, *targets], log)[0]


def meson_tests(directory, log, *options, env=None):
    if build(directory, log, "-Dtests=enabled", "-Dwerror=true", *options, env=env):
        return Count(failed=1, said=(f"{directory} could not be built",))
    for old in (ROOT / directory / "meson-logs").glob("testlog*.json"):
        old.unlink()
    polite = ["--wrapper", POLITE] if getattr(LANE, "quiet", False) else []
    status, _ = run(["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", "-t", "5", *polite], log, env)
    return of_meson(status, directory)


def pytest(log, *args, env=None):
    """args: pytest's; those that are files or directories must hold tests, and each test must run."""
    outcomes = log.with_suffix(f".{sum(1 for _ in log.parent.glob(log.stem + '.*.outcomes'))}.outcomes")
    status, _ = run([VENV / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--durations=15", "--durations-min=5", *args], log,
                    {"SLIPWAY_OUTCOMES": str(outcomes), **(env or {})})
    return of_pytest(status, outcomes, [a for a in args if (ROOT / a).exists() or str(a).endswith(".py")])


def build_slipway(log):
    """Everything waits for this one. It counts as a test only when it fails."""
    return Count(failed=int(build(BUILD, log, "-Dtests=enabled", "-Dwerror=true") != 0))


def unit(log):
    """The simulated faults at each fifth event: the sanitizers have all of them."""
    return meson_tests(BUILD, log, env={"FAKE_EVERY": "5"})


SANITIZED = ("-Doptimization=1", "-Db_sanitize=address,undefined", "-Db_lundef=false", f"-Dc_args={CHECKS}")


def build_sanitizers(log):
    """Only built: their tests are a stage of make test."""
    return Count(failed=int(build("build-asan", log, "-Dtests=enabled", "-Dwerror=true", *SANITIZED) != 0))


def sanitizers(log):
    checked = meson_tests("build-asan", log, *SANITIZED)
    return checked.plus(pytest(log, "tests/golden", env={"SLIPWAY": str(ROOT / "build-asan" / "slipway")}))


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
def room(*paths, build_dir=BUILD, agent=f"{BUILD}/src/agent/agent"):
    """A room that talks to others, driven by a small program against the real thing: sshd, an API server, a mirror, machines."""
    env = programs(build_dir) | {"AGENT": str(ROOT / agent)}
    return lambda log: pytest(log, *(f"tests/{p}" for p in paths), env=env)


def by_hand(log):
    status, out = run(["tests/machines/by-hand.sh"], log)
    return by_words(status, out, r"^(\d+) passed", r"^\d+ passed, (\d+) failed")


def clusters(*paths):
    """Real clusters. Files that share a network are one stage, one after the other, or one stage waits for the other."""
    return lambda log: pytest(log, *(f"tests/{p}" for p in paths))


def others(directory):
    """Whatever is there and in no row of OWN_STAGE: a new file runs without one."""
    named = {*ONLY_SOAKED, *(p for row in OWN_STAGE.values() for p in row)}
    return [path for p in sorted((ROOT / "tests" / directory).glob("test_*.py")) if (path := f"{directory}/{p.name}") not in named]


def soak(name, *which, env=None):
    """What is too long for every time, of one file; what it printed (seeds, counts of kills) is in the log."""
    return lambda log: pytest(log, "-rP", "-m", "soak", f"tests/machines/test_{name}.py", *which, env=env)


OWN_STAGE = {
    "scale": ["machines/test_scale.py"],
    "ha": ["machines/test_ha.py", "machines/test_faults.py", "machines/test_topologies.py"],
    "etcd": ["machines/test_etcd.py"],
    "verbs": ["verbs"],
    "reset": ["machines/test_reset.py"],
    "ssh-hosts": ["machines/test_ssh_hosts.py", "machines/test_forged.py"],
    "fabric": ["machines/test_fabric.py"],
    "upgrade": ["machines/test_upgrade.py"],
    "certs": ["machines/test_certs.py"],
    "clients": ["machines/test_under_clients.py"],
    "adopt": ["machines/test_adopt.py"],
    "services": ["machines/test_services.py"],
    "clouds": ["peers/test_aws_cluster.py", "peers/test_openstack_cluster.py"],
}
AWS = ["peers/test_aws.py", "peers/test_aws_cloud.py"]  # half of the providers' time
SOAKED_CLOUDS = ["peers/test_behind_bastion.py", "peers/test_replaced.py"]
PARTS = "peers/test_cloud_parts.py"  # the cloud's controller and CSI driver in pods
OPENSTACK = "peers/test_openstack_real.py"  # its services need what `scripts/setup.sh openstack` installs
TOFU = "peers/test_tofu.py"
ONLY_SOAKED = [OPENSTACK, TOFU, PARTS, *SOAKED_CLOUDS]
# name: (what it runs, what must have ended before: stages, or builds of UPSTREAM)
STAGES = {
    "build": (build_slipway, []),
    "unit": (unit, ["build"]),
    "sanitizers": (sanitizers, ["build"]),
    **{name: (clusters(*paths), ["build", "upstream"]) for name, paths in OWN_STAGE.items()},
    "verbs": (clusters(*OWN_STAGE["verbs"]), ["build", "upstream", "kube-bench"]),
    "fabric": (clusters(*OWN_STAGE["fabric"]), ["build", "upstream", "previous"]),
    "upgrade": (clusters(*OWN_STAGE["upgrade"]), ["build", "upstream", "previous"]),
    "clients": (clusters(*OWN_STAGE["clients"]), ["build", "upstream", "previous"]),
    "adopt": (clusters(*OWN_STAGE["adopt"]), ["build", "upstream", "previous"]),
    "services": (clusters(*OWN_STAGE["services"]), ["build", "upstream", "helm"]),
    "machines": (clusters(*others("machines")), ["build", "upstream"]),
    "judges": (judges, ["build", "upstream"]),
    "peers-aws": (room(*AWS), ["build", "upstream"]),  # the longest rooms first; every test has its own cloud and directory, so both may run at once
    "peers-openstack": (room(*(p for p in others("peers") if p not in AWS)), ["build", "upstream"]),
    "provider": (room("provider"), ["build", "upstream"]),
    "agent": (room("agent"), ["build", "upstream"]),
    "kube": (room("kube"), ["build", "upstream"]),
    "link": (room("link"), ["build"]),
    "artifact": (room("artifact"), ["build", "upstream"]),
    "fuzz": (fuzz, []),
    "golden": (golden, ["build"]),
    "ui": (room("ui"), ["build"]),
    "cloud": (room("cloud"), ["build"]),
    "setup": (room("setup"), ["build", "upstream"]),
}
# `make soak`: only when asked for.
SOAKED = [p.stem.removeprefix("test_") for p in sorted((ROOT / "tests" / "machines").glob("test_*.py")) if "mark.soak" in p.read_text()]
SOAK = {name: (fn, ["build", "upstream", "previous", *(["helm"] if "services" in name else [])]) for name, fn in {
    "soak-kills": soak("kills", "-k", "not test_up_"),  # the longest, so in two rows, and first
    **{f"soak-{name}": soak(name) for name in SOAKED if name != "kills"},
    "soak-fresh": lambda log: pytest(log, "-rP", "-m", "soak", "tests/setup/test_fresh.py"),  # both commands on a fresh Debian
    "soak-kills-up": soak("kills", "-k", "test_up_", env={"NETWORKS": "10.136"}),
}.items()} | {
    "soak-login": (soak("login"), ["build", "upstream", "login"]),  # dex, kubelogin and a browser
    "soak-calico": (soak("calico"), ["build", "upstream", "fabrics"]),
    "soak-netpol": (soak("netpol"), ["build", "upstream", "fabrics", "conformance"]),  # upstream's own tests
    "soak-addons": (soak("addons"), ["build", "upstream", "helm", "addons"]),
    "soak-charts": (lambda log: pytest(log, "-rP", "-m", "soak", "tests/judges/test_charts.py"), ["build", "upstream", "helm"]),
    "soak-addons_built_in": (soak("addons_built_in"), ["build", "upstream", "addons"]),
    "soak-ingress": (soak("ingress"), ["build", "upstream", "addons", "ingress"]),
    "soak-addons_more": (soak("addons_more"), ["build", "upstream", "addons"]),
    "soak-peers": (lambda log: pytest(log, "-rP", "-m", "soak", *(f"tests/{p}" for p in others("peers"))), ["build", "upstream", "controllers", "volumes"]),  # every fault at every call; the cloud controllers and CSI drivers
    "soak-clouds": (lambda log: pytest(log, "-rP", "-m", "soak", *(f"tests/{p}" for p in OWN_STAGE["clouds"])), ["build", "upstream", "previous"]),
    **{f"soak-{Path(p).stem.removeprefix('test_')}": (lambda log, p=p: pytest(log, "-rP", "-m", "soak", f"tests/{p}"), ["build", "upstream"]) for p in SOAKED_CLOUDS},
    "soak-cloud_parts": (lambda log: pytest(log, "-rP", "-m", "soak", f"tests/{PARTS}"), ["build", "upstream", "controllers", "volumes"]),
    "soak-openstack": (lambda log: pytest(log, "-rP", "-m", "soak", f"tests/{OPENSTACK}"), ["build", "upstream", "previous", "terraform"]),
    "soak-tofu": (lambda log: pytest(log, "-rP", "-m", "soak", f"tests/{TOFU}"), ["build", "upstream", "terraform"]),
    "by-hand": (by_hand, ["build", "upstream"]),
    "fuzz-longer": (lambda log: fuzz(log, 50000), ["build", "build-sanitizers"]),
    "agent-sanitizers": (room("agent/test_agent.py", "agent/test_probe.py", build_dir="build-asan", agent="build-asan/src/agent/agent-checked"), ["build", "build-sanitizers"]),
    "kube-sanitizers": (room("kube", build_dir="build-asan"), ["build", "build-sanitizers", "upstream"]),
    "cloud-sanitizers": (room("cloud", build_dir="build-asan"), ["build", "build-sanitizers"]),
    "peers-sanitizers": (room(*others("peers"), build_dir="build-asan"), ["build", "build-sanitizers"]),
    "link-sanitizers": (room("link", build_dir="build-asan"), ["build", "build-sanitizers"]),
}
# Only when named or needed: what the stages of soak and the tests of the tests themselves run.
ASKED = {
    "build-sanitizers": (build_sanitizers, []),
    "one-machine": (clusters("setup/one_machine.py"), ["build", "upstream"]),
}
ALL = STAGES | SOAK | ASKED
QUIET = {"unit", "sanitizers", "build-sanitizers", "judges", "golden", "fuzz", "fuzz-longer"}  # no time is measured in these
ROOMS = {"peers-aws", "peers-openstack", "provider", "agent", "kube", "link", "artifact", "ui", "cloud", "setup"}
# The kinds of stage that each lane takes, and which it likes best.
LANES = [("cluster", "room", "quiet"), ("cluster", "room", "quiet"), ("quiet", "room")]

SOON = 30  # seconds


def kind(name):
    return "quiet" if name in QUIET else "room" if name in ROOMS else "cluster"


# Programs to test with, one build after the other; stages name those they wait for. The catalogue has the sets: `slipway programs`.
UPSTREAM = {
    "upstream": "common",
    "previous": "previous",  # Kubernetes to upgrade from
    "helm": "services",
    "addons": "addons",  # programs of the built-in ones
    "ingress": "ingress",  # Traefik: long, and only for soak
    "kube-bench": "hardening",  # its judge
    "login": "login",  # dex and kubelogin
    "fabrics": "fabrics",  # Calico: long, and only for soak
    "controllers": "clouds",  # the cloud controller managers of OpenStack and AWS: likewise
    "volumes": "volumes",  # Cinder's CSI driver and its sidecars: likewise
    "conformance": "conformance",  # upstream's e2e.test and the program of its pods: likewise
    "terraform": "terraform",  # OpenTofu and its provider for OpenStack: likewise
}


class Stopped(KeyboardInterrupt):
    """By a signal, which is its argument."""


class Run:
    """The stages that were asked for, in lanes, and the builds behind them. What is not asked for counts as done."""

    def __init__(self, names):
        self.left, self.busy, self.stopped = list(names), set(), False
        self.total = Count()
        self.changed = threading.Condition()
        needed = {n for name in names for n in ALL[name][1]}
        self.building, self.broken, self.building_since = [u for u in UPSTREAM if u in needed], set(), None

    def build_upstream(self):
        """When the program is there: it has the recipes."""
        (LOGS / "artifacts.log").unlink(missing_ok=True)
        with self.changed:
            self.changed.wait_for(lambda: "build" not in {*self.left, *self.busy})
        self.building_since = time.monotonic()
        for name in [] if self.stopped else list(self.building):
            with open(LOGS / "artifacts.log", "ab") as f:
                # the clusters wait for the first, and beside the others they run
                status = CHILDREN.run([ENV["SLIPWAY"], "programs", UPSTREAM[name]], ENV, name != "upstream", cwd=ROOT, stdout=f, stderr=f)
            with self.changed:
                self.building.remove(name)
                if status:
                    self.broken.add(name)
                self.changed.notify_all()

    def soon(self):
        """Whether stages for clusters may begin in some seconds, because the programs are there already: long stages that only compute
        are then left to the third lane."""
        begun = self.building_since
        return bool(self.building) and (begun is None or time.monotonic() - begun < SOON)

    def take(self, kinds):
        """The next stage that can run, or None when none is left for this lane."""
        with self.changed:
            while mine := [n for n in self.left if kind(n) in kinds]:
                waits = {*self.left, *self.busy, *self.building}
                for name in sorted(mine, key=lambda n: kinds.index(kind(n))):
                    if kinds[0] == "cluster" and kind(name) == "quiet" and self.soon():
                        break
                    if not waits.intersection(ALL[name][1]):
                        self.left.remove(name)
                        self.busy.add(name)
                        return name
                self.changed.wait(1)
        return None

    def count(self, name, log):
        for old in (log, *LOGS.glob(f"{name}.*.outcomes")):
            old.unlink(missing_ok=True)
        if missing := self.broken.intersection(ALL[name][1]):
            return Count(failed=1, said=(f"building {', '.join(missing)} failed: {LOGS}/artifacts.log",))
        try:
            return Count(*ALL[name][0](log))
        except Exception:  # a stage that cannot run is a failure, not the end of the others
            with open(log, "a") as f:
                f.write(traceback.format_exc())
            return Count(failed=1)

    def stage(self, name):
        log, start = LOGS / f"{name}.log", time.monotonic()
        count = self.count(name, log)
        took = f"({time.monotonic() - start:.0f} s)"
        with self.changed:
            if self.stopped:
                print(f"{name}: stopped {took}", flush=True)
            else:
                self.total = self.total.plus(count)
                print(f"{name}: {count.line()} {took}", flush=True)
                self.tell(count, log)
            self.busy.remove(name)
            self.changed.notify_all()

    @staticmethod
    def tell(count, log):
        if count.failed and log.exists():
            print(*log.read_text(errors="replace").splitlines()[-150:], sep="\n", flush=True)
        for line in count.said:
            print(f"  {line}", flush=True)

    def lane(self, kinds):
        while name := self.take(kinds):
            LANE.quiet, LANE.stage = name in QUIET, name
            self.stage(name)

    def all(self):
        threading.Thread(target=self.build_upstream, daemon=True).start()
        self.lanes = [threading.Thread(target=self.lane, args=[kinds], daemon=True) for kinds in LANES]
        for t in self.lanes:
            t.start()
        for t in self.lanes:
            t.join()

    def stop(self):
        """At once: no stage begins any more, those that run take down what they made."""
        with self.changed:
            self.stopped = True
            self.left.clear()
            print(f"stopping: {', '.join(sorted(self.busy)) or 'no stage runs'}", flush=True)
            self.changed.notify_all()
        bad, left = CHILDREN.stop(lambda text: print(f"  {text}", flush=True))
        for t in self.lanes:
            t.join(10)
        for pid, command in left.items():
            print(f"  process {pid} had to be killed: {command}")
        print("stopped: " + ("some machines are left, see above" if bad else "nothing is left"), f"(before: {self.total.line()})", flush=True)


def asked(words):
    """The stages of the command line, with the builds that they need."""
    names = list(SOAK) if words == ["soak"] else words or list(STAGES)
    unknown = [n for n in names if n not in ALL]
    if unknown:
        sys.exit(f"no such stage: {' '.join(unknown)} (there are: {' '.join(ALL)})")
    needs = {n for name in names for n in ALL[name][1]}
    return [n for n in ("build", "build-sanitizers") if n in needs and n not in names] + list(names)


def on_signal(number, _):
    raise Stopped(number)


def main():
    global CHILDREN
    names = asked(sys.argv[1:])
    LOGS.mkdir(parents=True, exist_ok=True)
    CHILDREN = Children(Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp"), ROOT / BUILD)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, on_signal)
    r = Run(names)
    try:
        r.all()
    except Stopped as e:
        r.stop()
        sys.exit(128 + e.args[0])
    bad, _ = CHILDREN.close()
    print(f"{r.total.passed} passed, {r.total.failed + bad} failed, {r.total.skipped} skipped")
    sys.exit(1 if r.total.failed or bad or not r.total.passed else 0)


if __name__ == "__main__":
    main()
