"""The rows of tests/run.py: each file of tests belongs to one stage of `make test`, and long rooms are in front of short ones."""
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))
import run as stages  # noqa: E402

NO_FILES = {"build", "unit", "sanitizers", "fuzz"}  # programs in C, and what another stage runs too


@pytest.fixture
def files(monkeypatch, tmp_path):
    """{stage: its files}"""
    found = {}
    for name in stages.STAGES.keys() - NO_FILES:
        def note(_, *args, env=None, name=name):
            for path in (TESTS.parent / a for a in args):
                found.setdefault(name, []).extend([path] if path.suffix else path.rglob("test_*.py"))
        monkeypatch.setattr(stages, "pytest", note)
        stages.STAGES[name][0](tmp_path / "log")
    return found


def test_each_file_is_in_one_stage(files):
    run = [path for row in files.values() for path in row]
    own = {TESTS / p for p in stages.ONLY_SOAKED}
    assert sorted(run) == sorted(p for p in TESTS.rglob("test_*.py") if p not in own)


def test_peers_are_two_stages(files):
    assert {p.name for p in files["peers-aws"]} == {"test_aws.py", "test_aws_cloud.py"}
    assert {"test_paper.py", "test_credential.py", "test_trunks.py"} < {p.name for p in files["peers-openstack"]}
    rooms = [name for name in stages.STAGES if stages.kind(name) == "room"]
    assert rooms[:2] == ["peers-aws", "peers-openstack"] and set(rooms) == stages.ROOMS
