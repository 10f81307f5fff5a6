"""What tests/run.py counts: nothing that is missing or skipped passes by unseen."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path.append(str(TESTS))
import counts  # noqa: E402


def stage(tmp_path, text, *args):
    """The count of one file of tests, run as a stage runs it."""
    file, outcomes = tmp_path / "test_it.py", tmp_path / "outcomes"
    outcomes.unlink(missing_ok=True)
    file.write_text("import pytest\n" + text)
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    r = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", TESTS / "pytest.ini", "--rootdir", tmp_path, *args, file],
                       env=dict(os.environ, SLIPWAY_OUTCOMES=str(outcomes)), cwd=tmp_path, capture_output=True, text=True)
    return counts.of_pytest(r.returncode, outcomes, [file])


@pytest.mark.parametrize("text, passed, failed, words", [
    ("def test_a(): pass\ndef test_b(): pass\n", 2, 0, []),
    ("def test_a(): pass\ndef test_b(): assert 0\n", 1, 1, []),
    ("@pytest.fixture\ndef f(): 1 / 0\ndef test_a(f): pass\n", 0, 1, []),
    ("@pytest.fixture\ndef f():\n    yield\n    1 / 0\ndef test_a(f): pass\n", 0, 1, []),
    ("1 / 0\n", 0, 1, []),
    ("", 0, 1, ["no test was found in "]),
    ("@pytest.mark.soak\ndef test_a(): pass\n", 0, 0, []),
    ("import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\ndef test_c(): pass\n", 1, 2, ["did not run: test_it.py::test_b", "did not run: test_it.py::test_c"]),
    ("import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGTERM)\n", 0, 1, ["did not run: test_it.py::test_a"]),
], ids=["good", "fails", "setup", "teardown", "import", "empty", "soak", "ends early", "stopped"])
def test_pytest(tmp_path, text, passed, failed, words):
    c = stage(tmp_path, text)
    assert (c.passed, c.failed, c.skipped) == (passed, failed, 0)
    assert len(c.said) == len(words) and all(s.startswith(w) for s, w in zip(c.said, words)), c.said


SKIPS = "def test_a(): pytest.skip('no browser here')\ndef test_b(): pytest.skip('this computer has no loop devices')\n@pytest.mark.skipif(True, reason='needs root')\ndef test_c(): pass\n"


@pytest.mark.parametrize("uid, failed, skipped", [(0, 2, 1), (1000, 0, 3)])
def test_skips(tmp_path, monkeypatch, uid, failed, skipped):
    """Root has no excuse but the computer itself; others are told what they did not see."""
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    c = stage(tmp_path, SKIPS)
    assert (c.passed, c.failed, c.skipped) == (0, failed, skipped)
    assert any("no browser here" in line for line in c.said) and any("needs root" in line for line in c.said)


def test_a_module_that_skips_itself(tmp_path):
    c = stage(tmp_path, "pytest.skip('this computer has no kernel', allow_module_level=True)\n")
    assert (c.passed, c.failed, c.skipped) == (0, 0, 1)
    c = stage(tmp_path, "pytest.importorskip('no_such_module')\n")
    assert (c.passed, c.failed if os.geteuid() == 0 else c.skipped) == (0, 1)


def results(tmp_path, monkeypatch, sources, ran):
    """The count of what meson's log says, in a checkout that has these sources."""
    monkeypatch.setattr(counts, "ROOT", tmp_path)
    for s in sources:
        (tmp_path / s).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / s).touch()
    (tmp_path / "b" / "meson-logs").mkdir(parents=True)
    log = [json.dumps({"command": [str(tmp_path / "b" / name)], "result": result, "stdout": out}) for name, result, out in ran]
    (tmp_path / "b" / "meson-logs" / "testlog.json").write_text("\n".join(log))
    return counts.of_meson(0, "b")


def test_meson(tmp_path, monkeypatch):
    """Each source of a test must have run, by its own name and in its own room."""
    c = results(tmp_path, monkeypatch, ["tests/unit/test_a.c", "tests/agent/test_a.c", "tests/unit/test_b.c", "tests/fuzz/fuzz_c.c", "tests/fuzz/fuzz_d.c"], [
        ("tests/unit/test_a", "OK", ""), ("tests/unit/test_b", "FAIL", ""), ("tests/fuzz/corpus_c", "OK", "")])
    assert (c.passed, c.failed) == (2, 3)
    assert [line.split()[3] for line in c.said] == ["tests/agent/test_a.c", "tests/fuzz/fuzz_d.c"]


def test_meson_skips(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    out = ("[ RUN      ] disks\nskip: this computer has no loop devices\n[  SKIPPED ] disks\n[ RUN      ] words\n[  SKIPPED ] words\n"
           "[  SKIPPED ] 2 test(s), listed below:\n[  SKIPPED ] disks\n[  SKIPPED ] words\n")
    c = results(tmp_path, monkeypatch, ["tests/unit/test_a.c"], [("tests/unit/test_a", "OK", out)])
    assert (c.passed, c.failed, c.skipped) == (1, 1, 1)
    assert c.said == ("skipped, and this computer could run it: tests/unit/test_a: words: it does not say why", "1 skipped: this computer has no loop devices")


def test_no_log_is_no_success(tmp_path, monkeypatch):
    """As when the programs of the tests were never built: five were counted, and nothing was said."""
    monkeypatch.setattr(counts, "ROOT", tmp_path)
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/unit/test_a.c").touch()
    c = counts.of_meson(0, "b")
    assert (c.passed, c.failed) == (0, 1) and c.said[0].startswith("did not run: tests/unit/test_a.c")


def test_the_sources_of_this_checkout():
    names = counts.programs()
    assert "tests/unit/test_base" in names and "tests/agent/test_wire" in names and "tests/fuzz/corpus_config" in names
    assert len(names) == sum(1 for p in ("unit/test_*.c", "agent/test_*.c", "fuzz/fuzz_*.c") for _ in TESTS.glob(p)) + sum(
        1 for p in TESTS.glob("*/test_*.c") if p.parent.name not in ("unit", "agent"))
