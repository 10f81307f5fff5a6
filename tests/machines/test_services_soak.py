"""services.charts for long: killed at every boundary between the steps of install, upgrade and uninstall of three charts; and twenty charts beside helm itself."""
import json
import os
import random
import re
import signal
import subprocess
import time

import charts
import pytest
from harness import NEWEST, SLIPWAY, until
from test_services import Services, cmdline

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.160.1.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
PENDING = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    c = Services("services-soak", SPEC)
    c.log, c.repository = tmp_path_factory.mktemp("helm") / "calls", charts.Repository("me", "secret")
    with c:
        (c.dir / "password").write_text("secret\n")
        (c.dir / "password").chmod(0o600)
        charts.write(c.dir / "web", charts.files("web", "1.0.0", deployment=charts.DEPLOYMENT, map=charts.MAP))
        c.slipway("up")
        yield c
    c.repository.close()


def rows(n, color):
    return [f"{{name: web-{i}, chart: ./web, namespace: many, values: {{color: {color}}}}}" for i in range(n)]


def kills(cluster, *steps):
    """At the begin and the end of each step; then a run to its end. How many hit: a step that an earlier run has done is not there any more."""
    names, hits = [f"{moment} {name}" for name in steps for moment in ("begin", "end")], 0
    for at in names:
        r = subprocess.run([SLIPWAY, "up"], cwd=cluster.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(os.environ, SLIPWAY_TEST_KILL=at))
        assert r.returncode in (0, -signal.SIGKILL), r.stderr
        hits += r.returncode != 0
    cluster.slipway("up")
    return hits


def killed_while_helm_works(cluster, times):
    """Before each the inputs change, so that there is something to do; slipway alone is killed, and its helm ends as it will."""
    for n in range(times):
        cluster.write(*rows(3, f"color-{n}"), namespaces="[many]", manifests="[]")
        run = cluster.popen("up")
        time.sleep(random.uniform(1, 6))
        run.kill()
        run.communicate()
    cluster.slipway("up")


def helms(verb):
    """Processes of helm that do this to a release."""
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and re.search(rb"helm\0" + verb.encode() + rb"\0web-\d\0", cmdline(p))]


def killed_with_its_helm(cluster, verb, state):
    """Both at once, as on a computer that loses power, when three releases are in that state."""
    run = cluster.popen("up")
    until(f"three releases are {state}", lambda: [r["status"] for r in cluster.releases().values()].count(state) == 3)
    for pid in (run.pid, *helms(verb)):
        os.kill(pid, signal.SIGKILL)
    run.communicate()
    assert [r["status"] for r in cluster.releases().values()].count(state) == 3
    assert not helms(verb)


def settled(cluster, wanted, color):
    found = cluster.releases()
    assert len(found) == wanted and not [r for r in found.values() if r["status"] in PENDING], found
    assert "nothing to do" in cluster.slipway("plan").stdout
    for i in range(wanted):
        assert cluster.get("configmap", f"web-{i}-map", ".data.color", "many") == color


def test_killed_at_every_step(cluster):
    for wanted, color, step in ((3, "red", "chart"), (3, "blue", "chart"), (0, "", "uninstall")):
        cluster.write(*rows(wanted, color), namespaces="[many]", manifests="[]")
        hits = kills(cluster, *(["namespaces"] if color == "red" else []), *(f"{step} web-{i}" for i in range(3)))
        print(f"{wanted} charts, {color or 'removed'}: killed {hits} times", flush=True)
        assert hits >= 2  # charts of one size end together: then there is no second begin
        settled(cluster, wanted, color)
        if color == "blue":
            killed_while_helm_works(cluster, 5)
            settled(cluster, 3, "color-4")


GATE = """\
apiVersion: v1
kind: Service
metadata: {name: gate, namespace: many}
spec: {ports: [{port: 443}]}
"""
OPEN = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: gate, namespace: many, labels: {kubernetes.io/service-name: gate}}
addressType: IPv4
ports: [{port: 6443}]
endpoints: [{addresses: [ADDRESS]}]
"""


def test_killed_with_helm_in_each_state(cluster):
    """The releases wait in a hook for a gate, so that all of them are seen in the state. The chart of the next run has no hook, but that of an uninstall is the release's own."""
    plain = charts.files("web", "1.0.0", map=charts.MAP)
    cluster.write(namespaces="[many]", manifests="[]")
    cluster.slipway("up")
    cluster.kubectl("apply", "-f", "-", text=GATE)
    for state, verb, color, hook in (("pending-install", "upgrade", "green", "pre-install"), ("pending-upgrade", "upgrade", "white", "pre-upgrade"), ("uninstalling", "uninstall", "", "pre-delete")):
        waiting = plain | {"templates/hook.yaml": charts.hook(hook, '[ask, "-t", "3600", "tcp://gate:443"]')}
        charts.write(cluster.dir / "web", waiting)
        if not color:
            cluster.slipway("up")  # the release has the hook from now on
        cluster.write(*rows(3 if color else 0, color), namespaces="[many]", manifests="[]")
        killed_with_its_helm(cluster, verb, state)
        charts.write(cluster.dir / "web", plain)
        if not color:
            cluster.kubectl("apply", "-f", "-", text=OPEN.replace("ADDRESS", cluster.address("control-1")))
        cluster.slipway("up")
        settled(cluster, 3 if color else 0, color)
    charts.write(cluster.dir / "web", charts.files("web", "1.0.0", deployment=charts.DEPLOYMENT, map=charts.MAP))


def test_twenty_charts(cluster):
    """Installed together; a plan that changes nothing; and the same by helm, one after another."""
    cluster.write(*rows(20, "red"), namespaces="[many]", manifests="[]")
    began = time.monotonic()
    cluster.slipway("up")
    ours = time.monotonic() - began
    before = os.times()
    assert "nothing to do" in cluster.slipway("plan").stdout
    after = os.times()
    plan = after.children_user + after.children_system - before.children_user - before.children_system
    cluster.write(namespaces="[many]", manifests="[]")
    cluster.slipway("up")
    began = time.monotonic()
    for i in range(20):
        cluster.helm("install", f"web-{i}", str(cluster.dir / "web"), "-n", "many", "--wait")
    theirs = time.monotonic() - began
    print(json.dumps({"slipway up": round(ours, 1), "helm install --wait, 20 times": round(theirs, 1), "plan, CPU seconds": round(plan, 2)}))
    assert plan < 3 and ours < 0.5 * theirs
