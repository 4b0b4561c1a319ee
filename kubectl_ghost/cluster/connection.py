"""One connection to the server, kept alive over many requests. One thread at a time uses it."""

from __future__ import annotations

import contextlib
import select
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kubectl_ghost.cluster.http_answer import HttpAnswer, ProtocolError
from kubectl_ghost.cluster.proxy import Proxy

if TYPE_CHECKING:
    import ssl

_CONNECT_SECONDS: Final = 30.0
"""client-go's dial timeout."""
_LONGEST_SECONDS: Final = 2_000_000.0
"""Of a timeout: poll counts milliseconds in 31 bits."""
_KEEPALIVE_SECONDS: Final = 30
"""Probes on an idle connection, as Go sends them: a peer that vanished is noticed though no timeout is set."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect to, and how to speak once there."""

    host: str
    port: int
    ssl_context: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: Proxy | None = None


class Connection:
    """A connected socket. `used` tells whether a request has been answered on it before."""

    def __init__(self, endpoint: Endpoint, timeout: float | None) -> None:
        """Connect.

        Raises:
            OSError: there is no way there, TLS failures among them.
        """
        self.endpoint = endpoint
        self.used = False
        self._socket = _dial(endpoint, timeout)

    def send(self, request: bytes, timeout: float | None) -> HttpAnswer:
        """Send a whole request at once and read the head of its answer.

        Raises:
            OSError: the connection broke; `was_closed` tells whether before any byte of the answer.
            ProtocolError: the answer is not HTTP.
        """
        if timeout is not None:
            timeout = min(timeout, _LONGEST_SECONDS)
        self._socket.settimeout(timeout)
        self._socket.sendall(request)
        return HttpAnswer(self._socket)

    def is_stale(self) -> bool:
        """Whether the server has closed it meanwhile. An idle server has nothing to say but that."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close it; closing twice is harmless."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def __del__(self) -> None:
        # A command that ends, or a thread that is gone, owes no close() of what it kept alive.
        if hasattr(self, "_socket"):
            self.close()


def was_closed(cause: Exception) -> bool:
    """Whether `send` failed because the other side had closed the connection before answering."""
    # TLS may see the end as a violation of its protocol; ssl is not imported just to name the class.
    return isinstance(cause, ConnectionError) or type(cause).__name__ == "SSLEOFError"


def _dial(endpoint: Endpoint, timeout: float | None) -> socket.socket:
    host, port = endpoint.host, endpoint.port
    if endpoint.proxy is not None:
        host, port = endpoint.proxy.host, endpoint.proxy.port
    limit = min(timeout or _CONNECT_SECONDS, _CONNECT_SECONDS)
    connected = socket.create_connection((_encoded(host), port), timeout=limit)  # type: ignore[arg-type]
    try:
        _set_options(connected)
        if endpoint.proxy is not None:
            _tunnel(connected, endpoint, endpoint.proxy)
        if endpoint.ssl_context is None:
            return connected
        name = _encoded(endpoint.server_name or endpoint.host)
        return endpoint.ssl_context.wrap_socket(connected, server_hostname=name)
    except BaseException:
        connected.close()
        raise


def _encoded(host: str) -> bytes:
    """A host's name as bytes: for a str, socket and ssl would import the codec for international names every time."""
    if host.isascii():
        return host.encode()
    return host.encode("idna")


def _set_options(connected: socket.socket) -> None:
    # Without it a small request waits for the acknowledgement of the one before.
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS)


def _tunnel(connected: socket.socket, endpoint: Endpoint, proxy: Proxy) -> None:
    host = _encoded(endpoint.host).decode()
    if ":" in host:
        host = f"[{host}]"
    lines = [f"CONNECT {host}:{endpoint.port} HTTP/1.1", f"Host: {host}:{endpoint.port}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    connected.sendall("\r\n".join([*lines, "", ""]).encode())
    answer = HttpAnswer(connected, has_body=False)
    answer.close()
    if answer.status != 200:
        raise ProtocolError(f"proxy {proxy.host}:{proxy.port} answered {answer.status} {answer.reason}")
