"""`fabric ready`: the bridge of the pods goes when its address is not in this node's ranges, of either family; otherwise it stays."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "src" / "node" / "templates" / "fabric.sh"
HAS = {"-4": "7: cni0    inet 10.244.1.1/24 brd 10.244.1.255 scope global cni0", "-6": "7: cni0    inet6 fd00:10:244:1::1/64 scope global"}
IP = """#!/bin/sh
case "$*" in
"-o -4 address show dev cni0 scope global") echo "$HAS4" ;;
"-o -6 address show dev cni0 scope global") echo "$HAS6" ;;
*) echo "$*" >>"$DONE" ;;
esac
"""


def ready(tmp_path, subnets, families=("-4", "-6")):
    """What it told `ip` to do."""
    for path in ("run/flannel", "etc/cni/net.d", "etc/kube-flannel", "bin"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "run/flannel/subnet.env").write_text("".join(f"FLANNEL_{k}={v}\n" for k, v in subnets.items()) + "FLANNEL_MTU=1450\n")
    (tmp_path / "etc/kube-flannel/cni-conf.json").write_text("{}\n")
    (tmp_path / "bin/ip").write_text(IP)
    (tmp_path / "bin/ip").chmod(0o755)
    script = SCRIPT.read_text().replace("/run/flannel", f"{tmp_path}/run/flannel").replace("/etc/", f"{tmp_path}/etc/")
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "DONE": str(tmp_path / "done"), "HAS4": HAS["-4"] if "-4" in families else "", "HAS6": HAS["-6"] if "-6" in families else ""}
    subprocess.run(["bash", "-c", script, "fabric", "ready"], env=env, check=True)
    assert (tmp_path / "etc/cni/net.d/10-flannel.conflist").exists()
    return (tmp_path / "done").read_text().splitlines() if (tmp_path / "done").exists() else []


V4 = {"NETWORK": "10.244.0.0/16", "SUBNET": "10.244.1.1/24"}
V6 = {"IPV6_NETWORK": "fd00:10:244::/56", "IPV6_SUBNET": "fd00:10:244:1::1/64"}


@pytest.mark.parametrize("subnets, families", [(V4, ("-4",)), (V6, ("-6",)), (V4 | V6, ("-4", "-6")), (V4 | V6, ())])
def test_the_bridge_stays(tmp_path, subnets, families):
    assert ready(tmp_path, subnets, families) == []


@pytest.mark.parametrize("subnets, families", [(V4 | {"SUBNET": "10.244.2.1/24"}, ("-4",)), (V6 | {"IPV6_SUBNET": "fd00:10:244:2::1/64"}, ("-6",)),
                                               (V4 | V6 | {"IPV6_SUBNET": "fd00:10:244:2::1/64"}, ("-4", "-6"))])
def test_the_bridge_of_another_range_goes(tmp_path, subnets, families):
    assert ready(tmp_path, subnets, families) == ["link delete cni0"]


def calico(tmp_path, canal=False, flannel=True, ready=True, alive=True):
    """Calico's script in a directory of the test's own, with a Calico that says that it is ready or not."""
    for path in ("run", "etc/cni/net.d", "etc/calico", "bin", *(["etc/kube-flannel"] if canal else []), *(["run/flannel"] if flannel else [])):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    (tmp_path / "etc/calico/cni-conf.json").write_text("{}\n")
    if flannel:
        (tmp_path / "run/flannel/subnet.env").write_text("")
    (tmp_path / "bin/curl").write_text(f"#!/bin/sh\nexit {0 if ready else 7}\n")
    (tmp_path / "bin/sleep").write_text(f"#!/bin/sh\necho waits >> {tmp_path}/waits\nkill $PPID\n")  # what would wait ends
    for name in ("curl", "sleep"):
        (tmp_path / "bin" / name).chmod(0o755)
    script = (SCRIPT.parent / "calico.sh").read_text().replace("/run/", f"{tmp_path}/run/").replace("/etc/", f"{tmp_path}/etc/")
    gone = subprocess.Popen(["true"])
    gone.wait()
    subprocess.run(["bash", "-c", script, "calico", "ready"], env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "MAINPID": str(os.getpid() if alive else gone.pid)})
    return (tmp_path / "etc/cni/net.d/10-calico.conflist").exists()


@pytest.mark.parametrize("how, installed", [({}, True), ({"ready": False}, False), ({"canal": True}, True), ({"canal": True, "flannel": False}, False)])
def test_pods_start_when_policies_are_in_force(tmp_path, how, installed):
    """With canal also not before flannel works."""
    assert calico(tmp_path, **how) == installed
    assert (tmp_path / "waits").exists() != installed


def test_nobody_waits_for_a_calico_that_ended(tmp_path):
    """systemd would restart it only after the script ends."""
    assert not calico(tmp_path, ready=False, alive=False) and not (tmp_path / "waits").exists()


def test_no_pod_starts_after_a_boot_before_policies_are_in_force(tmp_path):
    """/run is empty after a boot, whatever starts first."""
    assert calico(tmp_path) and not list((tmp_path / "etc/cni/net.d").glob("*.new"))
    shutil.rmtree(tmp_path / "run/calico")
    assert not calico(tmp_path, ready=False) and calico(tmp_path)
