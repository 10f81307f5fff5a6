"""Configuration of every program, judged by the program itself, as far as it goes without a cluster."""
import base64
import configparser
import ipaddress
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import tomllib

import yaml
from upstream import NEWEST

from conftest import find, judge as run_judge, nodes, once

MANIFESTS = "etc/kubernetes/manifests/*.yaml"
STRICT = "strict decoding failed"


def moved(text, root):
    """Paths of the node below `root`."""
    return re.sub(r"(?<![\w/.-])/(etc/(?:kubernetes|etcd|slipway|containerd|crio|kube-flannel)|var/lib/(?:kubelet|kube-proxy))\b", rf"{root}/\1", text)


def static_pod(path):
    return yaml.safe_load(path.read_text())["spec"]["containers"][0]["command"]


def until(cmd, wanted, refused, seconds=600):
    """Runs a program until it says what is wanted; fails if it ends or says what is refused first."""
    p = subprocess.Popen([str(c) for c in cmd], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    timer, said = threading.Timer(seconds, p.kill), []
    timer.start()
    try:
        for line in p.stdout:
            said.append(line)
            assert not re.search(refused, line), "".join(said[-40:])
            if re.search(wanted, line):
                return
    finally:
        timer.cancel()
        p.kill()
        p.wait()
    raise AssertionError(f"it never said {wanted}:\n" + "".join(said[-40:]))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- syntax of everything ----

def test_syntax(case, rendered):
    for node, path in find(rendered(case), "**/*"):
        text = path.read_text()
        if path.suffix == ".toml" or path.parent.name in ("crio.conf.d", "registries.conf.d") or path.name == "registries.conf":
            tomllib.loads(text)
        elif path.suffix in (".json", ".conflist") and text.lstrip()[:1] in "{[":
            json.loads(text)
        elif path.suffix in (".yaml", ".yml") or re.match(r"apiVersion:", text):
            for document in yaml.safe_load_all(text):
                assert document, path
        assert "\t\n" not in text and "{{" not in text.replace("{{x}}", "").replace("{{e}}", ""), f"{path}: a template's leftover"
        assert text == "" or text.endswith("\n") or "PASSWORD" in text.upper() or path.parent.name != "manifests", path


# ---- balancers ----

def test_haproxy(case, rendered, judge, programs, tmp_path):
    for node, path in find(rendered(case), "etc/slipway/haproxy.cfg"):
        conf = tmp_path / f"{node.name}.cfg"
        conf.write_text(moved(path.read_text(), node / "root"))
        said = judge(programs.system("haproxy"), "-c", "-f", conf)
        assert "WARNING" not in said and "ALERT" not in said, said


def test_keepalived(case, rendered, judge, programs, tmp_path):
    """It looks at interfaces and scripts: they are made, in a network of their own."""
    for node, path in find(rendered(case), "etc/slipway/keepalived.conf"):
        conf = tmp_path / f"{node.name}.conf"
        text = path.read_text()
        conf.write_text(moved(text, node / "root"))
        conf.chmod(0o600)
        interface = re.search(r"(?m)^\s*interface \"?([\w.-]+)", text)[1]
        script = f"ip link add {interface} type veth peer name other && ip link set {interface} up && exec \"$@\""
        said = judge("unshare", "-n", "sh", "-c", script, "sh", programs.system("keepalived"), "-t", "-f", conf)
        assert not re.search(r"(?i)warning|unknown|error|invalid|unable|ignor", said), said
        assert 1 <= int(re.search(r"virtual_router_id (\d+)", text)[1]) <= 255


# ---- runtimes ----

def test_containerd(case, rendered, judge, programs):
    for node, path in find(rendered(case), "etc/containerd/config.toml"):
        if not once("containerd", path.read_text()):
            continue
        said = judge(programs.upstream("containerd"), "-c", path, "config", "dump")
        remarks = [line for line in said.splitlines() if line.startswith("time=") and "migrated from version" not in line]  # an older version is one that more releases read
        assert not remarks, "\n".join(remarks)
        dumped = tomllib.loads(said[re.search(r"(?m)^version", said).start():])
        wanted = tomllib.loads(path.read_text())
        wanted.pop("version")
        contained(wanted, dumped, "")


def contained(wanted, got, where):
    for key, value in wanted.items():
        assert key in got, f"containerd does not know {where}{key}"
        if isinstance(value, dict):
            contained(value, got[key], f"{where}{key}.")
        else:
            assert got[key] == value, f"{where}{key}"


def test_registry_hosts(case, rendered, programs):
    """hosts.toml, as containerd's own documentation has it: known keys, headers for passwords, files that are there."""
    known = {"capabilities", "ca", "client", "skip_verify", "header", "override_path", "dial_timeout"}
    for node, path in find(rendered(case), "etc/containerd/certs.d/*/hosts.toml"):
        config = tomllib.loads(path.read_text())
        assert set(config) <= {"server", "host"} and config["host"], path
        for url, host in config["host"].items():
            assert re.match(r"https?://[^/\s]+", url) and set(host) <= known, (url, host)
            if "ca" in host:
                assert "BEGIN CERTIFICATE" in (node / "root" / host["ca"].lstrip("/")).read_text()
            if "Authorization" in host.get("header", {}):
                value = host["header"]["Authorization"]
                assert ":" in base64.b64decode((value[0] if isinstance(value, list) else value).removeprefix("Basic ")).decode()


# ---- etcd ----

def test_etcd(case, rendered, programs, tmp_path):
    """It reads its configuration and its certificates, then finds that these are not its addresses."""
    for node, path in find(rendered(case), "etc/etcd/etcd.yaml"):
        conf = yaml.safe_load(moved(path.read_text(), node / "root"))
        conf["data-dir"] = str(tmp_path / node.name)
        (tmp_path / f"{node.name}.yaml").write_text(yaml.safe_dump(conf))
        said = run_judge(programs.upstream("etcd"), "--config-file", tmp_path / f"{node.name}.yaml", status=None)
        assert re.search(r"cannot assign requested address|address family not supported", said), said[-3000:]
        assert not re.search(r"unrecognized|unknown field|not.* recognized|deprecat", said, re.I), said[-3000:]


# ---- the control plane ----

def test_flags(case, rendered, judge, programs):
    """Every flag of every static pod is one the program knows, with a value it can read."""
    for node, path in find(rendered(case), MANIFESTS):
        command = static_pod(path)
        names = [a.split("=")[0] for a in command[1:]]
        assert len(names) == len(set(names)), f"{path}: a flag twice"
        own = [a for a in command if a.startswith("--advertise-address=")]  # all that differs between the nodes of a case
        assert all(ipaddress.ip_address(a.split("=")[1]) for a in own), own
        if command[0].startswith("kube-") and once("flags", *(a for a in command if a not in own)):
            said = judge(programs.upstream(command[0]), *command[1:], "--version")
            assert "has been deprecated" not in said, said


def test_apiserver_starts(case, rendered, programs):
    """It checks all its options and reads all its files, then asks etcd, which is not there."""
    node, path = next((n, p) for n, p in find(rendered(case), MANIFESTS) if p.name == "kube-apiserver.yaml")
    flags = [moved(f, node / "root") for f in static_pod(path)[1:] if not f.startswith(("--etcd-servers=", "--secure-port=", "--bind-address=", "--advertise-address=", "--audit-log-path="))]
    loopback = "::1" if any(re.match(r"--service-cluster-ip-range=[^.]*:", f) for f in flags) else "127.0.0.1"
    until([programs.upstream("kube-apiserver"), *flags, "--etcd-servers=https://127.0.0.1:1", f"--bind-address={loopback}", f"--advertise-address={loopback}", f"--secure-port={free_port()}"],
          wanted=r"dial tcp 127\.0\.0\.1:1|connect: connection refused", refused=r"Error: |\"command failed\"|unknown flag")


def test_controllers_start(case, rendered, programs):
    """They read their kubeconfigs and ask the API, which is not there."""
    for name in ("kube-controller-manager", "kube-scheduler"):
        node, path = next((n, p) for n, p in find(rendered(case), MANIFESTS) if p.name == f"{name}.yaml")
        flags = [moved(f, node / "root") for f in static_pod(path)[1:] if not f.startswith("--bind-address=")]
        for conf in ("controller-manager", "scheduler"):
            assert (node / "root/etc/kubernetes" / f"{conf}.conf").exists()
        until([programs.upstream(name), *flags, "--bind-address=127.0.0.1", "--secure-port=0", "--master=https://127.0.0.1:1"],
              wanted=r"connection refused|Starting Kubernetes Scheduler", refused=r"unknown flag|invalid argument|no such file")


# ---- the node ----

def test_kubelet(case, rendered, programs, tmp_path):
    """It reads its configuration strictly, checks it, and then misses the kubeconfig that is taken from it."""
    for node, path in find(rendered(case), "var/lib/kubelet/config.yaml"):
        args = environment(node / "root/var/lib/kubelet/kubeadm-flags.env").get("KUBELET_KUBEADM_ARGS", "")
        if not once("kubelet", path.read_text(), args):
            continue
        conf = yaml.safe_load(moved(path.read_text(), node / "root"))
        conf["failCgroupV1"] = False  # whatever this computer has
        (tmp_path / node.name).write_text(yaml.safe_dump(conf))
        said = run_judge("sh", "-c", f'exec "$0" {moved(args, node / "root")} "$@"', programs.upstream("kubelet"), f"--config={tmp_path / node.name}", "--kubeconfig=/nonexistent", status=1)
        assert "kubeconfig: stat /nonexistent" in said and STRICT not in said and "deprecated" not in said, said[-3000:]


def environment(path):
    """An EnvironmentFile, which quote_env writes so that sh reads it as systemd does."""
    if not path.exists():
        return {}
    out = subprocess.run(["sh", "-c", "set -a; . \"$0\"; env -0", path], capture_output=True, env={}, check=True).stdout
    return dict(e.decode().split("=", 1) for e in out.split(b"\0") if b"=" in e)


def test_kube_proxy(case, rendered, judge, programs, tmp_path):
    for node, path in find(rendered(case), "var/lib/kube-proxy/config.conf"):
        if not once("kube-proxy", path.read_text()):
            continue
        said = judge(programs.upstream("kube-proxy"), f"--config={path}", f"--write-config-to={tmp_path / node.name}")
        assert STRICT not in said and (tmp_path / node.name).exists(), said
        wanted, got = yaml.safe_load(path.read_text()), yaml.safe_load((tmp_path / node.name).read_text())
        assert got["mode"] == wanted["mode"] and got["clusterCIDR"] == wanted["clusterCIDR"]


def test_flags_of_services(case, rendered, judge, programs):
    """kube-proxy and flanneld know the flags of their units and environment files."""
    for name, path in (("kube-proxy", "var/lib/kube-proxy/flags.env"), ("flanneld", "etc/kube-flannel/flanneld.env")):
        for node, env in find(rendered(case), path):
            line = re.search(rf"(?m)^ExecStart=\S*/{name} (.*)$", (node / f"root/etc/systemd/system/{name}.service").read_text())[1]
            if once(name, line, env.read_text()):
                judge("sh", "-c", f"set -a; . {env}; exec \"$0\" {line} --version", programs.upstream(name))


def test_package_managers(case, rendered, judge, programs):
    """apt reads its proxy; the others' files are read by sh's rules or as INI."""
    for node, path in find(rendered(case), "etc/apt/apt.conf.d/*"):
        assert 'Acquire::http::Proxy "http' in judge(programs.system("apt-config"), "-c", path, "dump")
    for node, path in find(rendered(case), "etc/sysconfig/*"):
        judge("sh", "-eu", "-c", ". \"$0\"", path)
    for node, path in find(rendered(case), "etc/dnf/dnf.conf"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(path)
        assert parser["main"]["proxy"].startswith("http")


def test_kubeconfigs(case, rendered, judge, programs):
    """kubectl reads them, all of a case at once, and has what is in each."""
    paths = [p for n in nodes(rendered(case)) for p in [*(n / "root/etc/kubernetes").glob("*.conf"), *(n / "root/var/lib/kube-proxy").glob("kubeconfig*")]]
    text = judge(programs.upstream("kubectl"), "config", "view", "--raw", "-o", "json", env=dict(os.environ, KUBECONFIG=":".join(map(str, paths))))
    read = json.loads(text)
    for path in paths:
        config = yaml.safe_load(path.read_text())
        assert config["current-context"] and config["clusters"][0]["cluster"]["server"].startswith("https://"), path
        for kind in ("clusters", "users", "contexts"):
            assert {e["name"] for e in config[kind]} <= {e["name"] for e in read[kind]}, path


# ---- certificates ----

def test_kubeadm_reads_the_certificates(case, rendered, programs, tmp_path):
    """`kubeadm certs check-expiration` on the tree, as its own root."""
    node, _ = next((n, p) for n, p in find(rendered(case), MANIFESTS) if p.name == "kube-apiserver.yaml")
    root = tmp_path / "root"
    shutil.copytree(node / "root" / "etc", root / "etc", symlinks=True)
    config = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": f"v{NEWEST}"}
    if not (root / "etc/kubernetes/pki/etcd/server.key").exists():  # what kubeadm-config in the cluster would say
        files = {f"{k}File": f"/etc/kubernetes/pki/{v}" for k, v in (("ca", "etcd/ca.crt"), ("cert", "apiserver-etcd-client.crt"), ("key", "apiserver-etcd-client.key"))}
        config["etcd"] = {"external": {"endpoints": ["https://192.0.2.31:2379"], **files}}
    (root / "kubeadm.yaml").write_text(yaml.safe_dump(config))
    said = run_judge(programs.upstream("kubeadm"), "--rootfs", root, "certs", "check-expiration", "--config", "/kubeadm.yaml")
    for name in ("admin.conf", "apiserver", "apiserver-kubelet-client", "controller-manager.conf", "front-proxy-client", "scheduler.conf", "ca", "front-proxy-ca"):
        line = next(line for line in said.splitlines() if line.split()[:1] == [name])
        assert "MISSING" not in line and "invalid" not in line.lower(), said


def test_openssl_verifies(case, rendered, judge):
    authority = {"etcd/server": "etcd/ca", "etcd/peer": "etcd/ca", "etcd/healthcheck-client": "etcd/ca", "apiserver-etcd-client": "etcd/ca", "front-proxy-client": "front-proxy-ca",
                 "apiserver": "ca", "apiserver-kubelet-client": "ca"}
    for node in nodes(rendered(case)):
        pki = node / "root/etc/kubernetes/pki"
        there = [leaf for leaf in authority if (pki / f"{leaf}.crt").exists()]
        assert there or not (pki / "etcd").exists()
        for ca in {authority[leaf] for leaf in there}:
            leaves = [pki / f"{leaf}.crt" for leaf in there if authority[leaf] == ca]
            judge("openssl", "verify", "-x509_strict", "-CAfile", pki / f"{ca}.crt", *(w for leaf in leaves for w in ("-untrusted", leaf)), *leaves)
        for leaf in there:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(pki / f"{leaf}.crt", pki / f"{leaf}.key")  # OpenSSL's word that they belong together
