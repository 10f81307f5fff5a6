"""What `slipway render --secrets` wrote, as an Ansible playbook of the same files and units.

Written as somebody would who knows Ansible well: loops, one task for each set of units that has to hear of a change, secrets kept out of the log, no facts
gathered, pipelining, connections kept open, as many forks as hosts, no host waiting for another. Only modules of ansible-core. What Ansible is not asked
to do, and slipway does: programs and images, kernel modules, and taking away what is no longer wanted.
"""
import json
import os
import re
import subprocess
import time
from pathlib import Path

STYLES = {
    "tuned": dict(pipelining=True, plain=False),
    # Ansible as it comes: facts gathered, five forks, no pipelining
    "plain": dict(pipelining=False, plain=True),
}


def of_kind(spec, *kinds):
    return [e for e in spec["entries"] if e["kind"] in kinds]


def grouped(specs):
    """Files of all nodes by (units that read them, secret): one task each."""
    groups = {}
    for node, spec in specs.items():
        for e in of_kind(spec, "file"):
            key = (tuple(e.get("units", ())), e["class"] == "secret")
            groups.setdefault(key, {}).setdefault(node, []).append(dict(path=e["path"], mode=e["mode"], force="once" not in e.get("flags", ())))
    return groups


def file_tasks(groups):
    yield dict(name="directories", file=dict(path="{{ item.path }}", state="directory", mode="{{ item.mode }}", owner="root", group="root"),
               loop="{{ directories }}", loop_control=dict(label="{{ item.path }}"))
    for i, (units, secret) in enumerate(groups):
        task = dict(name=f"files for {' '.join(units) or 'everybody'}", loop=f"{{{{ files_{i} }}}}", loop_control=dict(label="{{ item.path }}"),
                    copy=dict(src="{{ root }}{{ item.path }}", dest="{{ item.path }}", mode="{{ item.mode }}", owner="root", group="root", force="{{ item.force }}"))
        yield dict(task, **(dict(no_log=True) if secret else {}), **(dict(notify=[f"restart {u}" for u in units]) if units else {}))
    yield dict(name="links", command=dict(argv=["ln", "-s", "{{ item.target }}", "{{ item.path }}"], creates="{{ item.path }}"), loop="{{ links }}")


def machine_tasks():
    yield dict(name="packages", command="dpkg-query -W {{ packages | join(' ') }}", changed_when=False)
    yield dict(name="sysctls", command="sysctl -n {{ sysctls | map(attribute='name') | join(' ') }}", register="values",
               changed_when="values.stdout_lines != (sysctls | map(attribute='target') | list)")
    yield dict(name="set sysctls", command="sysctl -w {{ item.name }}={{ item.target }}", loop="{{ sysctls if values is changed else [] }}")
    yield dict(name="units", systemd_service=dict(name="{{ item.name }}", enabled="{{ item.on }}", state="{{ 'started' if item.on else 'stopped' }}"), loop="{{ units }}",
               loop_control=dict(label="{{ item.name }}"))


def variables(node, spec, groups, work, out):
    v = dict(root=str(out / node / "root"))
    v["directories"] = [dict(path=e["path"], mode=e["mode"]) for e in of_kind(spec, "directory")]
    v["links"] = [dict(path=e["path"], target=e["target"]) for e in of_kind(spec, "link")]
    v["packages"] = [e["name"] for e in of_kind(spec, "package")]
    v["sysctls"] = [dict(name=e["name"], target=e["target"]) for e in of_kind(spec, "sysctl")]
    v["units"] = [dict(name=e["name"], on="start" in e["flags"]) for e in of_kind(spec, "unit")]
    for i, members in enumerate(groups.values()):
        v[f"files_{i}"] = members.get(node, [])
    return v


def write(work, out, hosts, key, known_hosts, style, machines, forks=None):
    """ansible.cfg, hosts.json and site.json in `work` for hosts {node: address}. `machines`: units, packages and sysctls too."""
    s = STYLES[style]
    work.mkdir(parents=True)
    specs = {n: json.loads((out / n / "nodespec.json").read_text()) for n in hosts}
    groups = grouped(specs)
    ssh = f"-o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=accept-new -o IdentitiesOnly=yes -o IdentityAgent=none"
    (work / "ansible.cfg").write_text(
        f"[defaults]\nforks = {5 if s['plain'] else forks or max(5, len(hosts))}\ninterpreter_python = /usr/bin/python3\nremote_user = root\nprivate_key_file = {key}\n"
        f"[ssh_connection]\npipelining = {s['pipelining']}\nssh_args = {ssh}\ncontrol_path_dir = {work}/cp\n")
    inventory = {n: dict(variables(n, specs[n], groups, work, out), ansible_host=a) for n, a in hosts.items()}
    (work / "hosts.json").write_text(json.dumps(dict(all=dict(hosts=inventory))))
    units = sorted({u for g, _ in groups for u in g})
    play = dict(name="nodes", hosts="all", gather_facts=s["plain"], tasks=[*file_tasks(groups), *(machine_tasks() if machines else ())],
                # under a root without systemd nothing can be restarted, and nothing is asked to
                handlers=[dict(name=f"restart {u}", **(dict(systemd_service=dict(name=u, state="restarted")) if machines else dict(debug=dict(msg="no systemd here")))) for u in units])
    if not s["plain"]:
        play["strategy"] = "free"
    (work / "site.json").write_text(json.dumps([play], indent=1))


def environment(work):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANSIBLE_") and k != "SSH_AUTH_SOCK"}
    return dict(env, ANSIBLE_CONFIG=str(work / "ansible.cfg"), ANSIBLE_HOME=str(work / "home"), ANSIBLE_NOCOLOR="1", ANSIBLE_DEPRECATION_WARNINGS="0", LC_ALL="C.UTF-8",
                ANSIBLE_PYTHON_INTERPRETER="/usr/bin/python3", PYTHONDONTWRITEBYTECODE="")


def warm(venv, work):
    """Opens the connections and lets Python compile itself on the hosts: not measured."""
    log = open(work / "ping.log", "w")
    r = subprocess.run([venv / "bin" / "ansible", "all", "-i", work / "hosts.json", "-m", "ping"], cwd=work, env=environment(work), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    if r.returncode:
        raise SystemExit(f"bench: the hosts do not answer to Ansible:\n{(work / 'ping.log').read_text()[-3000:]}")


class Outcome:
    def __init__(self, seconds, text, stopped, peak):
        self.seconds, self.text, self.stopped, self.peak = seconds, text, stopped, peak
        self.recap = {m[1]: {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", m[2])} for m in re.finditer(r"^(\S+)\s+: (ok=.*)$", text, re.M)}

    def total(self, word):
        return sum(r.get(word, 0) for r in self.recap.values())


def run(venv, work, limit, watch):
    """One run of the playbook, ended after `limit` seconds: what it had not done by then makes its time a lower bound."""
    with open(work / "run.log", "w") as log:
        start = time.monotonic()
        proc = subprocess.Popen([venv / "bin" / "ansible-playbook", "-i", work / "hosts.json", work / "site.json"], cwd=work, env=environment(work), stdin=subprocess.DEVNULL,
                                stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        seconds, stopped, peak = watch(proc, start, limit)
    return Outcome(seconds, (work / "run.log").read_text(errors="replace"), stopped, peak)


def close(work, hosts):
    """The connections that Ansible left open."""
    for s in (work / "cp").glob("*") if (work / "cp").is_dir() else ():
        subprocess.run(["ssh", "-o", f"ControlPath={s}", "-O", "exit", "host"], capture_output=True)
