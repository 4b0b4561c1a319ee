"""The agent's own way to an API server: a real HTTPS server with a CA of the test's, and a pod's folder."""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from ghost_agent.fleet import CLAIMS, NODES, PODS
from ghost_agent.in_cluster import InCluster
from ghost_agent.watcher import Expired
from kubectl_ghost import __version__
from kubectl_ghost.domain.errors import GhostError, GuardRefusal
from tests.unit.agent.kube import hardware, node, pod


class Handler(BaseHTTPRequestHandler):
    """Answers with what comes next: a status and a body, or lines after which the connection may break off."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        split = urlsplit(self.path)
        self.server.seen.append((self.command, split.path, dict(parse_qsl(split.query)), self.headers, body))
        status, answer = self.server.answers.popleft()
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.close_connection = True
        if status != BROKEN_OFF:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_PATCH = answer

    def log_message(self, *_):
        pass


BROKEN_OFF = 299
"""A status under which the connection ends before the answer does."""


@pytest.fixture
def server(certificates):
    """An API server; `answers` are given one after the other, `seen` are the requests."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    http.socket = context.wrap_socket(http.socket, server_side=True)
    http.answers, http.seen = deque(), []
    http.handle_error = lambda *_: None
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def account(tmp_path, certificates):
    """A pod's service account folder."""
    shutil.copy(certificates / "ca.crt", tmp_path / "ca.crt")
    (tmp_path / "token").write_text("secret\n")
    return tmp_path


@pytest.fixture
def reader(server, account, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.server_address[1]))
    return InCluster(account)


def status(code, message):
    return code, {"kind": "Status", "code": code, "message": message}


def page(*names, version="7", more=""):
    metadata = {"resourceVersion": version, **({"continue": more} if more else {})}
    return 200, {"items": [{"metadata": {"name": name}} for name in names], "metadata": metadata}


def listed(reader, collection=NODES):
    items, version = reader.list(collection, lambda item: item["metadata"]["name"])
    return items, version


def lines(*events):
    return b"".join(json.dumps({"type": kind, "object": item}).encode() + b"\n" for kind, item in events)


def item(name, version):
    return {"metadata": {"name": name, "resourceVersion": version}}


def test_a_list_comes_in_pages_and_each_is_asked_for_as_the_account(server, reader):
    server.answers.extend([page("a", "b", more="next"), page("c", version="8")])
    assert listed(reader) == (["a", "b", "c"], "8")
    selector = {"labelSelector": "app.kubernetes.io/managed-by=kubectl-ghost", "limit": "500"}
    assert [(method, path, query) for method, path, query, _, _ in server.seen] == [
        ("GET", "/api/v1/nodes", selector),
        ("GET", "/api/v1/nodes", {**selector, "continue": "next"}),
    ]
    for _, _, _, headers, _ in server.seen:
        assert headers["Authorization"] == "Bearer secret"
        assert headers["User-Agent"] == f"kubectl-ghost/{__version__}"


def test_pods_that_hold_nothing_are_not_asked_for(server, reader):
    server.answers.extend([page(), page()])
    listed(reader, PODS)
    listed(reader, CLAIMS)
    (_, pods, query, _, _), (_, claims, all_of_them, _, _) = server.seen
    assert (pods, query["fieldSelector"]) == (
        "/api/v1/pods",
        "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    )
    assert (claims, all_of_them) == ("/apis/resource.k8s.io/v1/resourceclaims", {"limit": "500"})


def test_a_token_that_is_replaced_is_used_from_then_on(server, reader, account):
    server.answers.extend([page(), page()])
    listed(reader)
    (account / "token").write_text("another")
    listed(reader)
    assert [headers["Authorization"] for *_, headers, _ in server.seen] == ["Bearer secret", "Bearer another"]


def test_pages_that_expire_are_asked_for_all_at_once(server, reader):
    server.answers.extend([page("a", more="next"), status(410, "expired"), page("a", "b", version="9")])
    assert listed(reader) == (["a", "b"], "9")
    assert "limit" not in server.seen[-1][2]
    assert "continue" not in server.seen[-1][2]


def test_a_server_without_dra_has_no_claims(server, reader):
    server.answers.append(status(404, "the server could not find the requested resource"))
    assert listed(reader, CLAIMS) == ([], "")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(403, "nodes is forbidden"), "GET /api/v1/nodes: nodes is forbidden"),
        ((502, b"<html>"), "GET /api/v1/nodes: 502 Bad Gateway"),
        ((200, b"<html>"), "GET /api/v1/nodes: Expecting value"),
        ((BROKEN_OFF, b'{"items": ['), "GET /api/v1/nodes: "),
    ],
    ids=["refused", "no status", "no JSON", "broken off"],
)
def test_what_goes_wrong_with_a_list_is_said(server, reader, answer, words):
    server.answers.append(answer)
    with pytest.raises(GhostError) as found:
        listed(reader)
    assert found.value.message.startswith(words)


def test_a_server_that_is_not_there(server, reader, account, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(GhostError, match="Connection refused"):
        listed(InCluster(account))


def test_a_server_of_another_authority_is_not_believed(server, reader, account, certificates):
    shutil.copy(certificates / "client.crt", account / "ca.crt")
    with pytest.raises(GhostError, match="CERTIFICATE_VERIFY_FAILED"):
        listed(InCluster(account))
    assert server.seen == []


def test_a_watch(server, reader):
    server.answers.append((200, lines(("ADDED", item("a", "8")), ("BOOKMARK", item("", "20")))))
    seen = [(kind, found["metadata"]["resourceVersion"]) for kind, found in reader.watch(NODES, "7", 60.0)]
    assert seen == [("BOOKMARK", "7"), ("ADDED", "8"), ("BOOKMARK", "20")]
    query = server.seen[0][2]
    assert {key: query[key] for key in ("watch", "allowWatchBookmarks", "resourceVersion", "timeoutSeconds")} == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "60",
    }


@pytest.mark.parametrize(
    "answer",
    [status(410, "too old"), (200, lines(("ERROR", {"kind": "Status", "code": 410, "message": "too old"})))],
    ids=["at once", "in the middle"],
)
def test_a_watch_from_a_version_that_is_too_old(server, reader, answer):
    server.answers.append(answer)
    with pytest.raises(Expired, match="too old"):
        list(reader.watch(NODES, "7", 60.0))


@pytest.mark.parametrize("rest", [b'{"type": "ADDED", "obj', b"not JSON\n"], ids=["broken off", "nonsense"])
def test_a_watch_that_breaks_off_within_a_line_is_a_failure(server, reader, rest):
    server.answers.append((BROKEN_OFF, lines(("ADDED", item("a", "8"))) + rest))
    events = reader.watch(NODES, "7", 60.0)
    assert [next(events)[0], next(events)[0]] == ["BOOKMARK", "ADDED"]
    with pytest.raises(GhostError):
        next(events)


def test_a_watch_that_breaks_off_between_lines_has_ended(server, reader):
    server.answers.append((BROKEN_OFF, lines(("ADDED", item("a", "8")))))
    assert [kind for kind, _ in reader.watch(NODES, "7", 60.0)] == ["BOOKMARK", "ADDED"]


def test_leaving_a_watch_ends_it(server, reader):
    server.answers.append((200, lines(*[("ADDED", item("a", "8"))] * 3)))
    events = reader.watch(NODES, "7", 60.0)
    next(events)
    events.close()


def recorded(reader, *, ours=True):
    reader.record(pod("train", gpus=2), node(hardware(2), ours=ours), ("gpu-0", "gpu-1"))


def test_what_a_pod_has_is_written_on_the_pod_as_it_was_read(server, reader):
    server.answers.append((200, {}))
    recorded(reader)
    ((method, path, _, headers, body),) = server.seen
    assert (method, path) == ("PATCH", "/api/v1/namespaces/default/pods/train")
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(body) == {
        "metadata": {
            "annotations": {"kubectl-ghost.dev/gpus": "gpu-0,gpu-1"},
            "uid": "uid-default-train",
            "resourceVersion": "1",
        }
    }


@pytest.mark.parametrize("code", [404, 409])
def test_a_pod_that_has_changed_or_gone_comes_again(server, reader, code):
    server.answers.append(status(code, "no"))
    recorded(reader)


def test_any_other_refusal_is_told(server, reader):
    server.answers.append(status(403, "so it is"))
    with pytest.raises(GhostError, match="PATCH /api/v1/namespaces/default/pods/train: so it is"):
        recorded(reader)


def test_nothing_is_written_on_a_pod_of_somebody_elses_node(server, reader):
    with pytest.raises(GuardRefusal):
        recorded(reader, ours=False)
    assert server.seen == []


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "ca.crt"])
def test_outside_a_pod(server, reader, account, monkeypatch, missing):
    if missing == "ca.crt":
        (account / missing).unlink()
    else:
        monkeypatch.delenv(missing)
    with pytest.raises(GhostError) as found:
        InCluster(account)
    assert (found.value.message, found.value.hint) == (
        "this is not a pod with a service account",
        "Outside a pod use: kubectl ghost metrics serve",
    )


def test_an_address_of_ipv6_stands_in_brackets(account, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    assert InCluster(account)._server == "https://[fd00::1]:443"
