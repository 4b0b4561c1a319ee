"""Occupancy: which GPUs become busy before any workload exists, and which become free again.

Every choice here is a function of the fleet as it is: the same wish on the same fleet chooses the same GPUs, and once
it is fulfilled, nothing more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.devices import table_of
from kubectl_ghost.domain.errors import GhostError, InputError
from kubectl_ghost.domain.faults import Effect
from kubectl_ghost.domain.hardware import NodeHardware, Occupancy
from kubectl_ghost.domain.holders import GpuKey, Holder, PodName
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.keys import FILLER_NAMESPACE
from kubectl_ghost.domain.mig import MigInstance
from kubectl_ghost.domain.mig_placement import check_layout
from kubectl_ghost.domain.targets import choose


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as far as occupancy asks.

    Attributes:
        holders: pods that have it or a part of it, without those of our own that keep it busy.
        broken: whether a fault keeps pods away from it.
    """

    node: str
    index: int
    occupancy: Occupancy | None = None
    holders: frozenset[PodName] = frozenset()
    broken: bool = False

    @property
    def usable(self) -> bool:
        """Whether it can be made busy, or is busy by declaration alone."""
        return not self.holders and not self.broken

    @property
    def free(self) -> bool:
        """Whether a pod could have it now."""
        return self.usable and self.occupancy is None


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to happen: GPUs that are to be busy, those that are to be free again, and pods that stand in the way."""

    busy: tuple[Gpu, ...] = ()
    freed: tuple[Gpu, ...] = ()
    in_the_way: frozenset[PodName] = frozenset()


Held = Mapping[str, Collection[PodName]]
"""The devices of one node that pods hold, and those pods."""


def by_node(found: Mapping[GpuKey, Iterable[Holder]]) -> dict[str, dict[str, set[PodName]]]:
    """What pods hold, node by node, without our own fillers: they are the occupancy, and not in its way."""
    held: dict[str, dict[str, set[PodName]]] = {}
    for (name, device), holders in found.items():
        users = {holder.name for holder in holders if holder.namespace != FILLER_NAMESPACE}
        if users:
            held.setdefault(name, {})[device] = users
    return held


def look_at(hardware: NodeHardware, indices: Iterable[int], held: Held, node_name: str) -> list[Gpu]:
    """The GPUs with these indices of a node, from its declaration and who holds its devices."""
    holders: dict[str, set[PodName]] = {}
    for device, users in held.items():
        holders.setdefault(parent_gpu(device), set()).update(users)
    broken = broken_gpus(hardware)
    return [
        Gpu(
            node_name,
            index,
            hardware.gpu(index).occupancy,
            frozenset(holders.get(gpu_name(index), ())),
            index in broken,
        )
        for index in indices
    ]


def broken_gpus(hardware: NodeHardware) -> frozenset[int]:
    """The GPUs that a fault keeps pods away from, whichever way they come."""
    whole = hardware
    for index, state in hardware.gpus:
        whole = whole.with_gpu(index, replace(state, occupancy=None))
    found = consequences(whole)
    tainted = {
        index for index, taints in found.taints.items() if any(taint.effect is not Effect.NONE for taint in taints)
    }
    return found.unavailable | tainted


def choose_named(gpus: Sequence[Gpu], wanted: Occupancy) -> Choice:
    """Exactly these GPUs; what is busy in the same way already asks nobody to go."""
    new = [gpu for gpu in gpus if not gpu.occupancy or replace(gpu.occupancy, priority=wanted.priority) != wanted]
    return Choice(tuple(gpus), in_the_way=_holders(new))


def choose_at_random(gpus: Sequence[Gpu], number: int, seed: int) -> Choice:
    """So many of those that neither a pod nor a fault has; those that are busy by declaration count as chosen too.

    They have to: else the same command would make other GPUs busy each time.

    Raises:
        InputError: if there are fewer.
    """
    usable = {(gpu.node, gpu.index): gpu for gpu in gpus if gpu.usable}
    return Choice(tuple(usable[pair] for pair in choose(list(usable), number, seed)))


def choose_free(nodes: Sequence[tuple[str, Sequence[Gpu]]], numbers: Sequence[int]) -> Choice:
    """So many GPUs of each node stay free, and the others become busy, those of the lowest indices first.

    What is busy already stays busy as long as there are enough others to be free.

    Args:
        nodes: name and GPUs of each node, in the pool's order.
        numbers: how many stay free, one for each node.

    Raises:
        InputError: if there are not as many numbers as nodes, or more are to be free than there are.
    """
    if len(nodes) != len(numbers):
        raise InputError(
            f"--free has {len(numbers)} number(s) for {len(nodes)} node(s)",
            "Give one number for each node, as 2,2,2,1.",
        )
    choices = []
    for (name, gpus), number in zip(nodes, numbers, strict=True):
        sound = sum(not gpu.broken for gpu in gpus)
        if number > len(gpus):
            raise InputError(f'{number} GPUs of node "{name}" cannot be free: it has {len(gpus)}')
        if number > sound:
            raise GhostError(
                f'{number} GPUs of node "{name}" cannot be free: faults leave {sound} of {len(gpus)}',
                f"See: kubectl ghost fault list; clear them with: kubectl ghost fault clear {name}",
            )
        choices.append(_leaving(gpus, number, lambda gpu: (gpu.occupancy is None, gpu.index)))
    return _together(choices)


def choose_share(gpus: Sequence[Gpu], percent: int, seed: int) -> Choice:
    """So many percent of all these GPUs are busy, held ones included; the others are drawn by the seed.

    Raises:
        GhostError: if faults leave too few.
    """
    goal = (percent * len(gpus) + 50) // 100
    sound = sum(not gpu.broken for gpu in gpus)
    if goal > sound:
        raise GhostError(
            f"{goal} of {len(gpus)} GPUs cannot be busy: faults leave {sound}", "See: kubectl ghost fault list"
        )
    pairs = [(gpu.node, gpu.index) for gpu in gpus]
    drawn = random.Random(seed).sample(pairs, len(pairs))
    rank = {pair: position for position, pair in enumerate(drawn)}
    return _leaving(gpus, sound - goal, lambda gpu: (rank[(gpu.node, gpu.index)], 0))


def _leaving(gpus: Sequence[Gpu], number: int, order: Callable[[Gpu], tuple[int, int]]) -> Choice:
    """All but so many become busy, in this order. If pods hold too many of them, the last of those are to go."""
    ranked = sorted((gpu for gpu in gpus if not gpu.broken), key=order)
    going: frozenset[PodName] = frozenset()
    usable = [gpu for gpu in ranked if gpu.usable]
    for gpu in reversed([gpu for gpu in ranked if gpu.holders]):
        if len(usable) >= number:
            break
        going |= gpu.holders
        usable = [gpu for gpu in ranked if gpu.holders <= going]
    busy = usable[: len(usable) - number]
    freed = [gpu for gpu in usable[len(usable) - number :] if gpu.occupancy is not None]
    return Choice(tuple(busy), tuple(freed), going)


def _together(choices: Iterable[Choice]) -> Choice:
    busy: list[Gpu] = []
    freed: list[Gpu] = []
    going: set[PodName] = set()
    for choice in choices:
        busy += choice.busy
        freed += choice.freed
        going |= choice.in_the_way
    return Choice(tuple(busy), tuple(freed), frozenset(going))


def _holders(gpus: Iterable[Gpu]) -> frozenset[PodName]:
    return frozenset(holder for gpu in gpus for holder in gpu.holders)


def occupied(hardware: NodeHardware, busy: Mapping[int, Occupancy], freed: Collection[int] = ()) -> NodeHardware:
    """The node with these GPUs busy and those free again. Parts that are busy already stay so beside new ones.

    Raises:
        InputError: if parts of a GPU have been declared busy meanwhile that these have no room beside.
    """
    for index in freed:
        hardware = hardware.with_gpu(index, replace(hardware.gpu(index), occupancy=None))
    for index, wanted in busy.items():
        if index < hardware.settings.gpus:
            hardware = hardware.with_gpu(
                index, replace(hardware.gpu(index), occupancy=_beside(hardware, index, wanted))
            )
    return hardware


def without_parts(hardware: NodeHardware, index: int, instances: Collection[MigInstance]) -> NodeHardware:
    """The node with these parts of a GPU not busy any more, and its other parts as they are."""
    state = hardware.gpu(index)
    if state.occupancy is None or not state.occupancy.instances:
        return hardware
    left = tuple(instance for instance in state.occupancy.instances if instance not in instances)
    return hardware.with_gpu(
        index, replace(state, occupancy=replace(state.occupancy, instances=left) if left else None)
    )


def _beside(hardware: NodeHardware, index: int, wanted: Occupancy) -> Occupancy:
    if not wanted.instances:
        return wanted
    present = hardware.gpu(index).occupancy
    instances = {*wanted.instances, *(present.instances if present else ())}
    together = tuple(sorted(instances, key=lambda instance: (instance.start, instance.profile)))
    check_layout(table_of(hardware.settings.model), together, f"{hardware.node_name}/{gpu_name(index)}")
    return replace(wanted, instances=together)
