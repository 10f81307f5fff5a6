"""Text → documents, and reading objects: no server needed."""
import json

import pytest

CM = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def names(tool, tmp_path, text):
    path = tmp_path / "d.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    said = tool("documents", path)[0]
    return said["error"] if isinstance(said, dict) else [d["metadata"]["name"] for d in said]


@pytest.mark.parametrize("text, expected", [
    ("", []),
    ("---\n---\n# nothing\n---\n", []),
    (CM % "a", ["a"]),
    ("\ufeff" + CM % "a", ["a"]),
    ("---\n" + CM % "a" + "---\n" + CM % "b", ["a", "b"]),
    ("# head\n--- # first\n" + CM % "a" + "...\n---   \n" + CM % "b" + "\n---\n", ["a", "b"]),
    ("%YAML 1.1\n---\n" + CM % "a", ["a"]),
    ((CM % "a" + "---\n" + CM % "b").replace("\n", "\r\n"), ["a", "b"]),
    ("--- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n--- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}", ["a", "b"]),
    (CM % "a" + "data:\n  x: |\n    ---\n    ----\n     ---\n---\n" + CM % "b", ["a", "b"]),
    (CM % "a" + "data:\n  x: |\n    text\n----: dashes\n", ["a"]),
    (CM % "a" + 'data:\n  x: "one\n    --- two"\n---\n' + CM % "b", ["a", "b"]),
    ('{\n\t"apiVersion": "v1",\n\t"kind": "ConfigMap", "metadata": {"name": "a"}}\n---\n' + CM % "b", ["a", "b"]),
    ("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n", ["a", "b"]),
    ("x: &a 1\ny: [\n", "line 2"),
    (CM % "a" + "---\n\n\nkind: [\n", "line 7, column 7: the list opened here is not closed"),
    (CM % "a" + "---\nkind: ConfigMap\n", "the document on line 5 has no apiVersion"),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x}\n", "the document on line 1 has no metadata.name"),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n}\n", "the document on line 1 has a metadata.name that is not a string: quote it"),
    ("apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}\n", "has an apiVersion that is not a string: quote it"),
    ("- a\n", "the document on line 1 is not a map"),
    ("text\n", "the document on line 1 is not a map"),
    (CM % "a" + "kind: Pod\n", "line 4, column 1: the key \"kind\" is here twice"),
])
def test_documents(tool, tmp_path, text, expected):
    said = names(tool, tmp_path, text)
    assert said == expected if isinstance(expected, list) else expected in said, said


def test_block_of_text_is_whole(tool, tmp_path):
    (tmp_path / "d.yaml").write_text(CM % "a" + "data:\n  x: |\n    ---\n    a: 1\n    ...\n  y: 'no'\n  z: \"012\"\n")
    assert tool("documents", tmp_path / "d.yaml")[0][0]["data"] == {"x": "---\na: 1\n...\n", "y": "no", "z": "012"}


def conditions(**states):
    return {"status": {"conditions": [{"type": t, "status": s, "reason": "Because"} for t, s in states.items()]}}


def rollout(spec, generation=2, observed=2, **status):
    return {"metadata": {"generation": generation}, "spec": spec, "status": {"observedGeneration": observed, **status}}


def crashing(**container):
    """A pod of which one container ends again and again."""
    return waiting("CrashLoopBackOff", restarts=4, **container) | {"metadata": {"name": "dns-1"}, "spec": {"nodeName": "w1"}}


def waiting(reason, restarts=0, message=None, **container):
    return {"status": {"containerStatuses": [{"name": "a", "state": {"running": {}}}, {"name": "b", "restartCount": restarts, "state": {"waiting": {"reason": reason, "message": message}}, **container}]}}


ALL3 = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
NODES2 = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}


@pytest.mark.parametrize("value, field, expected", [
    (conditions(MemoryPressure="False", Ready="True"), "node", True),
    (conditions(Ready="Unknown"), "node", False),
    ({}, "node", False),
    (conditions(Ready="False"), "why", "Because"),
    ({"status": {"addresses": [{"type": "Hostname", "address": "x"}, {"type": "InternalIP", "address": "192.0.2.1"}]}}, "ip", "192.0.2.1"),
    ({"status": {}}, "ip", None),
    (conditions(Ready="True"), "pod", True),
    (conditions(Ready="True") | {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "pod", False),
    (waiting("ImagePullBackOff"), "failing", "b"),
    (waiting("ContainerCreating"), "failing", None),
    (waiting("CrashLoopBackOff", restarts=2), "failing", None),
    (waiting("CrashLoopBackOff", restarts=3), "failing", "b"),
    ({"status": {"initContainerStatuses": waiting("CreateContainerConfigError")["status"]["containerStatuses"]}}, "failing", "b"),
    ({"status": {"containerStatuses": "?"}}, "failing", None),
    (crashing(lastState={"terminated": {"message": "starting\nno nameservers found\n"}}, message="back-off"), "pods",
     "pod dns-1 on w1: CrashLoopBackOff, it ended 4 times: no nameservers found"),
    (crashing(message="back-off"), "pods", "pod dns-1 on w1: CrashLoopBackOff, it ended 4 times: back-off"),
    (waiting("ImagePullBackOff", message="x" * 5000), "pods", f"pod  on no node: ImagePullBackOff: {'x' * 300}"),
    (waiting("ContainerCreating"), "pods", None),
    (rollout({"replicas": 3}, **ALL3), "deployment", True),
    (rollout({"replicas": 3}, observed=1, **ALL3), "deployment", False),
    (rollout({"replicas": 4}, **ALL3), "deployment", False),
    (rollout({"replicas": 3}, **ALL3 | {"replicas": 4}), "deployment", False),
    (rollout({}, replicas=1, updatedReplicas=1, availableReplicas=1), "deployment", True),
    (rollout({}), "deployment", False),
    ({"metadata": {"generation": 1}, "spec": {"replicas": 0}}, "deployment", False),
    (rollout({}, **NODES2), "daemonset", True),
    (rollout({}, **NODES2 | {"numberAvailable": 1}), "daemonset", False),
    (rollout({}, **NODES2 | {"updatedNumberScheduled": 1}), "daemonset", False),
    (rollout({}, observed=1, **NODES2), "daemonset", False),
    (conditions(Established="True"), "crd", True),
    ([], "node", False),
])
def test_state(tool, tmp_path, value, field, expected):
    (tmp_path / "o.json").write_text(json.dumps(value))
    assert tool("state", tmp_path / "o.json")[0][field] == expected
