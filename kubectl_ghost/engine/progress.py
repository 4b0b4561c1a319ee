"""How the engine tells what it does: lines given to a callback, since only commands print."""

from __future__ import annotations

import time
from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line about what is going on, for people."""


class Deadline:
    """A moment to be done by; everything that waits within one command shares one."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that remain, never negative."""
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self.left == 0.0


def spoken(seconds: float) -> str:
    """A span as people say it: `48s`, `4m32s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
