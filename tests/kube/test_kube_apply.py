"""Server-side apply."""
import time

CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %(plural)s.%(group)s}
spec:
  group: %(group)s
  scope: %(scope)s
  names: {plural: %(plural)s, singular: %(singular)s, kind: %(kind)s, listKind: %(kind)sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""


def crd(group, kind="Boat", scope="Namespaced"):
    return CRD % {"group": group, "kind": kind, "singular": kind.lower(), "plural": kind.lower() + "s", "scope": scope}


def config_map(name, data="{a: b}", ns="test"):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {ns}}}\ndata: {data}\n"


def body(control, path):
    said = control.get(path)
    assert said["status"] == 200, said
    return said["body"]


def test_create_change_nothing(control):
    path = "/api/v1/namespaces/test/configmaps/one"
    assert control.apply(config_map("one", "{a: b, c: d}")) is None
    first = body(control, path)
    assert first["data"] == {"a": "b", "c": "d"} and first["metadata"]["managedFields"][0]["manager"] == "slipway"
    assert control.apply(config_map("one", "{a: b, c: d}")) is None
    assert body(control, path)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert control.apply(config_map("one", "{a: x}")) is None
    assert body(control, path)["data"] == {"a": "x"}  # what is no longer wanted goes


def test_takes_fields_from_others(control):
    control.apply(config_map("taken"))
    patch = control.write("other.json", '{"data": {"a": "theirs", "more": "kept"}}')
    assert control.one("request", "PATCH", "/api/v1/namespaces/test/configmaps/taken?fieldManager=other", "application/merge-patch+json", patch, 0)["status"] == 200
    assert control.apply(config_map("taken")) is None
    assert body(control, "/api/v1/namespaces/test/configmaps/taken")["data"] == {"a": "b", "more": "kept"}


def test_the_policy_of_a_volume(control):
    """What `down --keep-volumes` applies: one field of a volume that a driver made, and nothing else of it; no volume that is gone comes again."""
    path = "/api/v1/persistentvolumes/made"
    volume = control.write("volume.json", """{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "made"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": "test.slipway.dev", "volumeHandle": "x"}}}""")
    assert control.one("request", "POST", "/api/v1/persistentvolumes?fieldManager=driver", "application/json", volume, 0)["status"] == 201
    before = body(control, path)["spec"]
    document = '{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"%s"},"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
    assert control.apply(document % "made") is None
    assert body(control, path)["spec"] == {**before, "persistentVolumeReclaimPolicy": "Retain"}
    assert "spec.accessModes" in control.apply(document % "gone") and control.get("/api/v1/persistentvolumes/gone")["status"] == 404
    assert control.one("request", "DELETE", path, "-", "none", 0)["status"] == 200


def test_order_and_kinds(control):
    """Written in the worst order; every built-in path that a cluster's own objects need."""
    text = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa, namespace: fresh}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: fresh}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d, namespace: fresh}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:slipway:test"}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "slipway:x", namespace: fresh}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:slipway:test"}
subjects: [{kind: ServiceAccount, name: sa, namespace: fresh}]
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: fresh}
spec: {ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: p, namespace: fresh}
spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: fresh}
spec: {priorityClassName: soon, containers: [{name: c, image: x}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: soon}
value: 5
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l, namespace: fresh}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: none}
provisioner: example.org/none
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: policy, namespace: fresh}
spec: {podSelector: {}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {a: b}}
---
apiVersion: v1
kind: Namespace
metadata: {name: fresh}
"""
    assert control.apply(text) is None
    assert control.apply(text) is None
    assert body(control, "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:slipway:test")["rules"]


def test_table_of_kinds_is_the_servers(control):
    """Every row of the table against discovery: plural and scope."""
    import re
    from conftest import ROOT
    rows = re.findall(r'\{ "([^"]*)", "(\w+)",\s+"(\w+)",\s+(NS|ALL) \}', (ROOT / "src/kube/kinds.c").read_text())
    groups = {g["name"]: [v["groupVersion"] for v in g["versions"]] for g in body(control, "/apis")["groups"]} | {"": ["v1"]}
    assert len(rows) > 50
    served = {}
    for group, versions in groups.items():
        for v in versions:
            for r in body(control, f"/apis/{v}" if group else "/api/v1")["resources"]:
                if "/" not in r["name"]:
                    served[group, r["kind"]] = (r["name"], r["namespaced"])
    for group, kind, plural, scope in rows:
        assert served.get((group, kind), (plural, scope == "NS")) == (plural, scope == "NS"), kind
    assert not set(served) - {(g, k) for g, k, _, _ in rows} - {k for k in served if "Review" in k[1] or k[1] in ("ComponentStatus",)} - {
        k for k in served if k[0] in ("example.org", "later.example.org", "internal.apiserver.k8s.io", "apps.example.org")}


def test_definition_and_resource_in_one_text(control):
    boats = "".join(f"---\napiVersion: example.org/v1\nkind: Boat\nmetadata: {{name: b{i}, namespace: test}}\nspec: {{size: {i}}}\n" for i in range(20))
    begin = time.monotonic()
    assert control.apply(boats + "---\n" + crd("example.org")) is None
    assert time.monotonic() - begin < 60
    assert body(control, "/apis/example.org/v1/namespaces/test/boats/b7")["spec"] == {"size": 7}


def test_resource_right_after_its_definition(control):
    """In a text of its own, started at the same time: found by discovery as soon as it is there."""
    first = control.write("crd.yaml", crd("later.example.org", "Harbour", "Cluster"))
    second = control.write("cr.yaml", "apiVersion: later.example.org/v1\nkind: Harbour\nmetadata: {name: h}\n")
    assert [s["error"] for s in control.tool("apply", second, first)] == [None, None]
    assert body(control, "/apis/later.example.org/v1/harbours/h")["kind"] == "Harbour"


def test_unknown_kind(control):
    said = control.apply("apiVersion: nowhere.org/v1\nkind: Thing\nmetadata: {name: x}\n")
    assert said == "Thing x: the API has no kind Thing in nowhere.org/v1: apply its CustomResourceDefinition first, or correct apiVersion"
    begin = time.monotonic()
    said = control.apply("apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: x}\n")
    assert "the API has no kind Deployment in apps/v1beta1" in said and time.monotonic() - begin < 30


def test_sentences(control):
    begin = time.monotonic()
    said = control.apply(config_map("Bad_Name"))
    assert said.startswith('ConfigMap test/Bad_Name: ConfigMap "Bad_Name" is invalid: metadata.name'), said
    said = control.apply(config_map("x", "{a: 1}"))
    assert said.startswith("ConfigMap test/x: ") and ".data.a" in said and "\n" not in said, said
    said = control.apply(config_map("x", ns="nowhere"))
    assert said == 'ConfigMap nowhere/x: namespaces "nowhere" not found'
    said = control.apply("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: test}\nspec: {replica: 1}\n")
    assert "Deployment test/x: " in said and ".spec.replica" in said, said
    assert time.monotonic() - begin < 30  # what is wrong stays wrong: no second tries
    assert "line 1" in control.apply("a: [")


def test_many_failures_are_told_together(control):
    said = control.apply("---\n".join(config_map(f"Bad{i}") for i in range(8)) + "---\n" + config_map("good"))
    assert said.count("is invalid") == 5 and said.endswith("; and 3 more")
    assert body(control, "/api/v1/namespaces/test/configmaps/good")


def test_failed_namespace_stops(control):
    said = control.apply(config_map("x", ns="Bad_Ns") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: Bad_Ns}\n")
    assert said.startswith("Namespace Bad_Ns: ") and "ConfigMap" not in said


def test_secrets_stay_secret(control):
    for data in ('data: {password: "hunter2secret"}', "data: {password: 918273645546372819}", "data: {password: [hunter2secret]}", "stringData: {password: {hunter2secret: hunter2secret}}"):
        said = control.apply(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: test}}\n{data}\n")
        assert said and "hunter2secret" not in said and "918273645546372819" not in said, said


def test_names_cannot_leave_their_path(control):
    said = control.apply('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "../../../namespaces/evil?x=1#", namespace: test}\n')
    assert said and control.get("/api/v1/namespaces/evil")["status"] == 404


def test_many(control):
    begin = time.monotonic()
    assert control.apply("---\n".join(config_map(f"many-{i}") for i in range(300))) is None
    assert len(body(control, "/api/v1/namespaces/test/configmaps?limit=1000")["items"]) >= 300
    assert time.monotonic() - begin < 150


def test_nothing(control):
    assert control.apply("# nothing\n") is None


def test_large_object(control):
    assert control.apply(config_map("large", "{a: " + "x" * 900_000 + "}")) is None
