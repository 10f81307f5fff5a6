"""Ways to run a cluster that are not the default, each on a small cluster of its own: how packets and services travel, which addresses there are, and what stands between the nodes and the rest.
What each one promises is seen on the nodes, besides what `slipway up` verifies."""
import hashlib
import json
import os
import socket
import ssl
import subprocess
import time

import pytest

from harness import NEWEST, PROBE, ROOT, Machines, cluster_yaml, until
from servers import ForwardProxy, Registry, Relay

NETWORK, NETWORK6 = "10.171.0", "fd00:171"
HERE = f"{NETWORK}.1"  # this computer, as the machines see it
NODES = {"control-1": f"{NETWORK}.10", "worker-1": f"{NETWORK}.40"}
PODS6, SERVICES6 = "fd00:10:244::/56", "fd00:10:96::/112"
AGENT = os.environ.get("AGENT") or ROOT / "build" / "src" / "agent" / "agent"
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]


def spec(more="", network=f"{NETWORK}.0/24"):
    return f"""\
  kubernetes: {NEWEST}
  provider: {{local: {{network: {network}}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
    - {{name: worker, count: 1}}
""" + more


def made(m):
    """Up and verified; a second run changes nothing. Returns the rows of `slipway verify`."""
    begun = time.monotonic()
    r = m.slipway("up")
    assert "verify: done in" in r.stderr and f"{m.name} is up: " in r.stdout, r.stderr
    print(f"{m.name}: up in {time.monotonic() - begun:.1f} s")
    m.kubeconfig()
    assert m.ready() == {"control-1": True, "worker-1": True}
    r = m.slipway("up")
    assert r.stderr.count("apply: unchanged") == 2 and "verify: unchanged" in r.stderr, r.stderr
    answer = json.loads(m.slipway("verify", "-o", "json").stdout)
    assert answer["works"]
    m.healthy()
    return answer["checks"]


def paths(checks, check):
    return [c["to"] for c in checks if c["check"] == check]


def pod(name, image, node, policy="IfNotPresent"):
    """One that serves its name, on any node."""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 1
  tolerations: [{{operator: Exists}}]
  containers: [{{name: it, image: "{image}", imagePullPolicy: {policy}, args: [serve, "8080", {name}]}}]
"""


SERVICE = """\
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{port: 80, targetPort: 8080}], ipFamilyPolicy: PreferDualStack}
"""


def runs(m, name):
    status = json.loads(m.kubectl("get", "pod", name, "-o", "json"))["status"]
    return status["phase"] == "Running" and status


def serving(m, name="web", node="worker-1"):
    """A pod behind a Service; every address of the Service answers on both nodes. Returns (addresses of the pod, of the Service)."""
    m.kubectl("apply", "-f", "-", text=pod(name, PROBE, node) + SERVICE.replace("NAME", name))
    status = until("the pod runs", lambda: runs(m, name))
    ips = json.loads(m.kubectl("get", "service", name, "-o", "json"))["spec"]["clusterIPs"]
    for ip in ips:
        url = f"http://[{ip}]/" if ":" in ip else f"http://{ip}/"
        for host in NODES:
            until(f"{url} answers on {host}", lambda: m.on(host, f"curl -sf -m 5 {url}") == name)
    return [i["ip"] for i in status["podIPs"]], ips


def links(m, node):
    return {i["ifname"] for i in json.loads(m.on(node, "ip -j link"))}


# ---- how packets and services travel ----

def test_host_gw():
    """Each node has a route to the other's pods by its address, and nothing is wrapped."""
    with Machines("hostgw", spec("  network: {fabric: {name: flannel, backend: host-gw}}\n")) as m:
        made(m)
        ranges = dict(line.split() for line in m.kubectl("get", "nodes", "-o", r'jsonpath={range .items[*]}{.metadata.name}{" "}{.spec.podCIDR}{"\n"}{end}').splitlines())
        for node, other in (("control-1", "worker-1"), ("worker-1", "control-1")):
            routes = {r["dst"]: r for r in json.loads(m.on(node, "ip -j route"))}
            assert routes[ranges[other]]["gateway"] == NODES[other] and routes[ranges[other]]["dev"] == "host0", routes
            assert not any(name.startswith("flannel") for name in links(m, node))
            assert m.on(node, "cat /sys/class/net/cni0/mtu") == "1500", "no room is left for a wrapper"
        serving(m)


def test_nftables():
    """kube-proxy and flannel have their tables in nftables, and no chain of iptables."""
    with Machines("nft", spec("  network: {proxyMode: nftables}\n")) as m:
        made(m)
        _, (service,) = serving(m)
        for node in NODES:
            tables = m.on(node, "nft list tables").split("\n")
            assert "table ip kube-proxy" in tables and "table ip flannel-ipv4" in tables, tables
            assert service in m.on(node, "nft list table ip kube-proxy")
            assert "KUBE-SVC" not in m.on(node, "iptables-save -t nat") and "FLANNEL" not in m.on(node, "iptables-save"), "nothing of iptables"


def kernel_lacks(kind):
    """Whether a link of that kind cannot be made on this computer, whose kernel the machines share."""
    return subprocess.run(["unshare", "-n", "ip", "link", "add", "x", "type", kind], capture_output=True).returncode != 0


def test_what_the_kernel_lacks():
    """Both are said at once, before anything is changed on a node."""
    if os.path.exists("/proc/net/ip_vs") or not kernel_lacks("wireguard"):
        pytest.skip("this computer has ipvs or wireguard in its kernel")
    with Machines("lacks", spec("  network: {proxyMode: ipvs, fabric: {name: flannel, backend: wireguard}}\n")) as m:
        r = m.slipway("up", ok=4)
        for node in NODES:
            assert f"{node}: its kernel has no wireguard; set network.fabric.backend: vxlan" in r.stderr, r.stderr
            assert f"{node}: its kernel has no ipvs; set network.proxyMode: nftables" in r.stderr, r.stderr
            assert m.on(node, "ls /etc/kubernetes /etc/slipway 2>/dev/null", check=False).stdout == "", "nothing was changed"


# ---- which addresses there are ----

def addresses(m, node):
    """What the API has for a Node."""
    status = json.loads(m.kubectl("get", "node", node, "-o", "json"))["status"]
    return [a["address"] for a in status["addresses"] if a["type"] == "InternalIP"]


def host_families(m, node):
    return {a["family"] for i in json.loads(m.on(node, "ip -j address show dev host0")) for a in i["addr_info"] if a["scope"] == "global"}


def server_names(host, port=6443):
    """The names in the certificate of an API server."""
    pem = ssl.get_server_certificate((host, port))
    return subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"], input=pem, capture_output=True, text=True, check=True).stdout


def six(address):
    """As certificates show it: every group, without leading zeros."""
    return ":".join(f"{int.from_bytes(socket.inet_pton(socket.AF_INET6, address)[i:i + 2], 'big'):X}" for i in range(0, 16, 2))


RULES = ", proxyMode: nftables, fabric: {name: flannel, backend: host-gw}"


def left(m, node):
    """What the kernel of a node has of pods and Services: links, routes, rules."""
    routes = m.on(node, "ip -4 -o route; ip -6 -o route").splitlines()
    found = [r for r in routes if r.startswith(("10.244.", "fd00:10:244:"))] + [name for name in links(m, node) if name not in ("lo", "host0")]
    return found + [t for t in m.on(node, "nft list tables").splitlines() if "kube-proxy" in t or "flannel" in t]


@pytest.mark.parametrize("more, order", [("", (4, 6)), ("", (6, 4)), (RULES, (4, 6))], ids=["ipv4-first", "ipv6-first", "host-gw-nftables"])
def test_dual_stack(more, order):
    """Nodes, pods and Services have an address of each family, in that order, and both are verified."""
    both = f'[{NETWORK}.0/24, "{NETWORK6}::/112"]'
    pods, services = ({4: "10.244.0.0/16", 6: PODS6}, {4: "10.96.0.0/16", 6: SERVICES6})
    ranges = f'pods: ["{pods[order[0]]}", "{pods[order[1]]}"], services: ["{services[order[0]]}", "{services[order[1]]}"]'
    with Machines("dual", spec(f"  network: {{{ranges}{more}}}\n", both)) as m:
        checks = made(m)
        for check, count in (("pod to pod", 4), ("service address", 4)):
            found = paths(checks, check)
            assert len(found) == count and sum("[" in to for to in found) == count / 2, found
        sixes = [family == 6 for family in order]
        for node in NODES:
            assert host_families(m, node) == {"inet", "inet6"}
            assert [":" in a for a in addresses(m, node)] == sixes
            assert {"flannel.1", "flannel-v6.1"} & links(m, node) == (set() if more else {"flannel.1", "flannel-v6.1"})
            tables = set(m.on(node, "nft list tables").splitlines())
            assert bool(more) == ({"table ip kube-proxy", "table ip6 kube-proxy"} <= tables), tables
        own, service = serving(m)
        assert [":" in a for a in own] == [":" in a for a in service] == sixes, (own, service)
        dns = json.loads(m.kubectl("-n", "kube-system", "get", "service", "kube-dns", "-o", "json"))["spec"]["clusterIPs"]
        assert dns == [{4: "10.96.0.10", 6: "fd00:10:96::a"}[family] for family in order]
        assert f"IP Address:{NODES['control-1']}" in (names := server_names(NODES["control-1"])) and f"IP Address:{six(addresses(m, 'control-1')[sixes.index(True)])}" in names, names
        assert left(m, "worker-1")
        m.slipway("reset", "worker-1", "--yes", "--force")
        assert left(m, "worker-1") == []


def listeners(m, node):
    """{port: addresses} of TCP, without those of loopback."""
    found = {}
    for line in m.on(node, "ss -Hltn").splitlines():
        address, _, port = line.split()[3].rpartition(":")
        if not address.startswith("127.") and address != "[::1]":
            found.setdefault(int(port), set()).add(address)
    return found


def test_ipv6():
    """No machine has an IPv4 address but on its loopback; the API has a virtual address."""
    vip = f"{NETWORK6}::5"
    with Machines("six", spec(f'  api: {{vip: "{vip}"}}\n  network: {{pods: "{PODS6}", services: "{SERVICES6}"}}\n', f'"{NETWORK6}::/112"')) as m:
        checks = made(m)
        control = m.address("control-1")
        found = paths(checks, "pod to pod") + paths(checks, "service address")
        assert len(found) == 4 and all("[fd00:" in to for to in found), found
        for node in NODES:
            assert host_families(m, node) == {"inet6"} and addresses(m, node) == [m.address(node)]
            assert "inet " not in m.on(node, "ip address show scope global")
            assert "flannel-v6.1" in links(m, node) and "flannel.1" not in links(m, node)
            assert f"server control-1 [{control}]:6443" in m.on(node, "cat /etc/slipway/haproxy.cfg").replace('"', "")
        for port in (2379, 2380):
            assert listeners(m, "control-1")[port] == {f"[{control}]"}
        assert f"https://[{vip}]:6443" in (m.dir / "kubeconfig").read_text(), "kubectl comes by the virtual address"
        assert f" {vip}/128 " in m.on("control-1", "ip -6 -o address show dev host0")
        names = server_names(vip)
        assert f"IP Address:{six(control)}" in names and f"IP Address:{six(vip)}" in names, names
        pods, services = serving(m)
        assert all(":" in a for a in pods + services) and len(pods) == len(services) == 1
        assert m.kubectl("-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIPs}") == '["fd00:10:96::a"]'
        assert f"kubeadm join [{vip}]:6443" in m.slipway("token", "create", "--ttl", "5m").stdout
        assert f"https://[{control}]:2380" in m.slipway("etcd", "members", "-o", "json").stdout
        m.slipway("etcd", "snapshot")


# ---- what stands between the nodes and the rest ----

class Placed(Machines):
    """The machines are made first: then this computer has its address on their network, where servers can listen."""

    def __enter__(self):
        super().__enter__()
        try:
            self.power("up")
        except BaseException:
            self.__exit__()
            raise
        return self


def test_load_balancer():
    """People and machines that join come by the load balancer; the nodes, with their own, do not need it."""
    with Placed("lb", spec(f'  api: {{loadBalancer: "{HERE}:8443"}}\n')) as m:
        with Relay((HERE, 8443), [(NODES["control-1"], 6443)]) as relay:
            made(m)
            assert f"server: https://{HERE}:8443" in (m.dir / "kubeconfig").read_text()
            assert len(relay.requests()) > 0, "kubectl came by it"
            assert f"IP Address:{HERE}" in server_names(HERE, 8443)
            info = m.kubectl("-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data.kubeconfig}")
            assert f"https://{HERE}:8443" in info
            assert f"kubeadm join {HERE}:8443" in m.slipway("token", "create", "--ttl", "5m").stdout
            assert set(relay.requests()) <= {HERE}, "no node came by it"
        assert m.kubectl("get", "nodes", check=False).returncode != 0
        m.healthy()
        m.slipway("verify")


def test_load_balancer_alone():
    """Without one on each node, the nodes come by it too."""
    with Placed("alone", spec(f'  api: {{loadBalancer: "{HERE}:8443", localBalancer: false}}\n')) as m, Relay((HERE, 8443), [(NODES["control-1"], 6443)]) as relay:
        made(m)
        assert set(relay.requests()) == {HERE, *NODES.values()}
        for node in NODES:
            assert m.on(node, "systemctl is-active slipway-haproxy", check=False).stdout.strip() == "inactive"
            assert f"API=https://{HERE}:8443" in m.on(node, "cat /etc/kube-flannel/flanneld.env")
        serving(m)


def wanted_login(m):
    """What of cluster.yaml names the registry: its authority and a login from a file."""
    return f"caFile: {m.dir}/registry/ca.crt, username: {Registry.USER}, passwordFile: {m.dir}/registry/password"


def pulled(m, image, prefix):
    """A pod of the image on each node."""
    for node in NODES:
        m.kubectl("apply", "-f", "-", text=pod(f"{prefix}-{node}", image, node, "Always"))
    for node in NODES:
        until(f"{image} runs on {node}", lambda: runs(m, f"{prefix}-{node}"))


def test_registry():
    """Images that one registry has alone: under the name of a registry that it mirrors, and under its own."""
    with Placed("mirror", spec()) as m, Registry(m.dir / "registry", HERE, 5000, [f"IP:{HERE}"]) as registry:
        (m.dir / "cluster.yaml").write_text(cluster_yaml("mirror", spec(f'  registry: {{mirrors: {{images.test: "{HERE}:5000"}}, {wanted_login(m)}}}\n')))
        made(m)
        registry.push("mirrored:1", AGENT)
        registry.push("own:1", AGENT)
        assert registry.status("/v2/mirrored/tags/list", login=False) == 401 and registry.status("/v2/mirrored/tags/list", login=True) == 200
        pulled(m, "images.test/mirrored:1", "mirrored")
        pulled(m, f"{HERE}:5000/own:1", "own")
        assert registry.pulls("mirrored") == registry.pulls("own") == set(NODES.values())
        for node in NODES:
            assert set(m.on(node, "stat -c %a /etc/containerd/certs.d/*/hosts.toml").split()) == {"600"}


def package(work):
    """A Debian package and its index, as a server has them."""
    (work / "root" / "DEBIAN").mkdir(parents=True)
    control = "Package: slipway-proof\nVersion: 1\nArchitecture: all\nMaintainer: Nobody <nobody@example.net>\nDescription: came through the proxy\n"
    (work / "root" / "DEBIAN" / "control").write_text(control)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", f"{work}/root", f"{work}/it.deb"], check=True, capture_output=True)
    data = (work / "it.deb").read_bytes()
    index = control + f"Filename: ./it.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
    return {"http://packages.test/it.deb": data, "http://packages.test/Packages": index.encode()}


PASSWORD = "hunter2-and-more"


def environments(m, pattern):
    """The variables of every process of that name on the control-plane node that name a proxy, and how many processes there are."""
    pids = m.on("control-1", f"pgrep -x '{pattern}'").split()
    return [v for pid in pids for v in m.on("control-1", f"tr '\\0' '\\n' < /proc/{pid}/environ").splitlines() if "proxy" in v.lower()], len(pids)


def test_http_proxy():
    """containerd and apt use it, the traffic of the cluster does not; its password is where they read it, and nowhere else."""
    plain = f"proxy: {{http: \"http://{HERE}:3128\", https: \"http://{HERE}:3128\"}}"
    secret = plain.replace("http://1", f"http://node:{PASSWORD}@1")
    with Placed("proxied", spec()) as m, Registry(m.dir / "registry", HERE, 5000, ["DNS:images.test", f"IP:{HERE}"]) as registry, \
            ForwardProxy((HERE, 3128), {"images.test:443": (HERE, 5000)}, package(m.dir / "package")) as proxy:
        images = f"  registry: {{mirrors: {{images.test: images.test}}, {wanted_login(m)}}}\n"
        source = '  os: {files: [{path: /etc/apt/sources.list.d/modes.list, content: "deb [trusted=yes] http://packages.test ./\\n"}]PACKAGES}\n'
        (m.dir / "cluster.yaml").write_text(cluster_yaml("proxied", spec(f"  {plain}\n{images}{source.replace('PACKAGES', '')}")))
        made(m)
        assert proxy.requests() == [], "there was nothing to get"
        for program in ("kube-apiserver", "kube-controller", "kube-scheduler"):
            found, count = environments(m, program)
            assert count and f"HTTPS_PROXY=http://{HERE}:3128" in found and any(v.startswith("NO_PROXY=") for v in found), (program, found)
        registry.push("first:1", AGENT)
        pulled(m, "images.test/first:1", "first")
        assert {r[:3] for r in proxy.requests()} == {(a, "CONNECT", "images.test:443") for a in NODES.values()}, proxy.requests()

        proxy.login = f"node:{PASSWORD}"
        (m.dir / "cluster.yaml").write_text(cluster_yaml("proxied", spec(f"  {secret}\n{images}{source.replace('PACKAGES', ', packages: [slipway-proof]')}")))
        (m.dir / "cluster.yaml").chmod(0o600)
        r = m.slipway("up", "--yes")
        assert PASSWORD not in r.stdout + r.stderr
        registry.push("second:1", AGENT)
        pulled(m, "images.test/second:1", "second")
        answers = [r for r in proxy.requests() if "packages.test" in r[2] or r[3]]
        for address in NODES.values():
            assert any(r[0] == address and r[1:3] == ("CONNECT", "images.test:443") and r[3] for r in answers), "containerd, with the password"
            assert any(r[0] == address and r[2].endswith("/it.deb") and r[3] for r in answers), "the agent's apt-get, with the password"
        assert {r[2].split("/")[2] if "//" in r[2] else r[2] for r in proxy.requests()} == {"images.test:443", "packages.test"}, "nothing else came"
        for node in NODES:
            assert m.on(node, "dpkg-query -W -f '${Status}' slipway-proof") == "install ok installed"
            places = m.on(node, f"grep -rlsF {PASSWORD} /etc /var/lib/slipway /var/lib/kubelet /var/log; true").split()
            assert set(places) == {"/etc/slipway/proxy.env", "/etc/apt/apt.conf.d/95slipway-proxy"}, places
            assert m.on(node, f"stat -c %a {' '.join(places)}").split() == ["600", "600"]
        assert environments(m, "kubelet")[0] == []
        for program in ("kube-apiserver", "kube-controller", "kube-scheduler"):
            found, count = environments(m, program)
            assert count and found == [], (program, found)
        everything = m.kubectl("get", "pods,configmaps,nodes", "-A", "-o", "yaml")
        assert PASSWORD not in everything
        m.slipway("verify")
        m.healthy()
