"""Hosts you have: a user who is not root, sudo with a password, another port, and a bastion that is the only way there, for ssh and for the API.

The machines are made with provider local and then used as any hosts. The operator is a network namespace whose only link leads to the bastion.
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import NEWEST, SHARED_DISK

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
TOOL = Path(os.environ.get("PROVIDER_TOOL") or ROOT / "build" / "tests" / "provider" / "provider_tool").resolve()
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-test-ssh-hosts"
NETWORK, WAY = "10.121.0", "10.121.1"  # the machines', and the link between operator and bastion
NS, LINK = "slw-ops", "slw-0b5e0b5e"  # a name of another cluster's, to those who look what theirs left behind
CONTROL, WORKER, PORT, BASTION = f"{NETWORK}.10", f"{NETWORK}.40", 2222, 2223
PASSWORD = "open sesame, 100% of $it"
MACHINES = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: harbour}}
spec:
  kubernetes: {NEWEST}
  provider: {{local: {{network: {NETWORK}.0/24}}}}
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 1}}
    - {{name: worker, count: 1}}
"""
CLUSTER = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: ships}}
spec:
  kubernetes: {NEWEST}
  provider:
    ssh: {{user: captain, key: key, port: {PORT}, bastion: "root@{WAY}.1:{BASTION}", sudoPasswordFile: password, options: ["ConnectTimeout=120"]}}
  pools:
    - {{name: control, roles: [control-plane, etcd], hosts: [{{name: control-1, address: {CONTROL}}}]}}
    - {{name: worker, hosts: [{{name: worker-1, address: {WORKER}}}]}}
{SHARED_DISK}"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


def run(*argv, check=True, **kw):
    r = subprocess.run([str(a) for a in argv], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)
    assert not check or r.returncode == 0, (argv, r.stdout, r.stderr)
    return r


def machines(verb):
    run(TOOL, WORK / "machines" / "cluster.yaml", WORK / "machines" / "state", verb, timeout=1800)


def on(address, command):
    """As root, from where the machines are reached directly."""
    state = WORK / "machines" / "state"
    return run("ssh", "-F", "none", "-i", state / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={state}/known_hosts", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256", f"root@{address}", command, timeout=600).stdout


def operator_argv(*args):
    """In the namespace, with an ~/.ssh of the test's own."""
    return ["ip", "netns", "exec", NS, "sh", "-c", f'mount --bind {WORK}/dot-ssh /root/.ssh && exec "$@"', "sh", str(SLIPWAY), *args]


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("SSH_AUTH_SOCK", "SLIPWAY_SUDO_PASSWORD")}
    return dict(env, **more)


def slipway(*args, env=None):
    return run(*operator_argv(*args), check=False, cwd=WORK, env=env or environment(), timeout=1800)


def answers_when(address, port):
    for _ in range(600):
        if run("bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}", check=False, timeout=60).returncode == 0:
            return
        time.sleep(0.5)
    raise AssertionError(f"{address}:{port} does not answer")


def make_user(address):
    """A person's login as it is on many hosts; sshd listens on another port too."""
    key = (WORK / "key.pub").read_text().strip()
    on(address, "useradd -m -s /bin/bash captain && install -d -m 700 -o captain -g captain /home/captain/.ssh && "
       f"echo '{key}' > /home/captain/.ssh/authorized_keys && chown captain: /home/captain/.ssh/authorized_keys && "
       f"echo 'captain:{PASSWORD}' | chpasswd && echo 'captain ALL=(ALL:ALL) ALL' > /etc/sudoers.d/captain && "
       f"printf 'Port 22\\nPort {PORT}\\n' > /etc/ssh/sshd_config.d/ports.conf && systemctl restart ssh")
    answers_when(address, PORT)


def make_operator():
    """One link, to the bastion's address and to nothing else."""
    run("ip", "netns", "add", NS)
    run("ip", "link", "add", LINK, "type", "veth", "peer", "name", "way", "netns", NS)
    run("ip", "address", "add", f"{WAY}.1/30", "dev", LINK)
    run("ip", "link", "set", LINK, "up")
    run("ip", "-n", NS, "address", "add", f"{WAY}.2/30", "dev", "way")
    run("ip", "-n", NS, "link", "set", "way", "up")
    run("ip", "-n", NS, "link", "set", "lo", "up")


def start_bastion():
    Path("/run/sshd").mkdir(exist_ok=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", WORK / "bastion_key")
    (WORK / "sshd.conf").write_text("\n".join([
        f"Port {BASTION}", f"ListenAddress {WAY}.1", f"HostKey {WORK}/bastion_key", "PidFile none", "UsePAM no", "PermitRootLogin yes", "StrictModes no", "UseDNS no",
        f"AuthorizedKeysFile {WORK}/key.pub", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitTTY no", "ForceCommand /bin/false", ""]))
    sshd = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", WORK / "sshd.conf", "-E", WORK / "sshd.log"], stdin=subprocess.DEVNULL)
    answers_when(f"{WAY}.1", BASTION)
    return sshd


def clean():
    run("ip", "netns", "delete", NS, check=False)
    run("ip", "link", "delete", LINK, check=False)
    if (WORK / "machines" / "cluster.yaml").exists():
        machines("down")
    shutil.rmtree(WORK, ignore_errors=True)


@pytest.fixture(scope="module")
def site():
    assert TOOL.exists(), f"{TOOL} is not built (PROVIDER_TOOL names another)"
    clean()  # what a run that was killed has left
    (WORK / "machines").mkdir(parents=True)
    (WORK / "dot-ssh").mkdir(mode=0o700)
    Path("/root/.ssh").mkdir(mode=0o700, exist_ok=True)  # to mount upon
    (WORK / "machines" / "cluster.yaml").write_text(MACHINES)
    (WORK / "cluster.yaml").write_text(CLUSTER)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", WORK / "key")
    sshd = None
    try:
        machines("up")
        for address in (CONTROL, WORKER):
            answers_when(address, 22)
            make_user(address)
        make_operator()
        sshd = start_bastion()
        yield WORK
    finally:
        if sshd:
            sshd.terminate()
            sshd.wait()
        clean()


def give_password(text=PASSWORD, mode=0o600):
    (WORK / "password").write_text(text + "\n")
    (WORK / "password").chmod(mode)


def test_the_file_must_be_ours_alone(site):
    give_password(mode=0o644)
    r = slipway("up")
    assert r.returncode == 3 and "sudoPasswordFile: others may read" in r.stderr and "chmod 600" in r.stderr


def test_a_wrong_password(site):
    """One sentence, nothing changed, and it is said nowhere."""
    give_password()
    r = slipway("up", env=environment(SLIPWAY_SUDO_PASSWORD="wrong"))
    assert r.returncode == 4, r.stderr
    assert re.search(r"sudo on 10\.121\.0\.\d+ rejected the password of captain", r.stderr), r.stderr
    assert "Permanently added" in r.stderr and "SHA256:" in r.stderr, "new host keys are shown"
    for address, port in ((f"{WAY}.1", BASTION), (CONTROL, PORT), (WORKER, PORT)):
        run("ssh-keygen", "-F", f"[{address}]:{port}", "-f", WORK / "dot-ssh" / "known_hosts")
    assert on(CONTROL, "ls /var/lib/slipway 2>/dev/null; true") == ""


def test_up(site):
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert "ships is up: 2 nodes" in r.stdout and "verify: done" in r.stderr
    assert "Permanently added" not in r.stderr, "they were recorded"
    assert "Accepted publickey" in (WORK / "sshd.log").read_text()


def test_up_again_changes_nothing(site):
    r = slipway("up")
    assert r.returncode == 0, r.stderr
    assert r.stderr.count("apply: unchanged") == 2 and "verify: unchanged" in r.stderr, r.stderr


def test_status_and_token_through_the_bastion(site):
    r = slipway("status", "-o", "json")
    answer = json.loads(r.stdout)
    assert r.returncode == 0 and answer["healthy"] and answer["api"]["ready"], r.stdout
    assert [n["ready"] for n in answer["nodes"]] == [True, True]
    r = slipway("token", "create", "--ttl", "5m")
    assert r.returncode == 0 and "kubeadm join" in r.stdout, r.stderr
    r = slipway("logs", "worker-1", "kubelet", "--lines", "3")
    assert r.returncode == 0 and len(r.stdout.splitlines()) >= 3, r.stderr
    r = slipway("kubeconfig")
    assert "server: " in r.stdout and f"ssh -N -L 6443:{CONTROL}:6443" in r.stderr and "--server https://127.0.0.1:6443" in r.stderr
    assert not list(Path("/tmp").glob("slipway-api-*")), "no socket is left behind"


def test_the_password_is_asked_for(site):
    """On the terminal, once, without echo; the file is not looked at."""
    give_password("not it")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(WORK)
        argv = operator_argv("status", "--ask-sudo-password")
        os.execvpe(argv[0], argv, environment())
    shown, asked = b"", 0
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        if select.select([fd], [], [], 1)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:
                break
            shown += data
        if shown.count(b"sudo password on the nodes: ") > asked:
            asked += 1
            time.sleep(0.2)
            os.write(fd, PASSWORD.encode() + b"\n")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    give_password()
    assert status == 0 and asked == 1 and b"ships is healthy" in shown, shown
    assert PASSWORD.encode() not in shown


def watch(*args):
    return subprocess.Popen(operator_argv("status", "--watch", *args), cwd=WORK, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def below(pid):
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if int((p / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append((int(p.name), (p / "cmdline").read_text().replace("\0", " ")))
        except (OSError, IndexError):
            pass
    return found


def test_watch(site):
    """An object a line; a tunnel that is cut comes back; SIGINT ends it with the last word's status."""
    proc = watch("-o", "json")
    first = json.loads(proc.stdout.readline())
    assert first["healthy"], first
    tunnels = [pid for pid, line in below(proc.pid) if "slipway-api-" in line]
    assert len(tunnels) == 1
    os.kill(tunnels[0], signal.SIGKILL)
    for _ in range(300):
        line = json.loads(proc.stdout.readline())
        again = [pid for pid, text in below(proc.pid) if "slipway-api-" in text and pid != tunnels[0]]
        if again and line["api"]["ready"]:
            break
    assert again and line["api"]["ready"], line
    proc.send_signal(signal.SIGINT)
    assert proc.wait(timeout=60) == (0 if line["healthy"] else 7)
    proc.stdout.close()


def test_watch_says_what_changes(site):
    """A node whose pods have no network any more says so by itself, long before one that is silent would be called NotReady."""
    proc = watch()
    assert "ships is healthy, 2 nodes" in proc.stdout.readline()
    on(WORKER, "mkdir /etc/cni/aside && mv /etc/cni/net.d/* /etc/cni/aside/")
    try:
        lines = []
        while not any("node worker-1: ready: no, was yes" in x for x in lines):
            lines.append(proc.stdout.readline())
            assert lines[-1], lines
    finally:
        on(WORKER, "cp /etc/cni/aside/* /etc/cni/net.d/ && rm -r /etc/cni/aside")  # containerd does not see what is only moved there
    while not any("node worker-1: ready: yes, was no" in x for x in lines):
        lines.append(proc.stdout.readline())
        assert lines[-1], lines
    proc.send_signal(signal.SIGINT)
    assert proc.wait(timeout=60) in (0, 7)
    proc.stdout.close()


def test_a_changed_host_key_stops_the_run(site):
    on(WORKER, "cd /etc/ssh && cp -a ssh_host_ed25519_key /tmp/key && cp -a ssh_host_ed25519_key.pub /tmp/key.pub && rm ssh_host_ed25519_key* && "
       "ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key && systemctl restart ssh")
    try:
        before = (WORK / "dot-ssh" / "known_hosts").read_text()
        r = slipway("up")
        assert r.returncode == 5 and "is not the one that was recorded" in r.stderr and "ssh-keygen" in r.stderr, r.stderr
        assert (WORK / "dot-ssh" / "known_hosts").read_text() == before
    finally:
        state = WORK / "machines" / "state"
        run("ssh", "-F", "none", "-i", state / "ssh" / "id_ed25519", "-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes", f"root@{WORKER}",
            "cd /etc/ssh && mv /tmp/key ssh_host_ed25519_key && mv /tmp/key.pub ssh_host_ed25519_key.pub && systemctl restart ssh")


def test_the_password_is_kept_nowhere(site):
    """Neither on the operator's disk (but in the file that was given) nor on the nodes."""
    for p in (WORK / ".slipway").rglob("*"):
        assert not p.is_file() or PASSWORD.encode() not in p.read_bytes(), p
    for address in (CONTROL, WORKER):
        assert on(address, f"grep -rlsF '{PASSWORD}' /var/lib/slipway /var/log/journal /tmp; true") == ""


# ---- the same hosts, as if Terraform had made them ----

def give_outputs(nodes=("control-1", "worker-1"), **more):
    ips = {"control-1": CONTROL, "worker-1": WORKER}
    rows = {n: {"id": n, "ip": ips[n], "address": ips[n], "zone": None} for n in nodes} | more
    (WORK / "infra").mkdir(exist_ok=True)
    (WORK / "infra" / "outputs.json").write_text(json.dumps({"slipway": {"value": {"nodes": rows, "endpoint": None, "bastion": f"root@{WAY}.1:{BASTION}"}}}))


def terraform_file(labels=""):
    text = re.sub(r"    ssh: \{(.*?), bastion: \"[^\"]*\"(.*)\}\n", r'    terraform: {platform: hetzner, dir: infra, variables: {image: debian-12, size: cx32, zones: fsn1}, \1\2}\n', CLUSTER)
    text = re.sub(r"hosts: \[\{.*?\}\]", "count: 1" + labels, text)
    assert "bastion" not in text and text.count("count: 1") == 2
    (WORK / "terraform.yaml").write_text(text)


def test_terraform_finds_the_same_hosts(site):
    """The outputs say where the nodes are and which bastion leads there: nothing is left to do, and nobody else is asked."""
    terraform_file()
    give_outputs(stranger={"id": "x", "ip": "192.0.2.66", "address": "192.0.2.66", "zone": None})
    r = slipway("plan", "-f", "terraform.yaml", "--exit-code")
    assert r.returncode == 0, r.stdout + r.stderr
    assert "192.0.2.66" not in r.stdout + r.stderr and "stranger" not in r.stdout + r.stderr
    exported = slipway("export", "terraform", "-f", "terraform.yaml")
    assert exported.returncode == 0 and (WORK / "infra" / "userdata" / "worker-1").exists(), exported.stderr


def test_terraform_changes_them(site):
    terraform_file(", labels: {rack: r1}")
    assert slipway("plan", "-f", "terraform.yaml", "--exit-code").returncode == 9
    r = slipway("up", "-f", "terraform.yaml")
    assert r.returncode == 0 and "ships is up: 2 nodes" in r.stdout, r.stderr
    assert slipway("plan", "-f", "terraform.yaml", "--exit-code").returncode == 0


def test_terraform_has_not_made_a_machine(site):
    """All of them are named, nothing is changed, and status still knows the others."""
    give_outputs(nodes=["control-1"])
    for verb in ("plan", "up"):
        r = slipway(verb, "-f", "terraform.yaml")
        assert r.returncode == 4 and 'node worker-1 is not in the Terraform output "slipway"' in r.stderr and "tofu apply" in r.stderr, r.stderr
    r = slipway("status", "-f", "terraform.yaml", "-o", "json")
    machines = {n["name"]: n["machine"] for n in json.loads(r.stdout)["nodes"]}
    assert r.returncode == 7 and machines == {"control-1": "running", "worker-1": "absent"}, r.stdout
    r = slipway("ssh", "-f", "terraform.yaml", "worker-1", "--", "true")
    assert r.returncode == 5 and "tofu apply" in r.stderr, r.stderr


def test_terraform_swaps_two_machines(site):
    """A host is known by its machine-id and its agent by the node's name, whatever the outputs say."""
    swapped = {n: {"id": n, "ip": ip, "address": ip, "zone": None} for n, ip in (("control-1", WORKER), ("worker-1", CONTROL))}
    give_outputs(nodes=[], **swapped)
    r = slipway("plan", "-f", "terraform.yaml")
    assert r.returncode == 8 and f"control-1: connect: the host at {WORKER} is node worker-1 of this cluster, by its own record" in r.stderr, r.stdout + r.stderr
    give_outputs()
    assert slipway("plan", "-f", "terraform.yaml", "--exit-code").returncode == 0


def test_terraform_with_public_addresses(site):
    """ssh goes to other addresses than the cluster uses, which cannot be reached from here: the API is reached through ssh too."""
    public = {CONTROL: f"{NETWORK}.110", WORKER: f"{NETWORK}.140"}
    for ip, address in public.items():
        on(ip, f"ip address add {address}/32 dev $(ip -o -4 address show to {ip} | awk '{{print $2}}')")
        answers_when(address, PORT)
    rows = {n: {"id": n, "ip": ip, "address": public[ip], "zone": None} for n, ip in (("control-1", CONTROL), ("worker-1", WORKER))}
    (WORK / "infra" / "outputs.json").write_text(json.dumps({"slipway": {"value": {"nodes": rows, "endpoint": None, "bastion": None}}}))
    text = (WORK / "terraform.yaml").read_text()
    assert '"ConnectTimeout=120"' in text
    (WORK / "terraform.yaml").write_text(text.replace('"ConnectTimeout=120"', f'"ConnectTimeout=120", "UserKnownHostsFile={WORK}/known_public"'))
    for ip in public:
        run("ip", "route", "add", "unreachable", f"{ip}/32")
    try:
        r = run(SLIPWAY, "status", "-f", "terraform.yaml", "-o", "json", check=False, cwd=WORK, env=environment(), timeout=1800)
        answer = json.loads(r.stdout)
        assert r.returncode == 0 and answer["healthy"] and answer["api"]["ready"], r.stdout + r.stderr
    finally:
        for ip in public:
            run("ip", "route", "delete", "unreachable", f"{ip}/32")
