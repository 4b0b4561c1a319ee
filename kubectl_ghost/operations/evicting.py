"""Eviction around a change of hardware: until nobody comes back by the slices as they were."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from kubectl_ghost.operations.changes import Change

_LOOK_SECONDS = 0.3
_QUIET_LOOKS = 4
_MOST_LOOKS = 40


def evict_until_quiet(look: Callable[[], Iterator[Change]]) -> Iterator[Change]:
    """Evict until nobody has come back for a moment: the scheduler may still be placing a pod by the old slices.

    Args:
        look: looks for pods that hold what is gone, deletes them and yields what it did; called again and again.
    """
    quiet = 0
    for _ in range(_MOST_LOOKS):
        changes = list(look())
        yield from changes
        quiet = 0 if changes else quiet + 1
        if quiet == _QUIET_LOOKS:
            return
        time.sleep(_LOOK_SECONDS)
