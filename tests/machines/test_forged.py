"""What the API, etcd or a node says of an address, a label or a name decides nothing: only hosts of the file and of our own record are touched.

Somebody who may write Node objects forges one, moves a node's address onto the control plane, steals the label, and a worker lies about who it is. A trap listens where a
forged Node says it is: nobody may ever call there.
"""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from harness import KUBECTL, NEWEST, SHARED_DISK

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-forged"
MACHINE = ROOT / "tests" / "machines" / "machine.sh"
ENV = dict(os.environ, SLIPWAY_SET="forged", SLIPWAY_MACHINE_KEY=str(WORK / "key.pub"), SLIPWAY_MACHINES=str(WORK / "machines"))
HOSTS = {"c1": "10.151.0.11", "w1": "10.151.0.21", "w2": "10.151.0.22"}
TRAP = "10.151.0.66"
KEPT = ["/etc/kubernetes/pki/ca.key", "/etc/kubernetes/manifests/kube-apiserver.yaml", "/var/lib/etcd/member/wal", "/var/lib/slipway/applied"]
LISTEN = """
import socket, sys
s = socket.create_server((sys.argv[1], 22))
while True:
    c, who = s.accept()
    open(sys.argv[2], "a").write(f"{who}\\n")
    c.close()
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-nspawn"), reason="machines on this computer need root")


def cluster(*workers):
    hosts = "\n".join(f"        - {{name: {w}, address: {HOSTS[w]}}}" for w in workers)
    (WORK / "cluster.yaml").write_text(f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: forged}}
spec:
  kubernetes: {NEWEST}
  provider: {{ssh: {{user: root, key: key, options: ["UserKnownHostsFile={WORK}/known"]}}}}
  network: {{dnsUpstream: [10.151.0.1]}}
  pools:
    - name: control
      roles: [control-plane, etcd]
      hosts:
        - {{name: c1, address: {HOSTS["c1"]}}}
    - name: worker
      hosts:
{hosts}
{SHARED_DISK}""")


def machine(*args, check=True, **kw):
    return subprocess.run([MACHINE, *args], env=ENV, check=check, text=True, stdin=subprocess.DEVNULL, **kw)


def on(host, command, check=True):
    r = machine("exec", host, "sh", "-c", command, check=False, capture_output=True)
    assert not check or r.returncode == 0, (host, command, r.stdout, r.stderr)
    return r.stdout


def slipway(*args):
    return subprocess.run([MACHINE, "net", SLIPWAY, *args], env=ENV, cwd=WORK, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def done(*args):
    r = slipway(*args)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r


def kubectl(*args, given=None):
    r = subprocess.run([MACHINE, "net", KUBECTL, "--kubeconfig", WORK / "kubeconfig", *args], env=ENV, capture_output=True, text=True, input=given)
    assert r.returncode == 0, r.stderr
    return r.stdout


def nodes():
    return set(kubectl("get", "nodes", "-o", "name").replace("node/", "").split())


def record():
    return {n["name"]: n for n in json.loads((WORK / ".slipway" / "forged" / "record.json").read_text())["nodes"]}


def up(*workers):
    cluster(*workers)
    done("up", "--yes")
    (WORK / "kubeconfig").write_text(slipway("kubeconfig").stdout)


def say_address(name, address):
    value = json.dumps([{"op": "add", "path": "/status/addresses", "value": [{"type": "InternalIP", "address": address}]}])
    kubectl("patch", "node", name, "--subresource=status", "--type=json", "-p", value)


def forge(name, address, **labels):
    labels = {"slipway.dev/pool": "worker", **labels}
    kubectl("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}))
    say_address(name, address)


def move(name, address):
    """Its Node says another address, and its kubelet does not correct it; its pods went before."""
    kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
    on(name, "systemctl stop kubelet")
    say_address(name, address)


def prints(host):
    """What an attack would take away."""
    return on(host, f"stat -c '%n %i' {' '.join(KEPT)}; cat /etc/machine-id; systemctl is-active kubelet etcd containerd")


def is_off(host):
    return on(host, "ls -d /etc/kubernetes/* /var/lib/slipway /var/lib/kubelet/* 2>/dev/null", check=False) == ""


@pytest.fixture(scope="module")
def trap():
    machine("stop", "--all")
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "machines").mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", WORK / "key"], check=True)
    calls, listener = WORK / "calls", None
    try:
        for name, address in HOSTS.items():
            machine("start", name, address)
        machine("net", "ip", "address", "add", f"{TRAP}/24", "dev", "br0")
        listener = subprocess.Popen([MACHINE, "net", "python3", "-c", LISTEN, TRAP, calls], env=ENV, stdin=subprocess.DEVNULL)
        probe = "import socket, sys; socket.create_connection((sys.argv[1], 22), 5)"
        while machine("net", "python3", "-c", probe, TRAP, check=False, capture_output=True).returncode:
            assert listener.poll() is None
            time.sleep(0.2)
        assert calls.read_text().count("\n") == 1, "the trap works"
        calls.write_text("")
        up("w1", "w2")
        yield calls
    finally:
        if listener:
            listener.terminate()
            listener.wait()
        machine("stop", "--all", check=False)
        shutil.rmtree(WORK, ignore_errors=True)


@pytest.fixture
def unharmed(trap):
    """Around each attack: the control plane is what it was, and nobody called where only the API said somebody is."""
    before = prints("c1")
    yield
    assert trap.read_text() == "", "a host outside the file and the record was connected to"
    assert prints("c1") == before


def test_every_node_is_recorded(trap):
    for name, address in HOSTS.items():
        n = record()[name]
        assert n["address"] == address and n["ip"] == address and n["hostKey"].startswith("ssh-ed25519 SHA256:")
        assert n["machineId"] == on(name, "cat /etc/machine-id").strip()
        assert f"\nnode\t{name}\n" in on(name, "cat /var/lib/slipway/applied")


def test_a_state_directory_of_an_earlier_version(unharmed):
    """It knew the control plane alone, and agents knew no name: the next up completes both, and changes nothing else."""
    kept = record()
    path = WORK / ".slipway" / "forged"
    (path / "record.json").unlink()
    (path / "born").write_text(json.dumps({"nodes": [{"name": "c1", "address": HOSTS["c1"], "roles": 3}]}))
    on("w1", "sed -i '/^node\\t/d' /var/lib/slipway/applied")
    assert "nothing to do" in done("plan").stdout and (path / "born").exists()
    done("up")
    assert record() == kept and not (path / "born").exists() and "\nnode\tw1\n" in on("w1", "cat /var/lib/slipway/applied")


def test_plan_and_up(unharmed):
    """A forged Node, a stolen label with the control plane's role, and a worker dropped from the file whose Node says the control plane's address."""
    forge("ghost", TRAP)
    forge("thief", HOSTS["w1"], **{"node-role.kubernetes.io/control-plane": ""})
    move("w2", HOSTS["c1"])
    cluster("w1")
    out = done("plan").stdout
    says = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ")}
    assert "known to the API only: its Node object will be removed; no host is touched" in says["ghost"] and TRAP in says["ghost"], out
    assert "known to the API only" in says["thief"], out
    assert f"the API says its address is {HOSTS['c1']}: its recorded address {HOSTS['w2']} is used" in says["w2"], out
    assert "c1" not in says, out
    done("up", "--yes")
    assert nodes() == {"c1", "w1"} and is_off("w2") and set(record()) == {"c1", "w1"}
    assert "nothing to do" in done("plan").stdout


def test_remove_node(unharmed):
    up("w1", "w2")
    forge("ghost", TRAP)
    move("w2", TRAP)
    r = done("remove-node", "w2", "--yes")
    assert "known to the API only" in r.stderr and f"its recorded address {HOSTS['w2']} is used" in r.stderr, r.stderr
    assert nodes() == {"c1", "w1"} and is_off("w2") and "w2" not in (WORK / "cluster.yaml").read_text()


def test_reset(unharmed):
    forge("ghost", TRAP)
    move("w1", HOSTS["c1"])
    done("reset", "w1", "--yes")
    assert is_off("w1") and nodes() == {"c1", "ghost"} and set(record()) == {"c1"}
    up("w1", "w2")
    assert nodes() == {"c1", "w1", "w2"}


def lies():
    """Its agent's record was edited: it says it is the control plane."""
    on("w1", "cp -a /var/lib/slipway/applied /root/applied && sed -i 's/^node\\t.*/node\\tc1/' /var/lib/slipway/applied")


def is_on():
    return on("w1", "ls -d /etc/kubernetes/* && systemctl is-active kubelet")


@pytest.mark.parametrize("verb", [["plan"], ["up", "--yes"], ["reset", "w1", "--yes"], ["remove-node", "w2", "--yes"]], ids=lambda v: v[0])
def test_a_worker_that_says_it_is_another(unharmed, verb):
    before = is_on()
    lies()
    r = slipway(*verb)
    on("w1", "mv /root/applied /var/lib/slipway/applied")
    assert r.returncode == 8 and f"w1: connect: the host at {HOSTS['w1']} is node c1 of this cluster, by its own record" in r.stderr, r.stderr
    assert "remove-node c1" not in r.stderr and before == is_on() and nodes() == {"c1", "w1", "w2"}


def test_a_machine_that_is_another(unharmed):
    """Where the worker was, another machine answers: told in the plan; dropped from the file, it is not touched."""
    on("w1", "cp -a /etc/machine-id /root/machine-id && rm /etc/machine-id && echo 11111111111111111111111111111111 > /etc/machine-id")
    out = done("plan").stdout
    assert "w1: its machine-id is 11111111111111111111111111111111 and the record has" in out.replace("  ", " ") and "was reinstalled or replaced" in out, out
    cluster("w2")
    out = done("plan").stdout
    assert "its host is not touched: 10.151.0.21 is another machine" in out, out
    done("up", "--yes")
    assert nodes() == {"c1", "w2"} and not is_off("w1") and on("w1", "systemctl is-active kubelet").strip() == "active"
    on("w1", "rm /etc/machine-id && cp -a /root/machine-id /etc/machine-id")


def test_an_address_of_another_node(unharmed):
    """The record's address is now another node's in the file."""
    path = WORK / ".slipway" / "forged" / "record.json"
    kept = path.read_text()
    json_ = json.loads(kept)
    json_["nodes"].append({"name": "w9", "address": HOSTS["c1"], "ip": HOSTS["c1"], "roles": 4})
    path.write_text(json.dumps(json_))
    out = done("plan").stdout
    path.write_text(kept)
    assert f"its host is not touched: its recorded address {HOSTS['c1']} is node c1's in the file" in out, out


def test_down(trap):
    """A worker that lies is not reset; the others are."""
    up("w1", "w2")
    forge("ghost", TRAP)
    before = is_on()
    lies()
    r = slipway("down", "--yes")
    assert r.returncode != 0 and "is node c1 of this cluster, by its own record" in r.stderr, r.stderr
    assert before == is_on() and is_off("c1") and is_off("w2")
    on("w1", "mv /root/applied /var/lib/slipway/applied")
    done("down", "--yes")
    assert trap.read_text() == "" and is_off("w1") and record() == {}
