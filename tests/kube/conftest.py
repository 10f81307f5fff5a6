"""A real etcd and a real API server on the loopback, started once; kube_tool drives src/kube against them.

The upstream programs come from `slipway programs`. KUBE_TOOL names the driver to test (the sanitizers' build has its own).
"""
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from upstream import upstream

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("KUBE_TOOL") or ROOT / "build" / "tests" / "kube" / "kube_tool")
ENV = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Authority:
    """A certificate authority in a directory, made with openssl."""

    def __init__(self, where, name="ca"):
        self.dir, self.name = where, name
        where.mkdir(parents=True, exist_ok=True)
        self.key(name)
        self.openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-days", "10", "-out", f"{name}.crt")

    def openssl(self, *args):
        r = subprocess.run(["openssl", *args], cwd=self.dir, capture_output=True, text=True)
        assert r.returncode == 0, r.stderr

    def key(self, name):
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def leaf(self, name, subject, *, server=False, expired=False, names="IP:127.0.0.1,DNS:localhost"):
        """expired: it was good for a day, nine days ago (openssl ca takes dates; x509 of Debian 12 does not)."""
        self.key(name)
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        usage = f"extendedKeyUsage={'serverAuth' if server else 'clientAuth'}\n" + (f"subjectAltName={names}\n" if server else "")
        (self.dir / f"{name}.ext").write_text(usage)
        if not expired:
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.crt", "-CAkey", f"{self.name}.key", "-CAcreateserial", "-days", "5",
                         "-extfile", f"{name}.ext", "-out", f"{name}.crt")
            return self.dir / f"{name}.crt", self.dir / f"{name}.key"
        (self.dir / "index.txt").write_text("")
        (self.dir / "ca.conf").write_text("[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n"
                                          "[p]\norganizationName=optional\ncommonName=supplied\n")
        day = lambda ago: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() - ago * 86400))  # noqa: E731
        self.openssl("ca", "-batch", "-config", "ca.conf", "-cert", f"{self.name}.crt", "-keyfile", f"{self.name}.key", "-in", f"{name}.csr", "-extfile", f"{name}.ext",
                     "-startdate", day(9), "-enddate", day(8), "-notext", "-out", f"{name}.crt")
        return self.dir / f"{name}.crt", self.dir / f"{name}.key"


class Control:
    """etcd and API servers; each ends by its own pid."""

    def __init__(self, where, inside=()):
        """inside: a command in front of all others, into a network of its own."""
        self.dir, self.running, self.inside = where, {}, list(inside)
        self.pki = Authority(where / "pki")
        self.pki.leaf("server", "/CN=kube-apiserver", server=True)
        self.admin = self.pki.leaf("admin", "/O=system:masters/CN=admin")
        self.ca = self.pki.dir / "ca.crt"
        self.ports = [free_port(), free_port(), free_port(), free_port()]
        self.servers = [f"https://127.0.0.1:{p}" for p in self.ports[:2]]
        self.etcd_url = f"http://127.0.0.1:{self.ports[2]}"

    def start(self, name, *cmd):
        with open(self.dir / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(self.inside + [str(c) for c in cmd], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def start_etcd(self):
        peer = f"http://127.0.0.1:{self.ports[3]}"
        self.start("etcd", upstream("etcd"), "--data-dir", self.dir / "etcd", "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync")

    def start_api(self, i=0):
        p = self.pki.dir
        self.start(f"api{i}", upstream("kube-apiserver"), "--etcd-servers", self.etcd_url, "--bind-address", "127.0.0.1", "--secure-port", self.ports[i],
                   "--tls-cert-file", p / "server.crt", "--tls-private-key-file", p / "server.key", "--client-ca-file", p / "ca.crt", "--authorization-mode", "RBAC",
                   "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", p / "server.key",
                   "--service-account-signing-key-file", p / "server.key", "--service-cluster-ip-range", "10.96.0.0/16", "--disable-admission-plugins", "ServiceAccount",
                   "--shutdown-delay-duration", "0s", "--endpoint-reconciler-type", "none", "--advertise-address", "192.0.2.1")

    def stop(self, name, sig=signal.SIGKILL):
        p = self.running.pop(name)
        p.send_signal(sig)
        p.wait(900)  # a busy computer takes its time

    def target(self, servers=None, ca=None, client=None, sockets=()):
        crt, key = client or self.admin
        args = ["--ca", ca or self.ca, "--cert", crt, "--key", key]
        for i, s in enumerate(servers or self.servers[:1]):
            args += ["--server", s] + (["--socket", sockets[i]] if sockets else [])
        return [str(a) for a in args]

    def popen(self, *verb, **target):
        return subprocess.Popen([*self.inside, TOOL, *self.target(**target), *map(str, verb)], env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def tool(self, *verb, timeout=900, **target):
        """What the driver said, a value a line; the sanitizers have nothing to say."""
        return finish(self.popen(*verb, **target), timeout)

    def one(self, *verb, **kwargs):
        said = self.tool(*verb, **kwargs)
        assert len(said) == 1, said
        return said[0]

    def get(self, path, **kwargs):
        return self.one("request", "GET", path, "-", "none", 0, **kwargs)

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def apply(self, text, **kwargs):
        return self.one("apply", self.write("apply.yaml", text), **kwargs)["error"]

    def wait_ready(self, i=0):
        assert self.one("ready", 100, 60, servers=[self.servers[i]]) == "ready", (self.dir / f"api{i}.log").read_text()[-3000:]


def finish(p, timeout=900):
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        raise AssertionError(f"not done after {timeout} s: {out[-2000:]} {err[-2000:]}") from None
    assert p.returncode == 0, f"status {p.returncode}: {err[-4000:]} {out[-2000:]}"
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="session")
def control(tmp_path_factory):
    c = Control(tmp_path_factory.mktemp("control"))
    try:
        c.start_etcd()
        # The driver waits from before the API server is there: the test of it is in test_kube_calls.
        c.waited = c.popen("ready", 200, 60)
        time.sleep(0.5)
        c.start_api()
        c.waited_said = finish(c.waited)
        c.tool("apply", c.write("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: test}\n"))
        yield c
    finally:
        for name in list(c.running):
            c.stop(name)


def tool(*verb):
    return finish(subprocess.Popen([TOOL, *map(str, verb)], env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


@pytest.fixture(name="tool")
def tool_fixture():
    return tool
