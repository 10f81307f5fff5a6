"""A cluster on machines of this computer, as the tests of tests/machines see it: slipway in a directory, power, cables, shells, kubectl."""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
TOOL = Path(os.environ.get("PROVIDER_TOOL") or SLIPWAY.parent / "tests" / "provider" / "provider_tool").resolve()
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp")
KUBECTL = CACHE / "artifacts" / "kubernetes-1.36.3" / "kubectl"
KEEP = bool(os.environ.get("KEEP"))
PATIENCE = 900  # seconds: the computer may be slow and busy
ASK_EVERY = 2  # seconds: whoever asks all machines all the time takes the processors from those that are waited for

# Two pods of which one must always be there; the verification's own image is on every node, whatever its version.
APP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: "slipway.dev/probe:0.1.0", imagePullPolicy: IfNotPresent, args: [serve, "8080", app]}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: app, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: app}}}
"""

# For hosts over ssh that are machines of this computer: its disk may be fuller than a kubelet likes its own.
SHARED_DISK = """\
  components:
    kubelet: {evictionHard: {imagefs.available: 1Gi, memory.available: 100Mi, nodefs.available: 1Gi}, config: {imageGCHighThresholdPercent: 100}}
"""


def until(what, question, seconds=PATIENCE, every=0.5):
    """Asks until the answer is true, and gives it back."""
    end = time.monotonic() + seconds
    while not (found := question()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(every)
    return found


def cluster_yaml(name, spec):
    return f"apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec:\n{spec}"


class Machines:
    """A directory with a cluster.yaml. Used as `with`: what was there from a killed run goes first, and all of it at the end.

    With KEEP in the environment the cluster stays, and the next run takes it as it is: for a look around, and while writing tests."""

    def __init__(self, name, spec, directory=None):
        self.name = name
        self.dir = WORK / f"slipway-test-{directory or name}"
        self.state = self.dir / ".slipway" / name
        self.at = self.dir  # where slipway is called
        self.text = cluster_yaml(name, spec)

    def __enter__(self):
        if self.dir.exists() and not KEEP:
            self.down()
        self.dir.mkdir(parents=True, exist_ok=True)
        (self.dir / "cluster.yaml").write_text(self.text)
        return self

    def __exit__(self, *_):
        if not KEEP:
            self.down()

    def down(self):
        r = subprocess.run([SLIPWAY, "down"], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        assert r.returncode == 0, r.stderr
        shutil.rmtree(self.dir)

    # ---- slipway ----

    def popen(self, *args):
        return subprocess.Popen([SLIPWAY, *args], cwd=self.at, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def slipway(self, *args, ok=0):
        """ok: the status it must end with; None: any."""
        r = subprocess.run([SLIPWAY, *args], cwd=self.at, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * PATIENCE)
        assert ok is None or r.returncode == ok, f"slipway {' '.join(args)}: status {r.returncode}\n{r.stdout}{r.stderr}"
        return r

    def status(self):
        """(its status, what it says is wrong): the status is 0 exactly when nothing is."""
        r = self.slipway("status", "-o", "json", ok=None)
        answer = json.loads(r.stdout)
        assert r.returncode == (7 if answer["problems"] else 0) and answer["healthy"] == (not answer["problems"]), r.stdout + r.stderr
        return r.returncode, answer

    def problems(self):
        return "\n".join(self.status()[1]["problems"])

    def healthy(self, seconds=PATIENCE):
        return until("slipway status says healthy", lambda: not self.problems(), seconds, ASK_EVERY)

    # ---- machines ----

    def power(self, verb, *nodes):
        """up (makes them, and no cluster), kill (pulls the plug), stop, start"""
        r = subprocess.run([TOOL, self.dir / "cluster.yaml", self.state, verb, *nodes], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        assert r.returncode == 0, r.stdout + r.stderr

    def cable(self, node, state):
        link = json.loads((self.state / "machines" / node / "machine.json").read_text())["interface"]
        subprocess.run(["ip", "link", "set", link, state], check=True)

    def address(self, node):
        return json.loads((self.state / "machines" / node / "machine.json").read_text())["address"]

    def ssh_argv(self, node, *command):
        """The exchange of keys is one that costs little: ssh's own first choice is a third of a connection."""
        return ["ssh", "-F", "none", "-i", self.state / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={self.state / 'known_hosts'}", "-o", "GlobalKnownHostsFile=none",
                "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5",
                f"root@{self.address(node)}", *command]

    def on(self, node, command, check=True, **more):
        r = subprocess.run(self.ssh_argv(node, command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, **more)
        assert not check or r.returncode == 0, f"{node}: {command}: status {r.returncode}\n{r.stdout}{r.stderr}"
        return r.stdout.strip() if check else r

    # ---- Kubernetes ----

    def kubeconfig(self):
        path = self.at / "kubeconfig"
        path.write_text(self.slipway("kubeconfig").stdout)
        return path

    def kubectl(self, *args, check=True):
        path = self.at / "kubeconfig"
        r = subprocess.run([KUBECTL, "--kubeconfig", path if path.exists() else self.kubeconfig(), *args], capture_output=True, text=True, timeout=PATIENCE)
        assert not check or r.returncode == 0, r.stderr
        return r.stdout if check else r

    def ready(self):
        """Ready as the API has it: {node: True or False}"""
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return {n["metadata"]["name"]: any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"]["conditions"]) for n in nodes}
