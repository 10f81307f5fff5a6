"""The house rules that a program can check: includes point left, formatting, file sizes, words that must not appear."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# From left to right: a room includes only itself and rooms before it (docs/architecture.md).
ROOMS = ["base", "config", "pki", "artifact", "node", "deliver", "agent", "provider", "kube", "addon", "cluster", "controller", "ui", "cmd"]
SOURCES = sorted(p for d in ("src", "tests") for p in (ROOT / d).rglob("*.[ch]"))


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / p for p in out.decode().split("\0") if p and (ROOT / p).is_file()]


def test_includes_point_left():
    bad = []
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        room = path.relative_to(ROOT / "src").parts[0]
        assert room in ROOMS, f"{path}: the room {room} is not in the design"
        for target in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            other = target.split("/")[0]
            if "/" not in target or other not in ROOMS or ROOMS.index(other) > ROOMS.index(room):
                bad.append(f"{path.relative_to(ROOT)} includes {target}")
            if room == "agent" and other not in ("base", "agent", "deliver"):
                bad.append(f"{path.relative_to(ROOT)}: the agent includes only base and the protocol")
    assert not bad, "\n".join(bad)


@pytest.mark.skipif(not shutil.which("clang-format"), reason="clang-format is not installed")
def test_formatting():
    out = subprocess.run(["clang-format", "--dry-run", "-Werror", *SOURCES], cwd=ROOT, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr[:4000]


def test_no_file_is_crowded():
    big = [f"{p.relative_to(ROOT)}: {n} lines" for p in SOURCES if (n := len(p.read_text().splitlines())) > 800]
    assert not big, "asking to be two: " + ", ".join(big)


def test_shell_scripts():
    scripts = [p for p in tracked() if p.suffix == ".sh" or p.read_bytes()[:2] == b"#!" and b"sh" in p.read_bytes().split(b"\n")[0]]
    out = subprocess.run(["shellcheck", "-S", "warning", *scripts], cwd=ROOT, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout[:4000]


def test_names_no_registry_host():
    """Mirrors are read from the computer's own settings; their hosts do not stand in the project."""
    text = "".join(p.read_text(errors="replace") for p in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")] if p.is_file())
    if shutil.which("go"):
        text += subprocess.run(["go", "env", "GOPROXY"], capture_output=True, text=True, env=dict(os.environ, GOTOOLCHAIN="local")).stdout
    hosts = set(re.findall(r"https?://([^/\s,]+)", text))
    hits = [f"{p.relative_to(ROOT)}: {h}" for p in tracked() for h in hosts if h in p.read_text(errors="replace")]
    assert not hits, "\n".join(hits)


def test_size(tmp_path):
    """The dynamically linked program, stripped, stays under a megabyte."""
    binary = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway")
    if not binary.exists():
        pytest.skip("not built")
    stripped = tmp_path / "slipway"
    subprocess.run(["strip", "-o", stripped, binary], check=True)
    assert stripped.stat().st_size < 1_000_000
