"""Writing on pods of the device-plugin path which devices they have, once: from then on it is a fact for everyone."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import ClusterReader, Watcher
from kubectl_ghost.domain.errors import GhostError

_INTERVAL_SECONDS = 1.0
_PAUSE_SECONDS = 15.0
"""After a refusal, which will be another one for the next pod."""


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
        """Record all that is not recorded; False if the cluster does not let it."""
        for item in self._snapshot.unrecorded():
            if self._ended.is_set():
                return True
            try:
                self._reader.record(item.pod, item.node, item.devices)
            except GhostError as error:
                self._problem(f"cannot record which GPUs pods have: {error.message}")
                return False
        return True
