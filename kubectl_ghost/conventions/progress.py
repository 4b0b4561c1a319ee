"""Progress for people: one line on a terminal, rewritten, from the second second on; nothing in a pipe."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TextIO

_QUIET_SECONDS = 1.0
_INTERVAL_SECONDS = 0.1


class ProgressLine:
    """A context manager that is called with (done, total) and clears its line at the end.

    Args:
        what: what is being counted, `nodes Ready` say.
        stream: where to draw; standard error by default.
    """

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._next = time.monotonic() + _QUIET_SECONDS
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Redraw if it is time to."""
        now = time.monotonic()
        if now < self._next or not self._stream.isatty() or os.environ.get("TERM") == "dumb":
            return
        self._next = now + _INTERVAL_SECONDS
        self._drawn = True
        self._stream.write(f"\r{done}/{total} {self._what}\x1b[K")
        self._stream.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
