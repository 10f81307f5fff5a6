"""High availability: three control planes, two workers, one virtual address; one control plane after the other is taken away."""
import contextlib
import json
import os
import socket
import subprocess
import time

import pytest

from clients import NAMESPACE, Api, Reader, Writer
from harness import ASK_EVERY, NEWEST, Machines, until

NETWORK = "10.123.0"
VIP = f"{NETWORK}.5"
SPEC = f"""\
  kubernetes: {NEWEST}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  api: {{vip: {VIP}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 3}}
    - {{name: worker, count: 2}}
"""
ETCDCTL = ("p=/etc/kubernetes/pki/etcd; /usr/local/bin/etcdctl --endpoints https://127.0.0.1:2379 --cacert $p/ca.crt --cert $p/healthcheck-client.crt"
           " --key $p/healthcheck-client.key")
CONTROL = ["control-1", "control-2", "control-3"]
WORKERS = ["worker-1", "worker-2"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


@pytest.fixture(scope="module")
def cluster():
    with Machines("ha", SPEC) as m:
        m.slipway("up")
        m.kubeconfig()
        m.kubectl("create", "namespace", NAMESPACE)
        yield m


def holders(m, nodes=CONTROL):
    return [n for n in nodes if VIP in m.on(n, "ip -4 -o address show dev host0")]


class Tunnel:
    """A way from here into a worker's loopback: what comes out there goes to the worker's own balancer."""

    def __init__(self, m, worker):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        argv = m.ssh_argv(worker)
        self.ssh = subprocess.Popen([*argv[:-1], "-N", "-L", f"127.0.0.1:{self.port}:127.0.0.1:7443", argv[-1]], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until("the tunnel stands", self.open)

    def open(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        self.ssh.terminate()
        self.ssh.wait()


@pytest.fixture(scope="module")
def clients(cluster):
    """A writer through the virtual address and a reader through a worker's balancer, from the first test to the last."""
    tunnel = Tunnel(cluster, "worker-1")
    writer = Writer(Api(cluster.dir / "kubeconfig"), pause=0.3)
    assert writer.api.host == VIP
    reader = Reader(Api(cluster.dir / "kubeconfig", "127.0.0.1", tunnel.port), writer, pause=0.3)
    for c in (writer, reader):
        c.start()
    with busy([writer, reader]):
        until("both work", lambda: len(writer.ok) > 20 and len(reader.ok) > 20)
    yield writer, reader
    for c in (writer, reader):
        c.stop()
    tunnel.close()


@contextlib.contextmanager
def busy(clients):
    """Many requests while something is taken away; between two tests, and while all comes back, a few a second are enough."""
    before = [c.pause for c in clients]
    for c in clients:
        c.pause = 0.02
    try:
        yield
    finally:
        for c, pause in zip(clients, before):
            c.pause = pause


def numbers(m):
    """The numbers that the API has."""
    return {int(name.removeprefix("configmap/n")) for name in m.kubectl("-n", NAMESPACE, "get", "configmaps", "-o", "name").split() if "/n" in name}


def rejoined(m, node):
    """All that a control plane is: etcd, the API on its own address, the node."""
    def well():
        status, answer = m.status()
        return status == 0 and [e["healthy"] for e in answer["etcd"]] == [True] * 3 and sum(e["leader"] for e in answer["etcd"]) == 1

    until("all is well again", well, every=ASK_EVERY)
    until(f"the API answers on {node}", lambda: "ok" == m.on(node, "curl -sk --max-time 10 https://127.0.0.1:6443/readyz", check=False).stdout)
    assert len(holders(m)) == 1, "one holds the virtual address, and only one"


def etcd_id(m, node):
    line = next(x for x in m.on("control-1", ETCDCTL + " member list").splitlines() if f" {node}," in x)
    return line.split(",")[0]


def test_up_is_well(cluster):
    cluster.healthy()
    assert len(holders(cluster)) == 1
    assert f"server: https://{VIP}:6443" in (cluster.dir / "kubeconfig").read_text()


def test_the_holder_loses_power(cluster, clients):
    writer, reader = clients
    [holder] = holders(cluster)
    with busy(clients):
        killed = time.monotonic()
        cluster.power("kill", holder)
        off = time.monotonic()
        until("writes and reads go on", lambda: writer.ok[-1] > off + 5 and reader.ok[-1] > off + 5)
    print(f"{holder} off within {off - killed:.1f} s; longest gaps: writes {writer.gap(killed):.1f} s, reads {reader.gap(killed):.1f} s")
    assert writer.gap(killed) < 10, writer.troubles[-20:]
    assert reader.gap(killed) < 10, reader.troubles[-20:]
    status, answer = cluster.status()
    problems = "\n".join(answer["problems"])
    assert status == 7
    assert f"node {holder}: its machine is stopped: slipway up starts it" in problems
    assert f"etcd on {holder}: its machine could not be asked" in problems
    assert len(holders(cluster, [n for n in CONTROL if n != holder])) == 1
    started = time.monotonic()
    cluster.power("start", holder)
    rejoined(cluster, holder)
    took = time.monotonic() - started
    assert holders(cluster) != [holder], "the machine that comes back does not take the address again: one move a failure is enough"
    assert writer.gap(started) < max(10, took / 2), writer.troubles[-20:]  # who is sent to the API server that starts fails until it has started
    assert not reader.lost


def test_a_control_plane_is_cut_off(cluster, clients):
    """Long enough that the controller manager would call a silent worker NotReady: it calls the one that is cut off so."""
    writer, reader = clients
    [holder] = holders(cluster)
    try:
        with busy(clients):
            cluster.cable(holder, "down")
            cut = time.monotonic()
            until("writes and reads go on", lambda: writer.ok[-1] > cut + 12 and reader.ok[-1] > cut + 12)
        print(f"{holder} cut off; longest gaps: writes {writer.gap(cut):.1f} s, reads {reader.gap(cut):.1f} s")
        status, answer = cluster.status()
        problems = "\n".join(answer["problems"])
        print(problems)
        assert status == 7
        assert f"node {holder}: {cluster.address(holder)} port 22 did not answer in time" in problems or f"node {holder}: there is no route to" in problems
        assert f"etcd on {holder}: its machine could not be asked" in problems
        seen = []

        def only_it():
            seen.append(cluster.ready())
            return not seen[-1][holder]

        until(f"{holder} is NotReady", only_it, every=ASK_EVERY)
        assert all(ready for s in seen for n, ready in s.items() if n != holder), seen
        assert f"node {holder}: not Ready: " in cluster.problems()
        assert writer.gap(cut) < 10, writer.troubles[-20:]
        assert reader.gap(cut) < 10, reader.troubles[-20:]
        assert not reader.lost
    finally:
        cluster.cable(holder, "up")
    rejoined(cluster, holder)
    assert all(cluster.ready().values())
    assert not reader.lost


# As another user of the machine: says "yes" to whoever comes, on the ports that are named and can be had.
LIAR = """\
cat >/tmp/liar <<'PERL'
use IO::Socket::INET; use IO::Select;
my $all = IO::Select->new;
for (@ARGV) {
  my $s = IO::Socket::INET->new(LocalAddr => $_, Listen => 9, ReuseAddr => 1);
  print "$_ ", $s ? "taken" : "refused: $!", "\\n";
  $all->add($s) if $s;
}
close STDOUT; close STDERR;
while (my @ready = $all->can_read) { for (@ready) { my $c = $_->accept; print $c "yes\\n"; close $c } }
PERL
setsid setpriv --reuid=65534 --regid=65534 --clear-groups perl /tmp/liar 127.0.0.1:7443 127.0.0.2:7443 127.0.0.3:7443 127.0.0.3:343 </dev/null >/tmp/liar.said 2>&1 &
echo $! >/tmp/liar.pid; sleep 2; cat /tmp/liar.said
"""


def test_a_local_user_takes_the_balancers_ports(cluster):
    """While the balancer of the holder is down: nobody is told that the API server is ready, so the address goes; and no program of the node believes who answers."""
    [holder] = holders(cluster)
    cluster.on(holder, "systemctl stop slipway-haproxy")
    try:
        said = cluster.on(holder, LIAR)
        assert "127.0.0.1:7443 taken" in said and "127.0.0.3:343 refused: Permission denied" in said, said
        until("the address is elsewhere", lambda: holders(cluster) and holder not in holders(cluster))
        time.sleep(5)
        assert holder not in holders(cluster)
        assert cluster.on(holder, "curl -s --max-time 10 --cacert /etc/kubernetes/pki/ca.crt https://127.0.0.1:7443/readyz", check=False).returncode != 0
    finally:
        cluster.on(holder, "kill $(cat /tmp/liar.pid); systemctl reset-failed slipway-haproxy; systemctl start slipway-haproxy")
    rejoined(cluster, holder)


def test_a_local_user_takes_the_api_servers_port(cluster):
    """While the API server beside keepalived is away, somebody serves 200 over TLS in its place: it is not taken for one, neither by keepalived nor by other nodes."""
    [holder] = holders(cluster)
    cluster.on(holder, "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/")
    try:
        until("its API server is gone", lambda: not cluster.on(holder, "ss -Hltn 'sport = :6443'").strip())
        cluster.on(holder, "openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/k -out /tmp/c -subj /CN=kubernetes -addext subjectAltName=DNS:kubernetes -days 2 2>/dev/null; chmod 644 /tmp/k; "
                           "(setsid setpriv --reuid=65534 --regid=65534 --clear-groups openssl s_server -accept 6443 -cert /tmp/c -key /tmp/k -www >/dev/null 2>&1 </dev/null & echo $! >/tmp/liar.pid)")
        until("somebody else serves", lambda: "200" in cluster.on(holder, "curl -sk -o /dev/null -w '%{http_code}' https://127.0.0.1:6443/readyz", check=False).stdout)
        until("the address is elsewhere", lambda: holders(cluster) and holder not in holders(cluster))
        time.sleep(5)
        assert holder not in holders(cluster)
        for node in WORKERS:  # none of their requests goes there
            for _ in range(10):
                cluster.on(node, "curl -sf --max-time 20 --cacert /etc/kubernetes/pki/ca.crt https://127.0.0.1:7443/readyz")
    finally:
        cluster.on(holder, "kill $(cat /tmp/liar.pid); rm -f /tmp/k /tmp/c; mv /root/kube-apiserver.yaml /etc/kubernetes/manifests/")
    rejoined(cluster, holder)


def test_up_starts_a_machine_that_is_off(cluster):
    member = etcd_id(cluster, "control-2")
    cluster.power("kill", "control-2")
    r = cluster.slipway("up")
    assert "control-2  start    start its machine, then repair what differs" in r.stderr, r.stderr
    assert "control-2: machine: the machine was off: started it" in r.stderr, r.stderr
    assert "4 nodes are unchanged" in r.stderr and "ha is up: 5 nodes" in r.stdout
    rejoined(cluster, "control-2")
    assert etcd_id(cluster, "control-2") == member, "it is the member that it was"


def test_nodes_that_need_it_are_rebooted(cluster, clients):
    def booted():
        return {n: cluster.on(n, "cut -d' ' -f22 /proc/1/stat").strip() for n in CONTROL + WORKERS}

    before, chosen = booted(), {"control-3", "worker-2"}
    for node in chosen:
        cluster.on(node, "touch /run/reboot-required; echo linux-image-6.1 > /run/reboot-required.pkgs")
    said = cluster.slipway("status").stdout
    assert "reboot        control-3 needs one: linux-image-6.1 changed (slipway reboot)" in said and "ha is healthy." in said, said
    r = cluster.slipway("reboot", "--yes")
    assert "control-3  change   drain it; reboot it: linux-image-6.1 changed" in r.stderr and "3 nodes are unchanged" in r.stderr, r.stderr
    assert "ha: 2 nodes were rebooted." in r.stdout, r.stdout
    after = booted()
    assert {n for n in after if after[n] != before[n]} == chosen
    rejoined(cluster, "control-3")
    assert "true" not in cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.unschedulable}")
    assert "ha: no node needs a reboot." in cluster.slipway("reboot").stdout
    assert booted() == after


def test_no_acknowledged_write_is_lost(cluster, clients):
    writer, reader = clients
    writer.stop()
    reader.stop()
    assert not reader.lost
    print(f"{len(writer.acknowledged)} writes, {len(reader.ok)} reads")
    assert not set(writer.acknowledged) - numbers(cluster)
    assert json.loads(cluster.kubectl("-n", NAMESPACE, "get", "configmap", f"n{writer.acknowledged[-1]}", "-o", "json"))["data"]["number"] == str(writer.acknowledged[-1])
