"""The server on real sockets: what each path answers, and when it says that it does not know."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ghost_agent.agent import Agent
from ghost_agent.options import agent_options
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.keys import GPU_UTIL_ANNOTATION, HARDWARE_ANNOTATION
from tests.e2e.support import eventually
from tests.unit.agent.fleets import Cluster
from tests.unit.agent.kube import hardware, node, pod
from tests.unit.agent.series import UTIL, read, users

DOWN = node(hardware(1, index=1, faults=(Fault("node-down"),)))


class Running:
    """An agent's server; nothing has been read until `sync`."""

    def __init__(self, *nodes, pods=(), **options):
        self.cluster = Cluster(nodes=list(nodes), pods=list(pods))
        self.told = []
        asked = agent_options(**options)
        self.agent = Agent(self.cluster, asked, address="127.0.0.1", port=0, problem=self.told.append)
        self.now = 0.0
        self.agent.watcher._clock = lambda: self.now
        for progress in self.agent.watcher._progress.values():
            progress.heard = 0.0
        self.thread = threading.Thread(target=self.agent.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def port(self):
        return self.agent.server.port

    def sync(self):
        self.agent.watcher.list_once()
        return self

    def fail(self):
        """From now on the cluster cannot be read."""
        self.cluster.watch = self.cluster.list = refuse
        self.agent.watcher.turn("pods")

    def get(self, path, method="GET", **headers):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def text(self, path):
        status, _, body = self.get(path)
        assert status == 200
        return body.decode()

    def raw(self, request):
        """Everything that comes back on a connection of its own, until it is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def close(self):
        self.agent.server.shutdown()
        self.thread.join()
        self.agent.server.server_close()


def refuse(*_):
    raise GhostError("the server is down")


@pytest.fixture
def run():
    running = []

    def begin(*nodes, **options):
        running.append(Running(*nodes, **options))
        return running[-1]

    yield begin
    for each in running:
        each.close()


def pool(number, **more):
    return [node(hardware(2, index=index)) for index in range(number)]


def test_all_nodes_and_one(run):
    server = run(*pool(2)).sync()
    whole = server.text("/metrics")
    assert {place[0] for place in users(whole)} == {"node-0", "node-1"}
    part = server.text("/nodes/node-1/metrics")
    assert [series.key for series in read(part)] == [
        series.key for series in read(whole) if series.labels["Hostname"] == "node-1"
    ]


def test_what_the_exporter_says_of_its_answer(run):
    _, headers, _ = run(*pool(1)).sync().get("/metrics")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Encoding"] is None


@pytest.mark.parametrize("path", ["/nodes/node-9/metrics", "/nodes//metrics", "/nodes/node-0", "/metricsx", "/nodes"])
def test_what_is_not_there(run, path):
    status, _, body = run(*pool(1)).sync().get(path)
    assert status == 404
    assert b"there is no" in body


def test_a_node_that_is_down_cannot_be_scraped_and_is_a_target(run):
    server = run(*pool(1), DOWN).sync()
    status, _, body = server.get("/nodes/node-1/metrics")
    assert (status, body) == (503, b"node node-1 is down or its driver does not answer")
    assert {place[0] for place in users(server.text("/metrics"))} == {"node-0"}
    assert len(json.loads(server.text("/sd"))) == 2


def test_a_node_that_cannot_be_read_cannot_be_scraped_and_the_others_can(run):
    damaged = node(hardware(1, index=1))
    damaged["metadata"]["annotations"][HARDWARE_ANNOTATION] = "nonsense"
    server = run(*pool(1), damaged).sync()
    status, _, body = server.get("/nodes/node-1/metrics")
    assert status == 503
    assert body.startswith(b'the hardware annotation of node "node-1" cannot be read')
    assert {place[0] for place in users(server.text("/metrics"))} == {"node-0"}
    assert len(json.loads(server.text("/sd"))) == 1


def test_names_are_unquoted_and_queries_left_aside(run):
    server = run(*pool(1)).sync()
    asked, spelled = (read(server.text(f"/nodes/{name}")) for name in ("node%2D0/metrics?x=1", "node-0/metrics"))
    assert [series.key for series in asked] == [series.key for series in spelled]


def test_targets_are_the_nodes_under_the_address_that_was_asked(run):
    server = run(node(hardware(1, pool="a", index=10)), node(hardware(1, pool="a", index=2))).sync()
    _, headers, body = server.get("/sd", Host="agent.example:9400")
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == [
        {
            "targets": ["agent.example:9400"],
            "labels": {
                "__metrics_path__": f"/nodes/{name}/metrics",
                "instance": f"{name}:{server.port}",
                "node": name,
                "pool": "a",
            },
        }
        for name in ("a-2", "a-10")
    ]
    for target in json.loads(body):
        assert server.get(target["labels"]["__metrics_path__"])[0] == 200


def test_a_fleet_without_nodes_is_known_and_empty(run):
    server = run().sync()
    assert server.get("/metrics")[::2] == (200, b"")
    assert json.loads(server.text("/sd")) == []


KNOWING = ["/metrics", "/nodes/node-0/metrics", "/sd", "/health", "/readyz"]
LIVING = ["/healthz", "/internal/metrics", "/"]


@pytest.mark.parametrize("path", KNOWING)
def test_what_is_not_known_yet_is_not_said(run, path):
    server = run(*pool(1))
    status, headers, body = server.get(path)
    assert (status, body) == (503, b"the cluster cannot be read: nodes: not read yet")
    assert headers["Content-Length"] == str(len(body))
    assert server.sync().get(path)[0] == 200


@pytest.mark.parametrize("path", KNOWING)
def test_what_is_no_longer_known_is_not_said(run, path):
    server = run(*pool(1)).sync()
    server.fail()
    server.now = 29.0
    assert server.get(path)[0] == 200
    server.now = 31.0
    assert server.get(path)[::2] == (503, b"the cluster cannot be read: pods: the server is down")


@pytest.mark.parametrize("path", LIVING)
def test_the_agent_lives_whatever_it_knows(run, path):
    assert run(*pool(1)).get(path)[0] == 200


@pytest.mark.parametrize("path", [*KNOWING, *LIVING, "/nothing"])
def test_head_is_get_without_a_body(run, path):
    server = run(*pool(1)).sync()
    status, headers, _ = server.get(path)
    headed, same, body = server.get(path, method="HEAD")
    assert (headed, body) == (status, b"")
    for name in ("Content-Type", "Transfer-Encoding"):
        assert same[name] == headers[name]


@pytest.mark.parametrize("accepted", ["gzip", "GZip", "deflate, gzip;q=0.5", "gzip ;q=1, *;q=0"])
def test_a_large_answer_is_compressed_for_who_asks(run, accepted):
    server = run(*pool(1)).sync()
    status, headers, body = server.get("/metrics", Accept_Encoding=accepted)
    assert (status, headers["Content-Encoding"], headers["Transfer-Encoding"]) == (200, "gzip", "chunked")
    plain = server.text("/metrics")
    assert [series.key for series in read(gzip.decompress(body).decode())] == [series.key for series in read(plain)]


@pytest.mark.parametrize("accepted", ["", "identity", "br", "x-gzip2", "gzip;q=0", "gzip; q=0.0, br"])
def test_who_does_not_ask_gets_it_plain(run, accepted):
    _, headers, body = run(*pool(1)).sync().get("/metrics", Accept_Encoding=accepted)
    assert headers["Content-Encoding"] is None
    assert body.startswith(b"# HELP ")


def test_a_small_answer_is_not_compressed(run):
    _, headers, body = run(*pool(1)).sync().get("/healthz", Accept_Encoding="gzip")
    assert (headers["Content-Encoding"], headers["Content-Length"], body) == (None, "2", b"OK")


def test_a_client_of_http_1_0_gets_no_chunks(run):
    server = run(*pool(1)).sync()
    head, _, body = server.raw(b"GET /metrics HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"# HELP ")
    assert [series.key for series in read(body.decode())] == [series.key for series in read(server.text("/metrics"))]
    _, _, packed = server.raw(b"GET /metrics HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n").partition(b"\r\n\r\n")
    assert gzip.decompress(packed).startswith(b"# HELP ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(run, method):
    assert run(*pool(1)).sync().get("/metrics", method=method)[0] == 501


def test_many_at_once(run):
    server = run(*pool(20)).sync()
    paths = ["/metrics", *(f"/nodes/node-{index}/metrics" for index in range(20)), "/sd", "/internal/metrics"] * 8
    with ThreadPoolExecutor(32) as clients:
        answers = list(clients.map(server.get, paths))
    assert {status for status, _, _ in answers} == {200}
    for path, (_, _, body) in zip(paths, answers, strict=True):
        if path == "/metrics":
            assert len([series for series in read(body.decode()) if series.name == UTIL]) == 40
    assert server.told == []


def test_a_client_that_hangs_up_in_the_middle_is_nothing(run):
    server = run(*pool(200)).sync()
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.recv(100)
    assert server.get("/healthz")[0] == 200
    assert server.told == []


def test_what_the_agent_cannot_do_is_an_error_and_told(run):
    server = run(*pool(1)).sync()

    def fail(*_):
        raise ZeroDivisionError("no")

    server.agent.snapshot.text = fail
    assert server.get("/metrics")[0] == 500
    # It is told after the answer.
    eventually(lambda: server.told == ["a request failed: ZeroDivisionError: no"])
    assert server.get("/healthz")[0] == 200


def own(server):
    families = text_string_to_metric_families(server.text("/internal/metrics"))
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


def test_the_agents_own_metrics(run):
    said = {GPU_UTIL_ANNOTATION: "much"}
    nonsense = pod("a", gpus=1, annotations=said)
    server = run(*pool(2), pods=[nonsense]).sync()
    server.text("/metrics")
    server.text("/nodes/node-0/metrics")
    found = own(server)
    assert (found[("ghost_agent_nodes",)], found[("ghost_agent_gpus",)]) == (2, 4)
    assert found[("ghost_agent_series",)] == len(read(server.text("/metrics")))
    assert found[("ghost_agent_watch_restarts_total",)] == 0
    problem = ("ghost_agent_load_problems", ("namespace", "default"), ("node", "node-0"), ("pod", "a"))
    assert found[problem] == 1
    for path in ("/metrics", "/nodes/NODE/metrics"):
        assert found[("ghost_agent_scrape_duration_seconds_count", ("path", path))] == 1
    server.now = 25.0
    assert own(server)[("ghost_agent_snapshot_age_seconds",)] == 25


def test_a_port_that_is_taken_is_told_at_once(run):
    server = run()
    with pytest.raises(GhostError, match=f"cannot listen on 127.0.0.1:{server.port}: Address already in use"):
        Agent(server.cluster, agent_options(), address="127.0.0.1", port=server.port, problem=print)
