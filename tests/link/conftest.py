import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).resolve().parent.parent.parent


def built(variable, *names):
    path = Path(os.environ.get(variable) or ROOT / "build" / Path(*names))
    if not path.exists():
        pytest.fail(f"{path} is not built ({variable} names another)")
    return path


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0 or not (shutil.which("sshd") or Path("/usr/sbin/sshd").exists()):
        for i in items:
            i.add_marker(pytest.mark.skip(reason="needs root and OpenSSH's sshd"))


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Where tests find them that mount another directory over /root, which the checkout may be below."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def tool(programs):
    return Path(shutil.copy2(built("LINK_TOOL", "tests", "link", "link_tool"), programs))


@pytest.fixture(scope="session")
def agent(programs):
    return Path(shutil.copy2(built("AGENT", "agent"), programs))


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    import node
    return node.Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def site(tool, agent, keys, tmp_path):
    import node
    s = node.Site(tool, agent, keys, tmp_path)
    yield s
    s.close()
