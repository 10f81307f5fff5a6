"""Day two on one cluster: scale, remove-node, changes; members of etcd that come, are lost, are replaced and leave; runs that are killed in the middle (at every boundary: test_kills.py).

Each test goes on with the cluster as the one before left it."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import NEWEST, PREVIOUS, SLIPWAY, Cluster, until

KUBERNETES = NEWEST
TEXT = f"""\
# Day two.
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: scale}}
spec:
  kubernetes: {KUBERNETES}
  provider: {{local: {{network: 10.132.0.0/24}}}}
  upgrade: {{drainTimeout: 20s}}
  components: {{}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}} # three later
    - name: worker
      # one is enough
      count: 1
"""
CONTROL = {f"control-{i}": f"10.132.0.{9 + i}" for i in range(1, 16)}
WORKER = {f"worker-{i}": f"10.132.0.{39 + i}" for i in range(1, 5)}
ADDRESS = {**CONTROL, **WORKER}
UNITS = ("kubelet", "containerd", "kube-proxy", "flanneld", "slipway-haproxy")
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-nspawn"), reason="machines on this computer need root")


class Day(Cluster):
    asked = "control-1"  # the API server

    def kubectl(self, *args, **more):
        return super().kubectl("--server", f"https://{ADDRESS[self.asked]}:6443", *args, **more)

    @property
    def file(self):
        return (self.dir / "cluster.yaml").read_text()

    def do(self, *args, status=0):
        """Runs it with JSON events; those, and what went to stderr."""
        r = self.slipway(*args, "-o", "json")
        assert r.returncode == status, f"{args}: {r.returncode}\n{r.stdout[-6000:]}{r.stderr}"
        return [json.loads(line) for line in r.stdout.splitlines() if line.startswith("{")], r.stderr

    def kill_at(self, *args, node, step):
        """Runs it, and kills it as soon as that step begins."""
        p = subprocess.Popen([SLIPWAY, *args, "-o", "json"], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        seen = []
        for line in p.stdout:
            seen.append(line)
            e = json.loads(line)
            if e.get("step") == step and e.get("node") == node and e.get("state") == "running":
                break
        else:
            raise AssertionError(f"{step} {node} did not begin: {''.join(seen)[-6000:]}{p.stderr.read()}")
        time.sleep(0.3)
        p.send_signal(signal.SIGKILL)
        p.wait()

    def members(self, at):
        """etcd's, by its own word: {name: is a learner}."""
        pki = "/etc/kubernetes/pki/etcd"
        r = self.on(ADDRESS[at], f"PATH=$PATH:/usr/local/bin etcdctl --endpoints https://127.0.0.1:2379 --cacert {pki}/ca.crt --cert {pki}/healthcheck-client.crt "
                    f"--key {pki}/healthcheck-client.key -w json member list")
        assert r.returncode == 0, r.stderr
        return {m.get("name", ""): m.get("isLearner", False) for m in json.loads(r.stdout)["members"]}

    def nodes(self):
        return {n["metadata"]["name"]: n for n in json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]}

    def machine(self, name):
        return self.state / "machines" / name

    def power_off(self, name):
        """As when the plug is pulled."""
        pid = int((self.machine(name) / "lock").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        until(f"{name} is off", lambda: not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text())
        time.sleep(1)

    def destroy(self, name):
        """For good: the disk too."""
        self.power_off(name)
        subprocess.run(["rm", "-rf", "--one-file-system", self.machine(name)], check=True)

    def journal(self, name):
        """What slipway changed on the machine, ever."""
        return self.on(ADDRESS[name], "cat /var/lib/slipway/journal").stdout.decode().splitlines()

    def running(self, name):
        """Since when everything on it runs."""
        return self.on(ADDRESS[name], f"systemctl show -p Id,ActiveEnterTimestampMonotonic {' '.join(UNITS)}").stdout.decode()

    def well(self, *names):
        """Those nodes and no others, Ready and not cordoned."""
        nodes = self.nodes()
        assert set(nodes) == set(names)
        assert not any(n["spec"].get("unschedulable") for n in nodes.values()), "no node stays cordoned"
        until("all are Ready", lambda: all_ready(nodes) or all_ready(self.nodes()))
        assert set(p.name for p in (self.state / "machines").iterdir() if p.is_dir()) == set(names)


def all_ready(nodes):
    return all(any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"].get("conditions", [])) for n in nodes.values())


def plan_of(events):
    plan = next(e["plan"] for e in events if e["event"] == "plan")
    return {n["node"]: n for n in plan["nodes"]}


def actions(events):
    return {name: n["action"] for name, n in plan_of(events).items()}


def spans(events, step):
    """When a step of each node began and ended."""
    out = {}
    for e in events:
        if e["event"] == "step" and e["step"] == step and e["node"]:
            begin, end = out.get(e["node"], (None, None))
            out[e["node"]] = (e["at"], end) if e["state"] == "running" else (begin, e["at"])
    return out


def test_nothing_is_known_of_it(tmp_path):
    """Words that are wrong are said so before anything is looked at."""
    file = tmp_path / "cluster.yaml"
    file.write_text(TEXT)

    def said(*args, status=2):
        r = subprocess.run([SLIPWAY, *args, "--yes"], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert r.returncode == status, r.stderr
        assert file.read_text() == TEXT and sorted(p.name for p in tmp_path.iterdir()) == ["cluster.yaml"]
        return r.stderr

    assert "did you mean worker?" in said("scale", "wroker=2")
    assert "is not POOL=N" in said("scale", "worker") and "is not POOL=N" in said("scale", "worker=-1")
    assert "did you mean worker-1?" in said("remove-node", "worker-11")
    assert "would be left with no control-plane node" in said("remove-node", "control-1")
    assert "would be left with no control-plane node" in said("scale", "control=0")
    assert "odd count, got 2" in said("scale", "control=2", status=3)
    assert "given twice" in said("scale", "worker=2", "worker=3")
    hosts = TEXT.replace("local: {network: 10.132.0.0/24}", "ssh: {}").replace("count: 1}", "hosts: [192.0.2.1]}").replace("count: 1\n", "hosts: [192.0.2.2]\n")
    file.write_text(hosts)
    r = subprocess.run([SLIPWAY, "scale", "worker=2"], cwd=tmp_path, capture_output=True, text=True)
    assert r.returncode == 2 and "add the host to its list" in r.stderr, r.stderr


@pytest.fixture(scope="module")
def day():
    d = Day("scale", KUBERNETES, TEXT)
    d.begin()
    yield d
    d.write(TEXT)  # whatever a failed test left there
    d.end()


def test_up(day):
    day.up()
    day.well("control-1", "worker-1")


def test_a_worker_more_touches_nobody_else(day):
    journals, since = {n: day.journal(n) for n in ("control-1", "worker-1")}, day.running("worker-1")
    events, _ = day.do("scale", "worker=2", "--yes")
    assert actions(events) == {"control-1": "keep", "worker-1": "keep", "worker-2": "make"}
    assert day.file == TEXT.replace("      count: 1\n", "      count: 2\n")
    assert {n: day.journal(n) for n in journals} == journals and day.running("worker-1") == since
    day.well("control-1", "worker-1", "worker-2")


def test_a_node_that_was_deleted_comes_back(day):
    """Its kubelet runs on and does not notice; its range of pod addresses is another afterwards, and the verification sees that pods work there."""
    day.kubectl("delete", "node", "worker-2")
    events, _ = day.do("up")
    assert actions(events) == {"control-1": "keep", "worker-1": "keep", "worker-2": "change"}
    assert "the API does not know it: it registers again" in plan_of(events)["worker-2"]["disrupts"]
    day.well("control-1", "worker-1", "worker-2")
    assert "nothing to do" in day.slipway("plan").stdout


def at_terminal(day, answer, *args):
    """Runs it at a terminal, says that when it asks, and gives back its status and all that was shown."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(day.dir)
        os.execv(SLIPWAY, [str(SLIPWAY), *args])
    shown, answered = b"", False
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the last one to hold the terminal is gone
            break
        shown += data
        if b"[y/N]" in shown and not answered:
            answered = True
            os.write(fd, answer)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_no_is_an_answer(day):
    before, journals = day.file, {n: day.journal(n) for n in ("control-1", "worker-1", "worker-2")}
    status, shown = at_terminal(day, b"n\n", "scale", "worker=1")
    assert status == 2 and "worker-2" in shown and "slipway: nothing was changed" in shown, shown
    assert "failed" not in shown and "\x1b[31m" not in shown, "a no is no failure"
    assert day.file == before and {n: day.journal(n) for n in journals} == journals
    assert "going on" not in day.slipway("up").stderr


def test_a_version_is_not_taken_back(day):
    before, journals = day.file, {n: day.journal(n) for n in ("control-1", "worker-1")}
    identity = {p.name: p.read_bytes() for p in (day.state / "nodes").iterdir()}
    day.write(before.replace(f"kubernetes: {KUBERNETES}", f"kubernetes: {PREVIOUS}"))
    _, err = day.do("up", "--yes", status=4)
    assert f"the cluster runs {KUBERNETES}, and kubernetes: {PREVIOUS} is older" in err and "slipway rollback" in err and "nothing was changed" in err, err
    day.write(before)
    assert {n: day.journal(n) for n in journals} == journals
    assert {p.name: p.read_bytes() for p in (day.state / "nodes").iterdir()} == identity, "no certificate was issued for it"


def test_a_label_and_an_option_of_the_kubelet(day):
    """The plan names exactly that, and up does that and no more."""
    since = day.running("control-1"), day.running("worker-1")
    day.write(day.file.replace("      count: 2\n", "      count: 2\n      labels: {example.net/room: b12}\n"))
    events, _ = day.do("up")
    assert {a for n, a in actions(events).items() if n.startswith("control")} == {"keep"}
    assert all(day.nodes()[f"worker-{i}"]["metadata"]["labels"].get("example.net/room") == "b12" for i in (1, 2))
    day.write(day.file.replace("      count: 2\n", "      count: 2\n      kubelet: {maxPods: 77}\n"))
    events, _ = day.do("up")
    plan = plan_of(events)
    assert plan["control-1"]["action"] == "keep"
    for n in ("worker-1", "worker-2"):
        assert plan[n]["disrupts"] == "restarts the kubelet" and not plan[n]["drain"]
        assert {c["name"] for c in plan[n]["changes"]} == {"/var/lib/kubelet/config.yaml", "kubelet.service"}
    assert day.nodes()["worker-2"]["status"]["capacity"]["pods"] == "77"
    assert day.running("control-1") == since[0]
    before, after = since[1].split("\n\n"), day.running("worker-1").split("\n\n")
    assert [b.splitlines()[0] for b, a in zip(before, after) if a != b] == ["Id=kubelet.service"]


def test_control_planes_come_one_by_one(day):
    """From one to three, killed while the second joins."""
    since = day.running("worker-1")
    before = len(day.journal("worker-1"))
    day.kill_at("scale", "control=3", "--yes", node="control-2", step="apply")
    assert "count: 3} # three later" in day.file, "the file is the intent"
    assert day.members("control-1") in ({"control-1": False, "": True}, {"control-1": False, "control-2": True}), "a learner, and one"
    events, err = day.do("up", "--yes")
    assert "going on: 'scale'" in err
    assert day.members("control-1") == {"control-1": False, "control-2": False, "control-3": False}
    order = spans(events, "etcd promote")
    assert order["control-2"][1] <= order["control-3"][0]
    assert spans(events, "healthy")["control-2"][1] <= spans(events, "etcd join")["control-3"][0], "one after another"
    before_units, after_units = since.split("\n\n"), day.running("worker-1").split("\n\n")
    assert [b.splitlines()[0] for b, a in zip(before_units, after_units) if a != b] in (["Id=slipway-haproxy.service"], [])
    changed = [line for line in day.journal("worker-1")[before:] if "/etc/" in line or "/var/lib/kubelet" in line]
    assert changed and all("haproxy" in line or "balancer" in line for line in changed), changed
    day.well(*list(CONTROL)[:3], "worker-1", "worker-2")
    assert "nothing to do" in day.slipway("plan").stdout


@pytest.mark.soak  # test_upgrade rolls a control plane too
def test_a_flag_rolls(day):
    """One control plane after another, each well before the next."""
    if "count: 3} # three later" not in day.file:  # alone
        day.up()
        day.do("scale", "control=3", "worker=2", "--yes")
    day.write(day.file.replace("components: {}", "components: {apiserver: {flags: {v: 1}}}"))
    events, _ = day.do("up")
    plan = plan_of(events)
    for n in list(CONTROL)[:3]:
        assert [c["name"] for c in plan[n]["changes"]] == ["/etc/kubernetes/manifests/kube-apiserver.yaml"] and plan[n]["disrupts"] == "restarts the API server"
    assert plan["worker-1"]["action"] == plan["worker-2"]["action"] == "keep"
    applied, healthy = spans(events, "apply"), spans(events, "healthy")
    turns = sorted(list(CONTROL)[:3], key=lambda n: applied[n][0])
    for a, b in zip(turns, turns[1:]):
        assert healthy[a][1] <= applied[b][0], "the next waits until the one before is well"


def servers(day):
    answer = json.loads(day.slipway("status", "-o", "json").stdout)
    return {s["node"]: s["ready"] for s in answer["api"]["servers"]}, "\n".join(answer["problems"])


def test_an_api_server_that_is_down_is_shown(day):
    """Each is asked by itself: that another one answers is no excuse."""
    assert servers(day)[0] == {n: True for n in list(CONTROL)[:3]}
    day.on(CONTROL["control-2"], "systemctl stop kubelet; pkill -KILL -x kube-apiserver")
    ready, problems = until("it is seen", lambda: (s := servers(day)) and not s[0]["control-2"] and s)
    assert ready == {"control-1": True, "control-2": False, "control-3": True} and "API server on control-2: " in problems
    day.on(CONTROL["control-2"], "systemctl start kubelet")
    until("it is back", lambda: servers(day)[0]["control-2"])


def test_the_first_one_ever_made_is_lost_for_good(day):
    day.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    day.destroy("control-1")
    events, _ = day.do("up")
    plan = plan_of(events)
    assert plan["control-1"]["action"] == "make" and plan["control-1"]["etcdJoins"]
    assert {n: p["action"] for n, p in plan.items() if n != "control-1"} == {n: "keep" for n in ("control-2", "control-3", "worker-1", "worker-2")}
    assert day.members("control-1") == {"control-1": False, "control-2": False, "control-3": False}
    assert day.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"
    day.well(*list(CONTROL)[:3], "worker-1", "worker-2")


def test_one_that_was_off_goes_on(day):
    """Its data is still on its disk: no learner, no new member."""
    day.power_off("control-2")
    events, _ = day.do("up")
    assert actions(events)["control-2"] == "start" and not plan_of(events)["control-2"]["etcdJoins"]
    assert not [e for e in events if e["event"] == "change" and "learner" in e["change"]]
    assert day.members("control-2") == {"control-1": False, "control-2": False, "control-3": False}


def test_a_quorum_is_not_given_away(day):
    day.power_off("control-1")
    day.asked = "control-2"
    before, members = day.file, day.members("control-2")
    _, err = day.do("remove-node", "control-2", "control-3", "--yes", status=4)
    assert "etcd would lose its quorum" in err and "nothing was changed" in err
    r = day.slipway("remove-node", "worker-2")  # nobody is asked, nobody said yes
    assert r.returncode == 2 and "confirm with --yes" in r.stderr
    assert day.file == before and day.members("control-2") == members
    assert not any(n["spec"].get("unschedulable") for n in day.nodes().values())
    ready, problems = servers(day)
    assert ready == {"control-1": False, "control-2": True, "control-3": True} and "node control-1: its machine is stopped" in problems


GUARDED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: guarded}
spec:
  replicas: 1
  selector: {matchLabels: {app: guarded}}
  template:
    metadata: {labels: {app: guarded}}
    spec:
      nodeSelector: {kubernetes.io/hostname: worker-1}
      terminationGracePeriodSeconds: 1
      containers: [{name: pause, image: "IMAGE", imagePullPolicy: IfNotPresent}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: no-less}
spec: {minAvailable: 1, selector: {matchLabels: {app: guarded}}}
"""


def test_back_to_one(day):
    """The first control plane is dead, the second leaves while the run is killed; the third stays, with all there is."""
    day.kill_at("remove-node", "control-1", "control-2", "--yes", node="control-2", step="etcd leave")
    assert "count: 1, without: [2, 1]} # three later" in day.file or "count: 1, without: [1, 2]} # three later" in day.file, day.file
    day.do("up", "--yes")
    day.asked = "control-3"
    assert day.members("control-3") == {"control-3": False}
    assert day.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"
    day.well("control-3", "worker-1", "worker-2")
    assert "nothing to do" in day.slipway("plan").stdout


def test_the_only_one_is_replaced(day):
    """One edit takes the last control plane out and brings another: it joins, is promoted, and only then the old one leaves."""
    since = day.running("worker-1")
    day.write(re.sub(r"without: \[(.*?)\]\}", r"without: [\1, 3]}", day.file))
    events, _ = day.do("up", "--yes")
    assert actions(events) == {"control-4": "make", "control-3": "remove", "worker-1": "change", "worker-2": "change"}
    assert plan_of(events)["control-4"]["etcdJoins"]
    assert spans(events, "healthy")["control-4"][1] <= spans(events, "drain")["control-3"][0]
    assert spans(events, "healthy")["control-4"][1] <= spans(events, "apply")["worker-1"][0], "until then the old one serves the workers"
    day.asked = "control-4"
    assert not day.kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=control-3", "-o", "name"), "what was left on it went with its Node"
    assert day.members("control-4") == {"control-4": False}
    assert day.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"
    day.well("control-4", "worker-1", "worker-2")
    before, after = since.split("\n\n"), day.running("worker-1").split("\n\n")
    assert [b.splitlines()[0] for b, a in zip(before, after) if a != b] in (["Id=slipway-haproxy.service"], [])
    assert "nothing to do" in day.slipway("plan").stdout


def test_a_budget_holds_a_drain(day):
    image = day.on(ADDRESS["worker-1"], "PATH=$PATH:/usr/local/bin ctr -n k8s.io images ls -q | grep /pause: | head -1").stdout.decode().strip()
    day.kubectl("apply", "-f", "-", text=GUARDED.replace("IMAGE", image))
    day.kubectl("rollout", "status", "deployment/guarded", "--timeout=600s")
    events, err = day.do("remove-node", "worker-1", "--yes", status=6)
    assert "guarded" in err and "no-less" in err and "uncordoned" in err, err
    assert not day.nodes()["worker-1"]["spec"].get("unschedulable"), "nothing stays cordoned"
    assert "      count: 1\n      without: [1]\n" in day.file
    day.kubectl("delete", "poddisruptionbudget", "no-less")
    day.do("up", "--yes")
    day.well("control-4", "worker-2")
    assert "# one is enough" in day.file and "# Day two." in day.file
