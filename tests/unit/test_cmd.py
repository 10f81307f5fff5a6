"""The command line as a person and a shell meet it."""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from upstream import NEWEST, PREVIOUS

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()


def slipway(*args, cwd=ROOT, **kw):
    return subprocess.run([SLIPWAY, *args], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)


def test_version():
    assert slipway("--version").stdout == slipway("version").stdout == slipway("-V").stdout
    assert slipway("version", "-o", "json").stdout.startswith('{"version": "')


def test_no_core_dump(tmp_path):
    """Its memory holds keys."""
    p = subprocess.Popen(["prlimit", "--core=unlimited:", SLIPWAY, "check", "-f", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    def closed():  # and it is slipway by now: prlimit may have begun with no limit but 0
        return os.readlink(f"/proc/{p.pid}/exe") == str(SLIPWAY) and re.search(r"^Max core file size +0 ", open(f"/proc/{p.pid}/limits").read(), re.M)

    while not closed():
        assert time.monotonic() < until
        time.sleep(0.05)
    p.send_signal(signal.SIGABRT)
    assert os.waitstatus_to_exitcode(status := os.waitpid(p.pid, 0)[1]) == -signal.SIGABRT and not os.WCOREDUMP(status)
    assert not list(tmp_path.iterdir())


def test_no_verb_shows_what_there_is():
    r = slipway()
    assert r.returncode == 2 and r.stdout == "" and "verbs:" in r.stderr


def test_every_verb_explains_itself():
    verbs = [line.split()[0] for line in slipway("--help").stdout.split("verbs:\n")[1].split("\n\n")[0].splitlines()]
    assert {"init", "check", "render", "schema", "completion"} <= set(verbs)
    for verb in verbs:
        r = slipway(verb, "--help")
        assert r.returncode == 0 and f"usage: slipway {verb}" in r.stdout and r.stderr == ""
        assert slipway("help", verb).stdout == r.stdout
        assert max(map(len, r.stdout.splitlines())) <= 110


@pytest.mark.parametrize("args, sentence, hint", [
    (["chekc"], "slipway: unknown verb 'chekc'", "hint: did you mean 'slipway check'?"),
    (["check", "--fiel", "x"], "slipway: unknown option --fiel", "hint: did you mean --file?"),
    (["check", "-f"], "slipway: --file needs a value: FILE", None),
    (["check", "-o", "yaml"], "slipway: --output: unknown value 'yaml'", "hint: choose one of: text json"),
    (["check", "--secrets"], "slipway: 'slipway check' has no option --secrets", "hint: 'slipway help check' lists its options"),
    (["check", "extra"], "slipway: 'slipway check' does not take the argument 'extra'", "hint: see 'slipway help check'"),
    (["completion"], "slipway: 'slipway completion' needs an argument: bash|zsh|fish", "hint: see 'slipway help completion'"),
    (["completion", "tcsh"], "slipway: 'slipway completion' does not take the argument 'tcsh'", "hint: choose one of: bash zsh fish"),
    (["help", "nothing"], "slipway: unknown verb 'nothing'", "hint: 'slipway --help' lists the verbs"),
    (["check", "-hx"], "slipway: unknown option -hx", "hint: 'slipway help check' lists its options"),
    (["check", "--foo"], "slipway: unknown option --foo", "hint: 'slipway help check' lists its options"),
    (["--nothing-like-it"], "slipway: unknown option --nothing-like-it", "hint: 'slipway help VERB' lists the options of a verb"),
    (["etcd", "member"], "slipway: 'slipway etcd' does not take the argument 'member'", "hint: did you mean 'slipway etcd members'?"),
    (["export", "ansible"], "slipway: 'slipway export' does not take the argument 'ansible'", "hint: choose one of: terraform"),
    (["--help=1"], "slipway: --help takes no value", None),
])
def test_usage_errors(args, sentence, hint):
    r = slipway(*args)
    assert r.returncode == 2 and r.stdout == ""
    assert r.stderr.splitlines() == [s for s in (sentence, hint) if s]


def test_no_file_here(tmp_path):
    r = slipway("check", cwd=tmp_path)
    assert r.returncode == 3 and r.stderr.splitlines() == ["slipway: there is no cluster.yaml here", "hint: name the file with -f, or write one with: slipway init"]


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    r = slipway("check", "-f", "\x1b[31mred", cwd=tmp_path)
    assert r.returncode == 3 and "\x1b" not in r.stderr


def test_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        r = subprocess.run([SLIPWAY, "schema"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert r.returncode == 1 and r.stderr == "slipway: cannot write the output: No space left on device\n"


def test_a_reader_that_leaves_is_not_a_crash():
    r = subprocess.run(f"'{SLIPWAY}' schema | head -c 10", shell=True, capture_output=True, text=True)
    assert r.returncode == 0 and r.stderr == ""


def complete_bash(line):
    words = line.split(" ")
    script = f"""source <("{SLIPWAY}" completion bash); COMP_WORDS=({' '.join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}; _slipway; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()


def test_bash_completion():
    assert complete_bash("slipway ren") == ["render"]
    assert set(complete_bash("slipway render --f")) == {"--file", "--format", "--facts"}
    assert complete_bash("slipway render --format ig") == ["ignition"]
    assert complete_bash("slipway completion f") == ["fish"]
    assert complete_bash("slipway -o json check --s") == ["--state"]
    assert complete_bash("slipway check -f examples/d") == ["examples/demo.yaml"]


@pytest.mark.parametrize("shell, check", [("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_completions_parse(shell, check, tmp_path):
    path = tmp_path / "completion"
    path.write_text(slipway("completion", shell).stdout)
    r = subprocess.run([shell, *check, path], capture_output=True, text=True)
    assert r.returncode == 0 and r.stderr == "", r.stderr


def test_fish_completion():
    r = subprocess.run(["fish", "-c", f"'{SLIPWAY}' completion fish | source; complete -C 'slipway render --format '"], capture_output=True, text=True, cwd=ROOT)
    assert [line.split("\t")[0] for line in r.stdout.splitlines()] == ["cloud-init", "files", "ignition", "user-data"]


def test_man_page():
    page = slipway("help", "--man").stdout
    r = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-"], input=page, capture_output=True, text=True, env=dict(os.environ, MANWIDTH="100"))
    assert r.returncode == 0 and r.stderr == ""
    text = re.sub(".\x08", "", r.stdout)
    assert "EXIT STATUS" in text and "render" in text and "‐f" not in text


def test_reports_are_listed(tmp_path):
    (tmp_path / "cluster.yaml").write_text((ROOT / "examples" / "demo.yaml").read_text())
    name = slipway("check", "-o", "json", cwd=tmp_path) and re.search(r"name: *(\w+)", (tmp_path / "cluster.yaml").read_text()).group(1)
    reports = tmp_path / ".slipway" / name / "reports"
    r = slipway("report", cwd=tmp_path)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "there are no reports yet: every up, upgrade, scale or other change writes one\n")
    assert json.loads(slipway("report", "-o", "json", cwd=tmp_path).stdout) == []
    reports.mkdir(parents=True)
    for file in ("0002-20261117T070000Z-etcd_restore-failed.html", "0001-20261117T064012Z-up-done.html", "0003-\x1b[31m.html"):
        (reports / file).touch()
    assert slipway("report", cwd=tmp_path).stdout.splitlines() == ["   1  2026-11-17 06:40:12 UTC  up                   done",
                                                                   "   2  2026-11-17 07:00:00 UTC  etcd restore         failed"]
    assert [r["verb"] for r in json.loads(slipway("report", "-o", "json", cwd=tmp_path).stdout)] == ["up", "etcd restore"]
    assert slipway("report", "2", cwd=tmp_path).stdout == f".slipway/{name}/reports/0002-20261117T070000Z-etcd_restore-failed.html\n"
    r = slipway("report", "7", cwd=tmp_path)
    assert r.returncode == 2 and r.stderr.splitlines() == [f"slipway: cluster {name} has no report '7'", "hint: there are reports 1 to 2: 'slipway report' lists them"]


def test_programs_come_from_the_catalogue():
    listed = json.loads(slipway("programs").stdout)
    rows = [(r["name"], r["version"]) for r in listed["programs"]]
    assert {"kubernetes", "etcd", "containerd", "runc", "crictl", "cni", "flannel", "flannel-cni", "coredns", "ignition", "kube-bench", "kubelogin", "dex",
            "helm", "metrics-server", "local-path-provisioner", "kube-state-metrics", "registry", "node-problem-detector", "kube-vip",
            "kube-vip-cloud-provider", "calico", "openstack-cloud-controller-manager", "cloud-controller-manager", "cinder-csi-plugin", "csi-provisioner", "csi-attacher", "csi-resizer", "node-exporter", "prometheus", "multus", "traefik", "e2e", "agnhost",
            "opentofu", "terraform-provider-openstack"} == {n for n, _ in rows}
    assert [v for n, v in rows if n == "kubernetes"] == [listed["kubernetes"]["newest"], listed["kubernetes"]["previous"]]
    assert listed["images"]["kube-apiserver"].endswith(f":v{NEWEST}")
    assert all(v for _, v in rows) and "programs" not in slipway("--help").stdout


UPGRADED = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: x}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
  provider: {ssh: {user: root}}
  pools: [{name: c, roles: [control-plane, etcd, worker], hosts: [{name: c1, address: 192.0.2.1}]}]
"""


def test_one_node_is_one(tmp_path):
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    assert f"x: Kubernetes {NEWEST}, 1 node (1 control-plane, 1 etcd, 1 worker): no errors" in slipway("check", cwd=tmp_path).stdout
    (tmp_path / "cluster.yaml").write_text(UPGRADED.replace("{name: c1", "{name: c2, address: 192.0.2.2}, {name: c3, address: 192.0.2.3}, {name: c1"))
    assert ", 3 nodes (3 control-plane" in slipway("check", cwd=tmp_path).stdout


@pytest.mark.parametrize("by, status, sentence, hint", [
    ("etcd restore", 8, "a restore of etcd has not finished", "slipway etcd restore /nowhere/other.db"),
    (None, 8, "a restore of etcd has not finished", "slipway etcd restore /nowhere/other.db"),
    ("damaged", 8, "a restore of etcd has not finished", "slipway etcd restore SNAPSHOT"),
    ("rollback", 2, "/nowhere/before.db", None),  # its own: it goes on, and here finds no snapshot
])
def test_rollback_leaves_a_restore_alone(tmp_path, by, status, sentence, hint):
    """An `etcd restore` that was interrupted ends as it was begun: rollback would put another snapshot back."""
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    assert slipway("render", cwd=tmp_path).returncode == 0
    state = tmp_path / ".slipway" / "x"
    (state / "previous.json").write_text(f'{{"version": "{PREVIOUS}", "snapshot": "/nowhere/before.db", "groups": {{}}}}')
    marker = {"snapshot": "/nowhere/other.db", "sha256": "00", "token": "t", "restored": False} | ({"by": by} if by else {})
    (state / "etcd-restore.json").write_text("{" if by == "damaged" else json.dumps(marker))
    r = slipway("rollback", "--yes", "--force", cwd=tmp_path)
    assert r.returncode == status and sentence in r.stderr and (not hint or hint in r.stderr), r.stderr
    assert (tmp_path / "cluster.yaml").read_text() == UPGRADED


@pytest.mark.parametrize("verb", [["certs", "renew"], ["certs", "rotate-ca"], ["encryption", "rotate"]])
def test_no_certificates_of_a_cluster_that_is_not_there(tmp_path, verb):
    """Renewing and rotating work like up, but never create the cluster; nothing of a rotation is begun."""
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    assert slipway("render", cwd=tmp_path).returncode == 0  # its certificates are there
    r = slipway(*verb, "--yes", cwd=tmp_path)
    assert r.returncode == 8 and "cluster x does not exist yet" in r.stderr and "'slipway up' creates it" in r.stderr, r.stderr
    state = tmp_path / ".slipway" / "x"
    assert not (state / "rotation.json").exists() and not (state / "reports").exists()


@pytest.mark.parametrize("both", [["--keep-volumes", "--delete-volumes"], ["--delete-volumes", "--no-cleanup"]])
def test_volumes_have_one_fate(tmp_path, both):
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    r = slipway("down", "--yes", *both, cwd=tmp_path)
    assert r.returncode == 2 and "exclude each other" in r.stderr, r.stderr


@pytest.fixture
def refusing(tmp_path):
    """The environment with an ssh and a proxy that reach nobody."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text("#!/bin/sh\necho 'ssh: connect to host 192.0.2.1 port 22: Connection refused' >&2\nexit 255\n")
    ssh.chmod(0o755)
    return dict(os.environ, PATH=f"{ssh.parent}:{os.environ['PATH']}", https_proxy="http://127.0.0.1:1")


@pytest.mark.parametrize("record, asked", [
    (None, False), ('{"version": 1, "existed": false, "nodes": []}', False), ('{"version": 1, "existed": true, "nodes": []}', True),
    ('{"version": 1, "existed": false, "adopted": true, "nodes": []}', True),
    ('{"version": 1, "existed": false, "nodes": [{"name": "c1", "address": "192.0.2.1", "roles": 3}]}', True),
])
def test_status_of_a_cluster_that_is_not_there(tmp_path, refusing, record, asked):
    """`render` makes certificates, and no cluster: an API at its address would be another's."""
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    assert slipway("render", cwd=tmp_path).returncode == 0
    if record:
        (tmp_path / ".slipway" / "x" / "record.json").write_text(record)
    r = slipway("status", cwd=tmp_path, env=refusing)
    assert r.returncode == 7 and ("the API is not ready: the cluster does not exist yet" in r.stdout) != asked, r.stdout


@pytest.mark.parametrize("verb", [["certs", "rotate-ca"], ["encryption", "rotate"]])
def test_no_rotation_without_a_node_that_answers(tmp_path, refusing, verb):
    """Nothing of it is left that the next `up` would continue."""
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    assert slipway("render", cwd=tmp_path).returncode == 0
    state = tmp_path / ".slipway" / "x"
    (state / "record.json").write_text('{"version": 1, "existed": true, "nodes": []}')
    before = {p: p.read_bytes() for p in state.rglob("*") if p.is_file()}
    r = slipway(*verb, "--yes", cwd=tmp_path, env=refusing)
    assert r.returncode == 5 and "refused the connection" in r.stderr, r.stderr
    assert {p: p.read_bytes() for p in state.rglob("*") if p.is_file()} == before


def test_a_saved_plan_is_read_before_anything_is_asked(tmp_path):
    (tmp_path / "cluster.yaml").write_text(UPGRADED)
    for args, status, sentence in (("nofile", 1, "cannot read nofile"), ("cluster.yaml", 2, "cluster.yaml is not a plan")):
        r = slipway("up", "--plan", args, cwd=tmp_path)
        assert r.returncode == status and sentence in r.stderr and "connect" not in r.stderr, r.stderr
    assert not (tmp_path / ".slipway" / "x" / "reports").exists()


def test_force_is_explained_for_each_verb():
    texts = {verb: slipway("help", verb).stdout.split("--force\n")[1].split("  -")[0] for verb in ("init", "upgrade", "rollback", "down", "reset", "adopt", "etcd")}
    assert "otherwise refused" not in str(texts) and "APIs" in texts["upgrade"] and "overwrite" in texts["init"] and texts["down"] == texts["reset"]


def test_the_man_page_has_every_exit_status():
    page = slipway("help", "--man").stdout.split(".SH EXIT STATUS")[1]
    assert re.findall(r"(?m)^\.B (\d+)$", page) == [str(n) for n in range(10)]


def test_the_status_survives_a_closed_pipe():
    r = subprocess.run(["bash", "-c", f"set -o pipefail; '{SLIPWAY}' schema --docs | head -c 10"], capture_output=True, text=True)
    assert r.returncode == 0 and r.stderr == "", r


@pytest.mark.parametrize("verb", ["adopt", "certs", "down", "encryption", "etcd", "logs", "plan", "reset", "status", "up", "verify"])
def test_verbs_that_use_sudo_on_nodes_can_ask_for_its_password(verb):
    """The hint of a refused sudo names --ask-sudo-password."""
    assert "--ask-sudo-password" in slipway("help", verb).stdout


def test_nobody_to_log_in_at(tmp_path):
    """Both ways to have a provider are named."""
    r = slipway("kubeconfig", "--oidc", "-f", ROOT / "examples" / "demo.yaml", "--state", tmp_path)
    assert r.returncode == 3 and "demo's file has neither auth.oidc nor services.dex: there is no provider to log in at" in r.stderr
    assert "hint: set services.dex, or auth.oidc.issuer and auth.oidc.clientID" in r.stderr
