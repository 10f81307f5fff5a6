"""services.*: namespaces, manifests and charts on one small cluster, from the first `up` to their removal. helm is the catalogue's; a wrapper writes down each call."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import charts
import pytest
from harness import CACHE, NEWEST, SLIPWAY, Machines, programs, until

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
    def write(self, *rows, namespaces="[shop]", manifests="[objects.yaml]", repositories=()):
        """rows, repositories: YAML flow maps."""
        self.text = self.text.split("  services:")[0] + f"""\
  services:
    namespaces: {namespaces}
    manifests: {manifests}
    repositories: [{{name: test, url: "{self.repository.url}", username: me, passwordFile: password}}, {{name: here, url: ./}}{"".join(", " + r for r in repositories)}]
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
    assert "change   ConfigMap shop/first" in plan and 'data.a: "1" → "2"' in plan
    assert "change   CustomResourceDefinition things.test.slipway.dev" in plan and 'metadata.labels.version: "1" → "2"' in plan
    cluster.slipway("up")
    upgrades = [call for call in cluster.calls() if call.startswith("upgrade web ")]
    assert ["--disable-openapi-validation" in call for call in upgrades] == [False, True]  # before the first up there is no API that judges
    assert cluster.get("configmap", "web-map", ".data.color") == "blue" and cluster.get("configmap", "first", ".data.a") == "2"
    assert cluster.gone("configmap", "second") and cluster.releases()["web"]["revision"] == "2"
    assert cluster.kubectl("get", "crd", "things.test.slipway.dev", "-o", "jsonpath={.metadata.labels.version}") == "2"
    assert "nothing to do" in cluster.slipway("plan").stdout


def test_what_the_api_would_refuse_is_refused_before(cluster):
    for bad in ({"map": charts.MAP.replace("\ndata:", "\ndata: [1]\nmore:")}, {"deployment": charts.DEPLOYMENT.replace("replicas:", "replica:")}):
        charts.write(cluster.dir / "bad", charts.files("bad", "1.0.0", **bad))
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
    cluster.repository.broken, cluster.repository.lies = None, {"other"}
    r = cluster.slipway("up", ok=6)
    assert "chart other: the repository test delivers another archive of test/other than its index says" in r.stderr and "nothing was changed" in r.stderr
    cluster.repository.lies = set()
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


def test_charts_from_a_registry_a_private_ca_and_a_bundle(cluster, tmp_path):
    """Over TLS that only caFile vouches for, with a login; and again from a bundle, while nobody serves them."""
    pki, helm = charts.Pki(tmp_path), programs("helm") / "helm"
    registry, repository = charts.Registry(tmp_path, "me", "secret", pki), charts.Repository("me", "secret", pki)
    registry.push(helm, "image", "1.0.0", map=charts.MAP)
    repository.add("tls", "1.0.0", map=charts.MAP)
    shutil.copy(pki.ca, cluster.dir / "ca.crt")
    (cluster.dir / "wrong").write_text("wrong\n")
    (cluster.dir / "wrong").chmod(0o600)
    rows = ['{name: image, chart: registry/image, version: "1.0.0", namespace: shop}', f'{{name: direct, chart: "{registry.url}/image", version: "1.0.0", namespace: shop}}',
            '{name: tls, chart: private/tls, version: "1.0.0", namespace: shop, valuesFiles: [one.yaml, two.yaml]}']
    (cluster.dir / "one.yaml").write_text("{color: one, password: one}")
    (cluster.dir / "two.yaml").write_text("{color: two}")

    def write(*rows, login="username: me, passwordFile: password", ca=", caFile: ca.crt"):
        found = [f'{{name: registry, url: "{registry.url}", {login}{ca}}}', f'{{name: private, url: "{repository.url}", {login}{ca}}}']
        cluster.write(web("blue", "correcthorse"), TINY, *rows, repositories=found)

    for row in (rows[0], rows[2]):
        write(row, ca="")
        r = cluster.slipway("plan", ok=6)
        assert "certificate" in r.stderr and "nothing was changed" in r.stderr
        write(row, login="username: me, passwordFile: wrong")
        r = cluster.slipway("plan", ok=6)
        assert "401" in r.stderr or "unauthorized" in r.stderr.lower()
    repository.broken = 500
    cluster.write(web("blue", "correcthorse"), TINY, rows[0], repositories=[f'{{name: registry, url: "oci://{repository.url.removeprefix("https://")}", username: me, passwordFile: password, caFile: ca.crt}}'])
    r = cluster.slipway("up", ok=6)
    assert "chart image: registry/image cannot be pulled: " in r.stderr and "500" in r.stderr and "nothing was changed" in r.stderr
    repository.broken = None
    write(*rows)
    calls = len(cluster.calls())
    cluster.slipway("up")
    found = cluster.releases()
    assert {"image", "direct", "tls"} <= set(found) and found["direct"]["chart"] == "image-1.0.0" and cluster.get("configmap", "tls-map", ".data.color") == "two"
    assert not any("secret" in call for call in cluster.calls()[calls:])
    registry.close()
    repository.close()

    bundle = cluster.dir / "bundle" / "blobs" / "sha256"
    bundle.mkdir(parents=True)
    items = json.loads((cluster.dir / "bundle.lock").read_text())["items"]
    for key in ("chart registry/image@1.0.0", "chart private/tls@1.0.0"):
        shutil.move(next(CACHE.rglob(items[key]["sha256"])), bundle)
    cluster.helm("uninstall", "image", "tls", "-n", "shop")
    assert "cannot be" in cluster.slipway("plan", ok=6).stderr  # nobody has them
    cluster.text = cluster.text.replace("  services:", "  artifacts: {bundle: ./bundle}\n  services:", 1)
    (cluster.dir / "cluster.yaml").write_text(cluster.text)
    cluster.slipway("up")
    assert {"image", "direct", "tls"} <= set(cluster.releases())
    cluster.text = cluster.text.replace("  artifacts: {bundle: ./bundle}\n", "", 1)


def test_archives_of_a_directory(cluster):
    """Named by their path, and as a repository that is a directory."""
    (cluster.dir / "packed-1.0.0.tgz").write_bytes(charts.archive("packed", charts.files("packed", "1.0.0", map=charts.MAP)))
    rows = ["{name: one, chart: ./packed-1.0.0.tgz, namespace: shop, values: {color: one}}", '{name: two, chart: here/packed, version: "1.0.0", namespace: shop, values: {color: two}}']
    cluster.write(web("blue", "correcthorse"), TINY, *rows)
    cluster.slipway("up")
    assert {cluster.releases()[n]["chart"] for n in ("one", "two")} == {"packed-1.0.0"}
    assert [cluster.get("configmap", f"{n}-map", ".data.color") for n in ("one", "two")] == ["one", "two"]
    cluster.write(web("blue", "correcthorse"), TINY, rows[0], '{name: two, chart: here/packed, version: "1.0.1", namespace: shop}')
    assert "chart two: the repository here has neither" in cluster.slipway("up", ok=3).stderr


def test_values_files_that_are_no_yaml(cluster):
    """Nothing is asked, and nothing changes."""
    (cluster.dir / "bad.yaml").write_text("color: pink\nreplicas: [1\npassword: hunter2\n")
    calls = len(cluster.calls())
    cluster.write(web("blue", "correcthorse"), TINY, "{name: tls, chart: ./web, namespace: shop, valuesFiles: [one.yaml, bad.yaml]}")
    r = cluster.slipway("up", ok=3)
    assert "services.charts[2].valuesFiles[1]: bad.yaml cannot be used: not valid YAML in line 2, column 11: " in r.stderr and "hunter2" not in r.stderr and len(cluster.calls()) == calls


def test_objects_of_a_manifest_are_compared_with_those_that_are_there(cluster):
    """Also with one that somebody else made; a Secret's values are not shown; what the API would refuse is refused."""
    cluster.kubectl("-n", "shop", "create", "configmap", "theirs", "--from-literal=a=1")
    first = OBJECTS.split("---")[0].replace('"1"', '"2"')
    secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: word, namespace: shop}\nstringData: {word: WORD}\n"
    more = first.replace("first", "theirs").replace('"2"', '"3"')
    cluster.write(web("blue", "correcthorse"), TINY)
    (cluster.dir / "objects.yaml").write_text(f"{first}---\n{more}{secret.replace('WORD', 'swordfish')}")
    plan = cluster.slipway("plan").stdout
    assert "change   ConfigMap shop/theirs" in plan and 'data.a: "1" → "3"' in plan and "add      Secret shop/word" in plan and "shop/first" not in plan
    cluster.slipway("up")
    (cluster.dir / "objects.yaml").write_text(f"{first}---\n{more}{secret.replace('WORD', 'marlin')}")
    plan = cluster.slipway("plan").stdout
    assert "change   Secret shop/word" in plan and "data.word: changed" in plan and "marlin" not in plan and "swordfish" not in plan
    (cluster.dir / "objects.yaml").write_text(first.replace("\ndata:", "\ndata: [1]\nmore:") + secret.replace("WORD", "marlin"))
    r = cluster.slipway("up", ok=4)
    assert "objects.yaml: the API would refuse it: ConfigMap shop/first" in r.stderr and "nothing was changed" in r.stderr
    assert cluster.get("secret", "word", ".data.word") == "c3dvcmRmaXNo"
    (cluster.dir / "objects.yaml").write_text(first)
    cluster.slipway("up")
    assert cluster.gone("secret", "word") and cluster.gone("configmap", "theirs")


def test_definitions_of_kinds_conflict(cluster):
    """A chart that comes updates one that is there already, unless another release has it or the API refuses the change."""
    row = "{name: kinds, chart: ./kinds, namespace: shop}"
    cluster.kubectl("apply", "-f", "-", text=charts.crd(1, "parts") + "---\n" + charts.crd(1, "wholes", "Cluster"))

    def refused(crds, words):
        charts.write(cluster.dir / "kinds", charts.files("kinds", "1.0.0", map=charts.MAP, crds=crds))
        cluster.write(web("blue", "correcthorse"), TINY, row)
        r = cluster.slipway("up", ok=4)
        assert words in r.stderr and "nothing was changed" in r.stderr and "kinds" not in cluster.releases(), r.stderr

    refused(charts.crd(2, "wholes"), "chart kinds: the API would refuse it: CustomResourceDefinition wholes.test.slipway.dev")
    cluster.kubectl("annotate", "crd", "wholes.test.slipway.dev", "meta.helm.sh/release-name=web", "meta.helm.sh/release-namespace=shop")
    refused(charts.crd(2, "wholes", "Cluster"), "chart kinds: CustomResourceDefinition wholes.test.slipway.dev belongs to another release, shop/web")
    thing = "apiVersion: test.slipway.dev/v1\nkind: Part\nmetadata: {name: a}\n"
    charts.write(cluster.dir / "kinds", charts.files("kinds", "1.0.0", thing=thing, crds=charts.crd(2, "parts")))
    plan = cluster.slipway("plan").stdout
    assert "change   CustomResourceDefinition parts.test.slipway.dev" in plan and "add      Part shop/a" in plan
    cluster.slipway("up")
    assert cluster.kubectl("get", "crd", "parts.test.slipway.dev", "-o", "jsonpath={.metadata.labels.version}") == "2" and cluster.kubectl("-n", "shop", "get", "part", "a")


def test_a_namespace_that_is_being_deleted(cluster):
    held = '{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: ending, finalizers: [test.slipway.dev/hold]}}'
    cluster.kubectl("create", "namespace", "ending")
    cluster.kubectl("apply", "-f", "-", text=held)
    cluster.kubectl("delete", "namespace", "ending", "--wait=false")
    cluster.write(web("blue", "correcthorse"), TINY, "{name: late, chart: ./packed-1.0.0.tgz, namespace: ending}")
    r = cluster.slipway("up", ok=4)
    assert "chart late: the namespace ending is being deleted (Terminating)" in r.stderr and "late" not in cluster.releases()
    cluster.write(web("blue", "correcthorse"), TINY, namespaces="[shop, ending]")
    assert "services.namespaces: the namespace ending is being deleted (Terminating)" in cluster.slipway("up", ok=4).stderr
    (cluster.dir / "late.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: ending}\n")
    cluster.write(web("blue", "correcthorse"), TINY, manifests="[objects.yaml, late.yaml]")
    r = cluster.slipway("up", ok=4)
    assert "manifest late.yaml: the namespace ending is being deleted (Terminating)" in r.stderr and "nothing was changed" in r.stderr
    cluster.write(web("blue", "correcthorse"), TINY, "{name: late, chart: ./packed-1.0.0.tgz, namespace: ending}")
    cluster.kubectl("-n", "ending", "patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    until("the namespace is gone", lambda: "NotFound" in cluster.kubectl("get", "namespace", "ending", check=False).stderr)
    cluster.slipway("up")
    assert cluster.releases()["late"]["status"] == "deployed"


def test_a_failing_hook_is_rolled_back(cluster):
    chart = charts.files("web", "1.2.0", deployment=charts.DEPLOYMENT, map=charts.MAP, secret=charts.SECRET, crds=charts.crd(2))
    charts.write(cluster.dir / "web", chart | {"templates/hook.yaml": charts.hook("pre-upgrade", "[nonsense]")})
    cluster.write(web("green", "correcthorse"), TINY)
    r = cluster.slipway("up", ok=6)
    assert "chart web" in r.stderr and "hooks failed" in r.stderr
    assert cluster.get("configmap", "web-map", ".data.color") == "blue" and cluster.releases()["web"]["status"] == "deployed"
    assert not next(r for r in cluster.status()[1]["releases"] if r["name"] == "web")["drift"], "nobody else changed it"
    charts.write(cluster.dir / "web", chart)
    assert " failed, and was rolled back" in cluster.slipway("plan").stdout
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


# ---- the whole cluster goes ----

BALANCER = """\
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: shop, finalizers: [test.slipway.dev/balancer]}
spec: {type: LoadBalancer, ports: [{port: 80}], selector: {app: none}}
"""
STORED = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: outside, annotations: {pv.kubernetes.io/provisioned-by: test.slipway.dev}, finalizers: [test.slipway.dev/volume]}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Delete
  storageClassName: none
  claimRef: {namespace: shop, name: data}
  csi: {driver: test.slipway.dev, volumeHandle: one}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {storageClassName: none, volumeName: outside, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: here}
spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, storageClassName: none, claimRef: {namespace: shop, name: none}, hostPath: {path: /srv}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
      containers: [{name: app, image: "slipway.dev/probe:0.1.0", imagePullPolicy: IfNotPresent, args: [serve, "8080", app], volumeMounts: [{name: data, mountPath: /data}]}]
"""


class Outside(threading.Thread):
    """The controllers that a cloud would have: they let go, some seconds late, of what is being deleted. What is in `stuck` they keep."""

    LATE = 3  # seconds

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.stuck, self.seen, self.let_go, self.hooks, self.stop = cluster, set(), {}, [], set(), threading.Event()

    def run(self):
        while not self.stop.wait(0.5):
            r = self.cluster.kubectl("get", "services,persistentvolumes,persistentvolumeclaims,jobs", "-A", "-o", "json", "--request-timeout=5s", check=False)
            objects = json.loads(r.stdout)["items"] if r.returncode == 0 else []
            self.hooks |= {o["metadata"]["name"] for o in objects if o["kind"] == "Job" and o.get("status", {}).get("succeeded")}
            for o in objects:
                self.look(o)

    def look(self, o):
        name, kind = o["metadata"]["name"], o["kind"]
        released = kind == "PersistentVolume" and o["status"].get("phase") == "Released"  # its claim is gone: the driver deletes the volume
        ours = any("test.slipway.dev" in f for f in o["metadata"].get("finalizers", []))
        if not ours or name in self.stuck or not (released or "deletionTimestamp" in o["metadata"]):
            return
        began = self.seen.setdefault(name, time.monotonic())
        if time.monotonic() - began < self.LATE:
            return
        where = ["-n", o["metadata"]["namespace"]] if "namespace" in o["metadata"] else []
        if released:
            self.cluster.kubectl("delete", kind, name, "--wait=false", check=False)
        self.cluster.kubectl(*where, "patch", kind, name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False)
        self.let_go.append(name)


@pytest.fixture
def outside(cluster):
    controllers = Outside(cluster)
    controllers.start()
    yield controllers
    controllers.stop.set()
    controllers.join()


def test_down_ends_what_is_outside_first(cluster, outside):
    front = charts.files("front", "1.0.0", balancer=BALANCER.replace("NAME", "front"))
    charts.write(cluster.dir / "front", front | {"templates/hook.yaml": charts.hook("pre-delete", '[ask, "-t", "600", "tcp://kubernetes.default:443"]')})
    charts.write(cluster.dir / "driver", charts.files("driver", "1.0.0", map=charts.MAP))
    (cluster.dir / "stored.yaml").write_text(STORED)
    cluster.write("{name: driver, chart: ./driver, namespace: shop}", "{name: front, chart: ./front, namespace: shop, after: [driver], wait: false, atomic: false}", manifests="[]")
    cluster.slipway("up")
    cluster.kubectl("apply", "-f", cluster.dir / "stored.yaml")
    cluster.kubectl("apply", "-f", "-", text=BALANCER.replace("NAME", "stuck"))
    until("the volume is used", lambda: cluster.get("pod", "db-0", ".spec.nodeName"))

    outside.stuck = {"stuck"}
    calls = len(cluster.calls())
    r = cluster.slipway("down", "--cleanup-timeout", "1s", ok=6)
    shown = r.stderr
    assert "2 releases: shop/driver, shop/front" in shown and "2 Services of type LoadBalancer: shop/front, shop/stuck" in shown
    assert "1 PersistentVolumeClaim with its volume: shop/data, and the pods that use them" in shown and "theirs" not in shown
    assert all(cluster.ready().values()) and len(cluster.ready()) == 2
    assert not any(call.startswith("uninstall driver") for call in cluster.calls()[calls:])

    outside.stuck = set()
    r = subprocess.run([SLIPWAY, "down"], cwd=cluster.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ, SLIPWAY_TEST_KILL="begin machine control-1"))
    assert r.returncode == -signal.SIGKILL, r.stderr
    assert {"front", "stuck", "outside"} <= set(outside.let_go) and "front-hook" in outside.hooks
    assert sorted(cluster.releases()) == ["theirs"] and cluster.gone("service", "front") and cluster.gone("service", "stuck")
    assert "NotFound" in cluster.kubectl("get", "pv", "outside", check=False).stderr and cluster.gone("statefulset", "db")
    assert cluster.kubectl("get", "pv", "here", "-o", "name")  # of the node itself: not waited for


def test_a_load_balancer_that_never_goes(cluster):
    cluster.kubectl("apply", "-f", "-", text=BALANCER.replace("NAME", "stuck"))
    r = cluster.slipway("down", "--cleanup-timeout", "2s", ok=6)
    assert "load balancers: not deleted after 2 s: Service shop/stuck (finalizer test.slipway.dev/balancer)" in r.stderr
    assert "no node was touched" in r.stderr and "--no-cleanup" in r.stderr and all(cluster.ready().values())
    cluster.slipway("down", "--no-cleanup")
    assert not (cluster.state / "machines" / "control-1").exists()
