"""A MIG instance as DCGM lists it: its number, its memory, and how much of the GPU it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.consequences import is_busy
from kubectl_ghost.domain.devices import Device, gpu_devices, table_of, whole_beside_parts
from kubectl_ghost.domain.hardware import MigMode, NodeHardware
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.mig import MigInstance


@dataclass(frozen=True, slots=True)
class InstanceFigures:
    """`share` is the part of the GPU's compute slices that the instance has, `memory_share` that of its memory."""

    number: int
    memory_mib: int
    share: float
    memory_share: float


@cache
def instance_figures(model_key: str, instance: MigInstance) -> InstanceFigures:
    """The figures of an instance.

    The number (GPU_I_ID) counts the places of its size from the front, after all larger sizes, as the driver does on
    GPU 0 of the listing in NVIDIA/DCGM issue 138; on other GPUs of that listing it begins elsewhere. Where the
    profile's memory has no source it is the GPU's, by memory slices.
    """
    table = table_of(model_key)
    profile = table.profile(instance.profile)
    memory_share = profile.size / table.memory_slices
    return InstanceFigures(
        number=table.memory_slices // profile.size - 1 + instance.start // profile.size,
        memory_mib=profile.memory_mib or int(model(model_key).memory_mib * memory_share),
        share=profile.compute_slices / table.compute_slices,
        memory_share=memory_share,
    )


def listed_devices(hardware: NodeHardware, index: int, used: Collection[str]) -> tuple[bool, tuple[Device, ...]]:
    """What DCGM lists of a GPU: whether it is in MIG mode, and the GPU itself or in its place its instances.

    A GPU in MIG mode without instances is listed itself. Where MIG is dynamic the instances are those that somebody
    uses, or that are declared busy; the driver makes them when they are claimed. A GPU that is not published whole
    beside its parts stays in MIG mode without any.

    Args:
        used: the names of the node's devices that are used.
    """
    whole = Device(gpu_name(index), index)
    state = hardware.gpu(index)
    if hardware.settings.mig is MigMode.DYNAMIC:
        busy = state.occupancy.instances if state.occupancy and is_busy(state) else ()
        candidates = gpu_devices(hardware, index) if used or busy else ()
        found = tuple(
            device for device in candidates if device.instance and (device.name in used or device.instance in busy)
        )
        return bool(found) or not whole_beside_parts(hardware.settings.model), found or (whole,)
    if state.mig is None:
        return False, (whole,)
    return True, tuple(gpu_devices(hardware, index)) or (whole,)
