"""Watches, and what they do when the API server goes away. These restart it: the last file, by name."""
import json
import queue
import signal
import subprocess
import threading
import time

from conftest import Control

CM = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {l: w}}\ndata: {a: '%s'}\n"


class Watch:
    """The driver, its lines as they come."""

    def __init__(self, control, path, query="", last="the-end", **target):
        self.p = control.popen("watch", path, query, last, **target)
        self.lines, self.seen = queue.Queue(), []
        threading.Thread(target=lambda: [self.lines.put(json.loads(line)) for line in self.p.stdout], daemon=True).start()

    def until(self, *wanted, seconds=30, errors=False):
        """All of (type, name), in any order; returns what came. Nothing comes twice."""
        wanted, came, end = set(wanted), [], time.monotonic() + seconds
        while wanted:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"missing {wanted}; came {[(c['type'], c['name'], c['message']) for c in came]}") from None
            came.append(line)
            assert errors or line["type"] != "ERROR", line
            wanted.discard((line["type"], line["name"]))
        self.seen += came
        return came

    def end(self):
        err = self.p.communicate(timeout=900)[1]
        assert self.p.returncode == 0, err[-4000:]


def namespace(control, name):
    assert control.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n") is None
    return f"/api/v1/namespaces/{name}/configmaps"


def delete(control, path):
    assert control.one("request", "DELETE", path, "-", "none", 0)["status"] == 200


def test_changes(control):
    path = namespace(control, "w1")
    control.apply(CM % ("before", "w1", 1) + "---\n" + CM % ("also", "w1", 1))
    w = Watch(control, path, "labelSelector=l%3Dw")
    first = w.until(("SYNCED", ""))
    assert [(c["type"], c["name"]) for c in first] == [("ADDED", "also"), ("ADDED", "before"), ("SYNCED", "")]
    assert (first[0]["object"]["kind"], first[0]["object"]["apiVersion"]) == ("ConfigMap", "v1")
    control.apply(CM % ("new", "w1", 1))
    w.until(("ADDED", "new"))
    control.apply(CM % ("new", "w1", 2))
    assert w.until(("MODIFIED", "new"))[-1]["object"]["data"] == {"a": "2"}
    control.apply((CM % ("hidden", "w1", 1)).replace("l: w", "l: x"))
    delete(control, f"{path}/new")
    came = w.until(("DELETED", "new"))
    assert [c["name"] for c in came] == ["new"] and came[0]["object"]["data"]
    control.apply(CM % ("the-end", "w1", 1))
    w.end()


def test_pages(control):
    path = namespace(control, "w2")
    control.apply("---\n".join(CM % (f"c{i:04}", "w2", 1) for i in range(1100)))
    w = Watch(control, path)
    came = w.until(("SYNCED", ""))
    assert [c["name"] for c in came[:-1] if c["name"].startswith("c")] == [f"c{i:04}" for i in range(1100)]
    control.apply(CM % ("the-end", "w2", 1))
    w.end()


def test_trouble_is_told(control):
    w = Watch(control, "/apis/nothing.org/v1/things")
    assert w.until(("ERROR", ""), errors=True)[0]["object"]["code"] == 404
    w.p.terminate()
    w.p.communicate()


def test_restart(control):
    """The server is killed, objects change by the other server meanwhile: told once, in full, when it is back."""
    path = namespace(control, "w3")
    control.start_api(1)
    control.wait_ready(1)
    control.apply("---\n".join(CM % (n, "w3", 1) for n in ("kept", "changed", "deleted")))
    w = Watch(control, path)
    w.until(("SYNCED", ""))
    control.stop("api0")
    other = [control.servers[1]]
    control.apply(CM % ("changed", "w3", 2) + "---\n" + CM % ("made", "w3", 1), servers=other)
    assert control.one("request", "DELETE", f"{path}/deleted", "-", "none", 0, servers=other)["status"] == 200
    w.until(("ERROR", ""), errors=True)
    control.start_api(0)
    came = [(c["type"], c["name"]) for c in w.until(("MODIFIED", "changed"), ("ADDED", "made"), ("DELETED", "deleted"), errors=True, seconds=60) if c["type"] != "ERROR"]
    assert sorted(came) == [("ADDED", "made"), ("DELETED", "deleted"), ("MODIFIED", "changed")]
    control.wait_ready(0)
    control.apply(CM % ("the-end", "w3", 1))
    w.until(("ADDED", "the-end"), errors=True)
    w.end()


def test_failover(control):
    """With two servers, losing one is not even noticed."""
    if "api1" not in control.running:
        control.start_api(1)
        control.wait_ready(1)
    path = namespace(control, "w4")
    w = Watch(control, path, servers=control.servers)
    w.until(("SYNCED", ""))
    control.stop("api0", signal.SIGTERM)
    control.apply(CM % ("made", "w4", 1), servers=control.servers)
    w.until(("ADDED", "made"), seconds=15, errors=True)
    control.apply(CM % ("the-end", "w4", 1), servers=control.servers)
    w.until(("ADDED", "the-end"), errors=True)
    w.end()


def test_apply_waits_for_a_restart(control):
    """It begins while the server is away, as the test before left it."""
    if "api0" in control.running:
        control.stop("api0")
    p = control.popen("apply", control.write("during.yaml", CM % ("during", "default", 1)))
    time.sleep(0.5)
    control.start_api(0)
    out, err = p.communicate(timeout=900)
    assert json.loads(out) == {"error": None}, err


def test_machine_is_switched_off(tmp_path):
    """No word comes from the first server any more, not even a refusal: the watch and new calls are at the second within seconds. In a network of its own."""
    holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
    c = Control(tmp_path, ["nsenter", "-n", "-t", str(holder.pid)])
    try:
        time.sleep(0.3)
        subprocess.run([*c.inside, "ip", "link", "set", "lo", "up"], check=True)
        c.start_etcd()
        c.start_api(1)
        c.wait_ready(1)
        c.start("machine", "socat", f"TCP-LISTEN:{c.ports[0]},bind=127.0.0.1,reuseaddr,fork", f"TCP:127.0.0.1:{c.ports[1]}")  # the first: the same server at another address
        c.wait_ready(0)
        path = namespace(c, "w5")
        w = Watch(c, path, servers=c.servers)
        w.until(("SYNCED", ""))
        time.sleep(1)
        for side in ("--dport", "--sport"):
            subprocess.run([*c.inside, "/usr/sbin/iptables", "-A", "INPUT", "-p", "tcp", side, str(c.ports[0]), "-j", "DROP"], check=True)
        begin = time.monotonic()
        assert c.apply(CM % ("made", "w5", 1), servers=c.servers) is None
        assert time.monotonic() - begin < 60
        w.until(("ADDED", "made"), seconds=25, errors=True)
        c.apply(CM % ("the-end", "w5", 1), servers=c.servers[1:])
        w.until(("ADDED", "the-end"), errors=True)
        w.end()
    finally:
        for name in list(c.running):
            c.stop(name)
        holder.kill()
        holder.wait()
