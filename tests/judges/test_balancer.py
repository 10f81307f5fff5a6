"""Who is taken for an API server: haproxy as it is rendered, and in the API server's place somebody with a certificate. keepalived asks it as it would."""
import re
import shutil
import subprocess
import sys

import pytest

from conftest import Programs
from test_live import Machine

CASE, NODE, ADDRESS = "ha-vip", "cp2", "192.0.2.12"
SERVER = """\
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer((sys.argv[1], 6443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def machine(rendered, tmp_path_factory):
    base = tmp_path_factory.mktemp("balancer")
    root = base / "root"
    (base / "logs").mkdir()
    shutil.copytree(rendered(CASE) / NODE / "root", root, symlinks=True)
    m = Machine(root, base / "logs")
    try:
        m.inside("ip", "addr", "add", f"{ADDRESS}/24", "dev", "lo")
        conf = base / "haproxy.cfg"
        conf.write_text((root / "etc/slipway/haproxy.cfg").read_text().replace("lua-load /", f"lua-load {root}/").replace("ca-file /", f"ca-file {root}/"))
        m.start("haproxy", Programs.system("haproxy"), "-db", "-f", conf, chroot=False)
        m.check = re.search(r'script "(.*)"\n', (root / "etc/slipway/keepalived.conf").read_text())[1]
        m.wait("haproxy answers", lambda: m.inside("bash", "-c", "cat </dev/tcp/127.0.0.3/343", check=False).stdout == "no\n")
        yield m
    finally:
        m.end()


def holds(m):
    """What keepalived's own question says."""
    return m.inside("sh", "-c", m.check, check=False).returncode == 0


def served(m, name, crt, key):
    """haproxy's word while that certificate serves 200 on the API server's port; it looks twice a second."""
    m.start(name, sys.executable, "-c", SERVER, ADDRESS, crt, key, chroot=False)
    _, process = m.running[-1]
    try:
        m.wait(f"{name} serves", lambda: m.inside("curl", "-sk", f"https://{ADDRESS}:6443/readyz", check=False).stdout == "ok")
        said = []
        for _ in range(10):
            m.pause(0.5)
            said.append(holds(m))
            if said[-1]:
                break
        api = m.inside("curl", "-s", "--max-time", "20", "--cacert", m.root / "etc/slipway/api-ca.crt", "https://127.0.0.1:7443/readyz", check=False).stdout
        return said[-1], api == "ok"
    finally:
        m.running.pop()
        process.kill()
        process.wait()


def test_a_stranger(machine, tmp_path):
    """A certificate that says all the right names, and is signed by itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", tmp_path / "k", "-out", tmp_path / "c", "-days", "2",
                    "-subj", "/CN=kube-apiserver", "-addext", f"subjectAltName=DNS:kubernetes,DNS:{NODE},IP:{ADDRESS},IP:127.0.0.1"], check=True, capture_output=True)
    assert served(machine, "stranger", tmp_path / "c", tmp_path / "k") == (False, False)


def test_a_kubelet(machine):
    """The cluster's own signature on another's name."""
    pki = machine.root / "var/lib/kubelet/pki"
    assert served(machine, "kubelet", pki / "kubelet.crt", pki / "kubelet.key") == (False, False)


def test_the_api_server(machine):
    pki = machine.root / "etc/kubernetes/pki"
    assert served(machine, "apiserver", pki / "apiserver.crt", pki / "apiserver.key") == (True, True)


def test_the_answer_is_nobody_elses(machine):
    """While haproxy is down, another user cannot answer keepalived in its place."""
    name, process = machine.running[0]
    assert name == "haproxy"
    process.kill()
    process.wait()
    machine.running.pop(0)
    assert not holds(machine)
    take = "import socket; s = socket.socket(); s.bind(('127.0.0.3', 343)); print('taken')"
    r = machine.inside("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", sys.executable if sys.executable.startswith("/usr") else "/usr/bin/python3", "-c", take, check=False)
    assert "PermissionError" in r.stderr and "taken" not in r.stdout, r.stdout + r.stderr
