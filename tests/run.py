#!/usr/bin/env python3
"""Runs the tests, stage by stage, and counts them.

    tests/run.py [STAGE...]     (default: all, in order)

A stage is one row of STAGES, or of MORE. The slow build of the upstream programs goes on in the background from the start and is
waited for by the stages that need it. The last line is `N passed, N failed`.
"""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
VENV = CACHE / "venv" / "bin"
LOGS = ROOT / "build" / "logs"
CHECKS = "-fno-sanitize-recover=all"  # undefined behaviour is a failure, not a remark

ENV = dict(os.environ, PATH=f"{os.environ['PATH']}:{VENV}", LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=1:abort_on_error=0",
           UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1", PYTHONDONTWRITEBYTECODE="1")


def run(cmd, log, env=None):
    """Runs a command with its output in a log; returns (status, output)."""
    with open(log, "ab") as f:
        f.write(f"$ {' '.join(map(str, cmd))}\n".encode())
        f.flush()
        start = f.tell()
        status = subprocess.run([str(c) for c in cmd], cwd=ROOT, env=dict(ENV, **(env or {})), stdin=subprocess.DEVNULL, stdout=f, stderr=f).returncode
    with open(log, "rb") as f:
        f.seek(start)
        return status, f.read().decode(errors="replace")


def count(status, output, ok, bad):
    """Counts by two patterns; a command that fails without naming a failed test is one failure."""
    passed = sum(int(n) for n in re.findall(ok, output, re.M))
    failed = sum(int(n) for n in re.findall(bad, output, re.M))
    return passed, failed or (1 if status else 0)


def build(directory, log, *options, env=None):
    if not (ROOT / directory / "build.ninja").exists():
        status, _ = run(["meson", "setup", directory, *options], log, env)
        if status:
            return status
    return run(["ninja", "-C", directory], log)[0]


def meson_tests(directory, log, *options, env=None):
    if build(directory, log, *options, env=env):
        return 0, 1
    status, out = run(["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs"], log)
    return count(status, out, r"^Ok: +(\d+)", r"^(?:Fail|Timeout|Unexpected Pass): +(\d+)")


def pytest(log, *paths, env=None):
    status, out = run([VENV / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *paths], log, env)
    return count(status, out, r"(\d+) passed", r"(\d+) (?:failed|error)")


def unit(log):
    return meson_tests("build", log, "-Dwerror=true")


def sanitizers(log):
    passed, failed = meson_tests("build-asan", log, "-Db_sanitize=address,undefined", "-Db_lundef=false", f"-Dc_args={CHECKS}", "-Dwerror=true")
    p, f = pytest(log, "tests/golden", env={"SLIPWAY": str(ROOT / "build-asan" / "slipway")})
    return passed + p, failed + f


def fuzz(log):
    """Each harness, a fixed count from a fixed seed, on top of the saved corpus."""
    if build("build-fuzz", log, "-Dfuzz=true", "-Dtests=disabled", "-Db_sanitize=address,undefined", "-Db_lundef=false", f"-Dc_args={CHECKS}", env={"CC": "clang"}):
        return 0, 1
    passed = failed = 0
    runs = os.environ.get("FUZZ_RUNS", "20000")
    for harness in sorted((ROOT / "build-fuzz" / "tests" / "fuzz").glob("fuzz_*")):
        if not harness.is_file() or harness.suffix:
            continue
        found = ROOT / "build-fuzz" / "found" / harness.name
        found.mkdir(parents=True, exist_ok=True)
        corpus = ROOT / "tests" / "fuzz" / "corpus" / harness.name.removeprefix("fuzz_")
        status, _ = run([harness, f"-runs={runs}", "-seed=1", "-max_len=4096", "-timeout=120", f"-artifact_prefix={found}/", found, corpus], log)
        passed, failed = passed + (status == 0), failed + (status != 0)
    return passed, failed


def golden(log):
    return pytest(log, "tests/golden", "tests/unit")


def judges(log):
    if artifacts.wait():
        print(f"  building the upstream programs failed: {LOGS}/artifacts.log", flush=True)
        return 0, 1
    return pytest(log, "tests/judges")


def rooms(log):
    """Rooms that talk to others, each driven by a small program against the real thing: sshd, an API server, a mirror, machines."""
    if artifacts.wait():
        return 0, 1
    passed = failed = 0
    for build_dir in ("build", "build-asan"):
        env = {name: str(ROOT / build_dir / path) for name, path in (
            ("KUBE_TOOL", "tests/kube/kube_tool"), ("LINK_TOOL", "tests/link/link_tool"), ("PROVIDER_TOOL", "tests/provider/provider_tool"),
            ("UI_TOOL", "tests/ui/ui_tool"))}
        env["SLIPWAY"] = str(ROOT / build_dir / "slipway")
        # what parses others' bytes is run under the sanitizers too (the machines have no sanitizer's libraries, so not there)
        every = ("agent", "artifact", "kube", "link", "provider", "ui")
        for room in every if build_dir == "build" else ("agent/test_agent.py", "agent/test_probe.py", "kube", "link"):
            # the sanitizers see the agent as a program of this build; others get the static one
            env["AGENT"] = str(ROOT / ("build-asan/src/agent/agent-checked" if build_dir == "build-asan" and room.startswith("agent") else "build/src/agent/agent"))
            start = time.monotonic()
            p, f = pytest(log, f"tests/{room}", env=env)
            print(f"  {build_dir} {room}: {p} passed, {f} failed ({time.monotonic() - start:.0f} s)", flush=True)
            passed, failed = passed + p, failed + f
    return passed, failed


def machines(log):
    if artifacts.wait():
        return 0, 1
    status, out = run(["tests/machines/by-hand.sh"], log)
    passed, failed = count(status, out, r"^(\d+) passed", r"^\d+ passed, (\d+) failed")
    p, f = pytest(log, "tests/machines", "tests/verbs")
    return passed + p, failed + f


def soak(log):
    """What is too long for every time."""
    if artifacts.wait() or build("build", log, "-Dwerror=true"):
        return 0, 1
    return pytest(log, "-m", "soak", "tests/machines")


STAGES = {"unit": unit, "golden": golden, "sanitizers": sanitizers, "fuzz": fuzz, "rooms": rooms, "judges": judges, "machines": machines}
MORE = {"soak": soak}  # only when asked for


def main():
    global artifacts
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / "artifacts.log", "wb") as f:
        artifacts = subprocess.Popen(["nice", ROOT / "scripts" / "artifacts.sh"], cwd=ROOT, env=ENV, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    passed = failed = 0
    for name in sys.argv[1:] or STAGES:
        log = LOGS / f"{name}.log"
        log.unlink(missing_ok=True)
        start = time.monotonic()
        p, f = (STAGES | MORE)[name](log)
        print(f"{name}: {p} passed, {f} failed ({time.monotonic() - start:.0f} s)", flush=True)
        if f:
            print(*log.read_text(errors="replace").splitlines()[-150:], sep="\n", flush=True)
        passed, failed = passed + p, failed + f
    if sys.argv[1:] and artifacts.poll() is None:
        artifacts.terminate()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
