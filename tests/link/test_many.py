"""Fifty links at once, in little memory."""
import os
import socket
import threading
import time

from node import QUICK, children, command

PATIENT = ["IdentityAgent=none", QUICK, "ConnectTimeout=300"]  # a busy computer shakes hands slowly

def test_fifty_at_once(site, record_property):
    d = site.sshd()
    data = os.urandom(1 << 20) * 4
    files = [dict(kind="file", path=f"/etc/app/{i}", content=f"{i}\n" * 500) for i in range(60)]
    site.spec("s", [dict(kind="dir", path="/etc/app"), *files, dict(kind="artifact", name="prog", version="1", path="/usr/bin/prog")], [site.blob("prog", data)])
    targets = [site.target(d.port, name=f"n{i}", root=f"roots/{i}", spec="s") for i in range(50)]
    began = time.monotonic()
    r = site.run(*targets).ok()
    first = time.monotonic() - began
    assert len(r.of("applied")) == 50 and all(x["changed"] == 62 for x in r.of("applied"))
    for i in range(50):
        assert (site.root(f"roots/{i}") / "usr/bin/prog").stat().st_size == len(data)
    # AddressSanitizer keeps what was freed
    if "asan" not in os.popen(f"ldd {site.tool}").read():
        assert r.one("end")["kilobytes"] < 64 << 10
    began = time.monotonic()
    r2 = site.run(*targets).ok()
    again = time.monotonic() - began
    assert not r2.of("applied") and len(r2.of("hello")) == 50
    print(f"50 links: first {first:.2f} s, no-op {again:.2f} s, {r.one('end')['kilobytes'] >> 10} MB")


def test_a_no_op_is_quick(site):
    """One link, nothing to do, no shared connection: what ssh itself needs, and little more."""
    d = site.sshd()
    site.spec("s", [dict(kind="file", path="/etc/f", content="f")])
    site.run(site.target(d.port, spec="s")).ok()
    times, plain = [], []
    for _ in range(5):
        r = site.run(site.target(d.port, spec="s")).ok()
        times.append((r.one("hello")["ms"], r.closed["ms"]))
        began = time.monotonic()
        os.spawnvp(os.P_WAIT, "ssh", ["ssh", "-T", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256", "-o", f'UserKnownHostsFile="{str(site.known_hosts).replace("%", "%%")}"', "-i", str(site.keys.user), "-p", str(d.port), "root@127.0.0.1", "true"])
        plain.append((time.monotonic() - began) * 1000)
    hello, closed = min(t[0] for t in times), min(t[1] for t in times)
    print(f"no-op: hello after {hello:.0f} ms, closed after {closed:.0f} ms; `ssh … true` alone: {min(plain):.0f} ms")
    assert closed < min(plain) * 2 + 200


def jump(site, near, name):
    """A jump host as the user's ssh configuration names it; options of the bastion's own ssh come from there."""
    home = site.path / "home"
    home.mkdir(exist_ok=True)
    (home / "config").write_text(f"""Host {name}
    HostName 127.0.0.1
    Port {near.port}
    UserKnownHostsFile {home}/near
Host *
    User root
    IdentityFile {site.keys.user}
    IdentityAgent none
""")
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none /root && mkdir -m 700 /root/.ssh && cp {home}/config /root/.ssh/ && exec "$@"', "sh"]


def test_forty_through_one_bastion(site):
    """sshd's own MaxStartups, which drops connections at random: all get through, and none was dropped."""
    near, far = site.sshd(max_startups="10:30:100", extra=["LogLevel VERBOSE"]), site.sshd()
    site.spec("s", [dict(kind="file", path="/etc/f", content="f")])
    targets = [site.target(far.port, name=f"n{i}", root=f"roots/{i}", spec="s", bastion="near", options=PATIENT) for i in range(40)]
    began = time.monotonic()
    r = site.run(*targets, wrap=jump(site, near, "near")).ok()
    print(f"40 links through one bastion: {time.monotonic() - began:.2f} s")
    assert len(r.of("applied")) == 40
    log = near.log.read_text()
    assert log.count("Accepted publickey") == 40 and "drop connection" not in log and "MaxStartups" not in log


def until_drops(log, port, stop):
    """Others who knock and say nothing, until the bastion has dropped somebody."""
    others = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
    while not stop.wait(0.05) and "drop connection" not in log.read_text():
        pass
    for s in others:
        s.close()


def test_dropped_ones_come_back(site):
    """Others knock at the bastion too: what is dropped is tried again."""
    near, far = site.sshd(max_startups="10:60:100", extra=["LogLevel VERBOSE"]), site.sshd()
    site.spec("s", [dict(kind="file", path="/etc/f", content="f")])
    targets = [site.target(far.port, name=f"n{i}", root=f"roots/{i}", spec="s", bastion="near", options=PATIENT) for i in range(16)]
    stop = threading.Event()
    others = threading.Thread(target=until_drops, args=[near.log, near.port, stop])
    others.start()
    try:
        r = site.run(*targets, wrap=jump(site, near, "near")).ok()
    finally:
        stop.set()
        others.join()
    assert len(r.of("applied")) == 16
    assert "drop connection" in near.log.read_text(), "the test has dropped nothing"


def count_ssh(pid, over, most):
    """How many ssh of the tool's there were at once."""
    while not over.wait(0.01):
        most[0] = max(most[0], sum(command(p).startswith("ssh ") for p in children(pid)))


def test_more_nodes_than_slots(site):
    """They take turns: never more than so many ssh at once, each node gets one connection."""
    d = site.sshd(extra=["LogLevel VERBOSE"])
    site.slots = 3
    site.spec("s", [dict(kind="file", path="/etc/f", content="f")])
    targets = [site.target(d.port, name=f"n{i}", root=f"roots/{i}", spec="s") for i in range(20)]
    proc = site.start(*targets)
    over, most = threading.Event(), [0]
    counting = threading.Thread(target=count_ssh, args=[proc.pid, over, most])
    counting.start()
    try:
        r = site.finish(proc).ok()
    finally:
        over.set()
        counting.join()
    assert len(r.of("applied")) == 20 and 1 <= most[0] <= 3, most
    assert d.log.read_text().count("Accepted publickey") == 20


def test_what_is_urgent_gets_the_next_slot(site):
    d = site.sshd()
    site.slots = 1
    targets = [site.target(d.port, name=f"n{i}", root=f"roots/{i}", end="hello") for i in range(3)]
    r = site.run(*targets, site.target(d.port, name="first", root="roots/first", end="hello", urgent=True)).ok()
    assert [x["link"] for x in r.of("hello")] == ["n0", "first", "n1", "n2"]


def test_one_that_waits_for_a_slot_can_be_closed(site):
    d = site.sshd(extra=["LogLevel VERBOSE"])
    site.slots = 1
    targets = [site.target(d.port, name="n0", root="roots/0", runs=[dict(argv=["sleep", "1"], max=10)]), site.target(d.port, name="n1", root="roots/1", end="early")]
    r = site.run(*targets).ok()
    assert [x["link"] for x in r.of("hello")] == ["n0"] and len(r.of("closed")) == 2
    assert d.log.read_text().count("Accepted publickey") == 1
