"""What users add to nodes, values from the environment, an inventory that ssh takes, and a run that goes on without a worker: one
cluster for all of it. The tests are in this order: each leaves the cluster as the next one needs it."""
import os
import subprocess

import pytest
from harness import NEWEST, Machines, until

SECRET = "hunter2-of-the-test"
SPEC = f"  kubernetes: {NEWEST}\n" """\
  env: [SMALL_WORKERS, SMALL_SECRET]
  provider: {local: {network: 10.161.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - name: worker
      count: ${SMALL_WORKERS}
  readiness: {type: count, value: 0, wait: 60s}
  components:
    controllerManager: {flags: {node-monitor-grace-period: 12s}}
    kubelet: {config: {nodeLeaseDurationSeconds: 8, nodeStatusUpdateFrequency: 2s}}
"""
EXTRAS = """\
  os:
    hosts:
      - {address: 192.0.2.5, names: [registry.example.net, registry]}
    files:
      - {path: /etc/motd, content: "of the test\\n"}
      - {path: /etc/small/token, content: "${SMALL_SECRET}", secret: true, pools: [worker]}
      - {path: /etc/small/made.sh, content: "date >> /etc/small/log; cat /etc/motd >> /etc/small/log\\n", mode: "0755"}
    commands:
      - sh /etc/small/made.sh
      - {argv: [touch, "/etc/small/a b"], pools: [worker]}
"""


@pytest.fixture(scope="module")
def cluster():
    os.environ.update(SMALL_WORKERS="1", SMALL_SECRET=SECRET)
    with Machines("small", SPEC + EXTRAS) as c:
        c.slipway("up")
        yield c


def change(cluster, *pairs):
    path = cluster.dir / "cluster.yaml"
    text = path.read_text()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


def test_nodes_have_what_was_added(cluster):
    for node in ("control-1", "worker-1"):
        assert cluster.on(node, "getent hosts registry.example.net").split() == ["192.0.2.5", "registry.example.net", "registry"]
        assert "127.0.0.1" in cluster.on(node, "cat /etc/hosts"), "lines of others stay"
        assert cluster.on(node, "grep -c 'of the test' /etc/small/log; stat -c %a /etc/small/made.sh /etc/motd").split() == ["1", "755", "644"], \
            "the command ran once, after the files were there"
    assert cluster.on("worker-1", "cat /etc/small/token; stat -c ' %a %U' /etc/small/token; ls '/etc/small/a b'") == f"{SECRET} 600 root\n/etc/small/a b"
    assert cluster.on("control-1", "ls /etc/small").split() == ["log", "made.sh"], "of another pool"


def test_the_secret_is_nowhere_here(cluster):
    cluster.slipway("plan", "-o", "json")
    r = subprocess.run(["grep", "-rlF", "--exclude-dir=machines", SECRET, cluster.dir], capture_output=True, text=True)
    assert r.returncode == 1, r.stdout
    assert "${SMALL_WORKERS}" in (cluster.dir / "cluster.yaml").read_text()


def test_a_second_run_changes_nothing(cluster):
    r = cluster.slipway("plan", "--exit-code")
    assert r.returncode == 0, r.stdout
    assert cluster.on("worker-1", "grep -c 'of the test' /etc/small/log") == "1"


def test_a_value_of_the_environment_is_not_edited(cluster):
    before = (cluster.dir / "cluster.yaml").read_text()
    r = cluster.slipway("scale", "worker=2", "--yes", ok=3)
    assert "the value comes from the environment: ${SMALL_WORKERS}" in r.stderr and "set the variable" in r.stderr
    assert (cluster.dir / "cluster.yaml").read_text() == before


def test_the_inventory_leads_to_the_machines(cluster):
    (cluster.dir / "ssh.conf").write_text(cluster.slipway("inventory", "--ssh-config").stdout)
    for node in ("control-1", "worker-1"):
        r = subprocess.run(["ssh", "-F", cluster.dir / "ssh.conf", "-o", "BatchMode=yes", node, "hostname"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert r.returncode == 0 and r.stdout.strip() == node, r.stderr


def test_a_command_that_fails_names_itself(cluster):
    change(cluster, ("      - sh /etc/small/made.sh\n", "      - sh /etc/small/made.sh\n      - echo no such luck >&2; exit 3\n"),
           ("of the test", "of the same test"))
    plan = cluster.slipway("plan").stdout
    assert "create   command echo-" in plan and "change   file /etc/motd" in plan and "runs commands of os.commands" in plan
    r = cluster.slipway("up", "--yes", ok=6)
    assert "exit status 3: no such luck" in r.stderr and "control-1" in r.stderr, r.stderr


def test_entries_that_go(cluster):
    """Our lines leave /etc/hosts, the host's own /etc/motd is back."""
    cluster.on("worker-1", "echo 10.9.9.9 since >> /etc/hosts")
    path = cluster.dir / "cluster.yaml"
    text = path.read_text()
    path.write_text(text[:text.index("    hosts:\n")] + text[text.index("    commands:\n"):].replace("      - echo no such luck >&2; exit 3\n", ""))
    cluster.slipway("up", "--yes")
    hosts = cluster.on("worker-1", "cat /etc/hosts")
    assert "registry" not in hosts and "slipway" not in hosts and "10.9.9.9 since" in hosts and "127.0.0.1" in hosts
    assert "test" not in cluster.on("worker-1", "cat /etc/motd")
    assert cluster.on("worker-1", "ls /etc/small").split() == ["a", "b", "log"], "what commands made is theirs"


# ---- the rest is for a fresh cluster of the same kind ----

def without_its_cable(cluster):
    until("the probes are gone", lambda: cluster.kubectl("get", "namespace", "slipway-verify", check=False).returncode)
    cluster.cable("worker-1", "down")
    until("worker-1 is not Ready", lambda: not cluster.ready()["worker-1"])


@pytest.mark.soak
def test_up_goes_on_without_a_worker(cluster):
    try:
        without_its_cable(cluster)
        r = cluster.slipway("up", "--yes")
        assert "warning: worker-1 is not Ready: " in r.stderr and "1 of 2 nodes are Ready" in r.stdout, r.stderr + r.stdout
        assert "worker-1" in cluster.problems(), "status still says so"
    finally:
        cluster.cable("worker-1", "up")


@pytest.mark.soak
def test_too_few_workers(cluster):
    try:
        without_its_cable(cluster)
        change(cluster, ("{type: count, value: 0, wait: 60s}", "{type: count, value: 1, wait: 10s}"))
        r = cluster.slipway("up", "--yes", ok=7)
        assert "0 Ready workers are fewer than the 1 that readiness needs" in r.stderr, r.stderr
        change(cluster, ("  readiness: {type: count, value: 1, wait: 10s}\n", ""))
        cluster.slipway("up", "--yes", ok=5)
    finally:
        cluster.cable("worker-1", "up")
    cluster.healthy()


@pytest.mark.soak
def test_a_reset_takes_all_of_it_off(cluster):
    cluster.on("worker-1", "echo 10.9.9.9 since >> /etc/hosts")
    cluster.slipway("reset", "worker-1", "--yes")
    hosts = cluster.on("worker-1", "cat /etc/hosts")
    assert "registry" not in hosts and "10.9.9.9 since" in hosts
    assert "of the test" not in cluster.on("worker-1", "cat /etc/motd")
    assert cluster.on("worker-1", "ls /etc/small").split() == ["a", "b", "log"], "what commands made is theirs"
