"""Both commands on a computer that has only what a fresh Debian has, in both orders, as far as
unit, golden and one machine. Long: packages are installed twice."""
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-fresh"
DEMO = ["make demo DEMO_YAML=tests/setup/one.yaml", "make demo-down"]
TEST = ["make test STAGES='unit golden one-machine'"]
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="a root of its own needs root")]


@pytest.fixture(scope="module")
def place():
    WORK.mkdir(parents=True, exist_ok=True)
    yield WORK
    subprocess.run(["rm", "-rf", "--one-file-system", WORK], check=True)


def fresh(place, *commands):
    """What was printed. The clone's cluster is in the fresh root: it is taken down there, whatever
    happens."""
    p = subprocess.Popen([HERE / "fresh.sh", place, *commands], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        out = p.communicate()[0]
    except KeyboardInterrupt:
        p.terminate()
        p.wait()
        raise
    print(out[-20000:])
    assert p.returncode == 0, out[-6000:]
    return out


def counted(out):
    """Every test program of the sources ran, and nothing was left out."""
    programs = sum(1 for p in ("*/test_*.c", "fuzz/fuzz_*.c") for _ in HERE.parent.glob(p))
    assert f"unit: {programs} passed, 0 failed" in out
    assert re.search(r"^golden: \d{3,} passed, 0 failed \(", out, re.M) and re.search(r"^one-machine: 1 passed, 0 failed \(", out, re.M)
    assert re.search(r"^\d+ passed, 0 failed, 0 skipped$", out, re.M)


def test_demo_then_test(place):
    out = fresh(place, *DEMO, *TEST)
    assert "control-1   Ready" in out
    demo = out[:out.index("+ make test")]
    assert not re.search(r"installing.*\b(chromium|clang|zsh|fish|cmocka)", demo), "a demo installs what a demo needs"
    counted(out)


def test_test_then_demo(place):
    out = fresh(place, *TEST, *DEMO)
    counted(out[:out.index("+ make demo")])
    assert "control-1   Ready" in out
