"""Machines of a cloud that this computer does not reach: their bridge is in a network namespace without a link to it (machine.sh). Only what the cloud gives a
public address is reached, at that address: relays on a bridge of this computer that has no other port."""
import ctypes
import ipaddress
import os
import socket
import ssl
import subprocess
from contextlib import contextmanager

from booting import Booting
from servers import Relay

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(netns):
    """Sockets that this thread makes meanwhile are in that network namespace."""
    def enter(f):
        if LIBC.setns(f.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{netns}") as other:
        enter(other)
        try:
            yield
        finally:
            enter(own)


class Inwards(Relay):
    """To servers in the machines' network."""

    def __init__(self, netns, address, servers):
        self.netns = netns
        super().__init__(address, servers)

    def reach(self, server):
        with inside(self.netns):
            return super().reach(server)


class Apart(Booting):
    def __init__(self, name, network, source):
        super().__init__(name, network, source)
        self.netns = f"slipway-{name}"
        del self.env["SLIPWAY_BRIDGE"]

    def __enter__(self):
        super().__enter__()
        self.machine("network", str(self.network[1]))
        assert not self.failed, self.failed
        return self

    def is_theirs(self, address):
        return ipaddress.ip_interface(address).ip in self.network

    def carry(self, address):
        if self.is_theirs(address):
            self.machine("net", "ip", "address", "replace", address, "dev", "br0")
        elif not ipaddress.ip_interface(address).is_loopback:  # moto's Elastic IP addresses
            super().carry(address)

    def drop(self, address):
        if self.is_theirs(address):
            subprocess.run(["ip", "-n", self.netns, "address", "delete", address, "dev", "br0"], capture_output=True)
        else:
            super().drop(address)

    def relay(self, address, servers):
        if not self.is_theirs(address[0]):
            return Inwards(self.netns, address, servers)
        with inside(self.netns):
            return Inwards(self.netns, address, servers)

    def publish(self, id, public, private, ports):
        """What is sent to the public address goes to the private one."""
        for port in ports:
            self.balance((id, port), public, port, lambda port=port: [(private, port)])

    def hide(self, id):
        for known in [r for r in self.relays if isinstance(r, tuple) and r[0] == id]:
            self.unbalance(known)


def says(address, port, wanted=b"SSH-"):
    """Whether a server answers this computer there; a gateway that accepts every connection is none."""
    try:
        with socket.create_connection((address, port), 5) as s:
            return s.recv(len(wanted)) == wanted
    except OSError:
        return False


def certified(address, port, ca):
    """Whether that is a server with a certificate of this authority."""
    try:
        return bool(ssl.get_server_certificate((address, port), ca_certs=ca, timeout=5))
    except OSError:
        return False
