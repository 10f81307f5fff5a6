"""Scripted runs for ui_tool."""


def five(fast=1.0):
    """Five nodes; w3 fails in the middle."""
    nodes = ["c1", "w1", "w2", "w3", "w4"]
    out = ["step artifacts -", "step prepare -"]
    out += [f"step machine {n} -/prepare" for n in nodes]
    out += [f"step connect {n} machine" for n in nodes]
    out += ["step preflight - artifacts " + " ".join(f"{n}/connect" for n in nodes)]
    out += [f"step apply {n} -/preflight" for n in nodes]
    out += ["step API - preflight"]
    out += [f"step Ready {n} apply -/API" for n in nodes]
    out += ["step DNS - API " + " ".join(f"{n}/Ready" for n in nodes)]

    def at(ms, text):
        out.append(f"at {int(ms * fast)} {text}")

    for p in range(0, 1001, 100):
        at(50 + p, f"doing artifacts - {p} downloading kubernetes")
    at(400, "kept prepare -")
    at(1200, "done artifacts -")
    for i, n in enumerate(nodes):
        at(900 + 150 * i, f"done machine {n}")
        at(1300 + 160 * i, f"done connect {n}")
    at(2100, "changed preflight - w4: its clock is 12 seconds behind; set the clock")
    at(2200, "done preflight -")
    for i, n in enumerate(nodes):
        for p in range(0, 10):
            at(2250 + 70 * p + 10 * i, f"doing apply {n} {p * 100} sending {p * 9} of 90 MB")
        at(2950 + 20 * i, f"doing apply {n} -1 started kubelet.service")
        for k in range(4):
            at(2900 + 20 * i + k, f"changed apply {n} created /etc/kubernetes/file-{k}.yaml")
        if n == "w3":
            at(3200, f"changed apply {n} failed kubelet.service: exited with status 1")
            at(3250, f"fail apply {n} the unit kubelet.service did not start: exited with status 1")
        else:
            at(3100 + 80 * i, f"done apply {n}")
            at(4000 + 150 * i, f"done Ready {n}")
    at(3700, "done API -")
    return "\n".join(out) + "\n"


def many(count, ms=2000):
    out = [f"step apply n{i}" for i in range(count)]
    out += [f"at {ms if i else 200} {'fail' if i == count - 1 else 'done'} apply n{i} {'the disk is full' if i == count - 1 else ''}" for i in range(count)]
    out[count + count - 1] = f"at 300 fail apply n{count - 1} the disk is full"
    return "\n".join(out) + "\n"
