"""A part of a GPU that is busy, where MIG is dynamic: which instances, and whom they leave no room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.devices import gpu_devices, table_of
from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import MigMode, NodeHardware
from kubectl_ghost.domain.holders import PodName
from kubectl_ghost.domain.identity import gpu_name, parent_gpu
from kubectl_ghost.domain.mig import MigInstance, MigTable
from kubectl_ghost.domain.mig_layouts import parse_profiles
from kubectl_ghost.domain.mig_placement import check_layout, place
from kubectl_ghost.domain.occupancy import Held


@dataclass(frozen=True, slots=True)
class Parts:
    """Instances of one GPU that are to be busy as well, and the pods that have no room beside them."""

    instances: tuple[MigInstance, ...] = ()
    in_the_way: frozenset[PodName] = frozenset()


def choose_parts(hardware: NodeHardware, index: int, profiles: str, held: Held) -> Parts:
    """Places for instances of these profiles on one GPU, beside those that are busy and those that pods hold.

    Profiles that are busy there already count: the same wish a second time is fulfilled.

    Args:
        profiles: as the user writes them, `3g.40gb,1g.10gb*2`.
        held: the devices of this node that pods hold.

    Raises:
        InputError: if the pool's MIG is not dynamic, a profile is unknown, or there is no room beside what is busy.
    """
    settings, gpu = hardware.settings, f"{hardware.node_name}/{gpu_name(index)}"
    if settings.mig is not MigMode.DYNAMIC:
        raise InputError(
            f"{gpu}: a part of a GPU can be busy in pools of --mig dynamic only",
            f"Split it with: kubectl ghost mig-split {gpu} --profiles {profiles}, and occupy the GPUs that are to be "
            "busy; or use another pool.",
        )
    occupancy = hardware.gpu(index).occupancy
    if occupancy is not None and not occupancy.instances:
        raise InputError(f"{gpu} is busy as a whole", f"First: kubectl ghost release {gpu}")
    table, busy = table_of(settings.model), occupancy.instances if occupancy else ()
    fixed, names = _missing(parse_profiles(profiles, table), busy)
    if not fixed and not names:
        return Parts()
    users = _users(hardware, index, held)
    taken = [instance for instance, _ in users if instance is not None]
    if len(taken) == len(users):
        with contextlib.suppress(InputError):
            return Parts((*fixed, *place(table, names, (*busy, *fixed, *taken), gpu)))
    placed = (*fixed, *place(table, names, (*busy, *fixed), gpu))
    return Parts(placed, _without_room(table, (*busy, *placed), users))


def _missing(
    wanted: Iterable[tuple[str, int | None]], busy: Iterable[MigInstance]
) -> tuple[list[MigInstance], list[str]]:
    """What of a wish is not busy yet: instances at a given place, and profiles for which any place will do."""
    left, fixed, names = list(busy), [], []
    # Those with a place first: one without can do with any instance that is left.
    for name, start in sorted(wanted, key=lambda item: item[1] is None):
        match = next((other for other in left if other.profile == name and start in (None, other.start)), None)
        if match is not None:
            left.remove(match)
        elif start is None:
            names.append(name)
        else:
            fixed.append(MigInstance(name, start))
    return fixed, names


_User = tuple[MigInstance | None, frozenset[PodName]]
"""A device of a GPU that pods hold, None for the whole of it, and those pods."""


def _users(hardware: NodeHardware, index: int, held: Held) -> list[_User]:
    instances = {device.name: device.instance for device in gpu_devices(hardware, index)}
    return [
        (instances.get(device), frozenset(pods))
        for device, pods in sorted(held.items())
        if parent_gpu(device) == gpu_name(index)
    ]


def _without_room(table: MigTable, busy: Sequence[MigInstance], users: Iterable[_User]) -> frozenset[PodName]:
    """The holders of what cannot exist beside the busy parts; of two that exclude each other nobody asks here."""
    kept, going = list(busy), set[PodName]()
    for instance, pods in users:
        if instance is not None and _fits(table, [*kept, instance]):
            kept.append(instance)
        else:
            going.update(pods)
    return frozenset(going)


def _fits(table: MigTable, instances: Sequence[MigInstance]) -> bool:
    try:
        check_layout(table, instances)
    except InputError:
        return False
    return True


def without_room(hardware: NodeHardware, index: int, held: Held) -> frozenset[PodName]:
    """The pods that hold something of a GPU which its declared occupancy leaves no room for."""
    occupancy = hardware.gpu(index).occupancy
    if occupancy is None:
        return frozenset()
    users = _users(hardware, index, held)
    if not occupancy.instances:
        return frozenset(pod for _, pods in users for pod in pods)
    return _without_room(table_of(hardware.settings.model), occupancy.instances, users)
