"""What the faults and the occupancy of a node come to, all together: pure, and the same for every reader.

Manifests write it down (taints of devices, allocatable, conditions, labels), operations evict by it, views show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.hardware import Advertise, GpuState, NodeHardware, OccupancyKind
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import OCCUPIED_TAINT

if TYPE_CHECKING:
    from kubectl_ghost.domain.faults import Fault
    from kubectl_ghost.domain.reactions import Condition, DeviceTaint, Reaction

_STRENGTH = {"None": 0, "NoSchedule": 1, "NoExecute": 2}


@dataclass(frozen=True, slots=True)
class Consequences:
    """What a node's state comes to.

    Attributes:
        taints: of every tainted GPU, by index.
        unavailable: GPUs that the device plugin's allocatable is without.
        labels: node labels that reacting components set.
        cordon: whether one of them makes the node unschedulable.
    """

    taints: dict[int, tuple[DeviceTaint, ...]]
    unavailable: frozenset[int]
    conditions: tuple[Condition, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    cordon: bool = False


_NOTHING = Consequences({}, frozenset())


def consequences(hardware: NodeHardware) -> Consequences:
    """Everything that follows from a node's faults and occupancy. Do not change the result: it may be shared."""
    if not hardware.gpus and not hardware.faults:
        return _NOTHING
    return _consequences(hardware)


@lru_cache(maxsize=64)
def _consequences(hardware: NodeHardware) -> Consequences:
    # Loaded where there is something to react to: most commands look at a fleet to which nothing has happened.
    from kubectl_ghost.domain.breaking import struck
    from kubectl_ghost.domain.faults import Effect
    from kubectl_ghost.domain.reactions import DeviceTaint

    taints: dict[int, dict[str, DeviceTaint]] = {}
    unavailable: set[int] = set()
    found = list(node_reactions(hardware))
    for index, _, answer in found:
        for gpu in struck(hardware, index, answer):
            if answer.taint:
                _stronger(taints.setdefault(gpu, {}), answer.taint)
            if answer.unhealthy:
                unavailable.add(gpu)
    for index, state in hardware.gpus:
        if is_filled(state) and hardware.settings.advertise is Advertise.BOTH:
            # The pod has the GPU by a claim, of which the device plugin knows nothing: nobody else is to get it.
            unavailable.add(index)
        if is_busy(state):
            unavailable.add(index)
            if not state.occupancy or not state.occupancy.instances:
                occupied = DeviceTaint(OCCUPIED_TAINT, "true", Effect.NO_SCHEDULE)
                _stronger(taints.setdefault(index, {}), occupied)
    return Consequences(
        taints={index: tuple(taints[index].values()) for index in sorted(taints)},
        unavailable=frozenset(unavailable),
        conditions=_merged(condition for _, _, answer in found for condition in answer.conditions),
        labels=tuple(sorted({label for _, _, answer in found for label in answer.labels})),
        cordon=any(answer.cordon for _, _, answer in found),
    )


def remembering_conditions(hardware: NodeHardware) -> NodeHardware:
    """The declaration with the types of its conditions among those that have been set so far."""
    types = {condition.type for condition in consequences(hardware).conditions}
    if types <= set(hardware.conditions):
        return hardware
    return replace(hardware, conditions=tuple(sorted({*types, *hardware.conditions})))


def remembering_cordon(old: NodeHardware, new: NodeHardware, *, unschedulable: bool) -> NodeHardware:
    """The declaration with the word whose the node's cordon is, decided as a fault's cordon begins or ends.

    Args:
        unschedulable: whether the node is cordoned now.
    """
    before, after = consequences(old).cordon, consequences(new).cordon
    if before == after:
        return new
    return replace(new, cordoned=after and not unschedulable)


def node_reactions(hardware: NodeHardware) -> Iterable[tuple[int | None, Fault, Reaction]]:
    """Every fault with the index of its GPU (None: the node's) and what the reacting components make of it."""
    from kubectl_ghost.domain.reactions import reaction

    board = model(hardware.settings.model)
    for index, fault in hardware.all_faults():
        yield index, fault, reaction(fault, board, "" if index is None else gpu_name(index))


def is_busy(state: GpuState) -> bool:
    """Whether a GPU is declared busy without a pod that holds it."""
    return state.occupancy is not None and state.occupancy.kind is OccupancyKind.TAINT


def is_filled(state: GpuState) -> bool:
    """Whether a GPU is declared busy with a pod that holds it."""
    return state.occupancy is not None and state.occupancy.kind is OccupancyKind.PODS


def _stronger(taints: dict[str, DeviceTaint], taint: DeviceTaint) -> None:
    """NVIDIA's driver keeps one taint of a key: of two faults the one of the stronger effect, then the later."""
    present = taints.get(taint.key)
    if present is None or _STRENGTH[present.effect] <= _STRENGTH[taint.effect]:
        taints[taint.key] = taint


def _merged(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """One condition a type: the first one's reason, the messages of all."""
    merged: dict[str, Condition] = {}
    for condition in conditions:
        first = merged.get(condition.type)
        if first is None:
            merged[condition.type] = condition
        elif condition.message not in first.message:
            message = f"{first.message}; {condition.message}"
            merged[condition.type] = replace(first, message=message)
    return tuple(merged[key] for key in sorted(merged))
