"""The addon ingress on a small cluster: HTTP by host and path and TLS with a certificate of a Secret, at the addresses of nodes from outside; verify proves it, and tells when it is broken; with kube-vip it has an address of its own; and it goes when it is taken out of the file."""
import http.client
import json
import os
import socket
import ssl
import subprocess

import pytest
from harness import NEWEST, WithAddons, until

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")]
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.177.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
NODES = ("control-1", "worker-1")
# A pod and its Service, which answers with its name.
SERVICE = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: NAME}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: web, image: "slipway.dev/probe:0.1.0", imagePullPolicy: IfNotPresent, args: [serve, "8080", NAME]}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
"""
INGRESSES = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: plain}
spec:
  rules:
  - host: plain.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}
      - {path: /other, pathType: Prefix, backend: {service: {name: other, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: second}
spec:
  rules: [{host: second.test, http: {paths: [{path: /exact, pathType: Exact, backend: {service: {name: other, port: {name: http}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: sealed, annotations: {traefik.ingress.kubernetes.io/router.entrypoints: https}}
spec:
  ingressClassName: traefik
  tls: [{hosts: [sealed.test], secretName: sealed}]
  rules: [{host: sealed.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: foreign}
spec:
  ingressClassName: somebody-elses
  rules: [{host: foreign.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]
"""


class Ingress(WithAddons):
    def port(self, name):
        """The node port of the ingress controller's Service."""
        return int(self.kubectl("-n", "ingress", "get", "service", "ingress", "-o", f"jsonpath={{.spec.ports[?(@.name=='{name}')].nodePort}}"))

    def checks(self, ok):
        """What verify says of the ingress."""
        answer = json.loads(self.slipway("verify", "-o", "json", ok=ok).stdout)
        return {c["to"]: c["why"] if not c["works"] else "" for c in answer["checks"] if c["check"] == "ingress"}

    def controller(self):
        deployment = json.loads(self.kubectl("-n", "ingress", "get", "deployment", "ingress", "-o", "json"))
        return deployment["spec"]["template"]["spec"]["containers"][0]["args"], deployment["status"]


@pytest.fixture(scope="module")
def cluster():
    c = Ingress("ingress", SPEC)
    with c:
        c.write("ingress")
        c.slipway("up")
        yield c


@pytest.fixture(scope="module")
def sealed(cluster, tmp_path_factory):
    """A context that trusts only the CA of the certificate in the Secret; the Ingresses are there."""
    ca, crt, key = certificate(tmp_path_factory.mktemp("tls"), "sealed.test")
    cluster.kubectl("create", "secret", "tls", "sealed", f"--cert={crt}", f"--key={key}")
    cluster.kubectl("apply", "-f", "-", text=SERVICE.replace("NAME", "web") + SERVICE.replace("NAME", "other") + INGRESSES)
    return ssl.create_default_context(cafile=ca)


def certificate(directory, name):
    """A CA of its own, and a certificate of it for a name."""
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
    ca, key, crt = directory / "ca.crt", directory / "web.key", directory / "web.crt"
    subprocess.run([*new, "-subj", "/CN=web", "-keyout", directory / "ca.key", "-out", ca], check=True, capture_output=True)
    subprocess.run([*new, "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=critical,CA:FALSE", "-CA", ca, "-CAkey", directory / "ca.key",
                    "-keyout", key, "-out", crt], check=True, capture_output=True)
    return ca, crt, key


def asked(host, port, name, path="/", context=None):
    """What a client outside gets from the name: status and body."""
    raw = socket.create_connection((host, port), timeout=10)
    c = http.client.HTTPConnection(name)
    c.sock = context.wrap_socket(raw, server_hostname=name) if context else raw
    try:
        c.request("GET", path)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


def answers(what, wanted, *question, **more):
    """Also while Traefik does not know the Ingress, the pod or the certificate yet."""
    def ask():
        try:
            return asked(*question, **more) == wanted
        except OSError:
            return False
    until(what, ask)


def test_what_it_promises_is_proven(cluster):
    assert cluster.checks(0) == {"HTTP": "", "TLS": ""}


def test_status_shows_it(cluster):
    status, answer = cluster.status()
    row, = answer["addons"]
    assert status == 0 and row["name"] == "ingress" and row["works"] and (row["ready"], row["wanted"], row["drift"]) == (2, 2, None)
    assert "nothing to do" in cluster.slipway("plan", "--exit-code").stdout


def test_http_by_host_and_path_from_outside(cluster, sealed):
    """At every node; a name that no Ingress has, or only one of another class, is not found."""
    port = cluster.port("http")
    for node in NODES:
        host = cluster.address(node)
        for name, path, body in (("plain.test", "/", b"web\n"), ("plain.test", "/other/deep?a=1", b"other\n"), ("plain.test", "/otherwise", b"web\n"), ("second.test", "/exact", b"other\n")):
            answers(f"HTTP works: {name}{path} at {node}", (200, body), host, port, name, path)
        for name, path in (("nobody.test", "/"), ("foreign.test", "/"), ("second.test", "/"), ("second.test", "/exact/not")):
            assert asked(host, port, name, path)[0] == 404, name + path


def test_tls_from_outside(cluster, sealed):
    """With the certificate of the Secret for its own name only, at every node, and a new one without a restart."""
    port = cluster.port("https")
    for node in NODES:
        answers(f"TLS works at {node}", (200, b"web\n"), cluster.address(node), port, "sealed.test", context=sealed)
    assert asked(cluster.address("worker-1"), cluster.port("http"), "sealed.test")[0] == 404, "it answers only over TLS"
    with pytest.raises(ssl.SSLCertVerificationError):
        asked(cluster.address("worker-1"), port, "plain.test", context=sealed)


def test_another_certificate_in_the_secret(cluster, sealed, tmp_path):
    ca, crt, key = certificate(tmp_path, "sealed.test")
    text = cluster.kubectl("create", "secret", "tls", "sealed", f"--cert={crt}", f"--key={key}", "--dry-run=client", "-o", "yaml")
    cluster.kubectl("replace", "-f", "-", text=text)
    answers("the new certificate is used", (200, b"web\n"), cluster.address("worker-1"), cluster.port("https"), "sealed.test", context=ssl.create_default_context(cafile=ca))


def test_a_broken_ingress_is_told(cluster):
    """A controller that follows another class, and one without pods."""
    args, _ = cluster.controller()
    patch = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--providers.kubernetesIngress.ingressClass=other"}]
    cluster.kubectl("-n", "ingress", "patch", "deployment", "ingress", "--type=json", "-p", json.dumps(patch))
    cluster.kubectl("-n", "ingress", "rollout", "status", "deployment/ingress")
    checks = cluster.checks(7)
    assert list(checks) == ["HTTP"] and "404" in checks["HTTP"], checks
    cluster.kubectl("-n", "ingress", "scale", "deployment/ingress", "--replicas=0")
    until("its pods are gone", lambda: "readyReplicas" not in cluster.controller()[1])
    r = cluster.slipway("verify", ok=7)
    assert "ingress (HTTP)" in r.stderr and "kubectl -n ingress logs deployment/ingress" in r.stderr, r.stderr
    assert any("addon ingress" in p for p in cluster.status()[1]["problems"])
    cluster.kubectl("-n", "ingress", "patch", "deployment", "ingress", "--type=json", "-p", json.dumps([{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": args}]))
    cluster.kubectl("-n", "ingress", "scale", "deployment/ingress", "--replicas=2")
    cluster.kubectl("-n", "ingress", "rollout", "status", "deployment/ingress")
    assert cluster.checks(0) == {"HTTP": "", "TLS": ""}


def test_what_it_may_read(cluster):
    who = ("--as=system:serviceaccount:ingress:ingress",)
    for what, may in ((("list", "ingresses"), "yes"), (("list", "configmaps"), "no"), (("update", "secrets"), "no"), (("create", "pods"), "no")):
        assert cluster.kubectl("auth", "can-i", *what, "-A", *who, check=False).stdout.strip() == may, what


def test_with_kube_vip_it_has_an_address(cluster, sealed):
    """At the usual ports, and the Ingresses tell it."""
    cluster.write("{name: ingress, values: {replicas: 1}}", "{name: kube-vip, values: {addresses: [10.177.0.200/30]}}")
    cluster.slipway("up")
    ip = until("the Ingress has an address", lambda: cluster.kubectl("get", "ingress", "plain", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"))
    assert ip in [f"10.177.0.{n}" for n in range(200, 204)]
    answers("HTTP works", (200, b"other\n"), ip, 80, "plain.test", "/other")
    assert cluster.controller()[1]["replicas"] == 1


def test_it_goes_when_it_is_taken_out(cluster):
    port = cluster.port("http")
    cluster.write()
    assert "ingress" in cluster.slipway("plan").stdout
    cluster.slipway("up")
    for what in (("-n", "ingress", "deployment", "ingress"), ("-n", "ingress", "service", "ingress"), ("ingressclass", "traefik"), ("clusterrole", "slipway:ingress")):
        assert cluster.gone(*what), what
    with pytest.raises(OSError):
        asked(cluster.address("worker-1"), port, "plain.test")
    assert cluster.status()[0] == 0 and cluster.checks(0) == {}
