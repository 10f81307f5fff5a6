"""Charts of addons and fabrics whose repositories cannot be reached here: upstream's own chart, out of its Go module, as helm renders it, judged by a real API server. What else a chart needs (images) is not proven."""
import json
import os
import re
import shutil
import subprocess

import cases
import pytest
import yaml
from test_schema import Api
from upstream import NEWEST, programs

pytestmark = pytest.mark.soak
# addon: (module, the chart's directory in it, slipway's own values)
CHARTS = {
    "cert-manager": ("github.com/cert-manager/cert-manager", "deploy/charts/cert-manager", ["crds.enabled=true"]),
    "metallb": ("go.universe.tf/metallb", "charts/metallb", []),
    "envoy-gateway": ("github.com/envoyproxy/gateway", "charts/gateway-helm", []),
    "headlamp": ("github.com/kubernetes-sigs/headlamp", "charts/headlamp", []),
    "cilium": ("github.com/cilium/cilium", "install/kubernetes/cilium", []),
    "kube-ovn": ("github.com/kubeovn/kube-ovn", "charts/kube-ovn", []),
}
# fabric: (its version, the name of its repository, more options of network, what the objects must say)
FABRICS = {
    "cilium": ("1.20.2", "cilium", "fabric: {name: cilium, backend: host-gw, mtu: 1400}, proxyMode: none",
               {"kube-proxy-replacement": "true", "routing-mode": "native", "ipv4-native-routing-cidr": "10.244.0.0/16", "ipam": "kubernetes", "mtu": "1400"}),
    "kube-ovn": ("v1.14.10", "kubeovn", "fabric: {name: kube-ovn, interface: eth7}, services: 10.97.0.0/16",
                 ["--default-cidr=10.244.0.0/16", "--default-gateway=10.244.0.1", "--service-cluster-ip-range=10.97.0.0/16", "--iface=eth7"]),
}
# Keeps the values that slipway gives to helm.
HELM = """#!/bin/sh
for word; do
    [ "$before" != -f ] && [ "$before" != --values ] || cp "$word" {values}
    before=$word
done
exec {helm} "$@"
"""


@pytest.fixture(scope="module")
def api(programs, tmp_path_factory):
    a = Api(programs, tmp_path_factory.mktemp("api"))
    try:
        a.up()
        yield a
    finally:
        a.down()


@pytest.fixture(scope="module")
def rows():
    return {r["name"]: r for r in json.loads(subprocess.run([cases.SLIPWAY, "addons", "-o", "json"], cwd="/", capture_output=True, check=True).stdout)}


def chart_of(name, version, where):
    """A copy of the chart, with the version that its repository has: the module may have none yet."""
    module, directory, _ = CHARTS[name]
    r = subprocess.run(["go", "mod", "download", "-json", f"{module}@v{version.removeprefix('v')}"], cwd=where, capture_output=True, text=True, env=dict(os.environ, GOFLAGS="-mod=mod"))
    assert r.returncode == 0, r.stdout + r.stderr
    shutil.copytree(f"{json.loads(r.stdout)['Dir']}/{directory}", where / "chart")
    for path in (where / "chart", *(where / "chart").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    about = where / "chart" / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^version:.*$", f"version: {version}", about.read_text()))
    values = where / "chart" / "values.tmpl.yaml"
    if values.exists():  # upstream's release fills in the image
        (where / "chart" / "values.yaml").write_text(re.sub(r"\$\{(\w+)\}", lambda m: "IfNotPresent" if "Policy" in m[1] else "example.net/team/image:1", values.read_text()))
    return where / "chart"


def judged_by(api, name, chart, where, space, *words):
    """The chart's objects, all of which the API took."""
    r = subprocess.run([programs("helm") / "helm", "template", name, chart, "--namespace", space, "--kube-version", NEWEST, "--include-crds", *words], capture_output=True, text=True, env=dict(os.environ, HOME=str(where)))
    assert r.returncode == 0, r.stderr
    objects = [o for o in yaml.safe_load_all(r.stdout) if o]
    kinds = [o for o in objects if o["kind"] == "CustomResourceDefinition"]
    spaces = [o for o in objects if o["kind"] == "Namespace"]  # what is in them needs them
    made = api.kubectl("apply", "--server-side", "-f", "-", text="\n---\n".join(map(json.dumps, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, *spaces, *kinds])))
    assert made.returncode == 0, made.stderr
    for o in kinds:
        assert api.kubectl("wait", "--for=condition=Established", f"crd/{o['metadata']['name']}", "--timeout=600s").returncode == 0
    rest = [o for o in objects if o["kind"] != "CustomResourceDefinition"]
    for ns in {o["metadata"].get("namespace", space) for o in rest}:
        of = [o for o in rest if o["metadata"].get("namespace", space) == ns]
        judged = api.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-n", ns, "-f", "-", text="\n---\n".join(map(json.dumps, of)))
        assert judged.returncode == 0 and len(judged.stdout.splitlines()) == len(of), judged.stderr
    return objects


@pytest.mark.parametrize("name", [c for c in CHARTS if c not in FABRICS])
def test_api_takes_upstreams_chart(name, api, rows, tmp_path):
    chart = chart_of(name, rows[name]["version"], tmp_path)
    judged_by(api, name, chart, tmp_path, rows[name]["namespace"], *[word for value in CHARTS[name][2] for word in ("--set", value)])


@pytest.mark.parametrize("name", FABRICS)
def test_api_takes_the_chart_of_a_fabric(name, api, tmp_path):
    """With the values that slipway gives to helm: `plan` of a new cluster shows what the chart would make."""
    version, repository, network, wanted = FABRICS[name]
    chart = chart_of(name, version, tmp_path).rename(tmp_path / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "helm").write_text(HELM.format(values=tmp_path / "values.yaml", helm=programs("helm") / "helm"))
    (tmp_path / "bin" / "helm").chmod(0o755)
    (tmp_path / "cluster.yaml").write_text(f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: chart}}
spec:
  kubernetes: {NEWEST}
  network: {{{network}}}
  services: {{repositories: [{{name: {repository}, url: {tmp_path}}}]}}
  pools: [{{name: control, roles: [control-plane, etcd], count: 1}}, {{name: worker, count: 1}}]
""")
    r = subprocess.run([cases.SLIPWAY, "plan"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}"))
    assert r.returncode == 0 and f"chart kube-system/{name}  install {name}-{version}" in r.stdout, r.stdout + r.stderr
    objects = judged_by(api, name, chart, tmp_path, "kube-system", "-f", tmp_path / "values.yaml")
    if name == "cilium":
        (config,) = (o["data"] for o in objects if o["kind"] == "ConfigMap" and o["metadata"]["name"] == "cilium-config")
        assert {k: config.get(k) for k in wanted} == wanted
    else:
        words = {w for o in objects for c in o.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []) for w in c.get("args", [])}
        assert words >= set(wanted), sorted(words)
