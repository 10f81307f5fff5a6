"""Every rendered document is judged by the program that will read it, not by us.

The programs: Debian's own, and upstream's from `slipway programs`. A judge that is missing is a failure: install it, or build it.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from upstream import upstream

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden" / "nodes"))
import cases  # noqa: E402


class Programs:
    """Paths of judges: upstream("kubelet"), system("haproxy")."""

    upstream = staticmethod(upstream)

    @staticmethod
    def system(name):
        found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin")
        assert found, f"{name} is not installed: `make test` installs it"
        return Path(found)


@pytest.fixture(scope="session")
def programs():
    return Programs


@pytest.fixture(scope="session")
def rendered(tmp_path_factory):
    """case → directory of its nodes, rendered once, with secrets; user_data(case, format) likewise."""
    done = {}

    def get(case, kind="files"):
        if (case, kind) not in done:
            base = tmp_path_factory.mktemp(f"{case}-{kind}")
            cases.render(case, base / "out", base / "state", "--format", kind, *(["--secrets"] if kind == "files" else []))
            done[case, kind] = base / "out"
        return done[case, kind]
    return get


def judge(*cmd, status=0, timeout=600, **kwargs):
    """Runs a judge; what it said is the failure's text."""
    r = subprocess.run([str(c) for c in cmd], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, text=True, errors="replace", **kwargs)
    assert status is None or r.returncode == status, f"{' '.join(map(str, cmd))}: status {r.returncode}\n{r.stdout[-6000:]}"
    return r.stdout


@pytest.fixture(scope="session", name="judge")
def judge_fixture():
    return judge


judged = set()


def once(*what):
    """False when a judge has seen this before, of another node or case: nodes of a pool have many files alike, and most judges are slow to start."""
    new = what not in judged
    judged.add(what)
    return new


def nodes(directory):
    return sorted(p for p in directory.iterdir() if p.is_dir())


def find(directory, pattern):
    """(node, path) of every file of that name in the trees of a case."""
    return [(node, p) for node in nodes(directory) for p in sorted((node / "root").glob(pattern)) if p.is_file() and not p.is_symlink()]


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases.CASES)
