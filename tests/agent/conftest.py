import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("AGENT") or ROOT / "build" / "src" / "agent" / "agent")
    if not path.exists():
        pytest.fail(f"{path} is not built (AGENT names another)")
    return path


@pytest.fixture
def root(tmp_path):
    r = tmp_path / "root"
    (r / "var/lib").mkdir(parents=True)
    return r


@pytest.fixture
def argv(binary, root):
    return [str(binary), "--root", str(root)]
