"""The agent on a real machine with systemd: units, packages, images, modules."""
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from upstream import programs

import wire
from wire import DISABLE, ENABLE, ONCE, Operator, RELOAD, START, entry, run

ROOT = Path(__file__).resolve().parent.parent.parent
MACHINE = ROOT / "tests/machines/machine.sh"
ENV = dict(os.environ, SLIPWAY_SET="agent")
NAME = "agent1"

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-nspawn"), reason="needs root and systemd-nspawn")


class Machine:
    argv = [str(MACHINE), "exec", NAME, "/usr/local/sbin/agent"]

    def sh(self, *argv, check=True):
        return subprocess.run([MACHINE, "exec", NAME, *argv], env=ENV, check=check, capture_output=True, text=True).stdout.strip()

    def show(self, unit, prop):
        return self.sh("systemctl", "show", "--value", "-p", prop, unit)

    def wait(self, unit, state="active"):
        end = time.monotonic() + 60
        while self.show(unit, "ActiveState") != state:
            assert time.monotonic() < end, f"{unit} is {self.show(unit, 'ActiveState')}"
            time.sleep(0.1)

    def operator(self):
        os.environ["SLIPWAY_SET"] = "agent"
        return Operator(self.argv)

    def run(self, entries, mode=0, **kw):
        os.environ["SLIPWAY_SET"] = "agent"
        o = run(self.argv, entries, mode, **kw)
        assert o.done.status == 0, o.details()
        return o


@pytest.fixture(scope="module")
def node(binary):
    subprocess.run([MACHINE, "stop", "--all"], env=ENV, check=True)
    try:
        subprocess.run([MACHINE, "start", NAME, "10.199.9.11"], env=ENV, check=True)
        m = Machine()
        m.root = Path(subprocess.run([MACHINE, "root", NAME], env=ENV, check=True, capture_output=True, text=True).stdout.strip())
        shutil.copy(binary, m.root / "usr/local/sbin/agent")
        yield m
    finally:
        subprocess.run([MACHINE, "stop", "--all"], env=ENV, check=True)


def unit_file(name, units=None, extra="", run="/bin/sleep infinity", **kw):
    text = f"[Unit]\nDescription={name}\n[Service]\nExecStart={run}\n{extra}[Install]\nWantedBy=multi-user.target\n"
    return entry("file", f"/etc/systemd/system/{name}", content=text, units=units or name, **kw)


def demo(conf="1", extra=()):
    return [unit_file("demo.service"), unit_file("other.service"),
            entry("file", "/etc/demo.conf", content=conf, units="demo.service"),
            entry("file", "/etc/both.conf", content="x", units="demo.service other.service"), *extra,
            entry("unit", "demo.service", flags=ENABLE | START), entry("unit", "other.service", flags=START)]


def ids(node):
    return {u: node.show(u, "InvocationID") for u in ("demo.service", "other.service")}


def test_units(node):
    o = node.run(demo())
    assert o.states()["demo.service"] == o.states()["other.service"] == "started"
    assert node.sh("systemctl", "is-active", "demo.service", "other.service").split() == ["active", "active"]
    assert node.sh("systemctl", "is-enabled", "demo.service", "other.service", check=False).split() == ["enabled", "disabled"]
    first = ids(node)
    o = node.operator().hello()
    assert o.digest == wire.spec_digest(demo()) and o.drift == []
    o.close()
    o = node.run(demo())
    assert set(o.states().values()) == {"same"} and ids(node) == first

    o = node.run(demo("2"))
    assert o.states()["demo.service"] == "restarted" and o.states()["other.service"] == "same"
    second = ids(node)
    assert second["demo.service"] != first["demo.service"] and second["other.service"] == first["other.service"]


def test_unit_drift(node):
    node.run(demo())
    node.sh("systemctl", "stop", "other.service")
    node.sh("systemctl", "disable", "demo.service")
    o = node.operator().hello().close()
    assert set(o.drift) == {"demo.service", "other.service"}
    was = ids(node)["demo.service"]
    o = node.run(demo())
    assert o.states()["demo.service"] == "changed" and o.states()["other.service"] == "started"
    assert ids(node)["demo.service"] == was, "enabling does not restart"
    assert node.operator().hello().close().drift == []


def test_drifted_file_restarts_its_unit(node):
    node.run(demo())
    was = ids(node)
    (node.root / "etc/demo.conf").write_text("by hand")
    o = node.run(demo())
    assert o.states()["/etc/demo.conf"] == "changed" and o.states()["demo.service"] == "restarted" and o.states()["other.service"] == "same"
    assert ids(node)["other.service"] == was["other.service"]


def test_not_started_as_asked(node):
    """MODE 1 leaves units alone; a later run makes up for it."""
    node.run(demo())
    was = ids(node)
    o = node.run(demo("3"), mode=1)
    assert o.states()["/etc/demo.conf"] == "changed" and o.states()["demo.service"] == "same" and ids(node) == was
    o = node.operator().hello().close()
    assert o.digest == wire.spec_digest(demo("3")) and o.drift == ["demo.service"]
    o = node.run(demo("3"))
    assert o.states()["demo.service"] == "restarted" and o.states()["other.service"] == "same"


def test_killed_between_file_and_restart(node):
    """A run killed after it wrote a file, before the unit that reads it was restarted: the next one restarts it."""
    node.run(demo())
    was = ids(node)
    for turn in range(6):
        o = node.operator().hello().spec(demo(f"kill {turn}"))
        o.write(wire.frame(wire.APPLY, mode=0))
        f = o.expect(wire.EVENT)
        pid = node.sh("pidof", "agent").split()
        if turn % 2:
            time.sleep(0.01 * turn)
        node.sh("kill", "-KILL", *pid, check=False)
        o.close()
        node.run(demo(f"kill {turn}"))
        now = ids(node)
        assert now["demo.service"] != was["demo.service"] and now["other.service"] == was["other.service"], turn
        was = now
        assert node.operator().hello().close().drift == []


def test_reload(node):
    e = [unit_file("rl.service", extra="ExecReload=/bin/touch /run/reloaded\n"), entry("file", "/etc/rl.conf", content="1", units="rl.service"), entry("unit", "rl.service", flags=START | RELOAD)]
    node.run(demo() + e)
    pid = node.show("rl.service", "MainPID")
    e[1] = entry("file", "/etc/rl.conf", content="2", units="rl.service")
    o = node.run(demo() + e)
    assert o.states()["rl.service"] == "restarted" and o.details()["rl.service"] == "reloaded"
    assert node.show("rl.service", "MainPID") == pid
    node.sh("sh", "-c", "i=0; while [ ! -e /run/reloaded ] && [ $i -lt 100 ]; do sleep .1; i=$((i+1)); done; test -e /run/reloaded")
    e[0] = unit_file("rl.service", extra="ExecReload=/bin/true\n")
    o = node.run(demo() + e)
    assert o.states()["rl.service"] == "restarted" and o.details()["rl.service"] is None
    assert node.show("rl.service", "MainPID") != pid, "a new unit file is not read by a reload"


def test_vanished_unit(node):
    node.run(demo())
    o = node.run(demo()[:1] + demo()[2:4] + demo()[4:5])
    assert o.states()["other.service"] == "removed" and o.states()["/etc/systemd/system/other.service"] == "removed"
    assert node.show("other.service", "LoadState") == "not-found" and node.sh("systemctl", "is-active", "demo.service") == "active"
    order = [f.name for f in o.events if f.name]
    assert order.index("other.service") < order.index("/etc/systemd/system/other.service")


def test_masked(node):
    o = node.run(demo() + [entry("unit", "haproxy.service", flags=DISABLE), entry("unit", "no-such.service", flags=DISABLE)])
    assert node.show("haproxy.service", "LoadState") == "masked" and node.sh("systemctl", "is-active", "haproxy.service", check=False) == "inactive"
    assert node.operator().hello().close().drift == []
    assert node.run(demo() + [entry("unit", "haproxy.service", flags=DISABLE), entry("unit", "no-such.service", flags=DISABLE)]).done.count == 0
    node.run(demo() + [entry("unit", "haproxy.service", flags=0)])
    node.run(demo())
    assert node.show("no-such.service", "LoadState") == "not-found"


def test_oneshot_runs_once(node):
    e = [unit_file("once.service", run="/bin/sh -c 'echo x >>/run/once'", extra="Type=oneshot\n"), entry("unit", "once.service", flags=START)]
    node.run(demo() + e)
    node.sh("sh", "-c", "i=0; while [ ! -e /run/once ] && [ $i -lt 100 ]; do sleep .1; i=$((i+1)); done")
    time.sleep(0.5)
    assert node.run(demo() + e).done.count == 0
    assert node.sh("cat", "/run/once") == "x"


def test_unit_that_cannot_start(node):
    e = [unit_file("bad.service", run="/no/such/program"), entry("unit", "bad.service", flags=START), entry("unit", "missing.service", flags=START)]
    o = run(node.argv, demo() + e)
    assert o.states()["missing.service"] == "failed" and "not found" in o.details()["missing.service"]
    assert o.states()["demo.service"] in ("same", "started") and o.done.status >= 1
    assert node.operator().hello().close().digest is None
    node.run(demo())


def test_held_back(node):
    """A unit does not start when what it reads could not be written."""
    node.sh("mkdir", "-p", "/etc/held.conf/dir")
    e = [unit_file("held.service"), entry("file", "/etc/held.conf", content="x", units="held.service"), entry("unit", "held.service", flags=START)]
    o = run(node.argv, demo() + e)
    assert o.states()["/etc/held.conf"] == o.states()["held.service"] == "failed" and "not started, because" in o.details()["held.service"]
    assert node.sh("systemctl", "is-active", "held.service", check=False) == "inactive"
    node.sh("rm", "-r", "/etc/held.conf")
    assert node.run(demo() + e).states()["held.service"] == "started"


def test_file_after_its_unit(node):
    """What a unit reads may stand after it in the spec: it is started once, at the end."""
    e = [unit_file("late.service"), entry("unit", "late.service", flags=START), entry("file", "/etc/late.conf", content="1", units="late.service")]
    node.run(demo() + e)
    was = node.show("late.service", "InvocationID")
    e[2] = entry("file", "/etc/late.conf", content="2", units="late.service")
    assert node.run(demo() + e).states()["late.service"] == "restarted"
    assert node.show("late.service", "InvocationID") != was and node.show("late.service", "NRestarts") == "0"


def test_once_files_do_not_restart(node):
    e = [unit_file("keep.service"), entry("file", "/etc/keep.pem", content="1", flags=ONCE, units="keep.service"), entry("unit", "keep.service", flags=START)]
    node.run(demo() + e)
    e[1] = entry("file", "/etc/keep.pem", content="2", flags=ONCE, units="keep.service")
    assert node.run(demo() + e).states()["keep.service"] == "same"


def test_facts(node):
    f = node.operator().hello().close().facts
    assert f["init"] == "systemd" and f["os"]["id"] == "debian" and f["interface"] == "host0" and f["hostname"] == NAME
    assert any(a == "10.199.9.11/24" for i in f["interfaces"] for a in i["addresses"])
    assert any(p["port"] == 22 for p in f["ports"]) and f["packageManager"] == "apt" and f["root"] is True
    assert f["features"]["overlay"] and "net_admin" in f["capabilities"]


def test_modules_and_sysctls(node):
    e = [entry("module", m) for m in ("overlay", "br_netfilter", "nf_conntrack", "vxlan")]
    e += [entry("sysctl", "net.ipv4.ip_forward", target="1"), entry("sysctl", "net.ipv4.ip_local_port_range", target="20000\t60000"), entry("sysctl", "no.such.thing", target="1")]
    o = node.run(demo() + e)
    assert node.sh("cat", "/proc/sys/net/ipv4/ip_forward") == "1"
    assert node.sh("cat", "/proc/sys/net/ipv4/ip_local_port_range").split() == ["20000", "60000"]
    assert o.states()["overlay"] == "same" and "does not have this setting" in o.details()["no.such.thing"]
    assert node.operator().hello().close().drift == []
    o = run(node.argv, demo() + e + [entry("module", "no_such_module")])
    assert o.states()["no_such_module"] == "failed" and o.done.status == 1
    node.run(demo())
    assert node.sh("cat", "/proc/sys/net/ipv4/ip_local_port_range").split() != ["20000", "60000"]


def deb(node, name, files, version="1", postinst=None):
    """A package in a repository on the machine itself."""
    d = node.root / f"tmp/deb-{name}"
    (d / "DEBIAN").mkdir(parents=True)
    (d / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: x\n")
    (d / "DEBIAN/conffiles").write_text("".join(f"{f}\n" for f in files if f.startswith("/etc/")))
    if postinst:
        (d / "DEBIAN/postinst").write_text("#!/bin/sh\n" + postinst)
        (d / "DEBIAN/postinst").chmod(0o755)
    for f, text in files.items():
        (d / f[1:]).parent.mkdir(parents=True, exist_ok=True)
        (d / f[1:]).write_text(text)
    node.sh("sh", "-c", f"mkdir -p /repo && dpkg-deb -b /tmp/deb-{name} /repo/{name}.deb && rm -r /tmp/deb-{name}")


def repository(node, *packages):
    index = ""
    for p in packages:
        index += node.sh("dpkg-deb", "-f", f"/repo/{p}.deb") + f"\nFilename: ./{p}.deb\nSize: {node.sh('stat', '-c', '%s', f'/repo/{p}.deb')}\nSHA256: {node.sh('sha256sum', f'/repo/{p}.deb').split()[0]}\n\n"
    (node.root / "repo/Packages").write_text(index)
    (node.root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/repo ./\n")


def test_packages(node):
    deb(node, "slipway-one", {"/etc/one.conf": "the package's\n"})
    deb(node, "slipway-two", {"/usr/share/two": "2"})
    o = run(node.argv, demo() + [entry("package", "slipway-one"), entry("package", "procps")])
    assert o.states()["slipway-one"] == "failed" and o.states()["procps"] == "same" and "apt-get" in o.details()["slipway-one"]
    repository(node, "slipway-one", "slipway-two")
    e = [entry("file", "/etc/one.conf", content="ours\n"), entry("package", "slipway-one"), entry("package", "procps"), entry("package", "slipway-two")]
    o = node.run(demo() + e)
    assert o.states()["slipway-one"] == o.states()["slipway-two"] == "created" and o.states()["procps"] == "same"
    assert node.sh("cat", "/etc/one.conf") == "ours", "the package does not overwrite what we wrote"
    o = node.operator().hello().close()
    assert o.drift == [], "with no question to dpkg"
    assert node.run(demo() + e).done.count == 0
    node.sh("dpkg", "-r", "slipway-two")
    assert node.operator().hello().close().drift == ["slipway-two"]
    assert node.run(demo() + e).states()["slipway-two"] == "created"


def test_cut_while_packages_are_installed(node):
    """A package manager is not killed half-way; the next run waits for the one that still installs."""
    deb(node, "slipway-slow", {}, postinst="touch /run/begun; sleep 3; touch /run/ended\n")
    repository(node, "slipway-slow")
    e = demo() + [entry("package", "slipway-slow"), entry("file", "/etc/after", content="1")]
    o = node.operator().hello().spec(e)
    o.write(wire.frame(wire.APPLY, mode=0))
    node.sh("sh", "-c", "i=0; while [ ! -e /run/begun ] && [ $i -lt 300 ]; do sleep .1; i=$((i+1)); done; test -e /run/begun")
    o.proc.stdin.close()
    assert not (node.root / "run/ended").exists()
    second = node.run(e)
    o.close()
    assert (node.root / "run/ended").exists() and second.states()["slipway-slow"] == "same" and second.states()["/etc/after"] == "created"
    assert "install ok installed" in node.sh("dpkg-query", "-W", "-f", "${Status}", "slipway-slow")
    assert "the connection was cut" in (node.root / "var/lib/slipway/journal").read_text()


CONTAINERD = programs("containerd")


@pytest.mark.skipif(not CONTAINERD.exists() or not shutil.which("musl-gcc"), reason="containerd is not built")
def test_images(node, tmp_path):
    subprocess.run(["musl-gcc", "-static", "-Os", "-s", "-o", tmp_path / "pause", ROOT / "tests/machines/pause.c"], check=True)
    blobs = {}
    for name in ("slipway.test/one:1", "slipway.test/two:1"):
        out = tmp_path / name.replace("/", "_")
        subprocess.run([ROOT / "tests/machines/image.sh", name, out, f"{tmp_path}/pause=/pause"], check=True)
        blobs[name] = out.read_bytes()
    start = [entry("artifact", f"/usr/local/bin/{p}", blob=(CONTAINERD / p).read_bytes(), units="containerd.service") for p in ("containerd", "ctr")]
    start += [unit_file("containerd.service", run="/usr/local/bin/containerd", extra="Type=notify\nDelegate=yes\nKillMode=process\n"), entry("unit", "containerd.service", flags=ENABLE | START)]
    images = [entry("image", n, blob=b) for n, b in blobs.items()]
    t = time.monotonic()
    o = node.run(demo() + start + images)
    print(f"containerd and two images: {time.monotonic() - t:.1f} s")
    assert o.states()["slipway.test/one:1"] == "created"
    have = node.sh("ctr", "-n", "k8s.io", "images", "ls")
    assert "slipway.test/two:1" in have and "io.cri-containerd.pinned=pinned" in have
    o = node.operator().hello()
    assert o.drift == [] and o.digest
    o.spec(demo() + start + images)
    assert o.needs == []
    o.apply().close()
    assert o.done.count == 0
    node.sh("ctr", "-n", "k8s.io", "images", "rm", "slipway.test/one:1")
    o = node.operator().hello()
    assert o.drift == ["slipway.test/one:1"]
    o.spec(demo() + start + images)
    assert len(o.needs) == 1
    o.blobs().apply().close()
    assert o.states()["slipway.test/one:1"] == "created" and o.states()["containerd.service"] == "same"
    wrong = [entry("image", "slipway.test/wrong:1", blob=blobs["slipway.test/one:1"])]
    o = run(node.argv, demo() + start + images + wrong)
    assert o.states()["slipway.test/wrong:1"] == "failed" and "no image of that name" in o.details()["slipway.test/wrong:1"]
    node.run(demo() + start + images[:1])
    assert "slipway.test/two:1" not in node.sh("ctr", "-n", "k8s.io", "images", "ls", "-q")


def test_reboot_like_end(node):
    """Everything taken away again: no unit of ours is left."""
    node.run([])
    assert node.show("demo.service", "LoadState") == "not-found" and node.show("containerd.service", "LoadState") == "not-found"
    assert not (node.root / "etc/demo.conf").exists() and not (node.root / "usr/local/bin/containerd").exists()
