"""`slipway addons` lists the table, says what a file has, and docs/addons.md has the same rows. A node gets the images of the addons that the file has, and no others."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from upstream import NEWEST

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
FILE = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: demo}}
spec:
  kubernetes: {NEWEST}
  pools: [{{name: control, roles: [control-plane, etcd], count: 1}}, {{name: worker, count: 1}}]
"""


def slipway(*args, cwd, status=0):
    r = subprocess.run([SLIPWAY, *args], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert r.returncode == status, r.stdout + r.stderr
    return r.stdout


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "empty").mkdir()
    return json.loads(slipway("addons", "-o", "json", cwd=tmp_path / "empty"))


def test_the_page_has_the_same_table(rows):
    page = (ROOT / "docs" / "addons.md").read_text()
    found = re.findall(r"(?m)^\| \[([a-z-]+)\]\((\S+)\) \| (\S+) \| (built-in|chart) \| `([a-z-]+)` \| (.*?) \| (.*?) \|$", page)
    wanted = [(r["name"], r["home"], r["version"], r["kind"], r["namespace"], r["what"], r["needs"] or "–") for r in rows]
    assert found == wanted


def test_without_a_file_nothing_is_said_about_one(rows, tmp_path):
    assert len(rows) > 10 and not any("enabled" in r for r in rows)
    assert all(("chart" in r) == (r["kind"] == "chart") for r in rows)
    text = slipway("addons", cwd=tmp_path)
    assert "ENABLED" not in text and all(r["name"] in text and (r["needs"] or "") in text for r in rows)


def test_a_file_has_some_of_them(rows, tmp_path):
    (tmp_path / "cluster.yaml").write_text(FILE + "  services: {addons: [local-path, {name: headlamp, values: {a: 1}}]}\n")
    found = json.loads(slipway("addons", "-o", "json", cwd=tmp_path))
    assert {r["name"] for r in found if r["enabled"]} == {"local-path", "headlamp"} and len(found) == len(rows)
    assert re.search(r"(?m)^local-path .* yes +volumes", slipway("addons", cwd=tmp_path))
    (tmp_path / "cluster.yaml").write_text("nonsense")
    slipway("addons", cwd=tmp_path, status=3)


def test_nodes_get_the_images_of_what_the_file_has(tmp_path):
    images = {"metrics-server": "registry.k8s.io/metrics-server/metrics-server:v", "local-path": "docker.io/rancher/local-path-provisioner:v",
              "kube-state-metrics": "registry.k8s.io/kube-state-metrics/kube-state-metrics:v", "registry": "docker.io/library/registry:",
              "node-problem-detector": "registry.k8s.io/node-problem-detector/node-problem-detector:v", "kube-vip": "ghcr.io/kube-vip/kube-vip:v",
              "ingress": "docker.io/library/traefik:v", "prometheus": "docker.io/prom/node-exporter:v"}
    for names in ([], ["local-path"], list(images)):
        rows = [name if name != "kube-vip" else "{name: kube-vip, values: {addresses: [192.0.2.0/28]}}" for name in names]
        (tmp_path / "cluster.yaml").write_text(FILE + f"  services: {{addons: [{', '.join(rows)}]}}\n")
        slipway("render", "--node", "worker-1", "-d", "out", cwd=tmp_path)
        text = (tmp_path / "out" / "worker-1" / "nodespec.json").read_text()
        assert {name for name, image in images.items() if f'"{image}' in text} == set(names)


@pytest.mark.parametrize("fabric, place", (("flannel", "etc/kube-flannel"), ("canal", "etc/calico"), ("calico", "etc/calico")))
def test_multus_is_around_the_fabric(fabric, place, tmp_path):
    """Its plugin calls those that the fabric has without it, and has a certificate of the node."""
    found = {}
    for addons in ("[]", "[multus]"):
        (tmp_path / "cluster.yaml").write_text(FILE + f"  network: {{fabric: {fabric}}}\n  services: {{addons: {addons}}}\n")
        slipway("render", "--node", "worker-1", "-d", addons, cwd=tmp_path)
        out = tmp_path / addons / "worker-1"
        found[addons] = json.loads((out / "root" / place / "cni-conf.json").read_text()), "/opt/cni/bin/multus" in (text := (out / "nodespec.json").read_text()), "/etc/kubernetes/multus.conf" in text
    plain, wrapped = found["[]"], found["[multus]"]
    assert plain[1:] == (False, False) and wrapped[1:] == (True, True)
    (plugin,) = wrapped[0]["plugins"]
    assert plugin["type"] == "multus" and plugin["delegates"] == [plain[0]]


def test_a_dns_cache_is_the_server_of_every_pod(tmp_path):
    """Its address is on the node before a kubelet gives it to pods."""
    (tmp_path / "cluster.yaml").write_text(FILE + "  services: {addons: [{name: nodelocaldns, values: {address: 169.254.20.11}}]}\n")
    slipway("render", "--node", "worker-1", "-d", "out", cwd=tmp_path)
    root = tmp_path / "out" / "worker-1" / "root"
    assert re.search(r"clusterDNS:\n- \"?169\.254\.20\.11\"?\n[a-z]", (root / "var/lib/kubelet/config.yaml").read_text())
    assert "ExecStart=ip address replace 169.254.20.11/32 dev lo" in (root / "etc/systemd/system/slipway-dns-address.service").read_text()
    (tmp_path / "cluster.yaml").write_text(FILE)
    slipway("render", "--node", "worker-1", "-d", "plain", cwd=tmp_path)
    assert "169.254" not in (tmp_path / "plain/worker-1/root/var/lib/kubelet/config.yaml").read_text()
    assert not (tmp_path / "plain/worker-1/root/etc/systemd/system/slipway-dns-address.service").exists()
