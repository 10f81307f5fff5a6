"""kubeconfig --merge, without a cluster: what is replaced, what stays, and how the file is written."""
import os
import stat

import pytest
import yaml

OTHERS = """\
apiVersion: v1
kind: Config
preferences: {colors: true}
users:
- name: kubernetes-admin
  user: {token: "12345"}
- name: exec
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, args: [--cluster, "yes", ""], env: null, provideClusterInfo: false}
current-context: other
clusters:
- {name: other, cluster: {server: "https://other:6443", certificate-authority: ca.crt}}
contexts:
- name: kubernetes-admin@verbs
  context: {cluster: old, user: old, namespace: mine}
- {name: other, context: {cluster: other, user: kubernetes-admin}}
x-notes: "a: b # c\\nline two"
"""


def merge(site, text, *args, ok=True, name="config"):
    path = site.path / name
    if text is not None:
        path.write_text(text)
    r = site("kubeconfig", "--merge", "--kubeconfig", path, *args, ok=ok)
    return r, path


def by_name(entries):
    return {e["name"]: e for e in entries}


def test_into_nothing(paper):
    r, path = merge(paper, None, name="deep/er/config")
    assert "the current context is kubernetes-admin@verbs" in r.stdout
    new, printed = yaml.safe_load(path.read_text()), yaml.safe_load(paper("kubeconfig").stdout)
    assert new["current-context"] == "kubernetes-admin@verbs" and new["clusters"] == printed["clusters"]
    assert new["users"][0]["user"] == printed["users"][0]["user"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in path.parent.iterdir()) == ["config"]


@pytest.mark.parametrize("text", ["", "\n", "# only a remark\n", "apiVersion: v1\nkind: Config\nclusters: null\ncontexts: null\nusers: null\ncurrent-context: \"\"\n"])
def test_into_an_empty_file(paper, text):
    _, path = merge(paper, text)
    assert yaml.safe_load(path.read_text())["current-context"] == "kubernetes-admin@verbs"


def test_others_stay(paper):
    before = yaml.safe_load(OTHERS)
    _, path = merge(paper, OTHERS)
    after = yaml.safe_load(path.read_text())
    assert list(after) == list(before), "the order of the file"
    assert after["users"][:2] == before["users"] and after["clusters"][:1] == before["clusters"] and after["contexts"][1] == before["contexts"][1]
    for key in ("current-context", "preferences", "x-notes"):
        assert after[key] == before[key]
    assert set(by_name(after["users"])) == {"kubernetes-admin", "exec", "kubernetes-admin@verbs"}
    context = after["contexts"][0]["context"]
    assert context == {"cluster": "verbs", "user": "kubernetes-admin@verbs", "namespace": "mine"}


def test_twice_is_once(paper):
    _, path = merge(paper, OTHERS)
    first = path.read_bytes()
    merge(paper, None)
    assert path.read_bytes() == first


def test_a_stale_entry_is_replaced(paper):
    stale = "clusters: [{name: verbs, cluster: {server: 'https://gone', insecure-skip-tls-verify: true}}]\n"
    _, path = merge(paper, stale)
    (entry,) = yaml.safe_load(path.read_text())["clusters"]
    assert set(entry["cluster"]) == {"server", "certificate-authority-data"} and entry["cluster"]["server"] == "https://10.122.0.10:6443"


def test_use(paper):
    _, path = merge(paper, OTHERS, "--use")
    assert yaml.safe_load(path.read_text())["current-context"] == "kubernetes-admin@verbs"


def test_a_link_stays_one(paper):
    (paper.path / "real").write_text(OTHERS)
    (paper.path / "config").symlink_to("real")
    merge(paper, None)
    assert (paper.path / "config").is_symlink() and "verbs" in (paper.path / "real").read_text()


def test_which_file(paper):
    home = paper.path / "home"
    home.mkdir()
    env = {"HOME": str(home), "KUBECONFIG": ""}
    paper("kubeconfig", "--merge", env=env)
    assert (home / ".kube" / "config").is_file()
    paper("kubeconfig", "--merge", env=dict(env, KUBECONFIG=f":{paper.path}/one:{paper.path}/two"))
    assert (paper.path / "one").is_file() and not (paper.path / "two").exists()


@pytest.mark.parametrize("text,word", [("- a\n", "not a map"), ("clusters: {}\n", "not a list"), ("a: [\n", "config:"), ("a: 1\na: 2\n", "config:")])
def test_what_is_no_kubeconfig_is_left_alone(paper, text, word):
    r, path = merge(paper, text, ok=False)
    assert r.returncode == 3 and word in r.stderr, r.stderr
    assert path.read_text() == text and not os.path.exists(f"{path}.lock")


def test_while_kubectl_writes(paper):
    (paper.path / "config.lock").touch()
    r, path = merge(paper, OTHERS, ok=False)
    assert r.returncode == 1 and "config.lock" in r.stderr and path.read_text() == OTHERS
    assert (paper.path / "config.lock").exists(), "the lock is kubectl's"


def test_options_that_need_merge(paper):
    r = paper("kubeconfig", "--use", ok=False)
    assert r.returncode == 2 and "--use needs --merge" in r.stderr
