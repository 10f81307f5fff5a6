"""A cluster on machines of this computer, as tests see it: slipway in a directory, power, cables, shells, kubectl. See tests/README.md."""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from upstream import NEWEST, PREVIOUS, programs  # noqa: F401 (tests take them from here)

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "machines"
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
TOOL = Path(os.environ.get("PROVIDER_TOOL") or SLIPWAY.parent / "tests" / "provider" / "provider_tool").resolve()
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp")
KUBECTL = programs("kubernetes") / "kubectl"
KEEP = bool(os.environ.get("KEEP"))
PATIENCE = 900  # seconds: the computer may be slow and busy
ASK_EVERY = 2  # seconds: whoever asks all machines all the time takes the processors from those that are waited for

PROBE = "slipway.dev/probe:0.1.0"  # the verification's own image, which is on every node
# Two pods of which one must always be there.
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

# Two pods behind a load balancer.
BALANCED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: "%s", imagePullPolicy: IfNotPresent, args: [serve, "8080", web]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
""" % PROBE

# For hosts over ssh that are machines of this computer: its disk may be fuller than a kubelet likes its own.
SHARED_DISK = """\
  components:
    kubelet: {evictionHard: {imagefs.available: 1Gi, memory.available: 100Mi, nodefs.available: 1Gi}, config: {imageGCHighThresholdPercent: 100}}
"""


# The same for a kubelet that kubeadm started, in its own file and as its flags.
EVICTION = {"evictionHard": {"imagefs.available": "1Gi", "memory.available": "100Mi", "nodefs.available": "1Gi"}, "imageGCHighThresholdPercent": 100}
EVICTION_FLAGS = "--eviction-hard=" + ",".join(f"{k}<{v}" for k, v in EVICTION["evictionHard"].items()) + " --image-gc-high-threshold=100"


class Refused(AssertionError):
    """A command on a cluster that did not end well. Inside until() that is one more "not yet"."""


def until(what, question, seconds=PATIENCE, every=0.5):
    """Asks until the answer is true, and gives it back."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = why = question()
        except Refused as e:
            found, why = None, e
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {what} (last: {why})"
        time.sleep(every)


def cluster_yaml(name, spec):
    return f"apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec:\n{spec}"


class Machines:
    """A directory with a cluster.yaml. Used as `with`: what was there from a killed run goes first, and all of it at the end.

    With KEEP in the environment the cluster stays, and the next run takes it as it is: for a look around, and while writing tests."""

    kubernetes = NEWEST  # of kubectl

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
        if not (self.dir / "cluster.yaml").exists():  # a run that was killed before it wrote it
            (self.dir / "cluster.yaml").write_text(self.text)
        r = subprocess.run([SLIPWAY, "down", "--no-cleanup"], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
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
        if check and r.returncode:
            raise Refused(f"{node}: {command}: status {r.returncode}\n{r.stdout}{r.stderr}")
        return r.stdout.strip() if check else r

    # ---- Kubernetes ----

    def kubeconfig(self):
        path = self.at / "kubeconfig"
        path.write_text(self.slipway("kubeconfig").stdout)
        return path

    def kubectl(self, *args, check=True, text=None, good=(0,)):
        """check: what it printed, after a status among the good ones; else the whole result. text: its input."""
        path = self.at / "kubeconfig"
        program = programs("kubernetes", self.kubernetes) / "kubectl"
        given = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
        r = subprocess.run([program, "--kubeconfig", path if path.exists() else self.kubeconfig(), *args], capture_output=True, text=True, timeout=PATIENCE, **given)
        if check and r.returncode not in good:
            raise Refused(f"kubectl {' '.join(args)}: {r.stderr}")
        return r.stdout if check else r

    def ready(self):
        """Ready as the API has it: {node: True or False}"""
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return {n["metadata"]["name"]: any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"]["conditions"]) for n in nodes}


class WithAddons(Machines):
    """Machines whose file gets other addons from time to time."""

    def write(self, *addons):
        self.text = self.text.split("  services:")[0] + f"  services: {{addons: [{', '.join(addons)}]}}\n"
        (self.dir / "cluster.yaml").write_text(self.text)

    def gone(self, *what):
        return "NotFound" in self.kubectl("get", *what, check=False).stderr


class Cluster(Machines):
    """Machines for tests that write the whole file themselves, judge each command's status themselves, and name machines by their addresses."""

    def __init__(self, name, kubernetes, text):
        super().__init__(name, "")
        self.kubernetes, self.text = kubernetes, text

    def begin(self):
        self.__enter__()

    def end(self):
        self.__exit__()

    def write(self, text):
        (self.dir / "cluster.yaml").write_text(text)

    def slipway(self, *args, ok=None):
        return super().slipway(*args, ok=ok)

    def up(self):
        r = self.slipway("up", ok=0)
        self.kubeconfig()
        return r

    def on(self, address, command, stdin=None):
        """Bytes in, bytes out."""
        return subprocess.run(self.ssh_argv(address, command), stdin=stdin or subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)

    def address(self, address):
        return address

    def ready(self, node):
        return super().ready().get(node, False)
