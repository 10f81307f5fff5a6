"""A cluster on machines of this computer, for tests: its directory, slipway and kubectl in it, and commands on its machines."""
import os
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "machines"
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
PATIENCE = 900


def until(what, look, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while True:
        try:
            answer = look()
        except AssertionError as e:
            answer = None
            why = e
        else:
            why = answer
        if answer:
            return answer
        assert time.monotonic() < end, f"{what}: not after {seconds} s: {why}"
        time.sleep(1)


class Cluster:
    def __init__(self, name, kubernetes, text):
        self.name, self.kubernetes, self.text = name, kubernetes, text
        self.dir = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / f"slipway-test-{name}"
        self.state = self.dir / ".slipway" / name

    def begin(self):
        if self.dir.exists():  # a run before this one was killed
            self.end()
        self.dir.mkdir(parents=True)
        self.write(self.text)

    def end(self):
        self.slipway("down")
        shutil.rmtree(self.dir)

    def write(self, text):
        (self.dir / "cluster.yaml").write_text(text)

    def slipway(self, *args):
        return subprocess.run([SLIPWAY, *args], cwd=self.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def up(self):
        r = self.slipway("up")
        assert r.returncode == 0, r.stderr
        (self.dir / "kubeconfig").write_text(self.slipway("kubeconfig").stdout)
        return r

    def kubectl(self, *args, text=None, good=(0,)):
        kubectl = CACHE / "artifacts" / f"kubernetes-{self.kubernetes}" / "kubectl"
        r = subprocess.run([kubectl, "--kubeconfig", self.dir / "kubeconfig", *args], input=text, capture_output=True, text=True)
        assert r.returncode in good, r.stderr
        return r.stdout

    def on(self, address, command, stdin=None):
        """Runs a command on a machine; bytes in, bytes out."""
        ssh = ["ssh", "-i", self.state / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={self.state / 'known_hosts'}", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256"]
        return subprocess.run([*ssh, f"root@{address}", command], stdin=stdin or subprocess.DEVNULL, capture_output=True)

    def ready(self, node):
        return self.kubectl("get", "node", node, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}") == "True"
