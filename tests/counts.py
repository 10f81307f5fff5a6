"""What became of a stage's tests. A test that should have run and did not is a failure, and so is
one that was skipped where it could run."""
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# How a skip begins that is about the computer (its kernel, its network) or the build, and not
# about something that is not installed or not built.
EXCUSES = ("this computer ", "this build ")
WORSE = ("", "passed", "skipped", "failed")  # of the words about one test the worst counts


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    said: tuple = ()  # lines for under the stage's own

    def plus(self, other):
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped, self.said + other.said)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def by_words(status, output, ok, bad):
    """Counts by two patterns; a command that fails without naming a failed test is one failure."""
    passed = sum(int(n) for n in re.findall(ok, output, re.M))
    failed = sum(int(n) for n in re.findall(bad, output, re.M))
    return Count(passed, failed or (1 if status else 0))


def lines(path):
    try:
        return [json.loads(line) for line in Path(path).read_text(errors="replace").splitlines()]
    except (OSError, ValueError):
        return []


def judge_skips(skips):
    """(failures, skips, lines) of [(test, why)]: root has no excuse but the computer itself."""
    bad = [(t, why) for t, why in skips if os.geteuid() == 0 and not why.startswith(EXCUSES)]
    reasons = {}
    for t, why in skips:
        if (t, why) not in bad:
            reasons[why] = reasons.get(why, 0) + 1
    said = [f"skipped, and this computer could run it: {t}: {why}" for t, why in bad]
    return len(bad), len(skips) - len(bad), said + [f"{n} skipped: {why}" for why, n in reasons.items()]


# ---- pytest ----

def files_of(paths):
    """The files that hold the tests of these paths, as pytest finds them."""
    found = []
    for p in map(Path, paths):
        p = p if p.is_absolute() else ROOT / p
        found += [p] if p.suffix == ".py" else sorted(p.rglob("test_*.py"))
    return found


def of_pytest(status, outcomes, paths):
    """From what tests/conftest.py wrote down."""
    notes = lines(outcomes)
    wanted = [n["test"] for n in notes if "file" in n and "test" in n]
    became = {}
    for n in notes:
        if "outcome" in n and WORSE.index(n["outcome"]) > WORSE.index(became.get(n["test"], ("",))[0]):
            became[n["test"]] = (n["outcome"], n.get("why", ""))
    failed = [t for t, (o, _) in became.items() if o == "failed"]
    missing = [t for t in wanted if t not in became]
    held = {n["file"] for n in notes if "file" in n}
    empty = [p for p in files_of(paths) if str(p) not in held and not any(str(p).endswith(t) for t in became if "::" not in t)]
    bad, skipped, said = judge_skips([(t, why) for t, (o, why) in became.items() if o == "skipped"])
    said += [f"did not run: {t}" for t in missing] + [f"no test was found in {os.path.relpath(p, ROOT)}" for p in empty]
    problems = len(failed) + len(missing) + len(empty) + bad
    if not problems and status not in (0, 5):  # 5: all of it was deselected, and none of it is missing
        problems, said = 1, said + [f"pytest ended with status {status}"]
    return Count(sum(o == "passed" for o, _ in became.values()), problems, skipped, tuple(said))


# ---- meson ----

def programs():
    """{program below the build directory: its source} of every test in C; a fuzzer's harness is
    one too, with its saved corpus."""
    found = {p.with_suffix("").relative_to(ROOT): p for p in ROOT.glob("tests/*/test_*.c")}
    found |= {p.relative_to(ROOT).with_name(p.stem.replace("fuzz_", "corpus_")): p for p in ROOT.glob("tests/fuzz/fuzz_*.c")}
    return {str(name): str(p.relative_to(ROOT)) for name, p in found.items()}


def cmocka_skips(name, out):
    """[(test, why)]; a test that skips itself prints `skip: why` before. cmocka names each twice."""
    found = {case: why for why, case in reversed(re.findall(r"^(?:skip: (.*)\n)?\[  SKIPPED \] (\w+)$", out, re.M))}
    return [(f"{name}: {case}", why or "it does not say why") for case, why in found.items()]


def of_meson(status, directory):
    """From meson's own log of its last run, whose name and commands begin with the wrapper, if there was one."""
    log = [r for path in (ROOT / directory / "meson-logs").glob("testlog*.json") for r in lines(path)]
    commands = [[os.path.relpath(word, ROOT / directory) for word in r["command"] if word.startswith("/")] for r in log]
    ran = {words[0]: r for words, r in zip(commands, log)}
    missing = [source for name, source in programs().items() if name not in ran]
    failed = [name for name, r in ran.items() if r["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")]
    skips = [skip for name, r in ran.items() for skip in cmocka_skips(name, r.get("stdout") or "")]
    skips += [(name, "the program was skipped") for name, r in ran.items() if r["result"] == "SKIP"]
    bad, skipped, said = judge_skips(skips)
    said += [f"did not run: {source} (is it in its meson.build?)" for source in missing]
    problems = len(failed) + len(missing) + bad
    if status and not problems:
        problems, said = 1, said + [f"meson ended with status {status}"]
    return Count(sum(r["result"] == "OK" for r in ran.values()), problems, skipped, tuple(said))
