"""What a run shows where there is no terminal: lines, JSON events, the report."""
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

import script

HOSTILE = "<script>alert(1)</script> \"'& \x1b[31mred\x1b[0m \u202eback"


def hostile():
    return f"step apply n1\nat 50 changed apply n1 failed {HOSTILE}\nat 60 doing apply n1 500 {HOSTILE}\nat 100 fail apply n1 {HOSTILE}\n".encode()


def test_lines(play):
    r = play(script.five(0.3))
    lines = r.err.decode().splitlines()
    assert r.status == 3 and r.out == b""
    assert any(re.fullmatch(r" +\d\.\d s  c1: apply: done in \d\.\d s", x) for x in lines)
    assert any(re.fullmatch(r" +\d\.\d s  prepare: unchanged", x) for x in lines)
    assert any("w3: apply: failed: the unit kubelet.service did not start" in x for x in lines)
    assert any(x.strip() == "preflight: w4: its clock is 12 seconds behind; set the clock" for x in lines)
    assert not any("/etc/kubernetes/file-0.yaml" in x for x in lines), "every file of an apply belongs in the report"
    assert lines[-1].startswith("report: ") and lines[-1].endswith("-failed.html")
    assert b"\x1b" not in r.err, "no cursor tricks where there is no terminal"


WAITS = """step Ready w1
step etcd -
at 10 doing Ready w1 0 the pod network is not there
at 20 later Ready w1 15
at 1500 doing Ready w1 0 kubelet does not answer
at 1700 later Ready w1 10
at 3500 later Ready w1 15
at 4900 later Ready w1 20
at 7000 done Ready w1
at 7100 done etcd -
"""


def still(played):
    """{step: [(seconds, reason)]}"""
    found = {}
    for what, seconds, why in re.findall(r"(?m)^ *[\d.]+ s  (.*): still running after (\d+) s(.*)$", played.err.decode()):
        found.setdefault(what, []).append((int(seconds), why))
    return found


def test_a_step_that_takes_long_is_listed(play):
    """Not in its first 20 seconds, then at most once in 30 seconds, with the newest reason."""
    found = still(play(WAITS))
    assert set(found) == {"w1: Ready", "etcd"}
    for lines in found.values():
        times = [seconds for seconds, _ in lines]
        assert len(times) > 1 and times[0] >= 20 and all(b - a >= 30 for a, b in zip(times, times[1:])), found
    assert found["w1: Ready"][-1][1] == ": kubelet does not answer" and found["etcd"][-1][1] == ""


def test_steps_that_take_long_are_no_events(play):
    played = play(WAITS, "json")
    assert not still(played) and b"still" not in played.out
    assert [json.loads(x)["event"] for x in played.out.splitlines()].count("progress") == 2


def test_json(play):
    r = play(script.five(0.3), "json")
    events = [json.loads(x) for x in r.out.decode().splitlines()]
    assert events[0]["event"] == "begin" and (events[0]["verb"], events[0]["cluster"]) == ("up", "demo")
    assert events[-1]["event"] == "end" and events[-1]["result"] == "failed" and events[-1]["report"].endswith("-failed.html")
    steps = [(e["node"], e["step"], e["state"]) for e in events if e["event"] == "step"]
    assert (None, "artifacts", "running") in steps and (None, "artifacts", "done") in steps and (None, "prepare", "kept") in steps
    assert ("w3", "apply", "failed") in steps and ("w3", "Ready", "skipped") in steps and (None, "DNS", "skipped") in steps
    failed = next(e for e in events if e.get("state") == "failed" and e["event"] == "step")
    assert failed["error"].startswith("the unit kubelet.service") and failed["hint"] == "look at its journal" and failed["ms"] > 0
    assert sum(e["event"] == "change" and e["node"] == "c1" for e in events) == 4
    assert any(e["event"] == "progress" and e.get("permille") == 500 and e["doing"] for e in events)
    assert [e["at"] for e in events[1:-1]] == sorted(e["at"] for e in events[1:-1])
    assert r.err.decode().splitlines()[0].startswith("report: ")


def test_hostile_lines_and_json(play):
    r = play(hostile())
    assert b"\x1b" not in r.err and "\u202e" not in r.err.decode()
    events = [json.loads(x) for x in play(hostile(), "json").out.decode().splitlines()]
    assert next(e for e in events if e["event"] == "change")["change"] == "failed " + HOSTILE


# What nodes, pods, API objects and mirrors may say: each must come out harmless, in one line.
SAID = {"clear": "\x1b[2J", "title": "\x1b]0;x\x07", "c1": "\u009b31m", "back": "\u202edrawkcab\u2066", "marks": "\u200e\u200f\u061c", "hidden": "a\u200bb\ufeff", "over": "yes\x08\x08\x08no", "line": "\u2028x\u0085y"}


def harmless(text):
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text)


@pytest.mark.parametrize("what", SAID)
def test_whatever_is_said_is_harmless(play, what):
    said = SAID[what]
    script = f"step look n{said}1\nat 1 doing look n{said}1 10 asks {said}\nat 2 changed look n{said}1 drift {said}\nat 3 fail look n{said}1 event {said} end\n"
    r = play(script)
    assert harmless(r.err.decode()) and harmless(r.report)
    assert "drift" in r.err.decode() and "end" in r.err.decode()
    out = play(script, "json").out
    assert out.isascii() and harmless(out.decode())
    assert any("drift" in (json.loads(x).get("change") or "") for x in out.decode().splitlines())


def test_json_of_bytes_that_are_no_text(play):
    events = [json.loads(x) for x in play(b"step a n1\nat 20 changed a n1 \xff\xfe\nat 50 done a n1\n", "json").out.splitlines()]
    assert next(e for e in events if e["event"] == "change")["change"] == "\\xff\\xfe"


class Page(HTMLParser):
    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.open, self.styles = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.styles if self.open and self.open[-1] == "style" else self.text).append(data)


def test_report(play):
    page = Page(play(script.five(0.3)).report)
    text = " ".join(" ".join(page.text).split())
    assert not page.open
    for lane in ("the cluster", "c1", "w1", "w2", "w3", "w4"):
        assert lane in page.text
    assert "up demo failed" in text and "25 steps · 22 changes" in text
    assert "w3: apply the unit kubelet.service did not start: exited with status 1 look at its journal" in text
    assert "created /etc/kubernetes/file-0.yaml" in text
    bars = [v for t, k, v in page.attributes if t == "div" and k == "class" and v.startswith("bar ")]
    assert len(bars) == 25 and bars.count("bar failed") == 1 and bars.count("bar kept") == 1 and bars.count("bar skipped") == 2
    for _, k, v in page.attributes:
        assert k not in ("src", "href") and "http://" not in v and "https://" not in v, "one file that needs nothing else"


def test_report_of_a_good_run_that_changed_nothing(play):
    r = play("step a n1\nat 20 kept a n1\n")
    assert r.status == 0 and "Nothing: everything was unchanged." in r.report and "class=\"good\"" in r.report


def test_each_run_leaves_its_own_report(play, tmp_path):
    first, second = play(script.five(0.01)).report, play("begin up demo\n").report
    names = sorted(p.name for p in (tmp_path / "reports").iterdir())
    assert len(names) == 2 and names[0].startswith("0001-") and names[0].endswith("-up-failed.html") and names[1].startswith("0002-"), names
    assert (tmp_path / "reports" / names[0]).read_text() == first and (tmp_path / "report.html").resolve().name == names[1] and first != second


def test_old_reports_go_and_the_first_stays(play, tmp_path):
    (tmp_path / "reports").mkdir()
    for i in range(1, 101):
        (tmp_path / "reports" / f"{i:04}-20261117T064012Z-up-done.html").touch()
    (tmp_path / "reports" / "notes.txt").touch()
    play(script.five(0.01))
    names = sorted(p.name for p in (tmp_path / "reports").iterdir())
    assert "notes.txt" in names and names[0].startswith("0001-") and names[-2].startswith("0101-") and len(names) == 52, names


def test_report_is_not_markup_of_others(play):
    report = play(hostile()).report
    page = Page(report)
    assert "script" not in page.tags and "<script" not in report and "\x1b" not in report and "\u202e" not in report
    assert "<script>alert(1)</script> \"'& \\u{1b}[31mred" in "".join(page.text)
    assert not any(k.startswith("on") for _, k, _ in page.attributes)


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
@pytest.mark.parametrize("size, dark", [("800,400", 0), ("800,400", 1), ("420,600", 0)])
def test_report_renders(play, tmp_path, size, dark):
    """A browser shows the lanes: the picture is not one colour, and the page has the failed bar."""
    play(script.five(0.1))
    shot = tmp_path / "shot.png"
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                    "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={size}",
                    f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--screenshot={shot}", f"file://{tmp_path}/report.html"],
                   capture_output=True, timeout=900, check=True)
    pixels = colours(shot)
    bad, page = ((0xf0, 0x68, 0x5c), (0x10, 0x16, 0x1d)) if dark else ((0xc5, 0x35, 0x2b), (0xf5, 0xf7, 0xf9))
    assert pixels.get(bad, 0) > 500, "the failed bar and the badge are red"
    assert pixels.get(page, 0) > 5000, "the page has its own ground"


def colours(path):
    """How often each colour is in a PNG of 8-bit RGB(A)."""
    import struct
    import zlib
    from collections import Counter
    data, at, body = path.read_bytes(), 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", chunk[:10])
            assert depth == 8 and colour in (2, 6)
        if kind == b"IDAT":
            body += chunk
        at += n + 12
    size = 4 if colour == 6 else 3
    raw, stride, last, count = zlib.decompress(body), width * size, bytearray(width * size), Counter()
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, up, corner = line[x - size] if x >= size else 0, last[x], last[x - size] if x >= size else 0
            near = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
            line[x] = (line[x] + (0, left, up, (left + up) // 2, near)[kind]) & 255
        for x in range(0, stride, size):
            count[tuple(line[x:x + 3])] += 1
        last = line
    return count
