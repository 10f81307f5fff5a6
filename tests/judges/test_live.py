"""A control plane started from a rendered tree exactly as it is: every file at its path (chroot), every address there (a network of
its own). It then judges, as an API server does, the manifests of all cases."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from conftest import Programs, find

EXPECTED = Path(__file__).resolve().parent.parent / "golden" / "nodes"
CASE, NODE, ADDRESS = "one-machine", "one", "192.0.2.11"
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")


class Machine:
    """A root directory and a network namespace; programs in it end with it."""

    def __init__(self, root, logs):
        self.root, self.logs, self.running = root, logs, []
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.05)
        self.inside("ip", "link", "set", "lo", "up")
        self.inside("ip", "addr", "add", f"{ADDRESS}/24", "dev", "lo")

    def command(self, cmd, chroot):
        into = ["nsenter", "-n", "-t", str(self.holder.pid)]
        return [*into, *(["chroot", str(self.root)] if chroot else []), *map(str, cmd)]

    def inside(self, *cmd, chroot=False, check=True, **kwargs):
        return subprocess.run(self.command(cmd, chroot), check=check, capture_output=True, text=True, timeout=900, **kwargs)

    def start(self, name, *cmd, chroot=True):
        with open(self.logs / name, "wb") as log:
            self.running.append((name, subprocess.Popen(self.command(cmd, chroot), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)))

    def wait(self, what, test, seconds=900):
        end = time.monotonic() + seconds
        while not test():
            for name, p in self.running:
                assert p.poll() is None, f"{name} ended: {(self.logs / name).read_text()[-3000:]}"
            assert time.monotonic() < end, f"{what}: not after {seconds} s\n" + "\n".join(f"--- {n}\n{(self.logs / n).read_text()[-2000:]}" for n, _ in self.running)
            time.sleep(0.3)

    def pause(self, seconds):
        """So long, and nothing that runs may end."""
        end = time.monotonic() + seconds
        self.wait("a while", lambda: time.monotonic() >= end)

    def end(self):
        for _, p in reversed(self.running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        self.holder.kill()
        self.holder.wait()


def command(root, manifest):
    return yaml.safe_load((root / "etc/kubernetes/manifests" / f"{manifest}.yaml").read_text())["spec"]["containers"][0]["command"]


@pytest.fixture(scope="module")
def live(rendered, tmp_path_factory):
    base = tmp_path_factory.mktemp("live")
    root = base / "root"
    (base / "logs").mkdir()
    shutil.copytree(rendered(CASE) / NODE / "root", root, symlinks=True)
    (root / "bin").mkdir(exist_ok=True)
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        shutil.copy(Programs.upstream(name), root / "bin")
    for name in ("tmp", "var/lib/etcd", "usr/share/ca-certificates"):
        (root / name).mkdir(parents=True, exist_ok=True)
    m = Machine(root, base / "logs")
    try:
        conf = base / "haproxy.cfg"  # it runs outside of the root, where its libraries are
        conf.write_text((root / "etc/slipway/haproxy.cfg").read_text().replace("lua-load /", f"lua-load {root}/").replace("ca-file /", f"ca-file {root}/"))
        m.start("haproxy", Programs.system("haproxy"), "-db", "-f", conf, chroot=False)
        for name in CONTROLLERS:
            m.start(name, f"/bin/{name}", *command(root, name)[1:])
        m.pause(10)  # longer than the balancer holds a connection
        m.start("etcd", "/bin/etcd", "--config-file", "/etc/etcd/etcd.yaml")
        m.start("kube-apiserver", f"/bin/{command(root, 'kube-apiserver')[0]}", *command(root, "kube-apiserver")[1:])
        m.wait("the API server is ready", lambda: kubectl(m, "get", "--raw", "/readyz", check=False).stdout == "ok")
        yield m
    finally:
        m.end()


def kubectl(m, *args, conf="super-admin", check=True, **kwargs):
    return m.inside("/bin/kubectl", f"--kubeconfig=/etc/kubernetes/{conf}.conf", *args, chroot=True, check=check, **kwargs)


def test_api_server_is_ready(live):
    """etcd and the API server from their files as they are, asked with a kubeconfig as it is."""
    said = kubectl(live, "get", "--raw", "/readyz?verbose").stdout
    assert "readyz check passed" in said and "[+]etcd ok" in said


def test_controllers_lead(live):
    """controller-manager and scheduler from their files as they are, started long before there is an API, wait for it and become leaders."""
    for name in CONTROLLERS:
        live.wait(f"{name} leads", lambda: kubectl(live, "get", "lease", "-n", "kube-system", name, "-o", "jsonpath={.spec.holderIdentity}", check=False).stdout)
    live.wait("service accounts are made", lambda: kubectl(live, "get", "serviceaccount", "-n", "kube-system", "default", check=False).returncode == 0)


def test_component_clients_are_who_they_are(live):
    """Each kubeconfig is taken for its user: the certificates say so, and the API server agrees."""
    who = {"admin": "kubernetes-admin", "super-admin": "kubernetes-super-admin", "controller-manager": "system:kube-controller-manager", "scheduler": "system:kube-scheduler",
           "kubelet": f"system:node:{NODE}"}
    for conf, user in who.items():
        said = json.loads(kubectl(live, "auth", "whoami", "-o", "json", conf=conf).stdout)
        assert said["status"]["userInfo"]["username"] == user


def flatcar_check(live, port=6443):
    """The question that keepalived's pod asks on Flatcar, by openssl (the image may have no curl), with this tree's files: its status."""
    script = next(line for line in (EXPECTED / "openstack-flatcar/expected/control-1/root/etc/slipway/keepalived.conf").read_text().splitlines() if "script \"" in line)
    question = script[script.index("(echo GET"):script.rindex("'\"")].replace("/etc/slipway/", f"{live.root}/etc/slipway/").replace(":6443", f":{port}")
    return live.inside("sh", "-c", question, check=False).returncode


def test_what_keepalived_asks(live):
    """Ready when the API server is; and who else has a certificate, on whatever port, is not it."""
    assert flatcar_check(live) == 0
    assert flatcar_check(live, 1) != 0
    key, crt = live.logs / "liar.key", live.logs / "liar.crt"
    live.inside("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", crt, "-subj", "/CN=kubernetes",
                "-addext", "subjectAltName=DNS:kubernetes,IP:127.0.0.1", "-days", "2")
    liar = ("import http.server, ssl\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(self):\n  self.send_response(200, 'OK'); self.end_headers(); self.wfile.write(b'ok')\n"
            f"s = http.server.HTTPServer(('127.0.0.1', 16443), H)\nc = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\nc.load_cert_chain('{crt}', '{key}')\n"
            "s.socket = c.wrap_socket(s.socket, server_side=True)\ns.serve_forever()\n")
    live.start("liar", sys.executable, "-c", liar, chroot=False)
    live.wait("the liar answers", lambda: live.inside("curl", "-sk", "https://127.0.0.1:16443/readyz", check=False).stdout == "ok")
    assert flatcar_check(live, 16443) != 0


def test_bootstrap_objects(live):
    """Whatever the node holds as objects for the API is taken by it."""
    objects = [p for p in (live.root / "etc/slipway").rglob("*.yaml") if p.read_text().lstrip().startswith("apiVersion")]
    for path in objects:
        kubectl(live, "apply", "--dry-run=server", "--validate=strict", "-f", "/" + str(path.relative_to(live.root)))


def test_manifests(case, live, rendered):
    """Static pods of every case, field by field."""
    live.wait("service accounts are made", lambda: kubectl(live, "get", "serviceaccount", "-n", "kube-system", "default", check=False).returncode == 0)
    paths = [p for _, p in find(rendered(case), "etc/kubernetes/manifests/*.yaml")]
    assert paths
    pods = [yaml.safe_load(p.read_text()) for p in paths]  # asked for at once: a kubectl is slow to start
    said = kubectl(live, "create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-", input="\n---\n".join(map(json.dumps, pods)), check=False)
    assert said.returncode == 0 and "Warning" not in said.stderr, f"{paths}: {said.stderr}"
    assert len(said.stdout.splitlines()) == len(pods)
