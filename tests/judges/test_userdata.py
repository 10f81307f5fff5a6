"""User-data, judged by cloud-init's own reader and schema, by both ignition-validates, and against the files of the other writer."""
import base64
import email
import gzip
import json
import re
import stat
import subprocess
import urllib.parse

import pytest
import yaml

import cases
from conftest import nodes, once

# cloud-init's reader: what parts does it see, and what does `cloud-init schema --config-file` say of them? Run with the system's Python, whose cloud-init it is.
READER = """
import contextlib, io, json, sys, tempfile
from cloudinit import user_data, util
from cloudinit.config import schema

def judge(text):
    said, status = io.StringIO(), 0
    with tempfile.NamedTemporaryFile('w') as f, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        f.write(text)
        f.flush()
        try:
            schema.handle_schema_args('schema', schema.get_parser().parse_args(['--config-file', f.name]))
        except SystemExit as e:
            status = e.code
    return status, said.getvalue()

for path in sys.argv[1:]:
    with open(path, 'rb') as f:
        message = user_data.UserDataProcessor({}).process(f.read())
    parts = [(p.get_content_type(), util.fully_decoded_payload(p)) for p in message.walk() if p.get_content_maintype() != 'multipart']
    print(json.dumps([(kind, text, judge(text) if kind == 'text/cloud-config' else None) for kind, text in parts]))
"""


@pytest.fixture(scope="session")
def cloud_init(rendered):
    """{user-data: its parts and what is said of them}, of all cases: cloud-init is started once, because it is slow to."""
    paths = [str(n / "user-data") for case in cases.CASES for n in nodes(rendered(case, "cloud-init"))]
    r = subprocess.run(["/usr/bin/python3", "-c", READER, *paths], stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
    assert r.returncode == 0, r.stderr.decode()
    return dict(zip(paths, map(json.loads, r.stdout.splitlines()), strict=True))


CLOUDS = [p for p in sorted((cases.ROOT / "examples").glob("*.yaml")) if not {"openstack", "aws"}.isdisjoint(yaml.safe_load(p.read_text())["spec"].get("provider", {}))]


@pytest.mark.parametrize("example", CLOUDS, ids=lambda p: p.name)
def test_examples(example, tmp_path):
    """As they stand; where the first line says a command, with that one."""
    said = re.match(r"# .*: `slipway (.*)`", example.read_text())
    command = said[1] if said else f"render -f {example.name} --format user-data -d out"
    cases.run(*command.replace(example.name, str(example)).split(), cwd=tmp_path)
    paths = sorted(str(p) for p in (tmp_path / "out").rglob("user-data"))
    assert len(paths) >= 6
    r = subprocess.run(["/usr/bin/python3", "-c", READER, *paths], stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
    assert r.returncode == 0, r.stderr.decode()
    for line in r.stdout.splitlines():
        (kind, text, (status, said)) = json.loads(line)[-1]
        assert kind == "text/cloud-config" and status == 0 and "Valid cloud-config" in said, said


def test_cloud_init(case, rendered, judge, programs, cloud_init, tmp_path):
    out, trees = rendered(case, "cloud-init"), rendered(case)
    for node in nodes(out):
        data, parts = (node / "user-data").read_bytes(), cloud_init[str(node / "user-data")]
        kinds = [kind for kind, _, _ in parts]
        assert kinds in (["text/cloud-config"], ["text/cloud-boothook", "text/cloud-config"]), kinds
        if cases.plain(data).startswith(b"MIME-Version"):
            assert not email.message_from_bytes(cases.plain(data)).defects
        written = {}
        for kind, text, verdict in parts:
            if kind == "text/cloud-config":
                status, said = verdict
                assert status == 0 and "Valid cloud-config" in said and "deprecat" not in said.lower(), said
                config = yaml.safe_load(text)
                for f in config.get("write_files", []):
                    content = f["content"].encode()
                    written[f["path"]] = (int(f["permissions"], 8), base64.b64decode(content) if f.get("encoding") == "b64" else content)
                assert all(isinstance(w, str) for key in ("bootcmd", "runcmd") for c in config.get(key, []) for w in c)
            else:
                path = tmp_path / f"{node.name}-{kind.split('/')[1]}"
                path.write_text(text)
                if once("boothook", text):
                    judge("sh", "-n", path)
                    judge(programs.system("shellcheck"), "-s", "sh", "-e", "SC2016", path)  # quoted scripts are meant literally
                written |= run_boothook(path, tmp_path / node.name)
        compare(node.name, written, trees)


def run_boothook(path, root):
    """Runs it with its paths below `root` and a systemctl that only notes; returns the files it made."""
    text = path.read_text()
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "systemctl").write_text(f"#!/bin/sh\necho \"$@\" >>{root}/systemctl.log\n")
    (root / "bin" / "systemctl").chmod(0o755)
    text = re.sub(r"(?m)^put ('?)/", rf"put \1{root}/files/", text)
    for _ in range(2):  # at every boot: the second changes nothing
        r = subprocess.run(["sh", "-eu", "-c", text], env={"PATH": f"{root}/bin:/usr/bin:/bin"}, capture_output=True, text=True, timeout=600)
        assert r.returncode == 0, r.stderr
    log = (root / "systemctl.log").read_text().splitlines()
    assert log[0] == "daemon-reload" and re.match(r"start \S+\.mount", log[1])
    return {f"/{p.relative_to(root / 'files')}": (stat.S_IMODE(p.stat().st_mode), p.read_bytes()) for p in (root / "files").rglob("*") if p.is_file()}


def compare(node, written, trees):
    """The same files as the other writer's, neither more nor fewer."""
    spec = json.loads((trees / node / "nodespec.json").read_text())
    wanted = {e["path"]: int(e["mode"], 8) for e in spec["entries"] if e["class"] == "immutable" and e["kind"] == "file"}
    assert sorted(written) == sorted(wanted)
    for path, (mode, data) in written.items():
        assert mode == wanted[path], path
        assert data == (trees / node / "root" / path.lstrip("/")).read_bytes(), path


def contents(source, compression=None):
    head, data = source.split(",", 1)
    assert head in ("data:", "data:;base64")
    raw = base64.b64decode(data) if head.endswith("base64") else urllib.parse.unquote_to_bytes(data)
    return gzip.decompress(raw) if compression == "gzip" else raw


def test_ignition(case, rendered, judge, programs, tmp_path):
    out, trees = rendered(case, "ignition"), rendered(case)
    for node in nodes(out):
        text = (node / "config.ign").read_text()
        layers = [text]
        replace = json.loads(text)["ignition"].get("config", {}).get("replace")
        if replace:
            layers.append(contents(**replace).decode())
        for i, layer in enumerate(layers):
            for version, validate in (("3.4.0", programs.upstream("ignition-validate")), ("3.3.0", "/usr/bin/ignition-validate")):
                path = tmp_path / f"{node.name}-{i}-{version}.ign"
                path.write_text(layer.replace('"version": "3.4.0"', f'"version": "{version}"').replace('"version":"3.4.0"', f'"version":"{version}"'))
                said = judge(validate, path)
                assert not said.strip(), said
        config, written = json.loads(layers[-1]), {}
        for f in config["storage"]["files"]:
            written[f["path"]] = (f["mode"], contents(**f["contents"]))
        for u in config["systemd"].get("units", []):
            if "contents" in u:
                written[f"/etc/systemd/system/{u['name']}"] = (0o644, u["contents"].encode())
            for d in u.get("dropins", []):
                written[f"/etc/systemd/system/{u['name']}.d/{d['name']}"] = (0o644, d["contents"].encode())
        if not any(e.get("path") == "/etc/hostname" for e in json.loads((trees / node.name / "nodespec.json").read_text())["entries"]):
            assert written.pop("/etc/hostname") == (0o644, f"{node.name}\n".encode())
        compare(node.name, written, trees)


def test_no_secret(case, rendered):
    """Whatever the Identity and the case call secret is in no user-data; nor is the look of one."""
    state = rendered(case).parent / "state"
    for kind in ("cloud-init", "ignition"):
        for path in rendered(case, kind).rglob("*"):
            if not path.is_file():
                continue
            data = cases.plain(path.read_bytes())
            if kind == "ignition" and b"replace" in data:
                data += contents(**json.loads(data)["ignition"]["config"]["replace"])
            data += urllib.parse.unquote_to_bytes(data)
            for bad in [b"PRIVATE KEY", *(s.encode() for s in cases.secrets(case, state))]:
                assert bad not in data, f"{path} holds {bad[:8]}…"
