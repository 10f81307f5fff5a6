"""`slipway init`: every provider's file is valid as it is written, and Kubespray inventories become the files kept beside them.

    REGEN=1 pytest tests/golden/test_init.py      writes them and docs/config.md anew; read the difference before you keep it
"""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
KUBESPRAY = ROOT / "tests" / "golden" / "kubespray"
CASES = sorted(p.name for p in KUBESPRAY.iterdir() if (p / "inventory").is_dir())
DOCS = ROOT / "docs" / "config.md"
REGEN = os.environ.get("REGEN")
USAGE, CONFIG = 2, 3


def slipway(*args, cwd=ROOT, status=0):
    r = subprocess.run([SLIPWAY, *map(str, args)], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900)
    assert r.returncode == status, f"slipway {' '.join(map(str, args))}: status {r.returncode}\n{r.stdout[-2000:]}{r.stderr}"
    return r


# ---- providers ----

@pytest.mark.parametrize("provider", ["local", "ssh", "openstack", "aws", "terraform"])
def test_what_is_written_is_valid(provider, tmp_path):
    r = slipway("init", "--provider", provider, "--name", "mine", cwd=tmp_path)
    text = (tmp_path / "cluster.yaml").read_text()
    assert r.stdout.startswith("wrote cluster.yaml\nnext: ") and "slipway check" in r.stdout and r.stderr == ""
    assert "name: mine" in text and len(text.splitlines()) <= 30
    checked = slipway("check", cwd=tmp_path)
    assert checked.stdout.startswith("mine: Kubernetes ")
    found = [line for line in checked.stderr.splitlines() if line.startswith("cluster.yaml:")]
    assert found == []


def test_local_is_the_default(tmp_path):
    slipway("init", cwd=tmp_path)
    slipway("init", "--provider", "local", "-f", "other.yaml", cwd=tmp_path)
    assert (tmp_path / "cluster.yaml").read_text() == (tmp_path / "other.yaml").read_text()


def test_what_is_commented_out_is_valid_too(tmp_path):
    """Taking the # away from an example line must give a file that is still right."""
    for provider in ["local", "ssh", "openstack", "aws", "terraform"]:
        text = slipway("init", "--provider", provider, "-f", "-", cwd=tmp_path).stdout
        (tmp_path / "c.yaml").write_text(re.sub(r"(?m)^( +)# ((?: *)(?:- )?[{\w])", r"\1\2", text))
        slipway("check", "-f", "c.yaml", cwd=tmp_path)


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "cluster.yaml").write_text("precious\n")
    r = slipway("init", cwd=tmp_path, status=USAGE)
    assert "cluster.yaml exists already" in r.stderr and "--force" in r.stderr
    assert (tmp_path / "cluster.yaml").read_text() == "precious\n"
    slipway("init", "--force", cwd=tmp_path)
    assert (tmp_path / "cluster.yaml").read_text() != "precious\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster.yaml"]


@pytest.mark.parametrize("args,words", [
    (["--provider", "vsphere"], "local ssh openstack aws"),
    (["--name", "Not A Name"], "cannot be a cluster's name"),
    (["-f", "a.yaml", "-f", "b.yaml"], "init writes one file"),
    (["--provider", "ssh", "--from-kubespray", "."], "exclude each other"),
    (["--from-kubespray", "."], "no inventory here"),
])
def test_wrong_usage(args, words, tmp_path):
    r = slipway("init", *args, cwd=tmp_path, status=USAGE)
    assert words in r.stderr and r.stdout == "" and not list(tmp_path.iterdir())


def test_json(tmp_path):
    assert json.loads(slipway("init", "-o", "json", cwd=tmp_path).stdout) == {"file": "cluster.yaml", "notes": []}


# ---- Kubespray ----

@pytest.mark.parametrize("name", CASES)
def test_kubespray(name, tmp_path):
    """The expected file; it passes check; every note is both in it and on stderr."""
    out = tmp_path / "cluster.yaml"
    r = slipway("init", "--from-kubespray", "inventory", "-f", out, cwd=KUBESPRAY / name)
    text, expected = out.read_text(), KUBESPRAY / name / "cluster.yaml"
    if REGEN:
        expected.write_text(text)
    assert text == expected.read_text()
    said = re.findall(r"(?m)^note: (.*)$", r.stderr)
    assert said == re.findall(r"(?m)^ *# NOTE: (.*)$", text)
    assert r.stdout.endswith(f"next: slipway check -f {out}\n")
    slipway("check", "-f", out)


def test_kubespray_hosts_file_and_name(tmp_path):
    """The hosts file itself may be named, and --name wins over the directory's name."""
    r = slipway("init", "--from-kubespray", KUBESPRAY / "ranges/inventory/inventory.ini", "--name", "site-a", "-f", "-", cwd=tmp_path)
    want = (KUBESPRAY / "ranges" / "cluster.yaml").read_text().replace("{name: ranges}", "{name: site-a}")
    assert r.stdout == want and not list(tmp_path.iterdir())


def test_kubespray_json(tmp_path):
    r = slipway("init", "--from-kubespray", KUBESPRAY / "overlap/inventory", "-o", "json", cwd=tmp_path)
    assert r.stderr == "" and len(json.loads(r.stdout)["notes"]) == 2


def inventory(tmp_path, text, name="hosts.ini"):
    (tmp_path / "inv").mkdir(exist_ok=True)
    (tmp_path / "inv" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path / "inv"


@pytest.mark.parametrize("text,name,words", [
    ("[kube_node]\nw1\n", "hosts.ini", "no host in the group kube_control_plane"),
    ("[kube_control_plane\nx\n", "hosts.ini", "hosts.ini:1: a group's heading has no closing bracket"),
    ("[kube_control_plane]\nx y\n", "hosts.ini", "hosts.ini:2: y is not a variable"),
    ("[a:b]\n", "hosts.ini", "hosts.ini:1: a group can have :children and :vars, not :b"),
    ("[kube_control_plane]\n\nx[3:1]\n", "hosts.ini", "hosts.ini:3: [3:1] is not a range of hosts"),
    ("[kube_control_plane]\nx[1:999999999]\n", "hosts.ini", "more than 20000 hosts"),
    (b"[kube_control_plane]\nx\0y\n", "hosts.ini", "NUL byte"),
    ("- a\n- b\n", "hosts.yaml", "hosts.yaml:1:1: a YAML inventory must be a map of groups"),
    ("all: {hosts: [}\n", "hosts.yaml", "hosts.yaml:1:"),
])
def test_kubespray_bad_inventory(text, name, words, tmp_path):
    r = slipway("init", "--from-kubespray", inventory(tmp_path, text, name), cwd=tmp_path, status=CONFIG)
    assert words in r.stderr and r.stdout == "" and not (tmp_path / "cluster.yaml").exists()


def test_kubespray_bad_variables_name_their_file(tmp_path):
    where = inventory(tmp_path, "[kube_control_plane]\nx\n") / "group_vars" / "all"
    where.mkdir(parents=True)
    (where / "all.yml").write_text("a: 1\nb: [\n")
    r = slipway("init", "--from-kubespray", "inv", cwd=tmp_path, status=CONFIG)
    assert "inv/group_vars/all/all.yml:" in r.stderr


def test_kubespray_problems_are_shown(tmp_path):
    """An even number of etcd members is Kubespray's problem too: the file is written, and the problem shown."""
    r = slipway("init", "--from-kubespray", inventory(tmp_path, "[kube_control_plane]\nx ip=192.0.2.1\ny ip=192.0.2.2\n"), cwd=tmp_path)
    assert "an etcd pool needs an odd count, got 2" in r.stderr and "correct the 1 problem above" in r.stdout
    slipway("check", cwd=tmp_path, status=CONFIG)


def test_kubespray_passwords_stay_behind(tmp_path):
    where = inventory(tmp_path, "[kube_control_plane]\nx ip=192.0.2.1 ansible_become_pass=hunter2 ansible_password=hunter2\n") / "group_vars"
    where.mkdir()
    (where / "all.yml").write_text("kube_users: {bob: {pass: hunter2, role: admin}}\nmy_secret: hunter2\ncontainerd_registry_auth: [{username: u, password: hunter2}]\n")
    r = slipway("init", "--from-kubespray", "inv", cwd=tmp_path)
    assert "hunter2" not in r.stdout + r.stderr + (tmp_path / "cluster.yaml").read_text()


# ---- the reference ----

def test_docs_are_current():
    text = slipway("schema", "--docs").stdout
    if REGEN:
        DOCS.write_text(text)
    assert text == DOCS.read_text(), "run: build/slipway schema --docs > docs/config.md"


def test_examples_of_the_docs_are_valid(tmp_path):
    found = re.findall(r"(?s)```yaml\n(.*?)```", slipway("schema", "--docs").stdout)
    assert len(found) == 3
    for text in found:
        (tmp_path / "c.yaml").write_text(text)
        assert slipway("check", "-f", "c.yaml", cwd=tmp_path).stderr == ""


def test_links_of_the_docs_lead_somewhere():
    text = slipway("schema", "--docs").stdout
    anchors = {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in re.findall(r"(?m)^#+ (.*)$", text)}
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= anchors
    rows = re.findall(r"(?m)^\|.*\|$", text)
    assert len(rows) > 200 and all(len(re.findall(r"(?<!\\)\|", r)) in (4, 5, 3) for r in rows)


def test_one_document_at_a_time():
    assert "exclude each other" in slipway("schema", "--crd", "--docs", status=USAGE).stderr
