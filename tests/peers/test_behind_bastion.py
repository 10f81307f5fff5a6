"""A cluster behind the bastion that slipway makes: the machines boot in a network that this computer does not reach (apart.py), but for the bastion's public
address and, where the cloud gives it one, the API's."""
import json
import logging
import os
import re
import subprocess
from contextlib import contextmanager

import pytest
from apart import Apart, certified, says
from aws_front import CLUSTER, client
from booting import OnCloud, named
from harness import NEWEST, SHARED_DISK, SLIPWAY, until
from test_aws_cluster import Aws, BootingFront
from test_openstack_cluster import BootingPaper, OpenStack

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root"), pytest.mark.soak]
API = 6473
NETWORK, VPC = "10.193.0.0/24", "10.194.0.0/16"
AWS_MORE = f"""\
      vpc: {{cidr: {VPC}}}
      bastion: {{instanceType: t3.micro}}"""
AWS_POOLS = """\
    - {name: control, roles: [control-plane, etcd], count: 1, instanceType: m5.large}
    - {name: worker, count: 1, instanceType: m5.large}"""
FILE = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: boats}}
spec:
  kubernetes: {NEWEST}
  api: {{port: {API}}}
  provider:
    openstack: {{cloud: paper, image: debian-12, externalNetwork: public, network: {{cidr: {NETWORK}}}, bastion: {{flavor: m1.tiny}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1, flavor: m1.k8s}}
    - {{name: worker, count: 1, flavor: m1.k8s}}
{SHARED_DISK}"""


class Behind(OnCloud):
    """`bastion`: the end of its name in the cloud. kubectl takes the way that `slipway kubeconfig` says, while there is a tunnel."""
    way = ()

    def kubectl(self, *args):
        return super().kubectl(*self.way, *args)

    @contextmanager
    def tunnel(self):
        said = self.run(SLIPWAY, "kubeconfig").stderr
        command, port = re.search(r"through the bastion: (ssh -N -L (\d+):.*)", said).groups()
        server = re.search(r"give kubectl (--server) (\S+)", said).groups()
        p = subprocess.Popen(named(self.hosts, "sh", "-c", f"exec {command}"), env=self.cloud.env(), cwd=self.dir, stdin=subprocess.DEVNULL)
        try:
            until("ssh forwards", lambda: self.is_api("127.0.0.1", int(port)) or p.poll() is not None)
            assert p.poll() is None, command
            self.way = server
            yield
        finally:
            self.way = ()
            p.terminate()
            p.wait()

    def bastion(self):
        (name, s), = ((n, s) for n, s in self.cloud.servers().items() if n.endswith("bastion"))
        return name, s

    def is_api(self, address, port=API):
        return certified(address, port, next(self.dir.glob(".slipway/*/pki/ca.crt")))

    def status(self, ok=0):
        return json.loads(self.slipway("status", "-o", "json", ok=ok))

    def known(self, address):
        """The keys that the cluster's known_hosts has for an address; ssh may have written a digest of it."""
        found = self.run("ssh-keygen", "-f", next(self.dir.glob(".slipway/*/known_hosts")), "-F", address).stdout
        return [line.split()[1:3] for line in found.splitlines() if not line.startswith("#")]

    def is_behind(self):
        """No way but the bastion, and every login on the nodes came from it."""
        _, bastion = self.bastion()
        assert says(self.status()["bastion"]["address"], 22)
        for name, s in self.cloud.servers().items():
            assert not says(s["address"], 22) and not self.is_api(s["address"]), name
            if s != bastion:
                log = self.booting.on_machine(s["id"], "journalctl", "-t", "sshd", "-o", "cat")
                assert set(re.findall(r"Accepted publickey for \S+ from (\S+)", log)) == {bastion["address"]}, (name, log)

    def answers(self):
        """What asks nodes, through the bastion."""
        assert self.slipway("ssh", "worker-1", "--", "cat", "/etc/hostname").strip() == "worker-1"
        assert "kubelet" in self.slipway("logs", "worker-1", "kubelet") and "etcd" in self.slipway("logs", "control-1", "etcd")
        said = self.status()
        assert said["healthy"] and said["bastion"]["machine"] == "running", said
        self.slipway("plan", "--exit-code")


class BehindPaper(BootingPaper):
    """A floating IP is an address of this computer, relayed to the port that has it."""

    def create(self, kind, body):
        new = super().create(kind, body)
        if kind == "floatingips":
            private = self.things["ports"][new["port_id"]]["fixed_ips"][0]["ip_address"]
            self.booting.publish(new["id"], new["floating_ip_address"], private, (22, API))
        return new

    def delete(self, kind, id):
        super().delete(kind, id)
        if kind == "floatingips":
            self.booting.hide(id)


@pytest.fixture
def openstack():
    with Apart("behind-openstack", NETWORK, "ConfigDrive") as booting:
        o = OpenStack(booting, BehindPaper)
        o.paper.flavors.append({"id": "f0", "name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 5})
        yield booting, o
        o.paper.close()


class BehindFront(BootingFront):
    """An Elastic IP address is one of this computer's loopback, relayed to the interface; so is the balancer's, outside of the VPC."""
    balancer = "203.0.113.200"

    def done(self, action, q, out):
        out = super().done(action, q, out)
        if action == "AssociateAddress":
            a, = client(self, "ec2").describe_addresses(AllocationIds=q["AllocationId"])["Addresses"]
            self.booting.publish(a["AllocationId"], a["PublicIp"], a["PrivateIpAddress"], (22,))
        elif action == "ReleaseAddress":
            self.booting.hide(q["AllocationId"][0])
        return out


@pytest.fixture
def aws():
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    with Apart("behind-aws", VPC, "NoCloud") as booting:
        a = Aws(booting, BehindFront)
        yield booting, a
        a.front.server.shutdown()
        assert not a.front.problems  # signatures


def another_host_key(c, id):
    """A machine in the bastion's place that is not it: refused, and nothing is sent."""
    key = "/etc/ssh/ssh_host_ed25519_key"
    restart = "systemctl restart ssh"
    c.booting.on_machine(id, "sh", "-c", f"cp -p {key} /root/kept && rm {key} && ssh-keygen -q -t ed25519 -N '' -f {key} && {restart}")
    r = c.run(SLIPWAY, "plan")
    assert r.returncode == 5 and "host key" in r.stderr, r.stderr
    c.booting.on_machine(id, "sh", "-c", f"mv /root/kept {key} && ssh-keygen -y -f {key} >{key}.pub && {restart}")
    c.slipway("plan", "--exit-code")


def comes_back(c, how):
    """Deleted or stopped behind our back: no node can be asked, and up brings it back first."""
    name, old = c.bastion()
    address = c.status()["bastion"]["address"]
    key, = c.known(address)
    booted = list(c.booting.booted)
    getattr(c.cloud, how)(name)
    c.booting.wait()
    assert "the bastion" in " ".join(c.status(7)["problems"])
    assert "a bastion that does not run" in c.run(SLIPWAY, "logs", "worker-1", "kubelet").stderr
    plan = c.slipway("plan", "--exit-code", ok=9)
    assert "what is to do on them is planned when it runs" in plan, plan
    c.up()
    c.answers()
    now, = c.known(c.status()["bastion"]["address"])
    assert c.bastion()[0] == name and c.status()["bastion"]["address"] == address
    if how == "delete":
        assert now != key and len(c.booting.booted) == len(booted) + 1 and c.bastion()[1]["address"] == old["address"]
    else:
        assert now == key and c.booting.booted == booted
    c.is_behind()


def whole_life(c, direct):
    """direct: kubectl reaches the API without a tunnel."""
    c.up()
    c.is_behind()
    c.answers()
    c.slipway("verify")
    if direct:
        c.is_whole()
    with c.tunnel():
        c.is_whole()
    another_host_key(c, c.bastion()[1]["id"])
    comes_back(c, "delete")
    comes_back(c, "stop")
    with c.tunnel():
        c.is_whole()


def ends(c):
    c.down()
    assert not c.booting.relays


def test_openstack(openstack):
    """The API has an address of the network: requests go through tunnels."""
    booting, cloud = openstack
    c = Behind(booting, cloud, FILE)
    whole_life(c, direct=False)
    ends(c)


def test_floating_ip_of_the_api(openstack):
    """A cluster gets one: the first run makes it and changes no node, the second one's certificates have it, and kubectl needs no tunnel."""
    booting, cloud = openstack
    c = Behind(booting, cloud, FILE)
    c.up()
    c.edit("bastion:", "apiFloatingIP: true, bastion:")
    plan = c.slipway("plan", "--exit-code", ok=9)
    assert "1 floating IP" in plan and "2 nodes are unchanged" in plan, plan
    r = c.run(SLIPWAY, "up", "--yes")
    assert r.returncode == 6 and "the API's address is 203.0.113." in r.stderr and "run 'slipway up' again" in r.stderr, r.stderr
    c.up()
    c.is_whole()
    c.is_behind()
    ends(c)


def test_aws(aws):
    """The API is reached at the public load balancer, the nodes through the bastion."""
    booting, cloud = aws
    c = Behind(booting, cloud, CLUSTER.format(kubernetes=NEWEST, image=cloud.image, more=AWS_MORE, pools=AWS_POOLS, spec=f"  api: {{port: {API}}}\n{SHARED_DISK}"))
    cloud.front.hosts = c.hosts
    whole_life(c, direct=True)
    ends(c)
