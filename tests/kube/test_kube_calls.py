"""Requests, sentences, servers that fail, waiting, cancelling: against a real API server."""
import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager

import pytest

from conftest import Authority, free_port

BIG = 64 << 20


def test_waited_from_before_the_start(control):
    assert control.waited_said == ["ready"]


def test_get(control):
    said = control.get("/api/v1/namespaces/default")
    assert said["status"] == 200 and said["error"] is None and said["body"]["metadata"]["name"] == "default"
    assert control.one("get", "/api/v1/namespaces/default")["body"]["kind"] == "Namespace"


def test_text_that_is_not_json(control):
    said = control.get("/readyz")
    assert (said["status"], said["body"], said["size"]) == (200, None, 2)


def test_not_found(control):
    assert control.get("/api/v1/nodes/x")["error"] == 'nodes "x" not found'
    said = control.one("get", "/api/v1/nodes/x")
    assert said == {"error": 'nodes "x" not found', "code": 2, "exit": 6}
    assert control.get("/apis/nothing/v1/x")["error"] == "GET /apis/nothing/v1/x: HTTP status 404: 404 page not found"


def test_post_conflict_and_delete(control):
    body = control.write("post.json", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "posted"}}))
    path = "/api/v1/namespaces/default/configmaps"
    assert control.one("request", "POST", path, "-", body, 0)["status"] == 201
    said = control.one("request", "POST", path, "-", body, 0)
    assert (said["status"], said["error"]) == (409, 'configmaps "posted" already exists')
    patch = control.write("patch.json", '{"data": {"a": "b"}}')
    assert control.one("request", "PATCH", f"{path}/posted", "application/merge-patch+json", patch, 0)["body"]["data"] == {"a": "b"}
    assert control.one("request", "DELETE", f"{path}/posted", "-", "none", 0)["status"] == 200


def test_invalid(control):
    body = control.write("bad.json", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not_A_Name"}}))
    said = control.one("request", "POST", "/api/v1/namespaces/default/configmaps", "-", body, 0)
    assert said["status"] == 422 and said["error"].startswith('ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value') and not said["error"].endswith(".")


def test_200_at_once(control):
    said = control.tool("parallel", 200, "/api/v1/namespaces/default")
    assert len(said) == 200 and all(s["status"] == 200 for s in said)


def test_refused(control):
    server = f"https://127.0.0.1:{free_port()}"
    said = control.get("/api", servers=[server])
    assert said["status"] == 0 and said["error"] == f"{server}: the connection was refused: nothing listens there"
    said = control.one("get", "/api", servers=[server])
    assert said["exit"] == 5


def test_name_without_address(control):
    assert "cannot be resolved" in control.get("/api", servers=["https://nothing.invalid:1"])["error"]


def test_wrong_address(control):
    assert "must be https://" in control.popen("get", "/api", servers=["http://127.0.0.1:1"]).communicate()[0]


def test_failover(control):
    dead = [f"https://127.0.0.1:{free_port()}" for _ in range(2)]
    assert control.get("/api", servers=[*dead, *control.servers[:1]])["status"] == 200
    body = control.write("post2.json", json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "over"}}))
    assert control.one("request", "POST", "/api/v1/namespaces/default/configmaps", "-", body, 0, servers=[dead[0], *control.servers[:1]])["status"] == 201
    said = control.get("/api", servers=dead)
    assert said["error"] == f"none of the 2 API servers answers; the last one: {dead[1]}: the connection was refused: nothing listens there"
    said = control.tool("parallel", 60, "/api/v1/namespaces/default", servers=[dead[0], *control.servers[:1]])
    assert all(s["status"] == 200 for s in said)


@contextmanager
def server(pki, answer, names="IP:127.0.0.1"):
    """A TLS server of our own: answer(connection, count) after the request was read."""
    pki.leaf("odd", "/CN=odd", server=True, names=names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.dir / "odd.crt", pki.dir / "odd.key")
    listener = socket.create_server(("127.0.0.1", 0))
    asked = []

    def serve(raw):
        try:
            with context.wrap_socket(raw, server_side=True) as s:
                data = b""
                while b"\r\n\r\n" not in data and (more := s.recv(65536)):
                    data += more
                asked.append(data)
                answer(s, len(asked))
        except OSError:
            pass

    def accept():
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(raw,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.close()


def test_cut_connection_goes_to_the_next(control):
    with server(control.pki, lambda s, n: None) as (cut, asked):
        assert control.get("/api", servers=[cut, *control.servers[:1]])["status"] == 200
        assert len(asked) == 1
        said = control.one("request", "POST", "/api/v1/namespaces", "-", control.write("x.json", "{}"), 0, servers=[cut, *control.servers[:1]])
        assert said["status"] == 0 and "the connection was cut" in said["error"]  # it may have been done: not twice
        assert len(asked) == 2


def test_cut_in_the_body(control):
    with server(control.pki, lambda s, n: s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{}")) as (cut, asked):
        said = control.get("/api", servers=[cut])
        assert said["status"] == 0 and "the connection was cut" in said["error"] and len(asked) == 2


def test_no_answer(control):
    with server(control.pki, lambda s, n: time.sleep(30)) as (slow, _):
        begin = time.monotonic()
        said = control.one("request", "GET", "/api", "-", "none", 1000, servers=[slow])
        assert said["error"] == f"{slow}: no answer within 1 s" and time.monotonic() - begin < 20


def test_no_connection_in_time(control):
    """Listens, but nobody is at home."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        said = control.one("request", "GET", "/api", "-", "none", 500, servers=[f"https://127.0.0.1:{s.getsockname()[1]}"])
        assert said["error"].endswith("no connection within the time limit")


def test_silent_first_server(control):
    with socket.create_server(("127.0.0.1", 0)) as s:
        begin = time.monotonic()
        assert control.get("/api", servers=[f"https://127.0.0.1:{s.getsockname()[1]}", *control.servers[:1]])["status"] == 200
        assert 4 < time.monotonic() - begin < 30


def test_too_large(control):
    def flood(s, n):
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        for _ in range(BIG // 65536 + 8):
            s.sendall(b"x" * 65536)
    with server(control.pki, flood) as (big, asked):
        said = control.get("/logs", servers=[big])
        assert said["error"] == f"{big}: the answer to /logs is larger than 64 MiB" and len(asked) == 1


@pytest.mark.parametrize("text", ["", "not JSON at all", '{"items": ', "[1, 2]", '{"a": 1, "a": 2}', "\x00\xff"])
def test_odd_bodies(control, text):
    raw = text.encode("latin-1")
    head = f"HTTP/1.1 500 No\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
    with server(control.pki, lambda s, n: s.sendall(head + raw)) as (odd, _):
        said = control.get("/x", servers=[odd])
        assert said["status"] == 500 and said["error"].startswith("GET /x: HTTP status 500")


def test_wrong_authority(control, tmp_path):
    other = Authority(tmp_path, "other")
    said = control.get("/api", ca=other.dir / "other.crt")
    assert said["status"] == 0 and "its certificate is not trusted: " in said["error"] and "issuer" in said["error"]


def test_wrong_name(control):
    with server(control.pki, lambda s, n: None, names="DNS:elsewhere") as (odd, asked):
        said = control.get("/api", servers=[odd])
        assert "its certificate is not trusted: no alternative certificate subject name matches" in said["error"] and not any(asked)


def test_unknown_client(control, tmp_path):
    other = Authority(tmp_path, "other")
    said = control.get("/api", client=other.leaf("me", "/O=system:masters/CN=me"))
    assert said["status"] == 401 and "does not accept our client certificate" in said["error"]


def test_expired_client(control):
    said = control.get("/api", client=control.pki.leaf("old", "/O=system:masters/CN=old", expired=True))
    assert said["status"] == 401 and "it has expired" in said["error"]


def test_forbidden(control):
    said = control.get("/api/v1/nodes", client=control.pki.leaf("nobody", "/CN=nobody"))
    assert said["status"] == 403 and 'User "nobody" cannot list resource "nodes"' in said["error"]


def test_broken_key(control, tmp_path):
    bad = tmp_path / "bad.key"
    bad.write_text("-----BEGIN EC PRIVATE KEY-----\nTOPSECRET\n-----END EC PRIVATE KEY-----\n")
    said = control.get("/api", client=(control.admin[0], bad))
    assert said["status"] == 0 and "our client certificate or key cannot be used" in said["error"] and "TOPSECRET" not in said["error"]


def test_not_ready_says_why(control):
    server = f"https://127.0.0.1:{free_port()}"
    assert control.one("ready", 1000, 1, servers=[server]) == {"trouble": f"{server}: the connection was refused: nothing listens there"}
    text = "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n"
    head = f"HTTP/1.1 500 No\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n\r\n"
    with server_of(control, head + text) as odd:
        assert control.one("ready", 200, 1, servers=[odd]) == {"trouble": "not ready yet: etcd, poststarthook/rbac/bootstrap-roles"}


@contextmanager
def server_of(control, text):
    with server(control.pki, lambda s, n: s.sendall(text.encode())) as (url, _):
        yield url


def test_ready_when_any_is(control):
    begin = time.monotonic()
    assert control.one("ready", 5000, 30, servers=[f"https://127.0.0.1:{free_port()}", *control.servers[:1]]) == "ready"
    assert time.monotonic() - begin < 25, "it does not wait for the one that does not listen"


@pytest.mark.parametrize("rounds", [0, 1, 2, 5, 20, 200, 2000])
def test_cancel_and_free_in_flight(control, rounds):
    """Calls, watches, waits and applies, cancelled and freed at all moments; the sanitizers look for what is left."""
    body = control.write("cancel.yaml", "\n---\n".join(f"apiVersion: {v}\nkind: {k}\nmetadata: {{name: cancel-{i}}}" for i, (v, k) in enumerate([
        ("v1", "Namespace"), ("v1", "ConfigMap"), ("example.org/v1", "Nothing"), ("v1", "ConfigMap")])))
    path = "/api/v1/namespaces/test/configmaps"
    # Some of the calls may be answered before the free: those are not cancelled, so only the first half must stay silent.
    said = control.tool("cancel", path, body, rounds)
    assert said[-1] == "freed"


def test_no_proxy_for_the_loopback(control, monkeypatch):
    import conftest
    monkeypatch.setitem(conftest.ENV, "https_proxy", f"http://127.0.0.1:{free_port()}")
    assert control.get("/api")["status"] == 200
