"""Writing on pods of the device-plugin path which devices they have, once: from then on it is a fact for everyone."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import ClusterReader, Watcher
from kubectl_ghost.domain.errors import GhostError

_INTERVAL_SECONDS = 1.0


class Recorder:
    """A thread that records what the snapshot says and no pod says yet."""

    def __init__(
        self, reader: ClusterReader, watcher: Watcher, snapshot: Snapshot, *, problem: Callable[[str], None]
    ) -> None:
        self._reader, self._watcher, self._snapshot, self._problem = reader, watcher, snapshot, problem
        self._ended = threading.Event()
        self._told: set[str] = set()

    def start(self) -> None:
        """Begin, in a thread that ends with the process."""
        threading.Thread(target=self._loop, name="record", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._ended.set()

    def _loop(self) -> None:
        while not self._ended.wait(_INTERVAL_SECONDS):
            # What is not known well is not written down.
            if not self._watcher.why_stale():
                self.round()

    def round(self) -> None:
        """Record all that is not recorded."""
        for item in self._snapshot.unrecorded():
            if self._ended.is_set():
                return
            try:
                self._reader.record(item.pod, item.node, item.devices)
            except GhostError as error:
                # A pod that changes just now is recorded the next time.
                if error.message not in self._told:
                    self._told.add(error.message)
                    self._problem(error.message)
