"""Many SSH hosts on this computer: each a real sshd with a network namespace, a mount namespace and a root of its own.

To be used inside `unshare --net --mount --pid --fork --kill-child`: then everything made here is gone with the process, however it ends.
The roots are overlays in memory over the base of local machines and a layer with Python (which Ansible needs on its hosts; slipway does not).
"""
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

BRIDGE, NETWORK = "bench0", "10.80"  # seen by nobody outside


def sh(*words):
    subprocess.run([str(w) for w in words], check=True, capture_output=True)


def network():
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", BRIDGE, "type", "bridge")
    sh("ip", "address", "add", f"{NETWORK}.0.1/16", "dev", BRIDGE)
    sh("ip", "link", "set", BRIDGE, "up")


START = """set -e
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$ROOT/upper,workdir=$ROOT/work" "$ROOT/root"
mount --rbind /dev "$ROOT/root/dev"
mount -t proc proc "$ROOT/root/proc"
mount -t sysfs sysfs "$ROOT/root/sys"
until ip address add "$ADDRESS/16" dev eth0 2>/dev/null; do sleep 0.05; done
ip link set lo up
ip link set eth0 up
exec chroot "$ROOT/root" /usr/sbin/sshd -D -f /etc/ssh/bench.conf -E /var/log/sshd.log
"""
SSHD = ("Port 22\nHostKey /etc/ssh/bench_key\nPidFile none\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nStrictModes no\n"
        "AuthorizedKeysFile /etc/ssh/bench_authorized\nMaxSessions 100\nUseDNS no\nSubsystem sftp /usr/lib/openssh/sftp-server\n")


class Hosts:
    def __init__(self, count, lower, keys, work):
        self.address = {f"h{i}": f"{NETWORK}.{1 + i // 200}.{1 + i % 200}" for i in range(count)}
        self.root = {n: work / n / "upper" for n in self.address}  # what was written there
        self.procs = []
        if os.getpid() != 1:  # close() ends everything in other network namespaces
            raise SystemExit("bench: hosts live only in a pid namespace of their own")
        for name, address in self.address.items():
            self.start(name, address, lower, keys, work / name)
        for address in self.address.values():
            self.wait(address)

    def start(self, name, address, lower, keys, d):
        etc, run = d / "upper" / "etc", d / "upper" / "run"
        for p in (d / "work", d / "root", etc / "ssh", run / "sshd", run / "systemd" / "system", d / "upper" / "var" / "log"):
            p.mkdir(parents=True)
        (etc / "hostname").write_text(f"{name}\n")
        (etc / "ssh" / "bench.conf").write_text(SSHD)
        (etc / "ssh" / "bench_key").write_bytes((keys / "host").read_bytes())
        (etc / "ssh" / "bench_key").chmod(0o600)
        (etc / "ssh" / "bench_authorized").write_bytes((keys / "user.pub").read_bytes())
        env = dict(os.environ, LOWER=":".join(map(str, lower)), ROOT=str(d), ADDRESS=address)
        proc = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", START], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.procs.append(proc)
        while os.readlink(f"/proc/{proc.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        sh("ip", "link", "add", f"v-{name}", "type", "veth", "peer", "name", "eth0", "netns", proc.pid)
        sh("ip", "link", "set", f"v-{name}", "master", BRIDGE, "up")

    @staticmethod
    def wait(address):
        for _ in range(3000):
            try:
                with socket.create_connection((address, 22), 2) as s:
                    if s.recv(4) == b"SSH-":
                        return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"bench: sshd at {address} does not answer")

    def close(self):
        for p in self.procs:
            p.kill()
        for p in self.procs:
            p.wait()
        for name in self.address:
            subprocess.run(["ip", "link", "del", f"v-{name}"], capture_output=True)
        # sessions of an sshd that was killed are not its children any more, but hold the address
        mine = os.readlink("/proc/self/ns/net")
        for p in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(p / "ns" / "net") != mine:
                    os.kill(int(p.name), signal.SIGKILL)
            except OSError:
                pass
