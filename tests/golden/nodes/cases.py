"""The cases of node rendering, and how one is rendered. test_nodes.py and the judges use it.

A case is a directory with cluster.yaml, perhaps facts.json, and case.json, which says what of it is kept under expected/:

    {"nodes": {"cp1": ["*"], "w1": ["etc/containerd/*"]}, "userData": {"w1": ["cloud-init"]}}

A node's patterns choose files below its root; entries.txt, the list of all entries, is always kept. Secret files are among them, with
keys, tokens and certificates replaced by what they are.
"""
import gzip
import json
import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CASES = sorted(p.parent.name for p in HERE.glob("*/cluster.yaml"))
OWN_SECRETS = {"external-etcd": ["AKIAEXAMPLE", "slash"], "offline": ["pass\"word$HOME"], "proxy-password": ["hunter2"], "hostile": ["p'a\"ss"]}

RANDOM = {"prefix": False, "tokenID": False, "tokenSecret": True, "certificateKey": True, "encryptionKey": True, "vrrpPassword": True}  # of identity.json: is it secret?


def run(*args, cwd=None, status=0):
    """Runs slipway; fails unless it ends with that status."""
    r = subprocess.run([SLIPWAY, *map(str, args)], cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, timeout=900)
    assert r.returncode == status, f"slipway {' '.join(map(str, args))}: status {r.returncode}\n{r.stdout[-2000:].decode(errors='replace')}{r.stderr.decode(errors='replace')}"
    return r


# Secrets: slipway refuses those that others may read, and git keeps no such modes.
for name in ("external-etcd/s3-key", "hostile/password", "offline/registry-password"):
    (HERE / name).chmod(0o600)


def render(case, out, state, *args, status=0):
    facts = HERE / case / "facts.json"
    more = ["--facts", facts] if facts.exists() else []
    return run("render", "-f", HERE / case / "cluster.yaml", "-d", out, "--state", state, *more, *args, status=status)


def files(directory):
    """{relative path: (mode, bytes)}; of links the target, of directories nothing."""
    found = {}
    for path in sorted(Path(directory).rglob("*")):
        name, mode = str(path.relative_to(directory)), path.lstat().st_mode
        found[name] = (mode, os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"")
    return found


def plain(data):
    """User-data as people read it."""
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def identity(state):
    """The Identity's own values by name, nested names joined by dots."""
    def flat(value, name):
        if isinstance(value, dict):
            for k, v in value.items():
                yield from flat(v, f"{name}.{k}" if name else k)
        elif isinstance(value, list):
            for i, v in enumerate(value):
                yield from flat(v, f"{name}.{i}")
        elif isinstance(value, str):
            yield name, value
    for path in sorted(Path(state).glob("*/identity.json")):
        yield from flat(json.loads(path.read_text()), "")


def secrets(case, state):
    """Every text that must not be seen: a line of each private key, the Identity's secret values, the case's own passwords."""
    found = list(OWN_SECRETS.get(case, []))
    for path in Path(state).rglob("*"):
        if path.is_file():
            for body in re.findall(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n(.*?)\n-----END", path.read_text(errors="replace"), re.S):
                found.append(body.splitlines()[1] if "\n" in body else body)
    for name, value in identity(state):
        if RANDOM.get(name):
            found.append(value)
    assert len(found) > len(RANDOM), "few secrets found: has the state directory changed?"
    return found


def normalise(text, state):
    """Without what differs from one Identity to the next."""
    text = re.sub(r"-----BEGIN ([A-Z ]+)-----\n.*?\n *-----END \1-----", lambda m: f"<{m[1].lower()}>", text, flags=re.S)
    text = re.sub(r"(?m)^( *(certificate-authority|client-certificate|client-key)-data: ?)\S+$", r"\1<\2>", text)
    text = text.replace("<ec private key>", "<private key>")
    text = re.sub(r"sha256:[0-9a-f]{64}", "<digest>", text)
    text = re.sub(r'(slipway\.dev/digest: )"[0-9a-f]{16}"', r'\1"<digest>"', text)  # salted with a key of the cluster
    for name, value in sorted(identity(state), key=lambda i: -len(i[1])):
        if name in RANDOM:
            text = re.sub(rf"(?<![a-z0-9]){re.escape(value)}(?![a-z0-9])", f"<{name}>", text)  # once a prefix was "secre", and every "secret" differed
    return re.sub(r"([\"'])(<[\w.]+>)\1", r"\2", text)  # a random value may or may not need quotes


def entries(spec):
    """nodespec.json as one line an entry, without digests."""
    lines = []
    for e in json.loads(spec)["entries"]:
        e.pop("sha256", None)
        e.pop("size", None)
        first = [e.pop(k, "") for k in ("kind", "class", "mode")]
        what = e.pop("path", None) or e.pop("name", "")
        rest = " ".join(f"{k}={','.join(map(str, v)) if isinstance(v, list) else v}" for k, v in e.items())
        lines.append(f"{first[0]:<9} {first[1]:<10} {first[2]:<5} {what}{'  ' + rest if rest else ''}".rstrip())
    return "\n".join(lines) + "\n"
