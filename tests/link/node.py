"""A node to link to: a real sshd on loopback, where a directory stands for the node's root, and a pipe before it that counts and cuts."""
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
QUICK = "KexAlgorithms=curve25519-sha256"  # ssh's own first choice is a third of what a connection costs


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def keygen(path, passphrase=""):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", path], check=True)
    return path


def children(pid):
    """All below a process."""
    out = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if int((p / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                out += [int(p.name), *children(int(p.name))]
        except (OSError, IndexError):
            pass
    return out


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Keys:
    def __init__(self, d):
        self.host, self.other_host, self.user, self.stranger = (keygen(d / n) for n in ("host", "other_host", "user", "stranger"))
        self.locked = keygen(d / "locked", "secret")
        self.authorized = d / "authorized_keys"
        self.authorized.write_text((d / "user.pub").read_text() + (d / "locked.pub").read_text())

    def fingerprint(self, key):
        return subprocess.run(["ssh-keygen", "-lf", f"{key}.pub"], capture_output=True, text=True, check=True).stdout.split()[1]


class Sshd:
    def __init__(self, keys, d, host_key=None, extra=(), port=None, max_startups="200", path=None):
        """path: the PATH of those who log in."""
        Path("/run/sshd").mkdir(exist_ok=True)
        self.port = port or free_port()
        conf = d / f"sshd-{self.port}.conf"
        conf.write_text("\n".join([
            f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {host_key or keys.host}", "PidFile none", "UsePAM no", "PasswordAuthentication no",
            "KbdInteractiveAuthentication no", "PermitRootLogin yes", "StrictModes no", f"AuthorizedKeysFile {keys.authorized}", f"MaxStartups {max_startups}", "UseDNS no", *extra,
            # sshd takes only the first SetEnv. Without SHLVL bash would read the ~/.bashrc of this computer's root, and wait for whatever that waits for.
            "SetEnv SHLVL=1" + (f" PATH={path}" if path else ""), ""]))
        self.log = d / f"sshd-{self.port}.log"
        self.proc = subprocess.Popen([SSHD, "-D", "-f", conf, "-E", self.log], stdin=subprocess.DEVNULL)
        for _ in range(6000):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self.proc.poll() is None, self.log.read_text()
                time.sleep(0.02)
        raise AssertionError("sshd does not answer")

    def sessions(self, word):
        return [p for p in children(self.proc.pid) if word in command(p)]

    def close(self):
        below = children(self.proc.pid)
        self.proc.terminate()
        self.proc.wait()
        for p in below:
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Pipe:
    """TCP through us to another port. Counts both ways; cuts once `cut_at` bytes went to the node."""

    def __init__(self, to, cut_at=None):
        self.to, self.cut_at, self.sent, self.received, self.connections = to, cut_at, 0, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.pump, args=(a, socket.create_connection(("127.0.0.1", self.to))), daemon=True).start()

    def pump(self, a, b):
        try:
            while True:
                for s in select.select([a, b], [], [])[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    if s is a and self.cut_at is not None and self.sent + len(data) >= self.cut_at:
                        b.sendall(data[:self.cut_at - self.sent])
                        self.sent = self.cut_at
                        return
                    (b if s is a else a).sendall(data)
                    if s is a:
                        self.sent += len(data)
                    else:
                        self.received += len(data)
        except OSError:
            pass
        finally:
            a.close()
            b.close()

    def close(self):
        self.listener.close()


class Result:
    def __init__(self, lines, stderr, seconds):
        self.lines, self.stderr, self.seconds = lines, stderr, seconds

    def of(self, event, link=None):
        return [x for x in self.lines if x["event"] == event and (link is None or x["link"] == link)]

    def one(self, event):
        found = self.of(event)
        assert len(found) == 1, (event, self.lines)
        return found[0]

    @property
    def closed(self):
        return self.one("closed")

    @property
    def error(self):
        c = self.closed
        assert "error" in c, self.lines
        return c["error"] + " | " + c["hint"]

    def ok(self):
        assert all("error" not in x for x in self.of("closed")), self.of("closed")
        return self

    def states(self):
        return {x["key"]: x["state"] for x in self.of("entry")}


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Site:
    def __init__(self, tool, agent, keys, path):
        self.tool, self.agent, self.keys, self.path = tool, agent, keys, path
        self.open, self.specs, self.slots = [], {}, 0
        self.known_hosts = path / "known hosts 100%"  # any name a person could give it
        self.agent_name = "agent-" + sha(agent.read_bytes())

    def sshd(self, **kw):
        s = Sshd(self.keys, self.path, **kw)
        self.open.append(s)
        return s

    def pipe(self, *a, **kw):
        p = Pipe(*a, **kw)
        self.open.append(p)
        return p

    def root(self, name="root"):
        r = self.path / name
        (r / "var/lib").mkdir(parents=True, exist_ok=True)
        return r

    def target(self, port, name="n1", root="root", **kw):
        t = dict(name=name, host="127.0.0.1", port=port, user="root", key=str(self.keys.user), known_hosts=str(self.known_hosts), accept_new=True,
                 options=["IdentityAgent=none", QUICK], root=str(self.root(root)), cluster="c1", sudo=True)
        t.update(kw)
        return {k: v for k, v in t.items() if v is not None}

    def blob(self, name, data, version="1"):
        p = self.path / f"blob-{sha(data)[:12]}"
        p.write_bytes(data)
        return dict(name=name, version=version, digest=sha(data), size=len(data), path=str(p))

    def spec(self, name, entries, items=()):
        self.specs[name] = dict(entries=entries, items=list(items))

    def start(self, *links, wrap=()):
        plan = self.path / "plan.json"
        plan.write_text(json.dumps(dict(specs=self.specs, links=links, slots=self.slots)))
        env = {k: v for k, v in os.environ.items() if k != "SSH_AUTH_SOCK"}
        return subprocess.Popen([*wrap, self.tool, self.agent, plan], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def finish(self, proc, began=None):
        out, err = proc.communicate(timeout=900)
        assert proc.returncode == 0, (proc.returncode, out, err)
        return Result([json.loads(x) for x in out.splitlines()], err, time.monotonic() - (began or 0))

    def run(self, *links, wrap=()):
        began = time.monotonic()
        return self.finish(self.start(*links, wrap=wrap), began)

    def paused(self, proc):
        """Waits until the tool has stopped itself (stop_at)."""
        for _ in range(90000):
            if "\nState:\tT" in Path(f"/proc/{proc.pid}/status").read_text():
                return
            assert proc.poll() is None, proc.communicate()
            time.sleep(0.01)
        raise AssertionError("it did not stop")

    def close(self):
        for x in self.open:
            x.close()
