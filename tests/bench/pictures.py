#!/usr/bin/env python3
"""Records what slipway looks like, from a real run, for README.md and docs/pictures/.

    make demo && make demo-down     once: builds slipway and the cluster's programs
    tests/bench/pictures.py         needs root, tmux and chromium

It creates the cluster of examples/demo.yaml in build/pictures, and removes it at the end. The text of
`slipway plan`, one frame of the live progress of `slipway up` and the text of `slipway status` replace
the blocks between <!-- NAME --> and <!-- end --> in README.md. The report becomes
docs/pictures/report.png. SLIPWAY names another program than build/slipway.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
WORK = ROOT / "build" / "pictures"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "pictures" / "report.png"
COLUMNS, ROWS = 100, 30
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--blink-settings=preferredColorScheme=1"]


def slipway(*args):
    r = subprocess.run([SLIPWAY, *args], cwd=WORK, stdout=subprocess.PIPE, text=True, env=environment())
    if r.returncode:
        sys.exit(f"slipway {' '.join(args)}: exit status {r.returncode}")
    return r.stdout


def environment():
    cache = os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway"
    return dict(os.environ, PATH=f"{cache}/go/bin:{os.environ['PATH']}", LC_ALL="C.UTF-8")


def tmux(*args):
    return subprocess.run(["tmux", "-S", str(WORK / "tmux"), *args], capture_output=True, text=True, env=environment(), check=True).stdout


def live():
    """The frames that `slipway up` draws on a terminal, every tenth of a second."""
    frames = []
    tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(WORK), f"{SLIPWAY} up --yes; echo $? > status; sleep 5")
    while not (WORK / "status").exists():
        frame = [line.rstrip() for line in tmux("capture-pane", "-p").splitlines()]
        if not frames or frame != frames[-1]:
            frames.append(frame)
        time.sleep(0.1)
    tmux("kill-server")
    if (WORK / "status").read_text().strip() != "0":
        sys.exit("slipway up failed:\n" + "\n".join(frames[-1]))
    return frames


def typical(frames):
    """The frame in which the most steps are running."""
    return max(frames, key=lambda frame: sum(bool(re.search(r"[━█▉-▏⠀-⣿]", line)) for line in frame))


def screen(title, lines):
    """Text of a terminal, as Markdown; leading and trailing empty lines are left out."""
    body = "\n".join(lines).strip("\n")
    return f"{title}:\n\n```text\n{body}\n```"


def put(text, name, body):
    """Replaces one block of README.md."""
    text, n = re.subn(rf"(?s)(<!-- {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{body}\n\n{m[2]}", text)
    if n != 1:
        sys.exit(f"README.md has {n} blocks <!-- {name} -->")
    return text


def picture():
    """The upper part of the report's page."""
    PICTURE.parent.mkdir(exist_ok=True)
    report = (WORK / ".slipway" / "demo" / "report.html").resolve()
    subprocess.run([*CHROMIUM, f"--user-data-dir={WORK / 'profile'}", "--window-size=1000,760", f"--screenshot={PICTURE}", f"file://{report}"],
                   capture_output=True, check=True)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--ext", ".png", "64", PICTURE], check=True)


def main():
    if (ROOT / "build" / "demo" / ".slipway" / "demo" / "machines").exists():
        sys.exit("the demo's machines use the same network: make demo-down first")
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "demo.yaml", WORK / "cluster.yaml")
    try:
        plan = slipway("plan").splitlines()
        frames = live()
        (WORK / "frames.txt").write_text("\n\f\n".join("\n".join(f) for f in frames))
        status = slipway("status").splitlines()
        picture()
    finally:
        slipway("down", "--yes")
    text = README.read_text()
    text = put(text, "plan", screen("The plan of the demo", plan))
    text = put(text, "progress", screen("The progress of `slipway up` on a terminal", typical(frames)))
    text = put(text, "status", screen("The state of the cluster afterwards (`slipway status`)", status))
    text = put(text, "report", "The report of that run:\n\n![A timeline of the steps of each node](docs/pictures/report.png)")
    README.write_text(text)


if __name__ == "__main__":
    main()
