"""The fleet as listed devices, brought up to date where something has changed since it was last looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ghost_agent.devices import listed_node
from ghost_agent.exposition import render
from ghost_agent.fleet import Fleet, NodeRecord
from ghost_agent.labels import spelling
from ghost_agent.listed import ListedNode
from ghost_agent.options import AgentOptions
from ghost_agent.sampling import Sampler
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json

_AT_A_TIME = 20
"""Nodes that are brought up to date while others wait: about 10 ms."""
_PAUSE_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A pod of the device-plugin path whose devices are not written on it yet."""

    pod: Json
    node: Json
    devices: tuple[str, ...]


class Snapshot:
    """All nodes at a moment. Safe to use from several threads: they look one after the other, and render at once.

    Who asks for one node has that one brought up to date and no other, so that a scrape of it costs the same however
    much goes on elsewhere.
    """

    def __init__(self, fleet: Fleet, options: AgentOptions, *, problem: Callable[[str], None]) -> None:
        self._fleet, self._options, self._problem = fleet, options, problem
        self._words = spelling(options.compatibility)
        self._parents = "mig-parent" in options.compatibility
        self._sampler = Sampler(options)
        self._nodes: dict[str, ListedNode] = {}
        self._unreadable: dict[str, GhostError] = {}
        self._order: list[str] | None = []
        self._unrecorded: dict[str, tuple[Unrecorded, ...]] = {}
        self._lock = threading.Lock()
        self.series = 0
        """How many series the last look at everything came to."""

    def nodes(self) -> list[ListedNode]:
        """The nodes by name, as they are now."""
        with self._lock:
            self._update()
            return [self._nodes[name] for name in self._ordered()]

    def node(self, name: str) -> ListedNode:
        """One node, as it is now.

        Raises:
            KeyError: there is no such node.
            GhostError: its declaration cannot be read.
        """
        with self._lock:
            self._update([name])
            return self._readable(name)

    def unrecorded(self) -> list[Unrecorded]:
        """The pods of the device-plugin path whose devices are not written on them yet."""
        changed = iter(self._fleet.changed())
        while names := list(islice(changed, _AT_A_TIME)):
            with self._lock:
                self._update(names)
            # Nobody is in a hurry here; a scrape that waits for the lock gets it now.
            time.sleep(_PAUSE_SECONDS)
        with self._lock:
            return [item for found in self._unrecorded.values() for item in found]

    def text(self, node_name: str | None = None, moment: float | None = None) -> Iterator[str]:
        """The exposition of everything or of one node, in pieces.

        Args:
            moment: seconds since 1970; None for now.

        Raises:
            KeyError: there is no such node.
            GhostError: its declaration cannot be read.
        """
        moment = time.time() if moment is None else moment
        with self._lock:
            asked = None if node_name is None else [node_name]
            self._update(asked)
            names = self._ordered() if asked is None else asked
            samples = [sample for name in names for sample in self._sampler.sample(self._readable(name), moment)]
        pieces = render(self._sampler.fields, samples, moment)
        return pieces if node_name is not None else self._counted(pieces)

    def _counted(self, pieces: Iterator[str]) -> Iterator[str]:
        series = 0
        for piece in pieces:
            # Each begins with its HELP and TYPE.
            series += piece.count("\n") - 2
            yield piece
        self.series = series

    def _readable(self, name: str) -> ListedNode:
        if name in self._unreadable:
            error = self._unreadable[name]
            # One of its own: each raise adds to what an error remembers.
            raise GhostError(error.message, error.hint)
        return self._nodes[name]

    def _update(self, names: Sequence[str] | None = None) -> None:
        """Take in what has changed about these nodes; None for all."""
        for name, record in self._fleet.take_changed(names):
            before = self._nodes.pop(name, None)
            self._unreadable.pop(name, None)
            self._unrecorded.pop(name, None)
            if record is None:
                self._sampler.forget(name)
            else:
                self._list(name, record)
            if (before is None) != (name not in self._nodes):
                self._order = None

    def _ordered(self) -> list[str]:
        if self._order is None:
            self._order = sorted(self._nodes, key=_natural)
        return self._order

    def _list(self, name: str, record: NodeRecord) -> None:
        try:
            node = listed_node(name, record, self._options.fields, self._words, self._parents)
        except GhostError as error:
            self._unreadable[name] = error.with_traceback(None)
            self._problem(error.message)
            return
        for pod, text in node.problems:
            self._problem(f'pod "{pod}": {text}')
        self._nodes[name] = node
        if node.unrecorded:
            self._unrecorded[name] = tuple(
                Unrecorded(pod, record.node or {}, devices) for pod, devices in node.unrecorded
            )


def _natural(name: str) -> tuple[str, int, str]:
    """node-2 before node-10; node-02, which somebody else made, beside node-2 and always on the same side."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number), name) if number.isdecimal() else (name, -1, name)
