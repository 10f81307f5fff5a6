"""`slipway schema` is judged by those who read it: a JSON Schema validator, and a real API server for the CustomResourceDefinition."""
import copy
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema
import pytest
from upstream import NEWEST
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden" / "nodes"))
import cases  # noqa: E402

EXAMPLES = sorted((cases.ROOT / "examples").glob("*.yaml"))
METAL = yaml.safe_load((cases.ROOT / "examples" / "metal.yaml").read_text())
# Documents of ours that must be fine: the examples, what init writes, what Kubespray inventories become.
GOOD = EXAMPLES + sorted((cases.ROOT / "tests/golden/kubespray").glob("*/cluster.yaml")) + sorted((cases.ROOT / "tests/golden/nodes").glob("*/cluster.yaml"))


def change(doc, path, value):
    """A copy with the value at the path: "spec.pools.0.count"."""
    doc = copy.deepcopy(doc)
    *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    at = doc
    for p in parents:
        at = at[p]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return doc


# what, where, the value (None: taken away), and whether the API server can see it too: where a value may have two types it cannot
BAD = [
    ("unknown field", "spec.kubernets", NEWEST, True),
    ("unknown field deep down", "spec.auth.oidc.isuer", "x", True),
    ("unknown field of a pool", "spec.pools.0.hots", [], True),
    ("no version", "spec.kubernetes", None, True),
    ("no pools", "spec.pools", None, True),
    ("a version that is none", "spec.kubernetes", "latest", True),
    ("a number for text", "spec.provider.ssh.user", 7, True),
    ("text for a number", "spec.api.port", "6443", True),
    ("a number out of range", "spec.api.port", 70000, True),
    ("text for a boolean", "spec.provider.ssh.sudo", "yes", True),
    ("a map for a list", "spec.pools", {}, True),
    ("a word that is not in the list", "spec.network.proxyMode", "userspace", True),
    ("two providers", "spec.provider.local", {}, True),
    ("a relative path on a node", "spec.pools.0.disks.0.mount", "data", True),
    ("a duration without its unit", "spec.upgrade.drainTimeout", "5", True),
    ("a URL of another kind", "spec.auth.oidc.issuer", "ftp://x", True),
    ("a label's value that is none", "spec.pools.0.labels", {"a": "b c"}, True),
    ("a gate that is no boolean", "spec.featureGates", {"A": "yes"}, True),
    ("text for a number behind a short form", "spec.audit", {"level": "metadata", "maxAge": "3"}, True),
    ("a fabric that is not carried", "spec.network.fabric", "weave", False),
    ("an unknown field behind a short form", "spec.audit", {"level": "metadata", "maxage": 3}, False),
    ("a taint without effect", "spec.pools.1.hosts.2.taints", ["gpu=yes"], False),
    ("a role that is none", "spec.pools.0.roles", ["master"], False),
    ("an option that nothing acts on yet", "spec.heal", {"maxAtOnce": 1}, False),
    ("such an option of a pool", "spec.pools.0.machine", {"disk": "20GiB"}, False),
]


@pytest.fixture(scope="session")
def validator():
    schema = json.loads(cases.run("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_definition_is_used_and_described(validator):
    schema = validator.schema
    text = json.dumps(schema)
    for name, body in schema["$defs"].items():
        assert text.count(f'"#/$defs/{name}"') >= 1, f"{name} is defined and not used"
        assert body["additionalProperties"] is False
        for field, s in body["properties"].items():
            assert s.get("description"), f"{name}.{field} is not described"


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_json_schema_takes(path, validator):
    errors = [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(yaml.safe_load(path.read_text()))]
    assert not errors


@pytest.mark.parametrize("what,path,value,_", BAD, ids=[b[0] for b in BAD])
def test_json_schema_refuses(what, path, value, _, validator):
    assert not validator.is_valid(change(METAL, path, value))


def test_json_schema_defaults_are_valid(validator):
    """Defaults and examples are values that the schema itself takes."""
    schema, wrong = validator.schema, []
    for name, body in {"spec": schema["properties"]["spec"], **schema["$defs"]}.items():
        for field, s in body["properties"].items():
            v = jsonschema.Draft202012Validator({**s, "$defs": schema["$defs"]})
            for value in ([s["default"]] if "default" in s else []) + s.get("examples", []):
                wrong += [f"{name}.{field}: {value!r}: {e.message}" for e in v.iter_errors(value)]
    assert not wrong


# ---- the API server ----

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.slipway.dev"
CLUSTERS = "/apis/slipway.dev/v1alpha1/namespaces/default/clusters"
UNCHECKED = ssl._create_unverified_context()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Api:
    """etcd and kube-apiserver on the loopback; kubectl with --context of its own."""
    authorization = "AlwaysAllow"

    def __init__(self, programs, directory):
        self.programs, self.dir, self.children = programs, directory, []
        self.token = secrets.token_hex(16)
        self.port = free_port()

    def start(self, name, *args):
        log = open(self.dir / f"{name}.log", "wb")
        env = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "GOMAXPROCS": "2", "GOGC": "50"}
        child = subprocess.Popen([self.programs.upstream(name), *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir, env=env)
        log.close()
        self.children.append((name, child))

    def up(self):
        client, peer = free_port(), free_port()
        self.start("etcd", f"--data-dir={self.dir}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}", f"--advertise-client-urls=http://127.0.0.1:{client}",
                   f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                   f"--initial-cluster=default=http://127.0.0.1:{peer}", "--unsafe-no-fsync", "--log-level=warn")
        subprocess.run(["openssl", "genrsa", "-out", self.dir / "sa.key", "2048"], check=True, capture_output=True)
        (self.dir / "tokens").write_text(f"{self.token},judge,judge,system:masters\n")
        self.start("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1", f"--secure-port={self.port}", f"--cert-dir={self.dir}/certs",
                   "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={self.dir}/sa.key", f"--service-account-signing-key-file={self.dir}/sa.key",
                   "--service-cluster-ip-range=10.0.0.0/24", f"--authorization-mode={self.authorization}", f"--token-auth-file={self.dir}/tokens",
                   "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--allow-privileged", "--enable-priority-and-fairness=false", "--v=0")
        self.wait("readyz", lambda: self.request("GET", "/readyz")[0] == 200)

    def wait(self, what, done, seconds=900):
        end = time.monotonic() + seconds
        while not done():
            for name, child in self.children:
                assert child.poll() is None, f"{name} ended:\n{(self.dir / f'{name}.log').read_text(errors='replace')[-3000:]}"
            assert time.monotonic() < end, f"{what}: not within {seconds} s"
            time.sleep(0.3)

    def request(self, method, path, text=None):
        """(status, body) as kubectl would get them, without its start and its look at all kinds there are; status None: no answer yet."""
        call = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", text and text.encode(), {"Authorization": f"Bearer {self.token}", "Content-Type": "application/yaml"}, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=UNCHECKED)).open(call, timeout=600) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError:
            return None, ""

    def create(self, text):
        """Only judged, not kept, and read strictly."""
        return self.request("POST", f"{CLUSTERS}?dryRun=All&fieldValidation=Strict", text)

    def kubectl(self, *args, text=None):
        cmd = [self.programs.upstream("kubectl"), f"--server=https://127.0.0.1:{self.port}", "--insecure-skip-tls-verify", f"--token={self.token}", "--kubeconfig=/dev/null", *args]
        return subprocess.run([str(c) for c in cmd], input=text or "", capture_output=True, text=True, timeout=600, env={"PATH": os.environ["PATH"], "HOME": str(self.dir)})

    def down(self):
        """Nothing of theirs is kept, and an API server that is asked to end waits minutes for an etcd that has gone."""
        for _, child in reversed(self.children):
            child.kill()
            child.wait()


def condition(crd, kind):
    return next((c["status"] for c in (crd.get("status", {}).get("conditions") or []) if c["type"] == kind), None)


@pytest.fixture(scope="session")
def api(programs, tmp_path_factory):
    """An API server that knows the kind Cluster."""
    a = Api(programs, tmp_path_factory.mktemp("api"))
    try:
        a.up()
        r = a.kubectl("apply", "-f", "-", text=cases.run("schema", "--crd").stdout.decode())
        assert r.returncode == 0, r.stderr

        def established():
            return condition(json.loads(a.request("GET", CRD)[1]), "Established") == "True" and a.request("GET", CLUSTERS)[0] == 200
        a.wait("Established", established)
        yield a
    finally:
        a.down()


def test_crd_is_structural(api):
    crd = json.loads(api.request("GET", CRD)[1])
    assert condition(crd, "NamesAccepted") == "True"
    assert condition(crd, "NonStructuralSchema") in (None, "False"), crd["status"]["conditions"]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_api_takes(path, api):
    """The file as it is; read back, the API server has dropped nothing."""
    written = yaml.safe_load(path.read_text())
    status, said = api.create(path.read_text())
    assert status == 201, said
    assert json.loads(said)["spec"] == json.loads(json.dumps(written["spec"]))


@pytest.mark.parametrize("what,path,value", [b[:3] for b in BAD if b[3]], ids=[b[0] for b in BAD if b[3]])
def test_api_refuses(what, path, value, api):
    status, said = api.create(json.dumps(change(METAL, path, value)))
    assert status in (400, 422), said
    assert "strict decoding" in said or "is invalid" in said, said


def test_api_shows_columns_and_status(api):
    """Applied for real: what `kubectl get` shows, the short name, and the status apart from the spec."""
    assert api.kubectl("apply", "--validate=strict", "-f", str(EXAMPLES[0])).returncode == 0
    name = yaml.safe_load(EXAMPLES[0].read_text())["metadata"]["name"]
    status = {"status": {"nodes": 3, "ready": 2}}
    r = api.kubectl("patch", "swc", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    assert r.returncode == 0, r.stderr
    head, row = api.kubectl("get", "swc").stdout.splitlines()
    assert head.split() == ["NAME", "VERSION", "NODES", "READY", "AGE"]
    assert row.split()[:4] == [name, NEWEST, "3", "2"]
    r = api.kubectl("explain", "cluster.spec.pools.disks")
    assert "mount" in r.stdout, r.stdout + r.stderr


BUILT_IN = ["metrics-server", "local-path", "kube-state-metrics", "nodelocaldns", "dns-autoscaler", "registry", "node-problem-detector", "kube-vip", "ingress", "prometheus", "multus"]
WITH_VALUES = {"kube-vip": "{addresses: [192.0.2.64/28, 192.0.2.90-192.0.2.99], interface: eth1}", "registry": "{storage: 20GiB, port: 5001}", "prometheus": "{storage: 20Gi, days: 30}"}


# The controllers and drivers of clouds, which a provider's section asks for.
CLOUDS = {"openstack": ("openstack: {cloud: {controller: true, csi: true}, image: debian-12}", "flavor: m1.large", ["openstack-cloud-controller", "cinder-csi"]),
          "aws": ("aws: {region: eu-central-1, zones: [eu-central-1a], image: ami-0123456789abcdef0, iam: {control: managed}, cloud: {controller: true, csi: true}}",
                  "instanceType: m7i.large", ["aws-cloud-controller", "ebs-csi"])}


def judged(api, directory, name):
    """Read strictly, as the plan has them judged; a namespace of their own must be there before."""
    text = subprocess.run([cases.SLIPWAY, "addons", name], cwd=directory, capture_output=True, text=True, check=True).stdout
    for o in yaml.safe_load_all(text):
        if o["kind"] == "Namespace":
            assert api.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(o)).returncode == 0
    r = api.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", text=text)
    assert r.returncode == 0 and "Warning" not in r.stderr, r.stderr


@pytest.fixture(scope="session")
def addons(tmp_path_factory):
    """A directory whose file has every built-in addon."""
    path = tmp_path_factory.mktemp("addons")
    rows = ", ".join(f"{{name: {name}, values: {WITH_VALUES[name]}}}" if name in WITH_VALUES else name for name in BUILT_IN)
    (path / "cluster.yaml").write_text(f"apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: demo}}\nspec:\n  kubernetes: {NEWEST}\n"
                                       f"  pools: [{{name: control, roles: [control-plane, etcd], count: 1}}, {{name: worker, count: 1}}]\n  services: {{addons: [{rows}]}}\n")
    return path


@pytest.mark.parametrize("name", BUILT_IN)
def test_api_takes_the_objects_of(name, api, addons):
    judged(api, addons, name)


@pytest.mark.parametrize("cloud,name", [(cloud, name) for cloud, (_, _, names) in CLOUDS.items() for name in names])
@pytest.mark.parametrize("system", ["", ", os: flatcar"])
def test_api_takes_the_objects_of_clouds(cloud, name, system, api, tmp_path):
    provider, size, _ = CLOUDS[cloud]
    provider = provider.replace("image:", "userData: ignition, image:") if system else provider
    (tmp_path / "cluster.yaml").write_text(f"apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: demo}}\nspec:\n  kubernetes: {NEWEST}\n  provider: {{{provider}}}\n"
                                           f"  pools: [{{name: control, roles: [control-plane, etcd], count: 3, {size}{system}}}, {{name: worker, count: 1, {size}{system}}}]\n")
    judged(api, tmp_path, name)


def test_all_built_in_ones_are_judged(addons):
    rows = json.loads(subprocess.run([cases.SLIPWAY, "addons", "-o", "json"], cwd=addons, capture_output=True, check=True).stdout)
    assert [r["name"] for r in rows if r["kind"] == "built-in"] == BUILT_IN + [name for *_, names in CLOUDS.values() for name in names]
