"""verify against an API of the test's own, over an ssh that is a shell of this computer, with a kubectl that says what the probes would: the rows, and what becomes of each failure."""
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from paper_api import Api, paper

PROBES = "/api/v1/namespaces/slipway-verify"
PODS = {"c1": "10.244.0.7", "w1": "10.244.1.7"}
CHECKS = ["node is Ready", "pod starts", "pod to pod", "service address", "DNS", "API service", "exec", "logs"]
SSH = """\
#!/bin/sh
# the command, where nothing of this computer is changed: its own /var/lib and /usr/local/bin
for command; do :; done
exec unshare -m sh -c 'mount -t tmpfs none /var/lib && mount --bind "$1" /usr/local/bin && exec sh -c "$2"' sh {bin} "$command"
"""
KUBECTL = """\
#!/usr/bin/env python3
import sys, time
words = sys.argv[1:]
broken = [line.split(" ", 1) for line in open("{broken}").read().splitlines()]
pod = next(w for w in words if w.startswith("pod-"))
if "logs" in words:
    print("GET / from somebody")
    sys.exit()
for wrong, why in broken:
    if wrong == pod:
        time.sleep(600 if why == "nothing" else 0)
        with open("{broken}.asked", "a") as f:
            print(pod, file=f)
        if why.startswith("once ") and open("{broken}.asked").read().count(pod) > 1:
            continue
        sys.exit(why.removeprefix("once "))
nodes = {{"10.244.0.7": "c1", "10.244.1.7": "w1"}}
policy = open("{broken}.policy").read()  # the NetworkPolicy that was created last, and what does not obey
for url in words[words.index("-t") + 2:]:
    why = [w for part, w in broken if part in url and not w.startswith("policy ")]
    if words[words.index("-t") + 1] == "1":  # as the policy says, unless this node's does not work
        ignored = any(part in url and w == "policy " + policy for part, w in broken)
        why += ["timed out"] if (policy == "deny") != ignored else []
    host = url.split("/")[2].split(":")[0]
    print(f"failed {{url}}: {{why[0]}}" if why else f"ok {{url}} {{nodes.get(host, 'c1')}}")
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="this computer lets only root mount")


def node(name, ready="True"):
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def pod(name, ready=True):
    status = {"podIPs": [{"ip": PODS[name]}], "conditions": [{"type": "Ready", "status": "True"}]}
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImageNeverPull"}}}]}
    return {"metadata": {"name": f"pod-{name}"}, "spec": {"nodeName": name}, "status": status if ready else waiting}


class Running(Api):
    """With what the controllers of a cluster would put there."""
    lossy = False
    wrong = ()  # the ways through the ingress controller where something else answers

    def do_GET(self):
        if self.path.startswith(f"{PROBES}/services/probe-"):
            self.answer(200, {"spec": {"clusterIPs": ["10.96.0.77"]}})
        elif self.path.startswith(f"{PROBES}/pods/storage-") and self.path in self.objects:
            reads = self.path.endswith("reads")
            self.answer(200, {"status": {"phase": "Failed" if reads and self.lossy else "Succeeded", "reason": "Gone"}})
        elif self.path.startswith(THROUGH) and "/proxy/probe-" in self.path:
            way = self.path.removeprefix(THROUGH).split("/")[0]
            assert f"{PROBES}/ingresses/probe".replace("/api/v1/", "/apis/networking.k8s.io/v1/") in self.objects
            self.answer(200, {"unexpected": 1}) if way in self.wrong else self.said("w1\n")
        else:
            super().do_GET()

    def said(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PATCH(self):
        if "/networkpolicies/" in self.path:
            (self.place / "broken.policy").write_text(self.path.split("?")[0].rsplit("/", 1)[1])
        super().do_PATCH()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("paper")
    (path / "bin").mkdir()
    Running.place = path
    with paper(path, Running) as slipway:
        for place, text in (("ssh", SSH.format(bin=path / "bin")), ("bin/kubectl", KUBECTL.format(broken=path / "broken"))):
            (path / place).write_text(text)
            (path / place).chmod(0o755)
        yield slipway


@pytest.fixture
def verify(made):
    Api.objects = {"/api/v1/nodes": {"items": [node("c1"), node("w1")]}, f"{PROBES}/pods": {"items": [pod("c1"), pod("w1")]}}

    def run(*args, broken="", more="", **others):
        (made.path / "broken").write_text(broken)
        (made.path / "broken.asked").write_text("")
        (made.path / "broken.policy").write_text("")
        before = sorted(p.name for p in (made.path / ".slipway" / "paper").iterdir())
        r = made("verify", *args, more=more, PATH=f"{made.path}:{os.environ['PATH']}", **others)
        assert PROBES not in Api.objects, "the probes are removed"
        assert sorted(p.name for p in (made.path / ".slipway" / "paper").iterdir()) == before
        return r

    return run


def rows(r):
    return {(c["check"], c["from"]): c for c in json.loads(r.stdout)["checks"]}


def test_all_works(verify):
    r = verify("-o", "json")
    assert r.returncode == 0 and json.loads(r.stdout)["works"], r.stdout + r.stderr
    answer = rows(r)
    assert list(answer) == [(check, name) for check in CHECKS for name in ("c1", "w1")]
    assert all(c["works"] and c["why"] is None for c in answer.values())
    assert answer["pod to pod", "c1"]["to"] == "w1 (10.244.1.7:8080)" and answer["service address", "w1"]["to"] == "10.96.0.77"
    assert answer["API service", "w1"]["to"] == "kubernetes.default.svc:443" and re.fullmatch(r"probe-[0-9a-f]{6}\.slipway-verify\.svc\.cluster\.local\.", answer["DNS", "c1"]["to"])
    text = verify().stdout
    assert text.startswith("CHECK") and re.search(r"^pod to pod +c1 to w1 \(10\.244\.1\.7:8080\) +works$", text, re.M) and text.count("works") == 16, text


@pytest.mark.parametrize("broken,check,name,sentence", [
    ("10.244.1.7 no route to host\n", "pod to pod", "c1", "from a pod on c1 to the pod on w1 (10.244.1.7:8080): no route to host"),
    ("pod-w1 error: dialing backend: refused\n", "exec", "w1", "exec of a pod on w1 does not work: error: dialing backend: refused"),
])
def test_a_path_fails(verify, broken, check, name, sentence):
    """Exit status 7, the path in the sentence, what to look at in the hint, and only its row fails."""
    r = verify("-o", "json", broken=broken)
    assert r.returncode == 7 and sentence in r.stderr and "hint: " in r.stderr, r.stdout + r.stderr
    failed = [key for key, c in rows(r).items() if not c["works"]]
    assert failed == [(check, name)] and rows(r)[check, name]["why"] in sentence, r.stdout


@pytest.mark.parametrize("why,times", [
    ("once error: error dialing backend: write tcp 10.1.0.1:1->10.1.0.2:10250: use of closed network connection", 2),
    ("error: error dialing backend: dial tcp 10.1.0.2:10250: connect: connection refused", 4),
    ("error: error dialing backend: dial tcp 10.1.0.2:10250: i/o timeout", 1),
])
def test_api_server_does_not_reach_the_kubelet(verify, made, why, times):
    """Asked again a few times, because either may just have restarted; not where it only waited."""
    r = verify("-o", "json", broken=f"pod-w1 {why}\n")
    assert r.returncode == (0 if why.startswith("once ") else 7), r.stdout + r.stderr
    assert rows(r)["exec", "w1"]["works"] == why.startswith("once ")
    assert (made.path / "broken.asked").read_text().count("pod-w1") == times


def test_several_fail(verify):
    Api.objects["/api/v1/nodes"]["items"] = [node("c1"), node("w1", "Unknown")]
    Api.objects[f"{PROBES}/pods"]["items"] = [pod("c1")]
    r = verify(broken="pod-c1 refused\n")
    assert r.returncode == 7 and "2 things do not work; the first: node w1: its Node is not Ready" in r.stderr, r.stderr
    assert re.search(r"^node is Ready +w1 +its Node is not Ready$", r.stdout, re.M) and re.search(r"^exec +c1 +refused$", r.stdout, re.M), r.stdout


CALICO = {"more": "  network: {fabric: calico}\n"}


def test_network_policies(verify):
    """Each probe is blocked and let through by a policy; with a fabric that has none, nothing is asked."""
    r = verify("-o", "json", **CALICO)
    assert r.returncode == 0, r.stdout + r.stderr
    assert [(c["from"], c["to"]) for c in json.loads(r.stdout)["checks"] if c["check"] == "network policy"] == [("c1", "w1"), ("w1", "c1")]
    assert not [c for c in json.loads(verify("-o", "json").stdout)["checks"] if c["check"] == "network policy"]


def test_a_network_policy_has_no_effect(verify):
    r = verify("-o", "json", broken="10.244.1.7 policy deny\n", **CALICO)
    assert r.returncode == 7 and "from a pod on c1 to the pod on w1: a NetworkPolicy denies it, and it works" in r.stderr, r.stdout + r.stderr
    assert [(c["from"], c["works"]) for c in json.loads(r.stdout)["checks"] if c["check"] == "network policy"][0] == ("c1", False)


def test_no_node_is_there(verify):
    Api.objects["/api/v1/nodes"]["items"] = []
    r = verify("-o", "json")
    assert r.returncode == 7 and {c["why"] for c in json.loads(r.stdout)["checks"]} == {"the API has no Node of this name"}, r.stdout + r.stderr


def test_nobody_to_ask(verify, made, tmp_path):
    """Nothing is started then."""
    (tmp_path / "ssh").write_text("#!/bin/sh\necho 'Connection refused' >&2\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    before = dict(Api.objects)
    r = made("verify", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert r.returncode == 5 and "no control-plane node can be reached with ssh" in r.stderr and "slipway status" in r.stderr, r.stderr
    assert Api.objects == before


def test_ctrl_c_leaves_nothing(verify, made):
    (made.path / "broken").write_text("pod-c1 nothing\n")
    p = subprocess.Popen(made.argv("verify"), cwd=made.path, env=made.env | {"PATH": f"{made.path}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while PROBES not in Api.objects:
        assert p.poll() is None
        time.sleep(0.1)
    p.send_signal(signal.SIGINT)
    _, errors = p.communicate(timeout=60)
    assert p.returncode and PROBES not in Api.objects, errors


PROMISES = """\
  services:
    addons: [metrics-server, local-path]
"""
WEB = """\
  services:
    addons: [ingress, prometheus]
"""
THROUGH = "/api/v1/namespaces/ingress/services/"
TARGETS = "/api/v1/namespaces/prometheus/services/http:prometheus:http/proxy/api/v1/targets?state=active"
JOBS = {"prometheus": 1, "apiserver": 1, "kubelet": 2, "cadvisor": 2, "node-exporter": 2, "coredns": 1}
METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"


def test_what_addons_promise(verify):
    """Only where the file has them: test_all_works has no such rows."""
    Api.objects[METRICS] = {"items": [{"metadata": {"name": "c1"}}, {"metadata": {"name": "w1"}}]}
    r = verify("-o", "json", more=PROMISES)
    assert r.returncode == 0, r.stdout + r.stderr
    answer = rows(r)
    assert [check for check, name in answer if name in ("w1", "cluster")] == CHECKS + ["metrics", "storage"]
    assert answer["metrics", "w1"]["to"] == "metrics.k8s.io" and answer["storage", "cluster"]["to"] == "a volume of the default StorageClass"


def test_promises_that_are_not_kept(verify, monkeypatch):
    """Each failing path is named, and the others are still checked."""
    Api.objects[METRICS] = {"items": [{"metadata": {"name": "c1"}}]}
    monkeypatch.setattr(Running, "lossy", True)
    r = verify("-o", "json", more=PROMISES)
    assert r.returncode == 7 and "2 things do not work; the first: metrics of node w1 (metrics.k8s.io): there are no metrics of this node" in r.stderr, r.stderr
    failed = {key: c["why"] for key, c in rows(r).items() if not c["works"]}
    assert set(failed) == {("metrics", "w1"), ("storage", "cluster")}, failed
    assert "no metrics of this node" in failed["metrics", "w1"] and "does not find what the first pod wrote: Gone" in failed["storage", "cluster"]


def targets(**other):
    """Prometheus' answer: all targets of the jobs up, but those of `other`."""
    return {"status": "success", "data": {"activeTargets": [
        {"scrapePool": job, "scrapeUrl": f"https://10.0.0.{n}/metrics", "health": "up", "lastError": "", **(other.get(job.replace("-", "_"), {}) if n == JOBS[job] else {})}
        for job in JOBS for n in range(1, JOBS[job] + 1)]}}


def test_ingress_and_targets(verify):
    Api.objects[TARGETS] = targets()
    r = verify("-o", "json", more=WEB)
    assert r.returncode == 0, r.stdout + r.stderr
    found = [(c["check"], c["to"]) for c in json.loads(r.stdout)["checks"] if c["from"] == "cluster"]
    assert found == [("ingress", "HTTP"), ("ingress", "TLS")] + [("targets", job) for job in JOBS]


def test_ingress_and_targets_that_fail(verify, monkeypatch):
    """One way, one target that is down, one that is missing: each is named, and what others annotated does not count."""
    answer = targets(kubelet={"health": "down", "lastError": "x509: unknown authority"})
    answer["data"]["activeTargets"] = [t for t in answer["data"]["activeTargets"] if t["scrapePool"] != "coredns"]
    answer["data"]["activeTargets"].append({"scrapePool": "pods", "scrapeUrl": "http://10.0.0.9/", "health": "down", "lastError": "refused"})
    Api.objects[TARGETS] = answer
    monkeypatch.setattr(Running, "wrong", ("https:ingress:https",))
    r = verify("-o", "json", more=WEB)
    assert r.returncode == 7, r.stdout + r.stderr
    failed = {(c["check"], c["to"]): c["why"] for c in json.loads(r.stdout)["checks"] if not c["works"]}
    assert failed == {("ingress", "TLS"): "something else answered than the probes",
                      ("targets", "kubelet"): "https://10.0.0.2/metrics is down: x509: unknown authority",
                      ("targets", "coredns"): "0 of 1 targets were found"}
    assert "3 things do not work; the first: ingress (TLS): something else answered than the probes" in r.stderr


class Provider(BaseHTTPRequestHandler):
    """An identity provider: its discovery document."""

    def do_GET(self):
        assert self.path == "/.well-known/openid-configuration"
        issuer = f"https://127.0.0.1:{self.server.server_port}"
        body = json.dumps({"issuer": self.server.calls_itself or issuer, "jwks_uri": f"{issuer}/keys"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider(made, tmp_path):
    """At the address of services.dex, with a certificate of the cluster's CA."""
    ca = made.path / ".slipway" / "paper" / "pki" / "ca"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", tmp_path / "key", "-out", tmp_path / "crt"], check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.calls_itself = None
    (made.path / "people.yaml").write_text('- {email: carol@example.net, username: carol, userID: "1", hash: "$2b$10$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuuabcdefghijk"}\n')
    (made.path / "people.yaml").chmod(0o600)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def login(provider):
    return {"more": f"  services: {{dex: {{host: 127.0.0.1, port: {provider.server_port}, passwordsFile: people.yaml}}}}\n", "no_proxy": "127.0.0.1"}


def test_login(verify, provider):
    """Only where the file has services.dex: test_all_works has no such row."""
    r = verify("-o", "json", **login(provider))
    assert r.returncode == 0, r.stdout + r.stderr
    assert [(c["check"], c["to"]) for c in json.loads(r.stdout)["checks"] if c["from"] == "this computer"] == [("login", f"https://127.0.0.1:{provider.server_port}")]


def test_nobody_can_log_in(verify, provider):
    """The provider is another one than API servers believe."""
    provider.calls_itself = "https://other.example.net"
    r = verify("-o", "json", **login(provider))
    assert r.returncode == 7, r.stdout + r.stderr
    (failed,) = [c for c in json.loads(r.stdout)["checks"] if not c["works"]]
    assert failed["check"] == "login" and 'its issuer is "https://other.example.net"' in failed["why"]
    assert f"login at https://127.0.0.1:{provider.server_port}: its issuer is" in r.stderr and "kubectl -n slipway-dex get pods" in r.stderr
