"""The agent takes everything off again: what was there before is back, and what the cluster's programs made is gone."""
import os
import random
import shutil
import signal
import stat
import subprocess
import time

import pytest

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
        (root / d).mkdir(parents=True, exist_ok=True)
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
    return run(argv, [entry("dir", d, name="etcd") for d in extra], RESET)


def test_as_it_was(argv, root):
    before = host(root)
    run(argv, spec())
    used(root)
    o = reset(argv)
    assert o.done.status == 0, o.details()
    assert full_tree(root) == before
    o = reset(argv)
    assert o.done.status == 0 and full_tree(root) == before, "again"


def lay(root, *files):
    for f in files:
        (root / f).parent.mkdir(parents=True, exist_ok=True)
        (root / f).write_text("precious")


def test_what_lay_there_before_stays(argv, root):
    """In directories of the cluster's programs too, whoever put it there."""
    lay(root, "data/etcd/notes.txt", "data/etcd/lost+found/x", "var/lib/kubelet/of-another/file", "var/lib/containerd/io.containerd.content.v1.content/blob", "var/lib/cni/mine",
        "etc/kubernetes/hand-made.conf", "var/log/pods/kept/0.log", "data/runtime/overlay/layer", "data/runtime/photos/1.jpg")
    (root / "data/etcd").chmod(0o755)
    before = host(root)
    run(argv, spec() + [entry("dir", "/data/runtime", file_mode=0o700)])
    used(root)
    lay(root, "data/etcd/.restored", "data/runtime/io.containerd.metadata.v1.bolt/meta.db")
    o = run(argv, [entry("dir", "/data/etcd", name="etcd"), entry("dir", "/data/runtime", name="runtime")], RESET)
    assert o.done.status == 0, o.details()
    assert full_tree(root) == before


def test_only_known_subtrees_go(argv, root):
    """What came later and is of no program of the cluster stays too, and so does its directory."""
    host(root)
    run(argv, spec())
    used(root)
    lay(root, "data/etcd/notes.txt", "var/lib/containerd/photos/1.jpg")
    o = reset(argv)
    assert o.done.status == 0, o.details()
    assert sorted(p.name for p in (root / "data/etcd").iterdir()) == ["notes.txt"] and (root / "var/lib/containerd/photos/1.jpg").exists()
    assert not (root / "var/lib/slipway").exists()


def test_a_member_that_lay_there_before_stays(argv, root):
    lay(root, "data/etcd/member/wal/0.wal")
    before = host(root)
    run(argv, spec())
    assert reset(argv).done.status == 0 and full_tree(root) == before


@pytest.mark.parametrize("came", [True, False], ids=["with us", "before"])
def test_an_audit_log(argv, root, came):
    """Where its directory came with us the log goes, with its rotations; what else is there stays."""
    host(root)
    if not came:
        (root / "data/logs").mkdir(parents=True)
    run(argv, spec() + [entry("dir", "/data/logs", file_mode=0o700)])
    ours = ["audit.log", "audit-2026-01-02T03-04-05.678.log", "audit-2026-01-02T03-04-05.678.log.gz"]
    lay(root, *(f"data/logs/{n}" for n in ours + ["auditors.log", "audit.log.bak", "other"]))
    o = run(argv, [entry("dir", "/data/logs", name="audit", target="audit.log", flags=wire.ONCE)], RESET)
    assert o.done.status == 0, o.details()
    left = {p.name for p in (root / "data/logs").iterdir()}
    assert left == {"auditors.log", "audit.log.bak", "other"} | (set() if came else set(ours))


@pytest.mark.parametrize("path,name", [("/srv", "etcd"), ("/home", "runtime"), ("/home/ann", "etcd"), ("/var/log", "audit"), ("/var/lib", "etcd"), ("/etc/x", "etcd"),
                                       ("/var/lib/kubelet", "etcd"), ("/opt", "runtime"), ("/data/x", "all"), ("/data/x", None)])
def test_the_agent_has_the_same_list(argv, root, path, name):
    """Whatever the operator says: nothing is removed, not even what would be right."""
    host(root)
    run(argv, spec())
    used(root)
    (root / path[1:]).mkdir(parents=True, exist_ok=True)
    lay(root, f"{path[1:]}/member/x", f"{path[1:]}/audit.log")
    before = full_tree(root)
    with pytest.raises(wire.Stopped, match=f"the reset names {path}, which .*nothing was removed"):
        run(argv, [entry("dir", path, name=name, target="audit.log")], RESET)
    after = full_tree(root)
    assert {p for p in before if p not in after} == set()


def test_modes_of_the_system_stay(argv, root):
    """A directory of the system in a spec is left as it is; so are the parents of what is written."""
    (root / "srv").mkdir(mode=0o751)
    (root / "srv").chmod(0o751)
    run(argv, [entry("dir", "/srv", file_mode=0o700), entry("dir", "/srv/etcd", file_mode=0o700)])
    assert stat.S_IMODE((root / "srv").stat().st_mode) == 0o751 and stat.S_IMODE((root / "srv/etcd").stat().st_mode) == 0o700
    assert run(argv, [entry("dir", "/srv", file_mode=0o700), entry("dir", "/srv/etcd", file_mode=0o700)]).done.count == 0


FAKE_SAVE = """#!/bin/sh
echo '*nat'
echo ':PREROUTING ACCEPT [0:0]'
seq -f ':KUBE-SVC-%06g - [0:0]' 1 LINES
echo '-A PREROUTING -m comment --comment "services" -j KUBE-SVC-LAST'
seq -f '-A KUBE-SVC-%06g -m comment --comment "ns/service-with-a-name:port" -j KUBE-SEP-AAAAAAAAAAAAAAAA' 1 LINES
echo ':cali-FORWARD - [0:0]'
echo '-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-FORWARD'
echo '-A PREROUTING -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT'
echo '-A PREROUTING -m comment --comment "calibre" -j ACCEPT'
echo '-A cali-FORWARD -j RETURN'
echo ':OVN-POSTROUTING - [0:0]'
echo '-A PREROUTING -m set --match-set kube-router-pod-subnets src -m set ! --match-set kube-router-node-ips dst -j MASQUERADE'
echo '-A PREROUTING -m comment --comment "allow outbound traffic from pods" -i kube-bridge -j ACCEPT'
echo '-A PREROUTING -m comment --comment "allow outbound traffic from pods of mine" -j ACCEPT'
echo '-A PREROUTING -m set --match-set mine src -j ACCEPT'
echo '-A PREROUTING -m set --match-set ovn40subnets dst -j ACCEPT'
echo COMMIT
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a root of its own")
@pytest.mark.parametrize("lines, fits", [(40_000, True), (800_000, False)])
def test_many_rules(binary, tmp_path, lines, fits):
    """Rules of many services (5 MB, 90 MB): every chain goes, or the node says that it failed; never half of them and done."""
    new, sbin = tmp_path / "new", tmp_path / "sbin"
    for d in ("proc", "dev", "tmp", "etc", "var/lib/slipway", "run", "usr"):
        (new / d).mkdir(parents=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{link}"):
            os.symlink(os.readlink(f"/{link}"), new / link)
    sbin.mkdir()
    for family in ("iptables", "ip6tables"):
        for kind in ("-nft", "-legacy", ""):
            for verb in ("save", "restore"):
                f = sbin / f"{family}{kind}-{verb}"
                f.write_text(FAKE_SAVE.replace("LINES", str(lines)) if f.name == "iptables-nft-save" else "#!/bin/sh\nexit 0\n")
                f.chmod(0o755)
    (sbin / "iptables-nft-restore").write_text("#!/bin/sh\ncat >/tmp/restored\n")
    (sbin / "ipset").write_text("#!/bin/sh\n[ $1 = list ] && printf '%s\\n' KUBE-A mine cali40s:abc california kube-router-pod-subnets inet6:KUBE-SRC-A ovn40subnets ovens || echo $2 >>/tmp/destroyed\n")
    (sbin / "ipset").chmod(0o755)
    shutil.copy(binary, new / "agent")
    script = 'mount --bind /usr "$1/usr" && mount --bind "$2" "$1/usr/local/sbin" && mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot "$1" /agent'
    argv = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", script, "sh", str(new), str(sbin)]
    run(argv, [entry("file", "/etc/ours", content="x")])
    o = run(argv, [], RESET)
    restored = new / "tmp/restored"
    if fits:
        assert o.done.status == 0, o.details()
        text = restored.read_text()
        assert text.count("-X KUBE-SVC-") == lines and f"-X KUBE-SVC-{lines:06}" in text and "-D PREROUTING" in text
        assert "-X cali-FORWARD" in text and "cali:6gwb" in text and "cali:S93h" in text and "calibre" not in text
        assert "-X OVN-POSTROUTING" in text and "kube-router-pod-subnets" in text and "ovn40subnets" in text and "-i kube-bridge" in text
        assert "of mine" not in text and "--match-set mine" not in text
        assert (new / "tmp/destroyed").read_text().split() == ["KUBE-A", "cali40s:abc", "kube-router-pod-subnets", "inet6:KUBE-SRC-A", "ovn40subnets"]
    else:
        assert o.done.status == 1 and "it printed more than 64 MB" in str(o.details()), o.details()
        assert not restored.exists()


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
            o = Operator(argv).hello().spec([entry("dir", "/data/etcd", name="etcd")])
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
