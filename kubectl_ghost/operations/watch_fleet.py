"""`sync --watch`: the loop that answers what real node agents would, until it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from kubectl_ghost.cluster.errors import Gone
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.expiry import next_end
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.requests import RebootSigns, reboot_request
from kubectl_ghost.operations.adoption import Template, adopt_matching, is_adoptable
from kubectl_ghost.operations.answering import answer_nodes
from kubectl_ghost.operations.change_hardware import end_what_is_over
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.fleet import OURS, hardware_of

_IDLE_SECONDS = 30.0
"""The longest time between two looks at everything."""
_PENDING_SECONDS = 2.0
"""Between two looks at a node that is to reboot and still has pods."""


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
    while going_on():
        try:
            yield from _round(writer, signs, seconds, problem, template)
        except Gone:
            continue


def _round(
    writer: Writer,
    signs: RebootSigns,
    seconds: float,
    problem: Callable[[GhostError], None],
    template: Template | None,
) -> Iterator[Change]:
    yield from _changed(end_what_is_over(writer))
    # Whoever creates nodes does not label them as ours.
    looked_at = OURS if template is None else None
    listing = writer.list(NODES, label_selector=looked_at)
    nodes = [node for node in listing.items if is_ours(node)]
    others = {_looks(node) for node in listing.items if is_adoptable(node)}
    if template is not None and others:
        yield from _adopted(writer, template, problem)
    for node in nodes:
        yield from _answered(writer, node, signs, seconds, problem)
    wait = _seconds_until_something(nodes, signs)
    for kind, node in writer.watch(
        NODES, resource_version=listing.resource_version, label_selector=looked_at, timeout=max(1.0, wait)
    ):
        if template is not None and kind != "DELETED" and is_adoptable(node) and _looks(node) not in others:
            return
        if kind != "DELETED" and is_ours(node):
            changes = list(_answered(writer, node, signs, seconds, problem))
            yield from changes
            if changes or _is_timed(node, signs):
                return


def _answered(
    writer: Writer, node: Json, signs: RebootSigns, seconds: float, problem: Callable[[GhostError], None]
) -> Iterator[Change]:
    try:
        yield from _changed(answer_nodes(writer, [node], signs, seconds))
    except GhostError as error:
        problem(error)


def _adopted(writer: Writer, template: Template, problem: Callable[[GhostError], None]) -> Iterator[Change]:
    """The server itself says which nodes the selector matches."""
    try:
        yield from _changed(adopt_matching(writer, template))
    except GhostError as error:
        problem(error)


def _looks(node: Json) -> tuple[str, frozenset[tuple[str, str]]]:
    """What decides whether a node of others matches: while it stays so, there is no need to ask again."""
    metadata = node["metadata"]
    return metadata["uid"], frozenset((metadata.get("labels") or {}).items())


def _changed(changes: Iterator[Change]) -> Iterator[Change]:
    return (change for change in changes if change.verb is not Verb.UNCHANGED)


def _is_timed(node: Json, signs: RebootSigns) -> bool:
    """Whether a look at this node is due before long, so that the round must not wait for its end."""
    return _seconds_until_something([node], signs) < _IDLE_SECONDS


def _seconds_until_something(nodes: list[Json], signs: RebootSigns) -> float:
    now = datetime.now(UTC)
    soonest = _IDLE_SECONDS
    for node in nodes:
        try:
            hardware = hardware_of(node)
        except GhostError:
            continue
        request = reboot_request(node, signs)
        if request and request != hardware.rebooted_for and hardware.reboot is None:
            soonest = min(soonest, _PENDING_SECONDS)
        if end := next_end(hardware):
            soonest = min(soonest, (datetime.fromisoformat(end) - now).total_seconds())
    return max(0.0, soonest)
