"""People's own files: profiles as botocore reads them, clouds.yaml as openstacksdk does; XML that nobody should send."""
import json
import os
import subprocess
import sys

import pytest
import yaml
from conftest import CLEAN, one, tool

# One process for all cases: the import is most of the time.
BOTOCORE = """
import json, os, sys
from botocore.session import Session
def answer(profile):
    s = Session(profile=profile)
    try:
        c = s.get_credentials()
        f = c.get_frozen_credentials() if c and c.method in ("env", "shared-credentials-file", "config-file") else None
        return {"method": c.method if c else None, "keys": [f.access_key, f.secret_key, f.token] if f else None, "region": s.get_config_variable("region")}
    except Exception as e:
        return {"failed": type(e).__name__}
out = []
for env, profiles in json.load(sys.stdin):
    os.environ.update(env)
    out.append([answer(p) for p in profiles])
print(json.dumps(out))
"""
KINDS = {"env": "static", "shared-credentials-file": "static", "config-file": "static", "custom-process": "process", "assume-role": "role", "assume-role-with-web-identity": "web"}
CONFIGS = {
    "plain": ("[default]\nregion = eu-west-1\n[profile a]\nregion=us-east-1\naws_access_key_id=A1\naws_secret_access_key=S1\n", "[default]\naws_access_key_id = D\naws_secret_access_key = DS\n",
              ["default", "a", "absent"]),
    "both files": ("[profile a]\naws_access_key_id=FROMCONFIG\naws_secret_access_key=S1\nregion = x-y-1\n", "[a]\naws_access_key_id : FROMCREDS\naws_secret_access_key: S2\naws_session_token=T\n", ["a"]),
    "quoted names": ('[profile "two words"]\naws_access_key_id=A\naws_secret_access_key=S\n[profile \'b\']\nregion = r-1\naws_access_key_id=B\naws_secret_access_key=S\n', "", ["two words", "b"]),
    "nested and comments": ("# c\n; c\n[default]\ns3 =\n  addressing_style = path\n  max_queue_size = 10\n\nregion = eu-north-1\naws_access_key_id = A ; no comment\naws_secret_access_key = S#x\n", "", ["default"]),
    "long values": ("[default]\nregion = eu-north-1\naws_access_key_id = A\naws_secret_access_key = one\n   two\n# c\n   three\n", "", ["default"]),
    "capitals": ("[default]\nREGION = eu-north-1\nAWS_Access_Key_Id = A\naws_secret_access_key = S\n", "", ["default"]),
    "DEFAULT": ("[DEFAULT]\nregion = all-1\n[profile a]\naws_access_key_id = A\naws_secret_access_key = S\n", "", ["a"]),
    "no profile word": ("[a]\nregion = eu-north-1\naws_access_key_id = A\naws_secret_access_key = S\n", "", ["a"]),
    "half a key": ("[profile a]\naws_access_key_id = A\n", "", ["a"]),
    "role": ("[profile r]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = base\nregion = eu-west-1\n[profile loop]\nrole_arn = arn:x\nsource_profile = loop2\n[profile loop2]\nrole_arn = arn:x\nsource_profile = loop\n"
             "[profile nothing]\nrole_arn = arn:x\n[profile chain]\nrole_arn = arn:y\nsource_profile = r\n", "[base]\naws_access_key_id = A\naws_secret_access_key = S\n",
             ["r", "loop", "nothing", "chain"]),
    "web": ("[profile w]\nrole_arn = arn:aws:iam::1:role/x\nweb_identity_token_file = /nonexistent\n", "", ["w"]),
    "process": ("[profile p]\ncredential_process = /bin/false x\n", "", ["p"]),
    "process and keys": ("[profile p]\ncredential_process = /bin/false x\naws_access_key_id = A\naws_secret_access_key = S\n", "", ["p"]),
    "twice": ("[default]\nregion = a\n[default]\nregion = b\n", "", ["default"]),
    "option twice": ("[default]\nregion = a\nregion = b\n", "", ["default"]),
    "no section": ("region = a\n[default]\n", "", ["default"]),
    "no value": ("[default]\nregion\n", "", ["default"]),
}


def judged(script, cases):
    r = subprocess.run([sys.executable, "-c", script], input=json.dumps(cases), env=CLEAN, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """{name: (environment, [what botocore says])}"""
    envs = {}
    for name, (config, credentials, _) in CONFIGS.items():
        where = tmp_path_factory.mktemp("aws")
        (where / "config").write_text(config)
        (where / "credentials").write_text(credentials)
        envs[name] = {"AWS_CONFIG_FILE": str(where / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(where / "credentials"), "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(where)}
    theirs = judged(BOTOCORE, [(envs[n], CONFIGS[n][2]) for n in CONFIGS])
    return {n: (envs[n], theirs[i]) for i, n in enumerate(CONFIGS)}


@pytest.mark.parametrize("name", CONFIGS)
def test_profiles_are_botocores(name, profiles):
    env, theirs = profiles[name]
    for profile, wanted in zip(CONFIGS[name][2], theirs):
        ours = one("source", profile, env=env)
        if "failed" in wanted or wanted["method"] is None:
            # fetching is theirs at once, ours later
            late = ours.get("source", {}).get("kind") in ("process", "web", "role")
            assert "error" in ours or late, (profile, wanted, ours)
            continue
        assert "error" not in ours, (profile, wanted, ours)
        assert ours["source"]["kind"] == KINDS[wanted["method"]] and ours["region"] == wanted["region"]
        if wanted["keys"]:
            assert [ours["source"][k] for k in ("id", "secret", "token")] == wanted["keys"]


def test_the_environment_wins_unless_a_profile_is_asked_for(tmp_path):
    (tmp_path / "credentials").write_text("[a]\naws_access_key_id = FILE\naws_secret_access_key = S\n")
    env = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "S", "HOME": str(tmp_path)}
    assert one("source", "-", env={**env, "AWS_PROFILE": "a"})["source"]["id"] == "ENV"
    assert one("source", "a", env=env)["source"]["id"] == "FILE"


def test_single_sign_on_has_a_hint(tmp_path):
    (tmp_path / "config").write_text("[profile s]\nsso_session = x\nsso_account_id = 1\n[profile m]\nrole_arn = arn:x\nsource_profile = s\nmfa_serial = arn:mfa\n")
    env = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "HOME": str(tmp_path)}
    assert "export-credentials --profile s" in one("source", "s", env=env)["hint"] and "export-credentials --profile m" in one("source", "m", env=env)["hint"]


def test_endpoints_that_people_set(tmp_path):
    (tmp_path / "config").write_text("[profile a]\nservices = x\nendpoint_url = http://all\naws_access_key_id = A\naws_secret_access_key = S\n[services x]\nec2 =\n  endpoint_url = http://one\n")
    env = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "HOME": str(tmp_path)}
    assert one("source", "a", env=env)["endpoint"] == "http://one"
    assert one("source", "a", env={**env, "AWS_ENDPOINT_URL": "http://env"})["endpoint"] == "http://env"
    assert one("source", "a", env={**env, "AWS_ENDPOINT_URL": "http://env", "AWS_ENDPOINT_URL_EC2": "http://ec2"})["endpoint"] == "http://ec2"
    assert one("source", "a", env={**env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"})["endpoint"] is None


SDK = """
import importlib, json, os, sys, warnings
warnings.simplefilter("ignore")
from openstack.config import loader
def answer(name, region):
    try:
        c = loader.OpenStackConfig().get_one(cloud=name, **({"region_name": region} if region else {}))
        return {"auth": c.config["auth"], "region": c.region_name, "interface": c.get_interface(), "verify": c.get_requests_verify_args()[0],
                "override": c.config.get("compute_endpoint_override")}
    except Exception as e:
        return {"failed": str(e)}
out, before = [], dict(os.environ)
for env, where, cases in json.load(sys.stdin):
    os.environ.clear()
    os.environ.update(before, **env)
    os.chdir(where)
    importlib.reload(loader)  # the search path is made then
    out.append([answer(*c) for c in cases])
print(json.dumps(out))
"""
AUTH = {"auth_url": "https://k/v3", "username": "u", "password": "p", "project_name": "n", "user_domain_name": "D", "project_domain_name": "D"}
CLOUDS = {
    "plain": ({"a": {"auth": AUTH, "region_name": "R1"}}, {}, {}, [("a", None), ("a", "R1"), (None, None), ("absent", None)]),
    "regions": ({"a": {"auth": AUTH, "regions": ["R1", {"name": "R2", "values": {"interface": "internal"}}]}}, {}, {}, [("a", None), ("a", "R2"), ("a", "R3")]),
    "secure": ({"a": {"auth": {**AUTH, "password": "old"}}}, {"a": {"auth": {"password": "fromsecure"}}}, {}, [("a", None)]),
    "old names": ({"a": {"auth": {"auth_url": "https://k", "username": "u", "password": "p", "tenant_name": "t", "domain_name": "d"}, "endpoint_type": "internalURL"}}, {}, {}, [("a", None)]),
    "dashes": ({"a": {"auth": {"auth_url": "https://k", "username": "u", "password": "p", "project-name": "t", "user-domain-id": "d", "project-domain-id": "d2"}, "region-name": "x"}}, {}, {}, [("a", None)]),
    "beside auth": ({"a": {"auth": {"auth_url": "https://k", "username": "u", "password": "p", "project_name": "inner"}, "project_name": "outer", "project_domain_id": "d", "user_domain_id": "e"}}, {}, {},
                    [("a", None)]),
    "credential": ({"a": {"auth_type": "v3applicationcredential", "auth": {"auth_url": "https://k", "application_credential_id": "i", "application_credential_secret": "s"}}}, {}, {}, [("a", None)]),
    "token": ({"a": {"auth_type": "token", "auth": {"auth_url": "https://k", "token": "t", "project_id": "p"}}}, {}, {}, [("a", None)]),
    "insecure": ({"a": {"auth": AUTH, "verify": False}, "b": {"auth": AUTH, "insecure": True}, "c": {"auth": AUTH, "cacert": "~/ca.pem"}}, {}, {}, [("a", None), ("b", None), ("c", None), (None, None)]),
    "vendor": ({"a": {"profile": "acme", "auth": {k: v for k, v in AUTH.items() if k != "auth_url"}}}, {}, {"acme": {"auth": {"auth_url": "https://acme/{region_name}/v3"}, "region_name": "north",
                                                                                                                  "interface": "internal"}}, [("a", None)]),
    "override": ({"a": {"auth": AUTH, "compute_endpoint_override": "https://c"}}, {}, {}, [("a", None)]),
}
NAMES = {"auth_url": "auth_url", "username": "username", "password": "password", "project_name": "project_name", "project_id": "project_id", "user_domain_name": "user_domain_name",
         "user_domain_id": "user_domain_id", "project_domain_name": "project_domain_name", "project_domain_id": "project_domain_id", "token": "token",
         "application_credential_id": "credential_id", "application_credential_secret": "credential_secret"}


def agree(wanted, ours):
    if "failed" in wanted:
        assert "error" in ours and ours["hint"], (wanted, ours)
        return
    assert "error" not in ours, (wanted, ours)
    for theirs, name in NAMES.items():
        assert wanted["auth"].get(theirs) == ours[name], (theirs, wanted, ours)
    assert (wanted["region"] or None) == ours["region"] and (wanted["interface"] or "public").removesuffix("URL") == ours["interface"] and wanted["override"] == ours["override"]
    assert ours["insecure"] == (wanted["verify"] is False) and (ours["ca_file"] == wanted["verify"] if isinstance(wanted["verify"], str) else True)


ENVIRONMENTS = [
    ({**{f"OS_{k.upper()}": v for k, v in AUTH.items()}, "OS_REGION_NAME": "R9", "OS_INTERFACE": "internal"}, [(None, None)]),
    ({"OS_CLIENT_CONFIG_FILE": "named.yaml", "OS_CLOUD": "b"}, [(None, None), ("a", None)]),
    ({"OS_CLIENT_CONFIG_FILE": "named.yaml", "OS_USERNAME": "x", "OS_PASSWORD": "y", "OS_AUTH_URL": "https://env", "OS_TENANT_NAME": "t"}, [(None, None), ("a", None)]),
]


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    """[(environment, directory, cases, [what openstacksdk says])]: of CLOUDS, then of ENVIRONMENTS."""
    all_cases = []
    for name, (files, secure, vendors, cases) in CLOUDS.items():
        where = tmp_path_factory.mktemp("os")
        beside = where / ".config" / "openstack" if name != "plain" else where
        beside.mkdir(parents=True, exist_ok=True)
        (beside / "clouds.yaml").write_text(yaml.safe_dump({"clouds": files}))
        if secure:
            (beside / "secure.yaml").write_text(yaml.safe_dump({"clouds": secure}))
        if vendors:
            (where / "clouds-public.yaml").write_text(yaml.safe_dump({"public-clouds": vendors}))
        all_cases.append(({"HOME": str(where)}, str(where), cases))
    for env, cases in ENVIRONMENTS:
        where = tmp_path_factory.mktemp("env")
        (where / "named.yaml").write_text(yaml.safe_dump({"clouds": {"a": {"auth": {**AUTH, "username": "file"}}, "b": {"auth": {**AUTH, "username": "b"}}}}))
        all_cases.append(({"HOME": str(where), **env}, str(where), cases))
    return [(*case, said) for case, said in zip(all_cases, judged(SDK, all_cases))]


@pytest.mark.parametrize("i", range(len(CLOUDS) + len(ENVIRONMENTS)), ids=[*CLOUDS, *("environment",) * len(ENVIRONMENTS)])
def test_clouds_are_openstacksdks(i, clouds):
    env, where, cases, theirs = clouds[i]
    for (cloud, region), wanted in zip(cases, theirs):
        if cloud is None and i == list(CLOUDS).index("insecure"):
            wanted = {"failed": "several clouds"}  # theirs takes none, and fails later
        agree(wanted, one("clouds", cloud or "-", region or "-", env=env, cwd=where))


def test_clouds_that_cannot_be_used(tmp_path):
    def said(text):
        (tmp_path / "clouds.yaml").write_text(text)
        return one("clouds", "-", "-", env={"HOME": str(tmp_path)}, cwd=tmp_path)
    assert "has no password" in said("clouds: {a: {auth: {auth_url: 'https://k', username: u}}}")["error"]
    assert "auth_type v3oidcpassword" in said("clouds: {a: {auth_type: v3oidcpassword, auth: {auth_url: 'https://k'}}}")["error"]
    assert "is no http address" in said("clouds: {a: {auth: {auth_url: 'file:///etc/passwd', username: u, password: p}}}")["error"]
    assert "clouds.yaml:1:" in said("clouds: {a: {auth")["error"] and "expected a map" in said("[1, 2]")["error"]
    assert "profile vexxhost" in said("clouds: {a: {profile: vexxhost, auth: {username: u, password: p}}}")["error"]
    os.unlink(tmp_path / "clouds.yaml")
    assert "there is no clouds.yaml" in one("clouds", "-", "-", env={"HOME": str(tmp_path)}, cwd=tmp_path)["error"]


def test_no_credentials_is_one_exit_status(tmp_path):
    """5 for both clouds: the file of the cluster has no error."""
    env = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    assert one("clouds", "-", "-", env=env, cwd=tmp_path)["exit"] == 5
    (tmp_path / "clouds.yaml").write_text("clouds: {a: {auth: {auth_url: 'https://k', username: u}}}")
    for cloud in ("a", "b"):
        assert one("clouds", cloud, "-", env=env, cwd=tmp_path)["exit"] == 5
    assert one("source", "-", env=env, cwd=tmp_path)["exit"] == 5


def signed(tmp_path, method, url, body, headers, token=None):
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    (tmp_path / "body").write_bytes(body)
    date = "20150830T123600Z"
    request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
    request.context["timestamp"] = date
    request.headers["X-Amz-Date"] = date
    if token:
        request.headers["X-Amz-Security-Token"] = token
    auth = SigV4Auth(Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token), "service", "us-east-1")
    canonical = auth.canonical_request(request)
    wanted = auth.signature(auth.string_to_sign(request, canonical), request)
    ours = one("sign", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service", date, method, url, tmp_path / "body",
               *[w for n, v in {**headers, "x-amz-date": date, **({"x-amz-security-token": token} if token else {})}.items() for w in (n.lower(), v)])
    assert ours["canonical"] == canonical
    assert ours["authorization"].endswith(f"Signature={wanted}")
    return ours


def test_signatures(tmp_path):
    get = signed(tmp_path, "GET", "https://example.amazonaws.com/", b"", {})
    # the public test suite's get-vanilla
    assert get["authorization"] == ("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, "
                                    "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
    signed(tmp_path, "GET", "https://example.amazonaws.com", b"", {})
    signed(tmp_path, "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1&Param1=a&Param=&P-1=x&P=y", b"", {})
    signed(tmp_path, "GET", "https://example.amazonaws.com:443/a%20b/%C3%A4~*/x", b"", {})
    signed(tmp_path, "GET", "http://127.0.0.1:5000/x/", b"", {})
    signed(tmp_path, "POST", "https://example.amazonaws.com/", b"Action=x&Version=1", {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"})
    signed(tmp_path, "POST", "https://example.amazonaws.com/", b'{"a": 1}', {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "T.x"}, token="token/+==")


@pytest.mark.parametrize("text,why", [
    ("<a>" * 40 + "</a>" * 40, "nested too deeply"), ('<!DOCTYPE a [<!ENTITY b "cccc">]><a>&b;</a>', "document type"), ("<a><b></a>", "mismatched"), ("", "no element"), ("<a>", "no element"),
    ("<a/><b/>", "junk"), ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type"), ("<a>&#0;</a>", "invalid"), ("<a>&x;</a>", "undefined entity")])
def test_hostile_xml(tmp_path, text, why):
    (tmp_path / "x").write_text(text)
    assert why in one("xml", tmp_path / "x")["error"]


def test_xml(tmp_path):
    (tmp_path / "x").write_text('<?xml version="1.0"?>\n<R xmlns="u" xmlns:p="v"> <p:s a="1">\n <item><k>1</k></item><item><k>2 &amp; 3</k></item></s><e/><t> a <![CDATA[<b>]]></t></R>'.replace("</s>", "</p:s>"))
    assert tool("xml", tmp_path / "x") == [{"s": {"item": [{"k": "1"}, {"k": "2 & 3"}]}, "e": "", "t": " a <b>"}]
