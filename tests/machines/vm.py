"""Virtual machines with a kernel and a first boot of their own, emulated by QEMU (no KVM is needed): for what machines on this computer cannot show, because
they share its kernel. Debian trixie; a seed disk has the user-data that cloud-init applies at the first boot (NoCloud). They are slow: an emulated processor
has about a tenth of the speed."""
import subprocess
import tempfile
from pathlib import Path

from harness import CACHE, HERE, until

BRIDGE, NETWORK = "vms", "10.192.0"
MEMORY = 3072  # MB each
LOGIN = "debian"  # the user that cloud-init of Debian makes


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more).stdout.strip()


def base(kind):
    return Path(run(HERE / "base.sh", kind))


def image():
    """The file system of all virtual machines, made once; each writes to a copy of its own."""
    root = base("vm")
    file = CACHE / f"vm-{root.name.removeprefix('base-')}.ext4"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=".vm-") as work:
            part = Path(work) / "ext4"
            run("mke2fs", "-q", "-t", "ext4", "-d", root, part, "10G")
            part.rename(file)
    return file


def newest(root, what):
    return max((root / "boot").glob(f"{what}-*"))


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
    """with Vm(...) as v: powered on; it ends with the block. disks: sizes, as truncate takes them; they become /dev/vdc, /dev/vdd, …"""

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
        """A command in the emulator's own root, where the machine's directory is /mnt and the image /media/image."""
        script = ('mount --bind "$1" "$0/mnt" && mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount --bind "$2" "$0/media" && mount -t tmpfs tmpfs "$0/tmp" '
                  '&& root=$0 && shift 2 && exec chroot "$root" "$@"')
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, str(base("qemu")), str(self.work), str(CACHE), *map(str, argv)]

    def prepare(self):
        self.work.mkdir(parents=True)
        for file, text in self.seed.items():
            (self.work / file).write_text(text)
        run("truncate", "-s", "4M", self.work / "seed")
        run(*self.inside("mkfs.vfat", "-n", "CIDATA", "/mnt/seed"))
        run(*self.inside("mcopy", "-i", "/mnt/seed", *(f"/mnt/{f}" for f in self.seed), "::"))
        for i, size in enumerate(self.disks):
            run("truncate", "-s", size, self.work / f"disk{i}")
        root = base("vm")
        for what in ("vmlinuz", "initrd.img"):
            (self.work / what).write_bytes(newest(root, what).read_bytes())

    def argv(self):
        drive = "if=virtio,format=raw,file="
        drives = [f"{drive}/media/{image().name},snapshot=on", f"{drive}/mnt/seed,readonly=on", *(f"{drive}/mnt/disk{i}" for i in range(len(self.disks)))]
        return self.inside("env", "TMPDIR=/mnt", "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", "1", "-m", MEMORY,
                           "-display", "none", "-monitor", "none", "-serial", "file:/mnt/console", "-kernel", "/mnt/vmlinuz", "-initrd", "/mnt/initrd.img",
                           "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 no_timer_check", *(a for d in drives for a in ("-drive", d)),
                           "-netdev", f"tap,id=n,ifname={self.tap},script=no,downscript=no", "-device", f"virtio-net-pci,netdev=n,mac={self.mac}", "-device", "virtio-rng-pci")

    def __enter__(self):
        self.prepare()
        self.log = open(self.work / "qemu.log", "w")
        self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until(f"{self.tap} is there", lambda: self.alive() and Path(f"/sys/class/net/{self.tap}").exists())
        run("ip", "link", "set", self.tap, "master", BRIDGE, "up")
        return self

    def alive(self):
        assert self.process.poll() is None, (self.work / "qemu.log").read_text()
        return True

    def console(self):
        return (self.work / "console").read_text(errors="replace")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
