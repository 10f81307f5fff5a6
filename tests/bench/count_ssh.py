#!/usr/bin/env python3
"""ssh, with what goes through it counted: called as `ssh` by slipway (grow.py puts it first in PATH), it runs the real one and keeps a file of JSON in the
directory $SSH_COUNT: the host, the bytes each way, and how often an answer followed a question (it may be killed at any moment). What ssh says to ssh is not counted, only what its users say."""
import json
import os
import select
import subprocess
import sys
from pathlib import Path

words, real = sys.argv[1:], os.environ["SSH_REAL"]
if "-T" not in words:  # a question about ssh's own settings: nobody is connected to
    os.execv(real, [real, *words])
proc = subprocess.Popen([real, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
up, down, turns, asked = 0, 0, 0, True  # that it was called at all is the first question
count = Path(os.environ["SSH_COUNT"]) / str(os.getpid())
sources = {0: proc.stdin.fileno(), proc.stdout.fileno(): 1}
while proc.stdout.fileno() in sources:
    for fd in select.select(list(sources), [], [])[0]:
        data = os.read(fd, 1 << 16)
        if not data:
            del sources[fd]
            if fd == 0:
                proc.stdin.close()
            continue
        if fd == 0:
            up, asked = up + len(data), True
        else:
            turns, asked, down = turns + asked, False, down + len(data)
        count.write_text(json.dumps(dict(host=words[words.index("--") + 1], up=up, down=down, turns=turns)))
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(proc.stdin.fileno() if fd == 0 else 1, view):]
        except BrokenPipeError:
            sources.pop(fd, None)
status = proc.wait()
sys.exit(status if status >= 0 else 255)
