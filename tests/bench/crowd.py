"""A thousand SSH hosts on this computer: the addresses of one real sshd, each with a root of its own.

To be used inside `unshare --net --mount --pid --fork --kill-child`, as hosts.py, which has an sshd and a network namespace for each host and is therefore for fifty
of them. Here the kernel takes every address of a network as its own (a local route), and what sshd starts looks at which one was called: it mounts that host's
root (an overlay in memory) in a mount namespace of its own and goes there. Each session leaves a line with the address in `log`.
"""
import os
import socket
import subprocess
import time

NETWORK = "10.81"
SESSION = """#!/bin/sh
set -- $SSH_CONNECTION
echo "$3" >>"$CROWD_LOG"
export HOST="$CROWD_ROOTS/$3"
exec unshare --mount sh -c 'mount -t overlay overlay -o "lowerdir=$CROWD_LOWER,upperdir=$HOST/upper,workdir=$HOST/work" "$HOST/root" && mount -t proc proc "$HOST/root/proc" &&
mount --rbind /dev "$HOST/root/dev" && mount --rbind /sys "$HOST/root/sys" && exec chroot "$HOST/root" /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
"""


class Crowd:
    """`address` of each host by name, `root` what was written there; `lower` are the layers below, the first on top."""

    def __init__(self, count, lower, keys, work):
        self.address = {f"h{i}": f"{NETWORK}.{1 + i // 200}.{1 + i % 200}" for i in range(count)}
        self.roots, self.log = work / "roots", work / "sessions"
        self.root = {n: self.roots / a / "upper" for n, a in self.address.items()}
        for i, (name, root) in enumerate(self.root.items()):
            for p in (root / "etc", root / "run" / "systemd" / "system", root.parent / "work", root.parent / "root"):
                p.mkdir(parents=True)
            (root / "etc" / "hostname").write_text(f"{name}\n")
            (root / "etc" / "machine-id").write_text(f"{i + 1:032x}\n")
        self.log.touch()
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "route", "replace", "local", f"{NETWORK}.0.0/16", "dev", "lo"], check=True)
        session = work / "session"
        session.write_text(SESSION)
        session.chmod(0o755)
        os.makedirs("/run/sshd", exist_ok=True)
        (work / "authorized").write_bytes((keys / "user.pub").read_bytes())
        # SHLVL: or bash would run the ~/.bashrc of this computer's root at each login
        (work / "sshd.conf").write_text(
            f"Port 22\nHostKey {keys}/host\nPidFile none\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nStrictModes no\n"
            f"AuthorizedKeysFile {work}/authorized\nMaxStartups 500\nUseDNS no\nForceCommand {session}\n"
            f"SetEnv SHLVL=1 CROWD_LOG={self.log} CROWD_ROOTS={self.roots} CROWD_LOWER={':'.join(map(str, lower))}\n")
        self.proc = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", work / "sshd.conf", "-E", work / "sshd.log"], stdin=subprocess.DEVNULL)
        for _ in range(600):
            try:
                with socket.create_connection((f"{NETWORK}.1.1", 22), 2) as s:
                    if s.recv(4) == b"SSH-":
                        return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("bench: sshd does not answer")

    def sessions(self):
        """{address: how often somebody logged in} since the last call."""
        out = {}
        for line in self.log.read_text().split():
            out[line] = out.get(line, 0) + 1
        self.log.write_text("")
        return out

    def close(self):
        self.proc.terminate()
        self.proc.wait()
