"""The agent's HTTP server: dcgm-exporter's port and paths, and those that Prometheus finds the nodes by."""

from __future__ import annotations

import json
import re
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from ghost_agent import exposition, self_metrics
from ghost_agent.self_metrics import SelfMetrics
from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import Watcher
from kubectl_ghost.domain.errors import GhostError

_TEXT, _JSON = "text/plain; charset=utf-8", "application/json"
_SMALL = 1024
"""Bytes below which compressing an answer is not worth it."""
_PAUSE_SECONDS = 0.1
_BUFFER = 64 * 1024
"""Bytes of an answer that are sent together."""
_REFUSED = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")
"""The weight of what a client does not want."""
_INDEX = """\
<html><head><title>kubectl-ghost agent</title></head><body><h1>kubectl-ghost agent</h1>
<p><a href="/metrics">/metrics</a> of all simulated nodes, /nodes/NODE/metrics of one,
<a href="/sd">/sd</a> for http_sd, <a href="/internal/metrics">/internal/metrics</a> of the agent itself,
<a href="/health">/health</a> <a href="/healthz">/healthz</a> <a href="/readyz">/readyz</a></p></body></html>
"""


class AgentServer(ThreadingHTTPServer):
    """Serves one snapshot. `port` is the port that it listens on, also where it was asked for any free one."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(
        self, address: str, port: int, watcher: Watcher, snapshot: Snapshot, problem: Callable[[str], None]
    ) -> None:
        """Begin to listen.

        Args:
            problem: told of what should not happen.

        Raises:
            GhostError: the port cannot be had.
        """
        self.watcher, self.snapshot, self._problem = watcher, snapshot, problem
        self.own = SelfMetrics(watcher, snapshot)
        if ":" in address:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((address, port), _Handler)
        except OSError as error:
            raise GhostError(
                f"cannot listen on {address}:{port}: {error.strerror or error}", "Choose another one with --port."
            ) from error

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection. Where none can be had (no file descriptor is free) asking on would take a whole CPU."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
            raise

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone in the middle of an answer is no error of the agent's; all else is told."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            self._problem(f"a request failed: {type(error).__name__}: {error}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AgentServer
    timeout = 60
    _begun = False
    # An answer leaves in few and full packets, and each at once. A small one after another would wait for the client
    # to acknowledge the first, which clients that keep the connection do 40 ms later.
    wbufsize = _BUFFER
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        try:
            self._get()
        except OSError:
            raise
        except Exception:
            # Where the answer has begun it ends in the middle, which no client takes for a whole one.
            self.close_connection = True
            if not self._begun:
                self._say(HTTPStatus.INTERNAL_SERVER_ERROR, "the agent failed; its log says how", _TEXT)
            raise

    def _get(self) -> None:
        self._begun = False
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            # What is brought along is not read; on this connection it would be taken for the next request.
            self.close_connection = True
        try:
            path = unquote(urlsplit(self.path).path)
        except ValueError as error:
            self._say(HTTPStatus.BAD_REQUEST, f"this is no path: {error}", _TEXT)
            return
        if path == "/metrics":
            self._scrape(path, None)
        elif path.startswith("/nodes/") and path.endswith("/metrics"):
            self._scrape("/nodes/NODE/metrics", path.removeprefix("/nodes/").removesuffix("/metrics"))
        elif path == "/sd":
            self._known(lambda: json.dumps(list(self._targets())), _JSON)
        elif path == "/internal/metrics":
            self._answer(HTTPStatus.OK, [self.server.own.text()], self_metrics.CONTENT_TYPE)
        elif path in ("/health", "/readyz"):
            self._known(lambda: "OK", _TEXT)
        elif path == "/healthz":
            self._say(HTTPStatus.OK, "OK", _TEXT)
        elif path == "/":
            self._say(HTTPStatus.OK, _INDEX, "text/html; charset=utf-8")
        else:
            self._say(HTTPStatus.NOT_FOUND, f"there is nothing at {path}", _TEXT)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """No line for every scrape."""

    def _stale(self) -> bool:
        """Answer 503 where the fleet is not known; an empty 200 would look like a fleet without GPUs."""
        reason = self.server.watcher.why_stale()
        if reason:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, f"the cluster cannot be read: {reason}", _TEXT)
        return bool(reason)

    def _known(self, body: Callable[[], str], content_type: str) -> None:
        if not self._stale():
            self._say(HTTPStatus.OK, body(), content_type)

    def _scrape(self, shown: str, node_name: str | None) -> None:
        if self._stale():
            return
        began = time.perf_counter()
        try:
            answers = node_name is None or self.server.snapshot.node(node_name).answers
            pieces = self.server.snapshot.text(node_name)
        except KeyError:
            self._say(HTTPStatus.NOT_FOUND, f"there is no simulated node {node_name}", _TEXT)
            return
        except GhostError as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, error.message, _TEXT)
            return
        if not answers:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, f"node {node_name} is down or its driver does not answer", _TEXT)
            return
        self._answer(HTTPStatus.OK, (piece.encode() for piece in pieces), exposition.CONTENT_TYPE)
        self.server.own.scrape_seconds.labels(shown).observe(time.perf_counter() - began)

    def _targets(self) -> Iterator[dict[str, object]]:
        """A target a node. `instance` tells them apart, as the addresses of real exporters would."""
        address = self.headers.get("Host") or f"localhost:{self.server.port}"
        for node in self.server.snapshot.nodes():
            labels = {
                "__metrics_path__": f"/nodes/{quote(node.name)}/metrics",
                "instance": f"{node.name}:{self.server.port}",
                "node": node.name,
                "pool": node.pool,
            }
            yield {"targets": [address], "labels": labels}

    def _say(self, status: HTTPStatus, text: str, content_type: str) -> None:
        self._answer(status, [text.encode()], content_type)

    def _answer(self, status: HTTPStatus, pieces: Iterable[bytes], content_type: str) -> None:
        """Send an answer in chunks, so that a large one is never in memory as a whole."""
        held, source = b"", iter(pieces)
        for piece in source:
            held += piece
            if len(held) >= _SMALL:
                break
        big = len(held) >= _SMALL
        compressed = big and _takes_gzip(self.headers.get("Accept-Encoding") or "")
        chunked = big and self.request_version != "HTTP/1.0"
        self._begun = True
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("X-Content-Type-Options", "nosniff")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif big:
            # HTTP/1.0 has no chunks: there the end of the connection is the answer's.
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(held)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if not big:
            self.wfile.write(held)
            return
        body = _gzipped(_chained(held, source)) if compressed else _chained(held, source)
        for piece in _in_chunks(body) if chunked else body:
            self.wfile.write(piece)


def _takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding names gzip, and not to refuse it."""
    for item in accepted.lower().split(","):
        coding, _, weight = item.partition(";")
        if coding.strip() == "gzip":
            return _REFUSED.fullmatch(weight) is None
    return False


def _in_chunks(body: Iterator[bytes]) -> Iterator[bytes]:
    for piece in body:
        if piece:
            yield b"%x\r\n" % len(piece)
            yield piece
            yield b"\r\n"
    yield b"0\r\n\r\n"


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _gzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(level=1, wbits=31)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()
