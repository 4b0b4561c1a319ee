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
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 15.0


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

        Raises:
            Expired: the version is too old.
        """
        ...

    def record(self, pod: Json, node: Json, devices: tuple[str, ...]) -> None:
        """Write down on a pod of the device-plugin path which devices it has."""
        ...


@dataclass(slots=True)
class _Progress:
    heard: float
    synced: bool = False
    failing_since: float | None = None
    error: str = ""


class Watcher:
    """The threads that keep a fleet up to date."""

    def __init__(self, reader: ClusterReader, fleet: Fleet, *, problem: Callable[[str], None]) -> None:
        """Watch with a reader.

        Args:
            problem: told of each failure; watching goes on.
        """
        self._reader, self._fleet, self._problem = reader, fleet, problem
        self._progress = {collection: _Progress(time.monotonic()) for collection in COLLECTIONS}
        self._versions: dict[str, str] = {}
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
            self._versions[collection] = self._list(collection)

    def why_stale(self) -> str:
        """Why the fleet is not known, or no longer; "" if it is."""
        for collection, progress in self._progress.items():
            if not progress.synced:
                return f"{collection}: {progress.error or 'not read yet'}"
            if progress.failing_since is not None and time.monotonic() - progress.failing_since > STALE_SECONDS:
                return f"{collection}: {progress.error}"
        return ""

    def age(self) -> float:
        """Seconds since the last word from the cluster about the collection that was quiet for longest."""
        return max(time.monotonic() - progress.heard for progress in self._progress.values())

    def wait(self, seconds: float) -> bool:
        """Wait until everything has been read once; False if it has not by then."""
        end = time.monotonic() + seconds
        while not all(progress.synced for progress in self._progress.values()):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def _follow(self, collection: str) -> None:
        pause, version = _PAUSE_SECONDS, self._versions.get(collection, "")
        while not self._ended.is_set():
            try:
                if not version:
                    version = self._list(collection)
                if not version:
                    # A server without DRA has no claims to watch.
                    self._ended.wait(WATCH_SECONDS)
                    continue
                version = self._watch(collection, version)
                self._heard(collection)
                pause = _PAUSE_SECONDS
            except Expired:
                version = ""
                self.restarts += 1
            except Exception as error:
                # Whatever it is, a thread that died unseen would leave the fleet as it was for ever.
                if not isinstance(error, GhostError):
                    version = ""
                self._failed(collection, error)
                self._ended.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _list(self, collection: str) -> str:
        items, version = self._reader.list(collection, lambda item: self._fleet.keep(collection, item))
        self._fleet.replace(collection, items)
        self._progress[collection].synced = True
        self._heard(collection)
        return version

    def _heard(self, collection: str) -> None:
        progress = self._progress[collection]
        progress.heard, progress.failing_since = time.monotonic(), None

    def _watch(self, collection: str, version: str) -> str:
        """Follow for a while; returns the version up to which everything has been seen."""
        with contextlib.closing(_closable(self._reader.watch(collection, version, WATCH_SECONDS))) as events:
            for kind, item in events:
                version = item["metadata"]["resourceVersion"]
                self._heard(collection)
                if kind == "DELETED":
                    self._fleet.remove(collection, item)
                elif kind != "BOOKMARK":
                    self._fleet.put(collection, self._fleet.keep(collection, item))
        return version

    def _failed(self, collection: str, error: Exception) -> None:
        progress = self._progress[collection]
        progress.error = error.message if isinstance(error, GhostError) else f"{type(error).__name__}: {error}"
        if progress.failing_since is None:
            progress.failing_since = time.monotonic()
            self._problem(f"{collection}: {progress.error}")


def _closable(events: Iterator[tuple[str, Json]]) -> Generator[tuple[str, Json]]:
    """As a generator, which can be closed, whatever the reader gives."""
    yield from events
