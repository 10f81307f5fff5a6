"""Virtual machines with a kernel and a first boot of their own, for what machines on this computer cannot show, because they share its kernel.

They are User Mode Linux: Debian's kernel as a process of this computer. It needs no KVM, and no emulated processor: programs in it run as fast as others, only
system calls and page faults are slow. A seed disk has the user-data that cloud-init applies at the first boot (NoCloud)."""
import hashlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from harness import CACHE, HERE

BRIDGE, NETWORK = "vms", "10.192.0"
MEMORY = 3072  # MB each
LOGIN = "debian"  # the user that cloud-init of Debian makes

# What this kernel lacks or has in another place, before anything else starts.
PREPARED = """\
[Unit]
DefaultDependencies=no
After=systemd-remount-fs.service
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'sed "s/^bogomips.*/&\\\\ncpu MHz\\\\t\\\\t: 1000.000/" /proc/cpuinfo >/run/cpuinfo && mount --bind /run/cpuinfo /proc/cpuinfo'
[Install]
WantedBy=sysinit.target
"""


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more).stdout.strip()


def base():
    return Path(run(HERE / "base.sh", "vm"))


def fit_out(root, wireguard):
    """What a root needs to be one of these machines."""
    modules = next((root / "usr/lib/uml/modules").iterdir())
    run("cp", "-a", wireguard, modules / "wireguard")
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    (root / "usr/lib/modules" / modules.name).symlink_to(f"../uml/modules/{modules.name}")
    run("chroot", root, "depmod", modules.name)
    (root / "etc/systemd/system/vm.service").write_text(PREPARED)
    (root / "etc/cloud/cloud.cfg.d/90-hosts.cfg").write_text("manage_etc_hosts: true\n")  # as in Debian's own images
    (root / "etc/resolv.conf").write_text(f"nameserver {NETWORK}.1\n")  # who says no at once
    for name in ("iptables", "ip6tables"):  # this kernel has no nftables for IPv4
        run("chroot", root, "update-alternatives", "--set", name, f"/usr/sbin/{name}-legacy")
    run("chroot", root, "systemctl", "enable", "vm.service")


def image():
    """The file system of all virtual machines, made once; each writes to a copy of its own."""
    root = base()
    file = CACHE / f"vm-{hashlib.sha256((root.name + Path(__file__).read_text()).encode()).hexdigest()[:12]}.ext4"
    if not file.exists():
        wireguard = run(HERE / "wireguard.sh", root)
        for old in CACHE.glob("vm-*.ext4"):
            old.unlink()
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=".vm-") as work:
            part, tree = Path(work) / "ext4", Path(work) / "root"
            run("cp", "-a", "--reflink=auto", root, tree)
            fit_out(tree, wireguard)
            run("mke2fs", "-q", "-t", "ext4", "-d", tree, part, "10G")
            part.rename(file)
    return file


class Network:
    """A bridge with this computer's address at .1; virtual machines plug in."""

    def __enter__(self):
        subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True)  # of a run that was killed
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        return self

    def __exit__(self, *_):
        run("ip", "link", "delete", BRIDGE)


class Vm:
    """with Vm(...) as v: powered on; it ends with the block. disks: sizes, as truncate takes them; they become /dev/ubdc, /dev/ubdd, …"""

    def __init__(self, work, name, number, user_data, public_key, disks=()):
        self.work, self.name, self.number = work / name, name, number
        self.address, self.tap = f"{NETWORK}.{number}", f"vm{number}"
        self.mac = f"52:54:00:c0:00:{number:02x}"
        self.seed = {"user-data": user_data, "network-config": self.network_config(),
                     "meta-data": f"instance-id: {name}\nlocal-hostname: {name}\npublic-keys: ['{public_key.strip()}']\n"}
        self.disks = disks

    def network_config(self):
        return (f"version: 2\nethernets:\n  net0:\n    match: {{macaddress: '{self.mac}'}}\n    set-name: eth0\n"
                f"    addresses: [{self.address}/24]\n    routes: [{{to: default, via: {NETWORK}.1}}]\n")

    def inside(self, *argv):
        """A command in the machines' own root, whose libraries it wants. There the machine's directory is /mnt and the cache /media."""
        script = ('mount --bind "$1" "$0/mnt" && mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount --bind "$2" "$0/media" && mount -t tmpfs tmpfs "$0/tmp" '
                  '&& root=$0 && shift 2 && exec chroot "$root" "$@"')
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, str(base()), str(self.work), str(CACHE), *map(str, argv)]

    def prepare(self):
        self.work.mkdir(parents=True)
        for file, text in self.seed.items():
            (self.work / file).write_text(text)
        run("truncate", "-s", "4M", self.work / "seed")
        run(*self.inside("mkfs.vfat", "-n", "CIDATA", "/mnt/seed"))
        run(*self.inside("mcopy", "-i", "/mnt/seed", *(f"/mnt/{f}" for f in self.seed), "::"))
        for i, size in enumerate(self.disks):
            run("truncate", "-s", size, self.work / f"disk{i}")

    def argv(self):
        drives = [f"/mnt/root,/media/{image().name}", "/mnt/seed", *(f"/mnt/disk{i}" for i in range(len(self.disks)))]
        cpus = sorted(os.sched_getaffinity(0))  # one each: every system call in it goes to another process and back
        return self.inside("taskset", "-c", cpus[self.number // 10 % len(cpus)], "env", "TMPDIR=/tmp", "HOME=/mnt", "linux.uml", f"umid={self.name}", f"mem={MEMORY}M", *(f"ubd{i}={d}" for i, d in enumerate(drives)),
                           "root=/dev/ubda", "rw", "con=null", "con0=null,fd:1", "ssl=null", f"eth0=tuntap,{self.tap},{self.mac}")

    def __enter__(self):
        self.prepare()
        subprocess.run(["ip", "link", "delete", self.tap], capture_output=True)  # of a run that was killed
        run("ip", "tuntap", "add", "dev", self.tap, "mode", "tap")
        run("ip", "link", "set", self.tap, "master", BRIDGE, "up")
        self.log = open(self.work / "console", "w")
        self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        return self

    def alive(self):
        assert self.process.poll() is None, self.console()
        return True

    def console(self):
        return (self.work / "console").read_text(errors="replace")

    def __exit__(self, *_):
        """Each process of the machine is one of this computer, in the session that began with it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()
        run("ip", "link", "delete", self.tap)
