"""A login as people do it: kubectl calls kubelogin, kubelogin opens a browser, and the browser shows dex's pages. All of them are the real ones.

Dex runs elsewhere, named by auth.oidc; or slipway runs it in the cluster (services.dex), and nothing else is set."""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

import pytest
import yaml
from browser import Browser
from harness import NEWEST, Machines, cluster_yaml, programs, until

NETWORK, ISSUER = "10.164.0", "https://10.164.0.1:5556/dex"
PASSWORD = "a test needs no secret"
HASH = "$2b$10$abcdefghijklmnopqrstuuS6PM.MrGQh.xpX4Y/JiDN4zfvhLGwSy"  # bcrypt
SECONDS = 40  # that a token is good for
REFUSED = "must be logged in to the server"
SPEC = f"  kubernetes: {NEWEST}\n" f"""\
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
  auth:
    oidc: {{issuer: "{ISSUER}", clientID: kubectl, usernameClaim: email, groupsPrefix: "dex:", caFile: oidc/ca.pem}}
    bindings:
      - {{user: vera@example.net, role: view}}
      - {{group: "dex:authors", role: edit, namespace: team-a}}
"""
OWN_NETWORK = "10.178.0"
OWN_ISSUER = f"https://{OWN_NETWORK}.10:5556"
OWN_BASE = f"  kubernetes: {NEWEST}\n" f"""\
  provider: {{local: {{network: {OWN_NETWORK}.0/24}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
"""
OWN = OWN_BASE + f"""\
  services:
    dex:
      host: {OWN_NETWORK}.10
      port: 5556
      connectors: [{{type: mockCallback, id: mock, name: Authors}}]
      passwordsFile: people.yaml
      config: {{expiry: {{idTokens: {SECONDS}s}}}}
  auth:
    bindings:
      - {{user: "oidc:vera@example.net", role: view}}
      - {{group: "oidc:authors", role: edit, namespace: team-a}}
"""
DEX = f"""\
issuer: {ISSUER}
storage: {{type: memory}}
web: {{https: "0.0.0.0:5556", tlsCert: tls.pem, tlsKey: tls-key.pem}}
expiry: {{idTokens: {SECONDS}s}}
oauth2: {{skipApprovalScreen: true}}
staticClients: [{{id: kubectl, name: kubectl, public: true, redirectURIs: ["http://localhost:8000", "http://localhost:18000"]}}]
connectors: [{{type: mockCallback, id: mock, name: Authors}}]
enablePasswordDB: true
staticPasswords:
  - {{email: vera@example.net, username: vera, userID: "1", hash: "@hash@"}}
"""
pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root"),
              pytest.mark.skipif(not shutil.which("chromium"), reason="this computer has no chromium")]


def openssl(*args, data=None):
    return subprocess.run(["openssl", *map(str, args)], input=data, capture_output=True, check=True).stdout


def certificate(path, name, *args):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{path}-key.pem", "-out", f"{path}.pem",
            "-subj", f"/CN={name}", "-days", 2, *args)


def pin(certificate):
    """By which the browser takes it."""
    public = openssl("pkey", "-pubin", "-outform", "DER", data=openssl("x509", "-in", certificate, "-noout", "-pubkey"))
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


class Dex:
    def __init__(self, directory):
        directory.mkdir(parents=True)
        certificate(directory / "ca", "test CA")
        certificate(directory / "tls", "dex", "-addext", f"subjectAltName=IP:{NETWORK}.1", "-addext", "basicConstraints=critical,CA:FALSE",
                    "-CA", directory / "ca.pem", "-CAkey", directory / "ca-key.pem")
        self.certificate = directory / "tls.pem"
        (directory / "dex.yaml").write_text(DEX.replace("@hash@", HASH))
        self.log = open(directory / "dex.log", "w")
        self.process = subprocess.Popen([programs("dex") / "dex", "serve", "dex.yaml"], cwd=directory, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


class Person:
    """A home with the kubeconfig that slipway gave out, a browser, and kubectl with kubelogin in PATH."""

    def __init__(self, cluster, home):
        self.home, self.config = home, home / "config"
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "kubectl-oidc_login").symlink_to(programs("kubelogin") / "kubelogin")
        self.url = home / "url"
        opener = home / "bin" / "xdg-open"
        opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {self.url}.new && mv {self.url}.new {self.url}\n')
        opener.chmod(0o755)
        self.config.write_text(cluster.slipway("kubeconfig", "--oidc").stdout)
        self.env = {"HOME": str(home), "PATH": f"{home}/bin:{programs('kubernetes')}:/usr/bin:/bin", "KUBECONFIG": str(self.config)}
        self.certificate = cluster.certificate

    def start(self, *args):
        self.url.unlink(missing_ok=True)
        return subprocess.Popen(["kubectl", *args], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kubectl(self, *args):
        """With what it knows: a browser must not open."""
        r = self.start(*args)
        out, err = r.communicate(timeout=300)
        assert not self.url.exists(), "kubelogin asks for another login"
        return r.returncode, out + err

    def login(self, steps, *args):
        """The first command: kubelogin opens the browser, in which `steps` are done."""
        r = self.start(*args)
        try:
            until("kubelogin opens a browser", lambda: self.url.exists() or r.poll() is not None)
            assert r.poll() is None, r.communicate()
            browser = Browser(self.home / "profile", [pin(self.certificate)])
            try:
                browser.open(self.url.read_text())
                steps(browser)
                out, err = r.communicate(timeout=300)
            finally:
                browser.close()
        finally:
            subprocess.run(["pkill", "-P", str(r.pid)])  # kubelogin, which waits at its port
            r.kill()
        self.url.unlink()
        if r.returncode and REFUSED in err:  # API servers that started before dex ask for its keys every 10 seconds
            return until("API servers have the provider's keys", lambda: (found := self.kubectl(*args)) and REFUSED not in found[1] and found, every=2)
        return r.returncode, out + err

    def token(self):
        (cache,) = [p for p in (self.home / ".kube" / "cache" / "oidc-login").iterdir() if not p.name.endswith(".lock")]
        assert cache.stat().st_mode & 0o077 == 0
        return json.loads(cache.read_text())["id_token"]


@contextmanager
def elsewhere():
    with Machines("login", SPEC) as c:
        c.issuer, dex = ISSUER, Dex(c.dir / "oidc")
        c.certificate = dex.certificate
        try:
            c.slipway("up")
            yield c
        finally:
            dex.close()


@contextmanager
def own():
    with Machines("owndex", OWN) as c:
        people = c.dir / "people.yaml"
        people.touch(mode=0o600)
        people.write_text(yaml.safe_dump([{"email": "vera@example.net", "username": "vera", "userID": "1", "hash": HASH}]))
        c.issuer, c.certificate = OWN_ISSUER, c.state / "pki" / "dex.crt"
        first = c.slipway("plan").stdout
        assert f"service slipway-dex/dex  install: {OWN_ISSUER} must lead to control-plane nodes: {OWN_NETWORK}.10" in first, first
        assert HASH not in first and "auth.oidc" not in first, "it is not complained about before it is there"
        c.slipway("up")
        yield c


@pytest.fixture(scope="module", params=[elsewhere, own])
def cluster(request):
    with request.param() as c:
        said = c.slipway("plan").stdout
        assert "the provider of auth.oidc" not in said, "its discovery document is as it should be"
        assert "service" not in said, "nothing is left to do"
        yield c


@pytest.fixture
def person(cluster, tmp_path):
    return Person(cluster, tmp_path / "home")


def with_token(person, token, *args):
    """kubectl with nothing but that token."""
    config = yaml.safe_load(person.config.read_text())
    config["users"][0]["user"] = {"token": token}
    path = person.home / "token-config"
    path.write_text(yaml.safe_dump(config))
    r = subprocess.run(["kubectl", "--kubeconfig", path, *args], env=person.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


def as_vera(browser):
    browser.click("a[href*='/auth/local']")
    browser.type("#login", "vera@example.net")
    browser.type("#password", PASSWORD)
    browser.click("#submit-login")


def as_author(browser):
    browser.click("a[href*='/auth/mock']")


def test_a_password_and_its_end(cluster, person):
    assert REFUSED in with_token(person, "none", "get", "pods")[1]
    status, said = person.login(as_vera, "-n", "kube-system", "get", "pods")
    assert status == 0 and "kube-apiserver-control-1" in said, said
    status, said = person.kubectl("create", "configmap", "mine")
    assert status and "vera@example.net" in said and "forbidden" in said
    old = person.token()
    assert with_token(person, old, "get", "pods")[0] == 0
    until("the token is refused when it has ended", lambda: REFUSED in with_token(person, old, "get", "pods")[1], every=2)
    status, said = person.kubectl("get", "pods")
    assert status == 0, said
    assert person.token() != old, "it was renewed without a browser"


def test_groups(cluster, person):
    status, said = person.login(as_author, "-n", "team-a", "create", "configmap", f"ours-{int(time.time())}")
    assert status == 0 and "created" in said, said
    claims = json.loads(base64.urlsafe_b64decode(person.token().split(".")[1] + "=="))
    assert claims["groups"] == ["authors"] and claims["iss"] == cluster.issuer
    assert "forbidden" in person.kubectl("create", "configmap", "mine")[1], "only in the namespace of the binding"
    assert "forbidden" in person.kubectl("get", "nodes")[1]


def test_a_wrong_password(cluster, person):
    def wrong(browser):
        browser.click("a[href*='/auth/local']")
        browser.type("#login", "vera@example.net")
        browser.type("#password", "no")
        browser.click("#submit-login")
        browser.see("#login-error")
        browser.type("#password", PASSWORD)
        browser.click("#submit-login")
    status, said = person.login(wrong, "get", "pods")
    assert status == 0, said


OF_OWN = pytest.mark.parametrize("cluster", [own], indirect=True, scope="module")


@OF_OWN
def test_it_is_looked_at(cluster):
    (row,) = [line for line in cluster.slipway("verify").stdout.splitlines() if line.startswith("login ")]
    assert OWN_ISSUER in row and row.endswith("works")
    assert f"login         {OWN_ISSUER}: works" in cluster.slipway("status").stdout
    assert not [p for p in cluster.state.rglob("*") if p.is_file() and HASH.encode() in p.read_bytes()], "secrets of people are nowhere but in the cluster"
    assert "hash" not in cluster.kubectl("-n", "kube-system", "get", "configmap", "slipway-services", "-o", "yaml")


@OF_OWN
def test_its_certificate_is_renewed(cluster, person):
    assert person.login(as_vera, "get", "pods")[0] == 0
    listed = cluster.slipway("certs", "list").stdout
    assert "pki/dex.crt" in listed
    before, pods = pin(cluster.certificate), cluster.kubectl("-n", "slipway-dex", "get", "pods", "-o", "name")
    cluster.slipway("certs", "renew")
    assert pin(cluster.certificate) != before
    assert cluster.kubectl("-n", "slipway-dex", "get", "pods", "-o", "name") != pods, "it was restarted with the new one"
    served = openssl("s_client", "-connect", f"{OWN_NETWORK}.10:5556", data=b"")
    (cluster.dir / "served.pem").write_bytes(served)
    assert pin(cluster.dir / "served.pem") == pin(cluster.certificate)
    time.sleep(SECONDS)
    status, said = person.kubectl("get", "pods")
    assert status == 0, "its state is in the API: the session goes on" + said


@OF_OWN
def test_taken_out_it_is_removed(cluster):
    cluster.at.joinpath("cluster.yaml").write_text(cluster_yaml("owndex", OWN_BASE))
    said = cluster.slipway("plan").stdout
    assert "service dex  remove" in said and "remove   Namespace slipway-dex" in said, said
    assert "stays    CustomResourceDefinition signingkeies.dex.coreos.com" in said, said
    cluster.slipway("up", "--yes")
    until("the namespace is gone", lambda: "slipway-dex" not in cluster.kubectl("get", "namespaces", "-o", "name"))
    assert OWN_ISSUER not in cluster.on("control-1", "cat /etc/kubernetes/authentication/config.yaml"), "API servers do not wait for it any longer"
    assert OWN_ISSUER not in cluster.slipway("status").stdout
