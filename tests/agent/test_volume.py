"""The agent as the helper of local-path: it makes and removes the directory of one volume, and touches nothing else."""
import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")


@pytest.fixture
def root(binary, tmp_path):
    """As in its container: the program, the volumes, and nothing else."""
    shutil.copy(binary, tmp_path / "probe")
    (tmp_path / "volumes").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("kept")
    return tmp_path


def helper(root, path, action):
    words = ["/probe", "-p", path, "-s", "1024", "-m", "Filesystem", "-a", action]
    return subprocess.run(["chroot", root, *words], capture_output=True, text=True)


def test_create_and_delete(root):
    for _ in range(2):
        assert helper(root, "/volumes/pvc-1_default_data", "create").returncode == 0
    made = root / "volumes" / "pvc-1_default_data"
    assert made.is_dir() and made.stat().st_mode & 0o7777 == 0o777
    (made / "a" / "b").mkdir(parents=True)
    (made / "a" / "b" / "file").write_text("x")
    (made / "link").symlink_to("/outside")
    (root / "volumes" / "other").mkdir()
    for _ in range(2):
        assert helper(root, "/volumes/pvc-1_default_data", "delete").returncode == 0
    assert os.listdir(root / "volumes") == ["other"] and (root / "outside" / "file").read_text() == "kept"


def test_a_link_in_the_place_of_a_volume_is_not_followed(root):
    (root / "volumes" / "link").symlink_to("/outside")
    r = helper(root, "/volumes/link", "create")
    assert r.returncode == 1 and "in the way" in r.stderr
    assert helper(root, "/volumes/link", "delete").returncode == 0
    assert not os.listdir(root / "volumes") and (root / "outside" / "file").read_text() == "kept"


@pytest.mark.parametrize("path", ["/volumes", "/volumes/", "/volumes/.", "/volumes/..", "/volumes/../outside", "/volumes/a/b", "/outside", "outside", ""])
@pytest.mark.parametrize("action", ["create", "delete"])
def test_other_paths_are_refused(root, path, action):
    r = helper(root, path, action)
    assert r.returncode == 2 and "usage" in r.stderr and (root / "outside" / "file").exists() and os.listdir(root / "volumes") == []


def test_other_actions_are_refused(root):
    assert helper(root, "/volumes/x", "list").returncode == 2 and os.listdir(root / "volumes") == []
