"""One worker more: what that costs the nodes that are there already, in a small cluster and in a large one.

    tests/bench/run.py grow

The hosts are those of ansible.py (network namespaces, each with an sshd and a root of its own), and what is run on them is the same: the agent's own work, with
no programs and no services. Counted on every existing node: how often its agent was started, how many questions it was asked, the bytes each way (count_ssh.py),
and whether any of its files changed.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import hosts as netns  # noqa: E402
from ansible import BUILD, CACHE, CLUSTER, ROOT, TOOL  # noqa: E402

TITLE = "Adding a worker"
HERE = Path(__file__).resolve().parent
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-bench-grow"
SIZES = (2, 50)  # workers that are there
RUNS = 5


def cluster_file(work, keys, address, workers):
    names = list(address)
    text = CLUSTER + f"  provider: {{ssh: {{user: root, key: {keys}/user, options: ['UserKnownHostsFile={work}/known_hosts', 'IdentityAgent=none']}}}}\n  pools:\n"
    for pool, first, last in (("control\n      roles: [control-plane, etcd]", 0, 1), ("worker", 1, 1 + workers)):
        text += f"    - name: {pool}\n      hosts:\n" + "".join(f"        - {{name: {n}, address: {address[n]}}}\n" for n in names[first:last])
    (work / "cluster.yaml").write_text(text)


def apply(work, count=None):
    """Seconds. With a directory to count in, ssh is the counting one."""
    env = dict(os.environ)
    if count:
        env.update(PATH=f"{work / 'bin'}:{env['PATH']}", SSH_REAL=shutil.which("ssh"), SSH_COUNT=str(count))
    start = time.monotonic()
    r = subprocess.run([TOOL, "cluster.yaml", ".slipway"], cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(f"bench: {r.stderr[-3000:]}")
    return time.monotonic() - start


def counted(work, name):
    """{address: [runs, turns, bytes up, bytes down]}"""
    (work / name).mkdir()
    apply(work, work / name)
    out = {}
    for file in (work / name).iterdir():
        d = json.loads(file.read_text())
        row = out.setdefault(d["host"], [0, 0, 0, 0])
        for i, n in enumerate((1, d["turns"], d["up"], d["down"])):
            row[i] += n
    return out


def files(root):
    """What is on a host, but for sshd's own log."""
    return {str(p): (s.st_size, s.st_mtime_ns, s.st_ino) for p in root.rglob("*") if p.name != "sshd.log" and (s := p.lstat()) and not p.is_dir()}


def grow(work, h, keys, workers):
    """From `workers` to one more; the hosts have nothing on them yet."""
    names = list(h.address)[:1 + workers]
    new = list(h.address)[1 + workers]
    cluster_file(work, keys, h.address, workers)
    first = apply(work)
    nothing = statistics.median(apply(work) for _ in range(RUNS))
    before = counted(work, f"nothing-{workers}")
    state = {n: files(h.root[n]) for n in names}
    cluster_file(work, keys, h.address, workers + 1)
    after = counted(work, f"one-more-{workers}")
    changed = [n for n in names if files(h.root[n]) != state[n]]
    # its time without the counting, on a host that has nothing again
    times = []
    for _ in range(RUNS):
        subprocess.run(["ssh", "-i", keys / "user", "-o", f"UserKnownHostsFile={work}/known_hosts", "-o", "BatchMode=yes", f"root@{h.address[new]}",
                        "rm -rf /var/lib/slipway /etc/kubernetes /opt/slipway"], check=True, capture_output=True)
        times.append(apply(work))
    old = [after[h.address[n]] for n in names]
    return dict(workers=workers, first=first, nothing=nothing, one_more=statistics.median(times), changed=changed, new=after[h.address[new]],
                before=[max(before[h.address[n]][i] for n in names) for i in range(4)], after=[max(r[i] for r in old) for i in range(4)],
                worse=sum(after[h.address[n]][1] > before[h.address[n]][1] for n in names))


def inside(work, base):
    """Inside the namespaces; prints JSON."""
    keys = work / "keys"
    keys.mkdir()
    for n in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", keys / n], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", work / "roots"], check=True)
    (work / "bin").mkdir()
    (work / "bin" / "ssh").symlink_to(HERE / "count_ssh.py")
    netns.network()
    results = []
    for workers in SIZES:
        d = work / f"run-{workers}"
        d.mkdir()
        (d / "bin").symlink_to(work / "bin")
        h = netns.Hosts(2 + workers, (base,), keys, work / "roots" / str(workers))
        try:
            results.append(grow(d, h, keys, workers))
        finally:
            h.close()
        r = results[-1]
        print(f"  {workers} workers: nothing to do {r['nothing']:.2f} s, one more {r['one_more']:.2f} s, on an existing node {r['after']}", file=sys.stderr, flush=True)
    print(json.dumps(results))


def lines(results):
    text = ["| what | measured | wanted | more |", "|---|---|---|---|"]
    for r in results:
        runs, turns, up, down = r["after"]
        n = 1 + r["workers"]
        text.append(f"| one worker added to {r['workers']}: on each of the {n} nodes there before | **{turns} round trip{'' if turns == 1 else 's'}** | at most 1 | "
                    f"{runs} agent started, {up} bytes to it and {down} from it, at most; {len(r['changed']) or 'no'} node{'' if len(r['changed']) == 1 else 's'} with a file changed; "
                    f"a run with nothing to do: {r['before'][1]} and {r['before'][2]} + {r['before'][3]} bytes |")
    for r in results:
        text.append(f"| the whole run that adds one to {r['workers']}, against a run with nothing to do | **{r['one_more'] / r['nothing']:.1f} times the time** |  | "
                    f"{r['one_more']:.2f} s against {r['nothing']:.2f} s (all {1 + r['workers']} at first: {r['first']:.2f} s) |")
    small, large = results[0], results[-1]
    text += ["", f"On the new node, with the agent: {small['new'][1]} round trips and {small['new'][2] >> 10} kB as the {small['workers'] + 1}rd worker, {large['new'][1]} and {large['new'][2] >> 10} kB as the {large['workers'] + 1}st. "
             "The hosts are network namespaces with an sshd and a root of their own; the agent's own work only: no programs, no services. A round trip is an answer that follows a question on "
             "the connection's standard input and output, the start of the agent being the first question; bytes are what went through ssh, without its own. "
             f"Times are medians of {RUNS} runs without the counting.", ""]
    return text


def section():
    """The lines of this part of docs/benchmarks.md."""
    if os.geteuid():
        raise SystemExit("bench: network namespaces need root")
    if BUILD == ROOT / "build":
        subprocess.run(["ninja", "-C", BUILD, "tests/bench/apply_tool"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(WORK, ignore_errors=True)  # of a run that was killed: its mounts went with it
    (WORK / "roots").mkdir(parents=True)
    try:
        base = max((p for p in CACHE.glob("base-*") if (p / "usr/sbin/sshd").exists()), key=lambda p: p.stat().st_mtime)
        inner = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "inside", WORK, base]
        r = subprocess.run(list(map(str, inner)), stdout=subprocess.PIPE, text=True)
        if r.returncode:
            raise SystemExit("bench: adding a worker failed")
    finally:
        shutil.rmtree(WORK)
    results = json.loads(r.stdout.splitlines()[-1])
    for r in results:
        if r["after"][1] > 1 or r["after"][0] > 1 or r["changed"]:
            raise SystemExit(f"bench: adding a worker to {r['workers']} cost the nodes that were there more than one round trip each: {r}")
    return lines(results)


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        inside(*map(Path, sys.argv[2:4]))
