"""More SSH hosts than links at once: little memory here, and one connection a node where nothing is to do. The hosts and the runs are those of tests/bench/many.py."""
import os
import shutil
import sys
from pathlib import Path

import pytest

if "SLIPWAY" in os.environ:  # the program under test and its tool are of one build
    os.environ["SLIPWAY_BUILD"] = str(Path(os.environ["SLIPWAY"]).resolve().parent)
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
import many  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare") or not Path("/usr/sbin/sshd").exists(), reason="hosts on this computer need root and OpenSSH's sshd")


def few_connections(hosts, forks):
    (r,) = many.run(hosts, with_ansible=False, forks=forks)
    print(r)
    assert r["first"]["nodes"] == r["nothing"]["nodes"] == hosts and r["one_more"]["nodes"] == hosts + 1
    assert r["nothing"]["most"] == 1 and r["nothing"]["sessions"] == hosts, "a run with nothing to do needs one connection a node"
    assert r["one_more"]["sessions"] <= hosts + 2, "nor do nodes that were there need more when one comes"
    assert r["first"]["most"] <= 2, "a link that was given back is opened again once"
    return r


def test_forty_hosts_and_eight_links():
    few_connections(40, 8)


@pytest.mark.soak
def test_a_thousand_hosts():
    r = few_connections(1000, 32)
    for run in ("first", "nothing", "one_more"):
        assert r[run]["own"] < 64, run
        assert r[run]["own"] + r[run]["ssh"] < 512, run
