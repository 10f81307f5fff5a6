import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).resolve().parent.parent.parent


class Played:
    def __init__(self, directory, result):
        self.status, self.out, self.err = result.returncode, result.stdout, result.stderr
        self.report = (directory / "report.html").read_text()


@pytest.fixture(scope="session")
def tool():
    path = Path(os.environ.get("UI_TOOL") or ROOT / "build" / "tests" / "ui" / "ui_tool")
    if not path.exists():
        pytest.fail(f"{path} is not built (UI_TOOL names another)")
    return path


@pytest.fixture
def play(tool, tmp_path):
    """Plays a script with no terminal."""
    def run(script, *args):
        data = script if isinstance(script, bytes) else script.encode()
        return Played(tmp_path, subprocess.run([tool, tmp_path, *args], input=data, capture_output=True, timeout=900))
    return run
