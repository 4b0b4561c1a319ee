"""`sync --watch`: the loop that answers what real node agents would, until it is interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from kubectl_ghost.cluster.errors import Gone
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.requests import RebootSigns
from kubectl_ghost.operations.adoption import Template, adopt_matching, is_adoptable
from kubectl_ghost.operations.answering import NEVER, NOW, answer_node, due_at
from kubectl_ghost.operations.change_hardware import end_on
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.fleet import OURS, hardware_of

_IDLE_SECONDS = 30.0
"""The longest time between two looks at everything."""
_PENDING_SECONDS = 2.0
"""Between two looks at a node that is to reboot and still has pods."""
_GATHER_SECONDS = 0.1
"""After a node that asks for something: whoever labels one labels many, and they are answered together."""
_LEAST_SECONDS = 0.05
_PAUSE_SECONDS = 1.0
"""After an error of the server: the first of several in a row, each pause twice as long as the one before."""
_LONGEST_PAUSE_SECONDS = 30.0

_Labels = tuple[str, frozenset[tuple[str, str]]]


def watch_fleet(
    writer: Writer,
    signs: RebootSigns,
    seconds: float,
    *,
    problem: Callable[[GhostError], None],
    going_on: Callable[[], bool] = lambda: True,
    template: Template | None = None,
) -> Iterator[Change]:
    """Answer requests as they come, end what ends by itself and adopt what appears; yields what changed.

    Args:
        signs: what counts as a request to reboot.
        seconds: how long such a reboot takes.
        problem: told of an error about one node or one moment; the loop goes on.
        going_on: asked before each round.
        template: which nodes of others are to be adopted.
    """
    loop = _Loop(writer, signs, seconds, problem, template)
    pause = _PAUSE_SECONDS
    while going_on():
        try:
            yield from loop.round()
        except GhostError as error:
            # The server has forgotten what a watch goes on from; all else is told.
            if not isinstance(error, Gone):
                problem(error)
            loop.forget()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            pause = _PAUSE_SECONDS


class _Loop:
    """The nodes at which a look is due, at once or at a certain time, and how far the fleet has been watched."""

    def __init__(
        self,
        writer: Writer,
        signs: RebootSigns,
        seconds: float,
        problem: Callable[[GhostError], None],
        template: Template | None,
    ) -> None:
        self._writer, self._signs, self._seconds = writer, signs, seconds
        self._problem, self._template = problem, template
        # Whoever creates nodes does not label them as ours.
        self._selector = OURS if template is None else None
        self._due: dict[str, tuple[float, Json]] = {}
        self._others: set[_Labels] = set()
        self._adopting = False
        self._version = ""
        self._list_at = 0.0

    def forget(self) -> None:
        """Look at everything anew in the next round."""
        self._version = ""

    def round(self) -> Iterator[Change]:
        """Do what is due, then watch until something else is; everything is listed only now and then."""
        if not self._version or time.monotonic() >= self._list_at:
            self._list()
        if self._adopting:
            yield from self._adopt()
        yield from self._attend()
        if self._watch(self._wait(), gathering=False):
            self._watch(_GATHER_SECONDS, gathering=True)

    def _list(self) -> None:
        listing = self._writer.list(NODES, label_selector=self._selector)
        self._due, self._others = {}, set()
        for node in listing.items:
            self._see(node)
        self._version, self._list_at = listing.resource_version, time.monotonic() + _IDLE_SECONDS

    def _watch(self, seconds: float, *, gathering: bool) -> bool:
        """Follow the nodes for so long, or until a look at one of them is due sooner, which is the answer.

        Args:
            gathering: whether to go on for the whole time.
        """
        end = time.time() + seconds
        for kind, node in self._writer.watch(
            NODES, resource_version=self._version, label_selector=self._selector, timeout=seconds
        ):
            self._version = node["metadata"]["resourceVersion"]
            if kind == "DELETED":
                self._due.pop(node["metadata"]["name"], None)
            elif self._see(node) < end and not gathering:
                return True
        return False

    def _see(self, node: Json) -> float:
        """Note when a look at this node is due, and return it; NEVER where nobody waits for one."""
        self._due.pop(node["metadata"]["name"], None)
        if is_ours(node):
            try:
                return self._note(node, due_at(node, self._signs))
            except GhostError as error:
                self._problem(error)
        elif self._template is not None and is_adoptable(node) and _looks(node) not in self._others:
            self._others.add(_looks(node))
            self._adopting = True
            return NOW
        return NEVER

    def _note(self, node: Json, moment: float) -> float:
        if moment != NEVER:
            self._due[node["metadata"]["name"]] = (moment, node)
        return moment

    def _wait(self) -> float:
        """Seconds until a look is due, at a node or at everything."""
        soonest = min((moment for moment, _ in self._due.values()), default=NEVER)
        return max(_LEAST_SECONDS, min(soonest - time.time(), self._list_at - time.monotonic()))

    def _adopt(self) -> Iterator[Change]:
        """The server itself says which nodes the selector matches."""
        self._adopting = False
        if self._template is None:
            return
        try:
            yield from _changed(adopt_matching(self._writer, self._template))
        except GhostError as error:
            self._problem(error)

    def _attend(self) -> Iterator[Change]:
        moment = time.time()
        nodes = [node for at, node in self._due.values() if at <= moment]
        for node, found in zip(nodes, run_ordered(self._looked_after, nodes), strict=True):
            name = node["metadata"]["name"]
            del self._due[name]
            if isinstance(found, GhostError):
                # It is looked at again with everything else.
                self._problem(found)
                continue
            yield from _changed(iter(found))
            latest = next((change.body for change in reversed(found) if change.resource is NODES), node)
            at = due_at(latest, self._signs)
            self._note(latest, time.time() + _PENDING_SECONDS if at == NOW else at)

    def _tell(self, text: str) -> None:
        self._problem(GhostError(text))

    def _looked_after(self, node: Json) -> list[Change] | GhostError:
        """End what is over on a node and answer what is asked of it."""
        try:
            moment, hardware = now(), hardware_of(node)
            ended: list[Change] = []
            if without_what_is_over(hardware, moment) != hardware:
                ended = end_on(self._writer, node, moment)
                node = ended[0].body
            return [*ended, *answer_node(self._writer, node, self._signs, self._seconds, self._tell)]
        except GhostError as error:
            return error


def _looks(node: Json) -> _Labels:
    """What decides whether a node of others matches: while it stays so, there is no need to ask again."""
    metadata = node["metadata"]
    return metadata["uid"], frozenset((metadata.get("labels") or {}).items())


def _changed(changes: Iterator[Change]) -> Iterator[Change]:
    return (change for change in changes if change.verb is not Verb.UNCHANGED)
