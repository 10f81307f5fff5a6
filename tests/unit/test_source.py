"""The house rules that a program can check: includes point left, formatting, file sizes, words that must not appear."""
import fnmatch
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# From left to right: a room includes only itself and rooms before it (docs/architecture.md).
ROOMS = ["base", "config", "pki", "artifact", "node", "deliver", "agent", "cloud", "provider", "kube", "addon", "run", "cluster", "controller", "ui", "cmd"]
# Those that need less than what is left of them.
ONLY = {"agent": {"base", "agent", "deliver"}, "run": {"base", "run"}, "ui": {"base", "run", "ui"}}
# The folders of src/cluster, by the same rule.
CLUSTER = ["site", "etcd", "plan", "apply", "services", "leave", "etcd/drill", "etcd/restore", "upgrade", "certs", "status", "adopt", "up"]
FILES_MAX = 25  # .c files of a folder; src/cmd has one a verb
SOURCES = sorted(p for d in ("src", "tests") for p in (ROOT / d).rglob("*.[ch]"))


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / p for p in out.decode().split("\0") if p and (ROOT / p).is_file()]


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def test_includes_point_left():
    bad = []
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        room = path.relative_to(ROOT / "src").parts[0]
        assert room in ROOMS, f"{path}: the room {room} is not in the design"
        allowed = ONLY.get(room) or set(ROOMS[:ROOMS.index(room) + 1])
        bad += [f"{path.relative_to(ROOT)} includes {target}" for target in includes(path) if "/" not in target or target.split("/")[0] not in allowed]
    assert not bad, "\n".join(bad)


def test_includes_inside_cluster_point_left():
    bad = []
    for path in sorted((ROOT / "src" / "cluster").rglob("*.[ch]")):
        folder = str(path.parent.relative_to(ROOT / "src" / "cluster"))
        assert folder in CLUSTER, f"{path}: the folder {folder} is not in the design"
        for target in includes(path):
            other = str(Path(target).parent.relative_to("cluster")) if target.startswith("cluster/") else folder
            if CLUSTER.index(other) > CLUSTER.index(folder):
                bad.append(f"{path.relative_to(ROOT)} includes {target}")
    assert not bad, "\n".join(bad)


def test_nothing_in_cluster_names_a_cloud():
    """A cloud's own things stay behind provider/provider.h."""
    words = re.compile(r"openstack|\baws\b|amazon|neutron|\bnova\b|octavia|cinder|\bec2\b|provider/(?!provider\.h|bastion\.h)|\"cloud/", re.I)
    bad = [f"{path.relative_to(ROOT)}:{i}: {line.strip()}" for d in ("cluster", "run", "ui") for path in sorted((ROOT / "src" / d).rglob("*.[ch]"))
           for i, line in enumerate(path.read_text().splitlines(), 1) if words.search(line)]
    assert not bad, "\n".join(bad)


def test_no_folder_is_crowded():
    folders = [d for d in sorted((ROOT / "src").rglob("*")) if d.is_dir() and d != ROOT / "src" / "cmd"]
    big = [f"{d.relative_to(ROOT)}: {n} files" for d in folders if (n := len(list(d.glob("*.c")))) > FILES_MAX]
    assert not big, "asking to be two: " + ", ".join(big)


def test_pages_name_files_that_exist():
    """Paths of sources in the pages for contributors."""
    text = {name: (ROOT / name).read_text() for name in ("CONTRIBUTING.md", "docs/architecture.md")}
    rooms = "|".join(ROOMS)
    found = [(page, m[1]) for page, t in text.items() for m in re.finditer(rf"`(?:src/)?((?:{rooms})/[\w./*-]*)`", t)]
    found += [("docs/architecture.md", f"cluster/{m[1]}/{f}") for m in re.finditer(r"(?m)^\| `(\S+)/` \|.*\| (`[^|]*`) \|$", text["docs/architecture.md"])
              if m[1] in CLUSTER for f in re.findall(r"`([^`]+)`", m[2])]
    assert len(found) > 30
    bad = [f"{page}: {path}" for page, path in found if not list((ROOT / "src").glob(path.rstrip("/")))]
    assert not bad, "\n".join(bad)


@pytest.mark.skipif(not shutil.which("clang-format"), reason="clang-format is not installed")
def test_formatting():
    out = subprocess.run(["clang-format", "--dry-run", "-Werror", *SOURCES], cwd=ROOT, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr[:4000]


# Who may write to a terminal without base/print.c, and why.
OWN_WORDS = {
    "base/print.c": "the one place",
    "base/base.c": "no memory is left",
    "base/pack.c": "a program of the build",
    "config/help_pack.c": "likewise",
    "ui/live.c": "the block, drawn in one write of what live_rows.c made harmless",
    "provider/local/keeper.c": "a process of its own, whose errors are read by the one that started it",
    "provider/sudo.c": "a prompt of ours on /dev/tty",
}


def test_all_printing_goes_one_way():
    """The agent's standard error is ssh's, which deliver/link/talk.c reads."""
    call = re.compile(r"(?<![\w.>])(printf|vprintf|puts|putchar|perror|psignal|dprintf|vdprintf)\s*\(|(?<![\w.>])\w+\([^;\n]*\b(stdout|stderr|STDOUT_FILENO|STDERR_FILENO)\b")
    fine = re.compile(r"\b(print_text|print_bytes|print_overview|fflush|ferror|isatty|ioctl|fileno|setvbuf)\(|== stdout|FILE \*|dprintf\(b->log|dup2\(")
    bad = []
    for path in sorted((ROOT / "src").rglob("*.c")):
        name = str(path.relative_to(ROOT / "src"))
        if name in OWN_WORDS or name.startswith("agent/"):
            continue
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.S)
        bad += [f"{name}:{i}: {line.strip()}" for i, line in enumerate(text.splitlines(), 1) if call.search(line) and not fine.search(line)]
    assert not bad, "print through base/print.h: " + "\n".join(bad)


COLUMNS = 100


def test_static_functions_have_their_own_names():
    """A name that occurs once is found by grep."""
    files = {}
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        for name in re.findall(r"^static [\w *]*[ *](\w+)\(", path.read_text(), re.M):
            files.setdefault(name, set()).add(path)
    bad = [f"{name}: " + ", ".join(sorted(str(p.relative_to(ROOT)) for p in where))
           for name, where in sorted(files.items()) if len(where) > 1]
    assert not bad, "rename with the file's topic as prefix:\n" + "\n".join(bad)


def wide_comments(text):
    """Numbers of lines with a comment that are too wide. Lines with a string literal cannot be wrapped."""
    token = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
    comments, strings = set(), set()
    for m in token.finditer(text):
        first = text.count("\n", 0, m.start()) + 1
        (comments if m["comment"] else strings).update(range(first, first + m[0].count("\n") + 1))
    return [i for i, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS and i in comments - strings]


def wide_prose(text):
    """The same of a page, without tables, code blocks and lines with a link."""
    out, fenced = [], False
    for i, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        code = fenced or line.startswith(("    ", "\t", "```"))
        if len(line) > COLUMNS and not code and not line.lstrip().startswith("|") and not re.search(r"\]\(|https?://", line):
            out.append(i)
    return out


def test_comments_and_prose_fit_the_columns():
    bad = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if path.suffix not in (".c", ".h", ".md") or name == "docs/config.md":  # generated from the schema
            continue
        wide = (wide_prose if path.suffix == ".md" else wide_comments)(path.read_text())
        bad += [f"{name}:{i}" for i in wide]
    assert not bad, f"wider than {COLUMNS} columns:\n" + "\n".join(bad)


def test_no_file_is_crowded():
    big = [f"{p.relative_to(ROOT)}: {n} lines" for p in SOURCES if (n := len(p.read_text().splitlines())) > 800]
    assert not big, "asking to be two: " + ", ".join(big)


def test_shell_scripts():
    scripts = [p for p in tracked() if p.suffix == ".sh" or p.read_bytes()[:2] == b"#!" and b"sh" in p.read_bytes().split(b"\n")[0]]
    out = subprocess.run(["shellcheck", "-S", "warning", *scripts], cwd=ROOT, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout[:4000]


def test_names_no_registry_host():
    """Mirrors are read from the computer's own settings; their hosts do not stand in the project."""
    text = "".join(p.read_text(errors="replace") for p in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")] if p.is_file())
    if shutil.which("go"):
        text += subprocess.run(["go", "env", "GOPROXY"], capture_output=True, text=True, env=dict(os.environ, GOTOOLCHAIN="local")).stdout
    hosts = set(re.findall(r"https?://([^/\s,]+)", text))
    hits = [f"{p.relative_to(ROOT)}: {h}" for p in tracked() for h in hosts if h in p.read_text(errors="replace")]
    assert not hits, "\n".join(hits)


# Where the catalogue's Kubernetes versions may stand as text, and why.
VERSIONS_STAND_IN = {
    "src/config/minors.h": "the catalogue", "src/artifact/catalogue.c": "versions of other programs, of which one may be the same number (kubelogin's)",
    "src/config/docs/intro.md": "a page: below it is compared with the catalogue",
    "README.md": "a page", "docs/*.md": "pages", "tests/README.md": "a page",
    "examples/*.yaml": "what people begin with: compared too", "tests/setup/one.yaml": "the file of a demo: compared too",
    "docs/benchmarks.md": "figures of runs that were measured with these versions",
    "tests/golden/*": "inputs and expected outputs: an input keeps its version when the catalogue moves on",
    "tests/fuzz/corpus/*": "inputs",
}


def catalogue():
    text = (ROOT / "src/config/minors.h").read_text()
    return [re.search(rf'KUBERNETES_{which}[\s\\]*"([\d.]+)"', text)[1] for which in ("NEWEST", "PREVIOUS")]


def test_versions_stand_in_the_catalogue():
    """A new version is one edit; the rest asks the program (tests: machines/upstream.py)."""
    word = re.compile("|".join(r"(?<![\d.])" + v.replace(".", r"\\?\.") + r"(?![\d])" for v in catalogue()))
    names = [str(p.relative_to(ROOT)) for p in tracked()]
    free = [n for n in names if not any(Path(n).match(pattern) or fnmatch.fnmatch(n, pattern) for pattern in VERSIONS_STAND_IN)]
    bad = [f"{n}:{i}" for n in free for i, line in enumerate((ROOT / n).read_text(errors="replace").splitlines(), 1) if word.search(line)]
    assert not bad, "ask the catalogue instead: " + ", ".join(bad)


def test_pages_and_examples_say_the_newest_version():
    newest, _ = catalogue()
    pages = [ROOT / "README.md", ROOT / "tests/README.md", ROOT / "tests/setup/one.yaml", ROOT / "src/config/docs/intro.md", *(ROOT / "docs").glob("*.md"),
             *(ROOT / "examples").glob("*.yaml")]
    said = [(p.name, m[1]) for p in pages for m in re.finditer(r"(?:kubernetes: |slipway upgrade |kube-proxy:v)(\d+\.\d+\.\d+)", p.read_text())]
    assert len(said) > 8 and not [s for s in said if s[1] != newest], said


def test_size(tmp_path):
    """The dynamically linked program, stripped, with the agent and all templates in it, stays under 1.5 MB."""
    binary = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway")
    if not binary.exists():
        pytest.skip("not built")
    stripped = tmp_path / "slipway"
    subprocess.run(["strip", "-o", stripped, binary], check=True)
    assert stripped.stat().st_size < 1_500_000
