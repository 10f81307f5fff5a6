"""The smallest cluster, on one machine: what a fresh computer must get to (test_fresh.py), and
what is interrupted in its middle (test_stop.py)."""
import os

import pytest
from harness import NEWEST, Machines

SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.157.0.0/24}}
  pools:
    - {name: control, roles: [control-plane, etcd, worker], count: 1}
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


@pytest.fixture(scope="module")
def cluster():
    with Machines("one", SPEC) as c:
        c.slipway("up", "--yes")
        yield c


def test_it_is_healthy(cluster):
    assert cluster.healthy()
    assert cluster.ready() == {"control-1": True}
