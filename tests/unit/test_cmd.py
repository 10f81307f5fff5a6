"""The command line as a person and a shell meet it."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()


def slipway(*args, cwd=ROOT, **kw):
    return subprocess.run([SLIPWAY, *args], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)


def test_version():
    assert slipway("--version").stdout == slipway("version").stdout == slipway("-V").stdout
    assert slipway("version", "-o", "json").stdout.startswith('{"version": "')


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
    (["chekc"], "slipway: there is no verb 'chekc'", "hint: did you mean 'slipway check'?"),
    (["check", "--fiel", "x"], "slipway: there is no option --fiel", "hint: did you mean --file?"),
    (["check", "-f"], "slipway: --file needs a value: FILE", None),
    (["check", "-o", "yaml"], "slipway: --output: there is no output 'yaml'", "hint: choose one of: text json"),
    (["check", "--secrets"], "slipway: 'slipway check' takes no --secrets", "hint: slipway help check lists what it takes"),
    (["check", "extra"], "slipway: 'slipway check' does not take 'extra'", "hint: slipway help check explains"),
    (["completion"], "slipway: 'slipway completion' needs an argument: bash|zsh|fish", "hint: slipway help completion explains"),
    (["completion", "tcsh"], "slipway: no completion for 'tcsh'", "hint: choose one of: bash zsh fish"),
    (["help", "nothing"], "slipway: there is no verb 'nothing'", "hint: slipway --help lists what there is"),
    (["check", "-hx"], "slipway: there is no option -hx", "hint: slipway --help lists what there is"),
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
    assert [line.split("\t")[0] for line in r.stdout.splitlines()] == ["cloud-init", "files", "ignition"]


def test_man_page():
    page = slipway("help", "--man").stdout
    r = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-"], input=page, capture_output=True, text=True, env=dict(os.environ, MANWIDTH="100"))
    assert r.returncode == 0 and r.stderr == ""
    text = re.sub(".\x08", "", r.stdout)
    assert "EXIT STATUS" in text and "render" in text and "‐f" not in text
