"""Real machines on this computer, driven through provider_tool. Root only.

PROVIDER_TOOL names the driver to test (the sanitizers' build has its own).
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from upstream import NEWEST

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("PROVIDER_TOOL") or ROOT / "build" / "tests" / "provider" / "provider_tool")
NETWORK = "10.118.77"  # nothing else on a test computer uses it

LOCAL = """
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: boats}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: NETWORK.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 2, machine: {cpus: 1, memory: 2GiB}}
""".replace("NETWORK", NETWORK)
NODES = {"control-1": f"{NETWORK}.10", "worker-1": f"{NETWORK}.40", "worker-2": f"{NETWORK}.41"}


class Tool:
    """One cluster: its file, its state directory, and the driver."""

    def __init__(self, directory, text=LOCAL):
        self.dir = Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.file = self.dir / "cluster.yaml"
        self.file.write_text(text)
        self.state = self.dir / "state" / "boats"

    def argv(self, verb, *nodes):
        assert TOOL.exists(), f"{TOOL} is not built (PROVIDER_TOOL names another)"
        return [str(TOOL), str(self.file), str(self.state), verb, *nodes]

    def popen(self, verb, *nodes, **more):
        return subprocess.Popen(self.argv(verb, *nodes), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)

    def call(self, verb, *nodes, timeout=400, **more):
        """(status, the lines it printed)"""
        p = subprocess.run(self.argv(verb, *nodes), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, **more)
        try:
            return p.returncode, [json.loads(line) for line in p.stdout.splitlines()]
        except json.JSONDecodeError:
            pytest.fail(f"{verb}: status {p.returncode}\n{p.stdout}")

    def must(self, verb, *nodes, **more):
        status, lines = self.call(verb, *nodes, **more)
        assert status == 0, lines
        return lines

    def states(self):
        return {line["node"]: line["state"] for line in self.must("list")}

    def ssh(self, node, *command, timeout=30, check=True, key=None):
        """Only what the provider promised: its key, and its known_hosts with strict checking."""
        argv = ["ssh", "-F", "none", "-i", str(key or self.state / "ssh/id_ed25519"), "-o", f'UserKnownHostsFile="{self.state}/known_hosts"', "-o", "GlobalKnownHostsFile=none",
                "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=5", f"root@{NODES[node]}", *command]
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        assert not check or p.returncode == 0, p.stderr
        return p.stdout.strip() if check else p

    def machine(self, node):
        return json.loads((self.state / "machines" / node / "machine.json").read_text())


def processes(directory):
    """Processes of the machines under a directory, by command line."""
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            line = (p / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in line and int(p.name) != os.getpid():
            found.append(line.strip())
    return sorted(found)


def ids(state):
    """The cluster's id and its machines', as local.h says they are made."""
    def short(text):
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    cluster = short(f"boats {state}")
    return {cluster, *(short(f"{cluster}/{node}") for node in NODES)}


SETTINGS = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "fs/inotify/max_user_instances", "fs/inotify/max_user_watches"]


def computer(tool):
    """What `down` must leave as it was. Other clusters and other tests' machines may come and go meanwhile: what is clearly theirs is left out."""
    ours = ids(tool.state)

    def foreign(name):
        return any(x not in ours for x in re.findall(r"^(?:slw-|vb-|slipway[.-]|cluster-|)([0-9a-f]{8})\b", name))

    alone = not any(foreign(n) for n in (os.listdir("/run/slipway") if os.path.isdir("/run/slipway") else []))
    links = sorted(n for n in os.listdir("/sys/class/net") if not foreign(n))
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {
        "mounts": sorted(m for m in mounts if not m.startswith("/run/netns") and (m.startswith(str(tool.dir)) or "/slipway-test-" not in m)),
        "links": links,
        "addresses": sorted(a["ifname"] + " " + i["local"] for a in json.loads(subprocess.check_output(["ip", "-j", "address"])) if a["ifname"] in links
                            for i in a.get("addr_info", [])),
        "routes": [r for r in Path("/proc/net/route").read_text().splitlines() if not foreign(r)],
        "cgroups": sorted(d for d, _, _ in os.walk("/sys/fs/cgroup") if re.match("slipway[.-](" + "|".join(ours) + ")", os.path.basename(d))),
        "processes": processes(tool.dir),
        "files": sorted(str(p) for p in tool.dir.rglob("*")),
        "run": sorted(str(p) for d in ("/run/slipway", "/run/systemd/nspawn/propagate") if os.path.isdir(d) for p in Path(d).iterdir()
                      if not foreign(p.name) and re.search("[0-9a-f]{8}$", p.name)),
        "settings": {s: Path("/proc/sys", s).read_text() for s in SETTINGS if alone and Path("/proc/sys", s).exists()},
    }


def unchanged(tool, before):
    """The computer is as it was, but for the empty state directory."""
    now, before = computer(tool), dict(before, files=sorted([*before["files"], str(tool.state), str(tool.state.parent)]))
    for what, was in before.items():
        assert now[what] == was or (what == "settings" and not (now[what] and was)), what


@pytest.fixture(scope="session", autouse=True)
def root_only():
    if os.geteuid() != 0:
        pytest.skip("machines on this computer need root")


@pytest.fixture(scope="module")
def place():
    """A directory on a disk, with a name that needs quoting everywhere."""
    d = tempfile.mkdtemp(prefix="slipway: a,b ", dir=os.environ.get("SLIPWAY_WORK") or "/var/tmp")
    yield Path(d)
    shutil.rmtree(d)
