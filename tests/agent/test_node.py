"""The agent's record says which node this host is: an order for another is refused, and what is there stays."""
import pytest
import wire
from wire import Operator, Stopped, entry, run

ENTRIES = [entry("file", "/etc/f", content="one")]
OTHERS = [entry("file", "/etc/f", content="two")]


def record(root):
    return (root / "var/lib/slipway/applied").read_text()


def test_the_name_is_recorded_and_told(argv, root):
    run(argv, ENTRIES, node="w1")
    assert "\nnode\tw1\n" in record(root)
    o = Operator(argv).hello()
    assert o.facts["node"] == "w1" and o.facts["cluster"] == "test"
    o.close()
    assert run(argv, OTHERS, node="w1").done.status == 0
    assert (root / "etc/f").read_text() == "two"


@pytest.mark.parametrize("mode", [0, 2, 3, 4])
def test_a_spec_for_another_node_is_refused(argv, root, mode):
    run(argv, ENTRIES, node="w1")
    before = record(root)
    o = Operator(argv).hello()
    with pytest.raises(Stopped, match="this host is node w1 of the cluster, but the order is for node c1; check the address of c1; to give this host another name, reset it first as w1"):
        o.spec(OTHERS if mode != 3 else [], node="c1").blobs().apply(mode)
    o.close()
    assert o.status == 8 and record(root) == before and (root / "etc/f").read_text() == "one"


def test_an_apply_for_another_node_is_refused(argv, root):
    run(argv, ENTRIES, node="w1")
    o = Operator(argv).hello().spec([], node="w1")
    o.write(wire.frame(wire.APPLY, mode=3, node="c1"))
    assert "the order is for node c1" in o.expect(wire.ERROR).text
    o.close()
    assert (root / "etc/f").exists() and record(root)


def test_a_program_for_another_node_is_not_run(argv, root):
    run(argv, ENTRIES, node="w1")
    o = Operator(argv).hello()
    o.run("touch", str(root / "ran"), node="c1")
    assert "the order is for node c1" in o.expect(wire.ERROR).text
    o.close()
    assert not (root / "ran").exists()
    o = Operator(argv).hello()
    o.run("touch", str(root / "ran"), node="w1")
    assert o.expect(wire.EXIT).status == 0
    o.close()
    assert (root / "ran").exists()


def test_a_record_of_an_earlier_version_is_completed(argv, root):
    run(argv, ENTRIES, node="w1")
    path = root / "var/lib/slipway/applied"
    path.write_text(record(root).replace("node\tw1\n", ""))
    o = Operator(argv).hello()
    assert "node" not in o.facts
    o.close()
    assert run(argv, ENTRIES, node="w1").done.status == 0
    assert "\nnode\tw1\n" in record(root)
    with pytest.raises(Stopped, match="this host is node w1"):
        run(argv, ENTRIES, node="w2")


def test_after_a_reset_it_may_have_another_name(argv, root):
    run(argv, ENTRIES, node="w1")
    assert run(argv, [], 3, node="w1").done.status == 0
    assert run(argv, ENTRIES, node="w2").done.status == 0
    assert "\nnode\tw2\n" in record(root)


@pytest.mark.parametrize("name", ["", "a\tb", "a\nspec\tx"])
def test_a_name_is_a_plain_word(argv, root, name):
    with pytest.raises(Stopped, match="empty or has a tab or line break"):
        run(argv, ENTRIES, node=name)
