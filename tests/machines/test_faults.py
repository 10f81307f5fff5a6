"""What goes wrong during `up` on hosts one has: each trouble is one sentence with the node, the cause and what to do, and the next run heals.

The hosts are machines of this computer, but slipway knows them only by address, user and key: the user is not root and uses sudo."""
import os
import re
import threading
import time

import pytest

from harness import NEWEST, SHARED_DISK, Machines, cluster_yaml, until

NETWORK = "10.123.0"
CONTROL, WORKER = f"{NETWORK}.10", f"{NETWORK}.40"
USER = "boatman"
MACHINES = f"""\
  kubernetes: {NEWEST}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
    - {{name: worker, count: 1}}
"""
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {ssh: {user: %s, key: %s, options: ["UserKnownHostsFile=%s"]}}
  pools:
    - {name: control, roles: [control-plane, etcd], hosts: [{name: control-1, address: %s}]}
    - {name: worker, hosts: [{name: worker-1, address: %s}]}
""" + SHARED_DISK
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


class Hosts(Machines):
    def __enter__(self):
        super().__enter__()
        self.power("up")
        self.at = self.dir / "hosts"
        self.at.mkdir()
        (self.at / "cluster.yaml").write_text(cluster_yaml("hosts", SPEC % (USER, self.state / "ssh" / "id_ed25519", self.dir / "known_hosts", CONTROL, WORKER)))
        for node in ("control-1", "worker-1"):
            self.on(node, f"useradd -m -s /bin/bash {USER} && cp -r /root/.ssh /home/{USER}/ && chown -R {USER}: /home/{USER}/.ssh")
            self.sudo(node, True)
        return self

    def sudo(self, node, allowed):
        self.on(node, f"echo '{USER} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{USER}" if allowed else f"rm /etc/sudoers.d/{USER}")

    def stored(self, node):
        """Bytes of what was sent to the node so far."""
        total = 0
        for p in (self.state / "machines" / node / "upper/var/lib/slipway/store").glob("*"):
            try:
                total += p.stat().st_size
            except FileNotFoundError:  # it just got its name
                pass
        return total

    def trouble(self, status, *sentences):
        """`up` ends with this status and says these sentences; the last line is a hint."""
        return Running(self).ends(status, *sentences)


class Running:
    """An `up` under way."""

    def __init__(self, hosts):
        self.began = time.monotonic()
        self.proc = hosts.popen("up")
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(iter(self.proc.stderr.readline, "")), daemon=True)
        self.reader.start()

    def says(self, text):
        until(f"up says: {text}", lambda: any(text in line for line in self.lines) or self.proc.poll() is not None, every=0.1)
        assert any(text in line for line in self.lines), "".join(self.lines)

    def ends(self, status, *sentences):
        self.proc.wait()
        self.reader.join()
        text = "".join(self.lines)
        print(f"up ended after {time.monotonic() - self.began:.0f} s with {self.proc.returncode}", *self.lines[-4:], sep="\n  ")
        assert self.proc.returncode == status, text
        for s in sentences:
            assert re.search(s, text), f"{s}\n{text}"
        assert not status or self.lines[-1].startswith("hint: "), text
        return text


@pytest.fixture(scope="module")
def hosts():
    with Hosts("faults", MACHINES) as m:
        yield m


def test_cut_in_the_middle_of_a_transfer(hosts):
    """The way of the worker is cut while files are being sent; sudo went before it, and nobody missed it until then."""
    up = Running(hosts)
    until("a part of the files is there", lambda: hosts.stored("worker-1") > 30 << 20 or up.proc.poll() is not None, every=0.05)
    hosts.sudo("worker-1", False)
    hosts.on("worker-1", f"pkill -o -f 'sshd: {USER}@notty'")
    up.ends(5, rf"worker-1: apply: the connection to {WORKER} was cut while files were being sent \(\d+ of \d+ MB\): ", "hint: run again: it continues where it stopped")


def test_sudo_is_gone(hosts):
    hosts.trouble(4, f"worker-1: connect: sudo on {WORKER} asks {USER} for a password", rf"hint: let {USER} use sudo without a password there \(NOPASSWD in sudoers\)")
    hosts.sudo("worker-1", True)


def test_the_disk_is_full(hosts):
    before = hosts.stored("worker-1")
    hosts.on("worker-1", "mount -t tmpfs -o size=48m small /var/lib/slipway")
    try:
        hosts.trouble(6, r"worker-1: apply: .*No space left on device", "hint: free space on the file system of /var/lib/slipway")
    finally:
        hosts.on("worker-1", "umount /var/lib/slipway")
    assert hosts.stored("worker-1") >= before > 30 << 20, "what was sent before is still there"


def test_a_node_reboots_during_up(hosts):
    """The control plane is well by now; the worker loses power while it is being changed."""
    up = Running(hosts)
    until("the worker is being changed", lambda: hosts.on("worker-1", "test -e /etc/kubernetes/kubelet.conf", check=False).returncode == 0 or up.proc.poll() is not None, every=0.1)
    hosts.power("kill", "worker-1")
    hosts.power("start", "worker-1")
    up.ends(5, rf"worker-1: apply: the connection to {WORKER} was cut while (files were being sent|the node was being changed)", "hint: run again: it continues")


def test_the_next_run_heals(hosts):
    text = hosts.trouble(0, "verify: done in")
    assert "control-1: apply: unchanged" in text, "only the worker had something to mend"
    assert "hosts is up: 2 nodes" in Running(hosts).proc.communicate()[0]
    assert hosts.ready() == {"control-1": True, "worker-1": True} and hosts.status()[0] == 0
