#!/usr/bin/env python3
"""The infrastructure of 3+3 in OpenStack: provider openstack beside `tofu apply` of the files of `slipway export terraform`, in the same simulated OpenStack.

    tests/bench/run.py clouds              into docs/benchmarks.md
    tests/bench/clouds.py [--rounds N]     prints only

Each run has a new OpenStack on paper (tests/peers/paper_terraform.py), of which every service answers at once or after the same delay, and the two take turns. The
clock runs from the start of the process to its end: of OpenTofu `tofu apply` alone (`tofu init` came before), of slipway reading the file, looking at what there
is, quotas and creating (provider_tool up: what `slipway up` does before it connects to the machines). Both must have made the same things.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for directory in ("machines", "peers"):
    sys.path.insert(0, str(ROOT / "tests" / directory))
from paper_terraform import TerraformPaper  # noqa: E402
from upstream import NEWEST, SLIPWAY, version  # noqa: E402

BUILD = SLIPWAY.parent
TOOL = Path(os.environ.get("PROVIDER_TOOL") or BUILD / "tests" / "provider" / "provider_tool").resolve()
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-bench-clouds"
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("OS_") and not k.lower().endswith("_proxy")}
TITLE = "Infrastructure in OpenStack"
DELAYS = (0.0, 0.1)  # seconds before each answer
WANTED = 1 / 3
ROUNDS = 3
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2x6vVtZ0oXlqQ2q0Y8bq7G8N0mO1uJmG3q1oYpDnZr bench"
FILE = f"""\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: bench}}
spec:
  kubernetes: {NEWEST}
  os: {{authorizedKeys: ["{KEY}"]}}
  provider:
    PROVIDER
  pools:
    - {{name: control, roles: [control-plane, etcd], count: 3FLAVOR}}
    - {{name: worker, count: 3FLAVOR}}
"""
OWN = FILE.replace("PROVIDER", "openstack: {cloud: paper, image: debian-12, externalNetwork: public, apiFloatingIP: true, network: {cidr: 10.74.0.0/24}}").replace("FLAVOR", ", flavor: m1.k8s")
EXPORTED = FILE.replace("PROVIDER", "terraform: {platform: openstack, dir: infra, user: debian, variables: {cloud: paper, image: debian-12, size: m1.k8s, external_network: public, "
                                    "cidr: 10.74.0.0/24}}").replace("FLAVOR", "")


class Delayed(TerraformPaper):
    """Each answer comes later. Its load balancers are ready at once: slipway does not wait for them."""
    settles, delay = False, 0  # seconds

    def __init__(self):
        super().__init__()
        paper = self

        class Later(self.http.RequestHandlerClass):
            def parse_request(self):
                good = super().parse_request()
                time.sleep(paper.delay)
                return good
        self.http.RequestHandlerClass = Later


def run(argv, directory, env=None):
    r = subprocess.run([str(a) for a in argv], cwd=directory, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(f"bench: {argv}: status {r.returncode}\n{r.stdout[-3000:]}{r.stderr[-3000:]}")


def slipway(directory, env):
    (directory / "cluster.yaml").write_text(OWN)
    return lambda: run([TOOL, "cluster.yaml", "state", "up"], directory, {**env, "PROVIDER_PREFIX": "bench"})


def tofu(directory, env):
    from tofu import Tofu  # it needs the programs
    (directory / "cluster.yaml").write_text(EXPORTED)
    run([SLIPWAY, "export", "terraform"], directory)
    t = Tofu(directory / "infra", directory, env)
    t.init()
    return t.apply


def made(paper, before):
    """{kind: count} of what there is now and was not before."""
    things = Counter({kind: len(all) - before[kind] for kind, all in paper.things.items() if len(all) > before[kind]})
    for b in paper.things["loadbalancers"].values():  # slipway has all of it in one call
        things["members"] = max(things["members"], len(b["members"]))
    return {k: things[k] for k in ("networks", "subnets", "routers", "servers", "loadbalancers", "members", "floatingips")}


def measure(way, delay):
    """(seconds, calls, what was made)"""
    directory = WORK / "run"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    paper = Delayed()
    try:
        (directory / "clouds.yaml").write_text(json.dumps({"clouds": {"paper": paper.entry()}}))
        go = way(directory, {**CLEAN, "OS_CLIENT_CONFIG_FILE": str(directory / "clouds.yaml"), "HOME": str(directory)})
        before = {kind: len(all) for kind, all in paper.things.items()}
        paper.delay, paper.log[:] = delay, []
        start = time.monotonic()
        go()
        return time.monotonic() - start, len(paper.log), made(paper, before)
    finally:
        paper.close()


def compare(delay, rounds):
    """{name: (median seconds, calls)}"""
    found = {}
    for i in range(rounds):
        for way in (slipway, tofu) if i % 2 == 0 else (tofu, slipway):
            found.setdefault(way.__name__, []).append(measure(way, delay))
            print(f"  {delay * 1000:.0f} ms an answer, {way.__name__}: {found[way.__name__][-1][0]:.2f} s, {found[way.__name__][-1][1]} calls", flush=True)
    if len({json.dumps(things) for runs in found.values() for *_, things in runs}) != 1:
        raise SystemExit(f"bench: they made different things: {found}")
    return {name: (statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs)) for name, runs in found.items()}


def lines(results, rounds):
    text = ["| what | measured | wanted | seconds | calls |", "|---|---|---|---|---|"]
    for delay, r in results.items():
        ours, theirs = r["slipway"], r["tofu"]
        what = "infrastructure of 3 control planes + 3 workers, against `tofu apply`" if not delay else f"the same, each answer {delay * 1000:.0f} ms later"
        text.append(f"| {what} | **{ours[0] / theirs[0]:.3f} of its time** | at most {WANTED:.2f} | {ours[0]:.2f} s against {theirs[0]:.1f} s | {ours[1]:.0f} against {theirs[1]:.0f} |")
    text += ["", f"OpenTofu {version('opentofu')} with terraform-provider-openstack {version('terraform-provider-openstack')}, 10 operations at once (its default), and the files of "
             "`slipway export terraform`; `tofu init` came before. slipway's time includes looking at everything there is and at quotas. Network, router, security groups, ports, load balancer with "
             f"members and a floating IP, and 6 servers, in a simulated OpenStack that is new for each run and in which a server is active as soon as it is created. Medians of {rounds} runs of "
             "each, in turn. The provider of Terraform waits at least 5 seconds for most things that it creates, and 10 for a server, before it looks at them for the first time: on a real "
             "OpenStack both also wait for the servers.", ""]
    return text


def section(rounds=ROUNDS):
    """The lines of this part of docs/benchmarks.md."""
    if BUILD == ROOT / "build":
        subprocess.run(["ninja", "-C", BUILD, "tests/provider/provider_tool"], check=True, stdout=subprocess.DEVNULL)
    try:
        return lines({delay: compare(delay, rounds) for delay in DELAYS}, rounds)
    finally:
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    print("\n".join(section(parser.parse_args().rounds)))
