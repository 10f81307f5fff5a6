"""A link in bad weather: each trouble has its sentence, and the next run goes on."""
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import node


def big(site, size=48 << 20):
    data = os.urandom(1 << 20) * (size >> 20)
    site.spec("big", [dict(kind="artifact", name="big", version="1", path="/usr/bin/big", mode=0o755), dict(kind="file", path="/etc/f", content="f")], [site.blob("big", data)])
    return data


# --- keys ---------------------------------------------------------------------------------------------------------------


def test_a_new_host_key_is_recorded_and_told(site):
    d = site.sshd()
    r = site.run(site.target(d.port)).ok()
    line = r.one("key")["line"]
    assert line.startswith("Permanently added") and site.keys.fingerprint(site.keys.host) in line
    assert "ssh-ed25519" in site.known_hosts.read_text()
    assert not site.run(site.target(d.port)).ok().of("key")


def test_an_unknown_host_key_is_refused(site):
    d = site.sshd()
    r = site.run(site.target(d.port, accept_new=None))
    assert "node n1: the host key of 127.0.0.1 is not known" in r.error and site.keys.fingerprint(site.keys.host) in r.error and r.closed["exit"] == 5


@pytest.mark.parametrize("options", [[], ["StrictHostKeyChecking=no"]], ids=["strict", "lax"])
def test_a_changed_host_key_stops(site, options):
    d = site.sshd()
    site.run(site.target(d.port)).ok()
    d.close()
    d = site.sshd(host_key=site.keys.other_host, port=d.port)
    before = site.known_hosts.read_text()
    r = site.run(site.target(d.port, options=options + ["IdentityAgent=none"], root="other"))
    assert "the host key of 127.0.0.1 is not the one that was recorded" in r.error and site.keys.fingerprint(site.keys.other_host) in r.error
    assert f"ssh-keygen -f '{site.known_hosts}' -R '[127.0.0.1]:{d.port}'" in r.error
    assert site.known_hosts.read_text() == before and not r.of("hello")
    forget = r.closed["hint"].split("old key: ")[1].split(";")[0]
    subprocess.run(["sh", "-c", forget], check=True, capture_output=True)
    site.run(site.target(d.port)).ok()


def test_a_changed_host_key_in_a_file_of_ones_own(site, monkeypatch):
    """ssh writes line by line, and the file is in a later one than the fault."""
    bin_ = site.path / "bin"
    bin_.mkdir()
    (bin_ / "ssh").write_text("""#!/bin/sh
echo '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @' >&2
sleep 0.5
echo 'Offending ED25519 key in /home/me/hosts:7' >&2
sleep 0.5
echo 'Host key for 127.0.0.1 has changed and you have requested strict checking.' >&2
exit 255
""")
    (bin_ / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    r = site.run(site.target(22, known_hosts=None))
    assert "ssh-keygen -f '/home/me/hosts' -R '127.0.0.1'" in r.error and r.closed["exit"] == 5


def test_a_host_key_that_is_not_that_of_the_dns(site, monkeypatch):
    """With VerifyHostKeyDNS ssh warns, names no file, and goes on."""
    bin_ = site.path / "bin"
    bin_.mkdir()
    (bin_ / "ssh").write_text("""#!/bin/sh
echo '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @' >&2
echo 'Update the SSHFP RR in DNS with the new host key to get rid of this message.' >&2
echo 'Authenticated to 127.0.0.1 ([127.0.0.1]:22) using "publickey".' >&2
exec cat >/dev/null
""")
    (bin_ / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    r = site.run(site.target(22, known_hosts=None))
    assert "host key" in r.error and r.closed["exit"] == 5, r.error


def test_not_let_in(site):
    d = site.sshd()
    r = site.run(site.target(d.port, key=str(site.keys.stranger)))
    assert f"127.0.0.1 refuses the login of root with the key {site.keys.stranger}" in r.error and "authorized_keys" in r.error
    r = site.run(site.target(d.port, key=str(site.keys.locked)))
    assert f"{site.keys.locked} of root, but it is encrypted with a passphrase" in r.error and f"ssh-add {site.keys.locked}" in r.error
    r = site.run(site.target(d.port, key="/no/such/key"))
    assert "there is no key /no/such/key" in r.error
    loose = site.path / "loose"
    loose.write_bytes(Path(site.keys.user).read_bytes())
    loose.chmod(0o644)
    r = site.run(site.target(d.port, key=str(loose)))
    assert f"chmod 600 {loose}" in r.error


# --- the way there ------------------------------------------------------------------------------------------------------


def test_nobody_there(site):
    r = site.run(site.target(node.free_port()))
    assert "127.0.0.1 refused the connection to port" in r.error and r.closed["exit"] == 5
    r = site.run(site.target(22, host="no..such"))
    assert "the name no..such cannot be resolved" in r.error


def test_silence(site):
    with socket.create_server(("127.0.0.1", 0)) as s:
        r = site.run(site.target(s.getsockname()[1], options=["ConnectTimeout=1"]))
        assert "did not answer in time" in r.error and r.seconds < 60


@pytest.mark.parametrize("host, example", [("192.0.2.11", True), ("2001:db8::11", True), ("192.0.3.11", False)])
def test_an_address_of_the_documentation(site, tmp_path, host, example):
    """What `init` wrote and nobody replaced."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho 'ssh: connect to host {host} port 22: Connection timed out' >&2\nexit 255\n")
    ssh.chmod(0o755)
    r = site.run(site.target(22, host=host), wrap=("env", f"PATH={tmp_path}:{os.environ['PATH']}"))
    assert "did not answer in time" in r.error and ("is an address for examples" in r.closed["hint"]) == example


def test_hangs_up(site):
    """Every time: one that is dropped comes back a few times before it is said."""
    s = socket.create_server(("127.0.0.1", 0))

    def serve():
        try:
            while True:
                s.accept()[0].close()
        except OSError:
            pass
    threading.Thread(target=serve, daemon=True).start()
    r = site.run(site.target(s.getsockname()[1]))
    assert "closed the connection before" in r.error
    s.close()


def test_bad_option(site):
    r = site.run(site.target(22, options=["NoSuchOption=1"]))
    assert "ssh does not know one of its options" in r.error and r.closed["exit"] == 3


def test_no_ssh(site, monkeypatch):
    monkeypatch.setenv("PATH", str(site.path))
    r = site.run(site.target(22))
    assert "node n1: cannot start ssh" in r.error


# --- root ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lines", [
    ["kex_exchange_identification: Connection closed by remote host", "Connection closed by 127.0.0.1 port 22"],
    ["kex_exchange_identification: write: Broken pipe", "banner exchange: Connection to 127.0.0.1 port 22: Broken pipe"],
    ["kex_exchange_identification: Connection closed by remote host", "Connection closed by 127.0.0.1 port 22",
     "kex_exchange_identification: write: Broken pipe", "banner exchange: Connection to UNKNOWN port 65535: Broken pipe"],
], ids=["read", "write", "behind a jump host"])
def test_sshd_drops_it_once(site, monkeypatch, lines):
    """It hangs up before ssh has said its own, or after: either way it is tried again."""
    d, once, bin_ = site.sshd(), site.path / "dropped", site.path / "bin"
    bin_.mkdir()
    said = "".join(f"echo '{line}' >&2; " for line in lines)
    (bin_ / "ssh").write_text(f"#!/bin/sh\n[ -e {once} ] || {{ : > {once}; {said}exit 255; }}\nexec {shutil.which('ssh')} \"$@\"\n")
    (bin_ / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    site.spec("s", [dict(kind="file", path="/etc/f", content="f")])
    r = site.run(site.target(d.port, spec="s")).ok()
    assert once.exists() and len(r.of("applied")) == 1


def test_it_is_booting(site, monkeypatch):
    """Users other than root are refused by pam_nologin then, and who waits for a machine tries again."""
    bin_ = site.path / "bin"
    bin_.mkdir()
    (bin_ / "ssh").write_text("""#!/bin/sh
echo 'System is booting up. Unprivileged users are not permitted to log in yet. Please come back later. For technical details, see pam_nologin(8).' >&2
echo 'Connection closed by 127.0.0.1 port 22' >&2
exit 255
""")
    (bin_ / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    r = site.run(site.target(22))
    assert "127.0.0.1 does not let root log in, because it is booting or going down" in r.error and r.closed["exit"] == 5


SUDO = """#!/bin/sh
# sudo as the node has it: asks, refuses, or lets through.
ask= prompt=
while :; do case $1 in -n) ask=no; shift;; -S) ask=yes; shift;; -p) prompt=$2; shift 2;; *) break;; esac; done
case MODE in
free) exec "$@";;
refuse) echo "user is not in the sudoers file." >&2; exit 1;;
tty) echo "sudo: sorry, you must have a tty to run sudo" >&2; exit 1;;
esac
test $ask = yes || { echo "sudo: a password is required" >&2; exit 1; }
for try in 1 2 3; do
        printf '%s' "$prompt" >&2
        read -r word || { echo "sudo: no password was provided" >&2; exit 1; }
        test "$word" = "open sesame" && exec "$@"
        echo "Sorry, try again." >&2
done
exit 1
"""


def user_node(site, mode):
    """A node where one does not log in as root; mode: what its sudo does."""
    bin_ = site.path / "bin"
    bin_.mkdir(exist_ok=True)
    for name, text in {"id": "#!/bin/sh\necho 1000\n", "sudo": SUDO.replace("MODE", mode)}.items():
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    path = f"{bin_}:/usr/bin:/bin"
    if mode == "none":
        (bin_ / "sudo").unlink()
        for name in ("sh", "uname", "mkdir"):
            (bin_ / name).symlink_to(f"/bin/{name}")
        path = str(bin_)
    return site.sshd(path=path)


def test_sudo(site):
    d = user_node(site, "free")
    site.spec("f", [dict(kind="file", path="/etc/f", content="f")])
    r = site.run(site.target(d.port, spec="f", sudo_password="not asked for")).ok()
    assert r.one("applied")["changed"] == 1
    site.run(site.target(d.port, spec="f")).ok()
    r = site.run(site.target(d.port, sudo=None))
    assert "root on 127.0.0.1 is not root, and sudo is turned off" in r.error and r.closed["exit"] == 4


def test_sudo_with_a_password(site):
    d = user_node(site, "ask")
    site.spec("f", [dict(kind="file", path="/etc/f", content="f")])
    r = site.run(site.target(d.port))
    assert "sudo on 127.0.0.1 asks root for a password" in r.error and "NOPASSWD" in r.error and r.closed["exit"] == 4
    for _ in range(2):
        site.run(site.target(d.port, spec="f", sudo_password="open sesame")).ok()
    r = site.run(site.target(d.port, sudo_password="wrong"))
    assert "sudo on 127.0.0.1 rejected the password of root" in r.error and r.seconds < 60
    assert "open sesame" not in d.log.read_text()


def test_the_password_is_on_no_command_line(site):
    d = user_node(site, "ask")
    data = big(site)
    proc = site.start(site.target(d.port, spec="big", sudo_password="open sesame", stop_at=1 << 20))
    site.paused(proc)
    lines = [node.command(p) for p in [proc.pid, *node.children(proc.pid), *node.children(d.proc.pid)]]
    os.kill(proc.pid, signal.SIGCONT)
    site.finish(proc).ok()
    assert any("agent-" in x for x in lines) and not any("sesame" in x for x in lines)
    assert (site.root() / "usr/bin/big").read_bytes() == data


@pytest.mark.parametrize("mode,words", [("refuse", "root may not use sudo on 127.0.0.1"), ("tty", "requiretty"), ("none", "is not root, and there is no sudo")])
def test_no_sudo(site, mode, words):
    d = user_node(site, mode)
    r = site.run(site.target(d.port))
    assert words in r.error and r.closed["exit"] == 4


# --- the node -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(site):
    state = site.root() / "var/lib/slipway"
    state.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", state], capture_output=True).returncode:
        pytest.skip("this computer lets nobody mount")
    yield state
    subprocess.run(["umount", "-l", state], check=True)


def test_no_room_for_the_agent(site, tiny):
    d = site.sshd()
    r = site.run(site.target(d.port))
    assert "there is no room for the agent on 127.0.0.1" in r.error and str(tiny) in r.error and r.closed["exit"] == 4
    assert list(tiny.iterdir()) == []
    subprocess.run(["mount", "-o", "remount,size=4m", tiny], check=True)
    site.run(site.target(d.port)).ok()
    big(site, 8 << 20)
    r = site.run(site.target(d.port, spec="big"))
    assert "the agent stopped: cannot receive the blob" in r.error and "No space left" in r.error and "free space" in r.error


def test_a_read_only_node(site, tiny):
    subprocess.run(["mount", "-o", "remount,ro", tiny], check=True)
    d = site.sshd()
    assert "read-only" in site.run(site.target(d.port)).error


def test_an_agent_that_does_not_start(site):
    d = site.sshd()
    state = site.root() / "var/lib/slipway"
    state.mkdir()
    (state / site.agent_name).write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    (state / site.agent_name).chmod(0o700)
    r = site.run(site.target(d.port))
    assert "the agent did not start on 127.0.0.1: broken" in r.error


def test_an_account_that_is_closed(site):
    d = site.sshd(extra=["ForceCommand echo This account is currently not available.; exit 1"])
    r = site.run(site.target(d.port))
    assert "the agent did not start on 127.0.0.1: This account is currently not available |" in r.error


def test_noise_without_end_and_nonsense(site):
    d = site.sshd(extra=["ForceCommand head -c 30000000 /dev/zero; yes | head -c 30000000; echo; sh -c \"$SSH_ORIGINAL_COMMAND\""])
    r = site.run(site.target(d.port)).ok()
    assert r.one("hello") and r.one("end")["kilobytes"] < 32 << 10 or "san" in os.environ.get("LINK_TOOL", "")
    d = site.sshd(extra=["ForceCommand echo slipway:have; head -c 3000000 /dev/urandom; cat"])
    r = site.run(site.target(d.port))
    assert "violates the protocol" in r.error


def machine(site, name):
    """An sshd on a machine of that kind, by its own word."""
    bin_ = site.path / f"bin-{name}"
    bin_.mkdir()
    (bin_ / "uname").write_text(f"#!/bin/sh\necho {name}\n")
    (bin_ / "uname").chmod(0o755)
    return site.sshd(path=f"{bin_}:/usr/bin:/bin")


def test_another_architecture(site, monkeypatch):
    monkeypatch.setenv("SLIPWAY_AGENTS", str(site.path))
    r = site.run(site.target(machine(site, "riscv64").port))
    assert "its architecture is riscv64" in r.error and "use machines of x86_64 or aarch64" in str(r.closed) and r.closed["exit"] == 4
    r = site.run(site.target(machine(site, OTHER).port))
    assert f"its architecture is {OTHER}" in r.error and f"put agent-{OTHER} beside the program" in str(r.closed) and r.closed["exit"] == 4


ELF = {"x86_64": 62, "aarch64": 183}
OTHER = next(m for m in ELF if m != os.uname().machine)


def test_the_agent_of_the_other_architecture(site, monkeypatch):
    """It is the one that is sent and kept there. That it does not start is this computer's fault."""
    agents, d = site.path / "agents", machine(site, OTHER)
    agents.mkdir()
    monkeypatch.setenv("SLIPWAY_AGENTS", str(agents))
    (agents / f"agent-{OTHER}").write_bytes(site.agent.read_bytes())
    assert "its architecture is" in site.run(site.target(d.port)).error, "a program of another kind is not taken for it"
    data = bytearray(site.agent.read_bytes())
    data[18:20] = ELF[OTHER].to_bytes(2, "little")
    (agents / f"agent-{OTHER}").write_bytes(data)
    r = site.run(site.target(d.port))
    assert "the agent did not start on" in r.error and "Exec format error" in r.error
    there = list((Path(site.target(d.port)["root"]) / "var/lib/slipway").glob("agent-*"))
    assert [p.name for p in there] == [f"agent-{hashlib.sha256(data).hexdigest()}"] and there[0].read_bytes() == data
    plain = site.sshd()
    assert site.run(site.target(plain.port, root="own")).ok().one("hello"), "who is of our own kind gets our own"


# --- cut ----------------------------------------------------------------------------------------------------------------


def cut(site, d, how):
    """A run that is disturbed in the middle of a blob."""
    proc = site.start(site.target(d.port, spec="big", stop_at=20 << 20))
    site.paused(proc)
    how(proc)
    os.kill(proc.pid, signal.SIGCONT)
    return site.finish(proc)


def heals(site, d, data):
    r = site.run(site.target(d.port, spec="big")).ok()
    assert r.one("applied")["failed"] == 0 and (site.root() / "usr/bin/big").read_bytes() == data
    return r


def test_ssh_is_killed_and_the_next_run_goes_on(site):
    d, data = site.sshd(), big(site)
    r = cut(site, d, lambda p: [os.kill(c, signal.SIGKILL) for c in node.children(p.pid)])
    assert "ssh to 127.0.0.1 was killed by a signal while files were being sent (20 of 48 MB)" in r.error and "run again" in r.error
    r = heals(site, d, data)
    assert r.of("progress")[0]["total"] < len(data) - (8 << 20), "what arrived is not sent again"


def test_the_connection_is_cut(site):
    d, data = site.sshd(), big(site)
    r = cut(site, d, lambda p: [os.kill(c, signal.SIGKILL) for c in d.sessions("sshd")])
    assert "the connection to 127.0.0.1 was cut while files were being sent" in r.error and r.closed["exit"] == 5
    heals(site, d, data)


def test_the_agent_crashes(site):
    d, data = site.sshd(), big(site)
    r = cut(site, d, lambda p: [os.kill(c, signal.SIGSEGV) for c in d.sessions("agent-")])
    assert "the agent on 127.0.0.1 was killed or crashed while files were being sent" in r.error and r.closed["exit"] == 6
    heals(site, d, data)


def test_runs_are_told_of_the_cut(site):
    d = site.sshd()
    proc = site.start(site.target(d.port, runs=[dict(argv=["sleep", "60"], max=10)]))
    assert "hello" in proc.stdout.readline() + proc.stdout.readline()
    for c in d.sessions("agent-"):
        os.kill(c, signal.SIGKILL)
    r = site.finish(proc)
    assert r.one("run")["status"] == -1 and "killed or crashed" in r.error


@pytest.mark.parametrize("at", [10, 1000, 2500, 4000, 8000, 100_000, 165_000, 168_000, 1_000_000, 9_000_000])
def test_cut_at_any_byte(site, at):
    """From the first contact on: a sentence, and the next run heals."""
    d, data = site.sshd(), big(site, 8 << 20)
    p = site.pipe(d.port, cut_at=at)
    t = site.target(p.port, spec="big")
    r = site.run(t)
    if p.sent == at:
        assert r.closed["exit"] == 5, r.lines
    p.cut_at = None
    site.run(t).ok()
    assert (site.root() / "usr/bin/big").read_bytes() == data
    state = site.root() / "var/lib/slipway"
    assert not [x for x in state.iterdir() if x.name.startswith(".agent")]
