"""Charts of the tests' own, as directories and archives, and a repository over HTTP. Their pods run the probe, which is on every node."""
import base64
import hashlib
import io
import tarfile
import threading
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


def crd(version):
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.test.slipway.dev, labels: {{version: "{version}"}}}}
spec:
  group: test.slipway.dev
  scope: Namespaced
  names: {{kind: Thing, plural: things, singular: thing}}
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
    """On 127.0.0.1, for a user with a password. broken: the status that it answers everything with."""

    def __init__(self, user, password):
        self.charts, self.broken, self.asked = {}, None, []
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        me = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                me.asked.append(self.path)
                known = self.headers.get("Authorization") == me.login
                body = me.body(self.path.lstrip("/")) if known and not me.broken else None
                self.send_response(me.broken or (401 if not known else 200 if body is not None else 404))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name, version, **templates):
        self.charts[f"{name}-{version}.tgz"] = (name, version, archive(name, files(name, version, **templates)))

    def body(self, path):
        if path in self.charts:
            return self.charts[path][2]
        if path != "index.yaml":
            return None
        rows = "".join(f"  {name}:\n  - {{apiVersion: v2, name: {name}, version: {version}, digest: {hashlib.sha256(data).hexdigest()}, urls: [{file}]}}\n"
                       for file, (name, version, data) in self.charts.items())
        return f"apiVersion: v1\nentries:\n{rows}".encode()

    def close(self):
        self.server.shutdown()
