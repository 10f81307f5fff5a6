"""Machines of a cloud that really boot: tests/machines/machine.sh on a bridge of this computer, with Debian's own cloud-init, which gets the user-data that
the cloud was given. A cloud of tests (aws_front.py, paper_openstack.py) calls boot, off, on and remove; a balancer is a relay at an address of the bridge."""
import hashlib
import ipaddress
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

from harness import NEWEST, PREVIOUS, SLIPWAY, WORK, Refused, programs
from servers import Relay

MACHINE = Path(__file__).resolve().parents[1] / "machines" / "machine.sh"
# The root has no locales, and what slipway asks for: sources of packages would be written for the internet.
SETTINGS = "datasource_list: [{source}]\nnetwork: {{config: disabled}}\napt: {{preserve_sources_list: true}}\nlocale: false\n"


def no_cloud(id, data):
    return {"nocloud/meta-data": json.dumps({"instance-id": id}).encode(), "nocloud/user-data": data}


def config_drive(id, data):
    """As nova writes it; no key of the cloud and no name of the server: both are in the user-data."""
    return {"config_drive/openstack/latest/meta_data.json": json.dumps({"uuid": id}).encode(), "config_drive/openstack/latest/user_data": data}


def short(text):
    """Such names of links and machines are another cluster's, to tests that look what theirs left behind."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


SEEDS = {"NoCloud": no_cloud, "ConfigDrive": config_drive}


class Booting:
    """The machines and balancers of one cloud. network: what its machines reach without a gateway."""

    def __init__(self, name, network, source):
        self.name, self.network, self.source, self.bridge = name, ipaddress.ip_network(network), source, f"slw-{short(name)}"
        self.dir = WORK / f"slipway-test-{name}-cluster"
        self.env = {**os.environ, "SLIPWAY_SET": name, "SLIPWAY_BRIDGE": self.bridge, "SLIPWAY_BASE": "cloud"}
        self.units = {}  # of every machine, besides those of its root: {name: text}
        self.lock, self.last, self.at, self.failed, self.relays, self.booted = threading.Lock(), {}, {}, [], {}, []

    def machine(self, *args, **env):
        r = subprocess.run([MACHINE, *args], env=self.env | env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if r.returncode:
            self.failed.append(f"{args}: {r.stdout[-2000:]}{r.stderr[-2000:]}")
        return r.stdout

    def __enter__(self):
        self.machine("stop", "--all")
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.machine("bridge", self.bridge)
        assert not self.failed, self.failed
        return self

    def __exit__(self, *_):
        self.wait()
        for relay in self.relays.values():
            relay.__exit__()
        self.machine("stop", "--all")
        if not os.environ.get("KEEP"):
            shutil.rmtree(self.dir)

    def wait(self):
        """Until what was begun is done."""
        with self.lock:
            threads = list(self.last.values())
        for t in threads:
            t.join()

    def later(self, id, work):
        """In a thread, after what was begun before at the machine's address."""
        ip = self.at[id]

        def then():
            if before:
                before.join()
            work()
        with self.lock:
            before = self.last.get(ip)
            self.last[ip] = threading.Thread(target=then, daemon=True)
            self.last[ip].start()

    # ---- machines, by the cloud's ids ----

    def files(self, id, gateway, data):
        """The resolver is this computer, where nobody listens: questions are refused at once. data: the user-data, or all files of the seed."""
        root = self.dir / "files" / id
        settings = root / "etc" / "cloud" / "cloud.cfg.d" / "90_dpkg.cfg"
        settings.parent.mkdir(parents=True)
        settings.write_text(SETTINGS.format(source=self.source))
        (root / "etc" / "resolv.conf").write_text(f"nameserver {gateway}\n")
        for name, text in self.units.items():
            path = root / "etc" / "systemd" / "system" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, content in (data if isinstance(data, dict) else SEEDS[self.source](id, data)).items():
            path = root / "var" / "lib" / "cloud" / "seed" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return root

    def boot(self, id, ip, subnet, mac, data):
        """data: the user-data, as the machine gets it, or all files of its seed."""
        net = ipaddress.ip_network(subnet)
        self.at[id] = ip
        self.booted.append(id)
        root = self.files(id, net[1], data)

        def work():
            self.carry(f"{net[1]}/{net.prefixlen}")
            self.machine("start", short(id), ip, SLIPWAY_FILES=str(root), SLIPWAY_NETWORK=f"{net.prefixlen} {net[1]} {mac} {self.network}")
        self.later(id, work)

    def off(self, id):
        self.later(id, lambda: self.machine("off", short(id)))

    def on(self, id):
        self.later(id, lambda: self.machine("on", short(id)))

    def remove(self, id):
        if id in self.at:
            self.later(id, lambda: self.machine("stop", short(id)))

    def fails(self, id):
        """What failed at a machine, after what was begun at it is done."""
        self.last[self.at[id]].join()
        return [f for f in self.failed if short(id) in f]

    def running(self):
        """{id: address}"""
        self.wait()
        there = {name for name, _, pid in (line.split() for line in self.machine("list").splitlines()) if pid != "-"}
        return {id: ip for id, ip in self.at.items() if short(id) in there}

    def console(self, id):
        path = Path(os.environ.get("SLIPWAY_MACHINES") or "/var/tmp/slipway-machines") / self.name / short(id) / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def on_machine(self, id, *command):
        return self.machine("exec", short(id), *command)

    # ---- addresses beside the machines, and balancers ----

    def carry(self, address):
        """An address of the bridge from now on."""
        self.machine("bridge", self.bridge, address)

    def drop(self, address):
        """It may have gone with the last machine."""
        subprocess.run(["ip", "address", "delete", address, "dev", self.bridge], capture_output=True)

    def relay(self, address, servers):
        return Relay(address, servers)

    def balance(self, id, address, port, servers):
        """A relay at an address of the bridge; servers: () → [(address, port)], asked at each connection."""
        class Following:
            def __iter__(self):
                return iter(servers())
        if id in self.relays:
            return
        self.carry(f"{address}/32")
        self.relays[id] = self.relay((address, port), Following())
        self.relays[id].__enter__()

    def unbalance(self, id):
        if relay := self.relays.pop(id, None):
            relay.__exit__()
            self.drop(f"{relay.server_address[0]}/32")


def named(hosts, *argv):
    """A command that finds names in a file of its own in place of /etc/hosts."""
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, *argv]


def different(before, now):
    """What a message says of two listings."""
    if not isinstance(before, dict):
        return f"before: {before}\nnow: {now}"
    return "\n".join(f"{k}\n  before: {before.get(k)}\n  now: {now.get(k)}" for k in {**before, **now} if before.get(k) != now.get(k))


class OnCloud:
    """A cluster on such machines: slipway in a directory, kubectl, and what both clouds' tests ask. `cloud` is asked and told: env(), servers(), listing(),
    ours(prefix), delete(name), stop(name)."""
    kubernetes = NEWEST  # of kubectl

    def __init__(self, booting, cloud, text):
        self.booting, self.cloud, self.dir, self.before = booting, cloud, booting.dir, cloud.listing()
        self.file, self.hosts = self.dir / "cluster.yaml", self.dir / "hosts"
        self.file.write_text(text)
        self.hosts.write_text("127.0.0.1 localhost\n")

    def edit(self, old, new):
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))

    def run(self, *argv):
        return subprocess.run([str(a) for a in named(self.hosts, *argv)], env=self.cloud.env(), cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def slipway(self, *args, ok=0):
        r = self.run(SLIPWAY, *args)
        consoles = {id: self.booting.console(id)[-1500:] for id in self.booting.at} if r.returncode == 5 else ""
        assert r.returncode == ok, f"slipway {' '.join(args)}: status {r.returncode}\n{r.stdout}{r.stderr}\n{consoles}{self.booting.failed}"
        assert "SECRET" not in r.stdout + r.stderr
        return r.stdout

    def up(self):
        """Until the cluster is verified; afterwards there is nothing to do."""
        self.slipway("up", "--yes")
        self.slipway("plan", "--exit-code")

    def kubectl(self, *args):
        (self.dir / "kubeconfig").write_text(self.slipway("kubeconfig"))
        r = self.run(programs("kubernetes", self.kubernetes) / "kubectl", "--kubeconfig", "kubeconfig", *args)
        if r.returncode:
            raise Refused(f"kubectl {' '.join(args)}: {r.stderr}")
        return r.stdout

    def nodes(self):
        """{name: (address, providerID, zone, version)} of the nodes that are Ready."""
        found = {}
        for n in json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]:
            status, labels = n["status"], n["metadata"]["labels"]
            if any(c["type"] == "Ready" and c["status"] == "True" for c in status["conditions"]):
                address = next(a["address"] for a in status["addresses"] if a["type"] == "InternalIP")
                found[n["metadata"]["name"]] = (address, n["spec"].get("providerID"), labels.get("topology.kubernetes.io/zone"), status["nodeInfo"]["kubeletVersion"])
        return found

    def prefix(self):
        return json.loads(next(self.dir.glob(".slipway/*/identity.json")).read_text())["prefix"]

    def down(self):
        """Nothing is left, and what others have is as it was."""
        prefix = self.prefix()
        self.slipway("down", "--yes")
        left, now = self.cloud.ours(prefix), self.cloud.listing()
        assert self.booting.running() == {} and not left, f"left: {left} {self.booting.running()}"
        assert now == self.before, different(self.before, now)

    def is_whole(self, version=NEWEST):
        """The nodes are the machines that the cloud lists, which are the ones that run; each has its name from its user-data."""
        servers = self.cloud.servers()
        nodes = {name: s for name, s in servers.items() if not name.endswith("bastion")}
        assert self.nodes() == {name: (s["address"], s["provider"], s["zone"], f"v{version}") for name, s in nodes.items()}
        assert self.booting.running() == {s["id"]: s["address"] for s in servers.values()}
        for name, s in servers.items():
            assert self.booting.on_machine(s["id"], "hostname").strip() == name
        assert not self.booting.failed, self.booting.failed


# ---- what is done on both clouds ----

def short_life(c):
    """One and one, verified; a machine that was deleted comes again with its name and address; and nothing is left."""
    c.up()
    c.is_whole()
    c.slipway("verify")
    old = c.cloud.servers()
    c.cloud.delete("worker-1")
    c.up()
    c.is_whole()
    new = c.cloud.servers()
    assert new["worker-1"]["address"] == old["worker-1"]["address"] and new["worker-1"]["id"] != old["worker-1"]["id"] and new["control-1"] == old["control-1"]
    c.down()


def long_life(c):
    """Three and two on the previous minor: one more worker, machines that were deleted and stopped, an upgrade that makes none anew, and nothing is left."""
    c.kubernetes = PREVIOUS
    c.up()
    c.is_whole(PREVIOUS)
    c.slipway("scale", "worker=3", "--yes")
    c.is_whole(PREVIOUS)
    c.cloud.delete("control-2")
    c.cloud.stop("worker-2")
    c.up()
    c.is_whole(PREVIOUS)
    made = list(c.booting.booted)
    c.slipway("upgrade", NEWEST, "--yes")
    c.kubernetes = NEWEST
    c.is_whole()
    assert c.booting.booted == made
    c.slipway("verify")
    c.slipway("plan", "--exit-code")
    c.down()
