"""A link in good weather: the agent is installed once, no more is sent than is missing, and nothing is asked twice."""
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

AGENT_MAX = 1 << 20


def small(site):
    big = "x" * (600 << 10)  # too long for a frame with others: travels as a blob
    prog = site.blob("prog", os.urandom(3 << 20))
    site.spec("small", [
        dict(kind="dir", path="/etc/app", mode=0o750),
        dict(kind="file", path="/etc/app/a.conf", content="a = 1\n", mode=0o640),
        dict(kind="file", path="/etc/app/big", content=big),
        dict(kind="file", path="/etc/app/empty", content=""),
        dict(kind="link", path="/etc/app/link", target="a.conf"),
        dict(kind="artifact", name="prog", version="1", path="/usr/local/bin/prog", mode=0o755),
    ], [prog])
    return prog


def test_the_agent_is_sent_once(site):
    d = site.sshd()
    p = site.pipe(d.port)
    r = site.run(site.target(p.port)).ok()
    first = p.sent
    assert first > site.agent.stat().st_size
    state = site.root() / "var/lib/slipway"
    assert [x.name for x in state.glob("*agent*")] == [site.agent_name] and not list(state.glob(".agent*"))
    assert stat.S_IMODE((state / site.agent_name).stat().st_mode) == 0o700 and stat.S_IMODE(state.stat().st_mode) == 0o700
    assert r.one("hello")["facts"] and r.one("hello")["digest"] == ""
    p.sent = 0
    site.run(site.target(p.port)).ok()
    assert p.sent < 16 << 10, "the agent is there: it is not sent again"
    assert p.connections == 2, "one connection a run"


def test_other_agents_go_when_a_new_one_comes(site):
    d = site.sshd()
    state = site.root() / "var/lib/slipway"
    state.mkdir()
    (state / "agent-0000").write_text("old")
    (state / "record").write_text("")
    site.run(site.target(d.port)).ok()
    assert sorted(x.name for x in state.glob("*")) == sorted([site.agent_name, "record"])


def test_apply_and_no_op(site):
    d = site.sshd()
    prog = small(site)
    p = site.pipe(d.port)
    r = site.run(site.target(p.port, spec="small")).ok()
    assert r.states() == {"/etc/app": "created", "/etc/app/a.conf": "created", "/etc/app/big": "created", "/etc/app/empty": "created", "/etc/app/link": "created", "/usr/local/bin/prog": "created"}
    assert r.one("applied")["changed"] == 6 and r.one("applied")["failed"] == 0
    total = prog["size"] + (600 << 10)
    assert [(x["sent"], x["total"]) for x in r.of("progress")] == [(0, total), (total, total)]
    root = site.root()
    assert (root / "etc/app/a.conf").read_text() == "a = 1\n" and (root / "etc/app/big").stat().st_size == 600 << 10 and (root / "etc/app/empty").read_text() == ""
    assert (root / "usr/local/bin/prog").read_bytes() == Path(prog["path"]).read_bytes()

    p.sent = 0
    r = site.run(site.target(p.port, spec="small")).ok()
    assert r.one("hello")["same"] and not r.of("applied") and not r.of("entry")
    assert p.sent < 16 << 10

    (root / "etc/app/a.conf").write_text("mine\n")
    r = site.run(site.target(p.port, spec="small")).ok()
    assert r.one("hello")["drift"] == ["/etc/app/a.conf"] and r.states() == {"/etc/app/a.conf": "changed"}
    assert p.sent < 900 << 10, "blobs that are there are not sent again"


def test_what_is_no_longer_wanted_is_told_by_name(site):
    d = site.sshd()
    small(site)
    site.run(site.target(d.port, spec="small")).ok()
    site.specs["small"]["entries"].pop()
    site.specs["small"]["entries"].pop()
    r = site.run(site.target(d.port, spec="small")).ok()
    assert r.states() == {"/etc/app/link": "removed", "/usr/local/bin/prog": "removed"}


def test_only_say_sends_no_blobs(site):
    d = site.sshd()
    small(site)
    p = site.pipe(d.port)
    site.run(site.target(p.port)).ok()
    p.sent = 0
    r = site.run(site.target(p.port, spec="small", mode=2)).ok()
    assert r.states()["/usr/local/bin/prog"] == "created" and not r.of("progress") and p.sent < 64 << 10
    assert not (site.root() / "etc").exists()


def test_a_node_of_another_cluster_refuses(site):
    d = site.sshd()
    small(site)
    site.run(site.target(d.port, spec="small")).ok()
    site.specs["small"]["entries"][1]["content"] = "b\n"
    r = site.run(site.target(d.port, spec="small", cluster="c2"))
    assert "node n1: the agent stopped: this node belongs to another cluster (c1)" in r.error and r.closed["exit"] == 8


def test_runs(site):
    d = site.sshd()
    runs = [dict(argv=["sh", "-c", "echo out; echo err >&2; exit 7"], max=1000), dict(argv=["cat"], input="äöü $x 'q'\n", max=1000), dict(argv=["/no/such"], max=1000),
            dict(argv=["seq", "100000"], max=50), dict(argv=["sh", "-c", "kill -9 $$"], max=10)]
    runs += [dict(argv=["sh", "-c", f"sleep 0.1; echo {i}"], max=100) for i in range(40)]
    r = site.run(site.target(d.port, runs=runs)).ok()
    found = {(x["status"], x["out"], x["errors"]) for x in r.of("run")}
    assert (7, "out\n", "err\n") in found and (0, "äöü $x 'q'\n", "") in found and (137, "", "") in found
    assert any(s == 127 and "/no/such" in e for s, _, e in found)
    assert (256, "", "its output exceeds 50 bytes and was refused") in found  # what was cut is no answer
    assert {(0, f"{i}\n", "") for i in range(40)} <= found and len(r.of("run")) == len(runs)


@pytest.mark.parametrize("end", ["hello", "free", "early"])
def test_ends_at_any_time(site, end):
    d = site.sshd()
    r = site.run(site.target(d.port, end=end))
    if end == "free":
        assert r.one("freed") and not r.of("closed")
    else:
        r.ok()
        assert r.one("closed")


SHELLS = [["sh"], ["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"], ["zsh"], ["fish"], ["csh"], ["ksh"]]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_login_shells_and_their_noise(site, shell):
    path = shutil.which(shell[0])
    if not path:
        pytest.skip(f"{shell[0]} is not installed")
    wrapper = site.path / "login"
    wrapper.write_text(f"#!/bin/sh\necho 'Welcome! slipway:haven'\necho 'trouble' >&2\nprintf 'no newline at the end'\nexec {' '.join([path, *shell[1:]])} -c \"$SSH_ORIGINAL_COMMAND\"\n")
    wrapper.chmod(0o755)
    d = site.sshd(extra=[f"ForceCommand {wrapper}"])
    small(site)
    for _ in range(2):
        r = site.run(site.target(d.port, spec="small", root="a \"root\" $dir")).ok()
        assert r.one("hello")
    assert (site.root("a \"root\" $dir") / "etc/app/a.conf").exists()


def test_busybox_tools(site):
    """A node that has nothing but busybox."""
    busybox = os.environ.get("BUSYBOX") or shutil.which("busybox")
    if not busybox:
        pytest.skip("busybox is not installed")
    tools = site.path / "tools"
    tools.mkdir()
    for name in "sh id uname mkdir head chmod wc sha256sum sync mv rm".split():
        (tools / name).symlink_to(busybox)
    wrapper = site.path / "login"
    wrapper.write_text(f"#!/bin/sh\nPATH={tools}; export PATH\nexec {tools}/sh -c \"$SSH_ORIGINAL_COMMAND\"\n")
    wrapper.chmod(0o755)
    d = site.sshd(extra=[f"ForceCommand {wrapper}"])
    small(site)
    for _ in range(2):
        site.run(site.target(d.port, spec="small")).ok()
    assert (site.root() / "etc/app/a.conf").exists()


def test_the_users_own_configuration(site):
    """A name of ~/.ssh/config, a jump host, and settings there that would get in the way."""
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/root"], capture_output=True).returncode:
        pytest.skip("this computer lets nobody mount")
    near, far = site.sshd(), site.sshd(host_key=site.keys.other_host)
    home = site.path / "ssh"
    home.mkdir(mode=0o700)
    (home / "config").write_text(f"""
Host near
    HostName 127.0.0.1
    Port {near.port}
    UserKnownHostsFile {home}/near
    StrictHostKeyChecking accept-new
Host far
    HostName 127.0.0.1
    Port {far.port}
    UserKnownHostsFile {home}/far
    RemoteCommand echo no
    RequestTTY force
    LocalForward {near.port} 127.0.0.1:1
    ExitOnForwardFailure yes
    ControlMaster auto
    ControlPath {home}/master
    ControlPersist 60
    LogLevel QUIET
Host *
    User root
    IdentityFile {site.keys.user}
    IdentityAgent none
""")
    wrap = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none /root && mkdir -m 700 /root/.ssh && cp {home}/config /root/.ssh/ && exec "$@"', "sh"]
    small(site)
    t = site.target(None, host="far", user=None, key=None, known_hosts=None, options=None, bastion="near", spec="small")
    r = site.run(t, wrap=wrap).ok()
    assert r.one("applied")["failed"] == 0
    assert site.keys.fingerprint(site.keys.other_host) in r.of("key")[-1]["line"] and len(r.of("key")) == 2
    assert not (home / "master").exists()
    assert "Accepted publickey" in near.log.read_text() and "Accepted publickey" in far.log.read_text()
    r = site.run(dict(t, bastion="near:1"), wrap=wrap)
    assert "far cannot be reached through the bastion near:1" in r.error and "Connection refused" in r.error


def test_a_bastion_that_slipway_made(site):
    """Its host key is recorded beside those of the nodes; another key there is refused; one that does not run is named."""
    near, far = site.sshd(), site.sshd(host_key=site.keys.other_host)
    known, at = site.path / "known hosts", f"[127.0.0.1]:{near.port}"
    t = site.target(far.port, known_hosts=str(known), bastion=f"root@127.0.0.1:{near.port}", own_bastion=True)
    site.run(t).ok()
    has = lambda name: subprocess.run(["ssh-keygen", "-F", name, "-f", known], capture_output=True, text=True).stdout  # noqa: E731
    key = lambda path: Path(f"{path}.pub").read_text().split()[1]  # noqa: E731
    assert key(site.keys.host) in has(at) and key(site.keys.other_host) in has(f"[127.0.0.1]:{far.port}")
    assert "Accepted publickey" in near.log.read_text()
    known.write_text(f"{at} ssh-ed25519 {key(site.keys.stranger)}\n")
    before = far.log.read_text()
    assert site.run(t).error and far.log.read_text() == before
    r = site.run(dict(t, bastion="boats-bastion.invalid"))
    assert "127.0.0.1 is reached through a bastion that does not run" in r.error and "slipway up makes or starts it" in str(r.one("closed"))


def test_argv_for_a_person(site):
    t = site.target(2222, host="10.0.0.1", user="ops", key="/k", known_hosts="/a b/known", bastion="jump", options=["ConnectTimeout=3"])
    site.spec("none", [])
    site.start(t).communicate()
    out = subprocess.run([site.tool, site.agent, site.path / "plan.json", "argv", "echo", "a b", "$(x)", "it's"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert out[:2] == ["ssh", "-o"] and out[2].startswith("ProxyCommand=ssh ") and out[2].endswith(" -i /k -W '[%h]:%p' -- ssh://jump") and "BatchMode" not in out[2]
    assert out[3:] == ["-o", "ConnectTimeout=3", "-p", "2222", "-l", "ops", "-i", "/k", "-o", "IdentitiesOnly=yes", "-o", 'UserKnownHostsFile="/a b/known"',
                   "-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=accept-new", "--", "10.0.0.1", "echo", "'a b'", "'$(x)'", "'it'\\''s'"]
