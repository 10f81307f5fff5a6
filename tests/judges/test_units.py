"""Units, judged by systemd-analyze; scripts by sh and shellcheck; sysctls and modules by the programs that read them."""
import json
import re
import shutil
from pathlib import Path

import pytest

from conftest import find, nodes, once

UNIT_PROGRAM = re.compile(r"(?m)^Exec\w+=[-@:+!|]*(/\S+)")
# of units that come with packages: there to be ordered against, not to be judged
SYSTEM = Path("/lib/systemd/system")


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """The system's own units, once."""
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(SYSTEM, root / "lib" / "systemd" / "system", symlinks=True)
    return root


def stub(root, path):
    path = root / path.lstrip("/")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)


def machine(node, base, root):
    """A root with the system's units, this node's files, and something at every program's place."""
    shutil.copytree(base, root, symlinks=True)
    (root / "usr").mkdir()
    (root / "usr" / "lib").symlink_to("../lib")
    shutil.copytree(node / "root", root, symlinks=True, dirs_exist_ok=True)
    for unit in (root / "etc" / "systemd" / "system").rglob("*"):
        if unit.is_file() and not unit.is_symlink():
            for program in UNIT_PROGRAM.findall(unit.read_text()):
                stub(root, program)
    for program in ("modprobe", "setsebool"):
        stub(root, f"/usr/sbin/{program}")


def test_units(case, rendered, judge, programs, base, tmp_path):
    for node in nodes(rendered(case)):
        own = node / "root" / "etc" / "systemd" / "system"
        for e in json.loads((node / "nodespec.json").read_text())["entries"]:  # what is enabled can be: its file is ours, or comes with a package
            if e["kind"] == "unit" and "enable" in e.get("flags", []) and (own / e["name"]).exists():
                assert "[Install]" in (own / e["name"]).read_text(), e["name"]
        if not once("units", *((str(p.relative_to(own)), p.read_text()) for p in sorted(own.rglob("*")) if p.is_file())):
            continue
        root = tmp_path / node.name
        machine(node, base, root)
        ours = sorted(p.name for p in (root / "etc" / "systemd" / "system").iterdir() if p.is_file() and not p.is_symlink())
        assert ours
        said = judge(programs.system("systemd-analyze"), "verify", f"--root={root}", "--man=no", *ours, status=None)
        remarks = [line for line in said.splitlines() if any(name in line for name in ours) or "cycle" in line]
        assert not remarks, "\n".join(remarks)


def test_mounts_have_the_right_names(case, rendered, judge, programs):
    """systemd refuses a mount unit whose name is not its mount point's."""
    for node, path in find(rendered(case), "etc/systemd/system/*.mount"):
        where = re.search(r"(?m)^Where=(.*)$", path.read_text())[1]
        assert judge(programs.system("systemd-escape"), "--path", "--suffix=mount", where).strip() == path.name


def test_runtime_waits_for_its_disk(case, rendered):
    """Every mount point that a service keeps data on is one it requires."""
    for node in nodes(rendered(case)):
        mounts = [re.search(r"(?m)^Where=(.*)$", p.read_text())[1] for p in (node / "root/etc/systemd/system").glob("*.mount")]
        for mount in mounts:
            readers = [p.name for p in (node / "root/etc/systemd/system").glob("*.service") if re.search(rf"(?m)^RequiresMountsFor=.*{re.escape(mount)}", p.read_text())]
            if any(mount.startswith(d) for d in ("/var/lib/etcd", "/var/lib/containerd", "/var/lib/kubelet", "/srv/containerd")):
                assert readers, f"{node.name}: nothing waits for {mount}"


def test_scripts(case, rendered, judge, programs):
    for node, path in find(rendered(case), "**/*"):
        head = path.read_bytes()[:64]
        if head.startswith(b"#!/bin/sh") or head.startswith(b"#!/usr/bin/env bash") or head.startswith(b"#!/bin/bash"):
            shell = "sh" if b"/sh" in head else "bash"
            if once(shell, path.read_text()):
                judge(shell, "-n", path)
                judge(programs.system("shellcheck"), "-s", shell, path)
            assert path.stat().st_mode & 0o100, f"{path} cannot be run"


def test_sysctls(case, rendered, judge, programs):
    """The keys that this kernel lacks are named in a remark of their own; anything else it says is a mistake."""
    for node, path in find(rendered(case), "etc/sysctl.d/*"):
        if not once("sysctl", path.read_text()):
            continue
        said = judge(programs.system("sysctl"), "--dry-run", "-p", path, status=None)
        wanted = {line.split("=", 1)[0].strip() for line in path.read_text().splitlines() if "=" in line and not line.startswith(("#", ";"))}
        assert wanted
        for line in said.splitlines():
            assert re.match(r"^[\w./-]+ = .+$", line) or re.search(r"No such file|cannot stat", line), line
        seen = {line.split(" = ", 1)[0] for line in said.splitlines() if " = " in line}
        missing = {k for k in wanted if any(k.replace(".", "/") in line for line in said.splitlines() if "cannot stat" in line)}
        assert {k.replace("/", ".") for k in wanted} <= {k.replace("/", ".") for k in seen | missing}


def test_modules(case, rendered):
    for node, path in find(rendered(case), "etc/modules-load.d/*"):
        for line in path.read_text().splitlines():
            assert not line or line.startswith(("#", ";")) or re.fullmatch(r"[a-z0-9_-]+", line), line
