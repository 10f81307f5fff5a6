#!/usr/bin/env python3
"""Measures slipway beside what people use today, and writes docs/benchmarks.md.

    make bench                      every part
    tests/bench/run.py [PART...]    some: the other sections of the page stay as they are

A part is a row of PARTS: a module beside this file with a TITLE and a function section(), which measures and returns the lines of its section. Every figure is
a ratio of two things measured minutes apart on the same computer. Nothing here is a test: tests have no time limits.
"""
import importlib
import os
import sys
import time
from pathlib import Path

PARTS = ["render", "ansible", "grow", "many", "kubeadm", "upgrade", "clouds"]  # in the page's order
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks.md"
INTRO = ["# Benchmarks", "", "Written by `make bench` (a part alone: `tests/bench/run.py PART`): everything in one table was measured in one run, side by side, on one "
         f"computer with {os.cpu_count()} cores. Ratios carry over to other computers; seconds do not.", ""]


def sections():
    """{title: lines} of the page as it is."""
    out, title = {}, None
    for line in PAGE.read_text().splitlines() if PAGE.exists() else ():
        if line.startswith("## "):
            title = line[3:]
            out[title] = []
        elif title:
            out[title].append(line)
    return out


def write(title, lines, titles):
    """Puts one section into the page; the file is never half written."""
    page = dict(sections(), **{title: ["", *lines]})
    text = list(INTRO)
    for t in [*titles, *(t for t in page if t not in titles)]:
        if t in page:
            text += [f"## {t}", *page[t], *([""] if page[t][-1] else [])]
    temp = PAGE.with_suffix(".new")
    temp.write_text("\n".join(text).rstrip("\n") + "\n")
    temp.replace(PAGE)


def main():
    wanted = sys.argv[1:] or PARTS
    for name in wanted:
        if name not in PARTS:
            sys.exit(f"bench: there is no part {name}; parts are {', '.join(PARTS)}")
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    modules = {name: importlib.import_module(name) for name in PARTS}
    for name in wanted:
        start = time.monotonic()
        print(f"{name} ...", flush=True)
        lines = modules[name].section()
        write(modules[name].TITLE, lines, [m.TITLE for m in modules.values()])
        print("\n".join(lines), f"{name}: {time.monotonic() - start:.0f} s", sep="\n", flush=True)


if __name__ == "__main__":
    main()
