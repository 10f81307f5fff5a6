"""Clients of the API that keep a record: one writes numbered ConfigMaps, one reads back what was acknowledged."""
import base64
import http.client
import json
import socket
import ssl
import tempfile
import threading
import time

NAMESPACE = "numbers"
TIMEOUT = 2  # seconds for one request: a client that notices a dead server


class Api:
    """One connection, made again when it fails. Only for one thread."""

    def __init__(self, kubeconfig, host=None, port=None):
        config = read_kubeconfig(kubeconfig)
        self.host, self.port = host or config["host"], port or config["port"]
        self.connection = None
        self.again(kubeconfig)

    def again(self, kubeconfig):
        """What is in the kubeconfig now: for the next connection. May be called by another thread."""
        config = read_kubeconfig(kubeconfig)
        context = ssl.create_default_context(cadata=config["ca"].decode())
        context.check_hostname = False  # the reader's way is a tunnel
        with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
            pem.write(config["cert"] + b"\n" + config["key"])
            pem.flush()
            context.load_cert_chain(pem.name)
        self.context, self.old = context, True

    def request(self, method, path, body=None, timeout=TIMEOUT):
        """(status, body); raises OSError or http.client.HTTPException when there was no answer."""
        try:
            if self.old:  # a connection is whose it was when it was made
                self.old = False
                self.close()
            if not self.connection:
                self.connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.context)
                self.connection.connect()
                self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            reply = self.connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def read_kubeconfig(path):
    """The few lines that slipway writes; all of them are one value a line."""
    values = {}
    for line in open(path):
        key, _, value = line.strip().lstrip("- ").partition(": ")
        values.setdefault(key, value.strip('"'))
    host, _, port = values["server"].removeprefix("https://").rpartition(":")
    return {"host": host.strip("[]"), "port": int(port), "ca": base64.b64decode(values["certificate-authority-data"]),
            "cert": base64.b64decode(values["client-certificate-data"]), "key": base64.b64decode(values["client-key-data"])}


class Client(threading.Thread):
    """Works until stop(). `ok` are the moments at which a request succeeded."""

    def __init__(self, api, pause):
        super().__init__(daemon=True)
        self.api, self.pause = api, pause
        self.ok, self.troubles = [], []
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            try:
                if self.turn():
                    self.ok.append(time.monotonic())
                    self.over.wait(self.pause)
                else:
                    self.over.wait(0.2)
            except (OSError, http.client.HTTPException) as e:
                self.troubles.append(f"{time.monotonic():.1f} {type(e).__name__}: {e}")
                self.over.wait(0.2)

    def stop(self):
        self.over.set()
        self.join(60)
        self.api.close()

    def gap(self, since):
        """The longest time without a success that was not over yet at `since`, or began later; the one that lasts until now counts too."""
        moments = [*self.ok, time.monotonic()]
        return max(b - a for a, b in zip(moments, moments[1:]) if b > since)


class Writer(Client):
    """One number after the other; one counts as acknowledged when the API said so, and is tried again when it did not."""

    def __init__(self, api, pause=0.05):
        super().__init__(api, pause)
        self.acknowledged = []
        self.number = 1

    def turn(self):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{self.number}"}, "data": {"number": str(self.number)}}
        status, text = self.api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)
        if status not in (201, 409):  # 409: it was written, and the answer got lost
            self.troubles.append(f"{time.monotonic():.1f} {status} {text[:200]}")
            return False
        self.acknowledged.append(self.number)
        self.number += 1
        return True


class Reader(Client):
    """Reads the number acknowledged last: it must be there."""

    def __init__(self, api, writer, pause=0.1):
        super().__init__(api, pause)
        self.writer, self.lost = writer, []

    def turn(self):
        if not self.writer.acknowledged:
            return False
        number = self.writer.acknowledged[-1]
        status, text = self.api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/n{number}")
        if status == 404:
            self.lost.append(number)
        elif status != 200:
            self.troubles.append(f"{time.monotonic():.1f} {status} {text[:200]}")
        return status == 200
