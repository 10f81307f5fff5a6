"""An API of the test's own, which keeps objects and answers like the real one, and slipway in a directory whose cluster has it.

Nobody has the address of its control plane: requests go to a proxy, which is the API itself."""
import base64
import json
import os
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import NEWEST

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
ADDRESS = "192.0.2.11"
CLUSTER = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: paper}}
spec:
  kubernetes: {NEWEST}
  provider: {{ssh: {{user: root}}}}
  MORE
  pools:
    - {{name: control, roles: [control-plane, etcd], hosts: [{{name: c1, address: {ADDRESS}}}]}}
    - {{name: worker, hosts: [{{name: w1, address: 192.0.2.21}}]}}
"""


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects, fails, tls = {}, set(), None

    def do_CONNECT(self):
        assert self.path == f"{ADDRESS}:6443"
        self.send_response(200)
        self.end_headers()
        self.connection = self.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        o = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for key, value in o.pop("stringData", {}).items():
            o.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
        o["metadata"]["uid"] = f"uid-of-{o['metadata']['name']}"
        return o

    def missing(self):
        self.answer(404, {"kind": "Status", "message": "not found", "code": 404})

    def do_GET(self):
        self.answer(200, self.objects[self.path]) if self.path in self.objects else self.missing()

    def do_DELETE(self):
        self.answer(200, self.objects.pop(self.path)) if self.path in self.objects else self.missing()

    def do_POST(self):
        o = self.body()
        path = f"{self.path}/{o['metadata']['name']}"
        if self.path in self.fails:
            self.answer(403, {"kind": "Status", "message": "no quota for this", "code": 403})
        elif path in self.objects:
            self.answer(409, {"kind": "Status", "message": "already exists", "code": 409})
        else:
            self.objects[path] = o
            self.answer(201, o)

    def do_PATCH(self):
        """Server-side apply; what is applied is not looked at."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.objects.setdefault(self.path.split("?")[0], {"metadata": {}})
        self.answer(200, {})

    def do_PUT(self):
        self.objects[self.path] = self.body()
        self.answer(200, self.objects[self.path])


@contextmanager
def paper(path, api=Api):
    """slipway in a directory whose cluster has this API, with the certificate that its API server would have."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), api)
    server.daemon_threads = True
    env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()} | {"https_proxy": f"http://127.0.0.1:{server.server_port}"}

    def slipway(*args, given=None, more="", **others):
        (path / "cluster.yaml").write_text(CLUSTER.replace("  MORE\n", more))
        stdin = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([SLIPWAY, *args], cwd=path, env=env | others, capture_output=True, text=True, **stdin)

    r = slipway("render", "-d", "out", "--secrets")
    assert r.returncode == 0, r.stderr
    pki = path / "out" / "c1" / "root" / "etc" / "kubernetes" / "pki"
    Api.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Api.tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    slipway.path, slipway.env, slipway.argv = path, env, lambda *args: [SLIPWAY, *args]
    yield slipway
    server.shutdown()
    thread.join()
    server.server_close()
