"""People of an OpenID Connect provider: the kubeconfig they get, and what API servers let them do. Tokens are the test's own; a login with a
browser is in machines/test_login.py."""
import base64
import json
import re
import ssl
import stat
import time
import urllib.error
import urllib.request

import pytest
import yaml

OIDC = """\
  auth:
    users: [{name: alice}]
    oidc: {issuer: "https://login.example.net/dex", clientID: cli, caFile: oidc.pem, scopes: [email, groups]%s}
"""


# ---- kubeconfig --oidc, on paper ----

def set_oidc(paper, more=""):
    (paper.path / "oidc.pem").write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    (paper.path / "cluster.yaml").write_text((paper.path / "cluster.yaml").read_text() + OIDC % more)


def test_kubeconfig(paper):
    set_oidc(paper)
    text = paper("kubeconfig", "--oidc").stdout
    config = yaml.safe_load(text)
    (user,), (context,) = config["users"], config["contexts"]
    assert context == {"name": "oidc@verbs", "context": {"cluster": "verbs", "user": "oidc"}} and config["current-context"] == "oidc@verbs"
    run = user["user"]["exec"]
    assert list(user["user"]) == ["exec"] and run["apiVersion"] == "client.authentication.k8s.io/v1" and run["interactiveMode"] == "IfAvailable"
    assert [run["command"], *run["args"][:-1]] == [
        "kubectl", "oidc-login", "get-token", "--oidc-issuer-url=https://login.example.net/dex", "--oidc-client-id=cli", "--oidc-pkce-method=S256",
        "--oidc-extra-scope=email", "--oidc-extra-scope=groups"]
    assert base64.b64decode(run["args"][-1].removeprefix("--certificate-authority-data=")) == (paper.path / "oidc.pem").read_bytes()
    full = yaml.safe_load(paper("kubeconfig").stdout)
    assert config["clusters"] == full["clusters"]
    keys = [base64.b64decode(u["user"]["client-key-data"]).decode() for u in full["users"]]
    assert len(keys) == 2 and "PRIVATE" in keys[0], "the administrator's and alice's"
    assert not re.search(r"client-(key|certificate)", text) and "PRIVATE" not in base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


def test_secret(paper):
    set_oidc(paper, ", clientSecretFile: client")
    (paper.path / "client").write_text("s3cr: et\n")
    (paper.path / "client").chmod(0o644)
    r = paper("kubeconfig", "--oidc", ok=False)
    assert r.returncode == 3 and "others may read" in r.stderr and "s3cr" not in r.stderr + r.stdout
    (paper.path / "client").chmod(0o600)
    args = yaml.safe_load(paper("kubeconfig", "--oidc", "people").stdout)["users"][0]["user"]["exec"]["args"]
    assert "--oidc-client-secret=s3cr: et" in args and "--oidc-pkce-method=S256" not in args
    assert "s3cr" not in paper("kubeconfig").stdout


def test_merged(paper):
    set_oidc(paper)
    path = paper.path / "config"
    for args in ([], ["--oidc"], ["--oidc", "work", "--use"], ["--oidc", "work"]):
        paper("kubeconfig", "--merge", "--kubeconfig", path, *args)
    config = yaml.safe_load(path.read_text())
    assert [u["name"] for u in config["users"]] == ["kubernetes-admin@verbs", "alice@verbs", "oidc@verbs", "work@verbs"]
    assert len(config["clusters"]) == 1 and config["current-context"] == "work@verbs"
    assert config["users"][2]["user"] == config["users"][3]["user"] == yaml.safe_load(paper("kubeconfig", "--oidc").stdout)["users"][0]["user"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("args,status,words", [
    (["--oidc"], 3, "verbs's file has neither auth.oidc nor services.dex"), (["alice"], 2, "a user's name needs --oidc, got 'alice'")])
def test_not_set(paper, args, status, words):
    r = paper("kubeconfig", *args, ok=False)
    assert r.returncode == status and words in r.stderr and r.stdout == ""


@pytest.mark.parametrize("name,words", [("alice", "alice is a user with a certificate"), ("kubernetes-admin", "is a user with a certificate"), ("", "is empty")])
def test_names(paper, name, words):
    set_oidc(paper)
    r = paper("kubeconfig", "--oidc", name, ok=False)
    assert r.returncode == 2 and words in r.stderr and "choose another name" in r.stderr


# ---- tokens, on a real cluster ----

class Api:
    """The API server, asked with a token."""

    def __init__(self, site):
        (cluster,) = yaml.safe_load(site("kubeconfig", "--oidc").stdout)["clusters"]
        self.server = cluster["cluster"]["server"]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode())

    def __call__(self, token, path, body=None):
        """The status."""
        request = urllib.request.Request(self.server + path, data=body and json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})})
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=60) as r:
                return r.status
        except urllib.error.HTTPError as e:
            return e.code

    def writes(self, token, space):
        return self(token, f"/api/v1/namespaces/{space}/configmaps", {"metadata": {"generateName": "login-"}})


def until(what, seconds=300):
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.5)
    return found


PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def api(cluster):
    ask = Api(cluster)
    viewer = cluster.provider.token("vera", "viewers")
    assert until(lambda: ask(viewer, PODS) == 200), "API servers look for the provider every few seconds"
    return ask


def test_only_real_tokens(cluster, api):
    token = cluster.provider.token
    assert "/.well-known/openid-configuration" in cluster.provider.asked and "/keys" in cluster.provider.asked
    assert api(None, PODS) == 401 and api("garbage", PODS) == 401
    assert api(token("vera", "viewers", key="other"), PODS) == 401, "signed by somebody else"
    assert api(token("vera", "viewers", aud="elsewhere"), PODS) == 401
    assert api(token("vera", "viewers", iss="https://10.122.0.1"), PODS) == 401
    assert api(token("vera", "viewers", seconds=-1), PODS) == 401


def test_groups(cluster, api):
    viewer, editor, eve = (cluster.provider.token(*who) for who in (["vera", "viewers"], ["ed", "editors"], ["eve"]))
    assert api(viewer, PODS) == 200 and api.writes(viewer, "default") == api.writes(viewer, "team-a") == 403
    assert api.writes(editor, "team-a") == 201 and api.writes(editor, "default") == 403 and api(editor, PODS) == 403
    assert api(eve, "/api/v1/namespaces/team-a/pods") == 200 and api(eve, PODS) == 403
    assert api(viewer, "/api/v1/namespaces/default/secrets") == 403
    for group in ("system:masters", "kubeadm:cluster-admins", "oidc:viewers"):
        assert api(cluster.provider.token("mallory", group), PODS) == 403, "the prefix keeps the provider's groups apart"


def test_expiry(cluster, api):
    short = cluster.provider.token("vera", "viewers", seconds=20)
    assert api(short, PODS) == 200
    assert until(lambda: api(short, PODS) == 401), "API servers remember a good token for some seconds"


def test_a_wrong_provider_is_a_warning(cluster, api):
    right = cluster.provider.document
    try:
        cluster.provider.document = right | {"issuer": right["issuer"] + "/"}
        r = cluster("plan")
        assert f'its issuer is "{right["issuer"]}/": API servers accept no token of it' in r.stdout + r.stderr
    finally:
        cluster.provider.document = right
    r = cluster("plan")
    assert "warning" not in r.stdout + r.stderr and "nothing to do" in r.stdout


def test_bindings_follow_the_file(cluster, api):
    path = cluster.path / "cluster.yaml"
    before = path.read_text()
    viewer, editor, eve = (cluster.provider.token(*who) for who in (["vera", "viewers"], ["ed", "editors"], ["eve"]))
    path.write_text(re.sub(r"      - \{group: \"oidc:viewers.*\n|      - \{user.*\n", "", before) + '      - {user: "oidc:ed", role: view}\n')
    plan = cluster("plan").stdout
    assert re.findall(r"^  (?:group|user) .*", plan, re.M) == [
        "  user oidc:eve  unbind  view in namespace team-a, no longer in auth.bindings",
        "  group oidc:viewers  unbind  view in all namespaces, no longer in auth.bindings",
        "  user oidc:ed  bind  view in all namespaces"]
    assert json.loads(cluster("plan", "-o", "json").stdout)["api"][0].startswith("user oidc:eve  unbind")
    assert api(viewer, PODS) == 200, "a plan changes nothing"
    cluster("up")
    assert until(lambda: api(viewer, PODS) == 403) and until(lambda: api(eve, "/api/v1/namespaces/team-a/pods") == 403)
    assert until(lambda: api(editor, PODS) == 200) and api.writes(editor, "team-a") == 201
    assert "nothing to do" in cluster("plan").stdout
    cluster.tool("kubectl", "delete", "clusterrolebinding", "slipway:bindings:view")
    assert "user oidc:ed  bind  view in all namespaces" in cluster("plan").stdout, "what somebody removed comes back"
    path.write_text(re.sub(r"    bindings:\n(      - .*\n)+", "", before))
    cluster("up")
    assert until(lambda: api.writes(editor, "team-a") == 403)
    left = cluster.tool("kubectl", "get", "clusterrolebindings,rolebindings", "-A", "-l", "slipway.dev/auth", "-o", "name")
    assert left == "" and cluster.tool("kubectl", "get", "namespace", "team-a", "-o", "name").strip() == "namespace/team-a"
    assert "nothing to do" in cluster("plan").stdout
