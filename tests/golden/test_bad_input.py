"""Bad input and bad computers: one clear sentence, a documented exit status, and nothing lost or half-written."""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
DEMO = (ROOT / "examples" / "demo.yaml").read_text()
CONFIG, INTERNAL, STATE = 3, 1, 8
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and owners need root")


def slipway(*args, cwd, **kw):
    return subprocess.run([SLIPWAY, *args], cwd=cwd, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, **kw)


def refused(r, status, *words):
    """One sentence on stderr (and perhaps a source line and a hint), nothing on stdout."""
    assert r.returncode == status, (r.returncode, r.stderr)
    assert r.stdout == ""
    assert len(r.stderr.splitlines()) <= 6 and len(r.stderr) < 1200, r.stderr
    for word in words:
        assert word in r.stderr, r.stderr


def check(tmp_path, data, *words):
    (tmp_path / "c.yaml").write_bytes(data)
    refused(slipway("check", "-f", "c.yaml", cwd=tmp_path), CONFIG, "c.yaml", *words)


def test_a_directory(tmp_path):
    refused(slipway("check", "-f", ".", cwd=tmp_path), CONFIG, "it is a directory")


def test_no_such_file(tmp_path):
    refused(slipway("check", "-f", "nothing.yaml", cwd=tmp_path), CONFIG, "nothing.yaml", "No such file")


def test_a_device(tmp_path):
    refused(slipway("check", "-f", "/dev/zero", cwd=tmp_path), CONFIG, "not a regular file")


def test_100_megabytes(tmp_path):
    with open(tmp_path / "c.yaml", "wb") as f:
        f.truncate(100 << 20)
    refused(slipway("check", "-f", "c.yaml", cwd=tmp_path), CONFIG, "maximum")


def test_endless_standard_input(tmp_path):
    with open("/dev/zero") as zero:
        r = subprocess.run([SLIPWAY, "check", "-f", "-"], cwd=tmp_path, stdin=zero, capture_output=True, text=True)
    refused(r, CONFIG, "maximum")


def test_alias_bomb(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    check(tmp_path, "\n".join(lines).encode(), "alias")


def test_an_alias_of_itself(tmp_path):
    check(tmp_path, b"a: &a [*a]\n")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_100_000_nested(tmp_path, opening):
    check(tmp_path, (opening * 100_000).encode(), "deep")


def test_nul_bytes(tmp_path):
    check(tmp_path, DEMO.encode().replace(b"demo}", b"de\0mo}"))


def test_invalid_utf8(tmp_path):
    check(tmp_path, DEMO.encode().replace(b"demo}", b"de\xffmo}"), "UTF-8")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# nothing\n", b"---\n", b"\xef\xbb\xbf"])
def test_nothing(tmp_path, data):
    check(tmp_path, data)


@pytest.mark.parametrize("data", [b"just words", b"- a\n- b\n", b"a: b: c\n", b"\t- x\n", b"a: [1, 2\n", b"? [a, b]\n: c\n", b"--- {}\n--- {}\n", b"%TAG ! x\n", b"!!python/object:os.system {}\n", b"a: !custom b\n"])
def test_not_a_cluster(tmp_path, data):
    (tmp_path / "c.yaml").write_bytes(data)
    r = slipway("check", "-f", "c.yaml", cwd=tmp_path)
    assert r.returncode == CONFIG and r.stdout == "" and "c.yaml" in r.stderr


def test_terminal_escapes_are_shown_not_sent(tmp_path):
    (tmp_path / "c.yaml").write_bytes(DEMO.encode().replace(b"demo}", b'"de\\emo[31m"}'))
    r = slipway("check", "-f", "c.yaml", cwd=tmp_path)
    assert r.returncode == CONFIG and "\x1b" not in r.stderr


def test_no_more_than_the_first_problems_are_shown(tmp_path):
    (tmp_path / "c.yaml").write_text(DEMO + "".join(f"  nonsense{i}: 1\n" for i in range(5000)))
    r = slipway("check", "-f", "c.yaml", cwd=tmp_path)
    assert r.returncode == CONFIG and "5000" in r.stderr and len(r.stderr.splitlines()) < 400


# ---- the state directory ----

@pytest.fixture
def project(tmp_path):
    (tmp_path / "cluster.yaml").write_text(DEMO)
    return tmp_path


def render(project, *args, **kw):
    return slipway("render", "-d", "out", "--secrets", *args, cwd=project, **kw)


def tree(path):
    return {str(p.relative_to(path)): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(path.rglob("*")) if p.is_file() and p.name != "lock"}


def test_a_second_run_changes_nothing(project):
    assert render(project).returncode == 0
    before, out = tree(project / ".slipway"), {k: v[1] for k, v in tree(project / "out").items()}
    assert render(project).returncode == 0
    assert tree(project / ".slipway") == before
    assert {k: v[1] for k, v in tree(project / "out").items()} == out


def test_the_state_is_private(project):
    assert render(project).returncode == 0
    for p in [project / ".slipway" / "demo", *(project / ".slipway" / "demo").rglob("*")]:
        assert p.stat().st_mode & 0o077 == 0, p


def test_two_runs_at_once(project):
    assert render(project).returncode == 0
    with open(project / ".slipway" / "demo" / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(render(project), STATE, "locked by", "process", "since")
    assert render(project).returncode == 0


@root_only
def test_a_state_directory_of_someone_else(project):
    assert render(project).returncode == 0
    os.chown(project / ".slipway" / "demo", 12345, 12345)
    before = tree(project / ".slipway")
    refused(render(project), STATE, "belongs to")
    assert tree(project / ".slipway") == before


def test_a_file_in_the_place_of_the_state(project):
    (project / ".slipway").write_text("not a directory")
    r = render(project)
    assert r.returncode in (STATE, INTERNAL) and ".slipway" in r.stderr and len(r.stderr.splitlines()) <= 2
    assert (project / ".slipway").read_text() == "not a directory"


@pytest.mark.parametrize("damage", ["", "garbage\n", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
@pytest.mark.parametrize("name", ["pki/ca.crt", "pki/ca.key", "pki/sa.key", "identity.json"])
def test_damaged_authority(project, name, damage):
    assert render(project).returncode == 0
    (project / ".slipway" / "demo" / name).write_text(damage)
    before = tree(project / ".slipway")
    refused(render(project), STATE, name.split("/")[-1])
    assert tree(project / ".slipway") == before, "a damaged authority is left for a person to look at"


def test_damaged_leaves_are_issued_again(project):
    assert render(project).returncode == 0
    leaves = sorted((project / ".slipway" / "demo" / "nodes").glob("*.pem"))
    assert len(leaves) == 3
    good = leaves[1].read_bytes()
    leaves[0].write_bytes(b"")
    leaves[2].write_bytes(leaves[2].read_bytes()[:700])
    assert render(project).returncode == 0
    assert leaves[1].read_bytes() == good
    assert all(p.stat().st_size > 1000 for p in leaves)


def on_small_disk(project, script, size="64k"):
    """Runs a script in a mount namespace of its own with a small tmpfs at disk/."""
    (project / "disk").mkdir()
    return subprocess.run(["unshare", "-m", "sh", "-ec", f"mount -t tmpfs -o size={size} tmpfs disk\n{script}"], cwd=project, capture_output=True, text=True)


@root_only
def test_full_disk_for_the_state(project):
    r = on_small_disk(project, f"'{SLIPWAY}' render --state disk/state -d out && exit 99; echo status $?; find disk -name '*.tmp*'", size="8k")
    assert "status 1" in r.stdout or "status 8" in r.stdout, r
    assert "No space left on device" in r.stderr and len(r.stderr.splitlines()) <= 2, r.stderr
    assert "tmp" not in r.stdout


@root_only
def test_full_disk_then_room_again(project):
    script = f"""'{SLIPWAY}' render --state disk/state -d out 2>/dev/null && exit 99
mount -o remount,size=8m disk
'{SLIPWAY}' render --state disk/state -d out && echo healed"""
    r = on_small_disk(project, script, size="16k")
    assert "healed" in r.stdout, r


@root_only
def test_full_disk_for_the_output(project):
    r = on_small_disk(project, f"'{SLIPWAY}' render -d disk/out && exit 99; echo status $?; ls disk/out 2>/dev/null || true")
    assert r.stdout.startswith("status 1\n"), r
    assert "No space left on device" in r.stderr and len(r.stderr.splitlines()) <= 2
    assert r.stdout.count("\n") <= 2, "half a node's files were left: " + r.stdout


@root_only
def test_read_only_disk(project):
    r = on_small_disk(project, f"mount -o remount,ro disk; '{SLIPWAY}' render --state disk/state -d out && exit 99; echo status $?")
    assert "Read-only file system" in r.stderr and len(r.stderr.splitlines()) <= 2, r
    shutil.rmtree(project / "out", ignore_errors=True)


def test_killed_at_any_moment(project):
    """Killed after any number of milliseconds, the next run finishes and verifies."""
    import random
    import time
    random.seed(1)
    for i in range(12):
        shutil.rmtree(project / ".slipway", ignore_errors=True)
        proc = subprocess.Popen([SLIPWAY, "render", "-d", "out", "--secrets"], cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.03)
        proc.kill()
        proc.wait()
        r = render(project)
        assert r.returncode == 0, r.stderr
        assert not list((project / ".slipway").rglob("*.tmp.*")) or render(project).returncode == 0
