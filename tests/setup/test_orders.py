"""The two commands, in any order, in the smallest form (the whole of it on a fresh root:
test_fresh.py): what one leaves in a checkout does not matter to the other."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
import counts  # noqa: E402
import run as stages  # noqa: E402

WANTED = ["-Dtests=enabled", "-Dwerror=true"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    d = tmp_path_factory.mktemp("clone")
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in (os.fsdecode(f) for f in files if f):
        if (ROOT / name).is_file():
            (d / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, d / name)
    yield d
    shutil.rmtree(d)


def must(clone, *command, **env):
    """Without the variables of this run of tests: as a person calls it."""
    kept = {k: v for k, v in os.environ.items() if k not in (*stages.programs("build"), "SLIPWAY_OUTCOMES", "SLIPWAY_WORK", "SLIPWAY_MACHINES", "SLIPWAY_RUN")}
    r = subprocess.run(command, cwd=clone, env=kept | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert r.returncode == 0, f"{command}: {r.stdout[-4000:]}"
    return r.stdout


def test_tests_after_a_demo(clone):
    """The demo set up build/ on a computer without cmocka: all test programs are there all the
    same, and are counted."""
    must(clone, "meson", "setup", "build", "-Dtests=disabled")
    out = must(clone, "tests/run.py", "unit")
    n = len(counts.programs())
    assert f"unit: {n} passed, 0 failed" in out and f"{n} passed, 0 failed, 0 skipped" in out.splitlines()[-1]
    kept = {o["name"]: o["value"] for o in json.loads((clone / "build/meson-info/intro-buildoptions.json").read_text())}
    assert kept["tests"] == "disabled", "the demo's own directory is as it was"


def test_a_demo_after_tests(clone):
    """build-test and the logs are there, and nothing else: make builds the program."""
    shutil.rmtree(clone / "build", ignore_errors=True)
    (clone / "build" / "logs").mkdir(parents=True)
    must(clone, "make", "build")
    assert "slipway" in must(clone, "build/slipway", "version")


def broken_set_up(d):
    (d / "build.ninja").unlink()


def killed_set_up(d):
    shutil.rmtree(d / "meson-info")


def other_options(d):
    subprocess.run(["meson", "configure", d, "-Dtests=disabled"], check=True, capture_output=True)


def other_checkout(d):
    info = d / "meson-info" / "meson-info.json"
    info.write_text(info.read_text().replace('"source": "', '"source": "/elsewhere'))


def no_set_up(d):
    shutil.rmtree(d)
    d.mkdir()
    (d / "leftover").touch()


@pytest.mark.parametrize("spoil", [broken_set_up, killed_set_up, other_options, other_checkout, no_set_up], ids=lambda f: f.__name__)
def test_whatever_it_finds(clone, monkeypatch, tmp_path, spoil):
    monkeypatch.setattr(stages, "ROOT", clone)
    monkeypatch.setattr(stages, "run", lambda cmd, log, env=None: (subprocess.run(cmd, cwd=clone, capture_output=True).returncode, ""))
    if not stages.is_set_up("build-spoilt", WANTED):
        assert stages.set_up("build-spoilt", tmp_path / "log", WANTED, None) == 0
    assert stages.is_set_up("build-spoilt", WANTED) and not stages.is_set_up("build-spoilt", ["-Dtests=enabled", "-Dwerror=false"])
    spoil(clone / "build-spoilt")
    assert not stages.is_set_up("build-spoilt", WANTED)
    assert stages.set_up("build-spoilt", tmp_path / "log", WANTED, None) == 0
    assert stages.is_set_up("build-spoilt", WANTED)
