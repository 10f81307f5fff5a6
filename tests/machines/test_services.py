"""services.*: namespaces, manifests and charts on one small cluster, from the first `up` to their removal. helm is the catalogue's; a wrapper writes down each call."""
import json
import os
import signal
import subprocess

import charts
import pytest
from harness import NEWEST, Machines, programs, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.160.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
OBJECTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: shop}
data: {a: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second, namespace: shop}
"""


class Services(Machines):
    def write(self, *rows, namespaces="[shop]", manifests="[objects.yaml]"):
        """rows: charts as YAML flow maps."""
        self.text = self.text.split("  services:")[0] + f"""\
  services:
    namespaces: {namespaces}
    manifests: {manifests}
    repositories: [{{name: test, url: "{self.repository.url}", username: me, passwordFile: password}}, {{name: here, url: ./}}]
    charts: [{", ".join(rows)}]
"""
        (self.dir / "cluster.yaml").write_text(self.text)

    def helm(self, *args):
        path = self.dir / "kubeconfig"  # once: the verb takes the lock of the state, which a run beside it needs
        env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(path if path.exists() else self.kubeconfig()), "HOME": str(self.dir)}
        return subprocess.run([programs("helm") / "helm", *args], env=env, capture_output=True, text=True, check=True).stdout

    def releases(self):
        return {r["name"]: r for r in json.loads(self.helm("list", "-A", "-a", "-o", "json"))}

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def get(self, kind, name, path, namespace="shop"):
        return self.kubectl("-n", namespace, "get", kind, name, "-o", f"jsonpath={{{path}}}")

    def gone(self, kind, name, namespace="shop"):
        return "NotFound" in self.kubectl("-n", namespace, "get", kind, name, check=False).stderr


WEB = "{name: web, chart: ./web, namespace: shop, timeout: 2m, values: {color: COLOR, password: PASSWORD}}"
TINY = '{name: tiny, chart: test/tiny, version: "1.0.0", namespace: tiny, after: [web]}'


def web(color="red", password="hunter2"):
    return WEB.replace("COLOR", color).replace("PASSWORD", password)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    directory = tmp_path_factory.mktemp("helm")
    c = Services("services", SPEC)
    c.log, c.repository = directory / "calls", charts.Repository("me", "secret")
    c.repository.add("tiny", "1.0.0", map=charts.MAP)
    (directory / "helm").write_text(f'#!/bin/sh\necho "$*" >> {c.log}\nexec {programs("helm") / "helm"} "$@"\n')
    (directory / "helm").chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{directory}:{before}"
    with c:
        (c.dir / "password").write_text("secret\n")
        (c.dir / "password").chmod(0o600)
        (c.dir / "objects.yaml").write_text(OBJECTS)
        charts.write(c.dir / "web", charts.files("web", "1.0.0", deployment=charts.DEPLOYMENT, map=charts.MAP, secret=charts.SECRET, crds=charts.crd(1)))
        c.write(web(), TINY)
        c.slipway("up")
        yield c
    os.environ["PATH"] = before
    c.repository.close()


def test_all_of_it_is_there_after_the_first_up(cluster):
    releases = cluster.releases()
    assert {n: (r["namespace"], r["chart"], r["status"], r["revision"]) for n, r in releases.items()} == {
        "web": ("shop", "web-1.0.0", "deployed", "1"), "tiny": ("tiny", "tiny-1.0.0", "deployed", "1")}
    assert cluster.get("configmap", "first", ".data.a") == "1" and not cluster.gone("configmap", "second")
    assert "chart test/tiny@1.0.0" in json.loads((cluster.dir / "bundle.lock").read_text())["items"]
    assert not any("secret" in call or "hunter2" in call for call in cluster.calls())
    status, answer = cluster.status()
    assert status == 0 and [(r["name"], r["chart"], r["state"], r["ready"], r["drift"]) for r in answer["releases"]] == [
        ("web", "web-1.0.0", "deployed", True, False), ("tiny", "tiny-1.0.0", "deployed", True, False)]
    assert "shop/web: web-1.0.0, deployed, revision 1, ready" in cluster.slipway("status").stdout


def test_nothing_changed_starts_no_helm_and_asks_no_repository(cluster):
    calls, asked = cluster.calls(), list(cluster.repository.asked)
    assert "nothing to do" in cluster.slipway("plan", "--exit-code").stdout
    assert cluster.calls() == calls and cluster.repository.asked == asked


def test_a_change_is_shown_and_made(cluster):
    (cluster.dir / "objects.yaml").write_text(OBJECTS.split("---")[0].replace('"1"', '"2"'))
    charts.write(cluster.dir / "web", charts.files("web", "1.1.0", deployment=charts.DEPLOYMENT, map=charts.MAP, secret=charts.SECRET, crds=charts.crd(2)))
    cluster.write(web("blue", "correcthorse"), TINY)
    plan = cluster.slipway("plan", "--exit-code", ok=9).stdout
    assert "chart shop/web  change web-1.1.0" in plan and 'data.color: "red" → "blue"' in plan
    assert "stringData.password: changed" in plan and "hunter2" not in plan and "correcthorse" not in plan
    assert "remove   ConfigMap shop/second" in plan and "tiny" not in plan
    cluster.slipway("up")
    assert cluster.get("configmap", "web-map", ".data.color") == "blue" and cluster.get("configmap", "first", ".data.a") == "2"
    assert cluster.gone("configmap", "second") and cluster.releases()["web"]["revision"] == "2"
    assert cluster.kubectl("get", "crd", "things.test.slipway.dev", "-o", "jsonpath={.metadata.labels.version}") == "2"
    assert "nothing to do" in cluster.slipway("plan").stdout


def test_what_the_api_would_refuse_is_refused_before(cluster):
    bad = charts.MAP.replace("data:", "data: [1]\nmore:")
    charts.write(cluster.dir / "bad", charts.files("bad", "1.0.0", map=bad))
    cluster.write(web("blue", "correcthorse"), TINY, "{name: bad, chart: ./bad, namespace: shop}")
    r = cluster.slipway("up", ok=4)
    assert "chart bad" in r.stderr and "nothing was changed" in r.stderr and "bad" not in cluster.releases()
    cluster.write(web("blue", "correcthorse"), TINY)


def test_a_repository_that_lies_or_fails_changes_nothing(cluster):
    cluster.repository.add("other", "2.0.0", map=charts.MAP)
    cluster.write(web("blue", "correcthorse"), TINY, '{name: other, chart: test/other, version: "2.0.0"}')
    cluster.repository.broken = 500
    r = cluster.slipway("up", ok=6)
    assert "repository test" in r.stderr and "500" in r.stderr and "nothing was changed" in r.stderr
    cluster.repository.broken = None
    cluster.write(web("blue", "correcthorse"), TINY, '{name: other, chart: test/nothing, version: "2.0.0"}')
    assert "chart other: test/nothing cannot be pulled" in cluster.slipway("up", ok=6).stderr
    lock = json.loads((cluster.dir / "bundle.lock").read_text())
    lock["items"]["chart test/other@2.0.0"] = {"sha256": "0" * 64, "size": 1, "source": "repository"}
    (cluster.dir / "bundle.lock").write_text(json.dumps(lock))
    cluster.write(web("blue", "correcthorse"), TINY, '{name: other, chart: test/other, version: "2.0.0"}')
    r = cluster.slipway("up", ok=6)
    assert "another archive of test/other than bundle.lock" in r.stderr and "other" not in cluster.releases()
    del lock["items"]["chart test/other@2.0.0"]
    (cluster.dir / "bundle.lock").write_text(json.dumps(lock))


def test_a_failing_hook_is_rolled_back(cluster):
    chart = charts.files("web", "1.2.0", deployment=charts.DEPLOYMENT, map=charts.MAP, secret=charts.SECRET, crds=charts.crd(2))
    charts.write(cluster.dir / "web", chart | {"templates/hook.yaml": charts.hook("pre-upgrade", "[nonsense]")})
    cluster.write(web("green", "correcthorse"), TINY)
    r = cluster.slipway("up", ok=6)
    assert "chart web" in r.stderr and "hooks failed" in r.stderr
    assert cluster.get("configmap", "web-map", ".data.color") == "blue" and cluster.releases()["web"]["status"] == "deployed"
    charts.write(cluster.dir / "web", chart)
    cluster.slipway("up")
    assert cluster.get("configmap", "web-map", ".data.color") == "green"


def test_a_missing_image_is_named(cluster):
    cluster.write(web("green", "correcthorse"), TINY, "{name: lost, chart: ./web, namespace: lost, timeout: 12s, values: {image: registry.invalid/nothing:1, pull: Never}}")
    r = cluster.slipway("up", ok=6)
    assert "registry.invalid/nothing:1" in r.stderr and "chart lost" in r.stderr
    assert "lost" not in cluster.releases()  # an installation that failed is removed


def test_a_killed_install_is_recovered(cluster):
    slow = charts.files("slow", "1.0.0", map=charts.MAP)
    charts.write(cluster.dir / "slow", slow | {"templates/hook.yaml": charts.hook("pre-install", '[serve, "8081", app]')})
    cluster.write(web("green", "correcthorse"), TINY, "{name: slow, chart: here/slow, namespace: shop}")
    run = cluster.popen("up")
    until("the release is pending", lambda: cluster.releases().get("slow", {}).get("status") == "pending-install")
    helms = [int(p) for p in os.listdir("/proc") if p.isdigit() and b"upgrade\0slow\0" in cmdline(p)]
    os.kill(run.pid, signal.SIGKILL)
    for pid in helms:
        os.kill(pid, signal.SIGKILL)
    run.communicate()
    assert helms
    charts.write(cluster.dir / "slow", slow)
    assert "chart shop/slow  recover" in cluster.slipway("plan").stdout
    cluster.slipway("up")
    assert cluster.releases()["slow"]["status"] == "deployed" and not cluster.gone("configmap", "slow-map")


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def test_what_others_changed_is_drift(cluster):
    cluster.helm("upgrade", "web", str(cluster.dir / "web"), "-n", "shop", "--reuse-values", "--set", "color=pink")
    assert next(r for r in cluster.status()[1]["releases"] if r["name"] == "web")["drift"]
    assert "was not made by slipway" in cluster.slipway("plan").stdout
    cluster.slipway("up")
    assert cluster.get("configmap", "web-map", ".data.color") == "green"


def test_what_is_taken_out_goes_and_the_namespace_stays(cluster):
    cluster.helm("install", "theirs", str(cluster.dir / "slow"), "-n", "shop")
    cluster.write(web("green", "correcthorse"), namespaces="[]", manifests="[]")
    plan = cluster.slipway("plan").stdout
    assert "chart tiny/tiny  remove" in plan and "chart shop/slow  remove" in plan and "theirs" not in plan
    assert "manifest objects.yaml  remove" in plan and "namespace shop  stays" in plan
    cluster.slipway("up")
    assert sorted(cluster.releases()) == ["theirs", "web"] and cluster.gone("configmap", "first") and cluster.gone("configmap", "tiny-map", "tiny")
    assert cluster.kubectl("get", "namespace", "shop")
    cluster.text = cluster.text.split("  services:")[0]
    (cluster.dir / "cluster.yaml").write_text(cluster.text)  # no services are left in the file
    cluster.slipway("up")
    assert sorted(cluster.releases()) == ["theirs"]
