"""Rendering of nodes, compared with the files kept under nodes/CASE/expected/.

    REGEN=1 pytest tests/golden/test_nodes.py      writes them anew; read the difference before you keep it
"""
import fnmatch
import gzip
import json
import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest
from upstream import NEWEST

sys.path.insert(0, str(Path(__file__).resolve().parent / "nodes"))
import cases  # noqa: E402

REGEN = os.environ.get("REGEN")


@pytest.fixture(scope="session")
def rendered(tmp_path_factory):
    """case → (directory, state): rendered once, without secrets; and with them, into `all` beside it."""
    done = {}

    def get(case):
        if case not in done:
            base = tmp_path_factory.mktemp(case)
            cases.render(case, base / "out", base / "state")
            cases.render(case, base / "all", base / "state", "--secrets")
            done[case] = base / "out", base / "state"
        return done[case]
    return get


def wanted(case, out, state, tmp):
    """{path below expected/: text} of what case.json chooses."""
    choice, found = json.loads((cases.HERE / case / "case.json").read_text()), {}
    for node, patterns in choice["nodes"].items():
        found[f"{node}/entries.txt"] = cases.entries((out / node / "nodespec.json").read_text())
        for name, (mode, data) in cases.files(out.parent / "all" / node / "root").items():
            if not stat.S_ISDIR(mode) and any(fnmatch.fnmatch(name, p) for p in patterns):
                found[f"{node}/root/{name}"] = f"-> {data.decode()}\n" if stat.S_ISLNK(mode) else data.decode()
    for node, formats in choice.get("userData", {}).items():
        for kind in formats:
            cases.render(case, tmp / kind, tmp / "none", "--format", kind, "--node", node)
            name = "user-data" if kind == "cloud-init" else "config.ign"
            found[f"{node}/{name}"] = cases.plain((tmp / kind / node / name).read_bytes()).decode()
    found = {name: cases.normalise(text, state) for name, text in found.items()}
    return {name: text for name, text in found.items() if not re.fullmatch(r"(<[a-z ]+>\n?)+", text)}  # nothing but keys and certificates


@pytest.mark.parametrize("case", cases.CASES)
def test_expected(case, rendered, tmp_path):
    out, state = rendered(case)
    directory, found = cases.HERE / case / "expected", wanted(case, out, state, tmp_path)
    if REGEN:
        shutil.rmtree(directory, ignore_errors=True)
        for name, text in found.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    kept = {str(p.relative_to(directory)): p.read_text() for p in directory.rglob("*") if p.is_file()}
    assert sorted(found) == sorted(kept)
    for name in kept:
        assert found[name] == kept[name], f"{case}/expected/{name} differs; REGEN=1 writes it anew"


@pytest.mark.parametrize("case", cases.CASES)
def test_twice_the_same(case, rendered, tmp_path):
    """With the Identity that is there, the same bytes and modes; also over an older rendering."""
    out, state = rendered(case)
    shutil.copytree(out, tmp_path / "out", symlinks=True)
    first = next(iter(sorted((tmp_path / "out").iterdir())))
    (first / "root" / "left-over").write_text("of an older rendering")
    before = {n: v for n, v in cases.files(state).items() if not n.endswith("/lock")}
    cases.render(case, tmp_path / "out", state)
    assert cases.files(tmp_path / "out") == cases.files(out)
    assert {n: v for n, v in cases.files(state).items() if not n.endswith("/lock")} == before


@pytest.mark.parametrize("case", cases.CASES)
def test_secrets_only_when_asked(case, rendered):
    out, state = rendered(case)
    texts = cases.secrets(case, state)
    for name, (_, data) in cases.files(out).items():
        assert b"PRIVATE KEY" not in data, name
        for secret in texts:
            assert secret.encode() not in data, f"{name} holds {secret[:6]}…"
    without, everything = cases.files(out), cases.files(out.parent / "all")
    for node in {n.split("/")[0] for n in everything}:
        assert stat.S_IMODE(everything[node][0]) == 0o700
        spec = json.loads((out / node / "nodespec.json").read_text())
        names = {f"{node}/root{e['path']}" for e in spec["entries"] if e["class"] == "secret" and e["kind"] == "file"}
        assert names, f"{node} has no secret at all"
        for name in names:
            assert name not in without
            assert stat.S_IMODE(everything[name][0]) & 0o177 == 0, name
        assert all("sha256" not in e for e in spec["entries"] if e["class"] == "secret")
    assert {n: v for n, v in without.items() if "/" in n} == {n: v for n, v in everything.items() if n in without and "/" in n}


@pytest.mark.parametrize("case", cases.CASES)
def test_modes_and_links(case, rendered):
    out, _ = rendered(case)
    for node in out.iterdir():
        for e in json.loads((node / "nodespec.json").read_text())["entries"]:
            if e["kind"] not in ("file", "directory", "link") or e["class"] == "secret":
                continue
            path = node / "root" / e["path"].lstrip("/")
            if e["kind"] == "link":
                assert os.readlink(path) == e["target"]
            else:
                assert stat.S_IMODE(path.lstat().st_mode) == int(e["mode"], 8), path


@pytest.mark.parametrize("case", cases.CASES)
def test_units_have_the_class_of_their_files(case, rendered):
    """Or user-data enables a unit that does not exist at the first boot, and cloud-init ends with an error."""
    for node in rendered(case)[0].iterdir():
        entries = json.loads((node / "nodespec.json").read_text())["entries"]
        files = {e["path"]: e["class"] for e in entries if e["kind"] == "file"}
        for e in entries:
            if e["kind"] == "unit":
                assert files.get(f"/etc/systemd/system/{e['name']}", e["class"]) == e["class"], e


@pytest.mark.parametrize("case", cases.CASES)
def test_user_data_holds_immutable_entries_only(case, rendered, tmp_path):
    """And no address, no version, nothing of the Identity: two renderings of it, with and without facts, are the same."""
    out, state = rendered(case)
    for kind in ("cloud-init", "ignition"):
        cases.render(case, tmp_path / kind, tmp_path / "no-state", "--format", kind)
        for name, (mode, data) in cases.files(tmp_path / kind).items():
            if not stat.S_ISREG(mode):
                continue
            assert Path(name).name in ("user-data", "config.ign")
            text = cases.plain(data)
            for secret in cases.secrets(case, state):
                assert secret.encode() not in text, name
            spec = json.loads((out / name.split("/")[0] / "nodespec.json").read_text())
            for e in spec["entries"]:
                if e["class"] != "immutable" and e["kind"] == "file":
                    assert not re.search(rb"(path\"?: |^put )[\"']?" + re.escape(e["path"].encode()) + rb"[\"'\s]", text, re.M), f"{name} holds {e['path']}"
    assert not (tmp_path / "no-state").exists(), "user-data needs no Identity"


# ---- the verb ----

def cluster(tmp, extra="", hosts="[{name: one, address: 192.0.2.11}]", provider="{ssh: {}}"):
    path = tmp / "cluster.yaml"
    path.write_text("apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c}\nspec:\n" f"  kubernetes: {NEWEST}\n"
                    f"  provider: {provider}\n  pools:\n    - {{name: all, roles: [control-plane, etcd, worker], {hosts if ':' in hosts.split('[')[0] else 'hosts: ' + hosts}}}\n{extra}")
    return path


AWS = "{aws: {region: eu-central-1, zones: [eu-central-1a], image: ami-0a1b2c%s}}"


def test_unknown_node(tmp_path):
    f = cluster(tmp_path, hosts="[{name: control, address: 192.0.2.11}]")
    r = cases.run("render", "-f", f, "--node", "contrl", "-d", tmp_path / "out", "--state", tmp_path / "s", status=2)
    assert b"there is no node contrl" in r.stderr and b"did you mean control?" in r.stderr
    assert not (tmp_path / "s").exists()


def test_no_address_yet(tmp_path):
    f = cluster(tmp_path, hosts="count: 1, flavor: m1", provider="{openstack: {cloud: none, image: debian, user: debian}}")
    r = cases.run("render", "-f", f, "-d", tmp_path / "out", "--state", tmp_path / "s", status=2)
    assert b"node all-1 has no address yet" in r.stderr and b"--facts" in r.stderr and b"--format user-data" in r.stderr
    r = cases.run("render", "-f", f, "--format", "cloud-init")
    assert r.stdout.startswith((b"#cloud-config", b"MIME-Version"))


def test_standard_output(tmp_path):
    f = cluster(tmp_path, hosts="[{name: a, address: 192.0.2.11}, {name: b, address: 192.0.2.12}, {name: c, address: 192.0.2.13}]", extra="  api: {vip: 192.0.2.10}\n")
    assert json.loads(cases.run("render", "-f", f, "--format", "ignition", "--node", "b").stdout)["ignition"]["version"] == "3.4.0"
    r = cases.run("render", "-f", f, "--format", "ignition", status=2)
    assert b"3 nodes do not fit" in r.stderr and not r.stdout
    text = cases.run("render", "-f", f, "--state", tmp_path / "s").stdout.decode()
    assert re.search(r"(?m)^a:\nKIND +CLASS +MODE +PATH +UNITS$", text) and "c:\n" in text
    assert [n["node"] for n in json.loads(cases.run("render", "-f", f, "--state", tmp_path / "s", "-o", "json").stdout)] == ["a", "b", "c"]
    assert b"user-data never holds a secret" in cases.run("render", "-f", f, "--format", "ignition", "--secrets", status=2).stderr


def test_foreign_directory_is_kept(tmp_path):
    f = cluster(tmp_path)
    (tmp_path / "out" / "one").mkdir(parents=True)
    (tmp_path / "out" / "one" / "thesis.tex").write_text("years of work")
    r = cases.run("render", "-f", f, "-d", tmp_path / "out", "--state", tmp_path / "s", status=2)
    assert b"exists and was not written by slipway render" in r.stderr
    assert (tmp_path / "out" / "one" / "thesis.tex").read_text() == "years of work"
    (tmp_path / "file").write_text("x")
    assert b"a file of that name is in the way" in cases.run("render", "-f", f, "-d", tmp_path / "file", "--state", tmp_path / "s", status=1).stderr


def test_another_format_replaces(tmp_path):
    f = cluster(tmp_path)
    cases.run("render", "-f", f, "-d", tmp_path / "out", "--state", tmp_path / "s")
    cases.run("render", "-f", f, "-d", tmp_path / "out", "--format", "ignition")
    assert [p.name for p in (tmp_path / "out" / "one").iterdir()] == ["config.ign"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["one"]


def test_too_much_user_data(tmp_path):
    """Keys that do not compress, more than AWS takes."""
    import hashlib
    keys = ["ssh-rsa " + "".join(hashlib.sha256(f"{i}.{k}".encode()).hexdigest() for k in range(8)) for i in range(80)]
    f = cluster(tmp_path, hosts="count: 1, instanceType: m7i.large", provider=AWS % "",
                extra="  os: {authorizedKeys: [" + ", ".join(f'"{k}"' for k in keys) + "]}\n")
    for kind in ("cloud-init", "ignition"):
        r = cases.run("render", "-f", f, "--format", kind, status=3)
        assert re.search(rb"node all-1: the user-data is \d+ bytes after compression, but AWS takes at most 16384; the biggest entries: os.authorizedKeys \(\d+ bytes\), /", r.stderr), r.stderr
        assert not r.stdout
    few = tmp_path / "few"
    few.mkdir()
    f = cluster(few, hosts="count: 1, instanceType: m7i.large", provider=AWS % "", extra="  os: {authorizedKeys: [\"" + "ssh-rsa " + "A" * 20000 + "\"]}\n")
    data = cases.run("render", "-f", f, "--format", "cloud-init").stdout
    assert data[:2] == b"\x1f\x8b" and data == cases.run("render", "-f", f, "--format", "cloud-init").stdout
    assert b"ssh_authorized_keys" in gzip.decompress(data)


@pytest.mark.parametrize("example", sorted((cases.ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_examples(example, tmp_path):
    """Each is rendered as it stands: all its files where there are addresses, and the user-data that each node takes."""
    cases.run("render", "-f", example, "--format", "user-data", "-d", tmp_path / "data")
    nodes = sorted(p.name for p in (tmp_path / "data").iterdir())
    assert len(nodes) >= 3 and all([p.name for p in (tmp_path / "data" / n).iterdir()] == ["user-data"] for n in nodes)
    cloud = re.search(r"(?m)^    (openstack|terraform):", example.read_text())
    r = cases.run("render", "-f", example, "-d", tmp_path / "out", "--state", tmp_path / "s", status=2 if cloud else 0)
    assert b"have no address yet" in r.stderr if cloud else sorted(p.name for p in (tmp_path / "out").iterdir()) == nodes


def test_user_data_is_what_the_provider_or_the_system_takes(tmp_path):
    for provider, hosts, name in (("{openstack: {image: debian}}", "count: 1, flavor: m1", "user-data"), (AWS % ", userData: ignition", "count: 1, instanceType: m7i.large, os: flatcar", "config.ign"),
                                  ("{ssh: {}}", "os: flatcar, hosts: [{name: one, address: 192.0.2.11}]", "config.ign"), ("{ssh: {}}", "hosts: [{name: one, address: 192.0.2.11}]", "user-data")):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        out.mkdir()
        cases.run("render", "-f", cluster(out, hosts=hosts, provider=provider), "--format", "user-data", "-d", out / "out")
        assert [p.name for p in (out / "out").rglob("*") if p.is_file()] == [name]


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_architectures(arch, tmp_path):
    """A node's files are the same for both: what differs are the programs, which are named by version."""
    (tmp_path / "facts.json").write_text(json.dumps({"nodes": {"one": {"arch": arch}}}))
    r = cases.run("render", "-f", cluster(tmp_path), "--facts", tmp_path / "facts.json", "--state", tmp_path / "s", "-o", "json")
    node, = json.loads(r.stdout)
    assert node["arch"] == arch and not re.search("amd64|arm64|x86_64|aarch64", json.dumps(node["entries"]))
    (tmp_path / "facts.json").write_text(json.dumps({"nodes": {"one": {"arch": "riscv64"}}}))
    r = cases.run("render", "-f", cluster(tmp_path), "--facts", tmp_path / "facts.json", "--state", tmp_path / "s", status=4)
    assert b"the processor architecture riscv64 is not supported" in r.stderr


def test_kubeconfig(tmp_path):
    f = cluster(tmp_path, extra="  auth: {users: [{name: alice, groups: [platform]}]}\n")
    import yaml
    text = cases.run("kubeconfig", "-f", f, "--state", tmp_path / "s").stdout
    k = yaml.safe_load(text)
    assert k["kind"] == "Config" and k["clusters"][0]["cluster"]["server"] == "https://192.0.2.11:6443"
    assert any("alice" in u["name"] for u in k["users"]) and k["current-context"] in [c["name"] for c in k["contexts"]]
    assert text == cases.run("kubeconfig", "-f", f, "--state", tmp_path / "s").stdout
