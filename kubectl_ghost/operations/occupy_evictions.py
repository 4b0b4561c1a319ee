"""The pods in the way of occupancy: who holds what, who is evicted, and whom a plan has not seen coming."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import PodName, pod_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.occupancy import Held, by_node, without_parts
from kubectl_ghost.domain.partial_occupancy import without_room
from kubectl_ghost.operations.change_hardware import change_nodes
from kubectl_ghost.operations.changes import Change
from kubectl_ghost.operations.holdings import claims_for, find_holders, held_error, node_words
from kubectl_ghost.operations.pods import delete_pods, pods_on
from kubectl_ghost.operations.selecting import Chosen


def held_by_pods(reader: Reader, hardware: Mapping[str, NodeHardware], pods: list[Json]) -> dict[str, Held]:
    """What pods hold of these nodes, node by node."""
    return dict(by_node(find_holders(hardware, claims_for(reader, pods), pods)))


def evict_from(
    writer: Writer,
    nodes: Mapping[str, Json],
    hardware: Mapping[str, NodeHardware],
    busy: Mapping[str, Collection[int]],
) -> Iterator[Change]:
    """Evict the pods that hold what is busy by now of these GPUs."""
    pods, found = _without_room(writer, nodes, hardware, busy)
    going = {name for names in found.values() for name in names}
    yield from delete_pods(writer, nodes, pods_named(pods, going))


def _without_room(
    reader: Reader,
    nodes: Mapping[str, Json],
    hardware: Mapping[str, NodeHardware],
    busy: Mapping[str, Collection[int]],
) -> tuple[list[Json], dict[tuple[str, int], frozenset[PodName]]]:
    """The pods on these nodes, and those of them that hold what is busy, by node and GPU."""
    pods = pods_on(reader, nodes)
    held = held_by_pods(reader, hardware, pods)
    found = {
        (name, index): without_room(hardware[name], index, held.get(name, {}))
        for name, indices in busy.items()
        for index in indices
    }
    return pods, {key: names for key, names in found.items() if names}


@dataclass(frozen=True, slots=True)
class NewParts:
    """Parts of GPUs that a command has declared busy, of each node that it has chosen, by index."""

    chosen: list[Chosen]
    parts: Mapping[str, Mapping[int, Collection[MigInstance]]]


def give_way(
    writer: Writer, new: NewParts, nodes: Mapping[str, Json], hardware: Mapping[str, NodeHardware]
) -> Iterator[Change]:
    """Undo what has no room beside pods that were placed while it was being declared.

    Raises:
        GhostError: naming those pods, when it is undone.
    """
    pods, late = _without_room(writer, nodes, hardware, new.parts)
    if not late:
        return

    def undo(declared: NodeHardware, item: Chosen) -> NodeHardware:
        for name, index in late:
            if name == item.name:
                declared = without_parts(declared, index, new.parts[name][index])
        return declared

    names = {name for name, _ in late}
    written = [replace(item, node=nodes[item.name]) for item in new.chosen if item.name in names]
    yield from change_nodes(writer, written, undo)
    raise in_the_way(pods_named(pods, {pod for found in late.values() for pod in found}))


def pods_named(pods: Iterable[Json], names: Collection[PodName]) -> list[Json]:
    """Those of these pods that have one of these names."""
    return [pod for pod in pods if pod_name(pod) in names]


def in_the_way(pods: list[Json]) -> GhostError:
    """The refusal to make GPUs busy, or free, that pods hold."""
    return held_error(
        node_words({pod["spec"]["nodeName"] for pod in pods}),
        pods,
        "Delete those pods first, or have them evicted with --force.",
        "are to be busy or free",
    )
