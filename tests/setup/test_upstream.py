"""When run.py builds upstream's programs: after slipway, which has the recipes, and in the order of the sets."""
import sys
import threading
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))
import run as stages  # noqa: E402


class Children:
    def __init__(self, fails=()):
        self.ran, self.fails = [], fails

    def run(self, command, _, polite, **__):
        assert command[:2] == [stages.ENV["SLIPWAY"], "programs"]
        assert polite == (command[2] != "common"), "clusters wait for the first, and run beside the others"
        self.ran.append(command[2])
        return int(command[2] in self.fails)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(stages, "LOGS", tmp_path)
    return stages.Run(["build", "kube", "upgrade"])


def build(monkeypatch, run, children):
    monkeypatch.setattr(stages, "CHILDREN", children)
    t = threading.Thread(target=run.build_upstream, daemon=True)
    t.start()
    return t


def test_slipway_is_built_first(monkeypatch, run):
    children = Children()
    assert run.take(("cluster",)) == "build"
    t = build(monkeypatch, run, children)
    t.join(0.3)
    assert t.is_alive() and not children.ran
    with run.changed:
        run.busy.remove("build")
        run.changed.notify_all()
    t.join(60)
    assert children.ran == ["common", "previous"], "what no stage needs is not built"
    assert run.building == [] and not run.broken


def test_a_build_that_fails_fails_its_stages(monkeypatch, run):
    run.left.remove("build")
    build(monkeypatch, run, Children({"previous"})).join(60)
    assert run.broken == {"previous"}
    assert "building previous failed" in run.count("upgrade", stages.LOGS / "upgrade.log").said[0]


def test_none_is_begun_after_a_stop(monkeypatch, run):
    children = Children()
    run.stopped, run.left = True, []
    build(monkeypatch, run, children).join(60)
    assert not children.ran
