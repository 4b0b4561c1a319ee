"""The Events that components write about a fault, each exactly once, whatever is interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from kubectl_ghost.cluster.errors import AlreadyExists, Conflict, NotFound
from kubectl_ghost.cluster.resources import EVENTS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.breaking import found_fault
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.event import EVENT_NAMESPACE, node_event, repetition
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import stamp
from kubectl_ghost.operations.fault_effects import Hit

_KEPT = timedelta(hours=1)
"""How long an API server keeps an event, unless told otherwise: one that is missing sooner was never written."""
_ATTEMPTS = 5


def record_events(
    writer: Writer,
    nodes: Mapping[str, Json],
    hits: Sequence[Hit],
    fault: Fault,
    declared: Mapping[str, NodeHardware],
) -> Iterator[Change]:
    """Write the events of a fault that has been declared.

    An event's last time is the beginning of the fault, as it is declared: so it shows whether it has been written, and
    a command that is repeated after a kill writes what is missing and no more.

    Args:
        nodes: the nodes by name: the guard's evidence.
        fault: as this command wanted to declare it.
        declared: the nodes' declarations with the fault.
    """
    events = list(_events(hits, fault, declared))

    def record(item: tuple[str, Json, bool]) -> Change | None:
        node_name, event, begun = item
        return _record(writer, nodes[node_name], event, begun=begun)

    yield from filter(None, run_ordered(record, events))


def _events(
    hits: Sequence[Hit], fault: Fault, declared: Mapping[str, NodeHardware]
) -> Iterator[tuple[str, Json, bool]]:
    """Node name, event, and whether the fault has begun with this command, for all that may have to be written."""
    oldest = stamp(datetime.fromisoformat(fault.since) - _KEPT)
    for hit in hits:
        name = hit.item.name
        found = found_fault(declared[name], hit.index, fault)
        if found is None or found.since < oldest:
            continue
        subject = f"{hit.index} {found.name}"
        for notice in hit.answer.notices:
            yield name, node_event(name, subject, notice, found.since), found.since == fault.since


def _record(writer: Writer, node: Json, event: Json, *, begun: bool) -> Change | None:
    """Create the event, or count up the one that is there; None where it has been written already."""
    live = None if begun else writer.find(EVENTS, event["metadata"]["name"], EVENT_NAMESPACE)
    for _ in range(_ATTEMPTS):
        try:
            if live is None:
                return Change(EVENTS, Verb.CREATED, writer.create(EVENTS, event, node=node))
            patch = repetition(live, event)
            return Change(EVENTS, Verb.CONFIGURED, writer.patch(EVENTS, live, patch, node=node)) if patch else None
        except (AlreadyExists, Conflict, NotFound):
            live = writer.find(EVENTS, event["metadata"]["name"], EVENT_NAMESPACE)
    # Others count it up all the time, so it is there.
    return None
