"""Hints, help and docs name only verbs and options that exist and that are not refused: everything the program or a page says is looked through."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.md"), *ROOT.glob("examples/*.yaml")])
# `slipway WORD` that is a sentence about slipway and no command.
PROSE = set("""a acts adds agent also and applies as asks assumes at beforehand brought by calls can cannot carries changes chooses cluster connects contains could created creates decides deletes derives detects determines did download
    do does for had has have installs is issues itself keeps kept knows leaves looks made make makes manage manages must names
    needs never no on once only opens or puts reaches reads record rendered renders replaced runs says sends sets signs supports takes that the themselves then to touches turns uploads uses when where which will with works
    writes wrote""".split())
# Rules of options that are refused: while they are, these rules do not run.
DORMANT = {"rules/etcd.c": "heal",
           "rules/network.c": "provider.aws.vpc", "rules/provider.c": ("provider", "pools")}
# Ends of what looks like an option and is a file, a host or a unit.
OTHERS = {"conf", "crt", "d", "env", "example", "gcr", "h", "internal", "io", "json", "k8s", "key", "lock", "log", "md", "net", "pem", "pub", "service", "sock", "socket", "svc", "target", "yaml"}


def run(*args):
    return subprocess.run([SLIPWAY, *args], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def verbs():
    """{verb: its help}"""
    names = re.findall(r"(?m)^  ([a-z-]+) {2,}\S", run("help").split("verbs:\n")[1].split("\n\n")[0])
    assert len(names) > 20
    return {name: run("help", name) for name in names}


@pytest.fixture(scope="module")
def schema():
    return json.loads(run("schema"))


def literals(path):
    """The string literals of a C file, those beside each other as one."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    text = re.sub(r"(?m)^\s*#\s*include.*$", "", text)
    for m in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        yield re.sub(r'"\s*"', "", m[0])[1:-1].replace('\\"', '"').replace("\\n", "\n")


def texts():
    """(file, text) of all that people read."""
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        for text in literals(path):
            yield path, text
    for path in PAGES:  # removed names are listed there
        yield path, re.sub(r"(?ms)^## Removed names.*", lambda m: re.sub(r"(?m)^\| `[^`]*` ", "", m[0]), path.read_text())


def commands(text):
    """(whole, verb, rest) of commands: in backticks, at the beginning of a line of shell, or anywhere behind "slipway "."""
    for m in re.finditer(r"(?:`|^ {4}(?:build/)?|^\$ )slipway ([a-z][a-z-]*)([^`\n|#;&]*)", text, re.M):
        yield m[0], m[1], m[2]
    for m in re.finditer(r"(?<![\w/.`-])slipway ([a-z][a-z-]*)", text):
        if m[1] not in PROSE:
            yield m[0], m[1], ""


def test_commands_exist(verbs):
    bad = []
    for path, text in texts():
        for whole, verb, rest in commands(text):
            known = verbs.get(verb)
            if known is None:
                bad.append(f"{path.relative_to(ROOT)}: {whole.strip()}: there is no verb {verb}")
                continue
            words = re.search(rf"usage: slipway {verb} (?:\[OPTION\]\.\.\. )?([a-z-]+(?:\|[a-z-]+)+)", known)
            first = re.match(r" +([a-z][a-z-]+)\b", rest)
            if words and first and first[1] not in words[1].split("|"):
                bad.append(f"{path.relative_to(ROOT)}: {whole.strip()}: {verb} does not know {first[1]}")
            for option in re.findall(r"(?<=\s)--([a-z][a-z-]+)", rest.split(" -- ")[0]):
                if f"--{option}" not in known and f"--{option}" not in run("help"):
                    bad.append(f"{path.relative_to(ROOT)}: {whole.strip()}: {verb} has no --{option}")
    assert not bad, "\n".join(bad)


def look_up(schema, path):
    """The property at a dotted path, "refused", or None."""
    here = schema["properties"]["spec"]
    for word in path:
        forms = [here, *here.get("anyOf", [])]
        forms += [f["items"] for f in forms if "items" in f]
        forms += [g for f in forms for g in f.get("anyOf", [])]
        bodies = [schema["$defs"][f["$ref"].rsplit("/", 1)[1]] if "$ref" in f else f for f in forms]
        found = [b["properties"][word] for b in bodies if word in b.get("properties", {})]
        if not found:
            return None if any("properties" in b for b in bodies) else here  # what is below is free
        here = found[0]
        if "not" in here:
            return "refused"
    return here


def test_options_exist(schema):
    top = "|".join(schema["properties"]["spec"]["properties"])
    bad, seen = [], 0
    for path, text in texts():
        for m in re.finditer(rf"(?<![\w./:@`-])`?(?:spec\.)?({top})((?:(?:\[\d*\])?\.[a-zA-Z][a-zA-Z0-9]*)+)(?![\w-]*[/@])", text):
            words = [m[1], *re.findall(r"\.([a-zA-Z][a-zA-Z0-9]*)", m[2])]
            if path.name == "facts.c" and m[1] == "os":  # of the file of facts
                continue
            if OTHERS & set(words) and look_up(schema, words) is None:
                continue
            seen += 1
            found, name = look_up(schema, words), ".".join(words)
            if found is None:
                bad.append(f"{path.relative_to(ROOT)}: there is no option {name}")
            elif found == "refused" and not name.startswith(DORMANT.get(f"{path.parent.name}/{path.name}", "\0")) and path.name != "config.md":
                bad.append(f"{path.relative_to(ROOT)}: {name} is refused")
    assert not bad, "\n".join(bad)
    assert seen > 200


@pytest.mark.parametrize("page", [p for p in PAGES if p.suffix == ".md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_clusters_in_pages_pass_check(page, tmp_path):
    for block in re.findall(r"(?ms)^```ya?ml\n(.*?)^```", page.read_text()):
        if "kind: Cluster\n" in block:
            (tmp_path / "cluster.yaml").write_text(block)
            r = subprocess.run([SLIPWAY, "check"], cwd=tmp_path, capture_output=True, text=True)
            assert r.returncode == 0 and r.stderr == "", r.stderr


def test_every_example_is_yaml():
    for path in ROOT.glob("examples/*.yaml"):
        assert yaml.safe_load(path.read_text())["kind"] == "Cluster"
