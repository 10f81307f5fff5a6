"""Charts of addons whose repositories cannot be reached here: upstream's own chart, out of its Go module, as helm renders it, judged by a real API server. What else a chart needs (images) is not proven."""
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
}


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


@pytest.mark.parametrize("name", CHARTS)
def test_api_takes_upstreams_chart(name, api, rows, tmp_path):
    row = rows[name]
    chart = chart_of(name, row["version"], tmp_path)
    sets = [word for value in CHARTS[name][2] for word in ("--set", value)]
    r = subprocess.run([programs("helm") / "helm", "template", name, chart, "--namespace", row["namespace"], "--kube-version", NEWEST, "--include-crds", *sets], capture_output=True, text=True, env=dict(os.environ, HOME=str(tmp_path)))
    assert r.returncode == 0, r.stderr
    objects = [o for o in yaml.safe_load_all(r.stdout) if o]
    kinds = [o for o in objects if o["kind"] == "CustomResourceDefinition"]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": row["namespace"]}}
    made = api.kubectl("apply", "--server-side", "-f", "-", text="\n---\n".join(map(json.dumps, [space, *kinds])))
    assert made.returncode == 0, made.stderr
    for o in kinds:
        assert api.kubectl("wait", "--for=condition=Established", f"crd/{o['metadata']['name']}", "--timeout=600s").returncode == 0
    rest = [o for o in objects if o["kind"] != "CustomResourceDefinition"]
    for ns in {o["metadata"].get("namespace", row["namespace"]) for o in rest}:
        of = [o for o in rest if o["metadata"].get("namespace", row["namespace"]) == ns]
        judged = api.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-n", ns, "-f", "-", text="\n---\n".join(map(json.dumps, of)))
        assert judged.returncode == 0 and len(judged.stdout.splitlines()) == len(of), judged.stderr
