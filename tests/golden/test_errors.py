"""What `slipway check` says about each errors/NAME.yaml, word for word: errors/NAME.txt is its whole stderr.

    REGEN=1 pytest tests/golden/test_errors.py     writes the texts anew; read every difference as a user would

A file called warning-NAME.yaml is fine but for its warnings: status 0. Every other has a mistake: status 3, nothing on stdout.

LATER are rules of options that are refused until slipway acts on them: those run with the refusal off, and again with it.
"""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "golden" / "errors"
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CASES = sorted(p.stem for p in HERE.glob("*.yaml"))
REGEN = os.environ.get("REGEN")
LATER = {"policies", "warning-heal"}


# git keeps no such modes
for name, mode in {"registry-no-password.yaml": 0o600, "dex.secret": 0o644, "../nodes/external-etcd/s3-key": 0o600, "secret-modes.yaml": 0o644}.items():
    (HERE / name).chmod(mode)


def check(*files, cwd, later=False):
    args = [word for name in files for word in ("-f", name)]
    env = dict(os.environ, **({"SLIPWAY_TEST_LATER": "1"} if later else {}))
    return subprocess.run([SLIPWAY, "check", *args], cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, timeout=600, env=env)


@pytest.mark.parametrize("case", CASES)
def test_text(case):
    r = check(case + ".yaml", cwd=HERE, later=case in LATER)
    expected, text = HERE / (case + ".txt"), r.stderr.decode()
    assert r.returncode == (0 if case.startswith("warning-") else 3), text
    assert bool(r.stdout) == case.startswith("warning-"), r.stdout
    if REGEN:
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("case", sorted(LATER))
def test_refused_for_now(case):
    r = check(case + ".yaml", cwd=HERE)
    assert r.returncode == 3 and b": this option is not implemented yet, and therefore refused\n" in r.stderr


def test_every_text_has_its_case():
    assert sorted(p.stem for p in HERE.glob("*.txt")) == CASES
    assert len(CASES) >= 75


@pytest.mark.parametrize("case", CASES)
def test_style(case):
    """Each problem: file:line:column: path: a sentence that begins small and has no final full stop; the hint likewise."""
    for line in (HERE / (case + ".txt")).read_text().splitlines():
        if line.startswith("hint: ") or line.startswith(case + ".yaml:"):
            assert not line.endswith("."), line
            assert "  " not in line and "(null)" not in line, line


@pytest.mark.parametrize("example", sorted(p.name for p in (ROOT / "examples").glob("*.yaml")))
def test_examples_have_no_problem(example):
    r = check(example, cwd=ROOT / "examples")
    assert r.returncode == 0
    assert not [line for line in r.stderr.decode().splitlines() if line.startswith(example)]


def test_two_files(tmp_path):
    """A problem is shown in the file it stands in, and names the other file."""
    (tmp_path / "site.yaml").write_text("spec:\n  network: {pods: 10.96.0.0/16}\n")
    (tmp_path / "cluster.yaml").write_text((ROOT / "examples" / "demo.yaml").read_text().rstrip("\n") + "\n  network: {services: 10.96.0.0/16}\n")
    r = check("site.yaml", "cluster.yaml", cwd=tmp_path)
    assert r.returncode == 3
    assert "cluster.yaml:10:23: network.services: 10.96.0.0/16 overlaps network.pods 10.96.0.0/16 (in site.yaml:2)\n" in r.stderr.decode()
