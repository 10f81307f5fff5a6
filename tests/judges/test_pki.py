"""The Identity, judged by OpenSSL, kubeadm, kubectl and etcd: what they refuse is wrong, whatever our own tests say."""
import re
import socket
import ssl
import subprocess

import pytest
import yaml
from upstream import NEWEST

import cases
from conftest import judge

CLUSTER = """
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: judged}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider: {ssh: {}}
  api: {vip: 192.0.2.10, names: [k8s.example.net]}
  network: {pods: [10.244.0.0/16, "fd00:244::/56"], services: [10.96.0.0/16, "fd00:96::/112"]}
  auth: {users: [{name: alice, groups: [platform, ops]}, {name: bob, admin: true}]}
  services: {dex: {host: dex.example.net, connectors: [{type: mockCallback, id: mock, name: Mock}]}}
  certificates: %s
  pools:
    - {name: control, roles: [control-plane, etcd], hosts: [{name: c1, address: 192.0.2.11, ip: [192.0.2.11, "2001:db8::11"]}]}
    - {name: worker, hosts: [{name: w1, address: 192.0.2.21, ip: [192.0.2.21, "2001:db8::21"]}]}
"""
KUBEADM = """
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {name: c1, criSocket: "unix:///run/containerd/containerd.sock"}
localAPIEndpoint: {advertiseAddress: 192.0.2.11}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
""" f"kubernetesVersion: v{NEWEST}\n" """\
certificatesDir: %s
controlPlaneEndpoint: 192.0.2.10:6443
networking: {serviceSubnet: "10.96.0.0/16,fd00:96::/112", dnsDomain: cluster.local}
apiServer: {certSANs: [k8s.example.net]}
"""
# leaf → authority, purposes
LEAVES = {
    "apiserver": ("ca", ["sslserver"]),
    "apiserver-kubelet-client": ("ca", ["sslclient"]),
    "apiserver-etcd-client": ("etcd/ca", ["sslclient"]),
    "front-proxy-client": ("front-proxy-ca", ["sslclient"]),
    "controller-manager": ("ca", ["sslclient"]),
    "scheduler": ("ca", ["sslclient"]),
    "admin": ("ca", ["sslclient"]),
    "super-admin": ("ca", ["sslclient"]),
    "etcd-server": ("etcd/ca", ["sslserver", "sslclient"]),
    "etcd-peer": ("etcd/ca", ["sslserver", "sslclient"]),
    "etcd-healthcheck-client": ("etcd/ca", ["sslclient"]),
    "kubelet-client": ("ca", ["sslclient"]),
    "kubelet-server": ("ca", ["sslserver"]),
    "kube-proxy": ("ca", ["sslclient"]),
    "flannel": ("ca", ["sslclient"]),
    "client": ("ca", ["sslclient"]),
}
ALGORITHMS = {"ecdsa-p256": "P-256", "ecdsa-p384": "P-384", "rsa-2048": "2048 bit"}


class Made:
    """One cluster rendered with its Identity: the state's directory and the nodes' trees."""

    def __init__(self, base, certificates):
        self.base, self.file, self.out, self.states = base, base / "cluster.yaml", base / "out", base / "state"
        self.state = self.states / "judged"
        self.file.write_text(CLUSTER % certificates)
        self.render()

    def render(self):
        cases.run("render", "-f", self.file, "--state", self.states, "--format", "files", "--secrets", "-d", self.out)

    def kubeconfig(self):
        return cases.run("kubeconfig", "-f", self.file, "--state", self.states).stdout

    def leaves(self):
        """(name, directory with leaf.crt and leaf.key) of every leaf in the state's files."""
        for path in sorted([*self.state.glob("nodes/*.pem"), *self.state.glob("users/*.pem"), *self.state.glob("admin.pem")]):
            for section in re.split(r"(?m)^# (?!sha256)", path.read_text())[1:]:
                name, text = section.split("\n", 1)
                into = self.base / "leaves" / path.stem / name
                into.mkdir(parents=True, exist_ok=True)
                into.joinpath("leaf.key").write_text(re.search(r"-----BEGIN [A-Z ]*PRIVATE KEY.*?PRIVATE KEY-----\n", text, re.S)[0])
                into.joinpath("leaf.crt").write_text(re.search(r"-----BEGIN CERT.*?END CERTIFICATE-----\n", text, re.S)[0])
                yield name, into

    def pki(self, node="c1"):
        return self.out / node / "root/etc/kubernetes/pki"

    def bytes(self):
        return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in self.state.rglob("*") if p.is_file() and p.name != "lock"}


@pytest.fixture(scope="module", autouse=True)
def later():
    """The identity provider in the cluster, which has a certificate here, is refused until it is installed."""
    with pytest.MonkeyPatch.context() as m:
        m.setenv("SLIPWAY_TEST_LATER", "1")
        yield


@pytest.fixture(scope="module", params=ALGORITHMS)
def made(request, tmp_path_factory):
    made = Made(tmp_path_factory.mktemp(request.param), f"{{algorithm: {request.param}}}")
    made.algorithm = ALGORITHMS[request.param]
    made.kubeconfig()
    return made


def by_authority(made):
    """{authority: [(name, certificate)]}: openssl is asked for many at once."""
    found = {}
    for name, where in made.leaves():
        found.setdefault(LEAVES[name][0], []).append((name, where / "leaf.crt"))
    return found


def test_openssl_verifies_every_leaf(made):
    assert {name for name, _ in made.leaves()} == set(LEAVES)
    for ca, leaves in by_authority(made).items():
        for purpose in ("sslserver", "sslclient"):
            of_it = [crt for name, crt in leaves if purpose in LEAVES[name][1]]
            assert not of_it or judge("openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", made.state / f"pki/{ca}.crt", *of_it).count(": OK\n") == len(of_it)
    for _, where in made.leaves():
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(where / "leaf.crt", where / "leaf.key")  # OpenSSL's word that they belong together
        assert made.algorithm in judge("openssl", "x509", "-in", where / "leaf.crt", "-noout", "-text")


def test_openssl_refuses_the_other_authorities(made):
    for ca, leaves in by_authority(made).items():
        for other in {"ca", "etcd/ca", "front-proxy-ca"} - {ca}:
            said = judge("openssl", "verify", "-CAfile", made.state / f"pki/{other}.crt", *(crt for _, crt in leaves), status=2)
            assert ": OK" not in said and said.count("verification failed") == len(leaves), said


def test_openssl_verifies_the_host_names(made):
    def verify(where, **wanted):
        for kind, names in wanted.items():
            for name in names:
                judge("openssl", "verify", "-purpose", "sslserver", f"-verify_{kind}", name, "-CAfile", made.state / "pki/ca.crt", where)
    leaves = {(path.parent.name, name): path / "leaf.crt" for name, path in made.leaves()}
    verify(leaves["c1", "apiserver"],
           hostname=["c1", "kubernetes", "kubernetes.default.svc.cluster.local", "localhost", "k8s.example.net"],
           ip=["10.96.0.1", "fd00:96::1", "192.0.2.11", "2001:db8::11", "127.0.0.1", "::1", "192.0.2.10"])
    verify(leaves["w1", "kubelet-server"], hostname=["w1"], ip=["192.0.2.21", "2001:db8::21"])
    verify(made.state / "pki/dex.crt", hostname=["dex.example.net", "dex.slipway-dex.svc"])


def test_kubeadm_takes_the_certificates_for_its_own(made, programs, tmp_path):
    """kubeadm reads every key and certificate with Go's parser, checks names, keys and chains, and makes what it does not like."""
    def copy(path):
        return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    pki = tmp_path / "pki"
    subprocess.run(["cp", "-r", made.pki(), pki], check=True)
    before = copy(pki)
    (tmp_path / "kubeadm.yaml").write_text(KUBEADM % pki)
    said = judge(programs.upstream("kubeadm"), "init", "phase", "certs", "all", "--config", tmp_path / "kubeadm.yaml")
    assert "Generating" not in said and said.count("existing") == 11, said
    assert copy(pki) == before


def test_kubeadm_knows_when_they_expire(made, programs):
    said = judge(programs.upstream("kubeadm"), "certs", "check-expiration", "--cert-dir", made.pki(), "--kubeconfig", made.base / "none.conf")
    for name in ("apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "etcd-healthcheck-client", "etcd-peer", "etcd-server", "front-proxy-client"):
        assert re.search(rf"(?m)^{name} .* 36[45]d ", said), said
    for name in ("ca", "etcd-ca", "front-proxy-ca"):
        assert re.search(rf"(?m)^{name} .* (9|10)y ", said), said


def test_kubectl_reads_the_kubeconfigs(made, programs):
    everyone = made.base / "kubeconfig"
    everyone.write_bytes(made.kubeconfig())
    confs = [everyone, *sorted(made.pki().parent.glob("*.conf"))]
    assert {"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf"} <= {c.name for c in confs}
    for conf in confs:
        seen = yaml.safe_load(judge(programs.upstream("kubectl"), "config", "view", "--minify", "--kubeconfig", conf))
        assert seen["current-context"] == f"{seen['users'][0]['name']}@{seen['clusters'][0]['name']}"
    seen = yaml.safe_load(judge(programs.upstream("kubectl"), "config", "view", "--kubeconfig", everyone))
    assert [c["name"] for c in seen["contexts"]] == ["alice@judged", "bob@judged", "kubernetes-admin@judged"]
    assert seen["clusters"][0]["cluster"]["server"] == "https://192.0.2.10:6443"
    assert seen["current-context"] == "kubernetes-admin@judged"


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def test_etcd_speaks_mutual_tls(made, programs, tmp_path):
    """A real etcd on the loopback lets its own clients in, and the cluster's admin not."""
    leaves = {(path.parent.name, name): path for name, path in made.leaves()}
    ca, server, peer = made.state / "pki/etcd/ca.crt", leaves["c1", "etcd-server"], leaves["c1", "etcd-peer"]
    client, peers = (f"https://127.0.0.1:{port}" for port in free_ports(2))
    etcd = subprocess.Popen(
        [programs.upstream("etcd"), "--data-dir", tmp_path / "data", "--name=c1", "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peers,
         "--initial-advertise-peer-urls", peers, "--initial-cluster", f"c1={peers}", "--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", server / "leaf.crt",
         "--key-file", server / "leaf.key", "--peer-client-cert-auth", "--peer-trusted-ca-file", ca, "--peer-cert-file", peer / "leaf.crt", "--peer-key-file", peer / "leaf.key"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def health(leaf, status, *more):
            where = leaves["c1", leaf]
            return judge(programs.upstream("etcdctl"), "--endpoints", client, "--cacert", ca, "--cert", where / "leaf.crt", "--key", where / "leaf.key", *more, "endpoint", "health", status=status)
        assert "is healthy" in health("etcd-healthcheck-client", 0, "--command-timeout=30s", "--dial-timeout=30s")
        assert "is healthy" in health("apiserver-etcd-client", 0, "--command-timeout=30s", "--dial-timeout=30s")
        health("admin", 1, "--command-timeout=2s", "--dial-timeout=2s")
    finally:
        etcd.kill()
        etcd.wait()


def test_a_second_run_changes_nothing(made):
    before = made.bytes()
    made.render()
    made.kubeconfig()
    assert made.bytes() == before


def openssl_authority(where):
    """A root, and an authority below it that brings its chain: made by openssl alone."""
    judge("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", where / "root.key", "-out", where / "root.crt", "-subj", "/O=Example/CN=Root", "-days", "400", "-addext", "keyUsage=critical,keyCertSign")
    judge("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-keyout", where / "ca.key", "-out", where / "ca.csr", "-subj", "/O=Example/CN=Clusters")
    (where / "ext").write_text("basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
    judge("openssl", "x509", "-req", "-in", where / "ca.csr", "-CA", where / "root.crt", "-CAkey", where / "root.key", "-days", "300", "-extfile", where / "ext", "-out", where / "ca.crt")
    (where / "chain.crt").write_text((where / "ca.crt").read_text() + (where / "root.crt").read_text())


def test_own_intermediate(programs, tmp_path):
    openssl_authority(tmp_path)
    made = Made(tmp_path, "{ca: {certificate: chain.crt, key: ca.key}}")
    apiserver = made.pki() / "apiserver.crt"
    assert apiserver.read_text().count("BEGIN CERTIFICATE") == 2  # the intermediate comes with the leaf; the root does not
    judge("openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", tmp_path / "root.crt", "-untrusted", apiserver, apiserver)
    (tmp_path / "kubeadm.yaml").write_text(KUBEADM % made.pki())
    said = judge(programs.upstream("kubeadm"), "init", "phase", "certs", "all", "--config", tmp_path / "kubeadm.yaml")
    assert "Generating" not in said, said


def test_own_authority_unfit(tmp_path):
    openssl_authority(tmp_path)
    judge("openssl", "pkey", "-in", tmp_path / "ca.key", "-aes256", "-passout", "pass:x", "-out", tmp_path / "locked.key")
    for key, why in (("locked.key", "encrypted"), ("root.key", "the key in")):
        (tmp_path / "cluster.yaml").write_text(CLUSTER % f"{{ca: {{certificate: chain.crt, key: {key}}}}}")
        r = cases.run("render", "-f", tmp_path / "cluster.yaml", "--state", tmp_path / "state", "--secrets", "-d", tmp_path / "out", status=3)
        assert why in r.stderr.decode() and not (tmp_path / "state/judged/pki").exists()
