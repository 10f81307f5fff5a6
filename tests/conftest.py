"""For all tests: SIGTERM ends a run as Ctrl-C does, so that every fixture takes down what it made;
what became of each test is written down for tests/run.py."""
import json
import os
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent / "machines"))  # harness.py, for every directory
OUTCOMES = os.environ.get("SLIPWAY_OUTCOMES")


def end_like_ctrl_c(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: the fixtures are at work from here on
    raise KeyboardInterrupt


def note(**what):
    if OUTCOMES:
        with open(OUTCOMES, "a") as f:
            f.write(json.dumps(what) + "\n")


def reason(report):
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, end_like_ctrl_c)


def pytest_deselected(items):
    for item in items:
        note(file=str(item.path), deselected=item.nodeid)


def pytest_collection_finish(session):
    for item in session.items:
        note(file=str(item.path), test=item.nodeid)


def pytest_collectreport(report):
    if report.outcome != "passed":
        note(test=report.nodeid, outcome=report.outcome, why=reason(report) if report.skipped else "it could not be collected")


def pytest_runtest_logreport(report):
    """A test has passed when its end has too: teardown's word is the last."""
    if report.outcome == "failed" or (report.skipped and not hasattr(report, "wasxfail")):
        note(test=report.nodeid, outcome=report.outcome, why=reason(report) if report.skipped else report.when)
    elif report.when == "teardown":
        note(test=report.nodeid, outcome="passed")
