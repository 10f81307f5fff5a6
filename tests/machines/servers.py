"""Servers beside a cluster, on this computer: a relay as a load balancer, a forward proxy, and a registry with TLS and a login. Each is used as `with`."""
import base64
import hashlib
import http.client
import http.server
import io
import json
import platform
import select
import socket
import socketserver
import ssl
import subprocess
import tarfile
import threading
from pathlib import Path

from harness import until


def copied(a, b):
    """Bytes in both directions, until both sides are done."""
    open_ends = {a: b, b: a}
    while open_ends:
        for s in select.select(list(open_ends), [], [])[0]:
            try:
                data = s.recv(65536)
                open_ends[s].sendall(data) if data else open_ends[s].shutdown(socket.SHUT_WR)
            except OSError:
                return
            if not data:
                del open_ends[s]


class Server(socketserver.ThreadingTCPServer):
    """Answers in threads while the `with` lasts; requests() is what it has noted."""
    allow_reuse_address = daemon_threads = True
    block_on_close = False

    def __init__(self, address, handler):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)
        self.noted, self.lock = [], threading.Lock()

    def note(self, what):
        with self.lock:
            self.noted.append(what)

    def requests(self):
        with self.lock:
            return list(self.noted)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that is gone is no news."""


class Relay(Server):
    """A load balancer of TCP: the first of the servers that answers."""

    def __init__(self, address, servers):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                for server in servers:
                    try:
                        with self.server.reach(server) as there:
                            there.settimeout(None)
                            self.server.note(self.client_address[0])
                            return copied(self.request, there)
                    except OSError:
                        continue
                self.server.in_vain += 1
        super().__init__(address, Handler)
        self.in_vain = 0  # connections for which no server answered

    def reach(self, server):
        return socket.create_connection(server, 10)


class ForwardProxy(Server):
    """An HTTP proxy. `ways`: {"host:port" of a CONNECT: where it leads}; `pages`: {URL: what a GET of it answers}; it knows nothing else, so nothing leaves this computer.
    `login` is "user:password" or None. It notes (client, method, target, whether the login was right)."""

    def __init__(self, address, ways, pages, login=None):
        proxy = self
        self.login = login

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def refused(self):
                given = self.headers.get("Proxy-Authorization", "")
                wanted = proxy.login and "Basic " + base64.b64encode(proxy.login.encode()).decode()
                proxy.note((self.client_address[0], self.command, self.path, not wanted or given == wanted))
                if not wanted or given == wanted:
                    return False
                self.answer(407, b"", Proxy_Authenticate='Basic realm="proxy"')
                return True

            def answer(self, status, body, **headers):
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k.replace("_", "-"), v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self):
                if self.refused():
                    return
                if self.path not in ways:
                    self.answer(403, b"")
                    return
                with socket.create_connection(ways[self.path]) as there:
                    self.send_response(200)
                    self.end_headers()
                    copied(self.connection, there)
                self.close_connection = True

            def do_GET(self):
                if not self.refused():
                    page = pages.get(self.path.replace("/./", "/"))
                    self.answer(200 if page is not None else 404, page or b"")

            def log_message(self, *_):
                pass
        super().__init__(address, Handler)


# ---- a registry ----

def run(*argv, **more):
    r = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    assert r.returncode == 0, (argv, r.stdout, r.stderr)
    return r.stdout


def certificate(directory, names):
    """An authority of its own (ca.crt), and a server's certificate of it (server.crt, server.key); names: ["DNS:…", "IP:…"]"""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=the registry's own authority",
        "-keyout", directory / "ca.key", "-out", directory / "ca.crt")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=registry", "-keyout", directory / "server.key", "-out", directory / "server.csr")
    (directory / "names").write_text("subjectAltName=" + ",".join(names) + "\n")
    run("openssl", "x509", "-req", "-in", directory / "server.csr", "-CA", directory / "ca.crt", "-CAkey", directory / "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", directory / "names", "-out", directory / "server.crt")


class Registry:
    """Debian's docker-registry, with a certificate of a private authority and a login."""
    USER, PASSWORD = "node", "correct horse & staple"
    HASH = "$2b$05$WFLPA4rBl4YEEM2Nw8G4rOfmCKt.9D3v5RFBKccllJxQ2jlVm7AFi"  # of the password, by bcrypt

    def __init__(self, directory, address, port, names):
        self.dir, self.address, self.port, self.names = Path(directory), address, port, names

    def __enter__(self):
        self.dir.mkdir(parents=True, exist_ok=True)
        certificate(self.dir, self.names)
        (self.dir / "users").write_text(f"{self.USER}:{self.HASH}\n")
        (self.dir / "password").write_text(self.PASSWORD + "\n")
        (self.dir / "password").chmod(0o600)
        (self.dir / "config.yml").write_text(json.dumps({  # JSON is YAML
            "version": 0.1, "log": {"accesslog": {"disabled": False}}, "storage": {"filesystem": {"rootdirectory": str(self.dir / "store")}},
            "auth": {"htpasswd": {"realm": "registry", "path": str(self.dir / "users")}},
            "http": {"addr": f"{self.address}:{self.port}", "tls": {"certificate": str(self.dir / "server.crt"), "key": str(self.dir / "server.key")}}}))
        self.log = open(self.dir / "log", "wb")
        self.proc = subprocess.Popen(["docker-registry", "serve", self.dir / "config.yml"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until("the registry answers", self.answers)
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.log.close()

    def answers(self):
        assert self.proc.poll() is None, (self.dir / "log").read_text()
        with socket.socket() as s:
            return s.connect_ex((self.address, self.port)) == 0

    def status(self, path, login):
        """The status of a request, with the login or without."""
        context = ssl.create_default_context(cafile=self.dir / "ca.crt")
        c = http.client.HTTPSConnection(self.address, self.port, context=context, timeout=60)
        word = base64.b64encode(f"{self.USER}:{self.PASSWORD}".encode()).decode()
        c.request("GET", path, headers={"Authorization": f"Basic {word}"} if login else {})
        return c.getresponse().status

    def push(self, name, program, called="probe"):
        """An image of one program, called so, that no other registry has."""
        archive = self.dir / "image.tar"
        image_archive(archive, program, called, unique=name)
        word = base64.b64encode(f"{self.USER}:{self.PASSWORD}".encode()).decode()
        (self.dir / "auth.json").write_text(json.dumps({"auths": {f"{self.address}:{self.port}": {"auth": word}}}))
        (self.dir / "certs").mkdir(exist_ok=True)
        (self.dir / "certs" / "ca.crt").write_text((self.dir / "ca.crt").read_text())
        run("skopeo", "copy", "-q", "--dest-authfile", self.dir / "auth.json", "--dest-cert-dir", self.dir / "certs", f"docker-archive:{archive}", f"docker://{self.address}:{self.port}/{name}")

    def pulls(self, name):
        """Addresses that got the image's manifest."""
        lines = (self.dir / "log").read_text().splitlines()
        return {line.split()[0] for line in lines if f'"GET /v2/{name}/manifests/' in line and '" 200 ' in line}


def added(tar, name, data, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def image_archive(path, program, called, unique):
    """A docker archive with one layer."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as t:
        added(t, called, Path(program).read_bytes(), 0o755)
        added(t, "unique", unique.encode())
    data = layer.getvalue()
    config = json.dumps({"architecture": {"x86_64": "amd64"}.get(platform.machine(), "arm64"), "os": "linux", "config": {"Entrypoint": [f"/{called}"], "User": "65535"},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest()]}}).encode()
    with tarfile.open(path, "w") as t:
        added(t, "layer.tar", data)
        added(t, "config.json", config)
        added(t, "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": ["probe:1"], "Layers": ["layer.tar"]}]).encode())
