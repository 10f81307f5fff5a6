"""The agent through a pipe, on a directory that stands for the node's root."""
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import tarfile
import time

import pytest

import wire
from wire import Cut, ONCE, Operator, SET, Stopped, entry, run, sha

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
SECRET = "c2VjcmV0LW9mLXRoZS1jbHVzdGVy"


def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as t:
        for name, data in members.items():
            i = tarfile.TarInfo(name)
            i.size, i.mode = len(data), 0o755
            t.addfile(i, io.BytesIO(data))
    return out.getvalue()


def base(big=b"#!/bin/true\n" * 30000):
    return [
        entry("dir", "/etc/kubernetes", file_mode=0o755),
        entry("dir", "/etc/kubernetes/pki", file_mode=0o700),
        entry("file", "/etc/kubernetes/a.conf", content="a = 1\n", units="kubelet.service"),
        entry("file", "/etc/kubernetes/pki/ca.key", content=SECRET, file_mode=0o600, class_=2),
        entry("file", "/etc/deep/er/b.conf", content="", file_mode=0o640),
        entry("link", "/etc/link", target="kubernetes/a.conf"),
        entry("artifact", "/usr/local/bin/prog", blob=big),
        entry("artifact", "/opt/cni/bin", blob=tar({"bridge": b"b" * 5000, "./host-local": b"h"}), flags=SET),
        entry("sysctl", "net.ipv4.ip_forward", target="1"),
    ]


def sysctl(root, value="0\n"):
    p = root / "proc/sys/net/ipv4/ip_forward"
    p.parent.mkdir(parents=True, exist_ok=True)
    p.write_text(value)
    return p


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def tree(root):
    """Everything below, but for the agent's own."""
    out = {}
    for p in sorted(root.rglob("*")):
        r = str(p.relative_to(root))
        if r.startswith("var/lib/slipway"):
            continue
        out[r] = os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None
    return out


def leftovers(root):
    return [p for p in root.rglob("*") if p.name.endswith(".slipway") or p.name.endswith(".part") or ".tmp." in p.name]


def test_first_apply(argv, root):
    sysctl(root)
    o = run(argv, base())
    assert o.done.status == 0 and o.status == 0
    s = o.states()
    assert s.pop("net.ipv4.ip_forward") == "changed" and set(s.values()) == {"created"}
    assert o.done.count == len(base())
    assert (root / "etc/kubernetes/a.conf").read_text() == "a = 1\n"
    assert mode(root / "etc/kubernetes/pki") == 0o700 and mode(root / "etc/kubernetes/pki/ca.key") == 0o600
    assert mode(root / "etc/deep/er/b.conf") == 0o640 and mode(root / "etc/deep/er") == 0o755
    assert os.readlink(root / "etc/link") == "kubernetes/a.conf"
    assert (root / "usr/local/bin/prog").read_bytes() == base()[6]["_blob"] and mode(root / "usr/local/bin/prog") == 0o755
    assert (root / "opt/cni/bin/host-local").read_bytes() == b"h" and mode(root / "opt/cni/bin/bridge") == 0o755
    assert (root / "proc/sys/net/ipv4/ip_forward").read_text() == "1"
    assert mode(root / "var/lib/slipway") == 0o700 and os.listdir(root / "var/lib/slipway/store") == []
    assert not leftovers(root)


def test_second_apply_is_all_same(argv, root):
    sysctl(root)
    run(argv, base())
    before = {p: p.lstat().st_ctime_ns for p in root.rglob("*") if "slipway" not in str(p.relative_to(root))}
    o = Operator(argv).hello()
    assert o.digest == wire.spec_digest(base()) and o.drift == [] and o.facts["cluster"] == "test"
    o.spec(base())
    assert o.needs == []
    o.apply().close()
    assert set(o.states().values()) == {"same"} and o.done.count == 0
    assert before == {p: p.lstat().st_ctime_ns for p in before}, "nothing was touched"


def test_no_record_means_compare_by_content(argv, root):
    sysctl(root)
    run(argv, base())
    shutil.rmtree(root / "var/lib/slipway")
    o = run(argv, base())
    s = o.states()
    assert s.pop("/opt/cni/bin") == "created"  # a set has no digest of its own without the record
    assert set(s.values()) == {"same"}
    assert Operator(argv).hello().close().drift == []


def test_drift(argv, root):
    sysctl(root)
    run(argv, base())
    (root / "etc/kubernetes/a.conf").write_text("a = 2\n")
    (root / "etc/kubernetes/pki").chmod(0o755)
    (root / "usr/local/bin/prog").chmod(0o700)
    (root / "opt/cni/bin/bridge").unlink()
    (root / "etc/link").unlink()
    os.symlink("elsewhere", root / "etc/link")
    sysctl(root, "0\n")
    os.utime(root / "etc/kubernetes/pki/ca.key")  # touched, not changed: no drift
    o = Operator(argv).hello()
    wanted = {"/etc/kubernetes/a.conf", "/etc/kubernetes/pki", "/usr/local/bin/prog", "/opt/cni/bin", "/etc/link", "net.ipv4.ip_forward"}
    assert set(o.drift) == wanted
    o.spec(base())
    assert len(o.needs) == 1, "only the set: the program's content is right"
    o.blobs().apply().close()
    assert {k for k, v in o.states().items() if v == "changed"} == wanted
    assert Operator(argv).hello().close().drift == []
    assert mode(root / "usr/local/bin/prog") == 0o755 and (root / "opt/cni/bin/bridge").exists()


def test_same_size_edit_is_drift(argv, root):
    run(argv, [entry("file", "/etc/x", content="one")])
    st = (root / "etc/x").stat()
    (root / "etc/x").write_text("two")
    os.utime(root / "etc/x", ns=(st.st_atime_ns, st.st_mtime_ns))
    assert Operator(argv).hello().close().drift == ["/etc/x"]


def test_check_touches_nothing(argv, root):
    sysctl(root)
    before = tree(root)
    o = run(argv, base(), mode=2)
    assert set(o.states().values()) == {"created", "changed"} and o.done.count == len(base())
    assert tree(root) == before and not (root / "var/lib/slipway").exists()
    run(argv, base())
    seen = {p: p.lstat().st_ctime_ns for p in root.rglob("*")}
    o = run(argv, base()[:2] + [entry("file", "/etc/kubernetes/a.conf", content="a = 9\n")], mode=2)
    s = o.states()
    assert s["/etc/kubernetes/a.conf"] == "changed" and s["/usr/local/bin/prog"] == "removed" and s["/etc/kubernetes"] == "same"
    assert seen == {p: p.lstat().st_ctime_ns for p in root.rglob("*")}


def test_once(argv, root):
    e = [entry("file", "/var/lib/kubelet/pki/current.pem", content="first", flags=ONCE, file_mode=0o600)]
    assert set(run(argv, e).states().values()) == {"created"}
    (root / "var/lib/kubelet/pki/current.pem").write_text("rotated by the kubelet")
    o = Operator(argv).hello().close()
    assert o.drift == []
    e = [entry("file", "/var/lib/kubelet/pki/current.pem", content="second", flags=ONCE, file_mode=0o600)]
    assert set(run(argv, e).states().values()) == {"same"}
    assert (root / "var/lib/kubelet/pki/current.pem").read_text() == "rotated by the kubelet"
    (root / "var/lib/kubelet/pki/current.pem").unlink()
    assert Operator(argv).hello().close().drift == ["/var/lib/kubelet/pki/current.pem"]
    run(argv, e)
    assert (root / "var/lib/kubelet/pki/current.pem").read_text() == "second"


def test_vanished_entries_go_and_originals_come_back(argv, root):
    original = tree(root)
    (root / "etc").mkdir()
    (root / "etc/own.conf").write_text("the host's own\n")
    (root / "etc/own.conf").chmod(0o604)
    os.symlink("somewhere", root / "etc/own.link")
    sysctl(root)
    original = tree(root)
    entries = base() + [entry("file", "/etc/own.conf", content="ours\n"), entry("link", "/etc/own.link", target="ours")]
    run(argv, entries)
    assert (root / "etc/own.conf").read_text() == "ours\n"
    keep = entry("file", "/etc/kubernetes/keep", content="x")
    run(argv, entries + [keep])
    o = run(argv, [keep])
    s = o.states()
    assert s.pop("/etc/kubernetes/keep") == s.pop("/etc/kubernetes") == "same" and set(s.values()) == {"removed"}
    order = [f.name for f in o.events if f.name]
    assert order[0] == "/etc/own.link" and order[-1] == "/etc/kubernetes", "backwards"
    o = run(argv, [])
    now = tree(root)
    assert now.pop("proc/sys/net/ipv4/ip_forward") == b"0"
    original.pop("proc/sys/net/ipv4/ip_forward")
    assert now == original
    assert mode(root / "etc/own.conf") == 0o604


def test_directory_that_is_in_use_stays(argv, root):
    run(argv, [entry("dir", "/var/lib/etcd", file_mode=0o700)])
    (root / "var/lib/etcd/member").mkdir()
    run(argv, [])
    assert (root / "var/lib/etcd/member").exists()


def test_set_drops_members(argv, root):
    run(argv, [entry("artifact", "/opt/cni/bin", blob=tar({"a": b"1", "b": b"2"}), flags=SET)])
    (root / "opt/cni/bin/own").write_text("not ours")
    run(argv, [entry("artifact", "/opt/cni/bin", blob=tar({"b": b"2", "c": b"3"}), flags=SET)])
    assert sorted(os.listdir(root / "opt/cni/bin")) == ["b", "c", "own"]
    run(argv, [])
    assert os.listdir(root / "opt/cni/bin") == ["own"]


@pytest.mark.parametrize("name", ["../evil", "/evil", "sub/evil", "..", "./../evil", ".hidden", "-x"])
def test_tar_traversal(argv, root, name):
    o = run(argv, [entry("artifact", "/opt/cni/bin", blob=tar({"good": b"1", name: b"2"}), flags=SET), entry("file", "/etc/after", content="x")])
    assert o.states() == {"/opt/cni/bin": "failed", "/etc/after": "created"}
    assert not (root / "opt/cni/bin").exists() and not list(root.rglob("*evil*"))


def test_tar_with_a_link_or_damage(argv, root):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        i = tarfile.TarInfo("x")
        i.type, i.linkname = tarfile.SYMTYPE, "/etc/passwd"
        t.addfile(i)
    whole = tar({"a": b"x" * 3000})
    bent = bytearray(whole)
    bent[0] ^= 1
    huge = bytearray(whole)
    huge[124:136] = b"77777777777\0"
    huge[148:156] = b"        "
    huge[148:156] = b"%06o\0 " % sum(huge[:512])
    for blob in (out.getvalue(), b"", b"x" * 100, whole[:1024], bytes(bent), bytes(huge), b"\1" * 4096):
        o = run(argv, [entry("artifact", "/opt/cni/bin", blob=blob, flags=SET)])
        assert o.states() == {"/opt/cni/bin": "failed"}, blob[:10]
    assert not (root / "opt").exists()


def test_same_blob_in_two_places(argv, root):
    blob = os.urandom(100000)
    o = Operator(argv).hello().spec([entry("artifact", "/a/x", blob=blob), entry("file", "/b/y", blob=blob, file_mode=0o600)])
    assert len(o.needs) == 1
    o.blobs().apply().close()
    assert (root / "a/x").read_bytes() == blob and (root / "b/y").read_bytes() == blob
    assert mode(root / "a/x") == 0o755 and mode(root / "b/y") == 0o600


def test_paths_that_are_none(argv, root):
    for bad in ("etc/x", "/etc/../x", "/etc//x", "/etc/./x", "/", "/etc/x\n", ""):
        with pytest.raises(Stopped):
            Operator(argv).hello().spec([entry("file", bad, content="x")])
    for e in (entry("unit", "-rf"), entry("sysctl", "a..b", target="1"), entry("sysctl", "a.b"), entry("link", "/x"), entry("artifact", "/x"),
              entry("file", "/x", digest="zz"), dict(kind=99, path="/x"), entry("package", "a b")):
        with pytest.raises(Stopped):
            Operator(argv).hello().spec([e])
    with pytest.raises(Stopped, match="twice"):
        Operator(argv).hello().spec([entry("file", "/x", content="1"), entry("file", "/x", content="2")])


def test_things_in_the_way(argv, root):
    (root / "etc/x").mkdir(parents=True)
    (root / "etc/f").write_text("")
    o = run(argv, [entry("file", "/etc/x", content="1"), entry("dir", "/etc/f"), entry("file", "/etc/f/y", content=""), entry("file", "/etc/ok", content="1")])
    assert o.states() == {"/etc/x": "failed", "/etc/f": "failed", "/etc/f/y": "failed", "/etc/ok": "created"}
    assert o.done.status == 3 and o.done.count == 1
    assert "a directory of that name exists" in o.details()["/etc/x"]
    o = Operator(argv).hello().close()
    assert o.digest is None, "a run with failures is not an applied spec"
    assert not leftovers(root)


def test_unknown_owner(argv, root):
    o = run(argv, [entry("file", "/etc/x", content="1", owner="nobody-of-that-name"), entry("file", "/etc/y", content="1")])
    assert o.states() == {"/etc/x": "failed", "/etc/y": "created"} and "does not exist" in o.details()["/etc/x"]


@needs_root
def test_owner(argv, root):
    run(argv, [entry("file", "/etc/x", content="1", owner="daemon:daemon"), entry("dir", "/etc/d", owner="12:34")])
    st = (root / "etc/x").stat()
    assert (st.st_uid, st.st_gid) == (1, 1)
    assert (root / "etc/d").stat().st_gid == 34
    os.chown(root / "etc/x", 0, 0)
    assert Operator(argv).hello().close().drift == ["/etc/x"]


@needs_root
def test_without_permission(binary, root):
    """A user who is not root gets sentences, not a broken node."""
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(binary), "--root", str(root)]
    for p in root.parents:
        if str(p).startswith("/tmp/"):
            p.chmod(0o755)
    o = Operator(argv).hello()
    assert o.facts["root"] is False
    with pytest.raises(Stopped, match="cannot make the directory .*Permission denied"):
        o.spec(base()[:3]).apply()
    (root / "var/lib/slipway").mkdir()
    os.chown(root / "var/lib/slipway", 65534, 65534)
    o = run(argv, [entry("file", "/etc/x", content="1", owner="65534:65534"), entry("file", "/var/lib/slipway/mine", content="1", owner="65534:65534")])
    assert o.states() == {"/etc/x": "failed", "/var/lib/slipway/mine": "created"}
    assert "Permission denied" in o.details()["/etc/x"]


@needs_root
def test_read_only(argv, root):
    (root / "usr").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", root / "usr"], check=True)
    try:
        o = run(argv, [entry("artifact", "/usr/bin/x", blob=b"x"), entry("file", "/etc/y", content="1")])
        assert o.states() == {"/usr/bin/x": "failed", "/etc/y": "created"} and "Read-only" in o.details()["/usr/bin/x"]
    finally:
        subprocess.run(["umount", root / "usr"], check=True)
    assert set(run(argv, [entry("artifact", "/usr/bin/x", blob=b"x"), entry("file", "/etc/y", content="1")]).states().values()) == {"created", "same"}


@needs_root
def test_full_disk_in_a_blob(argv, root):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", root / "var/lib"], check=True)
    try:
        e = [entry("artifact", "/usr/bin/x", blob=os.urandom(6 << 20))]
        with pytest.raises(Stopped, match="No space left on device.*free space"):
            Operator(argv).hello().spec(e).blobs().apply()
        assert not (root / "usr").exists()
        store = os.listdir(root / "var/lib/slipway/store")
        assert store == [sha(e[0]["_blob"]) + ".part"]
        have = (root / "var/lib/slipway/store" / store[0]).stat().st_size
        subprocess.run(["mount", "-o", "remount,size=20m", root / "var/lib"], check=True)
        o = Operator(argv).hello().spec(e)
        assert o.needs == [(sha(e[0]["_blob"]), have)] and have > 2 << 20
        o.blobs().apply().close()
        assert (root / "usr/bin/x").read_bytes() == e[0]["_blob"]
    finally:
        subprocess.run(["umount", root / "var/lib"], check=True)


@needs_root
def test_full_disk_at_the_target(argv, root):
    (root / "usr").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", root / "usr"], check=True)
    try:
        (root / "usr/x").write_text("old")
        e = [entry("artifact", "/usr/x", blob=os.urandom(3 << 20)), entry("artifact", "/usr/set", blob=tar({"a": b"a" * (2 << 20)}), flags=SET), entry("file", "/etc/y", content="1")]
        o = run(argv, e)
        assert o.states() == {"/usr/x": "failed", "/usr/set": "failed", "/etc/y": "created"} and "No space" in o.details()["/usr/x"]
        assert (root / "usr/x").read_text() == "old" and not leftovers(root)
        subprocess.run(["mount", "-o", "remount,size=20m", root / "usr"], check=True)
        o = Operator(argv).hello().spec(e)
        assert o.needs == [], "the blobs are still there"
        assert o.apply().close().states() == {"/usr/x": "changed", "/usr/set": "created", "/etc/y": "same"}
    finally:
        subprocess.run(["umount", root / "usr"], check=True)


def test_resume_of_a_blob(argv, root):
    data = os.urandom(3 << 20)
    e = [entry("artifact", "/usr/bin/x", blob=data)]
    o = Operator(argv, limit=1 << 20).hello()
    with pytest.raises(Cut):
        o.spec(e).blobs()
    o.close()
    o = Operator(argv).hello().spec(e)
    (digest, offset), = o.needs
    assert 0 < offset < 1 << 20
    o.blobs()
    assert o.blob_bytes == len(data) - offset
    o.apply().close()
    assert (root / "usr/bin/x").read_bytes() == data


def test_damaged_blob(argv, root):
    data = os.urandom(100000)
    e = [entry("artifact", "/usr/bin/x", blob=data)]
    o = Operator(argv).hello().spec(e)
    o.write(wire.frame(wire.BLOB, digest=sha(data), size=len(data), offset=0) + wire.frame(wire.DATA, bytes=data[:-1] + b"!"))
    with pytest.raises(Stopped, match="arrived as"):
        o.apply()
    o.close()
    o = Operator(argv).hello().spec(e)
    assert o.needs == [(sha(data), 0)], "a damaged one is not resumed"
    o.blobs().apply().close()


def test_blob_nobody_asked_for(argv, root):
    o = Operator(argv).hello().spec([entry("file", "/x", content="1")])
    o.write(wire.frame(wire.BLOB, digest=sha(b"x"), size=1, offset=0))
    with pytest.raises(Stopped, match="had not asked for"):
        o.apply()
    o.close()
    o = Operator(argv).hello().spec([entry("artifact", "/x", blob=b"12345")])
    o.write(wire.frame(wire.BLOB, digest=sha(b"12345"), size=5, offset=0) + wire.frame(wire.DATA, bytes=b"123456"))
    with pytest.raises(Stopped, match="does not belong to a blob"):
        o.apply()
    o.close()


def test_blob_not_sent(argv, root):
    o = Operator(argv).hello().spec([entry("artifact", "/x", blob=b"12345"), entry("file", "/y", content="1")])
    o.apply().close()
    assert o.states() == {"/x": "failed", "/y": "created"} and "is not in the store" in o.details()["/x"]


def test_other_cluster(argv, root):
    run(argv, [entry("file", "/x", content="1")], cluster="one")
    with pytest.raises(Stopped, match="belongs to another cluster"):
        run(argv, [entry("file", "/x", content="2")], cluster="two")
    assert (root / "x").read_text() == "1"


def test_damaged_record(argv, root):
    run(argv, [entry("file", "/x", content="1")])
    (root / "var/lib/slipway/applied").write_text("slipway record 1\nnonsense\n")
    with pytest.raises(Stopped, match="is damaged"):
        Operator(argv).hello()


def test_journal(argv, root):
    run(argv, base())
    text = (root / "var/lib/slipway/journal").read_text()
    assert "created file /etc/kubernetes/a.conf" in text and "done: " in text
    assert mode(root / "var/lib/slipway/journal") == 0o600
    (root / "var/lib/slipway/journal").write_text("2026-01-01T00:00:00Z 1 old\n" * 40000)
    run(argv, base() + [entry("file", "/new", content="")])
    text = (root / "var/lib/slipway/journal").read_text()
    assert len(text) < 600 << 10 and "created file /new" in text


def test_secrets_are_told_nobody(argv, root):
    e = base() + [entry("file", "/etc/x/y", content=SECRET * 3, class_=2)]
    (root / "etc").mkdir()
    (root / "etc/x").write_text("in the way")
    o = Operator(argv).hello().spec(e).blobs().apply()
    out = b"".join(v for f in o.events for _, v in f.fields)
    o.close()
    assert SECRET.encode() not in out and SECRET not in o.stderr
    for p in (root / "var/lib/slipway").rglob("*"):
        assert not p.is_file() or SECRET.encode() not in p.read_bytes(), p


def test_two_at_once(argv, root):
    a = Operator(argv).hello().spec([entry("artifact", "/x", blob=b"x" * 1000)]).blobs()
    b = Operator(argv).hello().spec([entry("artifact", "/x", blob=b"y" * 1000)])
    b.write(wire.frame(wire.APPLY, mode=0))
    time.sleep(0.3)
    a.apply().close()
    assert a.states() == {"/x": "created"}
    f = b.expect(wire.EVENT)  # it waited
    assert wire.STATES[f.state] == "failed" and "is not in the store" in f.detail
    b.expect(wire.DONE)
    b.close()


# --- RUN ----------------------------------------------------------------------------------------------------------------

def collect(o, count):
    out, status = {}, {}
    while len(status) < count:
        f = o.expect(wire.OUT, wire.EXIT)
        if f.type == wire.OUT:
            out[f.id, f.stream] = out.get((f.id, f.stream), b"") + f.bytes
        else:
            status[f.id] = f.status
    return out, status


def test_run(argv, root):
    o = Operator(argv).hello()
    o.run("sh", "-c", "echo out; echo err >&2; exit 3", id=1)
    o.run("cat", id=2, input=b"\0hello" * 1000)
    o.run("sleep", "0.3", id=3)
    o.run("sh", "-c", "kill -9 $$", id=4)
    o.run("no-such-program", id=5)
    o.run("echo", "a b", "$HOME", id=6)
    o.run("head", "-c", "3000000", "/dev/zero", id=7)
    out, status = collect(o, 7)
    o.close()
    assert status == {1: 3, 2: 0, 3: 0, 4: 137, 5: 127, 6: 0, 7: 0}
    assert out[1, 1] == b"out\n" and out[1, 2] == b"err\n" and out[2, 1] == b"\0hello" * 1000
    assert out[6, 1] == b"a b $HOME\n" and out[7, 1] == bytes(3000000) and b"cannot run no-such-program" in out[5, 2]
    assert o.status == 0


def test_no_core_dump(argv, root, tmp_path):
    """Neither by its limit nor by a pattern that is a pipe; what it runs has the limit as it was."""
    soft = resource.getrlimit(resource.RLIMIT_CORE)[1]
    soft = 4096 * 1024 if soft == resource.RLIM_INFINITY else soft
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":disable_coredump=0"  # it would set the limit itself
    o = Operator(["env", f"ASAN_OPTIONS={sanitizer}", "prlimit", f"--core={soft}:", *argv]).hello()
    pid = o.proc.pid  # env and prlimit become it
    limits = open(f"/proc/{pid}/limits").read()
    assert re.search(r"^Max core file size +0 ", limits, re.M), limits
    o.run("sh", "-c", "grep '^Max core' /proc/self/limits", id=1)
    out, _ = collect(o, 1)
    assert re.search(rb"size +%d " % soft, out[1, 1]), out
    os.kill(pid, signal.SIGABRT)
    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGABRT and not os.WCOREDUMP(status)


def test_run_that_ignores_its_input_and_one_that_stays_in_the_background(argv, root):
    o = Operator(argv).hello()
    o.run("true", id=1, input=b"x" * 900000)
    o.run("sh", "-c", "sleep 30 & echo $!", id=2)
    out, status = collect(o, 2)
    assert status == {1: 0, 2: 0}
    os.kill(int(out[2, 1]), signal.SIGKILL)
    o.close()


@pytest.mark.parametrize("how", ["close", "kill"])
def test_runs_end_with_the_pipe(argv, root, how):
    o = Operator(argv).hello()
    o.run("sh", "-c", "trap '' TERM; echo $$; sleep 600; sleep 600", id=1)
    o.run("sh", "-c", "echo $$; exec sleep 600", id=2)
    pids = [int(o.expect(wire.OUT).bytes) for _ in range(2)]
    if how == "close":
        o.close()
    else:
        o.proc.kill()
        o.close(wait=False)
    end = time.monotonic() + 20
    while time.monotonic() < end and any(os.path.exists(f"/proc/{p}") for p in pids):
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{p}") for p in pids)


def test_run_while_a_spec_is_there(argv, root):
    o = Operator(argv).hello().spec([entry("file", "/x", content="1")])
    o.run("echo", "hi")
    assert collect(o, 1)[0][1, 1] == b"hi\n"
    assert o.apply().close().states() == {"/x": "created"}


# --- the connection is cut ------------------------------------------------------------------------------------------------

OLD = [entry("file", f"/etc/f{i}", content=f"old {i}\n" * 50) for i in range(6)] + [entry("artifact", "/usr/bin/x", blob=b"old" * 2000)]
NEW = [entry("file", f"/etc/f{i}", content=f"new {i}\n" * 60) for i in range(6)] + [entry("artifact", "/usr/bin/x", blob=b"new" * 3000)]


def contents(entries):
    return {e["path"]: e["_blob"] if "_blob" in e else e["content"].encode() for e in entries}


def assert_old_or_new(root):
    old, new = contents(OLD), contents(NEW)
    for path in old:
        assert (root / path[1:]).read_bytes() in (old[path], new[path]), path


def test_cut_at_every_byte(argv, root):
    """The operator's bytes end anywhere: every file holds its old content or its new one, and the next run finishes."""
    run(argv, OLD)
    whole = Operator(argv).hello().spec(NEW).blobs()
    total = whole.sent
    whole.close()
    edges = set(range(0, 200)) | set(range(total - 60, total + 14)) | set(range(200, total, max(1, total // int(os.environ.get("CUTS", "150")))))
    for limit in sorted(edges):
        shutil.rmtree(root / "var/lib/slipway/store", ignore_errors=True)
        o = Operator(argv, limit=limit)
        with pytest.raises(Cut):
            o.hello().spec(NEW).blobs().apply()
        o.close()
        assert o.status in (0, 5), o.stderr
        assert_old_or_new(root)
        assert (root / "etc/f0").read_bytes() == contents(OLD)["/etc/f0"], "APPLY was never whole"
        parts = os.listdir(root / "var/lib/slipway/store") if (root / "var/lib/slipway/store").exists() else []
        assert len(parts) <= 1
    o = run(argv, NEW)
    assert o.done.status == 0 and contents(NEW) == {p: (root / p[1:]).read_bytes() for p in contents(NEW)}
    assert not leftovers(root) and Operator(argv).hello().close().digest == wire.spec_digest(NEW)


def test_garbage(argv, root):
    rnd = random.Random(7)
    for n in (1, 5, 30, 2000):
        for _ in range(6):
            o = Operator(argv).hello()
            o.write(rnd.randbytes(n))
            o.close()
            assert o.status >= 0
    for data in (b"GET / HTTP/1.1\r\n\r\n", wire.frame(wire.HELLO), wire.frame(wire.DATA, bytes=b"x"), wire.frame(wire.APPLY), wire.frame(wire.SPEC_END), wire.frame(wire.ENTRY),
                 wire.frame(wire.SPEC, digest=sha(b""), count=1 << 60), wire.frame(wire.RUN), struct.pack("<IB", 3, wire.RUN) + b"abc"):
        o = Operator(argv).hello()
        o.write(data)
        assert o.expect(wire.ERROR).text
        o.close()


def test_killed_at_any_moment(argv, root):
    """SIGKILL in the middle of applying: old or new, never half; the next run finishes and leaves nothing behind."""
    rnd = random.Random(11)
    run(argv, OLD)
    to, other = NEW, OLD
    for turn in range(int(os.environ.get("KILLS", "60"))):
        o = Operator(argv).hello().spec(to).blobs()
        o.write(wire.frame(wire.APPLY, mode=0))
        time.sleep(rnd.random() * 0.02)
        if turn % 2:
            o.proc.kill()
        o.close()  # which cuts the connection
        assert_old_or_new(root)
        assert turn % 2 or not [p for p in leftovers(root) if p.suffix != ".part"], "cut, not killed: nothing half is left"
        if turn % 3 == 2:
            o = run(argv, to)
            assert o.done.status == 0 and not leftovers(root)
            assert contents(to) == {p: (root / p[1:]).read_bytes() for p in contents(to)}
            assert Operator(argv).hello().close().drift == []
            to, other = other, to


def test_what_a_killed_run_made_is_removed_later(argv, root):
    """Killed right after it wrote down what it may touch: a spec without those entries still removes them."""
    for delay in range(0, 12):
        o = Operator(argv).hello().spec(NEW).blobs()
        o.write(wire.frame(wire.APPLY, mode=0))
        time.sleep(delay / 1000)
        o.proc.kill()
        o.close()
        run(argv, [])
        assert not [p for p in root.rglob("*") if p.is_file() and "slipway" not in str(p.relative_to(root))], delay


def test_signal_stops_cleanly(argv, root):
    o = Operator(argv).hello().spec(NEW).blobs()
    o.proc.send_signal(signal.SIGTERM)
    o.close()
    assert o.status == 0 and set(run(argv, NEW).states().values()) == {"created"}


def test_size(binary):
    data = binary.read_bytes()
    if b"__asan" in data:
        pytest.skip("this build has sanitizers")
    assert len(data) < 250_000
    assert "statically linked" in subprocess.run(["file", binary], capture_output=True, text=True).stdout or b"/lib/ld-" not in data


def test_facts(argv):
    o = Operator(argv).hello().close()
    f = o.facts
    assert f["arch"] in ("amd64", "arm64") and f["cgroup"] in (1, 2) and f["cpus"] == os.cpu_count() and f["memory"] > 1 << 28
    assert abs(f["time"] / 1e9 - time.time()) < 60 and f["kernel"] == os.uname().release and f["hostname"] == os.uname().nodename
    assert {d["path"] for d in f["disks"]} >= {"/", "/var/lib/etcd"}
    assert all(type(v) is bool for v in f["features"].values()) and isinstance(f["ports"], list)


def test_facts_of_an_earlier_cluster(argv, root):
    """Directories that user-data made are none."""
    (root / "var/lib/kubelet/pki").mkdir(parents=True)
    assert Operator(argv).hello().close().facts["leftovers"] == []
    (root / "var/lib/kubelet/pki/kubelet.crt").write_text("x")
    assert Operator(argv).hello().close().facts["leftovers"] == ["/var/lib/kubelet/pki"]


def test_facts_of_this_boot(argv):
    boots = {Operator(argv).hello().close().facts["boot"] for _ in range(2)}
    assert len(boots) == 1
    boot_id, began = boots.pop().split("/")
    assert boot_id == open("/proc/sys/kernel/random/boot_id").read().strip()
    assert began == open("/proc/1/stat").read().rsplit(")", 1)[1].split()[19]


@pytest.mark.parametrize("files, why", [
    ({}, None),
    ({"run/reboot-required": ""}, "its operating system says so"),
    ({"run/reboot-needed": ""}, "its operating system says so"),
    ({"run/reboot-required": "", "run/reboot-required.pkgs": "linux-image-6.1.0-30-amd64\nlibc6\n"}, "linux-image-6.1.0-30-amd64, libc6 changed"),
    ({"run/reboot-required": "", "run/reboot-required.pkgs": "a\nb\nc\nd\ne\n"}, "a, b, c and 2 more changed"),
    ({"run/reboot-required.pkgs": "a\n"}, None),
    ({"lib/modules/99.9/modules.dep": ""}, f"kernel 99.9 is installed, and {os.uname().release} runs without its modules"),
    ({"lib/modules/99.9/modules.dep": "", f"lib/modules/{os.uname().release}/modules.dep": ""}, None),
    ({"lib/modules/99.9/empty": ""}, None),
])
def test_facts_of_a_reboot(argv, root, files, why):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert Operator(argv).hello().close().facts.get("reboot") == why


def test_ports_name_their_program(argv):
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        o = Operator(argv).hello().close()
        mine = [p for p in o.facts["ports"] if p["port"] == s.getsockname()[1]]
        assert mine and mine[0]["address"] == "127.0.0.1" and mine[0]["program"] == open("/proc/self/comm").read().strip()
