"""kubeadm's tools on a cluster of slipway's (the one that the verbs were tried on): what it tells on a control-plane node, and a machine that it joins."""
import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "machines"))
from harness import EVICTION_FLAGS, HERE, NEWEST, Cluster, until  # noqa: E402

KUBERNETES = NEWEST
CONTROL, WORKER, JOINER, SECOND = "10.122.0.10", "10.122.0.40", "10.122.0.200", "10.122.0.201"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: on-NODE, labels: {app: on-NODE}}
spec:
  nodeName: NODE
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 1
  containers:
  - {name: probe, image: IMAGE, imagePullPolicy: Never, args: [serve, "8080", NODE]}
---
apiVersion: v1
kind: Service
metadata: {name: on-NODE}
spec: {selector: {app: on-NODE}, ports: [{port: 80, targetPort: 8080}]}
---
"""
NODES = ("joiner", "worker-1", "control-1")


def machine(*args, script="machine.sh"):
    """machine.sh or joiner.sh, with the cluster's bridge."""
    mark = machine.cluster.state / "machines" / "id"
    env = os.environ | {"SLIPWAY_SET": "kubeadm", "KUBERNETES": KUBERNETES, "SLIPWAY_BRIDGE": f"slw-{mark.read_text().strip()}" if mark.exists() else "none"}
    return subprocess.run([HERE / script, *args], env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def cluster(cluster):
    c = machine.cluster = Cluster("verbs", KUBERNETES, None)
    assert c.dir == cluster.path
    machine("stop", "--all")
    (c.dir / "kubeconfig").write_text(c.slipway("kubeconfig").stdout)
    yield c
    machine("stop", "--all")


def exported(cluster, node, *images):
    """Images of a node, as an archive. Without --local, ctr ends before all of a streamed archive is in the file."""
    names = "|".join(images)
    r = cluster.on(node, f"ctr -n k8s.io images export --local /tmp/images.tar $(ctr -n k8s.io images ls -q | grep -E '{names}' | grep -v @) && cat /tmp/images.tar && rm /tmp/images.tar")
    assert r.returncode == 0, r.stderr
    return r.stdout


def install(name, address, images):
    """A machine with what kubeadm wants to find."""
    for args, script in ((["start", name, address], "machine.sh"), (["install", name, *images], "joiner.sh")):
        r = machine(*args, script=script)
        assert r.returncode == 0, r.stderr
    # its disk is this computer's, which may be fuller than a kubelet likes its own
    machine("exec", name, "sh", "-c", f"echo 'KUBELET_EXTRA_ARGS={EVICTION_FLAGS}' >/etc/default/kubelet")


def join(name, command, *ignored):
    """The command that slipway printed, there."""
    command = command.split()
    assert command[:2] == ["kubeadm", "join"]
    if Path("/sys/fs/cgroup/memory").exists():  # kubeadm refuses cgroup v1 unless told
        ignored = ("SystemVerification", *ignored)
    command += [f"--ignore-preflight-errors={','.join(ignored)}"] if ignored else []
    r = machine("exec", name, *command)
    assert r.returncode == 0 and "This node has joined the cluster" in r.stdout, r.stdout + r.stderr
    return r


@pytest.fixture(scope="module")
def joined(cluster):
    """The machine after kubeadm join: all that is done to it by hand is what upstream's packages would do, and images its registry would serve."""
    images = cluster.dir / "images"
    r = machine("images", images, script="joiner.sh")
    assert r.returncode == 0, r.stderr
    (images / "probe.tar").write_bytes(exported(cluster, WORKER, "slipway.dev/probe:"))
    install("joiner", JOINER, sorted(images.glob("*.tar")))
    r = join("joiner", cluster.slipway("token", "create").stdout)
    r.cluster = cluster
    return r


@pytest.fixture(scope="module")
def approved(joined):
    """Its kubelet has the serving certificate it asked for: a person said so by name."""
    c = joined.cluster
    asks = until("its kubelet asks for a certificate", lambda: [o for o in json.loads(c.slipway("certs", "approve", "-o", "json").stdout) if not o["trouble"]])
    assert {(o["node"], o["names"]) for o in asks} == {("joiner", f"joiner, {JOINER}")}, asks
    assert "its kubelet asks for a serving certificate: slipway certs approve joiner" in c.slipway("status").stdout
    log = "/api/v1/nodes/joiner/proxy/healthz"
    assert c.kubectl("get", "--raw", log, good=range(10)) != "ok", "it serves without a certificate of the cluster's"
    r = c.slipway("certs", "approve", "joiner")
    assert r.returncode == 0 and f"is approved, for joiner, {JOINER}" in r.stdout, r.stdout + r.stderr
    until("its kubelet serves", lambda: c.kubectl("get", "--raw", log, good=range(10)) == "ok")
    return joined


# ---- on a control-plane node ----

def test_no_token_stands(cluster):
    """What a run before made with token create does not count: each has its own word."""
    said = json.loads(cluster.slipway("token", "list", "-o", "json").stdout)
    assert not [t for t in said if t["description"] != "made by slipway token create"], said
    assert "made by slipway with the cluster" not in cluster.on(CONTROL, "kubeadm token list").stdout.decode()



@pytest.mark.parametrize("command, words", [
    ("kubeadm certs check-expiration", ["admin.conf", "apiserver ", "apiserver-kubelet-client", "controller-manager.conf", "front-proxy-client", "scheduler.conf", "front-proxy-ca"]),
    (f"kubeadm config images list --kubernetes-version v{KUBERNETES}", [f"registry.k8s.io/kube-apiserver:v{KUBERNETES}", "registry.k8s.io/coredns/coredns:"]),
    ("kubeadm config print init-defaults", ["kind: ClusterConfiguration"]),
    ("kubeadm config print join-defaults", ["kind: JoinConfiguration"]),
    ("kubeadm token create --print-join-command", [f"kubeadm join {CONTROL}:6443 --token"]),
    ("kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get configmap kubeadm-config -o jsonpath={.data.ClusterConfiguration} >/tmp/c.yaml"
     " && kubeadm config validate --config /tmp/c.yaml && kubeadm config images list --config /tmp/c.yaml", ["ok\n", f"kube-scheduler:v{KUBERNETES}"]),
])
def test_it_knows_the_cluster(cluster, command, words):
    r = cluster.on(CONTROL, command)
    assert r.returncode == 0, r.stderr
    assert all(w in r.stdout.decode() for w in words), r.stdout
    assert not [line for line in r.stderr.decode().splitlines() if line.startswith(("W", "E")) or "error" in line], r.stderr


def test_check_expiration_finds_nothing_missing(cluster):
    out = cluster.on(CONTROL, "kubeadm certs check-expiration").stdout.decode()
    assert "MISSING" not in out and "<invalid>" not in out, out


# ---- a machine that joins ----

def test_it_joins(joined):
    """Without a word of complaint, but about this computer's cgroups."""
    said = [line for line in (joined.stdout + joined.stderr).splitlines() if "WARNING" in line or line.startswith("W")]
    assert all("cgroups v1" in line for line in said), said
    until("joiner is Ready", lambda: joined.cluster.ready("joiner"))


def test_its_services_are_pods_and_ours_are_not(joined):
    """Not even for a moment: the controller made one pod of each, and our nodes had their label when they registered."""
    c = joined.cluster
    for name in ("kube-proxy", "kube-flannel"):
        until(f"{name} runs", lambda n=name: c.kubectl("-n", "kube-system", "get", "daemonset", n, "-o", "jsonpath={.status.numberReady}") == "1")
        made = [e for e in json.loads(c.kubectl("-n", "kube-system", "get", "events", "-o", "json"))["items"]
                if e["involvedObject"]["name"] == name and e["reason"] == "SuccessfulCreate"]
        assert sum(e.get("count") or 1 for e in made) == 1, made
    for node in ("control-1", "worker-1"):
        fields = json.loads(c.kubectl("get", "node", node, "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]
        assert any(f["manager"] == "kubelet" and f["operation"] == "Update" and "f:slipway.dev/pool" in f["fieldsV1"]["f:metadata"].get("f:labels", {})
                   for f in fields), fields


def test_kubelets_show_a_certificate_of_the_clusters(approved, tmp_path):
    """Ours and the joined one: for their own address and name."""
    c = approved.cluster
    ca = tmp_path / "ca.crt"
    ca.write_bytes(c.on(CONTROL, "cat /etc/kubernetes/pki/ca.crt").stdout)
    for node, address in (("control-1", CONTROL), ("worker-1", WORKER), ("joiner", JOINER)):
        for how in (["-verify_ip", address], ["-verify_hostname", node]):
            r = subprocess.run(["openssl", "s_client", "-connect", f"{address}:10250", "-CAfile", ca, "-verify_return_error", *how], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            assert "Verify return code: 0 (ok)" in r.stdout, r.stdout + r.stderr
    flags = c.kubectl("-n", "kube-system", "get", "pod", "kube-apiserver-control-1", "-o", "jsonpath={.spec.containers[0].command}")
    assert "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt" in flags


def test_no_certificate_for_anothers_address(approved, tmp_path):
    """A joined machine that asks for the control plane's address gets nothing, by name or without."""
    c = approved.cluster
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", tmp_path / "k", "-out", tmp_path / "r",
                    "-subj", "/O=system:nodes/CN=system:node:joiner", "-addext", f"subjectAltName=DNS:joiner,IP:{CONTROL}"], check=True, capture_output=True)
    request = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "forged"},
               "spec": {"signerName": "kubernetes.io/kubelet-serving", "usages": ["digital signature", "server auth"],
                        "request": base64.b64encode((tmp_path / "r").read_bytes()).decode()}}
    c.kubectl("--as", "system:node:joiner", "--as-group", "system:nodes", "--as-group", "system:authenticated", "create", "-f", "-", text=json.dumps(request))
    try:
        r = c.slipway("certs", "approve", "joiner")
        assert r.returncode == 6 and "it asks for other names and addresses than its Node has" in r.stderr, r.stdout + r.stderr
        assert "apply: unchanged" in c.up().stderr
        assert not json.loads(c.kubectl("get", "csr", "forged", "-o", "json"))["status"]
    finally:
        c.kubectl("delete", "csr", "forged")


def test_flannel_may_change_its_own_node_only(approved, tmp_path):
    """With the credential that lies on each: by certificate on ours, by its pod's token on the joined one."""
    c = approved.cluster
    own = {"metadata": {"annotations": {"flannel.alpha.coreos.com/test": "x"}}}
    label = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    ca, pair = tmp_path / "ca.crt", tmp_path / "flannel.pem"
    ca.write_bytes(c.on(CONTROL, "cat /etc/kubernetes/pki/ca.crt").stdout)
    conf = c.on(WORKER, "cat /etc/kubernetes/flannel.conf").stdout.decode()
    pair.write_bytes(b"".join(base64.b64decode(re.search(rf"client-{part}-data: *(\S+)", conf)[1].strip('"')) for part in ("certificate", "key")))
    (pod,) = json.loads(c.kubectl("-n", "kube-system", "get", "pods", "-l", "app=flannel", "-o", "json"))["items"]
    token = c.kubectl("-n", "kube-system", "create", "token", "flannel", "--bound-object-kind", "Pod", "--bound-object-name", pod["metadata"]["name"],
                      "--bound-object-uid", pod["metadata"]["uid"]).strip()

    def patch(credential, node, change):
        """As flannel does it: without a look before."""
        return subprocess.run(["curl", "-s", "--noproxy", "*", "--cacert", ca, *credential, "-X", "PATCH", "-H", "Content-Type: application/strategic-merge-patch+json", "-d", json.dumps(change),
                               f"https://{CONTROL}:6443/api/v1/nodes/{node}/status"], capture_output=True, text=True).stdout

    for credential, node in ((["--cert", pair], "worker-1"), (["-H", f"Authorization: Bearer {token}"], "joiner")):
        assert json.loads(patch(credential, node, own))["metadata"]["annotations"]["flannel.alpha.coreos.com/test"] == "x"
        for other in {"worker-1", "joiner", "control-1"} - {node}:
            assert "may change that node's Node and no other" in patch(credential, other, own)
        assert "nothing else of a Node's metadata and spec" in patch(credential, node, label)


def test_pods_on_it_reach_the_others(approved):
    """Both ways: by address, by service address, by service name."""
    c = approved.cluster
    image = c.on(WORKER, "ctr -n k8s.io images ls -q | grep slipway.dev/probe: | head -n 1").stdout.decode().strip()
    c.kubectl("apply", "-f", "-", text="".join(POD.replace("NODE", n).replace("IMAGE", image) for n in NODES))

    def of_each(kind, *path):
        found = {o["metadata"]["name"]: o for o in json.loads(c.kubectl("get", kind, "-o", "json"))["items"]}
        for key in path:
            found = {name: o.get(key, {}) for name, o in found.items()}
        return found

    until("the pods run", lambda: all(of_each("pods", "status", "phase").get(f"on-{n}") == "Running" for n in NODES))
    pods, services = of_each("pods", "status", "podIP"), of_each("services", "spec", "clusterIP")
    urls = [u for b in NODES for u in (f"http://{pods[f'on-{b}']}:8080/", f"http://{services[f'on-{b}']}/", f"http://on-{b}.default.svc.cluster.local./")]
    for a in NODES:
        out = c.kubectl("exec", f"on-{a}", "--", "/probe", "ask", "-t", "120", *urls, good=range(10))
        assert out.count("ok ") == len(urls) and all(out.count(f" {b}\n") == 3 for b in NODES), f"from {a}:\n{out}"
    assert "GET /" in c.kubectl("logs", "on-joiner")


def test_up_leaves_it_alone(approved):
    c = approved.cluster
    before = c.kubectl("get", "node", "joiner", "-o", "jsonpath={.metadata.labels}")
    r = c.up()
    assert r.stderr.count("apply: unchanged") == 2 and "verify: unchanged" in r.stderr, r.stderr
    assert c.kubectl("get", "node", "joiner", "-o", "jsonpath={.metadata.labels}") == before
    for name in ("kube-proxy", "kube-flannel"):
        assert c.kubectl("-n", "kube-system", "get", "daemonset", name, "-o", "jsonpath={.metadata.generation}") == "1"


def test_up_approves_its_renewal(approved):
    """For what was approved before; the plan says so."""
    c = approved.cluster
    r = machine("exec", "joiner", "sh", "-c", "rm /var/lib/kubelet/pki/kubelet-server-current.pem && systemctl restart kubelet")
    assert r.returncode == 0, r.stderr
    line = f"node joiner  approve  its kubelet's serving certificate, for joiner, {JOINER}"
    until("its kubelet asks again", lambda: line in c.slipway("plan").stdout)
    assert "approved the serving certificate of joiner" in c.up().stderr
    until("its kubelet serves", lambda: c.kubectl("get", "--raw", "/api/v1/nodes/joiner/proxy/healthz", good=range(10)) == "ok")
    assert "nothing to do" in c.slipway("plan").stdout


def test_a_token_of_before_goes(cluster):
    """A cluster of before has a token that each up made good for another day: the plan names it, and up takes it away."""
    identity = cluster.state / "identity.json"
    kept = identity.read_text()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bootstrap-token-before", "namespace": "kube-system"}, "type": "bootstrap.kubernetes.io/token",
              "stringData": {"token-id": "before", "token-secret": "0123456789abcdef", "description": "made by slipway with the cluster", "expiration": "2036-01-01T00:00:00Z",
                             "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"}}
    cluster.kubectl("create", "-f", "-", text=json.dumps(secret))
    try:
        identity.write_text(json.dumps(json.loads(kept) | {"tokenID": "before", "tokenSecret": "0123456789abcdef"}))
        assert "bootstrap token before  remove" in cluster.slipway("plan").stdout
        assert "removed bootstrap token before" in cluster.up().stderr
        assert "before" not in cluster.slipway("token", "list").stdout
        assert "nothing to do" in cluster.slipway("plan").stdout
    finally:
        identity.write_text(kept)


def test_status_tells_of_it(approved):
    joined = approved
    r = joined.cluster.slipway("status")
    assert r.returncode == 0, r.stdout + r.stderr
    assert f"joiner: Ready, v{KUBERNETES}, {JOINER} (joined from outside, not in cluster.yaml)" in r.stdout, r.stdout
    o = json.loads(joined.cluster.slipway("status", "-o", "json").stdout)
    assert o["healthy"] and not o["problems"] and [(n["name"], n["ready"], n["pool"]) for n in o["others"]] == [("joiner", True, None)]
    assert {n["name"] for n in o["nodes"]} == {"control-1", "worker-1"}


# ---- a machine that joins as a control plane ----

def secrets(cluster):
    return cluster.kubectl("-n", "kube-system", "get", "secrets,roles,rolebindings", "-o", "name").split()


def test_for_a_control_plane_no_longer_than_two_hours(cluster):
    r = cluster.slipway("token", "create", "--control-plane", "--ttl", "3h")
    assert r.returncode == 2 and "--ttl: '3h' is not a time of at most two hours" in r.stderr, r.stderr
    assert "secret/kubeadm-certs" not in secrets(cluster)


def test_a_control_plane_joins(joined):
    """The keys are in the API as long as the token is. Its API server reads what the others encrypted, and nobody of ours is disturbed."""
    c = joined.cluster
    images = c.dir / "images" / "control"
    images.mkdir()
    (images / "control.tar").write_bytes(exported(c, CONTROL, "/kube-apiserver:", "/kube-controller-manager:", "/kube-scheduler:"))
    install("second", SECOND, [*sorted((c.dir / "images").glob("*.tar")), images / "control.tar"])
    # encryption is on: the key does not go through the API
    there = Path(machine("root", "second").stdout.strip()) / "etc/kubernetes/encryption"
    there.mkdir(mode=0o700)
    (there / "config.yaml").write_bytes(c.on(CONTROL, "cat /etc/kubernetes/encryption/config.yaml").stdout)
    made = json.loads(c.slipway("token", "create", "--control-plane", "-o", "json").stdout)
    key, token = made["certificateKey"], made["token"][:6]
    assert made["join"].endswith(f" --control-plane --certificate-key {key}") and re.fullmatch("[0-9a-f]{64}", key)
    held = json.loads(c.kubectl("-n", "kube-system", "get", "secret", "kubeadm-certs", "-o", "json"))
    assert [(o["kind"], o["name"], o["controller"]) for o in held["metadata"]["ownerReferences"]] == [("Secret", f"bootstrap-token-{token}", True)]
    assert set(held["data"]) == {"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key", "external-etcd-ca.crt", "external-etcd.crt", "external-etcd.key"}
    r = join("second", made["join"], "ImagePull")  # CoreDNS's, which it does not run
    assert "a new control plane instance was created" in r.stdout, r.stdout
    until("second is Ready", lambda: c.ready("second"))
    # what it got: the cluster's CAs, and a client of etcd; not etcd's CA key
    pki = machine("exec", "second", "sh", "-c", "cd /etc/kubernetes/pki; find . -type f | sort; openssl x509 -in apiserver-etcd-client.crt -noout -subject").stdout.split("\n")
    assert "./etcd/ca.crt" in pki and "./etcd/ca.key" not in pki and "subject=CN = kube-apiserver-etcd-client" in pki, pki
    # its API server serves, and reads Secrets that others wrote
    c.kubectl("create", "secret", "generic", "shared", "--from-literal=a=b")
    own = f"--server=https://{SECOND}:6443"
    assert c.kubectl(own, "get", "--raw", "/readyz") == "ok"
    assert c.kubectl(own, "get", "secret", "shared", "-o", "jsonpath={.data.a}") == "Yg=="
    # with the token everything goes
    c.slipway("token", "delete", token)
    until("the keys are gone", lambda: not [n for n in secrets(c) if "kubeadm-certs" in n])
    # it is an outsider: told of, never touched
    until("it asks", lambda: "second" in c.slipway("certs", "approve").stdout)
    assert c.slipway("certs", "approve", "second").returncode == 0
    assert "nothing to do" in until("the plan is empty", lambda: (o := c.slipway("plan").stdout) and "nothing to do" in o and o)
    r = c.slipway("status")
    assert r.returncode == 0 and f"second: Ready, v{KUBERNETES}, {SECOND} (joined from outside, not in cluster.yaml)" in r.stdout, r.stdout
    r = c.slipway("verify")
    assert r.returncode == 0, r.stdout + r.stderr
    r = c.slipway("encryption", "rotate", "--yes")
    assert r.returncode == 4 and "second is a control plane that joined with kubeadm" in r.stderr, r.stderr
