"""Keeping the fleet as the cluster is: one list and then watches of each collection, each in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from ghost_agent.fleet import COLLECTIONS, Fleet
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

WATCH_SECONDS = 60.0
"""How long one watch lasts: a connection that has died unnoticed is noticed by then."""
STALE_SECONDS = 30.0
"""How long the last success may be ago, once something has failed, until the fleet counts as unknown."""
SILENT_SECONDS = WATCH_SECONDS + STALE_SECONDS
"""How long nothing may be heard, even if nothing has failed: a server that hangs refuses nothing. One that lives says
something at the end of each watch."""
PAUSE_SECONDS = 1.0
"""Before a collection is asked for again after a failure, and at the least between two watches that bring nothing."""
LONGEST_PAUSE_SECONDS = 15.0


class Expired(GhostError):
    """The server has forgotten the version from which a watch was to go on: list again."""


class ClusterReader(Protocol):
    """How the agent reads the cluster: as a pod by its own account, in a command by the command's connection.

    Every method raises GhostError where the cluster cannot be read.
    """

    def list(self, collection: str, keep: Callable[[Json], Json]) -> tuple[list[Json], str]:
        """What is kept of every object of a collection, and the version at which a watch goes on.

        The version is "" where the server does not know the type.
        """
        ...

    def watch(self, collection: str, version: str, seconds: float) -> Iterator[tuple[str, Json]]:
        """ADDED, MODIFIED, DELETED or BOOKMARK and the object, for so long.

        The first is a bookmark of this version, as soon as the server has granted the watch: nothing else may come for
        long where nothing happens.

        Raises:
            Expired: the version is too old.
        """
        ...

    def record(self, pod: Json, node: Json, devices: tuple[str, ...]) -> None:
        """Write down on a pod of the device-plugin path which devices it has."""
        ...


@dataclass(slots=True)
class _Progress:
    """How far a collection is known: `version` is where a watch goes on, "" where it has to be listed."""

    heard: float
    version: str = ""
    synced: bool = False
    failing_since: float | None = None
    error: str = ""
    pause: float = PAUSE_SECONDS


class Watcher:
    """The threads that keep a fleet up to date."""

    def __init__(
        self,
        reader: ClusterReader,
        fleet: Fleet,
        *,
        problem: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch with a reader.

        Args:
            problem: told of each failure; watching goes on.
            clock: seconds that go by.
        """
        self._reader, self._fleet, self._problem, self._clock = reader, fleet, problem, clock
        self._progress = {collection: _Progress(clock()) for collection in COLLECTIONS}
        self._ended = threading.Event()
        self.restarts = 0
        """How often a collection had to be listed again."""

    def start(self) -> None:
        """Begin, in threads that end with the process."""
        for collection in COLLECTIONS:
            threading.Thread(target=self._follow, args=(collection,), name=f"watch-{collection}", daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._ended.set()

    def list_once(self) -> None:
        """Read everything once, without watching; `start` goes on from there.

        Raises:
            GhostError: if the cluster cannot be read.
        """
        for collection in COLLECTIONS:
            self._list(collection)

    def why_stale(self) -> str:
        """Why the fleet is not known, or no longer; "" if it is."""
        now = self._clock()
        for collection, progress in self._progress.items():
            if not progress.synced:
                return f"{collection}: {progress.error or 'not read yet'}"
            if progress.failing_since is not None and now - progress.failing_since > STALE_SECONDS:
                return f"{collection}: {progress.error}"
            if now - progress.heard > SILENT_SECONDS:
                return f"{collection}: nothing heard for {now - progress.heard:.0f}s"
        return ""

    def age(self) -> float:
        """Seconds since the last word from the cluster about the collection that was quiet for longest."""
        return max(self._clock() - progress.heard for progress in self._progress.values())

    def wait(self, seconds: float) -> bool:
        """Wait until everything has been read once; False if it has not by then."""
        end = time.monotonic() + seconds
        while not all(progress.synced for progress in self._progress.values()):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def _follow(self, collection: str) -> None:
        while not self._ended.is_set():
            self._ended.wait(self.turn(collection))

    def turn(self, collection: str) -> float:
        """List a collection, or follow it until its watch ends; returns the seconds to wait before the next turn."""
        progress, began = self._progress[collection], self._clock()
        try:
            if not progress.version:
                self._list(collection)
                # A server without DRA has no claims to watch; it may learn of them.
                return 0.0 if progress.version else WATCH_SECONDS
            self._watch(collection)
        except Expired:
            progress.version = ""
            self.restarts += 1
        except Exception as error:
            # Whatever it is, a thread that died unseen would leave the fleet as it was for ever.
            if not isinstance(error, GhostError):
                progress.version = ""
            pause, progress.pause = progress.pause, min(2 * progress.pause, LONGEST_PAUSE_SECONDS)
            self._failed(collection, error)
            return pause
        # A server that is going down ends watches as soon as they begin.
        return max(0.0, PAUSE_SECONDS - (self._clock() - began))

    def _list(self, collection: str) -> None:
        items, version = self._reader.list(collection, lambda item: self._fleet.keep(collection, item))
        self._fleet.replace(collection, items)
        self._progress[collection].version = version
        self._progress[collection].synced = True
        self._heard(collection)

    def _heard(self, collection: str) -> None:
        progress = self._progress[collection]
        progress.heard, progress.failing_since, progress.pause = self._clock(), None, PAUSE_SECONDS

    def _watch(self, collection: str) -> None:
        """Follow for a while. What has been seen stays seen, also when the watch breaks off."""
        progress = self._progress[collection]
        with contextlib.closing(_closable(self._reader.watch(collection, progress.version, WATCH_SECONDS))) as events:
            for kind, item in events:
                self._heard(collection)
                if kind == "DELETED":
                    self._fleet.remove(collection, item)
                elif kind != "BOOKMARK":
                    self._fleet.put(collection, self._fleet.keep(collection, item))
                progress.version = item["metadata"]["resourceVersion"]
        self._heard(collection)

    def _failed(self, collection: str, error: Exception) -> None:
        progress = self._progress[collection]
        progress.error = error.message if isinstance(error, GhostError) else f"{type(error).__name__}: {error}"
        if progress.failing_since is None:
            progress.failing_since = self._clock()
            self._problem(f"{collection}: {progress.error}")


def _closable(events: Iterator[tuple[str, Json]]) -> Generator[tuple[str, Json]]:
    """As a generator, which can be closed, whatever the reader gives."""
    yield from events
