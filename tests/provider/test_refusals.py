"""What a computer may lack, and how the base root is made: quick, with a stand-in for mmdebstrap."""
import json
import os
import shutil
import subprocess
import time

import pytest

from conftest import LOCAL, TOOL, Tool, computer

STAND_IN = """#!/bin/sh
# What mmdebstrap does, as far as its caller sees it.
echo "$@" >>"$COUNT"
for last; do target=$list; list=$last; done
cp "$list" "$COUNT.sources"
[ -z "$FAIL" ] || { echo "I: running apt-get update..." >&2; echo "E: no such mirror" >&2; exit 25; }
echo "I: running apt-get update..." >&2
sleep "${SLOW:-0}"
mkdir -p "$target/etc/ssh" "$target/etc/apt/sources.list.d" "$target/var/lib/apt/lists"
echo key >"$target/etc/ssh/ssh_host_rsa_key"
cp "$list" "$target/etc/apt/sources.list"
"""


@pytest.fixture
def tool(place):
    t = Tool(place)
    yield t
    t.call("cleanup")


@pytest.fixture
def env(tmp_path):
    """An empty cache and the stand-in; $COUNT has a line for each call of it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mmdebstrap").write_text(STAND_IN)
    (tmp_path / "bin/mmdebstrap").chmod(0o755)
    return dict(os.environ, PATH=f"{tmp_path}/bin:{os.environ['PATH']}", SLIPWAY_CACHE=str(tmp_path / "cache"), COUNT=str(tmp_path / "count"))


def calls(env):
    return len(open(env["COUNT"]).read().splitlines()) if os.path.exists(env["COUNT"]) else 0


def test_base_root_is_made_once(tool, env, tmp_path):
    lines = tool.must("prepare", env=env)
    assert {"say": "reading the package lists", "permille": 50} in lines
    tool.must("prepare", env=env)
    assert calls(env) == 1
    base, = (p for p in (tmp_path / "cache").glob("base-bookworm-*") if p.is_dir())
    assert (base / "etc/machine-id").read_bytes() == b""
    assert not list((base / "etc/ssh").glob("ssh_host_*")) and not (base / "etc/apt/sources.list").exists()
    assert all(line.startswith("deb ") and line.endswith(" main") and " bookworm" in line for line in open(env["COUNT"] + ".sources").read().splitlines())


def test_two_runs_wait_for_each_other(tool, env):
    env["SLOW"] = "2"
    first = tool.popen("prepare", env=env)
    while not calls(env):
        time.sleep(0.05)
    lines = tool.must("prepare", env=env)
    assert {"say": "waiting for another run that creates the base root", "permille": -1} in lines
    assert first.wait() == 0 and calls(env) == 1


def test_killed_while_it_was_made(tool, env, tmp_path):
    env["SLOW"] = "3"
    first = tool.popen("prepare", env=env)
    while not calls(env):
        time.sleep(0.05)
    first.kill()
    first.wait()
    begun = time.time()
    tool.must("prepare", env=env)
    assert calls(env) == 2 and time.time() - begun > 3  # it waited for what the killed run had started
    assert [p.name for p in (tmp_path / "cache").glob("base-*") if p.name.endswith(".new")] == []


def test_mirror_fails(tool, env, tmp_path):
    env["FAIL"] = "1"
    status, lines = tool.call("prepare", env=env)
    assert status == 1 and lines[-1]["error"].endswith("mmdebstrap failed with status 25: no such mirror") and "apt-get update" in lines[-1]["hint"]
    assert not [p for p in (tmp_path / "cache").glob("base-*") if p.is_dir()]


def test_missing_programs(tool, tmp_path):
    for name in ("ip", "ssh-keygen", "rm"):
        os.symlink(shutil.which(name), tmp_path / name)
    env = dict(os.environ, PATH=str(tmp_path), SLIPWAY_CACHE=str(tmp_path / "cache"))
    status, lines = tool.call("prepare", env=env)
    assert status == 1 and lines[0]["error"] == "machines on this computer need programs that are not installed: systemd-nspawn"
    assert lines[0]["hint"] == "on Debian: apt-get install systemd-container"
    os.symlink(shutil.which("true"), tmp_path / "systemd-nspawn")
    status, lines = tool.call("prepare", env=env)
    assert status == 1 and "not installed: mmdebstrap" in lines[-1]["error"]


def test_without_root(place, tmp_path_factory):
    copy = place / "provider_tool"
    shutil.copy(TOOL, copy)
    place.chmod(0o755)
    tool = Tool(place)
    for verb in ("prepare", "create", "destroy"):
        p = subprocess.run([copy, tool.file, "/var/tmp/slipway-no-such-state/boats", verb], capture_output=True, text=True, user=65534, group=65534, extra_groups=[])
        line = json.loads(p.stdout.splitlines()[0])
        assert p.returncode == 1 and line["error"].endswith("machines on this computer need root") and "sudo" in line["hint"], p.stderr
    copy.unlink()


def test_range_in_use(place):
    routes = [r for r in json.loads(subprocess.check_output(["ip", "-4", "-j", "route"])) if "/" in r["dst"]]
    if not routes:
        pytest.skip("this computer has no network")
    t = Tool(place, LOCAL.replace("10.118.77.0/24", routes[0]["dst"]) if routes[0]["dst"].endswith("/24") else LOCAL)
    if not routes[0]["dst"].endswith("/24"):
        pytest.skip("this computer has no network of 256 addresses")
    status, lines = t.call("prepare")
    t.call("cleanup")
    assert status == 1 and f"{routes[0]['dst']} is routed through {routes[0]['dev']}" in lines[0]["error"] and "provider.local.network" in lines[0]["hint"]


def test_release_for_this_kernel(place):
    if not os.path.isdir("/sys/fs/cgroup/memory"):
        pytest.skip("this computer has cgroup v2 and boots every release")
    t = Tool(place, LOCAL.replace("network:", "release: trixie, network:"))
    status, lines = t.call("prepare")
    t.call("cleanup")
    assert status == 1 and "needs cgroup v2" in lines[-1]["error"] and "bookworm" in lines[-1]["hint"]


def test_refusals_leave_nothing(tool):
    """Each test before this one cleaned up."""
    assert not [x for x in computer(tool)["links"] if x.startswith("slw-")]


SOURCES = {
    "sources.list": "# deb https://no.example main\n"
                    "deb [arch=amd64 signed-by=/k.gpg] https://m.example/debian bookworm main contrib # why\n"
                    "deb-src https://m.example/debian bookworm main\n"
                    "deb https://m.example/debian bookworm-backports main\n"
                    "deb https://m.example/debian bookworm contrib\n"
                    "deb cdrom:[disc]/ bookworm main\n",
    "sources.list.d/b.sources": "Types: deb deb-src\nURIs: https://n.example/debian https://o.example/debian\nSuites: bookworm\n bookworm-updates\n"
                                "# remark\nComponents: main non-free\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"
                                "Types: deb\nURIs: https://off.example/\nSuites: bookworm\nComponents: main\nEnabled: no\n\n"
                                "types: deb\nuris: https://s.example/sec\nsuites: bookworm-security\ncomponents: main\nsigned-by: /s.gpg\n",
    "sources.list.d/c.list.save": "deb https://no.example/debian bookworm main\n",
    "sources.list.d/d.list": "deb https://p.example/other stable main\ndeb https://m.example/debian trixie main\n",
}


@pytest.mark.parametrize("codename,release,wanted", [
    ("bookworm", "bookworm", ["deb [signed-by=/k.gpg] https://m.example/debian bookworm main", "deb https://n.example/debian bookworm main",
                              "deb https://n.example/debian bookworm-updates main", "deb https://o.example/debian bookworm main",
                              "deb https://o.example/debian bookworm-updates main", "deb [signed-by=/s.gpg] https://s.example/sec bookworm-security main",
                              "deb https://p.example/other bookworm main"]),
    ("-", "trixie", ["deb https://m.example/debian trixie main"]),
    ("-", "bullseye", []),
])
def test_sources(tmp_path, codename, release, wanted):
    """Both of apt's formats; a computer with another release gives its mirrors, one that is not Debian only what says so."""
    for name, text in SOURCES.items():
        path = tmp_path / "etc/apt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out = subprocess.check_output([TOOL, "sources", tmp_path, codename, release], text=True)
    assert out.splitlines() == wanted


def test_sources_of_another_release(tmp_path):
    (tmp_path / "etc/apt").mkdir(parents=True)
    (tmp_path / "etc/apt/sources.list").write_text("deb https://m.example/debian trixie main\ndeb https://m.example/security trixie-security main\n")
    out = subprocess.check_output([TOOL, "sources", tmp_path, "trixie", "bookworm"], text=True)
    assert out.splitlines() == ["deb https://m.example/debian bookworm main", "deb https://m.example/security bookworm-security main"]
