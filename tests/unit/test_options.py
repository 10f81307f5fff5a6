"""Every option acts: a row of the schema whose member nothing reads outside src/config/ is refused by `check`, or this fails.

The compiler finds the readers: each member that a row names is marked deprecated in a copy of cluster.h, and every source outside
src/config/ is parsed against that copy. Each use is then a warning that names the struct and the member.
"""
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CONFIG = ROOT / "src" / "config"
# What cluster_load reads for the rest of the program, and the member that then holds it: texts of files, and the nodes made from pools and hosts.
STANDS_FOR = {
    ("registry", "ca_file"): "registry.ca_pem", ("registry", "password_file"): "registry.password", ("oidc", "ca_file"): "oidc.ca_pem", ("oidc", "client_secret_file"): "oidc.client_secret",
    ("audit", "policy_file"): "audit.policy", ("admission", "config_file"): "admission.config", ("etcd_snapshots", "copy_key_file"): "etcd_snapshots.copy_key",
    ("repository", "ca_file"): "repository.ca_pem", ("repository", "password_file"): "repository.password", ("chart", "values_file"): "chart.values_text", ("chart", "values_files"): "chart.values_texts",
    ("dex", "passwords_file"): "dex.passwords",
    ("pool", "hosts"): "cluster.nodes", ("pool", "without"): "cluster.nodes", ("host", "name"): "node.name", ("host", "address"): "node.address", ("host", "ip"): "node.ip", ("node_file", "content_file"): "node_file.content",
    ("addon", "values"): "chart.values",
    ("cluster", "env"): "cluster.digest",  # its variables are in the values of all the others
}
# And what it gives through a function.
FUNCTIONS = {("network", "dns"): "cluster_dns(", ("provider_terraform", "variables"): "terraform_variable("}


def rows():
    """[(schema, C struct, member, field, sub schema or None, refused)] of schema.c, in its order."""
    text = (CONFIG / "schema.c").read_text()
    found, schema = [], None
    for line in text[:text.index("gone_table")].splitlines():
        if m := re.match(r"SCHEMA\((\w+), ", line):
            schema = m[1]
        elif line.startswith("static const struct field spec_fields"):
            schema = "spec"
        if m := re.match(r'\s*\{ "(\w+)", T_\w+, [^"]*?AT\((\w+), (\w+)\)', line):
            sub = re.search(r"\.sub = &(\w+)_schema", line)
            found.append((schema, m[2], m[3], m[1], sub and sub[1], ".later =" in line))
    return found


def marked(directory):
    """The copy of cluster.h. Its comments go first: names in them are no members."""
    text = re.sub(r"/\*.*?\*/", "", (CONFIG / "cluster.h").read_text(), flags=re.S)
    for struct in sorted({r[1] for r in rows()} | {m.split(".")[0] for m in STANDS_FOR.values()}):
        start = re.search(rf"^struct {struct} \{{", text, re.M).end()
        end = text.index("\n};", start)
        body = text[start:end]
        members = {r[2] for r in rows() if r[1] == struct} | {m.split(".")[1] for m in STANDS_FOR.values() if m.split(".")[0] == struct}
        for member in sorted(members):
            body, n = re.subn(rf"\b{member}\b(\[\d+\])?(?=[,;])", rf'{member}\1 __attribute__((deprecated("{struct}.{member}")))', body)
            assert n == 1, f"struct {struct} of cluster.h: {member} is found {n} times"
        text = text[:start] + body + text[end:]
    (directory / "config").mkdir()
    (directory / "config" / "cluster.h").write_text(text)


def uses(entry, directory):
    """{"struct.member"} that one source reads."""
    words = [w for w in shlex.split(entry["command"]) if re.match(r"-I|-D|-std=|-isystem", w)]
    out = subprocess.run(["cc", "-fsyntax-only", "-Wdeprecated-declarations", "-I", directory, *words, entry["file"]], cwd=entry["directory"],
                         capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    assert out.returncode == 0, out.stderr[:2000]
    return set(re.findall(r"is deprecated: (\w+\.\w+)", out.stderr))


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    directory = tmp_path_factory.mktemp("marked")
    marked(directory)
    every = {e["file"]: e for e in json.loads((SLIPWAY.parent / "compile_commands.json").read_text())}
    outside = [e for f, e in sorted(every.items()) if re.search(r"(^|/)src/(?!config/|base/|agent/)[a-z]+/.+\.c$", f)]
    assert len(outside) > 150, "the sources are not found"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return set().union(*pool.map(lambda e: uses(e, directory), outside))


def refused():
    """Names of the schemas that are reached only through a refused row."""
    taken, ways = {"spec"}, rows()
    while more := {r[4] for r in ways if r[4] and r[0] in taken and not r[5]} - taken:
        taken |= more
    return {r[0] for r in ways} - taken


def test_every_row_is_found():
    """As many rows as `slipway schema --docs` has."""
    docs = subprocess.run([SLIPWAY, "schema", "--docs"], capture_output=True, text=True, check=True).stdout
    tables = docs[docs.index("### spec"):docs.rindex("\n## ")]
    assert len([r for r in rows() if r[0] not in refused()]) == len(re.findall(r"^\| `\w+` \|", tables, re.M)) > 200
    assert len(re.findall(r"Not implemented yet, and refused", tables)) == len([r for r in rows() if r[5] and r[0] not in refused()])


def test_every_option_has_a_reader(read):
    texts = "".join(p.read_text() for p in (ROOT / "src").rglob("*.c") if CONFIG not in p.parents)
    unread = [f"{schema}.{field} (struct {struct}, member {member})" for schema, struct, member, field, sub, later in rows()
              if not later and schema not in refused() and f"{struct}.{member}" not in read and STANDS_FOR.get((struct, member)) not in read
              and FUNCTIONS.get((struct, member), "\0") not in texts]
    assert not unread, "nothing outside src/config/ reads these; give them a reader, or a sentence with .later:\n" + "\n".join(unread)


def test_a_refused_option_has_no_reader(read):
    """The flag goes with the first reader. What is refused as a whole is not looked into."""
    stale = [f"{schema}.{field}" for schema, struct, member, field, sub, later in rows() if later and not sub and f"{struct}.{member}" in read]
    assert not stale, "these are read and refused: " + ", ".join(stale)


def test_the_test_sees_a_row_without_a_reader(read):
    """Members that are known to have no reader are not found, and ones that have are."""
    assert "heal.max_at_once" not in read and "machine_shape.disk" not in read
    assert {"pool.labels", "provider_local.release", "upgrade.drain_timeout", "etcd_snapshots.keep"} <= read
