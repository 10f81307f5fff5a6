"""Rendering: certificates and files of many nodes, beside openssl and kubeadm; and the program's own size and start.

    tests/bench/run.py render
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "machines"))
from upstream import NEWEST, programs  # noqa: E402

TITLE = "Rendering"
ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = ROOT / "build" / "slipway"
KUBEADM = programs("kubernetes") / "kubeadm"
OPENSSL_NODES, KUBEADM_NODES = 50, 20  # samples: both are strictly linear, one process after the other


def cluster(path, nodes):
    """A file as a person's script would write it: three control planes, the rest workers with two labels."""
    with open(path, "w") as f:
        f.write("apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bench}\nspec:\n" f"  kubernetes: {NEWEST}\n" "  provider: {ssh: {user: root}}\n"
                "  api: {vip: 10.128.255.254}\n  network: {pods: 100.64.0.0/10, services: 172.20.0.0/16, hosts: 10.128.0.0/16}\n"
                "  pools:\n    - name: control\n      roles: [control-plane, etcd]\n      hosts: [10.128.0.11, 10.128.0.12, 10.128.0.13]\n"
                "    - name: worker\n      hosts:\n")
        for i in range(nodes - 3):
            f.write(f"        - {{name: w{i}, address: 10.128.{1 + i // 250}.{1 + i % 250}, labels: {{zone: z{i % 3}, rack: r{i // 40}}}}}\n")


def measure(cmd, **kw):
    """(wall seconds, CPU seconds, peak MB) of one command."""
    start = time.monotonic()
    proc = subprocess.Popen([str(c) for c in cmd], stdout=subprocess.DEVNULL, **kw)
    _, status, usage = os.wait4(proc.pid, 0)
    if status:
        sys.exit(f"bench: {' '.join(map(str, cmd))} failed")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def render(work, nodes):
    cluster(work / "cluster.yaml", nodes)
    out = measure([SLIPWAY, "render", "--secrets", "-f", "cluster.yaml", "-d", "out"], cwd=work)
    shutil.rmtree(work / "out")
    shutil.rmtree(work / ".slipway")
    return out


def openssl(work):
    """The four certificates of a worker, as scripts make them: a key, a request, a signature. Seconds a node."""
    def run(*args):
        subprocess.run(["openssl", *args], cwd=work, check=True, capture_output=True)
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
    run("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=kubernetes", "-days", "3650", "-out", "ca.crt")
    start = time.monotonic()
    for i in range(OPENSSL_NODES):
        for name, subject, use in (("kubelet", f"/O=system:nodes/CN=system:node:w{i}", "clientAuth"), ("kubelet-server", f"/O=system:nodes/CN=system:node:w{i}", "serverAuth"),
                                   ("kube-proxy", "/CN=system:kube-proxy", "clientAuth"), ("flannel", f"/O=slipway:flannel/CN=slipway:flannel:w{i}", "clientAuth")):
            (work / "ext").write_text(f"basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\nextendedKeyUsage={use}\nsubjectAltName=DNS:w{i},IP:10.128.1.1\n")
            run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
            run("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
            run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "365", "-extfile", "ext", "-out", f"{name}.crt")
    return (time.monotonic() - start) / OPENSSL_NODES


def kubeadm(work):
    """kubeadm init phase certs all, with the same key algorithm. Seconds a node."""
    conf = work / "kubeadm.yaml"
    start = time.monotonic()
    for i in range(KUBEADM_NODES):
        conf.write_text("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 10.128.0.11}\n"
                        f"nodeRegistration: {{name: n{i}, criSocket: unix:///run/containerd/containerd.sock}}\n---\n"
                        f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v{NEWEST}\nencryptionAlgorithm: ECDSA-P256\n"
                        f"certificatesDir: {work}/pki{i}\n")
        subprocess.run([KUBEADM, "init", "phase", "certs", "all", "--config", conf], check=True, capture_output=True)
    return (time.monotonic() - start) / KUBEADM_NODES


def section():
    """The lines of this part of docs/benchmarks.md."""
    # in memory where there is room: the disk would be most of what is measured, for everyone
    shm = Path("/dev/shm")
    roomy = shm.is_dir() and shutil.disk_usage(shm).free > 6 << 30
    work = Path(tempfile.mkdtemp(prefix="slipway-bench.", dir=shm if roomy else None))
    try:
        print("1,000 nodes ...", flush=True)
        small = min(render(work, 1000) for _ in range(2))
        print("10,000 nodes ...", flush=True)
        big = render(work, 10000)
        print("openssl, kubeadm ...", flush=True)
        by_openssl, by_kubeadm = openssl(work), kubeadm(work)
        cluster(work / "cluster.yaml", 10000)
        check = min(measure([SLIPWAY, "check", "-f", "cluster.yaml"], cwd=work)[1] for _ in range(3))
        start = min(measure([SLIPWAY, "--version"])[0] for _ in range(20))
        subprocess.run(["strip", "-o", work / "slipway", SLIPWAY], check=True)
        size = (work / "slipway").stat().st_size
    finally:
        shutil.rmtree(work)
    rows = [
        ("certificates and files of 1,000 nodes, against the same certificates by the `openssl` command", f"{by_openssl * 1000 / small[0]:.0f} times faster", "at least 20",
         f"{small[0]:.2f} s against {by_openssl * 1000:.0f} s ({OPENSSL_NODES} nodes measured)"),
        ("the same, against `kubeadm init phase certs all` for each node", f"{by_kubeadm * 1000 / small[0]:.0f} times faster", "at least 5",
         f"against {by_kubeadm * 1000:.0f} s ({KUBEADM_NODES} nodes measured)"),
        ("10,000 nodes against 1,000", f"{big[0] / small[0]:.1f} times the time", "at most 11", f"{big[0]:.1f} s against {small[0]:.2f} s"),
        ("peak memory at 10,000 nodes", f"{big[2]:.0f} MB", "under 256", ""),
        ("`slipway check` of a 10,000-node file", f"{check:.2f} s of one core", "under 1", ""),
        ("`slipway --version`, start to end", f"{start * 1000:.1f} ms", "under 10", ""),
        ("the program, dynamically linked, stripped", f"{size / 1000:.0f} kB", "under 1,500", ""),
    ]
    text = ["| what | measured | wanted | seconds |", "|---|---|---|---|"]
    text += [f"| {a} | **{b}** | {c} | {d} |" for a, b, c, d in rows]
    text += ["", "Files written include every certificate, key, kubeconfig, manifest, unit and configuration of every node (`render --secrets`): "
             "openssl and kubeadm wrote certificates only. "
             f"All of them wrote to {'memory (tmpfs)' if roomy else 'a disk'}.", ""]
    return text
