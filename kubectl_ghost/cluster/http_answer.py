"""Reading one HTTP/1.1 answer from a socket.

Not http.client: its headers are e-mail headers, and the email package takes 10 ms to import and more time to parse an
answer's head than all else that a small request needs here. What is read is what API servers and the proxies before
them send; no cookies, no redirects, no other encodings than chunks.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

_LONGEST_LINE: Final = 64 * 1024
_MOST_HEADERS: Final = 200
_PIECE: Final = 64 * 1024


class ProtocolError(Exception):
    """What came is not HTTP/1.1, or stops in the middle."""


class HttpAnswer:
    """An answer whose head has been read, and whose body waits to be.

    Attributes:
        headers: by name in lower case; those sent several times are joined by commas.
        will_close: whether the connection cannot be used again.
    """

    def __init__(self, connected: socket.socket, *, has_body: bool = True) -> None:
        """Read the head.

        Args:
            has_body: False after a CONNECT, whose answer has none whatever its headers say.

        Raises:
            ConnectionError: the connection was closed before any byte of an answer.
            OSError: it broke.
            ProtocolError: the answer is not HTTP.
        """
        self._file = connected.makefile("rb")
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}
        try:
            version = self._head()
            self._length = self._body_length(has_body)
        except BaseException:
            # It would hold the socket open beyond the connection's close().
            self.close()
            raise
        wish = self.headers.get("connection", "").lower()
        self.will_close = "close" in wish or (version == "HTTP/1.0" and "keep-alive" not in wish)
        if self._length is None and not self._chunked:
            self.will_close = True

    def read(self) -> bytes:
        """The whole body.

        Raises:
            OSError: the connection broke.
            ProtocolError: the body ends too early or is not in the form that the head says.
        """
        if self._length is None:
            return b"".join(self.pieces())
        body = self._exactly(self._length)
        self.close()
        return body

    def pieces(self) -> Iterator[bytes]:
        """The body as it arrives; errors as for `read`."""
        if self._chunked:
            yield from self._chunks()
        elif self._length is not None:
            yield self._exactly(self._length)
        else:
            while piece := self._file.read1(_PIECE):
                yield piece
        self.close()

    def close(self) -> None:
        """Let go of the socket, which is left open; closing twice is harmless."""
        self._file.close()

    @property
    def _chunked(self) -> bool:
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    def _head(self) -> str:
        while True:
            line = self._file.readline(_LONGEST_LINE)
            if not line:
                raise ConnectionResetError("it was closed without an answer")
            version, _, rest = line.decode("latin-1").strip().partition(" ")
            code, _, self.reason = rest.partition(" ")
            if not version.startswith("HTTP/1.") or len(code) != 3 or not code.isdecimal():
                raise ProtocolError("the answer is not HTTP/1.1")
            self.status = int(code)
            self.headers = self._headers()
            # 1xx say that an answer will follow.
            if self.status >= 200:
                return version

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._line()
            if not line:
                return headers
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        raise ProtocolError("the answer has too many headers")

    def _body_length(self, has_body: bool) -> int | None:
        """How many bytes the body has, None when it says itself where it ends."""
        if not has_body or self.status in {204, 304}:
            return 0
        text = self.headers.get("content-length")
        if self._chunked or text is None:
            return None
        if not text.isascii() or not text.isdecimal():
            raise ProtocolError("the answer's Content-Length is not a number")
        return int(text)

    def _chunks(self) -> Iterator[bytes]:
        while size := self._chunk_size():
            yield self._exactly(size)
            if self._line():
                raise ProtocolError("a chunk of the answer is longer than it says")
        self._headers()  # trailers

    def _chunk_size(self) -> int:
        text = self._line().partition(";")[0].strip()
        try:
            size = int(text, 16)
        except ValueError as cause:
            raise ProtocolError("a chunk of the answer has no length") from cause
        if size < 0:
            raise ProtocolError("a chunk of the answer has no length")
        return size

    def _exactly(self, count: int) -> bytes:
        try:
            data = self._file.read(count)
        except (OverflowError, MemoryError) as cause:
            raise ProtocolError(f"the answer is said to have {count} bytes") from cause
        if len(data) < count:
            raise ProtocolError(f"the answer ends {count - len(data)} bytes too early")
        return data

    def _line(self) -> str:
        line = self._file.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise ProtocolError("the answer ends in the middle of a line, or the line is too long")
        return line.decode("latin-1").strip()
