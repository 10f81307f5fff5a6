"""Lists in pages, from a server of our own: one that always has one page more is not followed for ever."""
import json

import pytest

from conftest import Control
from test_kube_calls import server

PAGES_MAX = 2000  # as in src/kube/watch.c


@pytest.fixture
def pages(tmp_path):
    """Answers requests with the pages of a list, one after another on a connection: page(n), from 1, is (name, continue)."""
    control, paths = Control(tmp_path), []

    def watch(page):
        def answer(s, _):
            data = asked.pop()
            while data:
                paths.append(data.split(b" ")[1].decode())
                name, more = page(len(paths))
                body = json.dumps({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "continue": more},
                                   "items": [{"metadata": {"name": name, "uid": name, "resourceVersion": "7"}}]}).encode()
                s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                data = s.recv(65536)
        with server(control.pki, answer) as (url, asked):
            said = control.tool("watch", "/api/v1/configmaps", "", "last", timeout=900, servers=[url])
        return [(line["type"], line["name"], line["message"]) for line in said], paths

    return watch


def test_pages_are_one_list(pages):
    said, paths = pages(lambda n: (["first", "second", "last"][n - 1], f"page/{n}" if n < 3 else ""))
    assert [name for kind, name, _ in said if kind == "ADDED"] == ["first", "second", "last"]
    assert paths == ["/api/v1/configmaps?limit=500", "/api/v1/configmaps?limit=500&continue=page%2F1", "/api/v1/configmaps?limit=500&continue=page%2F2"]


def test_endless_pages(pages):
    """It is told, what came of it is not, and the list is tried again from its first page."""
    said, paths = pages(lambda n: ("endless", "more") if n <= PAGES_MAX + 1 else ("last", ""))
    assert said[0] == ("ERROR", "", "the list does not end") and said[1][:2] == ("ADDED", "last"), said[:5]
    assert len(paths) == PAGES_MAX + 2 and "continue" not in paths[-1]
