"""`hardening`: what it sets where the file says nothing, that the file wins, and the table of controls."""
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from upstream import NEWEST

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
HEAD = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""


def run(tmp_path, spec, *args):
    (tmp_path / "cluster.yaml").write_text(HEAD + spec)
    return subprocess.run([SLIPWAY, *args], cwd=tmp_path, capture_output=True, text=True)


def controls(tmp_path, spec=""):
    r = run(tmp_path, spec, "check", "--hardening", "-o", "json")
    assert r.returncode == 0 and not (tmp_path / ".slipway").exists(), r.stderr
    return {c["id"]: c for c in json.loads(r.stdout)["controls"]}


def failed(tmp_path, spec=""):
    return {number for number, c in controls(tmp_path, spec).items() if c["result"] == "fail"}


def render(tmp_path, spec="", facts=None):
    (tmp_path / "facts.json").write_text(json.dumps({"default": facts or {}}))
    r = run(tmp_path, spec, "render", "--secrets", "--facts", "facts.json", "-d", "out")
    assert r.returncode == 0, r.stderr
    return tmp_path / "out" / "control-1" / "root"


def flags(root, name="kube-apiserver"):
    command = yaml.safe_load((root / f"etc/kubernetes/manifests/{name}.yaml").read_text())["spec"]["containers"][0]["command"]
    return dict(word[2:].split("=", 1) for word in command[1:])


def kubelet(root):
    return yaml.safe_load((root / "var/lib/kubelet/config.yaml").read_text())


def test_default(tmp_path):
    assert failed(tmp_path) == set()


def test_kubeadm_is_looser(tmp_path):
    loose = {"1.1.12", "1.1.20", "1.2.1", "1.2.15", "1.2.16", "1.2.27", "1.2.29", "1.3.2", "1.4.1", "3.2.1", "4.1.9", "4.2.12", "4.2.13"}
    assert loose <= failed(tmp_path, "  hardening: kubeadm\n")


@pytest.mark.parametrize("spec, fails", [
    ("  encryption: none\n", {"1.2.27"}),
    ("  audit: none\n", {"1.2.16", "1.2.17", "1.2.18", "1.2.19", "3.2.1"}),
    ("  audit: {maxAge: 7}\n", {"1.2.17"}),
    ("  components: {apiserver: {flags: {profiling: true}}}\n", {"1.2.15"}),
    ("  components: {kubelet: {config: {podPidsLimit: null}}}\n", {"4.2.13"}),
    ("  components: {apiserver: {flags: {anonymous-auth: true}}}\n", {"1.2.1"}),
])
def test_the_file_wins(tmp_path, spec, fails):
    assert failed(tmp_path, spec) == fails


def test_only_resources_said(tmp_path):
    config = yaml.safe_load((render(tmp_path, "  encryption: {resources: [secrets, configmaps]}\n") / "etc/kubernetes/encryption/config.yaml").read_text())
    assert "secretbox" in config["resources"][0]["providers"][0] and config["resources"][0]["resources"] == ["secrets", "configmaps"]


def test_oidc_is_in_the_file(tmp_path):
    root = render(tmp_path, "  auth: {oidc: {issuer: https://id.example.net, groupsPrefix: 'g:', requiredClaims: {hd: example.net}}}\n")
    config = yaml.safe_load((root / "etc/kubernetes/authentication/config.yaml").read_text())
    assert [c["path"] for c in config["anonymous"]["conditions"]] == ["/livez", "/readyz", "/healthz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"]
    assert config["jwt"] == [{"issuer": {"url": "https://id.example.net", "audiences": ["kubernetes"]}, "claimMappings": {
        "username": {"claim": "sub", "prefix": "https://id.example.net#"}, "groups": {"claim": "groups", "prefix": "g:"}},
        "claimValidationRules": [{"claim": "hd", "requiredValue": "example.net"}]}]
    assert not [f for f in flags(root) if f.startswith("oidc-")]


def test_signatures_need_flags(tmp_path):
    root = render(tmp_path, "  auth: {oidc: {issuer: https://id.example.net, signingAlgs: [ES256]}}\n")
    assert flags(root)["oidc-signing-algs"] == "ES256" and "authentication-config" not in flags(root)


@pytest.mark.parametrize("spec, facts", [("  os: {sysctls: {kernel.panic: 0}}\n", {}), ("", {"kernelDefaults": False})])
def test_kernel_that_is_not_ours(tmp_path, spec, facts):
    """The kubelet would not start."""
    root = render(tmp_path, spec, facts)
    assert "protectKernelDefaults" not in kubelet(root) and "root_maxkeys" not in (root / "etc/sysctl.d/99-slipway.conf").read_text()


def test_kernel_that_is_ours(tmp_path):
    root = render(tmp_path)
    assert kubelet(root)["protectKernelDefaults"] is True
    assert {"vm.panic_on_oom = 0", "kernel.keys.root_maxbytes = 25000000"} <= set((root / "etc/sysctl.d/99-slipway.conf").read_text().splitlines())


def test_etcd_refuses_suites_with_tls_1_3(tmp_path):
    config = yaml.safe_load((render(tmp_path, "  components: {etcd: {flags: {tls-min-version: TLS1.3}}}\n") / "etc/etcd/etcd.yaml").read_text())
    assert config["tls-min-version"] == "TLS1.3" and "cipher-suites" not in config


@pytest.mark.parametrize("spec, enforced, warned", [("", "privileged", "baseline"), ("  admission: {podSecurity: baseline}\n", "baseline", "baseline"),
                                                     ("  admission: {podSecurity: restricted}\n", "restricted", "restricted")])
def test_pod_security(tmp_path, spec, enforced, warned):
    config = yaml.safe_load((render(tmp_path, spec) / "etc/kubernetes/admission/config.yaml").read_text())
    defaults = config["plugins"][0]["configuration"]["defaults"]
    assert (defaults["enforce"], defaults["warn"], defaults["audit"]) == (enforced, warned, warned)


@pytest.mark.parametrize("spec", ["  admission: {podSecurity: privileged}\n", "  admission: {disable: [PodSecurity]}\n", "  hardening: kubeadm\n"])
def test_no_pod_security(tmp_path, spec):
    assert "admission-control-config-file" not in flags(render(tmp_path, spec))


def test_table(tmp_path):
    r = run(tmp_path, "", "check", "--hardening")
    assert r.returncode == 0 and "hardening cis: " in r.stdout and "  1.2.15  pass    API server: no profiling\n" in r.stdout, r.stdout
    assert "1.2.9   manual  EventRateLimit: " in r.stdout
