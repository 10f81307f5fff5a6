"""A thousand SSH hosts: the first apply of the node files, a run with nothing to do, and one host more, with the memory that it takes here.

    tests/bench/run.py many             (SLIPWAY_BENCH_MANY=100: fewer hosts)

The hosts are those of crowd.py. Links take turns (deliver/link/slots.h), so the operator's memory does not grow with the hosts; Ansible gets as many forks as
there are slots. It stands beside slipway at the smaller sizes only: a thousand hosts would take it hours here.
"""
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import ansible  # noqa: E402
import playbook  # noqa: E402
from ansible import BUILD, CACHE, CLUSTER, ROOT, TOOL  # noqa: E402
from crowd import Crowd  # noqa: E402

TITLE = "A thousand hosts"
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-bench-many"
HOSTS = int(os.environ.get("SLIPWAY_BENCH_MANY") or 1000)
BESIDE = [int(n) for n in (os.environ.get("SLIPWAY_BENCH_BESIDE") or "50,200").split(",") if n != "0"]  # sizes at which Ansible runs too; 0: none
FORKS = int(os.environ.get("SLIPWAY_BENCH_FORKS") or 32)


def resident(session):
    """MB of all processes of a session but its leader."""
    total = 0
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if int((p / "stat").read_text().rsplit(")", 1)[1].split()[3]) == session and int(p.name) != session:
                total += int((p / "statm").read_text().split()[1])
        except (OSError, IndexError):
            pass
    return total * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def reap():
    """Whoever lost its parent in these namespaces is our child: agents, when their ssh has ended."""
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if (f := (p / "stat").read_text().rsplit(")", 1)[1].split())[0] == "Z" and f[1] == "1" and (p / "comm").read_text().startswith("agent-"):
                os.waitpid(int(p.name), os.WNOHANG)
        except (OSError, IndexError):
            pass


def apply(work):
    """One run of apply_tool: seconds, MB of itself and of all its ssh together at their most."""
    start, peak, over = time.monotonic(), [0.0], threading.Event()
    proc = subprocess.Popen([TOOL, "cluster.yaml", ".slipway"], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def look():
        while not over.wait(0.1):
            peak[0] = max(peak[0], resident(proc.pid))
            reap()

    t = threading.Thread(target=look)
    t.start()
    out, errors = proc.communicate()
    seconds = time.monotonic() - start
    over.set()
    t.join()
    if proc.returncode:
        raise SystemExit(f"bench: {errors[-3000:]}")
    said = json.loads(out.splitlines()[-1])
    return dict(seconds=seconds, own=said["kilobytes"] / 1024, ssh=peak[0], entries=said["entries"])


def cluster_file(work, keys, address, count):
    names = list(address)
    text = CLUSTER + "  network: {pods: 10.128.0.0/9}\n" + (f"  provider: {{ssh: {{user: root, key: {keys}/user, connections: {FORKS}, "
                      f"options: ['UserKnownHostsFile={work}/known_hosts', 'IdentityAgent=none']}}}}\n  pools:\n")
    for pool, first, last in (("control\n      roles: [control-plane, etcd]", 0, 1), ("worker", 1, count)):
        text += f"    - name: {pool}\n      hosts:\n" + "".join(f"        - {{name: {n}, address: {address[n]}}}\n" for n in names[first:last])
    (work / "cluster.yaml").write_text(text)


def measure(work, base, layers, count):
    """slipway on `count` hosts and one more."""
    work.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", work], check=True)
    keys = work / "keys"
    keys.mkdir()
    for n in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", keys / n], check=True)
    h = Crowd(count + 1, (*layers, base), keys, work)
    try:
        result = dict(hosts=count)
        cluster_file(work, keys, h.address, count)
        for name in ("first", "nothing", "one_more"):
            if name == "one_more":
                cluster_file(work, keys, h.address, count + 1)
            h.sessions()
            result[name] = apply(work)
            seen = h.sessions()
            result[name].update(nodes=len(seen), most=max(seen.values()), sessions=sum(seen.values()))
            print(f"  {count} hosts, {name}: {result[name]}", file=sys.stderr, flush=True)
        if layers:
            result["ansible"] = beside(work, h, keys, count, result["first"]["seconds"])
        return result
    finally:
        h.close()


def beside(work, h, keys, count, ours):
    """The playbook of the same files, on hosts that have nothing: those with other addresses' roots cleared."""
    names = list(h.address)[:count]
    facts = json.loads(subprocess.run(["ssh", "-i", keys / "user", "-o", f"UserKnownHostsFile={work}/known_hosts", "-o", "BatchMode=yes", f"root@{h.address[names[0]]}",
                                       "/var/lib/slipway/agent-* --facts"], check=True, capture_output=True).stdout)
    out = ansible.render(work, {n: facts for n in names})
    for n in names:
        for p in ("var", "etc/kubernetes", "opt"):
            shutil.rmtree(h.root[n] / p, ignore_errors=True)
    d = work / "play"
    addresses = {n: h.address[n] for n in names}
    playbook.write(d, out, addresses, keys / "user", work / "known_hosts", "tuned", False, forks=FORKS)
    try:
        r = playbook.run(ansible.VENV, d, min(1800, 10 * ours + 120), ansible.watch)
    finally:
        playbook.close(d, addresses)
    return dict(seconds=r.seconds, stopped=r.stopped, peak=r.peak)


def inside(work, base, layer):
    """Inside the namespaces; prints JSON."""
    results = [measure(work / str(n), base, (layer / "root",), n) for n in BESIDE] if layer else []
    print(json.dumps([*results, measure(work / "many", base, (), HOSTS)]))


# ---- the section ----

def lines(results):
    text = ["| hosts | first apply | nothing to do | one more | slipway, MB | its ssh, MB | Ansible, first apply |", "|---|---|---|---|---|---|---|"]
    for r in results:
        a = r.get("ansible")
        text.append(f"| {r['hosts']} | **{r['first']['seconds']:.1f} s** | **{r['nothing']['seconds']:.1f} s** | {r['one_more']['seconds']:.1f} s | "
                    f"{max(r[k]['own'] for k in ('first', 'nothing', 'one_more')):.0f} | {max(r[k]['ssh'] for k in ('first', 'nothing', 'one_more')):.0f} | "
                    + (f"{'more than ' if a['stopped'] else ''}{a['seconds']:.0f} s, {a['peak']:.0f} MB" if a else "not run") + " |")
    r = results[-1]
    text += ["", f"{FORKS} links at once (`provider.ssh.connections`), and as many forks. Wanted at 1,000: slipway under 64 MB, with all its ssh under 512 MB, and one connection a node where nothing is to "
             f"do: there were {r['nothing']['sessions']} to {r['nothing']['nodes']} nodes. The hosts are addresses of one sshd on the same computer, each with a root of its own in memory "
             "(`tests/bench/crowd.py`), so both ends share its cores. What is measured is `apply_tool`, which has the links, steps and files of `up` and neither its plan nor an API; no programs, no services.", ""]
    return text


def section():
    """The lines of this part of docs/benchmarks.md."""
    return lines(run(HOSTS))


def run(hosts, with_ansible=True, forks=FORKS):
    if os.geteuid():
        raise SystemExit("bench: network namespaces need root")
    subprocess.run(["ninja", "-C", BUILD, "tests/bench/apply_tool"], check=True, stdout=subprocess.DEVNULL)
    layer = ""
    if with_ansible and BESIDE and (ansible.VENV / "bin" / "ansible-playbook").exists():
        layer = ansible.python_layer()
    base = max((p for p in CACHE.glob("base-*") if (p / "usr/sbin/sshd").exists()), key=lambda p: p.stat().st_mtime, default=Path("/"))  # this computer's own will do
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    inner = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "inside", WORK, base, layer]
    r = subprocess.run(list(map(str, inner)), stdout=subprocess.PIPE, text=True, env=dict(os.environ, SLIPWAY_BENCH_MANY=str(hosts), SLIPWAY_BENCH_FORKS=str(forks)))
    shutil.rmtree(WORK, ignore_errors=True)
    if r.returncode:
        raise SystemExit("bench: the part with many hosts failed")
    return json.loads(r.stdout.splitlines()[-1])


if __name__ == "__main__" and sys.argv[1:2] == ["inside"]:
    inside(Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]) if sys.argv[4] else None)
