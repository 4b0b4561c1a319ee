"""Writing on pods of the device-plugin path which devices they have, once: from then on it is a fact for everyone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ghost_agent.snapshot import Snapshot, Unrecorded
from ghost_agent.watcher import ClusterReader, Watcher
from kubectl_ghost.domain.errors import GhostError

_INTERVAL_SECONDS = 1.0
_PAUSE_SECONDS = 15.0
"""After a refusal, which will be another one for the next pod."""
_AT_ONCE = 8
"""Requests at a time. CHOICE: one after the other they are slower than a busy scheduler binds pods."""


class Recorder:
    """A thread that records what the snapshot says and no pod says yet."""

    def __init__(
        self, reader: ClusterReader, watcher: Watcher, snapshot: Snapshot, *, problem: Callable[[str], None]
    ) -> None:
        self._reader, self._watcher, self._snapshot, self._problem = reader, watcher, snapshot, problem
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin, in a thread that ends with the process."""
        threading.Thread(target=self._loop, name="record", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._ended.set()

    def _loop(self) -> None:
        pause = _INTERVAL_SECONDS
        while not self._ended.wait(pause):
            pause = _INTERVAL_SECONDS
            # What is not known well is not written down.
            if not self._watcher.why_stale() and not self.round():
                pause = _PAUSE_SECONDS

    def round(self) -> bool:
        """Record all that is not recorded; False if the cluster lets none of it be written."""
        waiting = deque(self._snapshot.unrecorded())
        if not waiting:
            return True
        outcome = _Outcome()
        hands = [
            threading.Thread(target=self._work_off, args=(waiting, outcome), name="record-one", daemon=True)
            for _ in range(min(_AT_ONCE, len(waiting)))
        ]
        for hand in hands:
            hand.start()
        for hand in hands:
            hand.join()
        return outcome.written > 0

    def _work_off(self, waiting: deque[Unrecorded], outcome: _Outcome) -> None:
        while waiting and not self._ended.is_set() and not outcome.hopeless:
            try:
                item = waiting.popleft()
                self._reader.record(item.pod, item.node, item.devices)
                outcome.written += 1
            except IndexError:
                # Another thread has taken the last one.
                return
            except GhostError as error:
                outcome.refused += 1
                self._problem(f"cannot record which GPUs pods have: {error.message}")


@dataclass(slots=True)
class _Outcome:
    """How a round goes. The threads count without a lock: a miscount would only end it a little later."""

    written: int = 0
    refused: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether nothing but refusals has come so far: the next pod would be another one."""
        return not self.written and self.refused > _AT_ONCE
