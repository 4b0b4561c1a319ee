"""Redoing a change that lost against someone else's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from kubectl_ghost.cluster.errors import Conflict

R = TypeVar("R")

ATTEMPTS: Final = 6
_FIRST_WAIT: Final = 0.01


def on_conflict(
    function: Callable[[], R], *, attempts: int = ATTEMPTS, sleep: Callable[[float], None] = time.sleep
) -> R:
    """Call a function that reads, changes and writes; on a conflict, call it again, for it to read again.

    Waits 10 ms and twice as long every time: the other writer is kwok or a controller, done in a moment.

    Raises:
        Conflict: of the last attempt.
    """
    wait = _FIRST_WAIT
    for _ in range(attempts - 1):
        try:
            return function()
        except Conflict:
            sleep(wait)
            wait *= 2
    return function()
