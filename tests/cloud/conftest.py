"""Two clouds on the loopback: an OpenStack of a few calls, and moto behind a front that verifies signatures with botocore. Both misbehave
by (call, nth). cloud_tool drives src/cloud against them; CLOUD_TOOL names the driver to test (the sanitizers' build has its own)."""
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("CLOUD_TOOL") or ROOT / "build" / "tests" / "cloud" / "cloud_tool")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "OS_", "TOOL_", "XDG_")) and not k.lower().endswith("_proxy")}


def tool(*args, env=None, cwd=None, timeout=300):
    """What the driver said, a value a line; the sanitizers have nothing to say."""
    r = subprocess.run([TOOL, *map(str, args)], env={**CLEAN, **(env or {})}, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    assert r.returncode == 0, f"status {r.returncode}: {r.stderr[-4000:]} {r.stdout[-2000:]}"
    assert "SECRET" not in r.stdout.replace("AWS_SECRET", "") or args[0] in ("source", "clouds"), r.stdout
    return [json.loads(line) for line in r.stdout.splitlines()]


def one(*args, **kwargs):
    said = tool(*args, **kwargs)
    assert len(said) == 1, said
    return said[0]


class Misbehaving:
    """Faults by (call, nth), and what was asked. A call is "METHOD /path" or an action of AWS; a fault is a function of the handler, or a word."""

    def __init__(self):
        self.faults, self.asked, self.log = {}, Counter(), []
        self.lock = threading.Lock()

    def fault(self, call, *kinds):
        self.faults[call] = list(kinds)

    def next(self, call, what):
        with self.lock:
            self.asked[call] += 1
            self.log.append(what)
            kinds = self.faults.get(call) or []
            return kinds.pop(0) if kinds else None


class Stack(Misbehaving):
    """Keystone, nova, neutron and octavia, as much as the tests ask for."""
    PROJECT, PASSWORD = "0123456789abcdef0123456789abcdef", "correct SECRET horse"

    def __init__(self):
        super().__init__()
        self.servers, self.networks, self.tokens = {}, {}, set()
        self.life, self.ahead, self.version, self.balancer, self.page, self.region = 3600, 0, "2.96", "v2.26", 1000, "RegionOne"
        self.changed = threading.Condition()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Handler,), {"stack": self}))
        self.http.daemon_threads, self.http.handle_error = True, lambda *_: None  # connections are cut on purpose
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=[0.05], daemon=True).start()

    def env(self, **more):
        return {"OS_AUTH_URL": f"{self.url}/identity", "OS_USERNAME": "anna", "OS_PASSWORD": self.PASSWORD, "OS_PROJECT_NAME": "p", "OS_USER_DOMAIN_NAME": "Default",
                "OS_PROJECT_DOMAIN_ID": "default", **more}

    def call(self, *args, **env):
        return one("call", *args, env=self.env(**env))

    def calls(self, *args, **env):
        return tool("call", *args, env=self.env(**env))

    def token(self, body):
        methods = body["auth"]["identity"]["methods"]
        if methods == ["password"] and body["auth"]["identity"]["password"]["user"]["password"] != self.PASSWORD:
            return 401, {"error": {"code": 401, "message": f"The password is not {body['auth']['identity']['password']['user']['password']}.", "title": "Unauthorized"}}, {}
        now, token = time.time() + self.ahead, f"gAAAA-SECRET-{len(self.tokens)}-{time.time()}"
        self.tokens.add(token)
        stamp = lambda t: time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(t))  # noqa: E731
        at = lambda path: [{"interface": i, "region": r, "region_id": r, "url": self.url + path} for r in ("Elsewhere", self.region) for i in ("admin", "public")]  # noqa: E731
        catalog = [{"type": "compute", "endpoints": at("/compute/v2.1")}, {"type": "network", "endpoints": at("/network")},
                   {"type": "volumev3", "endpoints": at(f"/volume/v3/{self.PROJECT}")}, {"type": "load-balancer", "endpoints": at("/lb")}]
        return 201, {"token": {"expires_at": stamp(now + self.life), "issued_at": stamp(now), "project": {"id": self.PROJECT}, "user": {"id": "u1"}, "catalog": catalog}}, \
            {"X-Subject-Token": token}

    def paged(self, key, things, query, url):
        ids = sorted(things)
        start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
        here = ids[start:start + self.page]
        body = {key: [things[i] for i in here]}
        if start + self.page < len(ids):
            body[f"{key}_links"] = [{"rel": "next", "href": f"http://198.51.100.1:1/elsewhere?limit={self.page}&marker={here[-1]}"}]  # not to be followed
        return 200, body, {}

    def answer(self, method, path, query, body, headers):
        if (method, path) == ("POST", "/identity/v3/auth/tokens"):
            return self.token(body)
        if path == "/compute/v2.1/":
            return 200, {"version": {"id": "v2.1", "version": self.version, "min_version": "2.1"}}, {}
        if path == "/lb/":
            return 200, {"versions": [{"id": "v2.0"}, {"id": self.balancer}]}, {}
        if headers.get("X-Auth-Token") not in self.tokens:
            return 401, {"error": {"code": 401, "message": "The request you have made requires authentication.", "title": "Unauthorized"}}, {}
        if path.startswith("/compute/") and int(headers["OpenStack-API-Version"].split(".")[1]) > int(self.version.split(".")[1]):
            return 406, {"computeFault": {"code": 406, "message": f"Version {headers['OpenStack-API-Version']} is not supported by the API."}}, {}
        if path == "/compute/v2.1/servers/detail":
            return self.paged("servers", self.servers, query, path)
        if (method, path) == ("POST", "/compute/v2.1/servers"):
            new = {"id": f"s{len(self.servers):04}", **body["server"], "status": "BUILD"}
            self.servers[new["id"]] = new
            return 202, {"server": {"id": new["id"], "name": new["name"]}}, {}
        if m := re.fullmatch(r"/compute/v2.1/servers/(\w+)", path):
            if m[1] not in self.servers:
                return 404, {"itemNotFound": {"code": 404, "message": f"Instance {m[1]} could not be found."}}, {}
            return (204, None, {}) if method == "DELETE" and self.servers.pop(m[1]) else (200, {"server": self.servers[m[1]]}, {})
        if path == "/network/v2.0/networks":
            return self.paged("networks", self.networks, query, path)
        if path == "/lb/v2/lbaas/loadbalancers":
            return 200, {"loadbalancers": []}, {}
        return 404, "<html><head><title>404</title></head><body><h1>404 Not Found</h1>no such page</body></html>", {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, headers, cut=False):
        text = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header("Date", formatdate(time.time() + self.stack.ahead, usegmt=True))
        for name, value in {"Content-Type": "text/html" if isinstance(body, str) else "application/json", "x-openstack-request-id": f"req-{len(self.stack.log)}", **headers}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[:len(text) // 2] if cut else text)
        self.wfile.flush()
        self.close_connection |= cut

    def handle_one(self):
        url, s = urlsplit(self.path), self.stack
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = s.next(f"{self.command} {url.path}", (self.command, self.path, dict(self.headers), text.decode()))
        if fault == "drop before":
            self.close_connection = True
            return
        if fault == "stall":
            time.sleep(20)
            self.close_connection = True
            return
        if isinstance(fault, tuple):
            self.send(*fault)
            return
        if fault == "revoke":
            s.tokens.clear()
        with s.lock:
            status, body, headers = s.answer(self.command, url.path, parse_qs(url.query), json.loads(text) if text else None, self.headers)
        if fault == "drop after":
            self.close_connection = True
            return
        self.send(status, body, headers, cut=fault == "cut")

    do_GET = do_POST = do_DELETE = do_PUT = handle_one


@pytest.fixture
def stack():
    s = Stack()
    yield s
    s.http.shutdown()
    s.http.server_close()


THROTTLED = {"overLimit": {"code": 429, "message": "This request was rate-limited."}}


def refused(status, retry_after=None, body=THROTTLED):
    return status, body, {"Retry-After": str(retry_after)} if retry_after is not None else {}


class Front(Misbehaving):
    """In front of moto: every signature is computed again by botocore, and the clock must fit."""
    KEYS = {"AKIDEXAMPLE": ("SECRETwJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)}
    FREE = ("AssumeRoleWithWebIdentity",)  # not signed

    def __init__(self):
        super().__init__()
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server
        self.moto, self.keys, self.ahead, self.problems = DomainDispatcherApplication(create_backend_app), dict(self.KEYS), 0, []
        self.server = make_server("127.0.0.1", 0, self, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def env(self, **more):
        return {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": self.KEYS["AKIDEXAMPLE"][0], "AWS_DEFAULT_REGION": "eu-central-1", "AWS_ENDPOINT_URL": self.url,
                "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent", **more}

    def call(self, *args, env=None, **more):
        return one("call", *args, env=self.env(**more) if env is None else env)

    def verify(self, environ, body):
        """None, or (status, code, message) as AWS says it."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        auth = environ.get("HTTP_AUTHORIZATION", "")
        m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w+)", auth)
        if not m:
            return 403, "MissingAuthenticationToken", "Request is missing Authentication Token"
        key, day, region, service, names, signature = m.groups()
        if key not in self.keys:
            return 403, "InvalidClientTokenId", "The security token included in the request is invalid."
        secret, token = self.keys[key]
        header = lambda n: environ.get({"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH", "host": "HTTP_HOST"}.get(n, "HTTP_" + n.upper().replace("-", "_")), "")  # noqa: E731
        date = header("x-amz-date")
        if token and header("x-amz-security-token") != token:
            return 403, "InvalidClientTokenId", "The security token included in the request is invalid."
        here = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + self.ahead))
        parse = lambda d: time.mktime(time.strptime(d, "%Y%m%dT%H%M%SZ"))  # noqa: E731
        if abs(parse(date) - parse(here)) > 300:
            return 403, "SignatureDoesNotMatch", f"Signature expired: {date} is now earlier than {here}"
        url = f"http://{header('host')}{environ.get('RAW_URI') or environ['REQUEST_URI']}"
        request = AWSRequest(method=environ["REQUEST_METHOD"], url=url, data=body, headers={n: header(n) for n in names.split(";")})
        request.context["timestamp"] = date
        signer = SigV4Auth(Credentials(key, secret, token), service, region)
        wanted = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        if wanted != signature or day != date[:8]:
            self.problems.append((url, signer.canonical_request(request)))
            return 403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."
        return None

    def refuse(self, status, code, message, start, headers=()):
        text = f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>req-{len(self.log)}</RequestID></Response>".encode()
        start(f"{status} Refused", [("Content-Type", "text/xml"), ("Content-Length", str(len(text))), ("Date", formatdate(time.time() + self.ahead, usegmt=True)), *headers])
        return [text]

    @staticmethod
    def hang_up(environ):
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionError

    def __call__(self, environ, start):
        from io import BytesIO
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        action = (parse_qs(body.decode(errors="replace")).get("Action") or [environ.get("HTTP_X_AMZ_TARGET") or environ["PATH_INFO"]])[0]
        fault = self.next(action, (action, body.decode(errors="replace"), environ.get("HTTP_AUTHORIZATION")))
        if action not in self.FREE and (bad := self.verify(environ, body)):
            return self.refuse(*bad, start)
        if isinstance(fault, tuple):
            return self.refuse(*fault, start)
        if fault == "drop before":
            self.hang_up(environ)
        out = b"".join(self.moto(environ, lambda *a: setattr(self, "began", a) or (lambda _: None)))
        issued = [re.search(rf"<{n}>([^<]+)<".encode(), out) for n in ("AccessKeyId", "SecretAccessKey", "SessionToken")]
        if all(issued):
            key, secret, token = (m[1].decode() for m in issued)
            self.keys[key] = (secret, token)
        if fault == "drop after":
            self.hang_up(environ)
        status, headers = self.began[:2]
        start(status, headers)
        return [out]


@pytest.fixture(scope="session")
def front_server():
    import logging
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    f = Front()
    yield f
    f.server.shutdown()


@pytest.fixture
def front(front_server):
    f = front_server
    f.faults, f.asked, f.log, f.ahead, f.problems = {}, Counter(), [], 0, []
    yield f
    assert not f.problems
