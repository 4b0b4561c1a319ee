"""Requests that no scraper sends: each gets an answer that fits it, and the next one is served as ever."""

import errno

import pytest

from ghost_agent import server as server_module
from tests.unit.agent.test_server import Running, pool

END = b"Host: agent\r\nConnection: close\r\n\r\n"


@pytest.fixture
def server():
    running = Running(*pool(1)).sync()
    yield running
    running.close()
    assert running.told == []


def statuses(answers):
    return [int(part.split()[0]) for part in answers.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize("target", [b"http://[::1/metrics", b"http://[x]/metrics"])
def test_a_target_that_is_no_url(server, target):
    assert statuses(server.raw(b"GET " + target + b" HTTP/1.1\r\n" + END)) == [400]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"/nodes/../metrics", 404),
        (b"/nodes/%2e%2e/metrics", 404),
        (b"/nodes/node-0/../node-0/metrics", 404),
        (b"/nodes/node-0%00/metrics", 404),
        (b"/nodes/%ff%fe/metrics", 404),
        (b"/%", 404),
        (b"/m%65trics", 200),
        (b"http://other/metrics", 200),
    ],
)
def test_a_path_leads_where_it_says_and_nowhere_else(server, path, status):
    assert statuses(server.raw(b"GET " + path + b" HTTP/1.1\r\n" + END)) == [status]


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 42\r\n\r\nGET /internal/metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_what_a_request_brings_along_is_no_further_request(server, body):
    answers = server.raw(b"GET /healthz HTTP/1.1\r\nHost: agent\r\n" + body)
    assert statuses(answers) == [200]
    assert answers.endswith(b"\r\n\r\nOK")


def test_requests_that_do_not_wait_for_answers(server):
    request = b"GET /nodes/node-0/metrics HTTP/1.1\r\nHost: agent\r\n\r\n"
    assert statuses(server.raw(5 * request + b"GET /healthz HTTP/1.1\r\n" + END)) == [200] * 6


def test_where_no_more_connections_can_be_had_it_waits_rather_than_asks_all_the_time(server, monkeypatch):
    waited = []

    class Listening:
        def accept(self):
            raise OSError(errno.EMFILE, "Too many open files")

    class Time:
        sleep = waited.append

    monkeypatch.setattr(server_module, "time", Time)
    monkeypatch.setattr(server.agent.server, "socket", Listening())
    with pytest.raises(OSError, match="Too many open files"):
        server.agent.server.get_request()
    monkeypatch.undo()
    assert waited == [0.1]
    assert server.get("/healthz")[0] == 200
