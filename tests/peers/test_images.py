"""provider.openstack.image: found by its properties, or uploaded as the cluster's own: once, checked before and after, and gone with the cluster."""
import hashlib
import json
import os
import signal
import struct
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from test_paper import CLEAN, FAULTS, FILE, MARK, TOOL, Boats, drive, outdated  # noqa: F401

BYTES = b"QFI\xfb" + bytes(20) + struct.pack(">Q", 3 << 30) + os.urandom(100_000)
SHA = hashlib.sha256(BYTES).hexdigest()
PLAIN = FILE.replace("OPTIONS", "userData: cloud-init")
OF_FILE = "image: {name: mine, file: mine.img, sha256: SHA, properties: {os_distro: debian}}"
OF_URL = "image: {name: mine, url: \"URL\", sha256: SHA}"


class Images(Boats):
    """The file is beside cluster.yaml."""

    def __init__(self, directory, image=OF_FILE, data=BYTES):
        super().__init__(directory, text=PLAIN.replace("image: debian-12", image.replace("SHA", hashlib.sha256(data).hexdigest())))
        (self.dir / "mine.img").write_bytes(data)
        os.environ["SLIPWAY_CACHE"] = CLEAN["SLIPWAY_CACHE"] = str(self.dir / "cache")

    def ours(self):
        return [i for i in self.cloud.images if i.get("slipway-mark") == MARK]

    def whole(self):
        image, = self.ours()
        assert image["status"] == "active" and image["tags"] == [f"sha256-{hashlib.sha256((self.dir / 'mine.img').read_bytes()).hexdigest()}"]
        assert {s["image"]["id"] for s in self.cloud.things["servers"].values()} == {image["id"]}
        return image

    def sent(self):
        return [c[1].rsplit("/", 1)[1] for c in self.cloud.log if c[0] == "PUT" and c[1].endswith("/file")]


@pytest.fixture
def boats(tmp_path):
    before = os.environ.get("SLIPWAY_CACHE")
    b = Images(tmp_path)
    yield b
    CLEAN.pop("SLIPWAY_CACHE")
    os.environ.pop("SLIPWAY_CACHE")
    if before:
        os.environ["SLIPWAY_CACHE"] = CLEAN["SLIPWAY_CACHE"] = before
    b.cloud.go.set()
    b.cloud.close()


def errors(said):
    return " ".join(str(line.get("error")) for line in said if line.get("error"))


def test_life(boats):
    cloud, foreign = boats.cloud, json.dumps(boats.cloud.images)
    said = boats.must("survey")
    assert {"line": "upload image mine, 1 MiB"} in said and said[-1] == {"changes": True} and not cloud.posts()
    assert any(line.get("say") == "upload image mine" for line in boats.must("up"))
    image = boats.whole()
    assert (image["disk_format"], image["container_format"], image["visibility"], image["min_disk"], image["os_distro"]) == ("qcow2", "bare", "private", 3, "debian")
    assert image["size"] == len(BYTES)
    # made before anything else, and once
    assert cloud.posts()[0][1] == "/image/v2/images"
    cloud.log[:] = []
    assert boats.must("survey")[-1] == {"changes": False} and len(cloud.log) <= 7, cloud.log
    boats.must("up")
    assert not cloud.posts()
    # a machine more is made from it, also when the file is elsewhere now
    (boats.dir / "mine.img").rename(boats.dir / "moved.img")
    boats.write(boats.text.replace("count: 2", "count: 3"))
    assert not any("image" in line.get("line", "") for line in boats.must("up"))
    (boats.dir / "moved.img").rename(boats.dir / "mine.img")
    boats.whole()
    # other bytes are another image: machines are made anew, and the old one is left over
    other = BYTES + b"x"
    (boats.dir / "mine.img").write_bytes(other)
    boats.write(boats.text.replace(SHA, hashlib.sha256(other).hexdigest()))
    said = boats.must("survey")
    assert {"line": "upload image mine, 1 MiB"} in said and len(outdated(said)) == 6, said
    assert outdated(said)["worker-1"] == f"image mine, sha256 {hashlib.sha256(other).hexdigest()[:16]} instead of mine, sha256 {SHA[:16]}"
    boats.must("replace")
    new, = (i for i in boats.ours() if i is not image)
    assert {s["image"]["id"] for s in cloud.things["servers"].values()} == {new["id"]} and image in cloud.images
    assert not outdated(boats.must("survey"))
    boats.must("down")
    assert not cloud.ours(MARK) and json.dumps(cloud.images) == foreign


def test_long_name(boats):
    """Cut off between characters where nova takes no more: another image is noticed."""
    boats.write(boats.text.replace("name: mine", f"name: x{'ü' * 120}"))
    boats.must("up")
    words, = {s["metadata"]["slipway-image"] for s in boats.cloud.things["servers"].values()}
    assert words.startswith("xüüü") and len(words.encode()) <= 255
    assert not outdated(boats.must("survey"))
    other = BYTES + b"x"
    (boats.dir / "mine.img").write_bytes(other)
    boats.write(boats.text.replace(SHA, hashlib.sha256(other).hexdigest()))
    assert len(outdated(boats.must("survey"))) == 5
    boats.must("down")
    assert not boats.cloud.ours(MARK)


def test_foreign(boats):
    """An image of that name that this cluster did not upload: not used, not replaced, not deleted."""
    for other in ({"tags": []}, {"slipway-mark": "slipway-zz99z", "tags": [f"sha256-{SHA}"]}):
        boats.cloud.images[1:] = [{"id": "i7", "name": "mine", "status": "active", **other}]
        status, said = boats.call("up")
        assert status == 1 and {"problem": "provider.openstack.image: the cloud has an image mine that this cluster did not upload: i7",
                                "hint": "choose another name, or name only that image to use it"} in said, said
        assert not boats.cloud.posts()
    boats.must("down")
    assert boats.cloud.images[1]["id"] == "i7"


def test_wrong_file(boats):
    """Checked before anything is made."""
    (boats.dir / "mine.img").write_bytes(BYTES + b"x")
    status, said = boats.call("up")
    assert status == 1 and f"image mine: the SHA-256 checksum of {boats.dir}/mine.img is" in errors(said) and f"the cluster's file says {SHA}" in errors(said)
    assert not boats.cloud.posts()
    (boats.dir / "mine.img").unlink()
    status, said = boats.call("up")
    assert status == 1 and any("cannot read" in line.get("problem", "") and "No such file" in line["problem"] for line in said), said


@pytest.mark.parametrize("algorithm", ["sha512", "sha256", None])
def test_glance_has_other_bytes(boats, algorithm):
    cloud = boats.cloud
    cloud.hashes, cloud.tamper = algorithm, True
    status, said = boats.call("up")
    assert status == 1 and "image mine: glance has other bytes than were sent" in errors(said) and not boats.ours(), said
    assert not cloud.things["servers"] and len(cloud.things["ports"]) == 0
    cloud.tamper = False
    boats.must("up")
    boats.whole()
    boats.must("down")
    assert not cloud.ours(MARK)


@pytest.mark.parametrize("status", ["saving", "queued", "active"])
def test_killed(boats, status):
    """In the middle of the upload, whatever glance makes of it: the next run deletes that image and no other."""
    cloud = boats.cloud
    cloud.cut = status
    cloud.images.append({"id": "i8", "name": "theirs", "status": status, "slipway-mark": "slipway-zz99z", "tags": []})
    data = BYTES[:32] + bytes(32 << 20)
    (boats.dir / "mine.img").write_bytes(data)
    boats.write(boats.text.replace(SHA, hashlib.sha256(data).hexdigest()))
    cloud.faults["PUT /image/v2/images/*/file"] = ["stall"]
    env = {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(boats.dir / "clouds.yaml"), "PROVIDER_PREFIX": "ab12c"}
    tool = subprocess.Popen([TOOL, boats.dir / "cluster.yaml", boats.dir / "state", "up"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    cloud.stalled.wait()
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    cloud.go.set()
    half, = boats.ours()
    assert half["tags"] == []
    boats.must("up")
    assert half not in cloud.images and boats.whole()["size"] == len(data) and cloud.images[1]["id"] == "i8"
    boats.must("down")
    assert not cloud.ours(MARK) and len(cloud.images) == 2


FEW = [f if f in ("drop after", "503") else pytest.param(f, marks=pytest.mark.soak) for f in FAULTS]
CALLS = ["POST /image/v2/images", "PUT /image/v2/images/*/file", f"PUT /image/v2/images/*/tags/sha256-{SHA}", "GET /image/v2/images"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", FEW)
def test_faults(boats, call, fault):
    """This run or the next one converges, with one image, and nothing is left."""
    boats.cloud.faults[call] = [FAULTS[fault]]
    status, said = boats.call("up")
    if status:
        boats.must("up")
    boats.whole()
    boats.must("down")
    assert not boats.cloud.ours(MARK) and len(boats.cloud.images) == 1


@pytest.mark.parametrize("fault", FEW)
def test_faults_of_deletion(boats, fault):
    boats.must("up")
    boats.cloud.faults["DELETE /image/v2/images/*"] = [FAULTS[fault]]
    if boats.call("down")[0]:
        boats.must("down")
    assert not boats.cloud.ours(MARK) and len(boats.cloud.images) == 1


def test_made_but_hidden(boats):
    """An image whose answer is lost, and that no list shows for a while: a second one is made, and both go."""
    boats.cloud.faults["POST /image/v2/images"] = ["hidden"]
    if boats.call("up")[0]:
        boats.must("up")
    whole = [i for i in boats.ours() if i["tags"]]
    assert len(whole) == 1
    boats.cloud.hidden.clear()
    boats.must("down")
    assert not boats.cloud.ours(MARK)


def test_copies(boats):
    """Nova and cinder give an image that a user makes from a machine or a volume all properties of the uploaded one: it is theirs."""
    cloud = boats.cloud
    drive(boats, "kubeconfig")  # makes the Identity
    prefix = json.loads((boats.dir / ".slipway/boats/identity.json").read_text())["prefix"]
    assert boats.call("up", prefix=prefix)[0] == 0
    mine, = (i for i in cloud.images if i.get("slipway-mark") == f"slipway-{prefix}")
    backup = {**{k: v for k, v in mine.items() if k != "bytes"}, "id": "0b5c9f0e-7d5f-4d0a-9b5b-3f1c0a6d7e11", "name": "backup", "tags": [], "image_type": "snapshot"}
    cloud.images.append(backup)
    assert "nothing is left over" in drive(boats, "leaks")
    # another upload deletes what an interrupted one left, and not that
    cloud.images.remove(mine)
    boats.write(boats.text.replace("count: 2", "count: 3"))
    assert boats.call("up", prefix=prefix)[0] == 0
    assert [i["name"] for i in cloud.images] == ["debian-12", "backup", "mine"]
    assert boats.call("down", prefix=prefix)[0] == 0
    assert [i["id"] for i in cloud.images] == ["i1", backup["id"]]


def test_leaks(boats):
    """What the file wants or a server was made from belongs to the cluster; a half one and one of an earlier checksum do not."""
    cloud = boats.cloud
    drive(boats, "kubeconfig")  # makes the Identity
    prefix = json.loads((boats.dir / ".slipway/boats/identity.json").read_text())["prefix"]
    assert "upload image mine, 1 MiB" in drive(boats, "plan")
    assert boats.call("up", prefix=prefix)[0] == 0
    assert "nothing is left over" in drive(boats, "leaks")
    half = {"id": "i5", "name": "mine", "status": "queued", "slipway-mark": f"slipway-{prefix}", "tags": []}
    old = {"id": "i6", "name": "mine", "status": "active", "slipway-mark": f"slipway-{prefix}", "tags": [f"sha256-{'0' * 64}"]}
    cloud.images += [half, old, {"id": "i9", "name": "theirs", "status": "active", "tags": ["x"]}]
    leaks = json.loads(drive(boats, "leaks", "-o", "json"))
    assert sorted((x["kind"], x["id"], x["ours"]) for x in leaks) == [("image", "i5", True), ("image", "i6", True)]
    next(iter(cloud.things["servers"].values()))["image"] = {"id": "i6"}
    assert [x["id"] for x in json.loads(drive(boats, "leaks", "-o", "json"))] == ["i5"]
    drive(boats, "leaks", "--delete", "--yes")
    assert half not in cloud.images and old in cloud.images
    # of a cluster whose state directory is lost, everything
    boats.dir.joinpath(".slipway").rename(boats.dir / "lost")
    assert drive(boats, "leaks").count("image") == 2
    drive(boats, "leaks", "--prefix", prefix, "--delete", "--yes")
    assert [i["id"] for i in cloud.images] == ["i1", "i9"]


def test_memory(boats):
    """The file is never in memory."""
    with open(boats.dir / "mine.img", "wb") as f:
        f.truncate(192 << 20)
    with open(boats.dir / "mine.img", "rb") as f:
        sha = hashlib.file_digest(f, "sha256").hexdigest()
    boats.write(boats.text.replace(SHA, sha))
    boats.cloud.flavors[0]["ram"] = 8192
    env = {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(boats.dir / "clouds.yaml"), "PROVIDER_PREFIX": "ab12c"}
    limit = [] if "asan" in str(TOOL) else ["prlimit", f"--data={160 << 20}"]
    p = subprocess.run([*limit, TOOL, boats.dir / "cluster.yaml", boats.dir / "state", "up"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    assert p.returncode == 0, p.stdout + p.stderr
    image = boats.whole()
    assert (image["size"], image["disk_format"]) == (192 << 20, "raw")


def test_size_and_format(boats):
    """The disk that qcow2 will need is known before: its flavor is too small."""
    data = b"QFI\xfb" + bytes(20) + struct.pack(">Q", 30 << 30) + bytes(100)
    (boats.dir / "mine.img").write_bytes(data)
    boats.write(boats.text.replace(SHA, hashlib.sha256(data).hexdigest()))
    assert {"problem": "pool worker: image mine needs a disk of 30 GB, and flavor m1.k8s has 20", "hint": "use a larger flavor"} in boats.call("survey")[1]
    boats.write(boats.text.replace("file: mine.img", "file: mine.img, format: vmdk"))
    assert any(f"provider.openstack.image.format: {boats.dir}/mine.img has the format qcow2" == line.get("problem") for line in boats.call("survey")[1])


def test_properties(boats):
    """An existing image by what it is instead of its name."""
    cloud = boats.cloud
    cloud.images += [{"id": f"i{v}", "name": f"cloud {v}", "status": "active", "os_distro": "debian", "os_version": str(v)} for v in (12, 13)]
    boats.write(PLAIN.replace("image: debian-12", "image: {properties: {os_distro: debian}}"))
    assert {"problem": "provider.openstack.image: there are several images called os_distro=debian", "hint": "give its id"} in boats.call("survey")[1]
    boats.write(PLAIN.replace("image: debian-12", "image: {properties: {os_distro: debian, os_version: \"13\"}}"))
    boats.must("up")
    assert {s["image"]["id"] for s in cloud.things["servers"].values()} == {"i13"} and boats.must("survey")[-1] == {"changes": False}
    boats.write(PLAIN.replace("image: debian-12", "image: {properties: {os_distro: debian, os_version: \"12\"}}"))
    assert len(outdated(boats.must("survey"))) == 5
    boats.must("down")
    assert len(cloud.images) == 3


# ---- from a URL ----


class Web:
    """A server with one file; `cuts`: answers that end in the middle."""

    def __init__(self, data):
        self.data, self.cuts, self.asked = data, 0, []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
                web.asked.append(start)
                left = web.data[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(left)))
                self.end_headers()
                cut, web.cuts = web.cuts > 0, max(0, web.cuts - 1)
                self.wfile.write(left[:len(left) // 2] if cut else left)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/mine.qcow2"
        threading.Thread(target=self.http.serve_forever, args=[0.05], daemon=True).start()


@pytest.fixture
def web(boats):
    w = Web(BYTES)
    boats.write(PLAIN.replace("image: debian-12", OF_URL.replace("SHA", SHA).replace("URL", w.url)))
    yield w
    w.http.shutdown()
    w.http.server_close()


def test_url_by_glance(boats, web):
    """It downloads the image itself; the bytes are read back, because its own hash is another one. Then nothing is asked any more."""
    cloud = boats.cloud
    cloud.import_methods.append("web-download")
    cloud.web[web.url] = BYTES
    assert {"line": f"upload image mine from {web.url}"} in boats.must("survey")
    boats.must("up")
    image = boats.whole()
    assert image["disk_format"] == "qcow2" and not web.asked and not boats.sent()
    assert [c[1] for c in cloud.log if c[0] == "GET" and c[1].endswith("/file")] == [f"/image/v2/images/{image['id']}/file"]
    cloud.log[:] = []
    assert boats.must("survey")[-1] == {"changes": False} and len(cloud.log) <= 7
    boats.must("down")
    # with SHA-256 as its hash nothing is read back
    cloud.hashes = "sha256"
    boats.must("up")
    boats.whole()
    assert not [c for c in cloud.log if c[0] == "GET" and c[1].endswith("/file")]
    boats.must("down")
    assert not cloud.ours(MARK)


@pytest.mark.parametrize("algorithm", ["sha512", "sha256"])
def test_glance_downloads_other_bytes(boats, web, algorithm):
    boats.cloud.import_methods.append("web-download")
    boats.cloud.hashes, boats.cloud.web[web.url] = algorithm, BYTES + b"x"
    status, said = boats.call("up")
    assert status == 1 and "what glance downloaded has another SHA-256 checksum than the cluster's file says" in errors(said)
    assert not boats.ours() and not boats.cloud.things["servers"]


def test_glance_answers_without_end(boats, web):
    """No more is read back than the image has bytes."""
    boats.cloud.import_methods.append("web-download")
    boats.cloud.web[web.url], boats.cloud.endless = BYTES, True
    status, said = boats.call("up")
    assert status == 1 and "read image mine" in errors(said) and "the answer is larger than it should be" in errors(said)
    boats.cloud.endless = False
    boats.must("up")
    boats.whole()
    boats.must("down")
    assert not boats.cloud.ours(MARK)


def test_signed_url(boats, web):
    """The query of a URL may let anybody in: no sentence has it."""
    boats.write(boats.text.replace(web.url, f"{web.url}?X-Signature=topquery").replace("sha256:", "format: qcow2, sha256:"))
    web.data = BYTES + b"x"
    for verb in ("survey", "up"):
        said = boats.call(verb)[1]
        assert "topquery" not in json.dumps(said) and f"{web.url}?" in json.dumps(said), said
    web.data = BYTES
    boats.must("up")
    boats.whole()


def test_glance_may_not_download(boats, web):
    """Its settings do not allow the address: downloaded here, and sent."""
    boats.cloud.import_methods.append("web-download")
    boats.cloud.filtered = True
    boats.must("up")
    boats.whole()
    assert web.asked == [0] and boats.sent() == ["file"]
    boats.must("down")
    assert not boats.cloud.ours(MARK) and len(boats.cloud.images) == 1


def test_glance_cannot_download(boats, web):
    boats.cloud.import_methods.append("web-download")
    status, said = boats.call("up")
    assert status == 1 and f"image mine: glance could not download {web.url}" in errors(said)
    boats.cloud.web[web.url] = BYTES
    boats.must("up")
    boats.whole()
    boats.must("down")
    assert not boats.cloud.ours(MARK)


IMPORT = ["GET /image/v2/info/import", "POST /image/v2/images", "POST /image/v2/images/*/import", "GET /image/v2/images/*/file", f"PUT /image/v2/images/*/tags/sha256-{SHA}"]


@pytest.mark.parametrize("call", IMPORT)
@pytest.mark.parametrize("fault", FEW)
def test_faults_of_import(boats, web, call, fault):
    boats.cloud.import_methods.append("web-download")
    boats.cloud.web[web.url] = BYTES
    boats.cloud.faults[call] = [FAULTS[fault]]
    status, said = boats.call("up")
    if status:
        boats.must("up")
    boats.whole()
    boats.must("down")
    assert not boats.cloud.ours(MARK)


def test_url_through_the_cache(boats, web):
    """Where glance does not offer it: downloaded, on from where it was cut, checked, sent, and not kept."""
    web.cuts = 2
    boats.must("up")
    boats.whole()
    assert boats.sent() == ["file"] and len(web.asked) == 3 and web.asked[0] == 0 < web.asked[1] < web.asked[2]
    assert not list((boats.dir / "cache/partial").glob("image-*"))
    boats.must("down")
    # other bytes: nothing is sent, and they are not kept
    boats.cloud.log[:] = []
    web.data = BYTES + b"x"
    status, said = boats.call("up")
    assert status == 1 and f"image mine: the SHA-256 checksum of {web.url} is" in errors(said) and not boats.cloud.posts()
    assert not list((boats.dir / "cache/partial").glob("image-*"))
    web.data = BYTES
    boats.must("up")
    boats.whole()
    boats.must("down")
    assert not boats.cloud.ours(MARK)
