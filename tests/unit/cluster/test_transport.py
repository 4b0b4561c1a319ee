"""Connections, retries, headers, and what is said when there is no answer."""

import contextlib
import gzip
import json
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kubectl_ghost import __version__
from kubectl_ghost.cluster import errors
from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.cluster.transport import Transport
from kubectl_ghost.domain.errors import GhostError


def test_a_connection_serves_many_requests(server, connect):
    transport = connect()
    for _ in range(5):
        transport.request("POST", "/x", body={"a": "ü"})
    assert server.connections == 1
    assert server.seen[0].json() == {"a": "ü"}
    assert server.seen[0].headers["User-Agent"] == [f"kubectl-ghost/{__version__}"]
    assert server.seen[0].headers["Content-Type"] == ["application/json"]


def test_threads_share_the_connections_that_are_idle(server, connect, answer):
    gate = threading.Barrier(4, timeout=5)

    def all_at_once(_):
        gate.wait()
        return answer()

    server.handle = all_at_once
    transport = connect()
    for _ in range(2):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: transport.request("GET", "/x"), range(8)))
    assert server.connections == 4


def test_a_connection_closed_while_idle_is_replaced(server, connect):
    transport = connect()
    transport.request("GET", "/x")
    server.hang_up()
    transport.request("POST", "/x", body={})
    assert server.connections == 2


def test_a_connection_closed_under_a_request_is_replaced_but_for_posts(server, connect, answer):
    transport = connect()
    odd = [False]

    def cut_every_other(_):
        odd[0] = not odd[0]
        return answer(cut_off=not odd[0])

    server.handle = cut_every_other
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        odd[0] = False
        transport.request(method, "/x")  # on a new connection
        transport.request(method, "/x")  # cut off, then done again
    odd[0] = False
    transport.request("POST", "/x")
    with pytest.raises(errors.Unreachable, match="lost the connection") as caught:
        transport.request("POST", "/x")
    assert caught.value.hint == "whether it was done is not known: run it again"


def test_a_new_connection_that_is_cut_off_is_an_error(server, connect, answer):
    server.handle = lambda _: answer(cut_off=True)
    with pytest.raises(errors.Unreachable, match="lost the connection"):
        connect().request("GET", "/x")
    assert len(server.seen) == 1


@pytest.mark.parametrize("code", [429, 503])
def test_patience_is_had_when_asked_for(server, connect, answer, status, code):
    waits = []
    server.handle = lambda _: (
        status(code, "X", "busy", {"Retry-After": "99"}) if len(server.seen) < 3 else answer({"a": 1})
    )
    assert json.loads(connect(sleep=waits.append).request("POST", "/x", body={})) == {"a": 1}
    assert waits == [10.0, 10.0]


def test_patience_ends(server, connect, status):
    server.handle = lambda _: status(429, "TooManyRequests", "busy", {"Retry-After": "1"})
    with pytest.raises(errors.TooManyRequests):
        connect().request("GET", "/x")
    assert len(server.seen) == 6


def test_without_a_time_there_is_no_retry(server, connect, status):
    server.handle = lambda _: status(503, "ServiceUnavailable", "down")
    with pytest.raises(errors.ServerError, match=r"Error from server \(ServiceUnavailable\): down"):
        connect().request("GET", "/x")
    assert len(server.seen) == 1


def test_a_refused_token_is_read_again(server, connect, answer, status, tmp_path):
    path = tmp_path / "token"
    path.write_text("old")

    def only_new(seen):
        if seen.headers["Authorization"] == ["Bearer new"]:
            return answer()
        path.write_text("new")
        return status(401, "Unauthorized", "Unauthorized")

    server.handle = only_new
    connect({"tokenFile": str(path)}).request("GET", "/x")
    with pytest.raises(errors.Unauthorized, match=r"You must be logged in to the server \(Unauthorized\)"):
        connect({"token": "wrong"}).request("GET", "/x")


def test_impersonation_is_on_every_request(server, connect):
    connect({"as": "me", "as-groups": ["a", "b"], "token": "t"}).request("GET", "/x")
    headers = server.seen[0].headers
    assert (headers["Impersonate-User"], headers["Impersonate-Group"]) == (["me"], ["a", "b"])
    with pytest.raises(GhostError, match=r"the user to impersonate \(--as\) has a line break"):
        connect({"as": "me\r\nX: y"}).request("GET", "/x")


@pytest.mark.parametrize("text", ["é", "日本", "\udce9"])
def test_names_and_tokens_go_out_as_they_came(server, connect, text):
    connect({"as": text, "token": text}).request("GET", "/x")
    sent = server.seen[0].headers["Impersonate-User"][0].encode("latin-1")
    assert sent == text.encode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"token": "a\x7fb"}, "the token or password has a line break or another control character in it"),
        ({"as": "a", "as-groups": ["b\n"]}, r"the group to impersonate \(--as-group\) has a line break"),
        ({"token": "\ud800"}, "not text that can be sent"),
    ],
)
def test_what_no_header_can_hold_is_said(connect, user, message):
    with pytest.raises(GhostError, match=message):
        connect(user).request("GET", "/x")


def test_a_body_that_is_no_text_is_said(connect):
    with pytest.raises(GhostError, match="not valid UTF-8"):
        connect().request("POST", "/x", body={"a": "\udce9"})


def test_an_answer_that_is_not_compressed_as_it_says(server, connect, answer):
    server.handle = lambda _: answer(b"[1]", headers={"Content-Encoding": "gzip"})
    with pytest.raises(errors.Unreachable, match="said to be compressed and is not"):
        connect().request("GET", "/x")


@pytest.mark.parametrize("name", [".a", "a\0b"])
def test_a_tls_server_name_that_is_none(name):
    with pytest.raises(GhostError, match="invalid TLS server name"):
        Transport(Target("c", "https://h", "default", cluster={"tls-server-name": name}), environ={})


def test_compression_is_asked_for_where_it_pays(server, connect, answer):
    server.handle = lambda _: answer(gzip.compress(b"[1]"), headers={"Content-Encoding": "gzip"})
    transport = connect()
    assert transport.request("GET", "/x", big=True) == b"[1]"
    assert "Accept-Encoding" not in server.seen[0].headers, "loopback"
    transport._compress = True
    transport.request("GET", "/x", big=True)
    transport.request("GET", "/x")
    assert ["Accept-Encoding" in seen.headers for seen in server.seen] == [False, True, False]


def test_the_log_hears_of_requests_but_of_no_secret(server, connect):
    heard = []
    transport = connect({"token": "s3cret"}, log=lambda level, line: heard.append((level, line)))
    transport.request("POST", "/x", query={"a": "b c"}, body={"k": 1})
    level, line = heard[0]
    assert level == 6
    assert line.startswith(f"POST {server.url}/x?a=b+c 200 OK in ")
    assert heard[1:] == [(8, 'Request Body: {"k":1}'), (8, "Response Body: {}")]
    assert "s3cret" not in str(heard)


def test_a_server_below_a_path(server):
    with_path = Transport(Target("c", f"{server.url}/k8s/clusters/c-1", "default"), environ={})
    with_path.request("GET", "/api")
    with_path.close()
    assert server.seen[0].path == "/k8s/clusters/c-1/api"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("configured", [True, False])
def test_nobody_listens(configured):
    port = free_port()
    transport = Transport(Target("c", f"http://127.0.0.1:{port}", "default", configured=configured), environ={})
    with pytest.raises(errors.Unreachable) as caught:
        transport.request("GET", "/x")
    assert caught.value.message == (
        f"The connection to the server 127.0.0.1:{port} was refused - did you specify the right host or port?"
    )
    assert ("no kubeconfig" in caught.value.hint) != configured


def test_nobody_answers(server, connect):
    release = threading.Event()
    server.handle = lambda _: release.wait(5) and None
    with pytest.raises(errors.Timeout, match=r"no answer from 127.0.0.1:\d+ within 0.05s") as caught:
        connect().request("GET", "/x", timeout=0.05)
    release.set()
    assert "--request-timeout" in caught.value.hint


def test_a_timeout_of_ages(connect):
    assert connect().request("GET", "/x", timeout=1e18) == b"{}"


def test_a_host_with_an_empty_label_is_not_found():
    with pytest.raises(errors.Unreachable, match=r"lookup a\.\.b: no such host"):
        Transport(Target("c", "https://a..b", "default"), environ={}).request("GET", "/x")


def test_no_such_host(monkeypatch):
    def lookup(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(errors.Unreachable, match=r"lookup nope\.invalid: no such host"):
        Transport(Target("c", "https://nope.invalid:6443", "default"), environ={}).request("GET", "/x")


@pytest.fixture
def secure(server, certificates):
    """The fake server with TLS, insisting on a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    context.load_verify_locations(certificates / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    return server


@pytest.fixture
def over_tls(secure, certificates):
    made = []

    def make(server=None, **cluster):
        cluster = {"certificate-authority": str(certificates / "ca.crt"), **cluster}
        user = {key: str(certificates / name) for key, name in CLIENT.items()}
        target = Target("c", server or f"https://127.0.0.1:{secure.port}", "default", cluster=cluster, user=user)
        made.append(Transport(target, environ={}))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


CLIENT = {"client-certificate": "client.crt", "client-key": "client.key"}


def test_tls_with_certificates_on_both_sides(secure, over_tls):
    transport = over_tls()
    for _ in range(3):
        transport.request("GET", "/x")
    assert secure.connections == 1
    over_tls(**{"tls-server-name": "ghost.test"}).request("GET", "/x")
    over_tls(**{"certificate-authority": None, "insecure-skip-tls-verify": True}).request("GET", "/x")


def test_a_tls_connection_closed_while_idle_is_replaced(secure, over_tls):
    transport = over_tls()
    transport.request("GET", "/x")
    secure.hang_up()
    transport.request("POST", "/x")
    assert secure.connections == 2


@pytest.mark.parametrize(
    ("cluster", "words", "hint"),
    [
        ({"tls-server-name": "other.test"}, "tls: failed to verify certificate", "--tls-server-name"),
        ({"certificate-authority": "client.crt"}, "tls: failed to verify certificate", "certificate authority"),
    ],
)
def test_a_server_that_is_not_trusted(over_tls, certificates, cluster, words, hint):
    if "certificate-authority" in cluster:
        cluster = {"certificate-authority": str(certificates / cluster["certificate-authority"])}
    with pytest.raises(errors.Unreachable, match=words) as caught:
        over_tls(**cluster).request("GET", "/x")
    assert hint in caught.value.hint


def test_tls_to_a_server_without(server):
    transport = Transport(
        Target("c", f"https://127.0.0.1:{server.port}", "default", cluster={"insecure-skip-tls-verify": True}),
        environ={},
    )
    with pytest.raises(errors.Unreachable, match="does not speak TLS"):
        transport.request("GET", "/x")


@pytest.fixture
def tunnel():
    """A proxy that joins one CONNECT to its destination, and the request it got."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked, threads = [], []

    def copy(source, sink):
        with contextlib.suppress(OSError):  # either side may leave first
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def run():
        with listener.accept()[0] as near:
            asked.append(near.recv(65536).decode())
            port = asked[0].split()[1].rpartition(":")[2]
            with socket.create_connection(("127.0.0.1", int(port))) as far:
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=copy, args=(far, near), daemon=True)
                back.start()
                copy(near, far)
                back.join()

    threads.append(threading.Thread(target=run, daemon=True))
    threads[0].start()
    yield listener.getsockname()[1], asked
    threads[0].join(5)
    listener.close()


def test_through_a_proxy(secure, over_tls, tunnel):
    port, asked = tunnel
    transport = over_tls(f"https://ghost.test:{secure.port}", **{"proxy-url": f"http://u:p@127.0.0.1:{port}"})
    transport.request("GET", "/x")
    transport.request("GET", "/x")
    transport.close()
    assert asked[0].startswith(f"CONNECT ghost.test:{secure.port} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic dTpw\r\n" in asked[0]
    assert len(secure.seen) == 2


def test_a_stream_is_lines(server, connect, answer, status):
    server.handle = lambda _: answer(lines=[{"a": "x" * 100_000}, {"b": 2}])
    assert [json.loads(line) for line in connect().stream("/x")] == [{"a": "x" * 100_000}, {"b": 2}]
    server.handle = lambda _: status(404, "NotFound", "nothing here")
    with pytest.raises(errors.NotFound):
        connect().stream("/x")
