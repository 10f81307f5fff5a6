"""`slipway export terraform`: the files of each terraform/CASE.yaml are those kept in terraform/CASE.txt, and everything in them that
names something else names something that is there.

    REGEN=1 pytest tests/golden/test_terraform.py      writes them anew; read the difference before you keep it
"""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "golden" / "terraform"
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CASES = sorted(p.stem for p in HERE.glob("*.yaml"))
PLATFORMS = ["openstack", "aws", "gce", "azure", "vsphere", "oci", "hetzner"]
REGEN = os.environ.get("REGEN")
USAGE, CONFIG = 2, 3
# What a resource cannot do without, of those that are made for every node.
MACHINES = {
    "openstack_compute_instance_v2": ["name", "flavor_name", "image_name", "network", "user_data"],
    "aws_instance": ["ami", "instance_type", "network_interface", "user_data_base64"],
    "google_compute_instance": ["name", "machine_type", "zone", "boot_disk", "network_interface", "metadata"],
    "azurerm_linux_virtual_machine": ["name", "resource_group_name", "location", "size", "admin_username", "network_interface_ids", "os_disk", "custom_data"],
    "vsphere_virtual_machine": ["name", "resource_pool_id", "datastore_id", "num_cpus", "memory", "network_interface", "disk", "clone", "extra_config"],
    "oci_core_instance": ["compartment_id", "availability_domain", "shape", "create_vnic_details", "source_details", "metadata"],
    "hcloud_server": ["name", "server_type", "image", "user_data", "network"],
}


def slipway(*args, cwd=ROOT, status=0):
    r = subprocess.run([SLIPWAY, *map(str, args)], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900)
    assert r.returncode == status, f"slipway {' '.join(map(str, args))}: status {r.returncode}\n{r.stdout[-2000:]}{r.stderr}"
    return r


def texts(directory):
    """{path: bytes} of all files of the export."""
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    done = {}

    def get(case):
        if case not in done:
            done[case] = tmp_path_factory.mktemp(case) / "infra"
            slipway("export", "terraform", "-f", HERE / f"{case}.yaml", "-d", done[case])
        return done[case]
    return get


def edited(tmp_path, case, **changes):
    text = (HERE / f"{case}.yaml").read_text()
    for old, new in changes.values():
        assert old in text, old
        text = text.replace(old, new)
    (tmp_path / "cluster.yaml").write_text(text)


# ---- the files ----

@pytest.mark.parametrize("case", CASES)
def test_files(case, exported):
    files = texts(exported(case))
    said = "".join(f"==> {path} <==\n{data.decode()}" for path, data in files.items() if not path.startswith(("userdata/", "slipway-export")))
    expected = HERE / f"{case}.txt"
    if REGEN:
        expected.write_text(said)
    assert said == expected.read_text()


def test_every_platform_has_a_case():
    assert {c.split("-")[0] for c in CASES} == set(PLATFORMS)
    assert {p.stem for p in (ROOT / "src/deliver/terraform/rows").glob("*.json")} == set(PLATFORMS)


# ---- references ----

def strings(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from strings(v)
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)
    elif isinstance(value, str):
        yield value


def code(text):
    """The expressions of a template: what is between ${ and }, without quoted text that has none itself."""
    return " ".join(re.findall(r"\$\{(.*)\}", text)) if "${" in text else ""


def names_in(document):
    """What the expressions of one module refer to: [(kind, name)], a resource as (type, name)."""
    found = set()
    for text in strings({k: v for k, v in document.items() if k != "//"}):
        said = re.sub(r'"(?:[^"\\$]|\\.)*"', "", code(text))
        for word in re.findall(r"(?<![\w.])(?:[a-z][\w-]*)(?:\.[a-z][\w-]*)+", said):
            parts = word.split(".")
            if parts[0] in ("var", "local", "module"):
                found.add((parts[0], ".".join(parts[1:3 if parts[0] == "module" else 2])))
            elif parts[0] == "data":
                found.add((f"data.{parts[1]}", parts[2]))
            elif "_" in parts[0] and len(parts) > 1 and parts[0] not in dynamic(document):
                found.add((parts[0], parts[1]))
    return found


def dynamic(value):
    """Names of dynamic blocks, which are also the names of their values."""
    names = set()
    if isinstance(value, dict):
        names |= set(value.get("dynamic", {}))
        names |= set().union(*(dynamic(v) for v in value.values()), set())
    elif isinstance(value, list):
        names |= set().union(*(dynamic(v) for v in value), set())
    return names


@pytest.mark.parametrize("case", CASES)
def test_every_reference_resolves(case, exported):
    root = exported(case)
    files = {p: json.loads(p.read_text()) for p in root.rglob("*.tf.json")}
    main, declared = files[root / "main.tf.json"], files[root / "variables.tf.json"]["variable"]
    modules = {p.parent.name: d for p, d in files.items() if p.parent.parent.name == "modules"}
    used = set()
    for kind, name in names_in(main):
        used |= {name} if kind == "var" else set()
        if kind == "module":
            call, output = name.split(".")
            assert output in modules[main["module"][call]["source"].removeprefix("./modules/")]["output"], name
        else:
            assert kind == "var" and name in declared, (kind, name)
    assert used == set(declared) >= set(json.loads((root / "slipway.auto.tfvars.json").read_text())), "declared, and used"
    for call in main["module"].values():
        body = modules[call["source"].removeprefix("./modules/")]
        assert set(body.get("variable", {})) == set(call) - {"source"}, call
    assert {c["source"].removeprefix("./modules/") for c in main["module"].values()} == set(modules)
    for module, body in modules.items():
        there = {(t, n) for t, rows in body.get("resource", {}).items() for n in rows} | {(f"data.{t}", n) for t, rows in body.get("data", {}).items() for n in rows}
        there |= {("var", n) for n in body.get("variable", {})} | {("local", n) for n in body.get("locals", {})}
        refers = names_in(body)
        assert refers <= there, (module, refers - there)
        assert {r for r in there if r[0] == "var"} <= refers, (module, "a variable that nothing uses")


@pytest.mark.parametrize("case", CASES)
def test_machines(case, exported):
    """Every node has its user-data, and what its platform asks for; its user-data and image may change without a new machine."""
    root = exported(case)
    body = json.loads((root / "modules/machines/main.tf.json").read_text())
    (kind, machine), = [(t, rows["machine"]) for t, rows in body["resource"].items() if "machine" in rows]
    assert set(MACHINES[kind]) <= set(machine) and machine["for_each"] == "${var.nodes}"
    nodes = json.loads((root / "slipway.auto.tfvars.json").read_text())["nodes"]
    assert list(nodes) == ["control-1", "control-2", "control-3", "worker-1", "worker-2"] == sorted(p.name for p in (root / "userdata").iterdir())
    assert [n["control"] for n in nodes.values()] == [True] * 3 + [False] * 2
    assert "path.root}/userdata/" in json.dumps(machine) and machine["lifecycle"][0]["ignore_changes"]
    given = re.search(r'zones: (?:"([^"]*)"|([^,}]*))', (HERE / f"{case}.yaml").read_text())
    assert {n["zone"] for n in nodes.values()} == (set((given[1] or given[2]).split(", ")) if given else {None})


# ---- what is promised ----

def test_the_same_again(exported, tmp_path):
    slipway("export", "terraform", "-f", HERE / "hetzner.yaml", "-d", tmp_path / "infra")
    assert texts(tmp_path / "infra") == texts(exported("hetzner"))
    r = slipway("export", "terraform", "-f", HERE / "hetzner.yaml", "-d", tmp_path / "infra", "-o", "json")
    assert json.loads(r.stdout) == {"dir": str(tmp_path / "infra"), "files": 13, "changed": 0, "removed": 0, "unset": []}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_upgrade_changes_nothing(platform, exported, tmp_path):
    """No version is in the files, so `tofu plan` is empty after an upgrade."""
    edited(tmp_path, platform, version=("kubernetes: 1.36.3", "kubernetes: 1.35.4"))
    slipway("export", "terraform", "-d", tmp_path / "infra", cwd=tmp_path)
    assert texts(tmp_path / "infra") == texts(exported(platform))


def test_text_of_the_user_is_no_expression(tmp_path):
    """It is only in the file of values, which Terraform reads literally."""
    evil = '${file(\\"/etc/shadow\\")} %{ for x in y }'
    edited(tmp_path, "openstack", image=("image: debian-12", f'image: "{evil}"'), cloud=("cloud: taco", f'cloud: "{evil}"'), zone=('"az1, az2"', '"${timestamp()}"'),
           bastion=("dir: infra", f'dir: infra\n      bastion: "{evil}"'))
    slipway("export", "terraform", cwd=tmp_path)
    values = json.loads((tmp_path / "infra/slipway.auto.tfvars.json").read_text())
    plain = evil.replace('\\"', '"')
    assert values["cloud"] == values["bastion"] == values["nodes"]["worker-1"]["image"] == plain and values["nodes"]["worker-1"]["zone"] == "${timestamp()}"
    for path, data in texts(tmp_path / "infra").items():
        assert path == "slipway.auto.tfvars.json" or b"shadow" not in data and b"timestamp" not in data, path


def test_no_secret_is_written(tmp_path):
    (tmp_path / "password").write_text("open sesame\n")
    (tmp_path / "password").chmod(0o600)
    edited(tmp_path, "hetzner", registry=("  pools:", "  registry: {mirror: registry.example.net, username: ops, passwordFile: password}\n  proxy: {http: \"http://ops:open%20sesame@proxy.example.net:3128\"}\n  pools:"))
    slipway("export", "terraform", cwd=tmp_path)
    assert all(b"sesame" not in data for data in texts(tmp_path / "infra").values())


def test_only_what_it_wrote(tmp_path):
    edited(tmp_path, "hetzner")
    infra = tmp_path / "infra"
    infra.mkdir()
    (infra / "main.tf.json").write_text("{}\n")
    r = slipway("export", "terraform", cwd=tmp_path, status=USAGE)
    assert "infra/main.tf.json exists and was not written by slipway" in r.stderr and [p.name for p in infra.iterdir()] == ["main.tf.json"]
    (infra / "main.tf.json").unlink()
    (infra / "extra.tf").write_text("# mine\n")
    slipway("export", "terraform", cwd=tmp_path)
    before = texts(infra)
    # fewer nodes: their files go, and nothing else
    edited(tmp_path, "hetzner", count=("count: 2", "count: 1"))
    assert "12 files, 1 changed, 1 removed" in slipway("export", "terraform", cwd=tmp_path).stdout
    after = texts(infra)
    assert set(before) - set(after) == {"userdata/worker-2"} and after["extra.tf"] == b"# mine\n"
    # changed by somebody
    (infra / "modules/network/main.tf.json").write_text("{}\n")
    r = slipway("export", "terraform", cwd=tmp_path, status=USAGE)
    assert "infra/modules/network/main.tf.json was changed after slipway wrote it" in r.stderr
    # without a load balancer its module goes too, but not what was added to it
    shutil.rmtree(infra)
    slipway("export", "terraform", cwd=tmp_path)
    (infra / "modules/balancer/mine.tf").write_text("# mine\n")
    edited(tmp_path, "hetzner", balancer=("dir: infra", "dir: infra\n      loadBalancer: false"))
    slipway("export", "terraform", cwd=tmp_path)
    assert sorted(p.name for p in (infra / "modules").iterdir()) == ["balancer", "groups", "machines", "network"]
    assert [p.name for p in (infra / "modules/balancer").iterdir()] == ["mine.tf"]


def test_a_record_that_leads_elsewhere(tmp_path):
    edited(tmp_path, "hetzner")
    (tmp_path / "infra").mkdir()
    (tmp_path / "precious.json").write_text("{}\n")
    for path in ("../precious.json", "/etc/passwd", "userdata/../x", "userdata/"):
        (tmp_path / "infra/slipway-export.json").write_text(json.dumps({"files": {path: ["x"]}}))
        assert "slipway-export.json is damaged" in slipway("export", "terraform", cwd=tmp_path, status=USAGE).stderr
    assert (tmp_path / "precious.json").exists()


def test_killed_in_between(tmp_path):
    """The record has old and new digests before the first file is written: what a killed run wrote is still its own."""
    edited(tmp_path, "hetzner")
    slipway("export", "terraform", cwd=tmp_path)
    infra, record = tmp_path / "infra", json.loads((tmp_path / "infra/slipway-export.json").read_text())
    edited(tmp_path, "hetzner", size=("cx32", "cx42"))
    slipway("export", "terraform", "-d", tmp_path / "new", cwd=tmp_path)
    new = json.loads((tmp_path / "new/slipway-export.json").read_text())
    both = {path: sorted({*record["files"][path], *digests}) for path, digests in new["files"].items()}
    (infra / "slipway-export.json").write_text(json.dumps({"files": both}))
    shutil.copy(tmp_path / "new/slipway.auto.tfvars.json", infra)
    edited(tmp_path, "hetzner", size=("cx32", "cx52"))
    slipway("export", "terraform", cwd=tmp_path)
    assert json.loads((infra / "slipway.auto.tfvars.json").read_text())["nodes"]["worker-1"]["size"] == "cx52"


def test_variables_that_terraform_asks_for(tmp_path):
    edited(tmp_path, "gce", project=("project: acme, ", ""))
    r = slipway("export", "terraform", cwd=tmp_path)
    assert "project: the variable has no value" in r.stdout
    assert "default" not in json.loads((tmp_path / "infra/variables.tf.json").read_text())["variable"]["project"]


def test_other_providers(tmp_path):
    (tmp_path / "cluster.yaml").write_text((ROOT / "examples/demo.yaml").read_text())
    assert "not one of provider terraform" in slipway("export", "terraform", "-d", "x", cwd=tmp_path, status=CONFIG).stderr


# ---- what people read ----

def test_the_example(tmp_path):
    shutil.copy(ROOT / "examples/terraform.yaml", tmp_path)
    assert slipway("check", "-f", "terraform.yaml", cwd=tmp_path).stderr == ""
    slipway("export", "terraform", "-f", "terraform.yaml", cwd=tmp_path)
    assert sorted(p.name for p in (tmp_path / "infra/userdata").iterdir()) == [f"{pool}-{i}" for pool in ("control", "worker") for i in (1, 2, 3)]
    assert b"ops@example.net" in (tmp_path / "infra/userdata/worker-1").read_bytes()


def test_the_page_has_every_variable():
    """docs/terraform.md has a table per platform, with the defaults of config/platform.c."""
    source, page = (ROOT / "src/config/platform.c").read_text(), (ROOT / "docs/terraform.md").read_text()
    sections = [page.split("## Variables")[1].split("### ")[0], *re.split(r"\n##+ ", page.split("## Variables")[1])[1:]]
    tables = re.findall(r"struct platform_variable (\w+)_variables\[\] = \{\n(.*?)\n\};", source, re.S)
    assert [name for name, _ in tables] == ["common", *PLATFORMS]
    for (name, body), section in zip(tables, sections):
        rows = re.findall(r'\{ "(\w+)", VARIABLE_\w+, (NULL|"[^"]*"), (true|false), (?:true|false), "((?:[^"\\]|\\.)*)" \}', body)
        said = {m[1]: (m[2], m[3]) for m in re.finditer(r"^\| `(\w+)` \| (.*?) ?\| (.*?) \|$", section, re.M)}
        wanted = {n: ("required" if req == "true" else "" if d in ("NULL", '""') else f"`{d[1:-1]}`", text) for n, d, req, text in rows}
        assert {n: d for n, (d, _) in said.items()} == {n: d for n, (d, _) in wanted.items()}, name
        assert all(said[n][1].startswith(text) for n, (_, text) in wanted.items()), name


def test_a_plan_before_the_first_apply(tmp_path):
    """Every node without a machine is named, and nobody is connected to."""
    edited(tmp_path, "hetzner")
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra/outputs.json").write_text("{}")
    r = slipway("plan", cwd=tmp_path, status=4)
    for node in ("control-1", "control-2", "control-3", "worker-1", "worker-2"):
        assert f'node {node} is not in the Terraform output "slipway": its machine was not created yet' in r.stderr
    assert r.stderr.count("tofu apply") == 5 and "5 problems" in r.stderr


def test_scale(tmp_path):
    """More machines begin in the file and with Terraform."""
    edited(tmp_path, "hetzner")
    before = (tmp_path / "cluster.yaml").read_text()
    r = slipway("scale", "worker=4", cwd=tmp_path, status=USAGE)
    assert "with provider terraform slipway does not create machines itself" in r.stderr and "set the count of pool worker in the file" in r.stderr
    assert (tmp_path / "cluster.yaml").read_text() == before
