"""Requests to the API server over HTTP/1.1, with the standard library.

Not urllib3, which takes 150 ms to import against 40 for socket and ssl, and not the `kubernetes` client, which takes
650: a `status` on a small cluster is to cost what `kubectl get nodes` costs. Connections are kept alive and
shared by all threads, each taking one for the length of a request; head and body leave in one send.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from kubectl_ghost.cluster import codec, http_request, proxy
from kubectl_ghost.cluster.connection import Connection
from kubectl_ghost.cluster.credentials import Credentials
from kubectl_ghost.cluster.errors import ApiError, Blocked, Unreachable
from kubectl_ghost.cluster.http_answer import HttpAnswer, ProtocolError
from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.cluster.pool import Pool
from kubectl_ghost.domain.errors import GhostError

Query = Mapping[str, str | int] | None
Log = Callable[[int, str], None]
"""Given a klog level and a line: 4 retries, 6 requests with status and time, 8 bodies."""

JSON: Final = "application/json"
_ATTEMPTS: Final = 6
_LONGEST_WAIT: Final = 10.0
"""Seconds that a Retry-After is obeyed for at most: someone is waiting at the terminal."""
_UNCONFIGURED: Final = "no kubeconfig was found: name one with --kubeconfig or KUBECONFIG"


class Transport:
    """The way to one API server. Safe to use from several threads."""

    def __init__(
        self,
        target: Target,
        *,
        environ: Mapping[str, str] = os.environ,
        log: Log | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is connected to, and no credential read, before the first request.

        Args:
            environ: for HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
            log: hears of every request; credentials are never among what it hears.
            sleep: how to wait for a Retry-After.
        """
        self.target = target
        self._log = log
        self._sleep = sleep
        self._lock = threading.Lock()
        self._url = urlsplit(target.server)
        self._pool = Pool(target, environ)
        self._credentials: Credentials | None = None
        self._compress = not target.disable_compression and not proxy.is_loopback(self._url.hostname or "")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = None,
        body: bytes | Mapping[str, Any] | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
        big: bool = False,
    ) -> bytes:
        """Send a request and return the body of the answer.

        A 429 or 503 with a Retry-After is obeyed a few times, but for the 429 of a PodDisruptionBudget, which is about
        the pod and not about the server; credentials that a plugin issued are renewed once.

        Args:
            timeout: seconds of silence to bear, instead of the `--request-timeout`; by default endless, as kubectl's.
            big: the answer may be large, so that compressing it can pay. Never on loopback, where it costs more than
                it saves.

        Raises:
            ApiError: the server refused, or could not be asked.
        """
        payload = _payload(body)
        place = _with_query(path, query)
        renewed = False
        for attempt in range(1, _ATTEMPTS + 1):
            authorization = self._ready().authorization()
            head = self._head(method, place, payload, content_type, accept, authorization=authorization, big=big)
            response, answer = self._exchange(method, place, head + payload, timeout)
            if response.status < 300:
                return answer
            if response.status == 401 and not renewed and self._ready().refresh(authorization):
                renewed = True
                self.close()
                continue
            wait = _retry_after(response)
            if wait is None or attempt == _ATTEMPTS or _is_blocked(response.status, answer):
                break
            self._note(4, f"Got a Retry-After {wait:g}s response for attempt {attempt} to {self.target.server}{place}")
            self._sleep(wait)
        raise _refusal(response.status, answer, method, path)

    def stream(self, path: str, query: Query = None, *, timeout: float | None = None) -> Iterator[bytes]:
        """Send a GET whose answer is a line at a time for as long as the server likes. Close the iterator to end it.

        What comes after the last line break is left out: it is a line that the end of the connection cut off.

        Raises:
            ApiError: the server refused or could not be asked (at once); the connection was lost (while iterating).
        """
        place = _with_query(path, query)
        head = self._head("GET", place, b"", JSON, JSON, authorization=self._ready().authorization(), big=False)
        connection, response = self._send("GET", place, head, timeout)
        if response.status < 300:
            return self._lines(connection, response, place, timeout)
        try:
            answer = _body(response)
        except (OSError, ProtocolError) as cause:
            raise self._unreachable(cause, "GET", place, timeout) from cause
        finally:
            response.close()
            connection.close()
        raise _refusal(response.status, answer, "GET", path)

    def close(self) -> None:
        """Close the idle connections. The transport stays usable."""
        self._pool.close()

    def _ready(self) -> Credentials:
        with self._lock:
            if self._credentials is None:
                self._credentials = Credentials(self.target)
            return self._credentials

    def _head(
        self, method: str, place: str, payload: bytes, content_type: str, accept: str, *, authorization: str, big: bool
    ) -> bytes:
        headers = [("Accept", accept)]
        if payload:
            headers += [("Content-Type", content_type), ("Content-Length", str(len(payload)))]
        if big and self._compress:
            headers.append(("Accept-Encoding", "gzip"))
        if authorization:
            headers.append(("Authorization", authorization))
        return http_request.head(method, self._url, place, headers + self._ready().headers)

    def _exchange(self, method: str, place: str, request: bytes, timeout: float | None) -> tuple[HttpAnswer, bytes]:
        connection, response = self._send(method, place, request, timeout)
        finished = False
        try:
            answer = _body(response)
            finished = not response.will_close
        except (OSError, ProtocolError) as cause:
            raise self._unreachable(cause, method, place, timeout) from cause
        finally:
            if finished:
                self._pool.put_back(connection)
            else:
                response.close()
                connection.close()
        self._note_bodies(request, answer)
        return response, answer

    def _send(self, method: str, place: str, request: bytes, timeout: float | None) -> tuple[Connection, HttpAnswer]:
        start = time.monotonic()
        try:
            connection, response = self._pool.send(
                method, request, self._ready().ssl_context, timeout or self.target.request_timeout
            )
        except (OSError, ProtocolError) as cause:
            raise self._unreachable(cause, method, place, timeout) from cause
        answer = f"{response.status} {response.reason} in {round((time.monotonic() - start) * 1000)} milliseconds"
        self._note(6, f"{method} {self.target.server}{place} {answer}")
        return connection, response

    def _lines(
        self, connection: Connection, response: HttpAnswer, place: str, timeout: float | None
    ) -> Iterator[bytes]:
        rest = b""
        try:
            for piece in response.pieces():
                *lines, rest = (rest + piece).split(b"\n")
                yield from filter(None, lines)
        except (OSError, ProtocolError) as cause:
            raise self._unreachable(cause, "GET", place, timeout) from cause
        finally:
            response.close()
            connection.close()

    def _unreachable(self, cause: Exception, method: str, place: str, timeout: float | None) -> Unreachable:
        hint = None
        if not self.target.configured:
            hint = _UNCONFIGURED
        self._note(6, f"{method} {self.target.server}{place} failed: {type(cause).__name__}")
        from kubectl_ghost.cluster import network_failures

        return network_failures.from_exception(
            cause, method, place, host=self._pool.peer, timeout=timeout or self.target.request_timeout, hint=hint
        )

    def _note(self, level: int, line: str) -> None:
        if self._log is not None:
            self._log(level, line)

    def _note_bodies(self, request: bytes, answer: bytes) -> None:
        if self._log is None:
            return
        sent = request.partition(b"\r\n\r\n")[2]
        if sent:
            self._log(8, f"Request Body: {sent.decode('utf-8', 'replace')}")
        self._log(8, f"Response Body: {answer.decode('utf-8', 'replace')}")


def _refusal(status: int, answer: bytes, method: str, path: str) -> ApiError:
    from kubectl_ghost.cluster import failures  # most commands never need its words

    return failures.from_answer(status, answer, method, path)


def _is_blocked(status: int, answer: bytes) -> bool:
    return status == 429 and isinstance(_refusal(status, answer, "", ""), Blocked)


def _payload(body: bytes | Mapping[str, Any] | None) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    try:
        return codec.encode(body)
    except UnicodeError as cause:
        raise GhostError("a value to be written is not valid UTF-8") from cause


def _with_query(path: str, query: Query) -> str:
    if not query:
        return path
    return f"{path}?{urlencode(query, errors='surrogateescape')}"


def _body(response: HttpAnswer) -> bytes:
    answer = response.read()
    if response.headers.get("content-encoding") != "gzip":
        return answer
    import zlib

    try:
        # wbits 31: gzip's header and trailer.
        return zlib.decompress(answer, 31)
    except zlib.error as cause:
        raise ProtocolError("the answer is said to be compressed and is not") from cause


def _retry_after(response: HttpAnswer) -> float | None:
    """Seconds to wait before trying again, or None when the answer is final."""
    if response.status not in {429, 503}:
        return None
    try:
        # In this order, for NaN, which compares with nothing, to become 0.
        return min(max(0.0, float(response.headers.get("retry-after", ""))), _LONGEST_WAIT)
    except ValueError:
        return None
