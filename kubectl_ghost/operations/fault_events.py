"""The Events that components write about a fault, each exactly once, whatever is interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from kubectl_ghost.cluster.errors import AlreadyExists, Conflict, NotFound
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import EVENTS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.breaking import found_fault
from kubectl_ghost.domain.consequences import node_reactions
from kubectl_ghost.domain.faults import Fault
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import Notice
from kubectl_ghost.manifests.event import EVENT_NAMESPACE, node_event, repetition
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import now, stamp
from kubectl_ghost.operations.fault_effects import Hit
from kubectl_ghost.operations.fleet import OURS

_KEPT = timedelta(hours=1)
"""How long an API server keeps an event, unless told otherwise: one that is missing sooner was never written."""
_YOUNG = timedelta(minutes=5)
"""The age up to which the event of a fault that somebody else has declared is written where it is missing."""
_FEW = 20
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
        for notice in hit.answer.notices:
            yield name, _event(name, hit.index, found, notice), found.since == fault.since


def record_missing_events(
    writer: Writer, nodes: Mapping[str, Json], declared: Mapping[str, NodeHardware]
) -> Iterator[Change]:
    """Write the events of faults that began a moment ago and whose command was killed before it wrote them.

    Older faults get none: theirs were written and forgotten, as far as anybody knows. At rest nothing is written, and
    without a fault so young nothing is read.

    Args:
        nodes: the nodes by name: the guard's evidence.
        declared: the declarations of those with faults.
    """
    oldest = stamp(datetime.fromisoformat(now()) - _YOUNG)
    events = [found for hardware in declared.values() for found in _young(hardware, oldest)]
    live = _present(writer, events) if len(events) > _FEW else None

    def record(item: tuple[str, Json]) -> Change | None:
        node_name, event = item
        name = event["metadata"]["name"]
        found = writer.find(EVENTS, name, EVENT_NAMESPACE) if live is None else live.get(name)
        return _written(writer, nodes[node_name], event, found)

    yield from filter(None, run_ordered(record, events))


def _young(hardware: NodeHardware, oldest: str) -> Iterator[tuple[str, Json]]:
    """Node name and event, of the faults of a node that have not lasted longer."""
    for index, fault, answer in node_reactions(hardware):
        if fault.since >= oldest:
            for notice in answer.notices:
                yield hardware.node_name, _event(hardware.node_name, index, fault, notice)


def _present(reader: Reader, events: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """The events of ours that there are, by name: one list where they are many."""
    wanted = {event["metadata"]["name"] for _, event in events}
    listed = reader.list(EVENTS, namespace=EVENT_NAMESPACE, label_selector=OURS).items
    return {item["metadata"]["name"]: item for item in listed if item["metadata"]["name"] in wanted}


def _event(node_name: str, index: int | None, fault: Fault, notice: Notice) -> Json:
    return node_event(node_name, f"{index} {fault.name}", notice, fault.since)


def _record(writer: Writer, node: Json, event: Json, *, begun: bool) -> Change | None:
    """Create the event, or count up the one that is there; None where it has been written already."""
    return _written(
        writer, node, event, None if begun else writer.find(EVENTS, event["metadata"]["name"], EVENT_NAMESPACE)
    )


def _written(writer: Writer, node: Json, event: Json, live: Json | None) -> Change | None:
    """As `_record`, with the event as it was last read; None: not there, as far as is known."""
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
