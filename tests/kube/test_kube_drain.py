"""Drain and cordon against a real API server: evictions, budgets, and what is left where it is. No kubelet is there, so a pod ends at once when it has no time to
end in, and else never."""
import json
import time

import pytest


@pytest.fixture(name="node")
def fresh_node(control, request):
    """A node and a namespace of this test."""
    name = request.node.name.removeprefix("test_").replace("_", "-")
    assert control.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n") is None
    return name


def pod(control, node, name, *, owner="ReplicaSet", grace=0, phase="Running", annotations=None, labels=None):
    """A pod that runs on the node, by the word of its status."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "of-" + name, "uid": "5a1b0000-0000-4000-8000-000000000000", "controller": True}] if owner else []
    body = {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": node, "ownerReferences": owners, "annotations": annotations or {}, "labels": labels or {}},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": grace, "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "c", "image": "example.net/none"}]}}
    path = f"/api/v1/namespaces/{node}/pods"
    said = control.one("request", "POST", path, "-", control.write("pod.json", json.dumps(body)), 0)
    assert said["status"] == 201, said["error"]
    status = {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]}}
    said = control.one("request", "PATCH", f"{path}/{name}/status", "application/merge-patch+json", control.write("status.json", json.dumps(status)), 0)
    assert said["status"] == 200, said["error"]


def budget(control, node, name, allowed):
    """A budget over all pods of the namespace, and what its controller would have counted."""
    spec = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": node},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}}
    assert control.apply(json.dumps(spec)) is None
    allow(control, node, name, allowed)


def allow(control, node, name, allowed):
    status = {"status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}}
    path = f"/apis/policy/v1/namespaces/{node}/poddisruptionbudgets/{name}/status"
    said = control.one("request", "PATCH", path, "application/merge-patch+json", control.write("budget.json", json.dumps(status)), 0)
    assert said["status"] == 200, said["error"]


def pods(control, node):
    items = control.get(f"/api/v1/namespaces/{node}/pods")["body"]["items"]
    return {p["metadata"]["name"]: "deletionTimestamp" in p["metadata"] for p in items}


def test_cordon_is_marked_as_ours(control, node):
    def look():
        n = control.get(f"/api/v1/nodes/{node}")["body"]
        return n["spec"].get("unschedulable"), n["metadata"].get("annotations", {}).get("slipway.dev/cordoned")

    assert control.one("cordon", node, "on") == {"error": None} and look() == (True, "true")
    assert control.one("cordon", node, "on") == {"error": None} and look() == (True, "true")
    assert control.one("cordon", node, "off") == {"error": None} and look() == (None, None)
    assert control.one("cordon", "nobody", "on") == {"error": 'nodes "nobody" not found'}


def test_a_node_without_pods(control, node):
    assert control.tool("drain", node, 60) == [{"error": None}]


def test_all_leave_but_the_nodes_own(control, node):
    pod(control, node, "one")
    pod(control, node, "two", owner="StatefulSet")
    pod(control, node, "of-each-node", owner="DaemonSet")
    pod(control, node, "static", owner=None, annotations={"kubernetes.io/config.mirror": "x"})
    pod(control, node, "finished", owner="Job", phase="Succeeded")
    pod(control, node, "broken", owner="Job", phase="Failed")
    said = control.tool("drain", node, 60)
    assert said[-1] == {"error": None} and not [s for s in said if "orphan" in s], said
    assert said[0] == {"left": 2, "held": ""}, said
    assert pods(control, node) == {n: False for n in ("of-each-node", "static", "finished", "broken")}


def test_pods_of_other_nodes_stay(control, node):
    pod(control, node, "here")
    assert control.apply("apiVersion: v1\nkind: Node\nmetadata: {name: elsewhere}\n") is None
    assert control.tool("drain", "elsewhere", 60) == [{"error": None}]
    assert pods(control, node) == {"here": False}


def test_a_pod_that_nothing_makes_again_is_told(control, node):
    pod(control, node, "bare", owner=None)
    pod(control, node, "kept")
    said = control.tool("drain", node, 60)
    assert [s["orphan"] for s in said if "orphan" in s] == ["bare"] and said[-1] == {"error": None}
    assert pods(control, node) == {}


def test_a_budget_holds_it_until_the_time_is_over(control, node):
    pod(control, node, "free")
    pod(control, node, "guarded", labels={"app": "guarded"})
    budget(control, node, "never", 0)
    start = time.monotonic()
    said = control.tool("drain", node, 4)
    assert time.monotonic() - start >= 4
    assert said[-1]["error"].startswith(f"the pod {node}/guarded cannot be evicted: Cannot evict pod as it would violate the pod's disruption budget"), said[-1]
    assert "never" in said[-1]["error"], "the sentence names the budget"
    assert said[-2]["left"] == 1 and "disruption budget" in said[-2]["held"]
    assert pods(control, node) == {"guarded": False}


def test_a_budget_that_lets_go(control, node):
    pod(control, node, "guarded", labels={"app": "guarded"})
    budget(control, node, "for-now", 0)
    p = control.popen("drain", node, 900)
    for line in p.stdout:
        if json.loads(line).get("held"):
            break
    allow(control, node, "for-now", 1)
    rest, _ = p.communicate(timeout=900)
    assert json.loads(rest.splitlines()[-1]) == {"error": None} and pods(control, node) == {}


def test_a_pod_that_does_not_end(control, node):
    """It was told, nobody is there to stop it; it is told once, not at every look."""
    pod(control, node, "slow", grace=600)
    said = control.tool("drain", node, 3)
    assert said[-1] == {"error": f"the pod {node}/slow was evicted but has not ended"}
    assert pods(control, node) == {"slow": True}


def test_the_api_goes_away(control, node):
    pod(control, node, "slow", grace=600)
    said = control.tool("drain", node, 3, servers=["https://127.0.0.1:1"], timeout=900)
    assert "127.0.0.1:1" in said[-1]["error"], said


def test_let_go_in_the_middle(control, node):
    pod(control, node, "slow", grace=600)
    pod(control, node, "guarded", labels={"app": "guarded"})
    budget(control, node, "never", 0)
    assert control.tool("drain", node, 900, "free")[-1] == "freed"
