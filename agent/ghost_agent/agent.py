"""All parts of the agent put together, for a pod and for this process alike."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress

from ghost_agent.fleet import Fleet
from ghost_agent.options import AgentOptions
from ghost_agent.recording import Recorder
from ghost_agent.server import AgentServer
from ghost_agent.snapshot import Snapshot
from ghost_agent.watcher import ClusterReader, Watcher

_REMEMBERED = 1000
"""Problems that are told once: they name pods, of which there come ever new ones."""
_GARBAGE = 50_000
"""New objects after which the garbage collector looks. CHOICE: after 700, Python's own, it looks some thirty times in
a scrape of 8,000 GPUs, which makes no cycles, and takes a fifth of its time."""


class Agent:
    """Watches a cluster and serves its metrics. Listening begins at once, so that a taken port is told at once."""

    def __init__(
        self,
        reader: ClusterReader,
        options: AgentOptions,
        *,
        address: str,
        port: int,
        problem: Callable[[str], None],
    ) -> None:
        """Put it together.

        Args:
            port: 0 for any free one.
            problem: told, once each, of what goes wrong while the agent goes on.

        Raises:
            GhostError: the port cannot be had.
        """
        told: set[str] = set()

        def tell(text: str) -> None:
            if len(told) >= _REMEMBERED:
                told.clear()
            if text not in told:
                told.add(text)
                # Where nobody can be told (`2>&1 | head`, a full disk) there is still somebody to serve.
                with suppress(OSError):
                    problem(text)

        fleet = Fleet(options.shard, pod_labels="pod-labels" in options.compatibility)
        self.watcher = Watcher(reader, fleet, problem=tell)
        self.snapshot = Snapshot(fleet, options, problem=tell)
        self.server = AgentServer(address, port, self.watcher, self.snapshot, tell)
        self._recorder = None if options.read_only else Recorder(reader, self.watcher, self.snapshot, problem=tell)

    def start(self) -> None:
        """Begin to watch, and to record."""
        gc.set_threshold(_GARBAGE)
        self.watcher.start()
        if self._recorder is not None:
            self._recorder.start()

    def serve(self) -> None:
        """Answer until `stop` is called or the process is interrupted."""
        try:
            self.server.serve_forever(poll_interval=0.2)
        finally:
            self.watcher.stop()
            if self._recorder is not None:
                self._recorder.stop()
            self.server.server_close()

    def stop(self) -> None:
        """End `serve`, from another thread."""
        self.server.shutdown()
