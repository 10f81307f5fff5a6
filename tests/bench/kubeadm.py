#!/usr/bin/env python3
"""Booted machines to a usable cluster: `slipway up` beside a script of `kubeadm init` and joins, on the same machines, in one run.

    tests/bench/run.py kubeadm              1+2 and 3+2, into docs/benchmarks.md
    tests/bench/kubeadm.py [--shape 1+2]... [--rounds N] [--only slipway|before|kubeadm|services|floor]... [--keep]   prints only
    BEFORE=OTHER/slipway tests/bench/kubeadm.py --only before --only slipway   two versions of slipway side by side

What lies on the machines before the clock starts is the same for all: programs, images, a running containerd, the kubelet's unit, haproxy and keepalived
from the distribution. It comes from a first `slipway up`; then everything of the cluster is wiped (files, etcd's data, pods, links, rules), and again between
two measurements, of which there are three of each way, each time in another order; what stands here is the median. The kubeadm script does what
kubeadm's and flannel's instructions say (kube-proxy and CoreDNS by `kubeadm init`, then `kubectl apply` of flannel's DaemonSet), only that all that may run at the same time does, no preflight check is made and keepalived runs already. Once more with flanneld and kube-proxy as
services of the hosts, as slipway has them; their units and settings lie there beforehand, while slipway has to bring its own. The machines share the
computer's cores, and for both ways the first control plane has three times the others' share, as machines on this computer always have it.

Usable, seen from outside by one probe for all: every node Ready, the fabric's subnet file on every node, and a pod on every worker that got the address of
a service from the cluster's name server through its service IP.
"""
import argparse
import base64
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "machines"))
from upstream import NEWEST, programs, version  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-bench-kubeadm"
NETWORK = os.environ.get("SLIPWAY_BENCH_NETWORK", "10.118.0")  # a /24
KUBERNETES, ETCD = NEWEST, version("etcd")
RESOLVE = "bench.invalid/resolve:1"
TOKEN, CERT_KEY = "abcdef.0123456789abcdef", "ab" * 32
LIMIT = 900  # seconds; far more than anything takes
TITLE = "Booted machines to a usable cluster"
WANTED = {"1+2": 0.40, "3+2": 0.35}
PROGRAMS = {"slipway": SLIPWAY} | ({"before": Path(os.environ["BEFORE"]).resolve()} if os.environ.get("BEFORE") else {})
OF_MACHINES = ("machines", "ssh", "known_hosts")  # in the state: whichever slipway made them


# ---- machines ----

class Machines:
    """The machines of one shape, and the cluster.yaml that makes them."""

    def __init__(self, shape):
        self.controls, self.workers = (int(n) for n in shape.split("+"))
        self.shape, self.vip = shape, f"{NETWORK}.250" if self.controls > 1 else None
        self.dir = WORK / shape
        self.name = "bench" + shape.replace("+", "-")
        self.dir.mkdir(parents=True, exist_ok=True)
        api = f"  api: {{vip: {self.vip}}}\n" if self.vip else ""
        (self.dir / "cluster.yaml").write_text(
            f"apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {self.name}}}\nspec:\n  kubernetes: {KUBERNETES}\n"
            f"  provider: {{local: {{network: {NETWORK}.0/24}}}}\n{api}  pools:\n"
            f"    - {{name: control, roles: [control-plane, etcd], count: {self.controls}}}\n    - {{name: worker, count: {self.workers}}}\n")
        self.control = [f"control-{i + 1}" for i in range(self.controls)]
        self.worker = [f"worker-{i + 1}" for i in range(self.workers)]
        self.all = self.control + self.worker
        self.address = {}
        self.program = "slipway"

    def slipway(self, *args, check=True):
        r = subprocess.run([PROGRAMS[self.program], *args], cwd=self.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if check and r.returncode:
            sys.exit(f"bench: slipway {' '.join(args)} failed:\n{r.stderr[-4000:]}")
        return r

    def run(self, node, script, given=None, check=True):
        """A shell script on a node."""
        state = self.dir / ".slipway" / self.name
        ssh = ["ssh", "-i", state / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={state / 'known_hosts'}", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
               f"root@{self.address[node]}", "bash", "-c", "'" + script.replace("'", "'\\''") + "'"]
        r = subprocess.run([str(s) for s in ssh], input=given, capture_output=True)
        if check and r.returncode:
            raise RuntimeError(f"{node}: {script.strip().splitlines()[0][:60]}...: {r.stdout.decode()[-1500:]}{r.stderr.decode()[-1500:]}")
        return r.stdout.decode()

    def each(self, script, nodes=None, given=None):
        with ThreadPoolExecutor(8) as pool:
            return dict(zip(nodes or self.all, pool.map(lambda n: self.run(n, script, given), nodes or self.all)))

    def find(self):
        """Addresses and, on this computer, the root of every machine."""
        self.root = {}
        for node in self.all:
            directory = self.dir / ".slipway" / self.name / "machines" / node
            pid = next(int(re.match(r"(\d+) \d+\n?$", p.read_text())[1]) for p in directory.iterdir()
                       if p.is_file() and p.stat().st_size < 40 and re.match(r"\d+ \d+\n?$", p.read_text(errors="replace")))
            for _ in range(2):  # the keeper, systemd-nspawn, the machine's init
                pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            self.root[node] = Path(f"/proc/{pid}/root")
        for node in self.all:
            self.address[node] = next(p.split("/")[0] for p in subprocess.run(
                ["nsenter", "-t", self.root[node].parent.name, "-n", "ip", "-br", "-4", "address"], capture_output=True, text=True, check=True).stdout.split()
                if p.startswith(NETWORK + "."))


# ---- what lies there beforehand ----

SAVE = """
mkdir -p /root/bench && cd /root/bench
cp -r /etc/kube-flannel /var/lib/kube-proxy/config.conf /var/lib/kubelet/config.yaml /etc/systemd/system/kube-proxy.service .
cp /var/lib/kube-proxy/flags.env . 2>/dev/null
cp /etc/slipway/keepalived.conf /etc/systemd/system/slipway-keepalived.service . 2>/dev/null &&
  sed -i 's|script ".*"|script "/usr/bin/curl -sfk --max-time 4 -o /dev/null https://127.0.0.1:6443/readyz"|' keepalived.conf # slipway's own asks its balancer
sed -n 's/^ExecStart=//p' /etc/systemd/system/flanneld.service >flanneld.command
cp /etc/cni/net.d/10-flannel.conflist . 2>/dev/null || cp /etc/kube-flannel/cni-conf.json 10-flannel.conflist
true
"""

# Everything but programs, images, containerd and the kubelet's unit.
WIPE = """
systemctl stop kubelet kube-proxy flanneld slipway-haproxy slipway-keepalived etcd 2>/dev/null
for i in 1 2 3; do
  ctr -n k8s.io tasks ls -q | xargs -r -n1 ctr -n k8s.io tasks kill -s SIGKILL 2>/dev/null
  sleep 0.3
  ctr -n k8s.io tasks ls -q | xargs -r -n1 ctr -n k8s.io tasks rm -f >/dev/null 2>&1
  ctr -n k8s.io containers ls -q | xargs -r ctr -n k8s.io containers rm >/dev/null 2>&1
done
systemctl stop containerd
grep -oE ' /(var/lib/kubelet|run/containerd|run/netns)/[^ ]+' /proc/self/mounts | tac | xargs -r umount -l 2>/dev/null
rm -rf /etc/kubernetes /etc/etcd /etc/kube-flannel /etc/slipway /etc/cni/net.d/* /run/flannel /run/netns/* /var/lib/kubelet/* /var/lib/etcd/* /var/lib/kube-proxy /var/log/pods/* \
  /var/log/containers/* /var/lib/cni /run/containerd/io.containerd.runtime.v2.task /run/containerd/io.containerd.grpc.v1.cri /var/lib/containerd/io.containerd.grpc.v1.cri \
  /root/.kube /opt/slipway
systemctl disable kubelet kube-proxy flanneld slipway-haproxy slipway-keepalived etcd 2>/dev/null
rm -f /etc/systemd/system/{etcd,flanneld,kube-proxy,slipway-haproxy,slipway-keepalived}.service
systemctl daemon-reload
systemctl reset-failed 2>/dev/null
for l in flannel.1 cni0 $(ls /sys/class/net | grep ^veth); do ip link delete $l 2>/dev/null; done
for t in filter nat mangle; do iptables -t $t -F; iptables -t $t -X; done 2>/dev/null
conntrack -F 2>/dev/null
systemctl start containerd
[ -z "$(ctr -n k8s.io containers ls -q)" ]
"""

# For kubeadm: units and settings that need no authority; started when the node has joined.
PLACE = """
cd /root/bench
mkdir -p /etc/kube-flannel /var/lib/kube-proxy /etc/cni/net.d /etc/kubernetes /etc/slipway
cp -r kube-flannel/* /etc/kube-flannel/ && cp config.conf flags.env /var/lib/kube-proxy/ 2>/dev/null
cp kube-proxy.service /etc/systemd/system/
printf '[Service]\\nEnvironmentFile=/etc/kube-flannel/flanneld.env\\nExecStart=%s\\nRestart=always\\nRestartSec=1\\n' "$(cat flanneld.command)" >/etc/systemd/system/flanneld.service
systemctl daemon-reload
"""
PLACE_VIP = """
cd /root/bench
[ ! -e keepalived.conf ] && exit 0
mkdir -p /etc/slipway
cp keepalived.conf /etc/slipway/; chmod 600 /etc/slipway/keepalived.conf; cp slipway-keepalived.service /etc/systemd/system/
systemctl daemon-reload
systemctl start slipway-keepalived
"""
PLACE += PLACE_VIP


def prepare(m):
    """Machines that hold all programs and images, from a first up, and what only kubeadm and the probe need."""
    for left in m.dir.glob("state-*"):  # of a run that was killed
        shutil.rmtree(left)
    m.slipway("up")
    put(m)


def put(m):
    m.find()
    m.each(SAVE)
    with tempfile.TemporaryDirectory() as tmp:
        image = ROOT / "tests" / "machines" / "image.sh"
        subprocess.run(["musl-gcc", "-O2", "-static", "-o", f"{tmp}/resolve", HERE / "resolve.c"], check=True)
        subprocess.run([image, RESOLVE, f"{tmp}/resolve.tar", f"{tmp}/resolve=/resolve"], check=True)
        subprocess.run([image, f"registry.k8s.io/etcd:{ETCD}-0", f"{tmp}/etcd.tar", f"{programs('etcd')}/etcd=/usr/local/bin/etcd"], check=True)
        load = "cat >/tmp/i.tar && ctr -n k8s.io images import --label io.cri-containerd.pinned=pinned /tmp/i.tar && rm /tmp/i.tar"
        m.each(load, given=Path(f"{tmp}/resolve.tar").read_bytes())
        m.each(load, m.control, Path(f"{tmp}/etcd.tar").read_bytes())
        subprocess.run([ROOT / "tests" / "machines" / "joiner.sh", "images", f"{tmp}/images"], check=True, env=dict(os.environ, KUBERNETES=KUBERNETES))
        for name in ("kube-proxy", "flannel", "flannel-cni-plugin"):
            m.each(load, given=Path(f"{tmp}/images/{name}.tar").read_bytes())
        m.each("cat >/usr/local/bin/kubeadm && chmod 755 /usr/local/bin/kubeadm", m.worker, (programs("kubernetes", KUBERNETES) / "kubeadm").read_bytes())
    (m.dir / "prepared").touch()


# ---- the probe ----

class Api:
    """One connection to an API server, kept open."""

    def __init__(self, kubeconfig, address):
        conf = yaml.safe_load(kubeconfig)
        user, cluster = conf["users"][0]["user"], conf["clusters"][0]["cluster"]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.tls.check_hostname = False
        with tempfile.NamedTemporaryFile() as f:
            f.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
            f.flush()
            self.tls.load_cert_chain(f.name)
        self.address, self.connection = address, None

    def call(self, method, path, body=None):
        """(status, object); (0, None) when nobody answers."""
        try:
            if not self.connection:
                self.connection = http.client.HTTPSConnection(self.address, 6443, context=self.tls, timeout=5)
            self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            reply = self.connection.getresponse()
            text = reply.read()
            return reply.status, json.loads(text) if text[:1] == b"{" else text
        except (OSError, http.client.HTTPException, ValueError):
            self.connection = None
            return 0, None


def pod(node):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": node, "namespace": "default"},
            "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
                     "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "resolve", "image": RESOLVE, "imagePullPolicy": "Never", "args": ["kubernetes.default.svc.cluster.local"]}]}}


class Probe(threading.Thread):
    """Looks every 100 ms and writes down when each thing was first so, in seconds since `start`."""

    def __init__(self, m, nodes, where, kubeconfig):
        super().__init__(daemon=True)
        self.m, self.nodes, self.where, self.kubeconfig = m, nodes, where, kubeconfig
        self.seen, self.over = {}, False
        self.start_time = time.monotonic()
        self.start()

    def mark(self, what):
        self.seen.setdefault(what, time.monotonic() - self.start_time)

    def listens(self, node, port):
        with socket.socket() as s:
            s.settimeout(0.05)
            return s.connect_ex((self.m.address[node], port)) == 0

    def all_listen(self, what, nodes, port):
        if what not in self.seen and all(self.listens(n, port) for n in nodes):
            self.mark(what)

    def look_from_outside(self):
        self.all_listen("etcd listens", [n for n in self.nodes if n in self.m.control][:1], 2379)
        self.all_listen("API server listens", [n for n in self.nodes if n in self.m.control][:1], 6443)
        self.all_listen("kubelet on every node", self.nodes, 10250)
        if "fabric" not in self.seen and all((self.m.root[n] / "run/flannel/subnet.env").exists() for n in self.nodes):
            self.mark("fabric")

    def look_at_nodes(self, api):
        status, nodes = api.call("GET", "/api/v1/nodes?resourceVersion=0")
        if status != 200:
            return
        names = {n["metadata"]["name"]: n for n in nodes["items"]}
        if not set(self.nodes) <= set(names):
            return
        self.mark("registered")
        if all(any(c["type"] == "Ready" and c["status"] == "True" for c in names[n]["status"].get("conditions", [])) for n in self.nodes):
            self.mark("Ready")

    def look_at_pods(self, api):
        if "API ready" not in self.seen:
            return
        for n in self.where:
            if f"pod {n}" not in self.seen and api.call("POST", "/api/v1/namespaces/default/pods", pod(n))[0] in (201, 409):
                self.mark(f"pod {n}")
            log = next((self.m.root[n] / "var/log/pods").glob(f"default_{n}_*/resolve/0.log"), None)
            if f"resolved {n}" not in self.seen and log and "resolved" in log.read_text():
                self.mark(f"resolved {n}")
        if all(f"resolved {n}" in self.seen for n in self.where):
            self.mark("name resolved")

    def connect(self):
        text = self.kubeconfig()
        return text and Api(text, self.m.address["control-1"])

    def look_at_api(self, api):
        if "API ready" not in self.seen:
            if api.call("GET", "/readyz")[0] != 200:
                return
            self.mark("API ready")
        if "Ready" not in self.seen:
            self.look_at_nodes(api)

    def again(self, fn, until):
        """Looks until all of it was seen; with a connection of its own, for an answer may take a while."""
        api = None
        while not all(k in self.seen for k in until) and not self.over and time.monotonic() - self.start_time < LIMIT:
            begun = time.monotonic()
            api = api or self.connect()
            if api:
                fn(api)
            time.sleep(max(0.02, 0.1 - (time.monotonic() - begun)))

    def run(self):
        looks = [threading.Thread(target=self.again, args=a, daemon=True) for a in
                 ((self.look_at_api, ["API ready", "Ready"]), (self.look_at_pods, ["name resolved"]))]
        for t in looks:
            t.start()
        while any(t.is_alive() for t in looks) or ("fabric" not in self.seen and not self.over and time.monotonic() - self.start_time < LIMIT):
            self.look_from_outside()
            time.sleep(0.1)
        if all(k in self.seen for k in ("Ready", "fabric", "name resolved")):
            self.seen["usable"] = max(self.seen[k] for k in ("Ready", "fabric", "name resolved"))

    def result(self):
        self.join(LIMIT)
        self.over = True
        if "usable" not in self.seen:
            sys.exit(f"bench: not usable after {LIMIT} s; seen: {self.seen}")
        return {k: v for k, v in self.seen.items() if " control-" not in k and " worker-" not in k}


def cpu(m):
    """CPU seconds of all machines so far, where the kernel counts them."""
    total = 0
    for node in m.all:
        mine = next((line.split(":")[2] for line in (m.root[node].parent / "cgroup").read_text().splitlines() if "cpuacct" in line), None)
        if mine is None:
            return None
        total += sum(int(p.read_text()) for p in Path("/sys/fs/cgroup").glob(f"cpu*acct{mine.removesuffix('/init.scope')}/cpuacct.usage"))
    return total / 1e9


# ---- the two ways ----

def moved(m, program, there):
    """The state of one program, its bundle.lock and what its agent knows: to a place of their own (there), or back."""
    state, kept = m.dir / ".slipway" / m.name, m.dir / f"state-{program}"
    kept.mkdir(exist_ok=True)
    files = [p for p in (state if there else kept).iterdir() if p.name not in OF_MACHINES] + ([m.dir / "bundle.lock"] if there and (m.dir / "bundle.lock").exists() else [])
    for p in files:
        shutil.move(p, kept if there else m.dir if p.name == "bundle.lock" else state)
    ways = ("/var/lib/slipway", f"/root/bench/state-{program}")
    m.each("[ ! -e {0} ] || {{ rm -rf {1}; mv {0} {1}; }}".format(*(ways if there else ways[::-1])))


def change_to(m, program):
    """Another slipway, as if it had always been the only one here: what lies on the machines beforehand is its own, too."""
    if m.program != program:
        moved(m, m.program, True)
        moved(m, program, False)
        m.program = program
    forget(m)
    m.slipway("up")
    m.each(WIPE)


def forget(m):
    """That the cluster has lived: or up would rightly refuse, with no data there."""
    for name in ("born", "record.json"):
        (m.dir / ".slipway" / m.name / name).unlink(missing_ok=True)


def by_slipway(m):
    forget(m)
    kubeconfig = m.slipway("kubeconfig").stdout
    probe = Probe(m, m.all, m.worker, lambda: kubeconfig)
    m.slipway("up")
    ended = time.monotonic() - probe.start_time
    return {**probe.result(), "up ended": ended}


def filled(name, values):
    """A manifest that slipway itself applies."""
    text = (ROOT / "src/addon/templates" / name).read_text()
    text = re.sub(r"\{\{#dnsAll\}\}\n(.*?)\{\{/dnsAll\}\}\n", lambda b: b[1].replace("{{.}}", values["dns"]), text, flags=re.S)
    text = re.sub(r"\{\{\{(\w+)\}\}\}", lambda v: values[v[1]], text)
    return re.sub(r"( *)\{\{(\w+)(?:\|indent \d+)?\}\}", lambda v: v[1] + str(values[v[2]]).replace("\n", "\n" + v[1]), text)


def documents(m):
    """CoreDNS and the fabric's rights."""
    image = m.run("control-1", "ctr -n k8s.io images ls -q | grep -m1 coredns").strip()
    return filled("coredns.yaml", {"domain": "cluster.local", "upstream": "/etc/resolv.conf", "replicas": "2", "dns": "10.96.0.10", "familyPolicy": "SingleStack",
                                   "image": image}) + "\n---\n" + filled("flannel.yaml", {})


def daemon_set(m):
    """flannel as pods, as its own manifest has it."""
    images = m.run("control-1", "ctr -n k8s.io images ls -q").split()
    values = {"conflist": m.run("control-1", "cat /root/bench/10-flannel.conflist").strip(), "netConf": m.run("control-1", "cat /root/bench/kube-flannel/net-conf.json").strip(),
              "image": next(i for i in images if "/flannel:" in i), "pluginImage": next(i for i in images if "/flannel-cni-plugin:" in i), "iface": "--iface=$(NODE_IP)",
              "apiHost": m.vip or m.address["control-1"], "apiPort": '"6443"', "digest": "bench"}
    return filled("flannel.yaml", {}) + "\n---\n" + filled("joined-flannel.yaml", values)


def join_config(m, node, control):
    more = f"controlPlane: {{localAPIEndpoint: {{advertiseAddress: {m.address[node]}}}, certificateKey: {CERT_KEY}}}\n" if control else ""
    return (f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\nnodeRegistration: {registration(m, node)}\n{more}"
            f"discovery: {{bootstrapToken: {{token: {TOKEN}, apiServerEndpoint: \"{m.vip or m.address['control-1']}:6443\", unsafeSkipCAVerification: true}}}}\n"
            f"timeouts: {TIMEOUTS}\n").encode()


def registration(m, node):
    return (f"{{name: {node}, criSocket: unix:///run/containerd/containerd.sock, ignorePreflightErrors: [all], "
            f"kubeletExtraArgs: [{{name: node-ip, value: {m.address[node]}}}]}}")


TIMEOUTS = "{controlPlaneComponentHealthCheck: 15m, kubeletHealthCheck: 15m, etcdAPICall: 10m, tlsBootstrap: 15m, discovery: 15m, kubernetesAPICall: 10m}"


# Of the kubelet's configuration as slipway renders it here: what such a machine needs, with its eviction by amounts: the disk is the computer's.
KUBELET_KEPT = ("apiVersion", "kind", "cgroupDriver", "failCgroupV1", "oomScoreAdj", "evictionHard", "imageGCHighThresholdPercent")


def init_config(m):
    kept = {k: v for k, v in yaml.safe_load(m.run("control-1", "cat /root/bench/config.yaml")).items() if k in KUBELET_KEPT}
    proxy = {k: v for k, v in yaml.safe_load(m.run("control-1", "cat /root/bench/config.conf")).items() if k in ("apiVersion", "kind", "conntrack", "oomScoreAdj", "mode")}
    dns = m.run("control-1", "ctr -n k8s.io images ls -q | grep -m1 coredns").strip().split(":")[1]
    return (f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {{advertiseAddress: {m.address['control-1']}}}\n"
            f"nodeRegistration: {registration(m, 'control-1')}\nbootstrapTokens: [{{token: {TOKEN}}}]\ncertificateKey: {CERT_KEY}\ntimeouts: {TIMEOUTS}\n---\n"
            f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v{KUBERNETES}\nencryptionAlgorithm: ECDSA-P256\n"
            f"controlPlaneEndpoint: {m.vip or m.address['control-1']}:6443\nnetworking: {{podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}}\n"
            f"dns: {{imageTag: {dns}}}\netcd: {{local: {{imageTag: {ETCD}-0}}}}\n---\n" + yaml.safe_dump(kept) + "---\n" + yaml.safe_dump(proxy)).encode()


KUBECONFIGS = """
for u in flannel kube-proxy; do
  user=system:$u; [ $u = kube-proxy ] || user=bench:flannel
  kubeadm kubeconfig user --client-name $user --config /root/bench/init.yaml >/root/bench/$u.kubeconfig 2>/dev/null
done
cat /root/bench/flannel.kubeconfig; echo =====; cat /root/bench/kube-proxy.kubeconfig
"""
# One credential for flannel on all nodes, as such scripts do it.
SHARED_FLANNEL = """
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "bench:flannel"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "slipway:flannel"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "bench:flannel"}]
"""
START = """
cat >/tmp/both; sed '/^=====$/,$d' /tmp/both >/etc/kubernetes/flannel.conf; sed '1,/^=====$/d' /tmp/both >/var/lib/kube-proxy/kubeconfig.conf
cp /root/bench/10-flannel.conflist /etc/cni/net.d/
systemctl --no-block start flanneld kube-proxy
"""


def by_kubeadm(m, services=False):
    """As a careful script does it: everything that may be at the same time is, and nothing waits longer than it must."""
    m.each(PLACE if services else PLACE_VIP)
    applied = (documents(m) + SHARED_FLANNEL if services else daemon_set(m)).encode()
    m.run("control-1", "cat >/root/bench/init.yaml", init_config(m))
    for node in m.all[1:]:
        m.run(node, "cat >/root/bench/join.yaml", join_config(m, node, node in m.control))
    admin = m.root["control-1"] / "etc/kubernetes/super-admin.conf"
    probe = Probe(m, m.all, m.worker, lambda: admin.exists() and "client-key-data" in admin.read_text() and admin.read_text())
    m.run("control-1", "kubeadm init --config /root/bench/init.yaml --upload-certs" + (" --skip-phases=addon/kube-proxy,addon/coredns" if services else ""))
    steps = {"kubeadm init": time.monotonic() - probe.start_time}
    confs = m.run("control-1", KUBECONFIGS).encode() if services else None

    def start(node):
        if services:
            m.run(node, START, confs)

    def join(node):
        m.run(node, "kubeadm join --config /root/bench/join.yaml")
        start(node)
        steps[f"{node} joined"] = time.monotonic() - probe.start_time

    def controls():
        for node in m.control[1:]:
            join(node)

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(start, "control-1"), pool.submit(controls)] + [pool.submit(join, n) for n in m.worker]
        jobs.append(pool.submit(m.run, "control-1", "kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - >/dev/null", applied))
        for j in jobs:
            j.result()
    return {**probe.result(), **steps}


def by_hand(m):
    """The floor: the files that slipway put on the first control plane, its etcd and pods gone, all units started at once, objects applied by kubectl."""
    applied = documents(m).replace("replicas: 2", "replicas: 1").encode()
    units = "etcd slipway-haproxy kubelet kube-proxy flanneld"
    m.each(HAND, ["control-1"])
    admin = m.root["control-1"] / "etc/kubernetes/super-admin.conf"
    probe = Probe(m, ["control-1"], ["control-1"], admin.read_text)
    m.run("control-1", f"systemctl --no-block start {units}; until kubectl --kubeconfig /etc/kubernetes/super-admin.conf get --raw /readyz >/dev/null 2>&1; do sleep 0.1; done; "
          "kubectl --kubeconfig /etc/kubernetes/super-admin.conf apply -f - >/dev/null", applied)
    return probe.result()


# WIPE without the files that slipway put there.
HAND = re.sub(r"\nrm -rf .*?/opt/slipway\n", "\nrm -rf /run/flannel /run/netns/* /etc/cni/net.d/* /var/lib/etcd/* /var/lib/kubelet/pods /var/log/pods/* /var/lib/cni "
              "/run/containerd/io.containerd.runtime.v2.task /run/containerd/io.containerd.grpc.v1.cri /var/lib/containerd/io.containerd.grpc.v1.cri\n", WIPE, flags=re.S)
HAND = "\n".join(line for line in HAND.splitlines() if not line.startswith(("systemctl disable", "rm -f /etc/systemd")))

WAYS = {"kubeadm": by_kubeadm, "services": lambda m: by_kubeadm(m, services=True)} | {program: by_slipway for program in PROGRAMS}


def measure(shape, rounds, only, keep):
    """{way: the round with the median time}; for one control plane also the floor."""
    m = Machines(shape)
    if not keep:  # a run before this one may have been killed
        m.slipway("down", check=False)
    results = {}
    try:
        print(f"{shape}: machines, programs and images ...", flush=True)
        if keep and (m.dir / "prepared").exists():
            m.find()
        elif keep and (m.dir / ".slipway").exists():
            put(m)
        else:
            prepare(m)
        ways = [w for w in WAYS if w in (only or WAYS)]
        for turn in range(rounds):
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)] if ways else []:  # who comes first changes
                m.each(WIPE)
                if way in PROGRAMS and len(PROGRAMS) > 1:
                    change_to(m, way)
                before = cpu(m)
                found = WAYS[way](m)
                found["CPU"] = cpu(m) - before if before is not None else 0
                print(f"{shape}: {way}: " + ", ".join(f"{k} {v:.1f}" for k, v in sorted(found.items(), key=lambda i: i[1])), flush=True)
                results.setdefault(way, []).append(found)
        if m.controls == 1 and "floor" in (only or ["floor"]):
            if only or rounds > 1:
                m.each(WIPE)
                by_slipway(m)
            results["floor"] = [by_hand(m)]
            print(f"{shape}: floor: " + ", ".join(f"{k} {v:.1f}" for k, v in sorted(results["floor"][0].items(), key=lambda i: i[1])), flush=True)
    finally:
        if not keep:
            m.slipway("down", check=False)
    return {way: sorted(r, key=lambda f: f["usable"])[len(r) // 2] for way, r in results.items()}


def beside_before(shape, found):
    """The two versions in one line; nothing when one was not measured."""
    if not {"slipway", "before"} <= set(found):
        return []
    ratios = [f"{found['slipway'][k] / found['before'][k]:.3f} {what} ({found['slipway'][k]:.1f} against {found['before'][k]:.1f})"
              for k, what in (("usable", "of the time until it is usable"), ("up ended", "until `up` has ended"), ("CPU", "of the CPU seconds")) if found["before"].get(k)]
    return [f"{shape}, against the version before (medians): " + ", ".join(ratios)]


# ---- the page ----

ROWS = (("etcd listens", "etcd listens"), ("API server listens", "API server listens"), ("API ready", "API server ready"), ("kubeadm init", "`kubeadm init` has ended"),
        ("kubelet on every node", "a kubelet on every node"), ("registered", "every node registered"), ("fabric", "fabric on every node"), ("Ready", "every node Ready"),
        ("name resolved", "a name resolved on every worker"), ("usable", "**usable**"), ("up ended", "`up` has verified it all and ended"), ("CPU", "CPU seconds of the machines until its end"))


def table(shape, found):
    ways = [w for w in ("kubeadm", "services", "before", "slipway", "floor") if w in found]
    head = {"kubeadm": "kubeadm script", "services": "kubeadm, host services", "before": "`slipway up` before", "slipway": "`slipway up`", "floor": "by hand, one node"}
    lines = ["", f"Seconds from the start to each thing, {shape}:", "", "| | " + " | ".join(head[w] for w in ways) + " |", "|---|" + "---|" * len(ways)]
    for key, text in ROWS:
        if any(key in found[w] for w in ways):
            lines.append(f"| {text} | " + " | ".join(f"{found[w][key]:.1f}" if key in found[w] else "" for w in ways) + " |")
    return lines


def lines(found):
    out = ["| what | measured | wanted | seconds |", "|---|---|---|---|"]
    for shape, f in found.items():
        for way, what, wanted in (("kubeadm", "`kubeadm init` and joins", f"at most {WANTED.get(shape, 0.4):.2f}"), ("services", "the same with flannel and kube-proxy as services", "")):
            a, b = f["slipway"]["usable"], f[way]["usable"]
            out.append(f"| {shape.replace('+', ' control plane(s) + ')} workers, against {what} | **{a / b:.2f} of its time** | {wanted} | {a:.1f} s against {b:.1f} s |")
    for shape, f in found.items():
        out += [*table(shape, f), *([""] + beside_before(shape, f) if "before" in f else [])]
    return [*out, "", *NOTE]


def section(shapes=("1+2", "3+2"), rounds=None, only=None, keep=False):
    """Three rounds, the median of each way: computers are noisy."""
    found = {shape: measure(shape, rounds or 3, only, keep) for shape in shapes}
    if not keep:
        shutil.rmtree(WORK, ignore_errors=True)
    if only:
        return [line for shape, f in found.items() for line in [*table(shape, f), "", *beside_before(shape, f)]]
    return lines(found)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shape", action="append")
    p.add_argument("--rounds", type=int)
    p.add_argument("--only", action="append", choices=(*WAYS, "floor"))
    p.add_argument("--keep", action="store_true", help="use the machines of a run before, and leave them")
    o = p.parse_args()
    print("\n".join(section(o.shape or ["1+2", "3+2"], o.rounds, o.only, o.keep)))


NOTE = [re.sub(r"\s+", " ", part).strip() for part in __doc__.split("\n\n")[2:3]] + ["", "Usable: " + re.sub(r"\s+", " ", __doc__.split("\n\n")[3]).removeprefix("Usable, ").strip()]


if __name__ == "__main__":
    main()
