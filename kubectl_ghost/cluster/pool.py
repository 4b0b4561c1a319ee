"""The connections to one server that are idle, for the next thread that needs one.

Not a connection for each thread: threads come and go with every bulk operation, and a TLS handshake costs more than
several requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubectl_ghost.cluster import proxy, server_url
from kubectl_ghost.cluster.connection import Connection, Endpoint, was_closed
from kubectl_ghost.cluster.http_answer import HttpAnswer
from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.domain.errors import GhostError

if TYPE_CHECKING:
    from ssl import SSLContext


class Pool:
    """Sends requests over idle connections, or new ones. Safe to use from several threads."""

    def __init__(self, target: Target, environ: Mapping[str, str]) -> None:
        """Nothing is connected to yet.

        Raises:
            GhostError: the server's or the proxy's URL is none, or the proxy of a kind that is not supported.
        """
        url = server_url.split(target.server, "the server to connect to")
        self._host = url.hostname or ""
        self._port = url.port or {"http": 80, "https": 443}[url.scheme]
        self._server_name = str(target.cluster.get("tls-server-name") or "")
        if self._server_name.startswith(".") or not self._server_name.isprintable():
            raise GhostError(f"invalid TLS server name {self._server_name!r}", "it is a host's name, without a port")
        self._proxy = proxy.choose(url, target.proxy_url, environ)
        # Appending to and popping from a list need no lock.
        self._idle: list[Connection] = []

    @property
    def peer(self) -> str:
        """`host:port` of what is connected to, for messages."""
        if self._proxy is not None:
            return f"{self._proxy.host}:{self._proxy.port}"
        return f"{self._host}:{self._port}"

    def send(
        self, method: str, request: bytes, ssl_context: SSLContext | None, timeout: float | None
    ) -> tuple[Connection, HttpAnswer]:
        """Send a request; return the connection, which is the caller's until put back, and the head of the answer.

        Raises:
            OSError: there is no way there, or the connection broke.
            ProtocolError: the answer is not HTTP.
        """
        endpoint = Endpoint(self._host, self._port, ssl_context, self._server_name, self._proxy)
        connection = self._take() or Connection(endpoint, timeout)
        try:
            return connection, connection.send(request, timeout)
        except OSError as cause:
            connection.close()
            # A server may close an idle connection at any time, this one between our look at it and our sending.
            # Once more is safe for all but POST: other writes name the object or the version that they mean.
            if not connection.used or method == "POST" or not was_closed(cause):
                raise
        except BaseException:
            connection.close()
            raise
        connection = Connection(endpoint, timeout)
        try:
            return connection, connection.send(request, timeout)
        except BaseException:
            connection.close()
            raise

    def put_back(self, connection: Connection) -> None:
        """Keep a connection, whose last answer has been read to its end, for another request."""
        connection.used = True
        self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections. The pool stays usable."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> Connection | None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if not connection.is_stale():
                return connection
            connection.close()
