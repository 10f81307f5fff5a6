"""What a run shows on a terminal: a real one (tmux), its screen captured, resized in the middle."""
import os
import re
import shutil
import subprocess
import time

import pytest

import script

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


class Screen:
    def __init__(self, directory, command, cols, rows, env):
        self.socket = str(directory / "tmux")
        words = " ".join(f"{k}={v}" for k, v in env.items())
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), f"printf 'before\\n'; {words} {command}; case $? in 0|3) echo ended;; *) echo broken;; esac; sleep 60")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C.UTF-8"), check=True).stdout

    def lines(self, *args):
        return [x.rstrip() for x in self.tmux("capture-pane", "-p", *args).splitlines() if x.strip()]

    def wait(self, pattern, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = self.lines()
            if re.search(pattern, "\n".join(lines), re.M):
                return lines
            time.sleep(0.05)
        raise AssertionError(f"{pattern} did not come:\n" + "\n".join(lines))

    def resize(self, cols, rows):
        self.tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def value(self, name):
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


@pytest.fixture
def screen(tool, tmp_path):
    made = []

    def start(text, cols=90, rows=20, **env):
        (tmp_path / "script").write_text(text)
        made.append(Screen(tmp_path, f"{tool} {tmp_path} < {tmp_path}/script", cols, rows, {"LC_ALL": "C.UTF-8", **env}))
        return made[-1]
    yield start
    for s in made:
        s.close()


def names(lines):
    return [m[1] for x in lines if (m := re.match(r"\S (\S+) ", x))]


def test_a_line_a_node(screen):
    s = screen(script.five())
    lines = s.wait(r"^\S c1 +apply +\d\.\d s  █+░+  sending \d+ of 90 MB")
    assert names(lines[-7:-1]) == ["cluster", "c1", "w1", "w2", "w3", "w4"]
    assert re.fullmatch(r"up demo +\d\.\d s  [█░]{12}  \d+ of 25 steps", lines[-1])
    assert s.value("cursor_flag") == "0", "the cursor is away while the block is drawn"
    assert lines[0] == "before" and lines[1] == "preflight: w4: its clock is 12 seconds behind; set the clock"
    lines = s.wait("^ended")
    text = "\n".join(lines)
    assert s.value("cursor_flag") == "1", "and back at the end"
    assert re.search(r"^✓ c1 +Ready +\d\.\d s$", text, re.M) and re.search(r"^✗ w3 +apply +\d\.\d s  the unit kubelet", text, re.M)
    assert "w3: apply: failed: the unit kubelet.service did not start: exited with status 1" in lines
    assert re.search(r"^up demo: failed +\d\.\d s  █+░+  22 of 25 steps, 1 failed\nreport: ", text, re.M)
    assert re.search(r"report: /\S*/reports/0001-20\d\d\d\d\d\dT\d{6}Z-up-failed.html", text.replace("\n", "")), "the terminal folds the line"
    assert sum(x.startswith(("✓ c1", "⠋ c1")) for x in lines) == 1, "one block, drawn over itself"


def test_more_nodes_than_rows(screen):
    s = screen(script.many(60), rows=12)
    lines = s.wait(r"… and \d+ more")
    lines = s.wait("^✗ n59 +apply .*the disk is full")
    assert len(lines) <= 12 and re.search(r"^  … and 51 more: 1 done, 50 running$", "\n".join(lines), re.M)
    s.wait("^ended")


def test_resized(screen):
    s = screen(script.five(2), cols=100, rows=20)
    s.wait("sending")
    s.resize(40, 20)
    time.sleep(0.4)
    narrow = s.wait(r"^up demo")
    assert all(len(x) <= 40 for x in narrow)
    assert names(narrow[-7:-1]) == ["cluster", "c1", "w1", "w2", "w3", "w4"] and re.match(r"up demo +\d\.\d s  \d+ of 25 steps$", narrow[-1])
    assert "before" in s.lines("-S", "-100"), "what was there scrolls away, and is not drawn over"
    assert len([n for n in names(narrow) if n == "c1"]) == 1, "nothing of the wide block is left:\n" + "\n".join(narrow)
    s.resize(120, 6)
    time.sleep(0.4)
    short = s.lines()
    assert len(short) <= 6 and any("more" in x for x in short)
    s.wait("^ended", 30)


def test_no_colour(screen):
    s = screen(script.five(0.5), NO_COLOR="1")
    s.wait("^✓ c1")
    assert "\x1b[" not in "\n".join(s.lines("-e"))
    s.wait("^ended")


def test_colour(screen):
    s = screen(script.five(0.5))
    s.wait("^✗ w3")
    assert "\x1b[31m" in s.tmux("capture-pane", "-p", "-e")


def test_plain_letters(screen):
    lines = screen(script.five(0.3), LC_ALL="C").wait("^ended")
    assert all(x.isascii() for x in lines) and any(x.startswith("+ c1") for x in lines) and any(x.startswith("x w3") for x in lines)


def test_dumb_terminal_gets_lines(screen):
    lines = screen(script.five(0.3), TERM="dumb").wait("^ended")
    assert any("c1: Ready: done in" in x for x in lines) and not any(x.startswith("up demo") for x in lines)


def test_interrupted(screen):
    s = screen(script.five(2))
    s.wait("sending")
    s.tmux("send-keys", "C-c")
    lines = s.wait("^ended")
    assert any(x.startswith("up demo: interrupted") for x in lines)
    assert any(re.match(r"■ c1 +apply +\d+\.\d s  interrupted", x) for x in lines)
    assert s.value("cursor_flag") == "1"


def test_hostile_names_stay_in_their_line(screen):
    s = screen("step apply \x1b[2Jn1\nstep apply 节点一\nat 300 doing apply 节点一 100 下载下载下载下载下载下载下载下载下载下载下载下载\nat 2500 done apply 节点一\n"
               "at 1500 fail apply \x1b[2Jn1 \x1b]0;x\x07bad\n", cols=70)
    lines = s.wait("下载")
    assert lines[0] == "before" and all(sum(2 if ord(c) > 0x2e80 and ord(c) < 0xa000 else 1 for c in x) < 70 for x in lines)
    lines = s.wait("^ended")
    assert any("\\u{1b}]0;x\\u{7}bad" in x for x in lines) and lines[0] == "before"
