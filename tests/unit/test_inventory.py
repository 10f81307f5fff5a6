"""`slipway inventory`, judged by the programs that read it: ssh, and Ansible where it is installed (else PyYAML)."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from upstream import NEWEST

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
ANSIBLE = shutil.which("ansible-inventory", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")

HOSTS = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: demo}}
spec:
  kubernetes: {NEWEST}
  provider:
    ssh:
      user: o'ps"x
      key: 'keys/id "x" 100%'
      bastion: ops@jump.example.net:2222
      options: [StrictHostKeyChecking=no, "SetEnv=A={{{{b}}}}"]
  api: {{vip: 192.0.2.100}}
  pools:
    - name: control
      roles: [control-plane, etcd]
      hosts: [192.0.2.1, {{name: c2, address: "2001:db8::2", ip: 192.0.2.2, port: 2200}}, {{address: c3.example.net, ip: 192.0.2.3}}]
    - {{name: gpu-w, hosts: [{{name: w1, address: 192.0.2.21, user: root}}]}}
"""
LOCAL = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: demo}}
spec:
  kubernetes: {NEWEST}
  provider: {{local: {{network: 10.161.0.0/24}}}}
  pools:
    - {{name: both, roles: [control-plane, etcd, worker], count: 1}}
    - {{name: worker, count: 2}}
"""


def inventory(tmp_path, text, *args, ok=0):
    (tmp_path / "cluster.yaml").write_text(text)
    r = subprocess.run([SLIPWAY, "inventory", *args], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert r.returncode == ok, r.stderr
    return r.stdout if ok == 0 else r.stderr


def ssh(tmp_path, config, name):
    """What ssh makes of it: {option: value}, the options in lower case."""
    (tmp_path / "ssh.conf").write_text(config)
    r = subprocess.run(["ssh", "-T", "-G", "-F", tmp_path / "ssh.conf", name], capture_output=True, text=True)
    assert r.returncode == 0 and not r.stderr, r.stderr
    return dict(line.split(" ", 1) for line in r.stdout.splitlines() if " " in line)


def ansible(tmp_path, text, name="inventory.yaml"):
    """(hostvars, {group: hosts}) as Ansible has it, children's hosts included."""
    path = tmp_path / name
    path.write_text(text)
    if ANSIBLE:
        out = json.loads(subprocess.run([ANSIBLE, "-i", path, "--list"], capture_output=True, text=True, check=True).stdout)
        groups, host_vars = out, out["_meta"]["hostvars"]
    else:
        loader = type("Loader", (yaml.SafeLoader,), {})
        loader.add_constructor("!unsafe", lambda l, node: {"__ansible_unsafe": l.construct_scalar(node)})
        every = yaml.load(text, loader)["all"]
        host_vars = every["hosts"]
        groups = {name: {key: list(names) for key, names in g.items()} for name, g in every["children"].items()}

    def members(group):
        g = groups.get(group, {})
        return [*g.get("hosts", []), *(h for child in g.get("children", []) for h in members(child))]
    return host_vars, {name: members(name) for name in groups if name not in ("_meta", "all", "ungrouped")}


def test_ssh_config_of_hosts(tmp_path):
    config = inventory(tmp_path, HOSTS, "--ssh-config")
    first = ssh(tmp_path, config, "ip-192-0-2-1")
    assert (first["hostname"], first["port"], first["user"]) == ("192.0.2.1", "22", "o'ps\"x")
    assert first["proxyjump"] == "ops@jump.example.net:2222" and first["identitiesonly"] == "yes"
    assert first["identityfile"].replace("%%", "%") == str(tmp_path / 'keys/id "x" 100%')
    assert first["stricthostkeychecking"] in ("false", "no"), "the file's own option comes first"
    second = ssh(tmp_path, config, "c2")
    assert (second["hostname"], second["port"]) == ("2001:db8::2", "2200")
    assert ssh(tmp_path, config, "w1")["user"] == "root"
    jump = ssh(tmp_path, config, "jump.example.net")
    assert "keys/id" in jump["identityfile"] and "proxyjump" not in jump, "the jump uses the same key"
    assert ssh(tmp_path, config, "elsewhere")["hostname"] == "elsewhere"


def test_ssh_config_of_machines_here(tmp_path):
    node = ssh(tmp_path, inventory(tmp_path, LOCAL, "--ssh-config"), "worker-2")
    assert (node["hostname"], node["user"]) == ("10.161.0.41", "root")
    assert node["identityfile"].startswith(str(tmp_path)) and str(tmp_path) in node["userknownhostsfile"]
    assert not (tmp_path / ".slipway").exists(), "it writes nothing"


def test_ansible_inventory_of_hosts(tmp_path):
    host_vars, groups = ansible(tmp_path, inventory(tmp_path, HOSTS, "--ansible"))
    control = ["ip-192-0-2-1", "c2", "c3.example.net"]
    assert groups == {"kube_control_plane": control, "etcd": control, "kube_node": ["w1"], "k8s_cluster": [*control, "w1"],
                      "pool_control": control, "pool_gpu_w": ["w1"]}
    c2 = host_vars["c2"]
    assert (c2["ansible_host"], c2["ansible_port"], c2["ansible_user"], c2["ip"]) == ("2001:db8::2", 2200, "o'ps\"x", "192.0.2.2")
    assert c2["ansible_ssh_private_key_file"] == str(tmp_path / 'keys/id "x" 100%') and c2["ansible_become"] is True
    assert "ansible_become" not in host_vars["w1"], "root needs no sudo"
    args = c2["ansible_ssh_common_args"]
    args = args["__ansible_unsafe"] if isinstance(args, dict) else args
    assert "{{b}}" in args and "jump.example.net" in args and "keys/id" in args


def test_ansible_inventory_of_machines_here(tmp_path):
    host_vars, groups = ansible(tmp_path, inventory(tmp_path, LOCAL, "--ansible"))
    assert host_vars["worker-1"]["ansible_host"] == host_vars["worker-1"]["ip"] == "10.161.0.40"
    assert groups["kube_node"] == ["both-1", "worker-1", "worker-2"] and groups["etcd"] == ["both-1"]


def test_json_is_a_dynamic_inventory(tmp_path):
    out = json.loads(inventory(tmp_path, HOSTS, "--ansible", "-o", "json"))
    assert out["kube_node"]["hosts"] == ["w1"] and out["k8s_cluster"]["children"] == ["kube_control_plane", "kube_node"]
    assert out["_meta"]["hostvars"]["w1"]["ansible_host"] == "192.0.2.21"


@pytest.mark.parametrize("args, sentence", [
    ([], "inventory needs either --ssh-config or --ansible"),
    (["--ssh-config", "--ansible"], "inventory needs either --ssh-config or --ansible"),
    (["--ssh-config", "-o", "json"], "an OpenSSH configuration has no JSON form"),
])
def test_refused(tmp_path, args, sentence):
    assert sentence in inventory(tmp_path, HOSTS, *args, ok=2)
