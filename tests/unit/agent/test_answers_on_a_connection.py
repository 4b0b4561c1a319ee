"""How an answer leaves: whole, at once, and on a connection that stays."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading

import pytest

from ghost_agent.fleet import Fleet
from ghost_agent.options import agent_options
from ghost_agent.server import AgentServer
from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import Watcher
from tests.unit.agent.fleets import Cluster, a_node

NODE = "/nodes/node-0/metrics"


class Server(AgentServer):
    """Remembers whether each connection sends at once what it has, when the connection has ended."""

    def __init__(self, watcher, snapshot):
        super().__init__("127.0.0.1", 0, watcher, snapshot, print)
        self.at_once = []
        self.ended = threading.Event()

    def finish_request(self, request, client_address):
        super().finish_request(request, client_address)
        self.at_once.append(request.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        self.ended.set()


@pytest.fixture
def server():
    fleet = Fleet()
    watcher = Watcher(Cluster(nodes=[a_node(0)]), fleet, problem=print)
    watcher.list_once()
    with Server(watcher, Snapshot(fleet, agent_options(), problem=print)) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_head_and_body_of_a_small_answer_leave_together(server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: agent\r\n\r\n")
        arrived = connection.recv(65536)
    assert arrived.startswith(b"HTTP/1.1 200 OK\r\n")
    assert arrived.endswith(b"\r\n\r\nOK")


def test_nothing_waits_for_the_client_to_acknowledge_what_came_before(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", NODE)
    assert connection.getresponse().read()
    connection.close()
    # Its thread notices the end of the connection in its own time.
    assert server.ended.wait(30)
    assert server.at_once == [True]


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_connection_serves_one_scrape_after_the_other(server, encoding):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    found = []
    for _ in range(3):
        connection.request("GET", NODE, headers={"Accept-Encoding": encoding})
        answer = connection.getresponse()
        body = answer.read()
        found.append((gzip.decompress(body) if encoding else body).decode())
        assert answer.getheader("Transfer-Encoding") == "chunked"
        assert not answer.will_close
    connection.close()
    for text in found:
        assert [line.split("{")[0] for line in text.splitlines() if "DCGM_FI_DEV_GPU_UTIL{" in line] == [
            "DCGM_FI_DEV_GPU_UTIL"
        ] * 2
        assert text.endswith("\n")
