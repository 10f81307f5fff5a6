"""Charts of the tests' own, as directories and archives, a repository over HTTP or HTTPS, and an OCI registry (Debian's docker-registry). Their pods run the probe, which is on every node."""
import base64
import hashlib
import io
import json
import os
import socket
import ssl
import subprocess
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

PROBE = "slipway.dev/probe:0.1.0"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: "{{ .Values.image }}", imagePullPolicy: {{ .Values.pull }}, args: [serve, "8080", app]}]
"""
MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-map}
data: {color: {{ .Values.color | quote }}}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-secret}
stringData: {password: {{ .Values.password | quote }}}
"""
VALUES = f"replicas: 1\npull: IfNotPresent\nimage: {PROBE}\ncolor: red\npassword: hunter2\n"


def hook(when, args):
    """A Job before the objects: with these arguments of the probe."""
    return f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{{{ .Release.Name }}}}-hook
  annotations: {{helm.sh/hook: {when}, helm.sh/hook-delete-policy: before-hook-creation}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{{name: hook, image: "{PROBE}", imagePullPolicy: IfNotPresent, args: {args}}}]
"""


def crd(version, plural="things", scope="Namespaced", annotations="{}"):
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.test.slipway.dev, labels: {{version: "{version}"}}, annotations: {annotations}}}
spec:
  group: test.slipway.dev
  scope: {scope}
  names: {{kind: {plural.capitalize()[:-1]}, plural: {plural}, singular: {plural[:-1]}}}
  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]
"""


def files(name, version, **templates):
    """{path in the chart: text}; templates: name=text, crds=text."""
    crds = templates.pop("crds", None)
    found = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n", "values.yaml": VALUES}
    found |= {f"templates/{key}.yaml": text for key, text in templates.items()}
    return found | ({"crds/all.yaml": crds} if crds else {})


def write(directory, chart):
    """The chart as a directory, and nothing else in it."""
    for old in directory.rglob("*.yaml"):
        old.unlink()
    for path, text in chart.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)


def archive(name, chart):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in sorted(chart.items()):
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


class Repository:
    """On 127.0.0.1, for a user with a password. broken: the status that it answers everything with. lies: charts whose digest is wrong in the index.
    pki: a Pki, whose certificate it has then."""

    def __init__(self, user, password, pki=None):
        self.charts, self.broken, self.lies, self.asked = {}, None, set(), []
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        me = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                me.asked.append(self.path)
                known = self.headers.get("Authorization") == me.login
                body = me.body(self.path.lstrip("/")) if known and not me.broken else None
                self.send_response(me.broken or (401 if not known else 200 if body is not None else 404))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http{'s' if pki else ''}://127.0.0.1:{self.server.server_port}"
        if pki:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pki.cert, pki.key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name, version, **templates):
        self.charts[f"{name}-{version}.tgz"] = (name, version, archive(name, files(name, version, **templates)))

    def body(self, path):
        if path in self.charts:
            return self.charts[path][2]
        if path != "index.yaml":
            return None
        rows = "".join(f"  {name}:\n  - {{apiVersion: v2, name: {name}, version: {version}, digest: {hashlib.sha256(data + b'.' * (name in self.lies)).hexdigest()}, urls: [{file}]}}\n"
                       for file, (name, version, data) in self.charts.items())
        return f"apiVersion: v1\nentries:\n{rows}".encode()

    def close(self):
        self.server.shutdown()


class Pki:
    """A CA of its own, and a certificate of it for 127.0.0.1."""

    def __init__(self, directory):
        self.ca, self.cert, self.key = directory / "ca.crt", directory / "server.crt", directory / "server.key"
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
        for command in ([*new, "-subj", "/CN=charts", "-keyout", directory / "ca.key", "-out", self.ca],
                        [*new, "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
                         "-CA", self.ca, "-CAkey", directory / "ca.key", "-keyout", self.key, "-out", self.cert]):
            subprocess.run(command, check=True, capture_output=True)


class Registry:
    """An OCI registry on 127.0.0.1 with TLS, for a user with a password."""

    def __init__(self, directory, user, password, pki):
        self.dir, self.pki = directory, pki
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.host = f"127.0.0.1:{s.getsockname()[1]}"
        self.url = f"oci://{self.host}/charts"
        bcrypt = subprocess.run(["perl", "-e", "print crypt($ARGV[0], '$2b$05$' . 'slipway' x 3 . 'u')", password], check=True, capture_output=True, text=True).stdout
        (directory / "users").write_text(f"{user}:{bcrypt}\n")
        (directory / "registry.yaml").write_text(json.dumps({
            "version": 0.1, "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": str(directory / "store")}},
            "http": {"addr": self.host, "tls": {"certificate": str(pki.cert), "key": str(pki.key)}}, "auth": {"htpasswd": {"realm": "charts", "path": str(directory / "users")}}}))
        (directory / "login.json").write_text(json.dumps({"auths": {self.host: {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}}}))
        self.process = subprocess.Popen(["docker-registry", "serve", directory / "registry.yaml"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        host, port = self.host.split(":")
        while True:
            try:
                socket.create_connection((host, int(port))).close()
                return
            except OSError:
                assert self.process.poll() is None, "docker-registry does not start"
                time.sleep(0.1)

    def push(self, helm, name, version, **templates):
        path = self.dir / f"{name}-{version}.tgz"
        path.write_bytes(archive(name, files(name, version, **templates)))
        env = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "HELM_REGISTRY_CONFIG": str(self.dir / "login.json")}
        subprocess.run([helm, "push", path, self.url, "--ca-file", self.pki.ca], env=env, check=True, capture_output=True)

    def close(self):
        self.process.terminate()
        self.process.wait()
