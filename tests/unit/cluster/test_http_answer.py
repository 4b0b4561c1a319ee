"""Answers as they come over the wire, whole and broken."""

import socket

import pytest

from kubectl_ghost.cluster.http_answer import HttpAnswer, ProtocolError


@pytest.fixture
def received():
    """Make the answer that reads these bytes, after which the other side closes."""
    ends = []

    def make(data, **options):
        near, far = socket.socketpair()
        ends.extend((near, far))
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        return HttpAnswer(near, **options)

    yield make
    for end in ends:
        end.close()


@pytest.mark.parametrize(
    ("data", "body", "will_close"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabXX", b"ab", False),
        (b"HTTP/1.1 200\r\ncontent-length:2\r\nConnection: Close\r\n\r\nab", b"ab", True),
        (b"HTTP/1.1 200 OK\r\n\r\nab", b"ab", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nab", b"ab", False),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", False),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\nA\r\n0123456789\r\n0\r\nT:x\r\n\r\n",
            b"abc0123456789",
            False,
        ),
    ],
)
def test_whole_answers(received, data, body, will_close):
    answer = received(data)
    assert (answer.read(), answer.will_close) == (body, will_close)
    assert b"".join(received(data).pieces()) == body


def test_the_head(received):
    answer = received(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After:  1 \r\nA: b\r\na: c\r\n\r\n")
    assert (answer.status, answer.reason) == (429, "Too Many Requests")
    assert answer.headers == {"retry-after": "1", "a": "b, c"}
    assert received(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", has_body=False).read() == b""


def test_closed_before_any_byte_is_told_from_closed_in_the_middle(received):
    with pytest.raises(ConnectionResetError):
        received(b"")


@pytest.mark.parametrize(
    "head",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_head(received, head):
    with pytest.raises(ProtocolError):
        received(head)


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 3\r\n\r\nab",
        b"Content-Length: 99999999999999999999\r\n\r\nab",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nab",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\nab",
        b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_no_body(received, rest):
    with pytest.raises(ProtocolError):
        received(b"HTTP/1.1 200 OK\r\n" + rest).read()
