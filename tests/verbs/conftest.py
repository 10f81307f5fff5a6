"""One small real cluster for all verbs that ask a cluster something."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import NEWEST, programs
from issuer import Provider

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CLUSTER = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: verbs}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.122.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
# What the real cluster has besides (test_people.py).
LOGIN = """\
  auth:
    oidc: {{issuer: "{issuer}", caFile: oidc/ca.pem, groupsPrefix: "oidc:", usernamePrefix: "oidc:"}}
    bindings:
      - {{group: "oidc:viewers", role: view}}
      - {{group: "oidc:editors", role: edit, namespace: team-a}}
      - {{user: "oidc:eve", role: view, namespace: team-a}}
"""


class Site:
    """A directory with a cluster.yaml, and slipway in it."""

    def __init__(self, path):
        self.path = path
        self.program = SLIPWAY
        self.state = path / ".slipway" / "verbs"

    def __call__(self, *args, ok=True, env=None):
        r = subprocess.run([SLIPWAY, *args], cwd=self.path, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
        assert not ok or r.returncode == 0, f"{args}: {r.returncode}\n{r.stdout}{r.stderr}"
        return r

    def tool(self, name, *args):
        """An upstream program with this cluster's kubeconfig."""
        kubeconfig = self.path / "kubeconfig"
        kubeconfig.write_text(self("kubeconfig").stdout)
        r = subprocess.run([programs("kubernetes") / name, "--kubeconfig", kubeconfig, *args], capture_output=True, text=True)
        assert r.returncode == 0, r.stderr
        return r.stdout


@pytest.fixture
def paper(tmp_path):
    """A cluster that was never made."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return Site(tmp_path)


@pytest.fixture(scope="session")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("machines on this computer need root")
    site = Site(Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-verbs")
    if site.path.exists():  # a run before this one was killed
        machine = Path(__file__).resolve().parent.parent / "machines" / "machine.sh"
        subprocess.run([machine, "stop", "--all"], env=os.environ | {"SLIPWAY_SET": "kubeadm", "SLIPWAY_BRIDGE": "none"}, capture_output=True)  # of test_with_kubeadm.py
        site("down", ok=False)
        shutil.rmtree(site.path)
    (site.path / "oidc").mkdir(parents=True)
    site.provider = Provider(site.path / "oidc", "10.122.0.1")
    (site.path / "cluster.yaml").write_text(CLUSTER + LOGIN.format(issuer=site.provider.issuer))
    try:
        site("up")
        yield site
    finally:
        site.provider.close()
        site("down", ok=False)
        shutil.rmtree(site.path)
