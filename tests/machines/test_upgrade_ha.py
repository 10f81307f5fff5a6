"""From 1.35.4 to 1.36.3 with three control planes: a client of the virtual address hardly notices, and no Deployment falls below its budget."""
import json
import os
import time

import pytest

from clients import NAMESPACE, Api, Client, Reader, Writer
from harness import APP, Machines, until
from test_ha import numbers

OLD, NEW = "1.35.4", "1.36.3"
NETWORK = "10.135.0"
VIP = f"{NETWORK}.5"
SPEC = f"""\
  kubernetes: {OLD}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  api: {{vip: {VIP}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 3}}
    - {{name: worker, count: 2}}
"""
LONGEST = 5  # seconds without an answer
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]


class Budget(Client):
    """The fewest pods of the Deployment that were available at once."""

    def __init__(self, api):
        super().__init__(api, 0.2)
        self.least = 2

    def turn(self):
        status, text = self.api.request("GET", "/apis/apps/v1/namespaces/default/deployments/app")
        if status == 200:
            self.least = min(self.least, json.loads(text)["status"].get("availableReplicas", 0))
        return status == 200


@pytest.fixture(scope="module")
def cluster():
    with Machines("upgrade-ha", SPEC) as m:
        m.slipway("up", "--yes")
        m.kubeconfig()
        m.kubectl("create", "namespace", NAMESPACE)
        (m.dir / "app.yaml").write_text(APP)
        m.kubectl("apply", "-f", str(m.dir / "app.yaml"))
        until("two pods run", lambda: m.kubectl("get", "deployment", "app", "-o", "jsonpath={.status.availableReplicas}") == "2")
        yield m


def longest(client):
    """The longest gaps: how long, and when it ended, in seconds since the first success."""
    pairs = sorted(((b - a, b - client.ok[0]) for a, b in zip(client.ok, client.ok[1:])), reverse=True)
    return ", ".join(f"{gap:.2f} s at {at:.0f}" for gap, at in pairs[:5])


def test_clients_hardly_notice(cluster):
    config = cluster.dir / "kubeconfig"
    writer = Writer(Api(config))
    assert writer.api.host == VIP
    reader, budget = Reader(Api(config), writer), Budget(Api(config))
    everyone = {"writes": writer, "reads": reader, "looks at the Deployment": budget}
    for c in everyone.values():
        c.start()
    until("all work", lambda: all(len(c.ok) > 20 for c in everyone.values()))
    begun = time.monotonic()
    r = cluster.slipway("upgrade", NEW, "--yes", ok=None)
    took, gaps = time.monotonic() - begun, {name: c.gap(begun) for name, c in everyone.items()}
    for name, c in everyone.items():
        print(f"{name}: {len(c.ok)}, the longest gaps: {longest(c)}")
        c.stop()
    for node in ("control-1", "control-2", "control-3"):  # when the address moved, in the clock of the gaps
        log = cluster.on(node, "journalctl -u slipway-keepalived -o short-monotonic --no-pager | grep -iE 'entering|fault|stopp|start' | tail -n 20", check=False).stdout
        print(f"{node} (first success at {writer.ok[0]:.0f}):", log, sep="\n")
    print("troubles of the writer:", *writer.troubles, sep="\n  ")
    print(f"the upgrade took {took:.0f} s, {len(writer.acknowledged)} writes; fewest pods at once: {budget.least}; longest gaps: {gaps}")
    (cluster.dir / "upgrade.log").write_text(r.stderr)
    assert r.returncode == 0, r.stderr
    versions = {n["metadata"]["name"]: n["status"]["nodeInfo"]["kubeletVersion"] for n in json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]}
    assert set(versions.values()) == {f"v{NEW}"}, versions
    assert not reader.lost and not set(writer.acknowledged) - numbers(cluster), "every acknowledged write is there"
    for name, c in everyone.items():
        assert gaps[name] < LONGEST, (name, gaps[name], c.troubles[-40:])
    assert budget.least >= 1, "the budget was kept all the time"
    cluster.healthy()
