"""The agent takes everything off again: what was there before is back, and what the cluster's programs made is gone."""
import os
import random
import signal
import stat
import subprocess
import time

import wire
from test_agent import base, sysctl
from wire import Operator, entry, run

RESET = 3


def full_tree(root):
    """With modes, and the agent's own."""
    return {str(p.relative_to(root)): (stat.S_IFMT(p.lstat().st_mode), stat.S_IMODE(p.lstat().st_mode), os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None)
            for p in sorted(root.rglob("*"))}


def host(root):
    """A host with things of its own, some of them in our way."""
    sysctl(root, "0")
    for d in ("run", "var/log", "etc/cni/net.d", "etc/kubernetes", "usr/local/bin", "var/lib/kubelet"):
        (root / d).mkdir(parents=True)
    (root / "etc/kubernetes").chmod(0o750)
    (root / "etc/cni/net.d/87-podman.conflist").write_text("podman's")
    (root / "usr/local/bin/prog").write_text("the host's own")
    (root / "usr/local/bin/prog").chmod(0o711)
    os.symlink("somewhere", root / "etc/link")
    return full_tree(root)


def spec():
    return base() + [entry("dir", "/var/lib/kubelet", file_mode=0o700), entry("dir", "/etc/cni/net.d", file_mode=0o755),
                     entry("file", "/etc/cni/net.d/10-flannel.conflist", content="ours"), entry("dir", "/data/etcd", file_mode=0o700)]


def used(root):
    """What kubelet, etcd and the fabric leave behind."""
    for f in ("var/lib/kubelet/pods/1/volumes/x", "var/lib/cni/networks/cbr0/10.244.0.2", "var/log/pods/a/0.log", "data/etcd/member/wal/0.wal", "run/flannel/subnet.env",
              "etc/kubernetes/tmp/y", "opt/cni/bin/added"):
        (root / f).parent.mkdir(parents=True, exist_ok=True)
        (root / f).write_text("x")
    os.symlink("/etc", root / "var/lib/kubelet/pods/1/link")


def reset(argv, extra=("/data/etcd",)):
    return run(argv, [entry("dir", d) for d in extra], RESET)


def test_as_it_was(argv, root):
    before = host(root)
    run(argv, spec())
    used(root)
    o = reset(argv)
    assert o.done.status == 0, o.details()
    assert full_tree(root) == before
    o = reset(argv)
    assert o.done.status == 0 and full_tree(root) == before, "again"


def test_without_a_record(argv, root):
    before = host(root)
    o = reset(argv)
    assert o.done.status == 0 and full_tree(root) == before


def test_another_clusters_node_is_refused(argv, root):
    host(root)
    run(argv, spec())
    o = Operator(argv).hello().spec([], cluster="other")
    o.write(wire.frame(wire.APPLY, mode=RESET))
    f = o.expect(wire.ERROR)
    assert "belongs to another cluster" in f.text
    o.close()
    assert (root / "etc/kubernetes/a.conf").exists()


def test_killed_anywhere(argv, root, tmp_path):
    """At random moments, again and again, until it gets through."""
    before = host(root)
    rnd = random.Random(7)
    for turn in range(15):
        assert run(argv, spec()).done.status == 0
        used(root)
        for _ in range(4):
            o = Operator(argv).hello().spec([entry("dir", "/data/etcd")])
            o.write(wire.frame(wire.APPLY, mode=RESET))
            time.sleep(rnd.random() * 0.01)
            o.proc.send_signal(signal.SIGKILL)
            o.proc.wait()
            o.proc.stdin.close()
            o.proc.stdout.close()
            o.proc.stderr.close()
        o = reset(argv)
        assert o.done.status == 0, o.details()
        assert full_tree(root) == before, f"turn {turn}"


def test_a_mount_in_the_way_is_not_emptied(argv, root):
    """Somebody's disk below a directory of ours: said, and left alone."""
    host(root)
    run(argv, spec())
    there = root / "var/lib/kubelet/pods/1/mnt"
    there.mkdir(parents=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", there]).returncode:
        return
    try:
        (there / "precious").write_text("x")
        o = reset(argv)
        assert o.done.status == 1 and any("mounted" in (f.detail or "") for f in o.events)
        assert (there / "precious").exists() and (root / "var/lib/slipway/applied").exists()
    finally:
        subprocess.run(["umount", there], check=True)
    assert reset(argv).done.status == 0
