#!/usr/bin/env python3
"""One cluster of 1+2 from one minor to the next: `slipway upgrade` beside a script of `kubeadm upgrade` with drains, on the same machines, in one run.

    tests/bench/run.py upgrade          into docs/benchmarks.md
    tests/bench/upgrade.py [--only slipway|kubeadm]      prints only

The programs and images of both versions lie on the machines before the clock starts, for both (`slipway upgrade --stage`). The script does what kubeadm's instructions for an upgrade say: on the
control plane `kubeadm upgrade apply`, drain, the new kubelet and its restart, uncordon; then on each worker `kubeadm upgrade node`, drain, the new kubelet, uncordon. It
waits for nothing longer than it must, leaves `kubeadm upgrade plan` and CoreDNS out (the same for both versions; kubeadm does not know this one), and takes no snapshot; slipway takes one and verifies the cluster at its end. Workers go one by one in both. On the workers runs a
Deployment of four pods with a budget that lets one go at a time, and everything that kubeadm and slipway themselves bring.

Ended: every kubelet says the new version, is Ready and schedulable, and the Deployment is whole; seen by one probe for both.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kubeadm as base
import yaml
from upstream import NEWEST, PREVIOUS, programs

OLD, NEW = PREVIOUS, NEWEST
WANTED = 0.6
TITLE = "Upgrade"
APP = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: app, namespace: default}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: app}}}}
  template:
    metadata: {{labels: {{app: app}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: app, image: "registry.k8s.io/pause:3.10.2", imagePullPolicy: Never}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: app, namespace: default}}
spec: {{maxUnavailable: 1, selector: {{matchLabels: {{app: app}}}}}}
"""
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf "
# kubeadm's page "Upgrading kubeadm clusters", node by node; the packages are replaced by copies of the programs.
KUBELET = "install -m 755 /root/new/kubelet /usr/local/bin/kubelet.new && mv /usr/local/bin/kubelet.new /usr/local/bin/kubelet && systemctl daemon-reload && systemctl restart kubelet"
PROGRAMS = "for p in kubeadm kubectl; do install -m 755 /root/new/$p /usr/local/bin/$p.new && mv /usr/local/bin/$p.new /usr/local/bin/$p; done"


# ---- what lies there beforehand ----

def images(m):
    """The new version's images under their upstream names, and the Deployment's."""
    programs = programs("kubernetes", NEW)
    load = "cat >/tmp/i.tar && ctr -n k8s.io images import --label io.cri-containerd.pinned=pinned /tmp/i.tar && rm /tmp/i.tar"
    with tempfile.TemporaryDirectory() as tmp:
        for p in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            subprocess.run([base.ROOT / "tests/machines/image.sh", f"registry.k8s.io/{p}:v{NEW}", f"{tmp}/{p}.tar", f"{programs / p}=/usr/local/bin/{p}"], check=True)
            m.each(load, m.control, Path(f"{tmp}/{p}.tar").read_bytes())
        subprocess.run([base.ROOT / "tests/machines/joiner.sh", "images", f"{tmp}/images"], check=True, env=dict(base.os.environ, KUBERNETES=NEW))
        for p in ("kube-proxy", "pause"):
            m.each(load, given=Path(f"{tmp}/images/{p}.tar").read_bytes())
    m.each("mkdir -p /root/new")
    for p in ("kubelet", "kubeadm", "kubectl"):
        m.each(f"cat >/root/new/{p} && chmod 755 /root/new/{p}", given=(programs / p).read_bytes())


# ---- the probe ----

def app(m, api):
    for document in yaml.safe_load_all(APP):
        kind = {"Deployment": "/apis/apps/v1/namespaces/default/deployments", "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets"}[document["kind"]]
        status, answer = api.call("POST", kind, document)
        if status not in (200, 201):
            sys.exit(f"bench: {status} {answer}")


def whole(api):
    status, d = api.call("GET", "/apis/apps/v1/namespaces/default/deployments/app")
    return status == 200 and d["status"].get("availableReplicas") == 4 == d["status"].get("replicas")


def is_new(node):
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    return ready and not node["spec"].get("unschedulable") and node["status"]["nodeInfo"]["kubeletVersion"] == f"v{NEW}"


def until(what, question):
    end = time.monotonic() + base.LIMIT
    while not question():
        if time.monotonic() > end:
            sys.exit(f"bench: {what}: not within {base.LIMIT} s")
        time.sleep(0.1)


def ended(api):
    def look():
        status, nodes = api.call("GET", "/api/v1/nodes")
        return status == 200 and len(nodes["items"]) == 3 and all(is_new(n) for n in nodes["items"]) and whole(api)
    until("the upgrade", look)


# ---- the two ways ----

def by_kubeadm(m):
    """{part: seconds}"""
    base.by_kubeadm(m)
    kubeconfig = m.run("control-1", "cat /etc/kubernetes/admin.conf")
    api = base.Api(kubeconfig, m.address["control-1"])
    api.call("DELETE", "/api/v1/namespaces/default/pods")  # the probe's own
    app(m, api)
    until("the Deployment", lambda: whole(api))
    times, begun = {}, time.monotonic()

    def step(name, node, script):
        """Again when it fails: an upgraded kubelet starts its static pods anew some seconds later, and the only API server is away meanwhile."""
        at = time.monotonic()
        m.run(node, f"for i in $(seq {base.LIMIT}); do {script} && exit 0; sleep 0.5; done; exit 1")
        times[name] = times.get(name, 0) + time.monotonic() - at

    def drain(node):
        step("drain", "control-1", KUBECTL + f"drain {node} --ignore-daemonsets --delete-emptydir-data --timeout=15m >/dev/null")

    def kubelet(node):
        step("kubelet and uncordon", node, KUBELET)
        script = (f"until [ \"$({KUBECTL} get node {node} -o 'jsonpath={{.status.nodeInfo.kubeletVersion}} {{.status.conditions[?(@.type==\"Ready\")].status}}')\" = 'v{NEW} True' ]; "
                  f"do sleep 0.2; done && {KUBECTL} uncordon {node} >/dev/null")
        step("kubelet and uncordon", "control-1", script)

    m.each(PROGRAMS)
    begun = time.monotonic()
    step("kubeadm upgrade apply", "control-1", f"kubeadm upgrade apply v{NEW} --yes --ignore-preflight-errors=all --etcd-upgrade=false --skip-phases=addon/coredns >/dev/null")
    drain("control-1")
    kubelet("control-1")
    for node in m.worker:
        step("kubeadm upgrade node", node, "kubeadm upgrade node --ignore-preflight-errors=all >/dev/null")
        drain(node)
        kubelet(node)
    times["its last command"] = time.monotonic() - begun
    ended(api)
    return {**times, "ended": time.monotonic() - begun}


def by_slipway(m):
    (m.dir / ".slipway" / m.name / "record.json").unlink(missing_ok=True)
    m.slipway("up", "--yes")
    m.find()
    api = base.Api(m.slipway("kubeconfig").stdout, m.address["control-1"])
    m.slipway("upgrade", NEW, "--stage")
    app(m, api)
    until("the Deployment", lambda: whole(api))
    begun = time.monotonic()
    r = m.slipway("upgrade", NEW, "--yes")
    took = time.monotonic() - begun
    (m.dir / "upgrade.log").write_text(r.stderr)
    ended(api)
    return {**steps(m), "its last command": took, "ended": time.monotonic() - begun}


def steps(m):
    """Of the last run, by its journal: the seconds of its steps, those of a name that did not run at the same time added up."""
    began, spans = {}, {}
    for line in (m.dir / ".slipway" / m.name / "journal.jsonl").read_text().splitlines():
        o = json.loads(line)
        if "run" in o:
            began, spans = {}, {}
        if o.get("state") == "begin":
            began[o["step"], o.get("node")] = o["ms"]
        elif "state" in o:
            spans.setdefault(o["step"], []).append((began.get((o["step"], o.get("node")), o["ms"]), o["ms"]))
    out = {}
    for name, parts in spans.items():
        end = total = 0
        for a, b in sorted(parts):
            total += max(0, b - max(a, end))
            end = max(end, b)
        if total >= 500:
            out[name] = total / 1000
    return out


WAYS = {"kubeadm": by_kubeadm, "slipway": by_slipway}


def measure(only=None):
    base.KUBERNETES, base.WORK = OLD, base.WORK.with_name("slipway-bench-upgrade")
    m = base.Machines("1+2")
    m.slipway("down", check=False)
    found = {}
    try:
        base.prepare(m)
        images(m)
        for way in [only] if only else WAYS:
            m.each(base.WIPE)
            found[way] = WAYS[way](m)
            print(f"{way}: " + ", ".join(f"{k} {v:.1f}" for k, v in found[way].items()), flush=True)
        if base.os.environ.get("BENCH_LOG") and "slipway" in found:
            shutil.copy(m.dir / "upgrade.log", base.os.environ["BENCH_LOG"])
    finally:
        m.slipway("down", check=False)
        shutil.rmtree(base.WORK, ignore_errors=True)
    return found


# ---- the page ----

NOTE = [re.sub(r"\s+", " ", part).strip() for part in __doc__.split("\n\n")[2:]]


def section(only=None):
    found = measure(only)
    if only:
        return []
    k, s = found["kubeadm"], found["slipway"]
    out = ["| what | measured | wanted | seconds |", "|---|---|---|---|",
           f"| 1 control plane + 2 workers from {OLD} to {NEW}, against `kubeadm upgrade` with drains | **{s['ended'] / k['ended']:.2f} of its time** | at most {WANTED:.2f} | "
           f"{s['ended']:.1f} s against {k['ended']:.1f} s |", "", "Where the script's time goes:", "", "| | seconds |", "|---|---|"]
    out += [f"| {name} | {t:.1f} |" for name, t in k.items() if name not in ("ended", "its last command")]
    out += ["", "And of slipway, by its journal (steps run at the same time where they can):", "", "| | seconds |", "|---|---|"]
    out += [f"| {name} | {t:.1f} |" for name, t in s.items() if name in ("stage", "snapshot", "drain", "apply", "healthy", "verify")]
    return [*out, "", NOTE[0], "", NOTE[1]]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--only", choices=tuple(WAYS))
    print("\n".join(section(p.parse_args().only)))


if __name__ == "__main__":
    main()
