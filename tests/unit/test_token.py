"""token create against an API of the test's own: chosen tokens, and what a control plane gets that joins."""
import base64
import json
import re

import pytest
from paper_api import Api, paper

SYSTEM = "/api/v1/namespaces/kube-system/secrets"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system"
TOKEN = "abcdef.0123456789abcdef"
NAMES = {"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key", "external-etcd-ca.crt", "external-etcd.crt", "external-etcd.key"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with paper(tmp_path_factory.mktemp("paper")) as slipway:
        yield slipway


@pytest.fixture
def api(made):
    Api.objects, Api.fails = {}, set()
    return made


def chosen(api, text, *args, mode=0o600):
    file = api.path / "token"
    file.write_text(text)
    file.chmod(mode)
    return api("token", "create", "--token-file", "token", *args)


def value(path, key):
    return base64.b64decode(Api.objects[path]["data"][key]).decode()


# ---- a chosen token ----

@pytest.mark.parametrize("text", ["", "abcdef", "ABCDEF.0123456789abcdef", TOKEN + "0", TOKEN[:-1], TOKEN + "\nx", TOKEN.replace(".", "-"), "x" * 100])
def test_no_token(api, text):
    r = chosen(api, text)
    assert r.returncode == 2 and "--token-file: " in r.stderr and "0123456789" not in r.stderr.split("hint:")[0], r.stderr
    assert not Api.objects


def test_the_file_is_its_owners(api):
    r = chosen(api, TOKEN, mode=0o644)
    assert r.returncode == 2 and "--token-file: others may read token (its mode is 0644)" in r.stderr and not Api.objects, r.stderr
    r = api("token", "create", "--token-file", "nowhere")
    assert r.returncode == 2 and "--token-file: " in r.stderr and "nowhere" in r.stderr, r.stderr


def test_chosen(api):
    r = chosen(api, TOKEN + "\n", "--ttl", "1h")
    assert r.returncode == 0 and f" --token {TOKEN} " in r.stdout, r.stderr
    path = f"{SYSTEM}/bootstrap-token-abcdef"
    assert value(path, "token-secret") == TOKEN[7:]
    first = value(path, "expiration")
    assert chosen(api, TOKEN, "--ttl", "3h").returncode == 0 and value(path, "expiration") > first, "twice is once, valid anew"
    r = chosen(api, "abcdef.fedcba9876543210")
    assert r.returncode == 2 and "there is already a token abcdef, with another secret" in r.stderr and "slipway token delete abcdef" in r.stderr, r.stderr
    assert "fedcba" not in r.stderr and TOKEN[7:] not in r.stderr and value(path, "token-secret") == TOKEN[7:]
    r = api("token", "create", "--token-file", "-", given="ghijkl.0123456789abcdef\n")
    assert r.returncode == 0 and f"{SYSTEM}/bootstrap-token-ghijkl" in Api.objects, r.stderr


# ---- for a control plane ----

def opened(sealed, key):
    """As kubeadm opens it: AES-256-GCM with the nonce before and the tag behind."""
    ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead", reason="this computer lacks python's cryptography")
    raw = base64.b64decode(sealed)
    return ciphers.AESGCM(bytes.fromhex(key)).decrypt(raw[:12], raw[12:], None).decode()


def test_for_a_control_plane(api):
    r = api("token", "create", "--control-plane", "-o", "json")
    assert r.returncode == 0, r.stderr
    made = json.loads(r.stdout)
    key, token = made["certificateKey"], made["token"][:6]
    assert re.fullmatch("[0-9a-f]{64}", key) and made["join"].endswith(f" --control-plane --certificate-key {key}")
    held = Api.objects[f"{SYSTEM}/kubeadm-certs"]
    owner = [{"apiVersion": "v1", "kind": "Secret", "name": f"bootstrap-token-{token}", "uid": f"uid-of-bootstrap-token-{token}", "controller": True, "blockOwnerDeletion": True}]
    role, binding = Api.objects[f"{RBAC}/roles/kubeadm:kubeadm-certs"], Api.objects[f"{RBAC}/rolebindings/kubeadm:kubeadm-certs"]
    assert all(o["metadata"]["ownerReferences"] == owner for o in (held, role, binding))
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["kubeadm-certs"], "verbs": ["get"]}]
    assert [s["name"] for s in binding["subjects"]] == ["system:bootstrappers:kubeadm:default-node-token"]
    assert set(held["data"]) == NAMES
    again = json.loads(api("token", "create", "--control-plane", "-o", "json").stdout)
    assert again["certificateKey"] != key and Api.objects[f"{SYSTEM}/kubeadm-certs"]["data"] != held["data"], "each time with another key"


def test_what_it_gets(api):
    made = json.loads(api("token", "create", "--control-plane", "-o", "json").stdout)
    data = Api.objects[f"{SYSTEM}/kubeadm-certs"]["data"]
    state, node = api.path / ".slipway" / "paper" / "pki", api.path / "out" / "c1" / "root" / "etc" / "kubernetes" / "pki"
    files = {"external-etcd-ca.crt": state / "etcd" / "ca.crt", "external-etcd.crt": node / "apiserver-etcd-client.crt", "external-etcd.key": node / "apiserver-etcd-client.key"}
    for name in NAMES:
        assert opened(data[name], made["certificateKey"]) == files.get(name, state / name).read_text(), name


def test_what_nobody_saw_goes(api):
    """The Secret is refused: the token that was made for it is deleted."""
    Api.fails = {f"{RBAC}/roles"}
    r = api("token", "create", "--control-plane")
    assert r.returncode != 0 and "uploading the Secret kubeadm-certs" in r.stderr and "no quota for this" in r.stderr and not r.stdout, r.stderr
    assert not [p for p in Api.objects if "bootstrap-token" in p]


@pytest.mark.parametrize("args,more,sentence", [
    (["--ttl", "3h"], "", "--ttl: '3h' is not a time of at most two hours"),
    ([], "  etcd: {run: static-pod}\n", "with etcd.run: static-pod the machine would become an etcd member"),
])
def test_refused(api, args, more, sentence):
    r = api("token", "create", "--control-plane", *args, more=more)
    assert r.returncode in (2, 4) and sentence in r.stderr and "hint: " in r.stderr, r.stderr
    assert not Api.objects


@pytest.mark.parametrize("verb", [["encryption", "rotate"], ["certs", "rotate-ca", "cluster"]])
def test_no_rotation_while_it_is_there(api, verb):
    """It would get neither the new CA nor the new key. A node of the file is no such."""
    path = "/api/v1/nodes?limit=100&labelSelector=node-role.kubernetes.io%2Fcontrol-plane%2C%21slipway.dev%2Fpool"
    Api.objects[path] = {"items": [{"metadata": {"name": name}} for name in ("c1", "second")]}
    r = api(*verb, "--yes")
    assert r.returncode == 4 and "second is a control plane that joined with kubeadm" in r.stderr and "nothing was changed" in r.stderr, r.stderr
    assert not (api.path / ".slipway" / "paper" / "rotation.json").exists()
