"""reset leaves a host as it was: every file, unit, mount, link, rule, setting and package is compared with how the machine was before the first up."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import KUBECTL, NEWEST

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-reset"
MACHINE = ROOT / "tests" / "machines" / "machine.sh"
DISK = WORK / "disk"  # a file system of the machines' own, so that it can be full
ENV = dict(os.environ, SLIPWAY_SET="reset", SLIPWAY_MACHINE_KEY=str(WORK / "key.pub"), SLIPWAY_MACHINES=str(DISK))
HOSTS = {"c1": "10.128.0.11", "w1": "10.128.0.21"}
CLUSTER = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: reset}}
spec:
  kubernetes: {NEWEST}
  provider: {{ssh: {{user: root, key: key, options: ["UserKnownHostsFile={WORK}/known"]}}}}
  api: {{vip: 10.128.0.9}}
  network: {{dnsUpstream: [10.128.0.1]}}
  pools:
    - {{name: control, roles: [control-plane, etcd], hosts: [{{address: {HOSTS["c1"]}, name: c1}}]}}
    - {{name: worker, hosts: [{{address: {HOSTS["w1"]}, name: w1}}]}}
"""
# What may differ, and why. Everything else must be equal.
LEFT = [
    r"^/var/log/(wtmp|btmp|lastlog|dpkg\.log|alternatives\.log|apt)\b",  # logs of what happened are not undone
    r"^/var/log/?\s",
    r"^/root/\.ssh\b",
    r"^/var/lib/systemd/(timesync/clock|random-seed|timers)\b",  # systemd's own, written whenever it likes
    r"^/(etc/machine-id|var/lib/dbus)\b",
    r"^/var/cache/ldconfig/aux-cache\b",
    r"^/etc/\.pwd\.lock\b",
]
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-nspawn"), reason="machines on this computer need root")


def machine(*args, check=True, **kw):
    return subprocess.run([MACHINE, *args], env=ENV, check=check, text=True, stdin=subprocess.DEVNULL, **kw)


def on(host, *argv, check=True):
    return machine("exec", host, *argv, check=check, capture_output=True).stdout


def slipway(*args):
    return subprocess.run([MACHINE, "net", SLIPWAY, *args], env=ENV, cwd=WORK, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def kubectl(*args):
    r = subprocess.run([MACHINE, "net", KUBECTL, "--kubeconfig", WORK / "kubeconfig", *args], env=ENV, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, r.stderr
    return r.stdout


def lines(text):
    return sorted(text.splitlines())


def files(host):
    skip = [w for d in ("/proc", "/sys", "/tmp", "/var/tmp", "/run", "/var/log/journal") for w in ("-path", d, "-o")][:-1]
    prune = ["(", *skip, ")", "-prune", "-o"]
    names = on(host, "find", "/", "-xdev", *prune, "-printf", "%p %y %m %u %g %l\n")
    sums = on(host, "find", "/", "-xdev", *prune, "-type", "f", "-exec", "sha256sum", "{}", "+")
    sums = "\n".join(f"{p} {s}" for s, p in (l.split("  ", 1) for l in sums.splitlines()))
    binds = "".join(on(host, "find", d, "-xdev", "-printf", "%p %y %m %u %g %l\n") for d in ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd"))
    return [l for l in lines(names + sums + "\n" + binds) if not any(re.search(p, l) for p in LEFT)]


def snapshot(host):
    """Compared line by line, so that a difference names the thing."""
    rules = "; ".join(f"{p} 2>/dev/null" for p in ("iptables-save", "ip6tables-save", "nft list ruleset"))
    settle(host)
    return {
        "files": files(host),
        "run": [l for l in lines(on(host, "find", "/run", "-xdev", "-printf", "%p %y\n")) if not re.match(r"/run/(systemd|udev|log|user|dbus|sshd|lock|utmp|motd)", l)],
        "units": [" ".join(l.split()[:4]) for l in lines(on(host, "systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager"))
                  if not re.match(r"(session|user|run-|ssh@|systemd-(tmpfiles|logind|hostnamed|networkd|timedated)|.*\.device|.*\.(timer|scope|slice))", l)],
        "unit files": lines(on(host, "systemctl", "list-unit-files", "--no-legend", "--no-pager")),
        "mounts": lines(on(host, "awk", "{print $5, $6}", "/proc/self/mountinfo")),
        "links": lines(re.sub(r"(?m)^\d+: ", "", on(host, "ip", "-o", "link"))),
        "addresses": lines(re.sub(r"(?m)^\d+: |valid_lft \S+ preferred_lft \S+", "", on(host, "ip", "-o", "addr"))),
        "routes": lines(on(host, "sh", "-c", "ip route; ip -6 route")),
        "rules": [re.sub(r"\[\d+:\d+\]", "", l) for l in on(host, "sh", "-c", rules).splitlines() if not l.startswith("#")],
        "sysctls": [l for l in lines(on(host, "sh", "-c", "sysctl -a 2>/dev/null"))
                    if not re.search(r"^(fs\.(dentry|file-nr|inode|quota)|kernel\.(random|pty\.nr|ns_last_pid|perf|sched|hung)|net\.netfilter\.nf_conntrack_count|vm\.stat)", l)],
        "packages": lines(on(host, "dpkg-query", "-W")),
        "cgroups": [l for l in lines(on(host, "find", "/sys/fs/cgroup", "-type", "d")) if re.search(r"kube|containerd|etcd|flannel", l)],
        "processes": [l for l in lines(on(host, "ps", "-eo", "comm", "--no-headers"))
                      if re.match(r"(kube|containerd|etcd|flannel|haproxy|keepalived|pause|coredns|agent)", l)],
    }


def settle(host):
    for _ in range(300):
        if on(host, "systemctl", "list-jobs", "--no-legend", "--no-pager").strip() == "":
            return
        time.sleep(0.2)


def differences(then, now):
    out = []
    for what in then:
        a, b = set(then[what]), set(now[what])
        out += [f"{what}: gone: {l}" for l in sorted(a - b)] + [f"{what}: new: {l}" for l in sorted(b - a)]
    return out


def up():
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    (WORK / "kubeconfig").write_text(slipway("kubeconfig").stdout)


@pytest.fixture(scope="module")
def before():
    machine("stop", "--all")
    subprocess.run(["umount", DISK], capture_output=True)
    shutil.rmtree(WORK, ignore_errors=True)
    DISK.mkdir(parents=True)
    # preflight wants 3 GiB free on each, beside what the other holds
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5g", "slipway-test", DISK], check=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", WORK / "key"], check=True)
    (WORK / "cluster.yaml").write_text(CLUSTER)
    try:
        for name, address in HOSTS.items():
            machine("start", name, address)
        yield {name: snapshot(name) for name in HOSTS}
    finally:
        machine("stop", "--all", check=False)
        subprocess.run(["umount", "-l", DISK], capture_output=True)
        shutil.rmtree(WORK, ignore_errors=True)


def test_refusals_change_nothing(before):
    r = slipway("reset", "w2", "--yes")
    assert r.returncode == 2 and "has no node 'w2'" in r.stderr and "did you mean w1?" in r.stderr
    r = slipway("reset", "c1", "--yes")
    assert r.returncode == 2 and "would be left with no control-plane node" in r.stderr and "slipway reset without a node" in r.stderr
    r = slipway("reset")
    assert r.returncode == 2 and "nothing was changed" in r.stderr and "Type its name (reset)" in r.stderr


def test_a_disk_that_is_nearly_full(before):
    """Before anything changes: a kubelet would evict whatever comes."""
    on("w1", "sh", "-c", "fallocate -l $(($(df --output=avail -B1M /var | tail -1) - 500))M /var/full")
    try:
        r = slipway("up")
    finally:
        on("w1", "rm", "/var/full")
    assert r.returncode == 4 and re.search(r"w1: \d+ MiB are free under /var/lib, and 3 GiB are needed", r.stderr), r.stderr
    assert re.search(r"w1: \d+ % of the disk are free under /var/lib/containerd, and a kubelet evicts pods below 15 %", r.stderr), r.stderr
    assert "make room, or set kubelet.evictionHard" in r.stderr


def test_one_node(before):
    """Pods leave first, and the rest of the cluster goes on."""
    up()
    kubectl("create", "deployment", "web", "--image=" + probe(), "--replicas=2")
    kubectl("rollout", "status", "deployment/web", "--timeout=600s")
    r = slipway("reset", "w1", "--yes")
    assert r.returncode == 0, r.stderr
    assert differences(before["w1"], snapshot("w1")) == []
    assert kubectl("get", "nodes", "-o", "name").split() == ["node/c1"]
    r = slipway("reset", "w1", "--yes")
    assert r.returncode == 0, r.stderr
    assert differences(before["w1"], snapshot("w1")) == [], "a second reset leaves nothing either"


def probe():
    images = json.loads(kubectl("get", "node", "w1", "-o", "json"))["status"]["images"]
    return next(n for i in images for n in i["names"] if "probe" in n and "@" not in n)


FILL = "rm -f /etc/x; for size in 1M 1k; do dd if=/dev/zero of=/var/full bs=$size oflag=append conv=notrunc 2>/dev/null; done; echo x > /etc/x; cat /etc/x"


def test_a_broken_node(before):
    """kubelet and containerd are dead, the disk is full, and the first try is killed in the middle."""
    up()
    for unit in ("kubelet", "containerd"):
        on("w1", "systemctl", "mask", "--runtime", unit, check=False)
        on("w1", "systemctl", "kill", "--signal=KILL", unit, check=False)
    for _ in range(20):  # again while something on the node, such as its journal, lets go of a little
        if on("w1", "sh", "-c", FILL, check=False) == "" and on("w1", "sh", "-c", FILL, check=False) == "":
            break
    else:
        raise AssertionError("the disk does not get full")
    proc = subprocess.Popen([MACHINE, "net", SLIPWAY, "reset", "w1", "--yes", "--force", "-o", "json"], env=ENV, cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in proc.stdout:
        if "removed /" in line:
            break
    on("w1", "pkill", "-KILL", "-f", "/var/lib/slipway/agent-")
    proc.send_signal(signal.SIGKILL)
    proc.wait()
    r = slipway("reset", "w1", "--yes", "--force")
    assert r.returncode == 0, r.stderr
    on("w1", "sh", "-c", "rm -f /var/full /etc/x; systemctl unmask --runtime kubelet containerd", check=False)
    assert differences(before["w1"], snapshot("w1")) == []
    assert kubectl("get", "nodes", "-o", "name").split() == ["node/c1"]


# The inner mount is older than the one that it is in now: unmounting the outer one takes it along, and then it cannot be unmounted any more.
NESTED = ("d=/run/containerd/nested && mkdir -p $d && mount -t tmpfs t $d && mount --make-private $d && mkdir $d/a $d/b && mount -t tmpfs a $d/a && mount -t tmpfs b $d/b "
          "&& mkdir $d/b/c && mount --move $d/a $d/b/c && rm -f /run/mount/utab /run/mount/utab.lock")


def test_down_is_reset_of_all_hosts(before):
    """Also where mounts are gone before it comes to them, as those of a shim that is ending."""
    on("c1", "sh", "-c", NESTED)
    r = slipway("down")
    assert r.returncode == 2 and "nothing was changed" in r.stderr
    r = slipway("down", "--yes")
    assert r.returncode == 0, r.stderr
    for host in HOSTS:
        assert differences(before[host], snapshot(host)) == []
