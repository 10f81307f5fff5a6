"""Fetches: a mirror on the loopback that cuts, lies and dawdles; bundles; locks; builds with a go command of straw; images judged by skopeo."""
import fcntl
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import pytest
from upstream import NEWEST, PREVIOUS

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ["SLIPWAY"]).parent if os.environ.get("SLIPWAY") else ROOT / "build"
TOOL = BUILD / "tests" / "artifact" / "fetch_tool"
SLIPWAY = BUILD / "slipway"
# A version that no catalogue has: nothing here may depend on it.
K8S = "/k8s/dl.k8s.io/release/v1.99.3/bin/linux/amd64/"
ETCD = "/k8s/github.com/etcd-io/etcd/releases/download/v3.6.16/"
OFFLINE = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "", "no_proxy": "127.0.0.1"}  # port 9: nobody answers

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="fetch_tool is not built")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def noise(n, seed=b"x"):
    return b"".join(hashlib.sha256(seed + i.to_bytes(4, "big")).digest() for i in range(n // 32))


class Mirror(http.server.BaseHTTPRequestHandler):
    """Files from a dict; `cut` ends answers after so many bytes, so often; every request is written down."""
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.send_response(200 if self.server.up else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        s = self.server
        s.seen.append((self.path, self.headers.get("Range"), self.headers.get("If-Range")))
        data = s.files.get(self.path)
        if callable(data):
            data = data(self)
        if data is None and self.path not in s.status:
            self.send_response(404)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"gone")
            return
        if self.path in s.status:
            self.send_error(s.status[self.path])
            return
        if s.fail.get(self.path, 0) > 0:
            s.fail[self.path] -= 1
            self.send_error(500)
            return
        tag, start = f'"{sha(data)[:16]}"', 0
        rng = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if rng and s.ranges and self.headers.get("If-Range") in (None, tag):
            start = int(rng[1])
            if start >= len(data):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        if s.tags:
            self.send_header("ETag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if s.chunked:
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data[start:])
            self.close_connection = True
            return
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        limit = s.cut.get(self.path, [])
        end = start + limit.pop(0) if limit else len(data)
        for at in range(start, min(end, len(data)), 16384):
            self.wfile.write(data[at:min(at + 16384, end)])
            if s.slow:
                self.wfile.flush()
                time.sleep(s.slow)
        if end < len(data):
            self.close_connection = True

    def log_message(self, *_):
        pass


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients that go away are what is tested


@pytest.fixture
def mirror():
    s = QuietServer(("127.0.0.1", 0), Mirror)
    s.chunked, s.status = False, {}
    s.files, s.cut, s.fail, s.seen, s.slow, s.up, s.ranges, s.tags = {}, {}, {}, [], 0, True, True, True
    s.url = f"http://127.0.0.1:{s.server_port}/k8s"
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield s
    s.shutdown()
    s.server_close()


class Tool:
    def __init__(self, tmp):
        self.tmp, self.cache, self.lock = tmp, tmp / "cache", tmp / "bundle.lock"
        self.env = dict(os.environ, SLIPWAY_CACHE=str(self.cache), **OFFLINE)

    def start(self, *args, **env):
        return subprocess.Popen([str(TOOL), "-l", str(self.lock), *map(str, args)], env=dict(self.env, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *args, status=0, **env):
        p = self.start(*args, **env)
        out, self.err = p.communicate(timeout=900)
        assert p.returncode == status, self.err
        assert not [*(self.cache / "tmp").glob("*"), *(self.cache / "artifacts").glob(".work.*")], "something is left behind"
        return {(i := json.loads(line))["name"]: i for line in out.splitlines()}

    def blob(self, item):
        data = Path(item["path"]).read_bytes()
        assert sha(data) == item["digest"] and len(data) == item["size"]
        return data

    def error(self):
        found = re.search(r"^error: (.*)$", self.err, re.M)
        assert found, self.err
        return found[1]


@pytest.fixture
def tool(tmp_path):
    return Tool(tmp_path)


def serve_kubelet(mirror, data):
    mirror.files[K8S + "kubelet"] = data
    mirror.files[K8S + "kubelet.sha256"] = sha(data).encode()


def tgz(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644 if name.endswith(("LICENSE", "README.md")) else 0o755
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


# ---- the mirror ----


def test_download_then_cache(mirror, tool):
    data = noise(300_000)
    serve_kubelet(mirror, data)
    items = tool.run("-m", mirror.url, "kubelet@1.99.3")
    assert items["kubelet"]["source"] == "mirror" and tool.blob(items["kubelet"]) == data
    assert "downloading from the mirror" in tool.err and "taken from the mirror" in tool.err
    lock = json.loads(tool.lock.read_text())
    assert lock["items"]["kubelet@1.99.3/amd64"] == {"sha256": sha(data), "size": len(data), "source": "mirror"}
    before, text = len(mirror.seen), tool.lock.read_bytes()
    items = tool.run("-m", mirror.url, "kubelet@1.99.3")
    assert items["kubelet"]["source"] == "cache" and len(mirror.seen) == before and tool.lock.read_bytes() == text
    assert not list((tool.cache / "partial").iterdir())


def test_archives_give_several_items_with_one_download(mirror, tool):
    members = {f"etcd-v3.6.16-linux-amd64/{n}": noise(40_000, n.encode()) for n in ("etcd", "etcdctl", "etcdutl", "README.md")}
    archive = tgz(members)
    name = "etcd-v3.6.16-linux-amd64.tar.gz"
    mirror.files[ETCD + name] = archive
    mirror.files[ETCD + "SHA256SUMS"] = f"{sha(b'other')}  other.tar.gz\n{sha(archive)}  {name}\n".encode()
    items = tool.run("-m", mirror.url, "etcd@3.6.16", "etcdctl@3.6.16", "etcdutl@3.6.16")
    for n in ("etcd", "etcdctl", "etcdutl"):
        assert tool.blob(items[n]) == members[f"etcd-v3.6.16-linux-amd64/{n}"]
    assert [p for p, *_ in mirror.seen].count(ETCD + name) == 1
    assert not list((tool.cache / "partial").iterdir())


def test_a_set_is_a_plain_tar(mirror, tool):
    base = "/k8s/github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz"
    mirror.files[base] = tgz({"./bridge": b"B" * 700, "./loopback": b"L", "./LICENSE": b"text", "./README.md": b"text"})
    mirror.files[base + ".sha256"] = f"{sha(mirror.files[base])}  cni-plugins-linux-amd64-v1.9.1.tgz\n".encode()
    data = tool.blob(tool.run("-m", mirror.url, "cni-plugins@1.9.1")["cni-plugins"])
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as t:
        assert {m.name: t.extractfile(m).read() for m in t} == {"bridge": b"B" * 700, "loopback": b"L"}
        assert all(m.mode == 0o755 and m.mtime == 0 and m.uid == 0 for m in t)


def test_a_missing_member_is_named(mirror, tool):
    name = "etcd-v3.6.16-linux-amd64.tar.gz"
    mirror.files[ETCD + name] = tgz({"etcd-v3.6.16-linux-amd64/etcd": b"x"})
    mirror.files[ETCD + "SHA256SUMS"] = f"{sha(mirror.files[ETCD + name])}  {name}\n".encode()
    tool.run("-s", "mirror", "-m", mirror.url, "etcdctl@3.6.16", status=1)
    assert "etcdctl 3.6.16: the mirror: the archive has no member etcd-v3.6.16-linux-amd64/etcdctl" in tool.error()


def test_goes_on_after_a_cut(mirror, tool):
    data = noise(400_000)
    serve_kubelet(mirror, data)
    mirror.cut[K8S + "kubelet"] = [100_000, 0, 50_000]
    item = tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]
    assert tool.blob(item) == data and "trying again" in tool.err
    asked = [r for p, r, _ in mirror.seen if p.endswith("/kubelet")]
    assert asked == [None, "bytes=100000-", "bytes=100000-", "bytes=150000-"]


def test_gives_up_and_goes_on_in_the_next_run(mirror, tool):
    data = noise(400_000)
    serve_kubelet(mirror, data)
    mirror.cut[K8S + "kubelet"] = [100_000] + [0] * 10
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3", status=5)
    assert "failed after" in tool.error() and "continues where it stopped" in tool.err
    mirror.cut.clear()
    mirror.seen.clear()
    assert tool.blob(tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == data
    assert (K8S + "kubelet", "bytes=100000-") in [(p, r) for p, r, _ in mirror.seen]


def test_killed_in_mid_transfer(mirror, tool):
    data = noise(1_600_000)
    serve_kubelet(mirror, data)
    mirror.slow = 0.05
    p = tool.start("-m", mirror.url, "kubelet@1.99.3")
    time.sleep(1)
    p.send_signal(signal.SIGKILL)
    p.communicate()
    part, = (tool.cache / "partial").glob("*.part")
    have = part.stat().st_size
    assert 0 < have < len(data)
    mirror.slow = 0
    assert tool.blob(tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == data
    assert mirror.seen[-1][1] == f"bytes={have}-"


def test_stopped_by_its_caller(mirror, tool):
    serve_kubelet(mirror, noise(1_600_000))
    mirror.slow = 0.05
    tool.run("-t", 700, "-m", mirror.url, "kubelet@1.99.3", status=99)
    assert list((tool.cache / "partial").glob("*.part"))


def test_file_changed_between_the_pieces(mirror, tool):
    """Without a name for the bytes that are there, the checksum tells, and the whole is taken again."""
    old, new = noise(300_000, b"old"), noise(300_000, b"new")
    mirror.tags = False
    serve_kubelet(mirror, old)
    mirror.cut[K8S + "kubelet"] = [100_000] + [0] * 10
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3", status=5)
    mirror.cut.clear()
    serve_kubelet(mirror, new)
    assert tool.blob(tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == new


def test_server_without_ranges(mirror, tool):
    data = noise(300_000)
    serve_kubelet(mirror, data)
    mirror.ranges = False
    mirror.cut[K8S + "kubelet"] = [100_000]
    assert tool.blob(tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == data


def test_part_that_is_too_long(mirror, tool):
    data = noise(100_000)
    serve_kubelet(mirror, data)
    mirror.cut[K8S + "kubelet"] = [90_000] + [0] * 10
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3", status=5)
    mirror.cut.clear()
    part, = (tool.cache / "partial").glob("*.part")
    part.write_bytes(data + b"more")
    assert tool.blob(tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == data


def test_server_failure_passes(mirror, tool):
    data = noise(50_000)
    serve_kubelet(mirror, data)
    mirror.fail = {K8S + "kubelet": 2, K8S + "kubelet.sha256": 1}
    assert tool.blob(tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == data


def test_wrong_checksum_is_refused(mirror, tool):
    mirror.files[K8S + "kubelet"] = noise(50_000)
    mirror.files[K8S + "kubelet.sha256"] = sha(b"another").encode()
    tool.run("-m", mirror.url, "kubelet@1.99.3", status=8)  # auto: nothing else is tried
    assert re.search(r"kubelet 1\.99\.3: .*/kubelet has the digest \w{12}…, and upstream's checksum is \w{12}…: it was refused", tool.error())
    assert not list((tool.cache / "blobs" / "sha256").iterdir()) and not list((tool.cache / "partial").glob("*.part"))


def test_checksums_without_the_file(mirror, tool):
    mirror.files[K8S + "kubelet"] = b"x"
    mirror.files[K8S + "kubelet.sha256"] = b"<html>sign in</html>"
    tool.run("-m", mirror.url, "kubelet@1.99.3", status=8)
    assert "have none of it" in tool.error()


@pytest.mark.parametrize("status", [403, 404, 410])
@pytest.mark.parametrize("source", ["mirror", "auto"])
def test_no_checksum_is_a_refusal(mirror, tool, status, source):
    mirror.files[K8S + "kubelet"] = noise(50_000)
    mirror.status[K8S + "kubelet.sha256"] = status
    tool.run("-s", source, "-m", mirror.url, "kubelet@1.99.3", status=8 if source == "mirror" else 1, PATH="/nowhere")
    said = tool.error()
    assert f"kubelet 1.99.3: the mirror: there is no checksum of {mirror.url}/dl.k8s.io/release/v1.99.3/bin/linux/amd64/kubelet" in said
    assert f"(the server answered {status}), and no bundle.lock pins it: it was refused" in said
    assert "artifacts.trustOnFirstUse: [kubelet]" in tool.err and "bundle.lock that has its digest" in tool.err
    assert not [p for p, *_ in mirror.seen if p.endswith("/kubelet")] and not tool.lock.exists()


FLANNELD = "/k8s/github.com/flannel-io/flannel/releases/download/v0.26.7/flanneld-amd64"


def test_upstream_without_checksums_is_trusted_once_by_name(mirror, tool, tmp_path):
    data = mirror.files[FLANNELD] = noise(50_000)
    args = ("-s", "mirror", "-m", mirror.url, "flanneld@0.26.7")
    tool.run(*args, status=8)
    assert "(upstream has none)" in tool.error() and "trustOnFirstUse: [flanneld]" in tool.err
    tool.run("-T", "kubelet", *args, status=8)
    item = tool.run("-T", "flanneld", *args)["flanneld"]
    assert tool.blob(item) == data
    assert f"flanneld: trusted without a checksum at first use: {tool.lock} pins sha256:{sha(data)}" in tool.err
    # pinned: from now on nothing is trusted, with the option or without
    tool.env["SLIPWAY_CACHE"] = str(tmp_path / "other")
    assert tool.blob(tool.run(*args)["flanneld"]) == data and "first use" not in tool.err
    mirror.files[FLANNELD] = noise(50_000, b"another")
    tool.env["SLIPWAY_CACHE"] = str(tmp_path / "third")
    tool.run("-T", "flanneld", *args, status=8)
    assert re.search(r"its digest is \w{12}…, and .*bundle.lock pins \w{12}…", tool.error())


def test_what_one_cluster_trusted_is_no_others(mirror, tool):
    mirror.files[FLANNELD] = noise(50_000)
    args = ("-s", "mirror", "-m", mirror.url, "flanneld@0.26.7")
    tool.run("-T", "flanneld", *args)
    tool.lock.unlink()  # another cluster, the same cache
    tool.run(*args, status=8)
    assert "there is no checksum" in tool.error()
    assert tool.run("-T", "flanneld", *args)["flanneld"]["source"] == "cache" and "trusted without a checksum at first use" in tool.err


def test_an_index_from_before_is_not_believed(mirror, tool):
    """Digests that were noted when a missing checksum was no refusal are asked for again."""
    data = mirror.files[K8S + "kubelet"] = noise(50_000)
    blobs = tool.cache / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (blobs / sha(data)).write_bytes(data)
    entry = {"sha256": sha(data), "size": len(data), "source": "mirror"}
    (tool.cache / "index.json").write_text(json.dumps({"version": 1, "items": {"kubelet@1.99.3/amd64 mirror": entry}}))
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3", status=8)
    assert "there is no checksum" in tool.error()


@pytest.mark.parametrize("length", [True, False])
def test_downloads_are_bounded_whatever_the_server_says(mirror, tool, length):
    """Chunked, without an end."""
    data = noise(3 << 20)
    serve_kubelet(mirror, data)
    mirror.chunked = not length
    tool.run("-S", 2, "-m", mirror.url, "kubelet@1.99.3", status=8)
    assert "/kubelet is larger than a file may be (2 MB)" in tool.error() and "it was refused" in tool.error()
    assert not list((tool.cache / "partial").glob("*.part")) and not list((tool.cache / "blobs" / "sha256").iterdir())
    assert tool.blob(tool.run("-S", 4, "-m", mirror.url, "kubelet@1.99.3")["kubelet"]) == data


def test_checksums_are_bounded(mirror, tool):
    mirror.files[K8S + "kubelet"] = b"x"
    mirror.files[K8S + "kubelet.sha256"] = b"0" * (2 << 20)
    mirror.chunked = True
    tool.run("-m", mirror.url, "kubelet@1.99.3", status=8)
    assert "larger than" in tool.error()


def test_all_downloads_together_are_bounded(mirror, tool):
    mirror.chunked = True
    for name in ("kubelet", "kubeadm", "kubectl"):
        data = mirror.files[K8S + name] = noise(1 << 20, name.encode())
        mirror.files[K8S + name + ".sha256"] = sha(data).encode()
    names = [f"{n}@1.99.3" for n in ("kubelet", "kubeadm", "kubectl")]
    tool.run("-S", 2, "-A", 2, "-m", mirror.url, *names, status=8)
    assert "than all of one run may be (2 MB)" in tool.error()
    tool.run("-S", 2, "-A", 4, "-m", mirror.url, *names)


def etcd_archive(mirror, archive):
    name = "etcd-v3.6.16-linux-amd64.tar.gz"
    mirror.files[ETCD + name] = archive
    mirror.files[ETCD + "SHA256SUMS"] = f"{sha(archive)}  {name}\n".encode()


def test_archives_are_bounded(mirror, tool):
    """A small file that unpacks to a large one, in the member that is wanted and in one that is passed over; a size that lies; members without end."""
    large = bytes(5 << 20)
    lie = bytearray(gzip.decompress(tgz({"etcd-v3.6.16-linux-amd64/etcd": b"x"})))
    lie[124:136] = b"\x80" + b"\xff" * 11
    lie[148:156] = b"%06o\0 " % sum(b if not 148 <= i < 156 else 32 for i, b in enumerate(lie[:512]))
    bombs = {
        "wanted": tgz({"etcd-v3.6.16-linux-amd64/etcd": large}),
        "passed over": tgz({"readme": large, "etcd-v3.6.16-linux-amd64/etcd": b"x"}),
        "a lie": gzip.compress(bytes(lie)),
        "many": tgz({f"d{i}": b"" for i in range(20_100)}),
    }
    for what, archive in bombs.items():
        assert len(archive) < 1 << 20, what
        etcd_archive(mirror, archive)
        tool.run("-S", 4, "-m", mirror.url, "etcd@3.6.16", status=8)
        assert "cannot unpack" in tool.error() and "more " in tool.error() and "it was refused" in tool.error(), (what, tool.error())
        assert not list((tool.cache / "blobs" / "sha256").iterdir())


def test_404(mirror, tool):
    mirror.files[K8S + "kubelet.sha256"] = sha(b"x").encode()
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3", status=1)
    assert tool.error() == f"kubelet 1.99.3: the mirror: {mirror.url}/dl.k8s.io/release/v1.99.3/bin/linux/amd64/kubelet is not there (the server answered 404)"
    assert "hint: add the file to the mirror" in tool.err


def test_unreachable_mirror(tool):
    start = time.monotonic()
    tool.run("-s", "mirror", "-m", "http://127.0.0.1:9/", *[f"{n}@1.99.3" for n in ("kubelet", "kubeadm", "kubectl", "kube-proxy")], status=5)
    assert "cannot be reached" in tool.error() and time.monotonic() - start < 60  # who does not listen is not waited for


def test_auto_falls_through_with_one_question(mirror, tool):
    mirror.up = False
    start = time.monotonic()
    tool.run("-m", mirror.url, "crio@1.36.0", "conmon@1.0", status=1)
    assert time.monotonic() - start < 60
    assert "the mirror cannot be reached" in tool.err and "upstream cannot be reached" in tool.err and not mirror.seen
    said = tool.error()
    assert said.startswith("crio 1.36.0: the mirror: ") and "; upstream: " in said and "; a build: crio cannot be built" in said


def test_two_runs_at_once(mirror, tool):
    data = noise(800_000)
    serve_kubelet(mirror, data)
    mirror.slow = 0.03
    first = tool.start("-m", mirror.url, "kubelet@1.99.3")
    time.sleep(0.6)
    second = tool.start("-m", mirror.url, "kubelet@1.99.3")
    for p, source in ((first, "mirror"), (second, "cache")):
        out, err = p.communicate(timeout=600)
        assert p.returncode == 0, err
        assert json.loads(out)["source"] == source
    assert "waiting for another run" in err and "locked by slipway, process" in err
    assert [p for p, *_ in mirror.seen].count(K8S + "kubelet") == 1


# ---- the lock ----


def test_lock_mismatch(mirror, tool):
    serve_kubelet(mirror, noise(50_000, b"a"))
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3")
    lock = tool.lock.read_bytes()
    tool.env["SLIPWAY_CACHE"] = str(tool.tmp / "other")
    serve_kubelet(mirror, noise(50_000, b"b"))
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3", status=8)
    assert re.search(r"kubelet 1\.99\.3: the mirror: its digest is \w{12}…, and .*bundle.lock pins \w{12}…", tool.error())
    assert f"hint: if the change is intended, remove the line of kubelet@1.99.3/amd64 from {tool.lock}" in tool.err
    assert tool.lock.read_bytes() == lock


def test_locked_digest_is_taken_from_the_cache_whatever_the_index_says(mirror, tool):
    data = noise(50_000, b"a")
    serve_kubelet(mirror, data)
    tool.run("-s", "mirror", "-m", mirror.url, "kubelet@1.99.3")
    (tool.cache / "index.json").unlink()
    assert tool.run("-s", "upstream", "kubelet@1.99.3")["kubelet"]["digest"] == sha(data)


def test_damaged_lock_and_index(mirror, tool):
    serve_kubelet(mirror, noise(50_000))
    tool.run("-m", mirror.url, "kubelet@1.99.3")
    tool.lock.unlink()
    (tool.cache / "index.json").write_text("{nonsense")
    assert tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]["source"] == "mirror"
    tool.lock.write_text("{nonsense")
    tool.run("-m", mirror.url, "kubelet@1.99.3", status=8)
    assert "bundle.lock is damaged: line 1" in tool.error()


def test_a_blob_that_was_cut_is_fetched_again(mirror, tool):
    data = noise(50_000)
    serve_kubelet(mirror, data)
    item = tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]
    os.truncate(item["path"], 100)
    item = tool.run("-m", mirror.url, "kubelet@1.99.3")["kubelet"]
    assert item["source"] == "mirror" and tool.blob(item) == data


def test_leftovers_are_cleaned(mirror, tool):
    serve_kubelet(mirror, noise(50_000))
    (tool.cache / "tmp" / "build-x").mkdir(parents=True)
    (tool.cache / "tmp" / "build-x" / "f").write_text("x")
    (tool.cache / "tmp" / "blob.x").write_text("x")
    old = tool.cache / "partial" / "old.part"
    old.parent.mkdir(parents=True)
    old.write_text("x")
    os.utime(old, (0, 0))
    tool.run("-m", mirror.url, "kubelet@1.99.3")
    assert not old.exists()


# ---- bundles ----


def verify(bundle):
    return subprocess.run([str(TOOL), "-V", str(bundle)], capture_output=True, text=True)


def test_bundle_round_trip(mirror, tool, tmp_path):
    data = noise(300_000)
    serve_kubelet(mirror, data)
    bundle = tmp_path / "bundle"
    tool.run("-m", mirror.url, "-w", bundle, "kubelet@1.99.3")
    assert sorted(p.name for p in bundle.iterdir()) == ["blobs", "bundle.lock"]
    assert json.loads(verify(bundle).stdout) == {"items": 1, "bytes": len(data)}
    tool.env["SLIPWAY_CACHE"] = str(tmp_path / "other")
    for source in ("auto", "bundle"):
        item = tool.run("-s", source, "-b", bundle, "kubelet@1.99.3")["kubelet"]
        assert item["digest"] == sha(data) and item["source"] == ("bundle" if source == "auto" else "cache")
    tool.run("-s", "bundle", "-b", bundle, "kubeadm@1.99.3", status=1)
    assert tool.error() == f"kubeadm 1.99.3: the bundle: {bundle}/bundle.lock does not have it"


def test_damaged_bundle(mirror, tool, tmp_path):
    data = noise(300_000)
    serve_kubelet(mirror, data)
    bundle = tmp_path / "bundle"
    tool.run("-m", mirror.url, "-w", bundle, "kubelet@1.99.3")
    blob = bundle / "blobs" / "sha256" / sha(data)
    blob.write_bytes(b"x" + data[1:])
    out = verify(bundle)
    assert out.returncode == 8 and f"the bundle {bundle}: kubelet@1.99.3/amd64 is damaged" in out.stderr
    tool.env["SLIPWAY_CACHE"] = str(tmp_path / "other")
    tool.run("-b", bundle, "kubelet@1.99.3", status=8)
    assert "kubelet 1.99.3: the bundle is damaged" in tool.error()
    blob.unlink()
    out = verify(bundle)
    assert out.returncode == 8 and "is missing" in out.stderr
    out = verify(tmp_path / "other")
    assert out.returncode == 8 and "is no bundle" in out.stderr


# ---- builds ----

STRAW_GO = r"""#!/usr/bin/env python3
import json, os, sys, time
from pathlib import Path
here = Path(os.environ["STRAW"])
with open(here / "calls", "a") as f:
    f.write(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "env": {k: v for k, v in os.environ.items() if k.startswith(("GO", "CGO")) or k == "CC"}}) + "\n")
a = sys.argv[1:]
if a[0] == "env":
    print(json.dumps({"GOVERSION": "go1.26.8", "GOFLAGS": "-x", "GOSUMDB": os.environ.get("GOSUMDB", "sum.golang.org")}))
elif a[:2] == ["mod", "download"]:
    (here / "k.mod").write_text("module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n\tk8s.io/klog/v2 v2.1.0\n\tk8s.io/client-go v0.0.0\n)\n"
        "replace (\n\texample.net/mux => example.net/fork v0.0.0-2025 // why\n\texample.net/own v1.0.0 => example.net/pinned v1.1.0\n\texample.net/here => ./here\n)\n\n"
        "replace example.net/one => example.net/two v1.2.3\n\nexclude example.net/bad v1.0.0\n")
    print(json.dumps({"GoMod": str(here / "k.mod")}))
elif a[:2] == ["mod", "tidy"]:
    (here / "go.mod").write_text(Path("go.mod").read_text())
    (here / "tools.go").write_text(Path("tools.go").read_text())
elif a[:2] == ["list", "-m"]:
    (here / "module" / "cfg" / "cis-1").mkdir(parents=True, exist_ok=True)
    (here / "module" / "cfg" / "cis-1" / "x.yaml").write_text("a table")
    print(here / "module")
elif a[0] == "list":
    print("a\nb\nc\nd")
elif a[0] == "build":
    if os.environ.get("STRAW_FAIL"):
        print("# pkg\npkg/x.go:1:1: it does not compile", file=sys.stderr)
        sys.exit(1)
    print("a\nb", file=sys.stderr, flush=True)
    time.sleep(float(os.environ.get("STRAW_SLEEP", "0")))
    for p in a:
        if "/" in p and not p.startswith("-") and not p.endswith("/") and "=" not in p:
            words = p.split("/")
            Path("out", words[-2] if words[-1] in ("v2", "v3") else words[-1]).write_text("built " + p)
"""


@pytest.fixture
def straw(tool, tmp_path):
    (tmp_path / "bin").mkdir()
    go = tmp_path / "bin" / "go"
    go.write_text(STRAW_GO)
    go.chmod(0o755)
    tool.env.update(PATH=f"{tmp_path}/bin:{tool.env['PATH']}", STRAW=str(tmp_path))
    tool.calls = lambda: [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    return tool


def test_build_of_kubernetes(straw, tmp_path):
    unverified = {"GONOSUMDB": "*", "GOINSECURE": "*", "GONOSUMCHECK": "1"}
    items = straw.run("-s", "build", "kubelet@1.98.4", "kubectl@1.98.4", "image:registry.k8s.io/kube-scheduler:v1.98.4", **unverified)
    assert straw.blob(items["kubelet"]) == b"built k8s.io/kubernetes/cmd/kubelet" and items["kubelet"]["source"] == "build"
    calls = straw.calls()
    assert [" ".join(c["argv"][:2]) for c in calls] == ["env -json", "mod download", "mod tidy", "list -deps", "build -v"]
    build = calls[-1]
    assert sum(a.startswith("k8s.io/kubernetes/cmd/") for a in build["argv"]) == 7
    flags = build["argv"][build["argv"].index("-ldflags") + 1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.98.4" in flags and "gitMinor=98" in flags
    env = build["env"]
    assert env["CGO_ENABLED"] == "0" and env["GOARCH"] == "amd64" and env["GOFLAGS"].split() == ["-x", "-buildvcs=false", "-trimpath"]
    for call in calls:  # whatever the computer's own setting is
        assert [call["env"].get(n) for n in unverified] == ["none", "none", ""]
    mod = (tmp_path / "go.mod").read_text()
    assert "require k8s.io/kubernetes v1.98.4\n" in mod and "replace k8s.io/api => k8s.io/api v0.98.4\n" in mod and "klog" not in mod
    assert "building kubernetes 1.98.4: 2 of 4 packages 495" in straw.err


def test_build_with_the_forks_that_the_module_names(straw, tmp_path):
    """A directory of the module is none of this build's."""
    straw.run("-s", "build", "image:docker.io/library/traefik:v3.6.12")
    mod = (tmp_path / "go.mod").read_text()
    assert "require github.com/traefik/traefik/v3 v3.6.12\n" in mod
    assert [line for line in mod.splitlines() if "example.net" in line] == [
        "replace example.net/mux => example.net/fork v0.0.0-2025", "replace example.net/own v1.0.0 => example.net/pinned v1.1.0", "replace example.net/one => example.net/two v1.2.3", "exclude example.net/bad v1.0.0"]
    assert "k8s.io/api" not in mod


def test_nothing_is_built_of_unverified_modules(straw):
    straw.run("-s", "build", "etcd@3.6.16", status=8, GOSUMDB="off")
    assert "does not verify modules on this computer (GOSUMDB=off)" in straw.error() and "unset GOSUMDB" in straw.err
    assert [c["argv"][0] for c in straw.calls()] == ["env"]


def test_build_renames_programs(straw):
    items = straw.run("-s", "build", "etcd@3.6.16", "etcdctl@3.6.16", "flanneld@0.26.7")
    assert straw.blob(items["etcd"]) == b"built go.etcd.io/etcd/server/v3"
    assert straw.blob(items["flanneld"]) == b"built github.com/flannel-io/flannel"
    cgo = [c for c in straw.calls() if c["argv"][0] == "build" and "github.com/flannel-io/flannel" in c["argv"]][0]
    assert cgo["env"]["CGO_ENABLED"] == "1" and '-extldflags "-static"' in " ".join(cgo["argv"])


def test_what_upstream_has_only_inside_images_is_built(straw):
    items = straw.run("calico-node@3.28.5", "calico@3.28.5")
    assert straw.blob(items["calico-node"]) == b"built github.com/projectcalico/calico/node/cmd/calico-node"
    assert items["calico"]["source"] == "build" and "upstream cannot be reached" not in straw.err


def test_a_build_keeps_its_programs(straw):
    straw.run("-s", "build", "etcdctl@3.6.16")
    assert (straw.cache / "artifacts" / "etcd-3.6.16" / "etcd").read_text() == "built go.etcd.io/etcd/server/v3"
    straw.run("-s", "build", "etcdutl@3.6.16")
    assert sum(c["argv"][0] == "build" for c in straw.calls()) == 1, "the second is taken from there"


def test_build_for_the_other_architecture(straw, tmp_path):
    """Each architecture has its own lines in the lock, and its own compiler where C is part of it."""
    straw.run("-s", "build", "etcd@3.6.16")
    straw.run("-s", "build", "-a", "arm64", "etcd@3.6.16", "flanneld@0.26.7")
    assert sorted(json.loads(straw.lock.read_text())["items"]) == ["etcd@3.6.16/amd64", "etcd@3.6.16/arm64", "flanneld@0.26.7/arm64"]
    builds = [c["env"] for c in straw.calls() if c["argv"][0] == "build"]
    assert [(e["GOARCH"], e["CGO_ENABLED"], e.get("CC")) for e in builds[:1]] == [("amd64", "0", None)]
    assert sorted((e["GOARCH"], e["CGO_ENABLED"], e.get("CC")) for e in builds[1:]) == [("arm64", "0", None), ("arm64", "1", "aarch64-linux-gnu-gcc")]
    straw.run("-s", "build", "-a", "arm64", "runc@1.5.2", status=1)
    assert "runc cannot be built for arm64 (it is linked with a C library of that architecture), and this computer has none of its own" in straw.error()


def test_arm64_from_the_mirror(mirror, tool):
    data = noise(100_000)
    path = K8S.replace("amd64", "arm64") + "kubelet"
    mirror.files[path], mirror.files[path + ".sha256"] = data, sha(data).encode()
    assert tool.blob(tool.run("-m", mirror.url, "-a", "arm64", "kubelet@1.99.3")["kubelet"]) == data
    assert list(json.loads(tool.lock.read_text())["items"]) == ["kubelet@1.99.3/arm64"]


def test_a_bundle_by_hand(mirror, tool, tmp_path):
    """The lock beside cluster.yaml and the cache's blobs are a bundle: what the hints say."""
    data = noise(100_000)
    serve_kubelet(mirror, data)
    tool.run("-m", mirror.url, "kubelet@1.99.3")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "bundle.lock").write_text(tool.lock.read_text())
    shutil.copytree(tool.cache / "blobs", bundle / "blobs")
    assert json.loads(verify(bundle).stdout) == {"items": 1, "bytes": len(data)}
    tool.env["SLIPWAY_CACHE"] = str(tmp_path / "other")
    assert tool.run("-s", "bundle", "-b", bundle, "kubelet@1.99.3")["kubelet"]["source"] == "bundle"


def test_build_that_fails(straw, tmp_path):
    straw.run("-s", "build", "etcd@3.6.16", status=1, STRAW_FAIL="1")
    assert straw.error() == "etcd 3.6.16: a build: go build failed with status 1: pkg/x.go:1:1: it does not compile"
    log = straw.cache / "logs" / "build-etcd-3.6.16.log"
    assert f"hint: all it said is in {log}" in straw.err and "does not compile" in log.read_text()


def test_build_without_go(tool, tmp_path):
    (tmp_path / "bin").mkdir()
    tool.run("-s", "build", "etcd@3.6.16", status=1, PATH=str(tmp_path / "bin"))
    assert "cannot start go" in tool.error() and "hint: install Go" in tool.err


def test_build_that_is_stopped(straw):
    straw.run("-t", 500, "-s", "build", "etcd@3.6.16", status=99, STRAW_SLEEP="600")
    pids = subprocess.run(["pgrep", "-f", str(straw.tmp / "bin" / "go")], capture_output=True, text=True).stdout
    assert not pids


def test_build_waits_for_another_run(straw, tmp_path):
    """It holds the lock while it builds; what it built is taken."""
    (straw.cache / "artifacts").mkdir(parents=True)
    holder = open(straw.cache / "artifacts" / ".lock", "w")
    fcntl.flock(holder, fcntl.LOCK_EX)
    p = straw.start("-s", "build", "etcd@3.6.16")
    time.sleep(1)
    out = straw.cache / "artifacts" / "etcd-3.6.16"
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "etcd").write_text("another run's")
    (tmp_path / "made").rename(out)
    holder.close()
    got, err = p.communicate(timeout=600)
    assert p.returncode == 0 and "waiting for another run that builds" in err
    assert Path(json.loads(got)["path"]).read_text() == "another run's" and not (tmp_path / "calls").exists()


def test_own_program_where_it_cannot_be_built(straw, tmp_path):
    for name in ("runc", "crun"):
        (tmp_path / "bin" / name).write_text("own " + name)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "bin" / "pkg-config").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "pkg-config").chmod(0o755)
    items = straw.run("-s", "build", "runc@1.5.2", "crun@1.29.1")
    assert straw.blob(items["runc"]) == b"own runc" and items["runc"]["source"] == items["crun"]["source"] == "computer"
    assert "libseccomp's headers are not installed" in straw.err and "it is not written in Go" in straw.err
    assert json.loads(straw.lock.read_text())["items"]["runc@1.5.2/amd64"]["source"] == "computer"


def test_runc_is_built_where_its_library_is(straw, tmp_path):
    (tmp_path / "bin" / "pkg-config").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bin" / "pkg-config").chmod(0o755)
    assert straw.blob(straw.run("-s", "build", "runc@1.5.2")["runc"]) == b"built github.com/opencontainers/runc"


# ---- slipway programs ----


def programs(straw, *args, status=0, **env):
    """Directories by name, or what the list says."""
    p = subprocess.run([SLIPWAY, "programs", *args], env=dict(straw.env, **env), capture_output=True, text=True, timeout=900)
    straw.err = p.stderr
    assert p.returncode == status, p.stderr
    return p.stdout


def test_programs_are_built_in_order(straw, tmp_path):
    """One after the other, quick ones first, as the catalogue says; nothing becomes a blob, and no other fetch waits."""
    (tmp_path / "bin" / "pkg-config").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bin" / "pkg-config").chmod(0o755)
    straw.cache.mkdir()
    with open(straw.cache / "fetch.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # somebody else fetches
        out = programs(straw, "common").splitlines()
    listed = json.loads(programs(straw))["programs"]
    assert out == [p["dir"] for p in listed if p["set"] == "common"] and all(Path(d).is_dir() for d in out)
    assert [p["name"] for p in listed if p["built"]] == [p["name"] for p in listed if p["set"] == "common"]
    assert Path(out[-1]).name.startswith("kubernetes-") and Path(out[-1], "kubectl").read_text() == "built k8s.io/kubernetes/cmd/kubectl"
    assert not list((straw.cache / "blobs" / "sha256").iterdir()) and not (straw.cache / "index.json").exists()
    assert not list((straw.cache / "artifacts").glob(".work.*"))
    calls = [(c["argv"][0], c["cwd"]) for c in straw.calls() if c["argv"][0] in ("env", "build")]
    assert [kind for kind, _ in calls] == ["env", "build"] * len(out), "one at a time"
    n = len(straw.calls())
    assert programs(straw, "common").splitlines() == out and len(straw.calls()) == n


def test_programs_say_beforehand_how_long(straw):
    programs(straw, "kubernetes")
    lines = straw.err.splitlines()
    newest = json.loads(programs(straw))["kubernetes"]["newest"]
    assert re.fullmatch(rf"programs: to be built from Go modules, once, with their downloads \(about \d+ minutes if this computer has nothing else to do\): kubernetes {newest}", lines[0])
    assert f"programs (1 of 1): building kubernetes {newest}: 2 of 4 packages" in lines and len(lines) < 9


def test_programs_with_data_of_the_module(straw):
    out = Path(programs(straw, "hardening").strip())
    assert (out / "kube-bench").read_text() == "built github.com/aquasecurity/kube-bench"
    assert (out / "cfg" / "cis-1" / "x.yaml").read_text() == "a table"


def test_programs_of_another_version(straw):
    previous = json.loads(programs(straw))["kubernetes"]["previous"]
    assert programs(straw, "previous") == programs(straw, f"kubernetes@{previous}") and previous in straw.calls()[1]["argv"][-1]
    assert "there is no recipe for 'boats'" in (programs(straw, "boats", status=2) or straw.err)


def test_programs_after_a_kill(straw):
    """What a killed run left goes with the next build; the go command's own cache continues where it stopped."""
    p = subprocess.Popen([SLIPWAY, "programs", "etcd"], env=dict(straw.env, STRAW_SLEEP="600"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not any(json.loads(line)["argv"][0] == "build" for line in ((straw.tmp / "calls").read_text().splitlines() if (straw.tmp / "calls").exists() else [])):
        time.sleep(0.1)
    work, = (straw.cache / "artifacts").glob(".work.*")
    p.kill()
    p.communicate()
    go = subprocess.run(["pgrep", "-f", str(straw.tmp / "bin" / "go")], capture_output=True, text=True).stdout.split()
    for pid in go:
        os.kill(int(pid), signal.SIGKILL)
    assert work.exists()
    assert Path(programs(straw, "etcd").strip(), "etcd").exists() and not work.exists()


def test_one_builder_at_a_time(straw):
    (straw.cache / "artifacts").mkdir(parents=True)
    holder = open(straw.cache / "artifacts" / ".lock", "w")
    fcntl.flock(holder, fcntl.LOCK_EX)
    p = subprocess.Popen([SLIPWAY, "programs", "etcd"], env=straw.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    assert p.poll() is None and not (straw.tmp / "calls").exists()
    holder.close()
    assert "waiting for another run that builds" in p.communicate(timeout=600)[1] and p.returncode == 0


def test_single_programs_into_a_directory(straw, tmp_path):
    """As clusters get them: here upstream cannot be reached, so it is built; the second time the cache has it."""
    for _ in range(2):
        programs(straw, "-d", str(tmp_path), "kubectl")
        assert os.access(tmp_path / "kubectl", os.X_OK) and (tmp_path / "kubectl").read_text() == "built k8s.io/kubernetes/cmd/kubectl"
    assert sum(c["argv"][0] == "build" for c in straw.calls()) == 1
    assert "the catalogue has no program 'boats'" in (programs(straw, "-d", str(tmp_path), "boats", status=2) or straw.err)


def test_a_bar_on_a_terminal(straw):
    import pty
    leader, follower = pty.openpty()
    p = subprocess.Popen([SLIPWAY, "programs", "etcd"], env=straw.env, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    said = b""
    while True:
        try:
            said += os.read(leader, 4096) or b""
        except OSError:
            break
    os.close(leader)
    assert p.wait() == 0 and "██████████".encode() in said and b"2 of 4 packages" in said and said.endswith(b"\r\x1b[K")


# ---- images ----


def inspect(path, *words):
    return json.loads(subprocess.run(["skopeo", "inspect", *words, f"docker-archive:{path}"], capture_output=True, text=True, check=True).stdout)


def tags(item):
    with tarfile.open(item["path"]) as t:
        return json.load(t.extractfile("manifest.json"))[0]["RepoTags"]


def test_images_that_were_built(straw, tmp_path):
    agent = tmp_path / "agent"
    agent.write_bytes(noise(5000))
    names = {"registry.k8s.io/kube-apiserver:v1.99.3": "/usr/local/bin/kube-apiserver", "registry.k8s.io/coredns/coredns:v1.14.6": "/coredns",
             "registry.k8s.io/pause:3.10.2": "/pause"}
    items = straw.run("-s", "build", "-p", agent, *[f"image:{n}" for n in names])
    for name, path in names.items():
        item = items[name]
        assert inspect(item["path"])["Os"] == "linux" and tags(item) == [name]
        config = inspect(item["path"], "--config")
        assert config["architecture"] == "amd64" and config["config"]["Entrypoint"] == [path] and "/usr/local/bin" in config["config"]["Env"][0]
        with tarfile.open(item["path"]) as outer:
            assert all(m.mtime == 0 and m.uid == 0 for m in outer)
            manifest, = json.load(outer.extractfile("manifest.json"))
            layer = outer.extractfile(manifest["Layers"][0]).read()
        assert config["rootfs"]["diff_ids"] == [f"sha256:{sha(layer)}"]
        with tarfile.open(fileobj=io.BytesIO(layer), mode="r:") as t:
            program = t.getmember(path[1:])
            assert program.mode == 0o755
            data = t.extractfile(program).read()
            assert data == (agent.read_bytes() if path == "/pause" else b"built " + (b"k8s.io/kubernetes/cmd/kube-apiserver" if "api" in path else b"github.com/coredns/coredns"))
    # the same bytes in another cache at another time
    straw.env["SLIPWAY_CACHE"] = str(tmp_path / "other")
    straw.lock.unlink()
    again = straw.run("-s", "build", "-p", agent, *[f"image:{n}" for n in names])
    assert {n: i["digest"] for n, i in again.items()} == {n: i["digest"] for n, i in items.items()}


def test_our_own_image_is_of_this_program(straw, tmp_path):
    """Wherever the rest comes from; neither a lock nor a cache gives the image of another program."""
    name, digests = "slipway.dev/probe:0.1.0", []
    for content in (noise(5000), noise(6000)):
        agent = tmp_path / "agent"
        agent.write_bytes(content)
        for source in ("bundle", "upstream", "auto", "build"):
            item = straw.run("-s", source, "-p", agent, f"image:{name}")[name]
            digests.append(item["digest"])
            assert inspect(item["path"], "--config")["config"]["Entrypoint"] == ["/probe"]
            with tarfile.open(item["path"]) as outer:
                layer = outer.extractfile(json.load(outer.extractfile("manifest.json"))[0]["Layers"][0]).read()
            with tarfile.open(fileobj=io.BytesIO(layer), mode="r:") as t:
                assert t.extractfile("probe").read() == content
    assert len(set(digests[:4])) == 1 and len(set(digests[4:])) == 1 and digests[0] != digests[4]
    assert not straw.lock.exists() or "probe" not in straw.lock.read_text()
    straw.run("-s", "build", f"image:{name}", status=1)
    assert "this program has no agent to make the probe image of" in straw.error()


def test_images_that_cannot_be_built(straw):
    straw.run("-s", "build", "image:registry.k8s.io/pause:3.10.2", status=1)
    assert "this program has no agent to make the pause image of" in straw.error()
    straw.run("-s", "build", "image:docker.io/library/haproxy:3.2.4-alpine", status=1)
    assert "cannot be built from Go modules" in straw.error()


def test_image_from_a_registry_that_does_not_answer(tool):
    start = time.monotonic()
    tool.run("-s", "mirror", "-r", "127.0.0.1:9", "image:registry.k8s.io/kube-apiserver:v1.99.3", status=5)
    assert "skopeo cannot copy 127.0.0.1:9/kube-apiserver:v1.99.3: " in tool.error() and "connection refused" in tool.error()
    assert time.monotonic() - start < 120


def test_image_from_a_registry(straw, tmp_path, registry):
    """Built here, pushed to a registry, pulled through the mirror setting under its own name."""
    name = "registry.k8s.io/kube-scheduler:v1.99.3"
    built = straw.run("-s", "build", f"image:{name}")[name]
    subprocess.run(["skopeo", "copy", "-q", "--dest-tls-verify=false", f"docker-archive:{built['path']}", f"docker://{registry}/kube-scheduler:v1.99.3"], check=True)
    straw.lock.unlink()
    digests = set()
    for cache in ("one", "two"):
        straw.env["SLIPWAY_CACHE"] = str(tmp_path / cache)
        item = straw.run("-r", registry, f"image:{name}")[name]
        assert item["source"] == "mirror" and tags(item) == [name]
        said = f"{name}: pinned at first use: {straw.lock} pins sha256:{item['digest']}"
        assert (said in straw.err) == (cache == "one")
        digests.add(item["digest"])
    assert len(digests) == 1  # the second one was pinned by the lock of the first
    # another image under the same name
    other = straw.run("-s", "build", "-l", tmp_path / "other.lock", "image:registry.k8s.io/kube-apiserver:v1.99.3")["registry.k8s.io/kube-apiserver:v1.99.3"]
    subprocess.run(["skopeo", "copy", "-q", "--dest-tls-verify=false", f"docker-archive:{other['path']}", f"docker://{registry}/kube-scheduler:v1.99.3"], check=True)
    straw.env["SLIPWAY_CACHE"] = str(tmp_path / "three")
    straw.run("-s", "mirror", "-r", registry, f"image:{name}", status=8)
    assert re.search(r"its digest is \w{12}…, and .*bundle.lock pins \w{12}…", straw.error())


def test_image_from_a_registry_with_a_login(straw, tmp_path):
    """Its certificate is of a private authority."""
    from servers import Registry
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    name, place = "registry.k8s.io/kube-scheduler:v1.99.3", f"127.0.0.1:{port}"
    with Registry(tmp_path / "registry", "127.0.0.1", port, ["IP:127.0.0.1"]) as registry:
        registry.push("kube-scheduler:v1.99.3", SLIPWAY)
        authority, login = ("-c", tmp_path / "registry" / "ca.crt"), ("-u", f"{Registry.USER}:{Registry.PASSWORD}")
        for less, words in ((("-u", f"{Registry.USER}:wrong", *authority), "authentication required"), (authority, "authentication required")):
            straw.run("-s", "mirror", *less, "-r", place, f"image:{name}", status=5)
            assert words in straw.error() and Registry.PASSWORD not in straw.err
        item = straw.run("-s", "mirror", *authority, *login, "-r", place, f"image:{name}")[name]
        assert item["source"] == "mirror" and tags(item) == [name] and registry.pulls("kube-scheduler") == {"127.0.0.1"}
    assert not any(b"auth" in p.read_bytes() for p in (Path(straw.env["SLIPWAY_CACHE"]) / "tmp").rglob("*.json")), "the login is not left behind"


@pytest.fixture
def registry(tmp_path):
    """skopeo speaks to a real registry where there is one, else to a small one of straw."""
    store, uploads = {}, {}

    class Registry(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body=b"", **headers):
            self.send_response(status)
            for k, v in headers.items():
                self.send_header(k.replace("_", "-"), v)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self):
            if self.path == "/v2/":
                return self.answer(200)
            kind, key = self.path.split("/")[-2:]
            found = store.get((kind, key))
            if not found:
                return self.answer(404)
            return self.answer(200, found[1], Content_Type=found[0], Docker_Content_Digest="sha256:" + sha(found[1]))

        do_HEAD = do_GET

        def body(self):
            if self.headers.get("Transfer-Encoding") == "chunked":
                out = b""
                while n := int(self.rfile.readline(), 16):
                    out += self.rfile.read(n)
                    self.rfile.readline()
                self.rfile.readline()
                return out
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def do_POST(self):
            self.body()
            uploads[str(len(uploads))] = b""
            self.answer(202, Location=f"/v2/x/blobs/uploads/{len(uploads) - 1}")

        def do_PATCH(self):
            key = self.path.split("/")[-1]
            uploads[key] += self.body()
            self.answer(202, Location=self.path, Range=f"0-{len(uploads[key]) - 1}")

        def do_PUT(self):
            path, _, query = self.path.partition("?")
            kind, key = path.split("/")[-2:]
            data = self.body()
            if kind == "uploads":
                data = uploads[key] + data
                key = query.split("digest=")[1].replace("%3A", ":")
                store["blobs", key] = ("application/octet-stream", data)
            else:
                store["manifests", key] = store["manifests", "sha256:" + sha(data)] = (self.headers["Content-Type"], data)
            self.answer(201, Location="/x", Docker_Content_Digest="sha256:" + sha(data))

        def log_message(self, *_):
            pass

    s = QuietServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{s.server_port}"
    s.shutdown()
    s.server_close()


# ---- the items of a cluster ----


def test_items_of_a_cluster():
    for version in (NEWEST, PREVIOUS):
        out = subprocess.run([str(TOOL), "-I", version], capture_output=True, text=True, check=True).stdout.split()
        assert len(out) == len(set(out))
        assert {f"kubelet@{version}", "etcd@3.6.16", "runc@1.5.2", "crictl@1.36.0", f"image:registry.k8s.io/kube-apiserver:v{version}"} <= set(out)
        assert not [i for i in out if i.startswith(("crio", "crun", "image:docker.io"))]
