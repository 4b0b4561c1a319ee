"""One HTTP/1.1 answer on a socket of ours: the standard library's reader, its errors brought to one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse, RemoteDisconnected
from typing import Final

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
        # To the reader, an answer without a body is one to HEAD.
        self._response = HTTPResponse(connected, method="GET" if has_body else "HEAD")
        try:
            self._response.begin()
        except RemoteDisconnected:
            # Left open, it would hold the socket beyond the connection's close().
            self.close()
            raise
        except (HTTPException, ValueError, UnicodeError) as cause:
            self.close()
            raise ProtocolError(f"the answer is not HTTP/1.1 ({cause!r})") from cause
        except BaseException:
            self.close()
            raise
        self.status = self._response.status
        self.reason = self._response.reason
        self.will_close = self._response.will_close
        self.headers: dict[str, str] = {}
        for spelled, value in self._response.getheaders():
            name, text = spelled.lower(), value.strip()
            self.headers[name] = f"{self.headers[name]}, {text}" if name in self.headers else text

    def read(self) -> bytes:
        """The whole body.

        Raises:
            OSError: the connection broke.
            ProtocolError: the body ends too early or is not in the form that the head says.
        """
        return b"".join(self.pieces()) if self._response.chunked else self._read(None)

    def pieces(self) -> Iterator[bytes]:
        """The body as it arrives; errors as for `read`."""
        while piece := self._read(_PIECE):
            yield piece
        self.close()

    def _read(self, most: int | None) -> bytes:
        try:
            return self._response.read() if most is None else self._response.read1(most)
        except (HTTPException, ValueError, OverflowError, MemoryError) as cause:
            raise ProtocolError(f"the answer ends too early or in another way than it says ({cause!r})") from cause

    def close(self) -> None:
        """Let go of the socket, which is left open; closing twice is harmless."""
        self._response.close()
