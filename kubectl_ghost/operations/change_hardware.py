"""Changing the declared hardware of nodes: what mig-split, occupy, release, fault and drain have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kubectl_ghost.cluster.errors import NotFound
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.expiry import without_what_is_over
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import TIMED_LABEL, Json
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.clock import now
from kubectl_ghost.operations.fleet import OURS, hardware_of
from kubectl_ghost.operations.reconcile import update_node
from kubectl_ghost.operations.selecting import Chosen


def change_nodes(
    writer: Writer, chosen: Iterable[Chosen], change: Callable[[NodeHardware, Chosen], NodeHardware]
) -> Iterator[Change]:
    """Bring these nodes to their changed declarations, many at a time, yielding what happened in order.

    Args:
        change: the pure change. It is given the declaration as it is at that moment, which may be a newer one than
            that in `Chosen` when somebody else has written meanwhile; done twice it must change nothing.
    """

    def write(item: Chosen) -> list[Change]:
        return update_node(writer, item.node, lambda hardware: change(without_what_is_over(hardware, now()), item))

    for changes in run_ordered(write, chosen):
        yield from changes


def end_what_is_over(writer: Writer) -> Iterator[Change]:
    """End the faults whose time has passed and the reboots that are due, wherever they are.

    Nodes with such a thing carry a label, so in a fleet without any this is one small request.
    """
    moment = now()
    nodes = writer.list(NODES, label_selector=f"{OURS},{TIMED_LABEL}=true").items

    def end(node: Json) -> list[Change]:
        # An autoscaler may have deleted it meanwhile.
        with contextlib.suppress(NotFound):
            return end_on(writer, node, moment)
        return []

    for changes in run_ordered(end, [node for node in nodes if _something_is_over(node, moment)]):
        yield from changes


def end_on(writer: Writer, node: Json, moment: str) -> list[Change]:
    """End what is over on one node; the end of a reboot is called that."""
    first, *others = update_node(writer, node, lambda hardware: without_what_is_over(hardware, moment))
    rebooted = hardware_of(node).reboot is not None and hardware_of(first.body).reboot is None
    return [replace(first, verb=Verb.REBOOTED) if rebooted else first, *others]


def _something_is_over(node: Json, moment: str) -> bool:
    """Whether anything on a node is to end now; a declaration that cannot be read is `sync`'s to tell of."""
    with contextlib.suppress(GhostError):
        hardware = hardware_of(node)
        return is_ours(node) and without_what_is_over(hardware, moment) != hardware
    return False
