"""Lines in a file of others, and commands: what users add to a node."""
import os

import pytest

from wire import entry, run

BEGIN, END = "# slipway: begin\n", "# slipway: end\n"
OURS = "192.0.2.5\tregistry.example.net\n"
OTHERS = "127.0.0.1 localhost\n# slipway: ending soon\n"
RESET = 3


def block(text=OURS):
    return [entry("file", "/etc/a", content="a"), entry("block", "/etc/hosts", content=text)]


@pytest.fixture
def hosts(root):
    path = root / "etc/hosts"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OTHERS)
    path.chmod(0o640)
    return path


def test_lines_are_added_and_others_stay(argv, hosts):
    assert run(argv, block()).states()["/etc/hosts"] == "changed"
    assert hosts.read_text() == OTHERS + BEGIN + OURS + END
    assert hosts.stat().st_mode & 0o777 == 0o640, "its mode is its owner's"
    assert run(argv, block()).states()["/etc/hosts"] == "same"
    hosts.write_text("# first\n" + hosts.read_text() + "10.0.0.1 other\n")
    o = run(argv, block(OURS + "fd00::5\tsix\n"))
    assert o.states()["/etc/hosts"] == "changed" and "/etc/hosts" not in o.drift, "other lines are no drift"
    assert hosts.read_text() == "# first\n" + OTHERS + BEGIN + OURS + "fd00::5\tsix\n" + END + "10.0.0.1 other\n"


def test_lines_that_vanish_are_put_back(argv, hosts):
    run(argv, block())
    hosts.write_text(OTHERS)
    o = run(argv, block())
    assert "/etc/hosts" in o.drift and o.states()["/etc/hosts"] == "changed"
    hosts.write_text(OTHERS + BEGIN + "192.0.2.66 evil\n" + END)
    assert "/etc/hosts" in run(argv, block()).drift and hosts.read_text() == OTHERS + BEGIN + OURS + END
    hosts.write_text((OTHERS + BEGIN + OURS + END).rstrip("\n"))
    o = run(argv, block(OURS * 2))
    assert "/etc/hosts" not in o.drift and hosts.read_text() == OTHERS + BEGIN + OURS * 2 + END


def test_a_block_without_its_end_takes_no_line_of_others(argv, hosts):
    hosts.write_text(BEGIN + "10.0.0.1 other\n")
    run(argv, block())
    assert hosts.read_text() == BEGIN + "10.0.0.1 other\n" + BEGIN + OURS + END


@pytest.mark.parametrize("how", ["leaves the spec", "reset"])
def test_only_our_lines_are_removed(argv, hosts, how):
    hosts.write_text(OTHERS.rstrip("\n"))  # without a final line break
    run(argv, block())
    hosts.write_text(hosts.read_text() + "10.0.0.1 since\n")
    o = run(argv, block()[:1] if how == "leaves the spec" else [], mode=0 if how == "leaves the spec" else RESET)
    assert o.done.status == 0 and o.states()["/etc/hosts"] == "removed"
    assert hosts.read_text() == OTHERS + "10.0.0.1 since\n"


def test_a_file_that_was_not_there(argv, root):
    assert run(argv, block()).states()["/etc/hosts"] == "created"
    assert (root / "etc/hosts").read_text() == BEGIN + OURS + END
    run(argv, block()[:1])
    assert not (root / "etc/hosts").exists()


def test_what_is_no_file_is_left_alone(argv, root, hosts):
    hosts.rename(root / "etc/elsewhere")
    hosts.symlink_to("elsewhere")
    o = run(argv, block())
    assert o.states()["/etc/hosts"] == "failed" and "it is a link" in o.details()["/etc/hosts"]
    assert hosts.is_symlink() and (root / "etc/elsewhere").read_text() == OTHERS


# ---- commands ----

whole = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def words(*argv):
    return "".join(w + "\0" for w in argv)


def command(name, *argv, seconds="60"):
    return entry("command", name, content=words(*argv), target=seconds)


@pytest.fixture
def machine(argv, root, tmp_path):
    """The agent with / as its root, in a mount namespace in which /var/lib/slipway is a directory of the test."""
    state = tmp_path / "state"
    state.mkdir()
    program = argv[0]
    return ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /var/lib && mkdir /var/lib/slipway && mount --bind "$1" /var/lib/slipway && exec "$2"', "sh", str(state), str(program)]


@whole
def test_a_command_runs_once(machine, tmp_path):
    log = tmp_path / "log"
    once = [command("echo-1", "sh", "-c", f"echo one >> {log}"), command("touch-2", "touch", str(tmp_path / "a b"))]
    o = run(machine, once)
    assert o.done.status == 0 and o.states() == {"echo-1": "created", "touch-2": "created"}
    assert run(machine, once).states() == {"echo-1": "same", "touch-2": "same"}
    run(machine, [command("echo-3", "sh", "-c", f"echo two >> {log}"), *once])
    assert log.read_text() == "one\ntwo\n" and (tmp_path / "a b").exists()
    run(machine, once[1:])
    run(machine, once)
    assert log.read_text() == "one\ntwo\none\n", "one that was taken out and comes back is new"


@whole
def test_a_command_that_fails(machine, tmp_path):
    gate, log = tmp_path / "gate", tmp_path / "log"
    both = [command("gate-1", "sh", "-c", f"echo first; echo last words >&2; test -e {gate} || exit 3"),
            command("echo-2", "sh", "-c", f"echo ran >> {log}")]
    o = run(machine, both)
    assert o.done.status == 2 and o.details()["gate-1"] == "command gate-1: exit status 3: last words"
    assert o.details()["echo-2"] == "command echo-2: not run, because gate-1 failed" and not log.exists()
    gate.touch()
    assert run(machine, both).done.status == 0 and log.read_text() == "ran\n"


@whole
def test_a_command_has_its_time(machine):
    o = run(machine, [command("sleep-1", "sleep", "60", seconds="1"), command("none-2", "/nonexistent")])
    assert o.details()["sleep-1"] == "command sleep-1: not finished after 1 s"
    o = run(machine, [command("none-2", "/nonexistent")])
    assert o.done.status == 1 and "exit status 127" in o.details()["none-2"]


@whole
def test_the_output_is_bounded(machine):
    o = run(machine, [command("yes-1", "sh", "-c", "yes | head -c 9000000; printf '%05000d' 1; exit 1")])
    assert len(o.details()["yes-1"]) < 500
