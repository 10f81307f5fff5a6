"""An OpenStack with faults by (call, nth): tokens, versions, pages, lost answers, limits."""
import json
import time

import pytest
from conftest import one, refused, tool

LIST = "compute/list servers"
SERVERS = "GET /compute/v2.1/servers/detail"
CREATE = ("compute/create server", 'body={"server": {"name": "w1", "user_data": "SECRET-user-data"}}')
POST = "POST /compute/v2.1/servers"
TOKEN = "POST /identity/v3/auth/tokens"


def some(stack, n):
    stack.servers = {f"s{i:04}": {"id": f"s{i:04}", "name": f"w{i}", "status": "ACTIVE", "tags": ["m"], "metadata": {"node": f"w{i}"}, "fault": None} for i in range(n)}


def test_a_list_by_mark(stack):
    some(stack, 2)
    said = stack.call(LIST, "mark=slipway-a b&c")
    assert [s["name"] for s in said["answer"]] == ["w0", "w1"] and said["answer"][1]["metadata"] == {"node": "w1"}
    assert said["project"] == stack.PROJECT and said["compute"] is None and said["attempts"] == 1
    method, path, headers, _ = stack.log[-1]
    assert path == "/compute/v2.1/servers/detail?tags=slipway-a%20b%26c" and headers["X-OpenStack-Nova-API-Version"] == "2.53"
    assert headers["OpenStack-API-Version"] == "compute 2.53"
    auth = json.loads(stack.log[0][3])["auth"]
    assert auth["scope"] == {"project": {"name": "p", "domain": {"id": "default"}}} and auth["identity"]["password"]["user"]["domain"] == {"name": "Default"}


def test_pages(stack):
    """Whatever the link's address is, only its marker is taken."""
    some(stack, 7)
    stack.page = 2
    said = stack.call(LIST)
    assert [s["id"] for s in said["answer"]] == sorted(stack.servers) and stack.asked[SERVERS] == 4


def test_a_page_that_repeats_itself(stack):
    some(stack, 3)
    same = (200, {"servers": [stack.servers["s0000"]], "servers_links": [{"rel": "next", "href": "/x?marker=s0000"}]}, {})
    stack.fault(SERVERS, *[same] * 9)
    assert "the list repeats a page" in stack.call(LIST)["error"]


@pytest.mark.parametrize("fault", [refused(429, 1), refused(429), refused(503), refused(429, "Wed, 21 Oct 2015 07:28:00 GMT"), "drop before", "drop after", "cut", "stall",
                                   (500, {"computeFault": {"message": "x"}}, {}), (502, "<html>bad gateway</html>", {})], ids=str)
def test_reading_goes_on(stack, fault):
    some(stack, 1)
    stack.fault(SERVERS, fault, fault) if fault != "stall" else stack.fault(SERVERS, fault)
    start = time.monotonic()
    said = stack.call(LIST, TOOL_ATTEMPT_MS="1000")
    assert len(said["answer"]) == 1 and said["attempts"] in (2, 3) and stack.asked[SERVERS] >= said["attempts"]  # libcurl itself sends once more on a connection that died
    if fault == refused(429, 1):
        assert time.monotonic() - start >= 2


@pytest.mark.parametrize("fault", [refused(429, 0), refused(503)], ids=str)
def test_what_was_refused_is_posted_again(stack, fault):
    stack.fault(POST, fault)
    assert stack.call(*CREATE)["attempts"] == 2 and len(stack.servers) == 1


@pytest.mark.parametrize("fault", ["drop before", "drop after", "cut", (500, {"computeFault": {"message": "Unexpected", "code": 500}}, {})], ids=str)
def test_a_post_whose_answer_is_lost_is_never_sent_again(stack, fault):
    """Also on a connection that libcurl would use again: it sends what dies there a second time by itself."""
    stack.fault(POST, fault)
    first, lost = stack.calls(LIST, "then", *CREATE, TOOL_RESOURCE="w1")
    assert lost["lost"] and lost["attempts"] == 1 and stack.asked[POST] == 1 and "nova: create server w1" in lost["error"] and "may have been done" in lost["error"]
    assert len(stack.servers) == (fault in ("drop after", "cut"))


def test_delete_is_replayed_and_its_own_absence_is_success(stack):
    some(stack, 1)
    stack.fault("DELETE /compute/v2.1/servers/s0000", "drop after")
    assert stack.call("compute/delete server", "id=s0000")["attempts"] == 2 and not stack.servers
    gone = stack.call("compute/delete server", "id=s0000")
    assert gone["status"] == 404 and gone["error"].startswith("nova: delete server: status 404: Instance s0000 could not be found (request req-")


def test_deadline(stack):
    stack.fault(SERVERS, *[refused(503, 1, {"x": {"message": "maintenance"}})] * 20)
    start = time.monotonic()
    said = stack.call(LIST, "timeout=1500")
    assert said["exit"] in (5, 6) and "status 503: maintenance" in said["error"] and time.monotonic() - start < 20  # as many refusals with a second each


def test_token_is_renewed_in_time(stack):
    """60 seconds of life: renewed at half of it; here 2 seconds, so every call a second later renews."""
    stack.life = 3600
    assert stack.calls(LIST, "then", LIST) and stack.asked[TOKEN] == 1
    stack.asked.clear()
    stack.life = 1
    assert [s["status"] for s in stack.calls(LIST, "then", "network/list networks", "then", LIST)] == [200] * 3
    assert stack.asked[TOKEN] >= 1


def test_a_clock_ten_minutes_off(stack):
    """The life of a token is counted by the cloud's clock: with ours it would be over already, or never."""
    for ahead in (600, -4000):
        stack.ahead = ahead
        stack.asked.clear()
        assert [s["status"] for s in stack.calls(LIST, "then", LIST)] == [200, 200] and stack.asked[TOKEN] == 1


def test_401_renews_once(stack):
    stack.fault(SERVERS, refused(401))
    assert stack.call(LIST)["attempts"] == 2 and stack.asked[TOKEN] == 2
    stack.asked.clear()
    stack.fault(SERVERS, *[refused(401)] * 5)
    said = stack.call(LIST)
    assert said["exit"] == 5 and said["attempts"] == 2 and stack.asked[TOKEN] == 2
    stack.asked.clear()
    stack.fault(POST, refused(401))
    said = stack.call(*CREATE)
    assert said["lost"] and stack.asked[POST] == 1


def test_many_calls_share_one_renewal(stack):
    some(stack, 1)
    stack.fault(SERVERS, "revoke")
    said = stack.calls(LIST, "times=5")
    assert [s["status"] for s in said] == [200] * 5 and stack.asked[TOKEN] == 2


def test_wrong_password(stack):
    """The cloud repeats it in its answer: no sentence does."""
    said = stack.call(LIST, OS_PASSWORD="wrong SECRET word")
    assert said["exit"] == 5 and "keystone: issue a token: status 401: The password is not [hidden]" in said["error"] and said["hint"]


def test_application_credential_sends_no_scope(stack):
    env = {"OS_AUTH_URL": stack.url + "/identity/v3", "OS_AUTH_TYPE": "v3applicationcredential", "OS_APPLICATION_CREDENTIAL_ID": "ac1", "OS_APPLICATION_CREDENTIAL_SECRET": "acSECRETac",
           "OS_PROJECT_NAME": "ignored"}
    assert one("call", LIST, env=env)["status"] == 200
    assert json.loads(stack.log[0][3]) == {"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "ac1", "secret": "acSECRETac"}}}}


def test_token_authentication(stack):
    env = {"OS_AUTH_URL": stack.url + "/identity/v3/", "OS_AUTH_TYPE": "token", "OS_TOKEN": "tokenSECRETtoken", "OS_PROJECT_ID": "p1"}
    assert one("call", LIST, env=env)["status"] == 200
    assert json.loads(stack.log[0][3])["auth"] == {"identity": {"methods": ["token"], "token": {"id": "tokenSECRETtoken"}}, "scope": {"project": {"id": "p1"}}}


@pytest.mark.parametrize("offered,used", [("2.96", "2.64"), ("2.64", "2.64"), ("2.63", "2.53"), ("2.53", "2.53")])
def test_microversions(stack, offered, used):
    """Asked for by the first call that is no list."""
    stack.version, stack.servers["s1"] = offered, {"id": "s1", "name": "w1"}
    said = [stack.call(LIST), stack.call("compute/read server", "id=s1")]
    assert said[0]["status"] == 200 and not said[0]["compute"] and said[1]["compute"] == used
    assert [entry[1] for entry in stack.log if entry[1] == "/compute/v2.1/"] == ["/compute/v2.1/"]


def test_versions_that_are_too_old(stack):
    stack.version, stack.balancer = "2.52", "v2.4"
    assert "nova: ask for its versions: it offers at most 2.52, and slipway needs 2.53" in stack.call(LIST)["error"]
    assert stack.call("load-balancer/list load balancers")["answer"] == []  # which are read as far as they show a mark
    assert "octavia: ask for its versions: it offers at most 2.4" in stack.call("load-balancer/read quotas", "project=p")["error"]
    stack.balancer = "v2.5"
    assert "octavia: read quotas: status 404" in stack.call("load-balancer/read quotas", "project=p")["error"]


def test_region_and_interface(stack):
    assert stack.call(LIST, OS_REGION_NAME="RegionOne")["status"] == 200
    said = stack.call("network/list networks", OS_REGION_NAME="Nowhere")
    assert "the catalogue has no public address of network in region Nowhere" in said["error"]
    said = stack.call("network/list networks", OS_INTERFACE="internalURL")
    assert "no internal address of network" in said["error"]
    assert stack.call("image/list images")["error"].startswith("glance: list images: the catalogue has no public address of image")


def test_limits(stack):
    """40 calls at 20 a second take a second or more, and never more than 3 at once."""
    start = time.monotonic()
    said = stack.calls("network/list networks", "times=40", TOOL_RATE="20", TOOL_AT_ONCE="3")
    assert len(said) == 40 and all(s["status"] == 200 for s in said) and time.monotonic() - start > 0.8


def test_throttling_never_surfaces(stack):
    stack.fault("GET /network/v2.0/networks", *[refused(429, 0.5 if i % 2 else None) for i in range(10)])
    said = stack.calls("network/list networks", "times=30")
    assert len(said) == 30 and all(s.get("status") == 200 for s in said)


def test_an_answer_that_is_too_large(stack):
    some(stack, 200)
    said = stack.call(LIST, TOOL_MAX="5000")
    assert "the answer is larger than 4 KiB" in said["error"] and said["attempts"] == 1


@pytest.mark.parametrize("body,why", [({"servers": [{"id": 7, "name": ["x"]}]}, "server: name: expected a text"), ({"servers": [{"name": "x"}]}, "server: id: expected a value"),
                                      ({"servers": [{"id": "a", "name": "x" * 1021}]}, "name: expected a text of usual length"), ({"servers": ["x"]}, "server: expected an object")])
def test_answers_that_are_not_as_they_should_be(stack, body, why):
    stack.fault(SERVERS, (200, body, {}))
    assert why in stack.call(LIST)["answer"]


def test_answers_that_are_no_json(stack):
    stack.fault(SERVERS, *[(200, "<html>login, please</html>", {})] * 9)
    said = stack.call(LIST)
    assert "neither JSON nor XML" in said["error"] and said["attempts"] == 4
    stack.fault(SERVERS, (302, "moved", {"Location": "http://198.51.100.1/"}))
    assert stack.call(LIST)["error"].startswith("nova: list servers: status 302: moved")


def test_words_of_a_cloud_are_harmless(stack):
    stack.fault(SERVERS, (403, {"forbidden": {"message": "no\x1b[31m way\nX-Auth-Token: abcSECRETdef"}}, {}))
    said = stack.call(LIST)
    assert "\x1b" not in said["error"] and "\n" not in said["error"] and "SECRET" not in said["error"] and said["kind"] == 3


def test_nobody_answers(stack):
    said = one("call", LIST, "timeout=800", env=stack.env(OS_AUTH_URL="http://127.0.0.1:9/v3"))
    assert said["exit"] == 5 and "Connection refused" in said["error"] and said["hint"]


@pytest.mark.parametrize("turns", [0, 1, 3, 20, 200])
def test_cancelled_and_freed(stack, turns):
    assert tool("cancel", LIST, turns, env=stack.env()) == ["freed"]


def test_synchronous(stack):
    some(stack, 2)
    assert len(one("do", LIST, env=stack.env())) == 2
    assert one("do", "image/list images", env=stack.env())["error"].startswith("glance: list images")


def test_the_certificate_must_be_trusted_unless_insecure(stack, tmp_path):
    """verify, cacert and insecure as clouds.yaml has them."""
    import ssl
    import subprocess
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "k.pem", "-out", "c.pem", "-days", "2", "-subj", "/CN=x",
                    "-addext", "subjectAltName=IP:127.0.0.1"], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    stack.http.socket = context.wrap_socket(stack.http.socket, server_side=True)
    stack.url = stack.url.replace("http:", "https:")
    assert "certificate is not trusted" in stack.call(LIST)["error"]
    assert stack.call(LIST, OS_CACERT=str(tmp_path / "c.pem"))["status"] == 200
    assert stack.call(LIST, OS_INSECURE="true")["status"] == 200
    (tmp_path / "clouds.yaml").write_text(f"clouds: {{a: {{verify: false, auth: {{auth_url: {stack.url}/identity, username: u, password: '{stack.PASSWORD}', project_id: p}}}}}}")
    assert one("call", LIST, cwd=tmp_path, env={"HOME": str(tmp_path)})["status"] == 200
