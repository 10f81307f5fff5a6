"""Machines on this computer: made all at once, used over ssh, powered off and on, and removed without a trace."""
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import NODES, Tool, computer, processes, unchanged


def until(what, seconds, question):
    end = time.time() + seconds
    while time.time() < end:
        if question():
            return
        time.sleep(0.2)
    pytest.fail(f"not within {seconds} s: {what}")


@pytest.fixture(scope="module")
def before(place):
    """Before anything is made; the base root is the cache's and stays there."""
    return computer(Tool(place))


@pytest.fixture(scope="module")
def tool(place, before):
    t = Tool(place)
    t.must("prepare", timeout=1200)
    begun = time.time()
    lines = t.must("create", timeout=300)
    print(f"three machines in {time.time() - begun:.1f} s")
    assert sorted(line["node"] for line in lines) == sorted(NODES)
    yield t
    t.call("down")


def test_they_are_ordinary_hosts(tool):
    assert set(tool.states().values()) == {"running"}
    ids = set()
    for node, address in NODES.items():
        assert tool.ssh(node, "hostname") == node
        assert tool.ssh(node, "cat", "/proc/1/comm") == "systemd"
        assert f" {address}/24 " in tool.ssh(node, "ip", "-4", "-o", "address", "show", "host0")
        assert tool.ssh(node, "systemctl", "is-system-running", "--wait") == "running"
        ids.add(tool.ssh(node, "cat", "/etc/machine-id"))
        for path in ("/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd"):
            assert tool.ssh(node, "stat", "-f", "-c", "%T", path) != "overlayfs"
        assert "rw" in tool.ssh(node, "findmnt", "-no", "OPTIONS", "/proc/sys").split(",")
        tool.ssh(node, "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do [ ! -e $d/cgroup.procs ] || [ -L $d ] || mkdir -p $d/probe/below || exit 1; done")
    assert len(ids) == len(NODES)
    assert "3 packets transmitted, 3 received" in tool.ssh("control-1", "ping", "-c", "3", "-i", "0.2", NODES["worker-2"])


def test_what_a_node_wants_is_installed(tool):
    """So that installing it changes nothing: the names are those of node/os.c."""
    text = (Path(__file__).resolve().parents[2] / "src/node/os.c").read_text()
    names = re.search(r"\[OS_DEBIAN\].*?\.node = \{(.*?)\}.*?\.ntp_package = (\S+),", text, re.S)
    wanted = re.findall(r'"([^"]+)"', names[1] + names[2]) + ["haproxy", "keepalived", "openssh-server", "sudo", "curl"]
    out = tool.ssh("worker-1", "dpkg-query", "-W", "-f", "'${Package} ${db:Status-Status}\\n'", *wanted)
    assert sorted(out.splitlines()) == sorted(f"{w} installed" for w in set(wanted))


def test_shape(tool):
    v1 = Path("/sys/fs/cgroup/memory").is_dir()
    dirs = (tool.state / "machines/worker-1/cgroups").read_text().split("\n")[:-1]
    if v1:
        memory = next(d for d in dirs if "/memory/" in d)
        assert Path(memory, "memory.limit_in_bytes").read_text() == f"{2 << 30}\n"
        assert Path(next(d for d in dirs if "/cpu/" in d or "/cpu," in d), "cpu.cfs_quota_us").read_text() == "100000\n"
    else:
        assert Path(dirs[0], "machine/memory.max").read_text() == f"{2 << 30}\n"
        assert Path(dirs[0], "machine/cpu.max").read_text() == "100000 100000\n"


def cpu_weight(tool, node):
    """Among its siblings: under systemd the scope's, else that of the machine's own cgroup."""
    dirs = (tool.state / "machines" / node / "cgroups").read_text().splitlines()
    cpu = Path(next((d for d in dirs if "/cpu/" in d or "/cpu," in d), dirs[0]))
    scoped = next((d for d in (cpu, cpu.parent) if d.name.endswith(".scope")), cpu)
    return next(int(f.read_text()) / usual for name, usual in (("cpu.shares", 1024), ("cpu.weight", 100)) if (f := scoped / name).exists())


def test_first_control_plane_comes_first_on_a_busy_computer(tool):
    assert (cpu_weight(tool, "control-1"), cpu_weight(tool, "worker-1")) == (3, 1)


def test_create_again_changes_nothing(tool):
    boots = {n: tool.ssh(n, "cat", "/proc/sys/kernel/random/boot_id") for n in NODES}
    begun = time.time()
    tool.must("up")
    assert time.time() - begun < 5
    assert boots == {n: tool.ssh(n, "cat", "/proc/sys/kernel/random/boot_id") for n in NODES}


def test_reboot_inside(tool):
    boot = tool.ssh("worker-1", "cat", "/proc/sys/kernel/random/boot_id")
    tool.ssh("worker-1", "echo kept >/root/kept; systemctl reboot", check=False)

    def rebooted():
        p = tool.ssh("worker-1", "cat", "/proc/sys/kernel/random/boot_id", check=False)
        return p.returncode == 0 and p.stdout.strip() != boot

    until("the machine is back", 60, rebooted)
    assert tool.ssh("worker-1", "cat", "/root/kept") == "kept"
    assert tool.states()["worker-1"] == "running"


def test_pull_the_plug_and_start(tool):
    keeper = [p for p in processes(tool.dir) if "machine-keeper" in p and "worker-2" in p]
    assert len(keeper) == 1
    tool.ssh("worker-2", "echo kept >/root/kept; sync")
    begun = time.time()
    tool.must("kill", "worker-2")
    assert time.time() - begun < 10
    assert tool.states() == {"control-1": "running", "worker-1": "running", "worker-2": "stopped"}
    assert not [p for p in processes(tool.dir) if "worker-2" in p]
    assert not os.path.exists(f"/sys/class/net/{tool.machine('worker-2')['interface']}")
    tool.must("start", "worker-2")
    assert tool.ssh("worker-2", "cat", "/root/kept") == "kept"


def test_one_that_stops_while_it_is_waited_for(tool):
    """As after a down that was killed: up finds it running, and starts it again when it has ended."""
    tool.ssh("worker-2", "systemctl stop ssh.socket ssh.service", check=False)  # up waits for its sshd
    p = tool.popen("up", "worker-2")
    time.sleep(1)
    assert p.poll() is None
    tool.must("kill", "worker-2")
    out = p.communicate(timeout=300)[0]
    assert p.returncode == 0, out
    assert tool.ssh("worker-2", "hostname") == "worker-2"


def test_halt_and_create(tool):
    begun = time.time()
    tool.must("stop", "worker-2")
    assert time.time() - begun < 60
    assert tool.states()["worker-2"] == "stopped"
    tool.must("create", "worker-2")
    assert tool.ssh("worker-2", "journalctl", "-b", "-1", "-n", "20", "--no-pager", check=False) is not None
    tool.ssh("worker-2", "poweroff", check=False)
    until("it is off", 60, lambda: tool.states()["worker-2"] == "stopped")
    tool.must("create")
    assert set(tool.states().values()) == {"running"}


def test_authorized_keys(tool, tmp_path):
    """Those of the file are on a machine that is made or started, beside slipway's own, and gone when they are taken out."""
    key, text = tmp_path / "key", tool.file.read_text()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    assert tool.ssh("worker-2", "true", key=key, check=False).returncode == 255
    try:
        tool.file.write_text(text + f'  os: {{authorizedKeys: ["{Path(f"{key}.pub").read_text().strip()}"]}}\n')
        tool.must("stop", "worker-2")
        tool.must("create", "worker-2")
        assert tool.ssh("worker-2", "hostname", key=key) == tool.ssh("worker-2", "hostname") == "worker-2"
    finally:
        tool.file.write_text(text)
    tool.must("stop", "worker-2")
    tool.must("create", "worker-2")
    assert tool.ssh("worker-2", "true", key=key, check=False).returncode == 255 and tool.ssh("worker-2", "hostname") == "worker-2"


def inside(tool, node):
    """Processes of a machine, as the kernel has them: its own first one has no argument that tells whose it is."""
    found = set()
    for cgroup in (tool.state / "machines" / node / "cgroups").read_text().splitlines():
        for path in Path(cgroup).rglob("cgroup.procs"):
            found |= set(path.read_text().split())
    states = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(found) or "0"], capture_output=True, text=True).stdout.split()
    return [s for s in states if not s.startswith("Z")]


def test_killed_keeper_takes_the_machine_along(tool):
    pid = int((tool.state / "machines/worker-1/lock").read_text().split()[0])
    assert len(inside(tool, "worker-1")) > 5
    os.kill(pid, signal.SIGKILL)
    until("it is off", 20, lambda: not processes(tool.state / "machines/worker-1"))
    until("nothing of it runs any more", 20, lambda: not inside(tool, "worker-1"))
    assert tool.states()["worker-1"] == "stopped"
    tool.must("create", "worker-1")
    assert tool.ssh("worker-1", "hostname") == "worker-1"


def test_off_the_network_and_back(tool):
    cable = tool.machine("worker-1")["interface"]
    subprocess.run(["ip", "link", "set", cable, "down"], check=True)
    assert tool.ssh("worker-1", "true", check=False).returncode != 0
    subprocess.run(["ip", "link", "set", cable, "up"], check=True)
    until("it answers", 20, lambda: tool.ssh("worker-1", "true", check=False).returncode == 0)


def test_another_address_is_refused(tool):
    other = Tool(tool.dir)
    text = other.file.read_text()
    try:
        other.file.write_text(text.replace("count: 1", "count: 1, labels: {a: b}").replace("10.118.77.0/24", "10.118.0.0/16"))
        status, lines = other.call("create", "control-1")
        assert status == 1 and "was created with the address 10.118.77.10" in lines[0]["error"] and lines[0]["hint"]
    finally:
        other.file.write_text(text)


def test_one_machine_goes(tool):
    tool.must("destroy", "worker-2")
    assert tool.states()["worker-2"] == "absent"
    assert NODES["worker-2"] not in (tool.state / "known_hosts").read_text()
    assert not (tool.state / "machines/worker-2").exists()
    tool.must("destroy", "worker-2")  # not there: no error
    tool.must("create", "worker-2")
    assert tool.ssh("worker-2", "test ! -e /root/kept && hostname") == "worker-2"


def test_nothing_is_left(tool, before):
    tool.must("down")
    unchanged(tool, before)
    tool.must("down")  # nothing there: no error


def test_killed_at_random_moments(tool, before):
    """The run that is killed leaves machines half made, half booted or half removed: the next one makes or removes them."""
    seed = int(os.environ.get("SEED") or time.time())
    print(f"SEED={seed}")
    dice = random.Random(seed)
    for turn in range(int(os.environ.get("KILLS") or 8)):
        verb = "down" if turn % 3 == 2 else "up"
        p = tool.popen(verb, start_new_session=True)
        delay = dice.uniform(0, 0.6 if verb == "down" or turn % 2 else 3)
        time.sleep(delay)
        p.kill()
        p.communicate()
        print(f"{verb} killed after {delay:.2f} s")
        if turn % 4 == 1:
            tool.must("down")
            continue
        tool.must("up", timeout=300)
        for node in NODES:
            assert tool.ssh(node, "hostname") == node
    tool.must("down")
    unchanged(tool, before)


LATE_IP = """#!/bin/sh
real=$(PATH=$REAL_PATH command -v ip)
case "$1 $2 $LATE" in
"link add add" | "link delete delete") "$real" "$@" ;;
"address replace delete-once") [ -e "$MARK" ] || { : > "$MARK"; "$real" link delete "$5"; } ;;
esac
exec "$real" "$@"
"""


@pytest.mark.parametrize("late", ["add", "delete-once", "delete"])
def test_bridge_changed_by_a_killed_run(tool, before, tmp_path, late):
    """A killed run's last `ip` may still be working: it creates or deletes the bridge just before this run does."""
    tool.must("down")
    wrapper = tmp_path / "ip"
    wrapper.write_text(LATE_IP)
    wrapper.chmod(0o755)
    env = os.environ | {"REAL_PATH": os.environ["PATH"], "PATH": f"{tmp_path}:{os.environ['PATH']}", "LATE": late, "MARK": str(tmp_path / "mark")}
    tool.must("up", env=env)
    assert tool.ssh("worker-1", "hostname") == "worker-1"
    assert late != "delete-once" or (tmp_path / "mark").exists()
    tool.must("down", env=env)
    unchanged(tool, before)


def test_cleanup_takes_machines_no_longer_in_the_file(tool, before):
    text = tool.file.read_text()
    tool.must("up")
    try:
        tool.file.write_text(text.replace("count: 2", "count: 1"))
        tool.must("down")
    finally:
        tool.file.write_text(text)
    unchanged(tool, before)
