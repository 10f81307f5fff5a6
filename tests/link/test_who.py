"""Who is at the other end: a host that is not the one that is meant gets nothing, no password and no agent."""
from pathlib import Path

import pytest
from test_trouble import user_node

MACHINE = Path("/etc/machine-id").read_text().strip()
OTHER = "0" * 32


def f(site):
    site.spec("f", [dict(kind="file", path="/etc/f", content="f")])


def untouched(site, root="root"):
    return not list((site.root(root) / "var/lib").rglob("*"))


def recorded(site, d, **kw):
    """The host key as the first run has seen it."""
    return site.run(site.target(d.port, root="first", **kw)).ok().one("hello")["hostKey"]


def test_the_recorded_host_is_let_in(site):
    d = site.sshd()
    f(site)
    key = recorded(site, d)
    assert key.startswith("ssh-ed25519 SHA256:") and key.split()[1] == site.keys.fingerprint(site.keys.host)
    site.run(site.target(d.port, spec="f", accept_new=None, strict=True, host_key=key, machine_id=MACHINE)).ok()


@pytest.mark.parametrize("options", [[], ["StrictHostKeyChecking=no"], ["StrictHostKeyChecking=accept-new"]], ids=["none", "no", "new"])
def test_a_key_that_ssh_does_not_know_is_refused_whatever_the_options(site, options):
    d = site.sshd()
    r = site.run(site.target(d.port, accept_new=None, strict=True, options=["IdentityAgent=none"] + options))
    assert "the host key of 127.0.0.1 is not known" in r.error and not r.of("hello") and untouched(site)
    assert not site.known_hosts.exists()


@pytest.mark.parametrize("turn", range(5))
def test_another_key_than_the_recorded_is_refused(site, turn):
    """ssh knows and accepts it: somebody has put it into known_hosts."""
    d = user_node(site, "ask")
    recorded(site, d, sudo_password="open sesame")
    r = site.run(site.target(d.port, accept_new=None, strict=True, host_key="ssh-ed25519 SHA256:else", sudo_password="open sesame"))
    assert "is ssh-ed25519 SHA256:" in r.error and "and not the recorded ssh-ed25519 SHA256:else" in r.error and r.closed["exit"] == 8
    assert not r.of("hello") and untouched(site)


def test_another_machine_gets_no_password(site):
    d = user_node(site, "ask")
    key = recorded(site, d, sudo_password="open sesame")
    d.close()
    took = site.path / "took"  # its sudo would be asked only after the word that asks for the password
    (site.path / "bin/sudo").write_text(f"#!/bin/sh\ntouch {took}\nexit 1\n")
    d = site.sshd(path=f"{site.path}/bin:/usr/bin:/bin", port=d.port)
    r = site.run(site.target(d.port, accept_new=None, strict=True, host_key=key, machine_id=OTHER, sudo_password="open sesame"))
    assert f"127.0.0.1 is another machine: its machine-id is not the recorded {OTHER}" in r.error and r.closed["exit"] == 8
    assert not took.exists() and untouched(site)


def test_the_key_is_seen_through_a_jump_host(site):
    near, far = site.sshd(), site.sshd(host_key=site.keys.other_host)
    f(site)
    t = site.target(far.port, spec="f", bastion=f"root@127.0.0.1:{near.port}")
    # the jump host's own ssh has the user's known_hosts: none is needed here
    r = site.run(t, wrap=["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /root && mkdir -m 700 /root/.ssh && printf "Host *\\n LogLevel DEBUG3\\n" >/root/.ssh/config && exec "$@"', "sh"]).ok()
    assert r.one("hello")["hostKey"].split()[1] == site.keys.fingerprint(site.keys.other_host)


def test_another_node_of_the_cluster_is_refused(site):
    d = site.sshd()
    f(site)
    r = site.run(site.target(d.port, spec="f")).ok()
    assert site.run(site.target(d.port)).ok().one("hello")["facts"]["node"] == "n1"
    site.spec("g", [dict(kind="file", path="/etc/f", content="g")])
    r = site.run(site.target(d.port, name="n2", spec="g", always=True))
    assert "node n2: the host at 127.0.0.1 is node n1 of this cluster, by its own record" in r.error and r.closed["exit"] == 8
    assert "slipway remove-node OLD" in r.closed["hint"] and not r.of("hello")
    assert (site.root() / "etc/f").read_text() == "f"


def test_a_host_of_another_cluster_is_refused_when_it_is_to_leave(site):
    d = site.sshd()
    f(site)
    site.run(site.target(d.port, spec="f", cluster="c2")).ok()
    r = site.run(site.target(d.port, accept_new=None, strict=True))
    assert "127.0.0.1 belongs to another cluster now (c2)" in r.error and r.closed["exit"] == 8


def test_one_that_was_changed_since_is_refused(site):
    """A link that is opened again in a run: what was applied there must be what it was."""
    d = site.sshd()
    f(site)
    site.run(site.target(d.port, spec="f")).ok()
    digest = site.run(site.target(d.port)).ok().one("hello")["digest"]
    site.run(site.target(d.port, digest=digest)).ok()
    r = site.run(site.target(d.port, digest="0" * 64))
    assert "what is applied there is not what it was" in r.error and not r.of("hello")
