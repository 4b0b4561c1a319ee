"""`release`: what `occupy` has done to GPUs is undone, whichever way they were kept busy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.occupancy import occupied
from kubectl_ghost.domain.selection import Selection
from kubectl_ghost.operations.change_hardware import change_nodes
from kubectl_ghost.operations.changes import Change, Verb
from kubectl_ghost.operations.fillers import reconcile_fillers
from kubectl_ghost.operations.outcome import hardware_after
from kubectl_ghost.operations.selecting import Chosen, select


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The nodes that were named, and of each the GPUs that are to be free again; `everything` if these are all."""

    chosen: list[Chosen]
    everything: bool

    @property
    def gpus(self) -> int:
        """How many busy GPUs there are to release."""
        return sum(len(_busy(item)) for item in self.chosen)

    @property
    def nodes(self) -> int:
        """On how many nodes they are."""
        return sum(bool(_busy(item)) for item in self.chosen)


def plan_release(reader: Reader, selection: Selection) -> ReleasePlan:
    """Find the GPUs; nothing is written.

    Raises:
        GhostError: if nothing is named, or a node is not there or not this tool's.
    """
    return ReleasePlan(select(reader, selection), selection.everything)


def _busy(item: Chosen) -> list[int]:
    return [index for index in item.gpus if item.hardware.gpu(index).occupancy is not None]


def apply_release(writer: Writer, plan: ReleasePlan) -> Iterator[Change]:
    """Declare the GPUs free and delete their filler pods; only what has changed is told.

    Nodes on which nothing is busy are gone over as well: a release that was killed is finished by the next.
    """
    nodes = {item.name: item.node for item in plan.chosen}

    def change(hardware: NodeHardware, item: Chosen) -> NodeHardware:
        return occupied(hardware, {}, [index for index in item.gpus if index < hardware.settings.gpus])

    for done in change_nodes(writer, plan.chosen, change):
        if done.resource is NODES:
            nodes[done.name] = done.body
        if done.verb is not Verb.UNCHANGED:
            yield done
    hardware = hardware_after(writer, plan.chosen, nodes, change)
    yield from reconcile_fillers(writer, hardware, nodes, whole=plan.everything)
