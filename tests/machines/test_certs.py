"""Certificates, keys and people on a cluster that lives: listed, renewed, shut out, expired and repaired, authorities and keys changed under pods that use the API."""
import base64
import json
import os
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import asking
import pytest
from clients import read_kubeconfig
from harness import KUBECTL, NEWEST, Machines, until

USERS = "[{name: alice, groups: [team]}, {name: bob, admin: true, lifetime: 30d}]"
SPEC = f"  kubernetes: {NEWEST}\n" """\
  provider: {local: {network: 10.131.0.0/24}}
  encryption: secretbox
  auth: {users: USERS}
  certificates: {lifetime: LIFE}
  pools:
    - {name: control, roles: [control-plane, etcd], count: 1}
    - {name: worker, count: 1}
"""
BINDINGS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: alice-edits}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: both, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: team, namespace: kube-public}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}]
"""
ETCDCTL = "etcdctl --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/server.crt --key /etc/kubernetes/pki/etcd/server.key"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")


def write(m, users=USERS, life="365d"):
    (m.dir / "cluster.yaml").write_text(m.text.replace("USERS", users).replace("LIFE", life))


@pytest.fixture(scope="module")
def cluster():
    with Machines("certs", SPEC) as m:
        write(m)
        m.slipway("up")
        m.kubeconfig()
        yield m


def certificates(m, status=0):
    return {(x["node"], x["file"], x["subject"]): x for x in json.loads(m.slipway("certs", "list", "-o", "json", ok=status).stdout)["certificates"]}


def well(m):
    m.kubeconfig()
    until("the nodes are Ready", lambda: all(m.ready().values()))
    for node in m.ready():  # the API server knows each kubelet by its certificate
        until(f"the kubelet of {node} is believed", lambda n=node: m.kubectl("get", "--raw", f"/api/v1/nodes/{n}/proxy/healthz", check=False).stdout == "ok")
    m.slipway("plan", "--exit-code")


def ask(m, token):
    """What the API says to a bearer of the token: the HTTP status."""
    config = read_kubeconfig(m.dir / "kubeconfig")
    context = ssl.create_default_context(cadata=config["ca"].decode())
    request = urllib.request.Request(f"https://{config['host']}:{config['port']}/api", headers={"Authorization": f"Bearer {token}"})
    try:
        return urllib.request.urlopen(request, context=context, timeout=60).status
    except urllib.error.HTTPError as e:
        return e.code


def test_list(cluster):
    all_ = certificates(cluster)
    files = {(n, f) for n, f, _ in all_}
    for f in ("/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/etcd/peer.crt", "/etc/kubernetes/admin.conf#client-certificate",
              "/var/lib/kubelet/pki/kubelet-client-current.pem"):
        assert ("control-1", f) in files
    assert ("worker-1", "/var/lib/kubelet/pki/kubelet.crt") in files
    assert (None, "pki/ca.crt") in files and (None, "users/alice.pem") in files
    api = next(x for (_, f, _), x in all_.items() if f == "/etc/kubernetes/pki/apiserver.crt")
    assert api["subject"] == "kube-apiserver" and api["issuer"] == "kubernetes" and api["usedBy"] == "API server" and api["daysLeft"] == 364
    text = cluster.slipway("certs", "list").stdout
    assert "system:node:worker-1 (system:nodes)" in text and "BEGIN" not in text


def test_renew(cluster):
    before = certificates(cluster)
    cluster.slipway("certs", "renew", "worker-1")
    one = certificates(cluster)
    for key, x in before.items():
        if not x["authority"]:
            assert (one[key]["serial"] != x["serial"]) == (key[0] == "worker-1"), key
    cluster.slipway("certs", "renew")
    after = certificates(cluster)
    for key, x in before.items():
        assert (after[key]["serial"] == x["serial"]) == x["authority"], key
    well(cluster)


def test_tokens(cluster):
    r = cluster.slipway("token", "create", "--user", "mallory", ok=2)
    assert "there is no 'mallory' in auth.users" in r.stderr
    assert "is not a time" in cluster.slipway("token", "create", "--ttl", "soon", ok=2).stderr
    made = json.loads(cluster.slipway("token", "create", "--ttl", "2h", "-o", "json").stdout)
    short = json.loads(cluster.slipway("token", "create", "--ttl", "10s", "-o", "json").stdout)
    assert ask(cluster, made["token"]) == 200 and ask(cluster, "abcdef.0123456789abcdef") == 401
    assert re.fullmatch(r"kubeadm join \S+ --token [a-z0-9]{6}\.[a-z0-9]{16} --discovery-token-ca-cert-hash sha256:[0-9a-f]{64}", made["join"])
    listed = {t["id"]: t for t in json.loads(cluster.slipway("token", "list", "-o", "json").stdout)}
    assert listed[made["token"][:6]]["expires"] == made["expires"]
    text = cluster.slipway("token", "list").stdout
    assert made["token"][:6] in text and made["token"][7:] not in text
    until("the short one has expired", lambda: ask(cluster, short["token"]) == 401)
    until("and is cleaned away", lambda: short["token"][:6] not in cluster.slipway("token", "list").stdout)
    cluster.slipway("token", "delete", made["token"][:6])
    until("the other is refused", lambda: ask(cluster, made["token"]) == 401)
    assert "there is no token" in cluster.slipway("token", "delete", made["token"][:6], ok=2).stderr


def as_user(m, user, *args):
    r = subprocess.run([KUBECTL, "--kubeconfig", m.dir / "people", "--context", f"{user}@certs", *args], capture_output=True, text=True)
    return r.returncode == 0, r.stderr


def test_people_are_shut_out(cluster):
    """What is bound to their names goes at once, and what cannot be taken back is said."""
    cluster.kubeconfig().replace(cluster.dir / "people")
    (cluster.dir / "bindings.yaml").write_text(BINDINGS)
    cluster.kubectl("apply", "-f", str(cluster.dir / "bindings.yaml"))
    token = json.loads(cluster.slipway("token", "create", "--user", "alice", "-o", "json").stdout)["token"]
    assert ask(cluster, token) == 200
    until("alice works", lambda: as_user(cluster, "alice", "get", "pods", "-A")[0])
    assert as_user(cluster, "alice", "get", "configmaps", "-n", "kube-public")[0]
    assert as_user(cluster, "bob", "get", "secrets", "-A")[0], "an admin may do everything"
    write(cluster, "[]")
    r = cluster.slipway("plan", "--exit-code", ok=9)
    for part in ("user alice  revoke access", "remove   ClusterRoleBinding alice-edits", "leave    RoleBinding kube-system/both", f"bootstrap-token-{token[:6]}",
                 "(364 days): until then it has the rights of its group team", "slipway certs rotate-ca cluster", "auth.users[].lifetime",
                 "user bob  revoke access", "leave    ClusterRoleBinding slipway:admins", "(29 days), but nothing is bound to it any more"):
        assert part in r.stdout, r.stdout
    assert [x["user"] for x in json.loads(cluster.slipway("plan", "-o", "json").stdout)["shutOut"]] == ["alice", "bob"]
    assert as_user(cluster, "bob", "get", "secrets", "-A")[0], "a plan changes nothing"
    r = cluster.slipway("up")
    assert "user alice  revoke access" in r.stderr
    for user, what in (("alice", ["pods", "-A"]), ("alice", ["pods", "-n", "kube-system"]), ("bob", ["secrets", "-A"]), ("bob", ["nodes"])):
        until(f"{user} gets no {what}", lambda: "forbidden" in as_user(cluster, user, "get", *what)[1])
    assert as_user(cluster, "alice", "get", "configmaps", "-n", "kube-public")[0], "as the plan said: by the group in the certificate"
    until("the token is refused", lambda: ask(cluster, token) == 401)  # an API server remembers one that it has just seen for ten seconds
    assert cluster.kubectl("get", "rolebinding", "both", "-n", "kube-system", "-o", "jsonpath={.subjects[*].name}") == "carol"
    assert {f for n, f, _ in certificates(cluster) if not n and f.startswith("past/")} == {"past/alice.pem", "past/bob.pem"}
    assert "PRIVATE" not in (cluster.state / "past" / "alice.pem").read_text() and not (cluster.state / "users" / "alice.pem").exists()
    well(cluster)


@pytest.fixture(scope="module")
def pods(cluster):
    return asking.start(cluster, "worker-1")


def phase(m):
    path = m.state / "rotation.json"
    return json.loads(path.read_text()).get("ca") if path.exists() else None


@pytest.mark.soak  # four minutes: three rolls of all nodes, and each is verified
def test_rotate_all_killed_and_gone_on_with(cluster, pods):
    """kill -9 when some nodes have a certificate of the new authority and some do not: up does the rest, and nobody is ever refused."""
    if not (cluster.dir / "people").exists():  # alone, without the test before
        cluster.kubeconfig().replace(cluster.dir / "people")
    cluster.kubeconfig()
    before = certificates(cluster)
    dns = cluster.kubectl("get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "name")
    r = cluster.slipway("certs", "rotate-ca", "nonsense", ok=2)
    assert "front-proxy" in r.stderr
    p = cluster.popen("certs", "rotate-ca", "all", "--yes")
    issuing = False
    for line in p.stderr:
        issuing |= "rotation of cluster, phase issue" in line
        if issuing and "control-1: apply: done" in line:
            break
    p.kill()
    p.communicate()
    assert phase(cluster) == "issue"
    r = cluster.slipway("up")
    assert "old key is trusted until" in r.stderr
    cluster.kubeconfig()
    after = certificates(cluster)
    authorities = [k for k, x in after.items() if x["authority"] and k[1].endswith("ca.crt")]
    assert len(authorities) >= 6 and all(after[k]["serial"] != before[k]["serial"] for k in authorities)
    assert not cluster.on("control-1", "ls /etc/kubernetes/pki | grep -x ca-signing.crt || true")
    assert cluster.on("control-1", "grep -c BEGIN /etc/kubernetes/pki/ca.crt") == "1"
    well(cluster)
    for name in pods:  # the one API server restarts, so it may be away; but it is always believed, and so is the pod
        assert not refused(cluster, name)
        asking.goes_on(cluster, name)
    assert dns == cluster.kubectl("get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "name")
    cluster.kubectl("delete", "pod", *pods, "--now")
    cluster.slipway("certs", "rotate-ca", "sa", "--finish", "--yes")
    assert not (cluster.state / "rotation.json").exists() and not (cluster.state / "next").exists()
    why = as_user(cluster, "alice", "--insecure-skip-tls-verify", "get", "configmaps", "-n", "kube-public")[1]
    assert "Unauthorized" in why, "a new authority is what ends a certificate"
    assert not [f for n, f, _ in certificates(cluster) if not n and f.startswith("past/")]
    well(cluster)


def refused(m, name):
    return asking.refused(asking.asked(m, name), codes=(401,))


def stored(m, name):
    return m.on("control-1", f"PATH=$PATH:/opt/slipway/bin:/usr/local/bin; {ETCDCTL} get --print-value-only /registry/secrets/default/{name} | head -c 40 | tr -cd '[:print:]'")


@pytest.mark.soak  # as long
def test_encryption_key(cluster):
    cluster.kubectl("create", "secret", "generic", "word", "--from-literal=word=sesame")
    assert stored(cluster, "word").startswith("k8s:enc:secretbox:v1:key1:")
    cluster.slipway("encryption", "rotate", "--yes")
    assert stored(cluster, "word").startswith("k8s:enc:secretbox:v1:key2:")
    assert base64.b64decode(cluster.kubectl("get", "secret", "word", "-o", "jsonpath={.data.word}")) == b"sesame"
    assert cluster.on("control-1", "grep -c name: /etc/kubernetes/encryption/config.yaml") == "1"
    well(cluster)


@pytest.mark.soak
@pytest.mark.parametrize("at", ["trust", "issue", "finish"])
def test_killed_in_every_phase(cluster, at):
    before = certificates(cluster)
    p = cluster.popen("certs", "rotate-ca", "cluster", "front-proxy", "--yes")
    for line in p.stderr:
        if f"rotation of cluster, phase {at}" in line:
            break
    time.sleep(4)
    p.kill()
    p.communicate()
    cluster.slipway("certs", "rotate-ca", "cluster", "front-proxy", "--yes")
    after = certificates(cluster)
    for name, cn in (("ca", "kubernetes"), ("front-proxy-ca", "front-proxy-ca")):
        key = ("control-1", f"/etc/kubernetes/pki/{name}.crt", cn)
        assert after[key]["serial"] != before[key]["serial"]
    assert not (cluster.state / "rotation.json").exists() and not (cluster.state / "next").exists()
    well(cluster)


@pytest.mark.soak  # three minutes of waiting
def test_everything_expired(cluster):
    write(cluster, life="3m")
    cluster.slipway("certs", "renew")
    end = time.monotonic() + 185
    write(cluster)  # what up makes now is to last
    until("everything has expired", lambda: time.monotonic() > end, 300)
    left = certificates(cluster, status=7)
    assert all(x["state"] == "expired" for k, x in left.items() if not x["authority"] and k[0] and "kubelet-client" not in k[1])
    cluster.slipway("up")
    assert not {k: (x["state"], x["expires"]) for k, x in certificates(cluster, status=None).items() if x["state"] != "good"}
    well(cluster)
