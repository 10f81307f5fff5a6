"""slipway beside Ansible: a run that changes nothing on five machines, and the first apply of the node files to fifty SSH hosts.

    tests/bench/run.py ansible

The playbook (playbook.py) is made from what `slipway render --secrets` writes, so both keep the same bytes, and the bench checks that they do: on the machines
Ansible must find nothing to change after `slipway up`, and on the hosts every file must be there with its content and mode, whoever put it.
"""
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import hosts as netns  # noqa: E402
import playbook  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "machines"))
from upstream import NEWEST  # noqa: E402

TITLE = "Beside Ansible"
ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("SLIPWAY_BUILD") or ROOT / "build").resolve()
SLIPWAY, TOOL = BUILD / "slipway", BUILD / "tests" / "bench" / "apply_tool"
CACHE = Path(os.environ.get("SLIPWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway")
VENV = Path(os.environ.get("SLIPWAY_ANSIBLE") or CACHE / "ansible")
WORK = Path(os.environ.get("SLIPWAY_WORK") or "/var/tmp") / "slipway-bench-ansible"
NETWORK = os.environ.get("SLIPWAY_BENCH_NETWORK") or "10.117.0.0/24"
NAME, MACHINES, HOSTS = "bench", 5, int(os.environ.get("SLIPWAY_BENCH_HOSTS") or 50)
LIMIT, ENOUGH = 240, 2  # a run of Ansible is stopped after so many seconds, or so many times what is wanted: its time is then "more than" that
CLUSTER = """\
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: bench}
spec:
""" f"  kubernetes: {NEWEST}\n" """\
"""


def watch(proc, start, limit):
    """Waits for a process that leads a session: (seconds, stopped at the limit, most MB resident of all of the session but itself)."""
    state = dict(stopped=False, peak=0)
    over = threading.Event()

    def look():
        while not over.wait(0.3):
            total = 0
            for p in Path("/proc").glob("[0-9]*"):
                try:
                    if int((p / "stat").read_text().rsplit(")", 1)[1].split()[3]) == proc.pid and int(p.name) != proc.pid:
                        total += int((p / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
                except (OSError, IndexError):
                    pass
            state["peak"] = max(state["peak"], total / 1024)
            if time.monotonic() - start > limit:
                state["stopped"] = True
                os.killpg(proc.pid, 9)
                return

    t = threading.Thread(target=look)
    t.start()
    try:
        proc.wait()
        seconds = time.monotonic() - start
    finally:
        over.set()
        t.join()
    return seconds, state["stopped"], state["peak"]


def python_layer():
    """Python as Debian packs it, unpacked beside the base of local machines, which has none."""
    layer = CACHE / "python-layer"
    if (layer / ".done").exists():
        return layer
    shutil.rmtree(layer, ignore_errors=True)
    (layer / "debs").mkdir(parents=True)
    text = subprocess.run(["apt-cache", "depends", "python3-minimal"], capture_output=True, text=True, check=True).stdout
    version = next(w for w in text.split() if w.startswith("python3.") and w.endswith("-minimal")).removesuffix("-minimal")
    subprocess.run(["apt-get", "-q", "download", "python3-minimal", f"{version}-minimal", f"lib{version}-minimal", f"lib{version}-stdlib"], cwd=layer / "debs", check=True, capture_output=True)
    for deb in (layer / "debs").glob("*.deb"):
        subprocess.run(["dpkg", "-x", deb, layer / "root"], check=True)
    shutil.rmtree(layer / "debs")
    if sys.version.startswith(version.removeprefix("python") + "."):  # else the hosts do it, each for itself
        subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", layer / "root", layer / "root" / "usr" / "lib" / version],
                       stdout=subprocess.DEVNULL)
    (layer / ".done").touch()
    return layer


def slipway(work, *args, **kw):
    r = subprocess.run([SLIPWAY, *map(str, args)], cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL, **kw)
    if r.returncode:
        raise SystemExit(f"bench: slipway {args[0]} failed:\n{r.stderr[-3000:]}")
    return r


def render(work, facts):
    """Every file of every node, as `up` makes it for machines with these facts."""
    known = ("os", "arch", "cgroup", "capabilities", "init", "interface", "ipvs")
    (work / "facts.json").write_text(json.dumps(dict(nodes={n: {k: f[k] for k in known if k in f} for n, f in facts.items()})))
    slipway(work, "render", "--secrets", "--facts", "facts.json", "-d", "out")
    return work / "out"


# ---- a run that changes nothing, on machines ----

def noop(work):
    start = time.monotonic()
    r = slipway(work, "up")
    seconds = time.monotonic() - start
    if r.stderr.count("apply: unchanged") != MACHINES:
        raise SystemExit(f"bench: this up changed something:\n{r.stderr[-3000:]}")
    return seconds


def ssh_to(work, address, command, **kw):
    state = work / ".slipway" / NAME
    return subprocess.run(["ssh", "-i", state / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={state / 'known_hosts'}", "-o", "BatchMode=yes", f"root@{address}", command],
                          check=True, capture_output=True, **kw).stdout


def play(work, out, addresses, key, known_hosts, style, machines, limit):
    d = work / style
    playbook.write(d, out, addresses, key, known_hosts, style, machines)
    try:
        if machines:  # where nothing is to be done both may know the hosts already
            playbook.warm(VENV, d)
        r = playbook.run(VENV, d, limit, watch)
    finally:
        playbook.close(d, addresses)
    if not r.stopped and (len(r.recap) != len(addresses) or r.total("failed") or r.total("unreachable")):
        raise SystemExit(f"bench: the playbook ({style}) failed:\n{r.text[-3000:]}")
    print(f"  ansible, {style}: {'more than ' if r.stopped else ''}{r.seconds:.1f} s", flush=True)
    return r


def machines(layer):
    (WORK / "cluster.yaml").write_text(CLUSTER + f"  provider: {{local: {{network: {NETWORK}}}}}\n  pools:\n    - {{name: control, roles: [control-plane, etcd], count: 1}}\n"
                                       f"    - {{name: worker, count: {MACHINES - 1}}}\n")
    slipway(WORK, "up")
    return against_machines(layer)


def against_machines(layer):
    state = WORK / ".slipway" / NAME
    times = [noop(WORK) for _ in range(3)]
    addresses = {n["name"]: n["address"] for n in json.loads(slipway(WORK, "status", "-o", "json").stdout)["nodes"]}
    facts = {}
    for name, address in addresses.items():
        facts[name] = json.loads(ssh_to(WORK, address, "/var/lib/slipway/agent-* --facts"))
        tar = subprocess.Popen(["tar", "-C", layer / "root", "-c", "usr"], stdout=subprocess.PIPE)
        ssh_to(WORK, address, "tar -C / --no-same-owner -x", stdin=tar.stdout)
        tar.wait()
    out = render(WORK, facts)
    limit = min(LIMIT, ENOUGH * 30 * statistics.median(times))
    runs = {style: play(WORK, out, addresses, state / "ssh" / "id_ed25519", state / "known_hosts", style, True, limit) for style in ("tuned", "plain")}
    if runs["tuned"].total("changed"):
        raise SystemExit(f"bench: Ansible found something to change after slipway up:\n{runs['tuned'].text[-3000:]}")
    times += [noop(WORK) for _ in range(3)]
    print("  slipway up: " + ", ".join(f"{t:.2f}" for t in times) + " s", flush=True)
    return dict(slipway=statistics.median(times), runs=runs, tasks=sum(r["ok"] for r in runs["tuned"].recap.values()))


# ---- the first apply, on hosts in network namespaces ----

def expected(out, name):
    """{path: (content's digest, mode)} of a node."""
    spec = json.loads((out / name / "nodespec.json").read_text())
    return {e["path"]: (hashlib.sha256((out / name / "root" / e["path"].lstrip("/")).read_bytes()).hexdigest(), int(e["mode"], 8))
            for e in playbook.of_kind(spec, "file")}


def found(root, paths):
    have = {}
    for p in paths:
        f = root / p.lstrip("/")
        if f.is_file():
            have[p] = (hashlib.sha256(f.read_bytes()).hexdigest(), f.stat().st_mode & 0o7777)
    return have


def complete(h, out):
    """How many hosts hold every file as wanted."""
    return sum(found(h.root[n], expected(out, n).keys()) == expected(out, n) for n in h.address)


def cpu():
    """Seconds of a core used so far by all that ended in these namespaces: whoever lost its parent is our child."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def fifty(work, base, layer, *styles):
    """Inside the namespaces; prints JSON."""
    keys = work / "keys"
    keys.mkdir()
    for n in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", keys / n], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", work / "roots"], check=True)
    netns.network()
    lower = (layer / "root", base)

    def fresh(name):
        return netns.Hosts(HOSTS, lower, keys, work / "roots" / name)

    h = fresh("slipway")
    names = list(h.address)
    known = work / "known_hosts"
    with open(work / "cluster.yaml", "w") as f:
        f.write(CLUSTER + f"  provider: {{ssh: {{user: root, key: {keys}/user, options: ['UserKnownHostsFile={known}', 'IdentityAgent=none']}}}}\n  pools:\n")
        for pool, first, last in (("control\n      roles: [control-plane, etcd]", 0, 1), ("worker", 1, HOSTS)):
            f.write(f"    - name: {pool}\n      hosts:\n" + "".join(f"        - {{name: {n}, address: {h.address[n]}}}\n" for n in names[first:last]))
    start = time.monotonic()
    proc = subprocess.Popen([TOOL, "cluster.yaml", ".slipway"], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    seconds, _, ssh_peak = watch(proc, start, 3600)
    said, errors = proc.communicate()
    if proc.returncode:
        raise SystemExit(f"bench: {errors[-3000:]}")
    said = json.loads(said.splitlines()[-1])
    facts = {n: json.loads(subprocess.run(["ssh", "-i", keys / "user", "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes", f"root@{h.address[n]}",
                                           "/var/lib/slipway/agent-* --facts"], check=True, capture_output=True).stdout) for n in names[:1]}
    out = render(work, {n: facts[names[0]] for n in names})
    done = complete(h, out)
    if done != HOSTS:
        raise SystemExit(f"bench: after slipway only {done} hosts hold what they should")
    h.close()
    before = used = cpu()
    print(f"  slipway: {seconds:.2f} s, {said['entries']} entries, {said['kilobytes'] >> 10} MB and {ssh_peak:.0f} MB in ssh, {used:.1f} s of a core at both ends", file=sys.stderr, flush=True)
    result = dict(slipway=seconds, cpu=used, kilobytes=said["kilobytes"], ssh=ssh_peak, entries=said["entries"], runs={})
    for style in styles:
        h = fresh(style)
        try:
            r = play(work, out, h.address, keys / "user", known, style, False, min(LIMIT, ENOUGH * 10 * seconds))
            done = complete(h, out)
            if not r.stopped and done != HOSTS:
                raise SystemExit(f"bench: after Ansible ({style}) only {done} hosts hold what they should")
        finally:
            h.close()
        now = cpu()
        result["runs"][style] = dict(seconds=r.seconds, stopped=r.stopped, done=done, peak=r.peak, cpu=now - before)
        before = now
    print(json.dumps(result))


def fifty_outside(layer):
    base = max((p for p in CACHE.glob("base-*") if (p / "usr/sbin/sshd").exists()), key=lambda p: p.stat().st_mtime)
    work = WORK / "hosts"
    (work / "roots").mkdir(parents=True)
    inner = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "fifty", work, base, layer, "tuned"]
    r = subprocess.run(list(map(str, inner)), stdout=subprocess.PIPE, text=True)
    print(*r.stdout.splitlines()[:-1], sep="\n")
    if r.returncode:
        raise SystemExit("bench: the part with fifty hosts failed")
    return json.loads(r.stdout.splitlines()[-1])


# ---- the section ----

def times_faster(seconds, stopped, ours):
    return f"{'more than ' if stopped else ''}{seconds / ours:.0f} times faster"


def lines(five, many, version):
    def against(seconds, stopped, ours):
        return f"{ours:.2f} s against {'more than ' if stopped else ''}{seconds:.0f} s"
    rows = []
    for style, wanted, text in (("tuned", "at least 30", f"`slipway up` that changes nothing, {MACHINES} machines, against the playbook of the same files and units"),
                                ("plain", "", "the same, Ansible's settings as they come (5 forks, facts gathered, no pipelining)")):
        r = five["runs"][style]
        rows.append((text, times_faster(r.seconds, r.stopped, five["slipway"]), wanted, against(r.seconds, r.stopped, five["slipway"])))
    for style, wanted, text in (("tuned", "at least 10", f"first apply of the node files to {HOSTS} SSH hosts, against the playbook with {HOSTS} forks"),):
        r = many["runs"][style]
        rows.append((text, times_faster(r["seconds"], r["stopped"], many["slipway"]), wanted, against(r["seconds"], r["stopped"], many["slipway"])
                     + (f" ({r['done']} of {HOSTS} hosts were complete when it was stopped)" if r["stopped"] else "")))
    r = many["runs"]["tuned"]
    rows.append(("the same as above, time of a core that both ends use", f"{'less than ' if r['stopped'] else ''}{many['cpu'] / r['cpu']:.3f} of Ansible's", "",
                 f"{many['cpu']:.1f} s against {'more than ' if r['stopped'] else ''}{r['cpu']:.0f} s, starting the hosts included"))
    rows.append(("the operator's peak memory there: slipway itself", f"{many['kilobytes'] / 1024:.0f} MB", "under 64",
                 f"its {HOSTS} `ssh` beside it {many['ssh']:.0f} MB"))
    text = ["| what | measured | wanted | seconds |", "|---|---|---|---|"]
    text += [f"| {a} | **{b}** | {c} | {d} |" for a, b, c, d in rows]
    text += ["", f"ansible-core {version}. The playbook is written from `slipway render --secrets` (`tests/bench/playbook.py`): loops, pipelining, a fork a host, connections kept open "
             "(on the machines opened before the clock starts), no facts, no host waiting for another, one task for each set of units that must hear of a change. "
             "It is not asked for programs, images and kernel modules, which slipway looks at too. After `slipway up` it must find nothing to change; on the hosts "
             f"every file's content and mode is compared with what was rendered. slipway's time on the machines is the median of six runs, half before and half after Ansible's, and includes the API's objects and all "
             f"nodes Ready. The hosts are network namespaces with an sshd and a root of their own, in memory; slipway's time there begins with reading `cluster.yaml`, making every certificate, and "
             f"sending its agent to each ({many['entries']} entries in all). A run of Ansible is stopped when it has taken {ENOUGH} times what is wanted, or {LIMIT} s.", ""]
    return text


def section():
    """The lines of this part of docs/benchmarks.md."""
    if os.geteuid():
        raise SystemExit("bench: machines on this computer need root")
    if BUILD == ROOT / "build":
        subprocess.run(["ninja", "-C", BUILD, "tests/bench/apply_tool"], check=True, stdout=subprocess.DEVNULL)
    if WORK.exists():  # a run before this one was killed
        cleanup()
    WORK.mkdir(parents=True)
    try:
        layer = python_layer()
        print("five machines ...", flush=True)
        five = machines(layer)
        slipway(WORK, "down")
        print("fifty hosts ...", flush=True)
        many = fifty_outside(layer)
    finally:
        cleanup()
    version = subprocess.run([VENV / "bin" / "ansible", "--version"], capture_output=True, text=True, check=True).stdout.split("]")[0].split()[-1]
    return lines(five, many, version)


def cleanup():
    if (WORK / ".slipway").exists():
        subprocess.run([SLIPWAY, "down"], cwd=WORK, capture_output=True, stdin=subprocess.DEVNULL)
    shutil.rmtree(WORK)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fifty"]:
        fifty(*map(Path, sys.argv[2:5]), *sys.argv[5:])
