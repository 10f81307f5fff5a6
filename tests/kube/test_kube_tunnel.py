"""API servers behind unix sockets, as ssh's forwarding makes them: not open yet, gone, or with nothing at the other end."""
import os
import socket
import threading
import time

import pytest


class Way:
    """A unix socket that leads to a port; with no port it hangs up, as ssh does when the node refuses."""

    def __init__(self, path, port=None):
        self.path, self.port, self.connections = str(path), port, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            if not self.port:
                a.close()
                continue
            b = socket.create_connection(("127.0.0.1", self.port))
            for x, y in ((a, b), (b, a)):
                threading.Thread(target=self.pump, args=(x, y), daemon=True).start()

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        os.unlink(self.path)


@pytest.fixture
def servers():
    return ["https://127.0.0.1:1", "https://127.0.0.1:2"]  # nobody is there: all goes through the sockets


def test_through_a_socket(control, servers, tmp_path):
    way = Way(tmp_path / "0", control.ports[0])
    assert control.get("/api/v1/namespaces/default", servers=servers[:1], sockets=[way.path])["status"] == 200
    assert way.connections == 1
    way.close()


def test_the_next_when_one_is_gone(control, servers, tmp_path):
    for first in (None, Way(tmp_path / "dead")):
        way = Way(tmp_path / "1", control.ports[0])
        path = first.path if first else str(tmp_path / "missing")
        said = control.get("/api/v1/namespaces/default", servers=servers, sockets=[path, way.path])
        assert said["status"] == 200, said
        way.close()


def test_one_that_opens_later_is_waited_for(control, servers, tmp_path):
    paths = [str(tmp_path / "0"), str(tmp_path / "1")]
    proc = control.popen("request", "GET", "/api/v1/namespaces/default", "-", "none", 0, servers=servers, sockets=paths)
    time.sleep(2)
    way = Way(paths[1], control.ports[0])
    out, err = proc.communicate(timeout=900)
    assert proc.returncode == 0 and '"status":200' in out.replace(" ", ""), (out, err)
    way.close()


def test_never_open(control, servers, tmp_path):
    body = control.write("post.json", '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never"}}')
    said = control.one("request", "POST", "/api/v1/namespaces/default/configmaps", "-", body, 1500, servers=servers[:1], sockets=[str(tmp_path / "0")])
    assert said["status"] == 0 and "the ssh tunnel to it is not open" in said["error"], said
    said = control.get("/readyz", servers=servers[:1], sockets=[Way(tmp_path / "1").path])
    assert said["status"] == 0 and "nothing listens there" in said["error"], said


def test_ready_through_sockets(control, servers, tmp_path):
    way = Way(tmp_path / "1", control.ports[0])
    assert control.one("ready", 100, 60, servers=servers, sockets=[str(tmp_path / "0"), way.path]) == "ready"
    way.close()
