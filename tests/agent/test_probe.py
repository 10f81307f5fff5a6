"""The agent as the probe: who answers, who does not, and why."""
import http.server
import socket
import subprocess
import threading
import time

import pytest


@pytest.fixture
def probe(binary, tmp_path):
    path = tmp_path / "probe"
    path.symlink_to(binary.resolve())
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port):
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail("it does not listen")


@pytest.fixture
def server(probe, tmp_path):
    port, log = free_port(), tmp_path / "log"
    with open(log, "w") as out:
        proc = subprocess.Popen([probe, "serve", str(port), "node-a"], stdout=out)
    wait_port(port)
    yield port, log, proc
    proc.terminate()
    assert proc.wait(5) == 0


def ask(probe, *words, **kw):
    r = subprocess.run([probe, "ask", *words], capture_output=True, text=True, timeout=300, **kw)
    return r.returncode, r.stdout.splitlines(), r.stderr


def test_serve_and_ask(probe, server):
    port, log, _ = server
    urls = [f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}/x?y", f"http://localhost:{port}", f"tcp://127.0.0.1:{port}"]
    status, lines, _ = ask(probe, *urls)
    assert status == 0
    assert lines == [f"ok {u} node-a" for u in urls[:3]] + [f"ok {urls[3]} connected"]
    said = log.read_text().splitlines()
    assert said[0] == f"serving node-a on port {port}"
    assert "GET /x?y HTTP/1.0 from 127.0.0.1" in said and len([x for x in said if x.startswith("GET ")]) == 3


def test_failures_are_counted_and_named(probe, server):
    port, refused = server[0], free_port()
    urls = [f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{refused}/", "http://no-such-name.invalid/", "ftp://x/", "tcp://127.0.0.1"]
    status, lines, _ = ask(probe, "-t", "1", *urls)
    assert status == 4
    assert lines[0] == f"ok {urls[0]} node-a"
    assert lines[1] == f"failed {urls[1]}: cannot connect: Connection refused"
    assert lines[2].startswith(f"failed {urls[2]}: the name ")
    assert all("this is not http://HOST" in x for x in lines[3:])


def test_asks_again_until_the_time_is_over(probe):
    port = free_port()
    late = threading.Timer(1, lambda: procs.append(subprocess.Popen([probe, "serve", str(port), "late"], stdout=subprocess.DEVNULL)))
    procs = []
    late.start()
    try:
        assert ask(probe, "-t", "10", f"http://127.0.0.1:{port}/")[:2] == (0, [f"ok http://127.0.0.1:{port}/ late"])
    finally:
        late.join()
        procs[0].terminate()
        procs[0].wait()


def test_a_server_that_says_nothing(probe):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(8)
        began = time.monotonic()
        url = f"http://127.0.0.1:{s.getsockname()[1]}/"
        status, lines, _ = ask(probe, "-t", "1", url)
    assert status == 1 and lines == [f"failed {url}: connected, but there was no answer"]
    assert time.monotonic() - began < 60, "it waits for the second that it was given, and not without end"


def test_a_server_that_says_too_much(probe):
    """A wrong status, and a body that is long and not text: one line, and short."""
    class Loud(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(500 if self.path == "/bad" else 200, "Oh no")
            self.end_headers()
            self.wfile.write(b"\x1b[31m\xff" + b"x" * 100000)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Loud) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{s.server_port}"
        status, lines, _ = ask(probe, "-t", "1", base + "/bad", base + "/")
        s.shutdown()
    assert status == 1 and lines[0] == f"failed {base}/bad: it answered HTTP/1.0 500 Oh no"
    assert lines[1].startswith(f"ok {base}/ ?[31m?xxx") and len(lines) == 2 and len(lines[1]) < 200


def test_a_client_that_says_nothing_or_too_much(probe, server):
    port, log, proc = server
    for data in (b"", b"x" * 100000, b"GET /\x1b[0m\x00 HTTP/1.0\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                s.recv(100)
            except OSError:  # it had enough
                pass
    assert ask(probe, f"http://127.0.0.1:{port}/")[0] == 0 and proc.poll() is None
    assert max(len(x) for x in log.read_text().splitlines()) < 300 and "\x1b" not in log.read_text()


@pytest.mark.parametrize("words", [[], ["ask"], ["serve"], ["serve", "0", "x"], ["serve", "99999", "x"], ["serve", "8x", "x"], ["ask", "-t", "0", "http://x/"],
                                   ["ask", *["http://x/"] * 300]])
def test_usage(probe, words):
    r = subprocess.run([probe, *words], capture_output=True, text=True)
    assert r.returncode == 2 and r.stderr and not r.stdout


def test_a_port_that_is_taken(probe, server):
    r = subprocess.run([probe, "serve", str(server[0]), "x"], capture_output=True, text=True)
    assert r.returncode == 1 and "cannot listen on port" in r.stderr and "in use" in r.stderr


def test_forwards_both_ways(probe, server):
    """To a name, many at once; a half-closed connection still gets its answer, and a target that is not there costs only its own."""
    target, _, _ = server
    port = free_port()
    proc = subprocess.Popen([probe, "forward", str(port), "localhost", str(target)], stdout=subprocess.DEVNULL)
    try:
        wait_port(port)
        status, lines, _ = ask(probe, *[f"http://127.0.0.1:{port}/{i}" for i in range(20)])
        assert status == 0 and all(line.endswith(" node-a") for line in lines)
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(b"GET /half HTTP/1.0\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
            assert b"node-a" in b"".join(iter(lambda: s.recv(4096), b""))
    finally:
        proc.terminate()
        assert proc.wait(5) == 0


def test_forward_passes_every_byte(probe):
    data = bytes(range(256)) * 40000
    with socket.create_server(("127.0.0.1", 0)) as echo:
        def answer():
            c, _ = echo.accept()
            with c:
                got = b""
                while len(got) < len(data):
                    got += c.recv(1 << 20)
                c.sendall(got)
        thread = threading.Thread(target=answer)
        thread.start()
        port = free_port()
        proc = subprocess.Popen([probe, "forward", str(port), "127.0.0.1", str(echo.getsockname()[1])], stdout=subprocess.DEVNULL)
        wait = time.monotonic() + 30
        while True:
            try:
                s = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                assert time.monotonic() < wait
                time.sleep(0.02)
        with s:
            s.sendall(data)
            back = b""
            while len(back) < len(data):
                part = s.recv(1 << 20)
                assert part
                back += part
        assert back == data
        thread.join()
        proc.terminate()
        proc.wait(5)


def test_a_file_keeps_its_text(probe, tmp_path):
    path = tmp_path / "token"
    run = lambda *words: subprocess.run([probe, *words], capture_output=True, text=True)  # noqa: E731
    assert run("kept", path, "abc").returncode != 0
    assert run("keep", path, "abc").returncode == 0 and path.read_text() == "abc"
    assert run("kept", path, "abc").returncode == 0
    r = run("kept", path, "other")
    assert r.returncode != 0 and "does not have what was written to it" in r.stderr
