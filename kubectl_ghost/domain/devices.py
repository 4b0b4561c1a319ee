"""The devices of a node, as each of the two ways to a GPU knows them.

The DRA driver publishes whole GPUs and MIG devices by name. The device plugin counts them under resource names. A GPU
that is split is not whole any more; which of its parts counts under which name is NVIDIA's MIG strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.hardware import MigMode, MigStrategy, NodeHardware
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import GPU_RESOURCE, SHARED_GPU_RESOURCE

if TYPE_CHECKING:
    from kubectl_ghost.domain.mig import MigInstance, MigTable

REPLICA = "::"
"""Between a device and the number of a share of it, as in the device plugin's own ids."""


@dataclass(frozen=True, slots=True)
class Device:
    """A whole GPU, or with `instance` a MIG device of it."""

    name: str
    gpu: int
    instance: MigInstance | None = None


def table_of(model_key: str) -> MigTable:
    """The MIG table of a model that has MIG; only asked for where there are instances."""
    # Loaded where there are instances: most fleets have none.
    from kubectl_ghost.domain.mig import mig_table

    table = mig_table(model_key)
    if table is None:
        raise ValueError(f"GPU model {model_key} has no MIG")
    return table


def is_split(hardware: NodeHardware, index: int) -> bool:
    """Whether a GPU is in MIG mode by the administrator's hand."""
    return hardware.gpu(index).mig is not None


def dra_devices(hardware: NodeHardware) -> Iterator[Device]:
    """What the DRA driver publishes, GPU by GPU; nothing where the GPUs are not offered through DRA."""
    if not hardware.settings.advertise.slices:
        return
    for index in range(hardware.settings.gpus):
        yield from gpu_devices(hardware, index)


def gpu_devices(hardware: NodeHardware, index: int) -> Iterator[Device]:
    """The devices that one GPU is published as: itself, its instances, or where MIG is dynamic both.

    An Ampere GPU has to be reset to enter MIG mode, so there the driver publishes no whole GPU beside its parts.
    """
    settings = hardware.settings
    if settings.mig is MigMode.DYNAMIC:
        if whole_beside_parts(settings.model):
            yield Device(gpu_name(index), index)
        yield from _all_instances(settings.model, index)
        return
    instances = hardware.gpu(index).mig
    if instances is None:
        yield Device(gpu_name(index), index)
        return
    yield from (_mig_device(settings.model, index, instance) for instance in instances)


def whole_beside_parts(model_key: str) -> bool:
    """Whether a GPU of dynamic MIG can also be claimed whole (dra-driver-nvidia-gpu: from Hopper on)."""
    return model(model_key).architecture != "Ampere"


@lru_cache(maxsize=256)
def _all_instances(model_key: str, index: int) -> tuple[Device, ...]:
    from kubectl_ghost.domain.mig import MigInstance

    return tuple(
        _mig_device(model_key, index, MigInstance(profile.name, start))
        for profile in table_of(model_key).profiles
        for start in profile.starts
    )


def _mig_device(model_key: str, index: int, instance: MigInstance) -> Device:
    from kubectl_ghost.domain.mig import device_name

    profile = table_of(model_key).profile(instance.profile)
    return Device(device_name(index, profile, instance.start), index, instance)


@dataclass(frozen=True, slots=True)
class Offer:
    """The devices that count under one resource name; with sharing each several times, as `gpu-0::1`.

    `available` are those that the device plugin reports healthy and that are not declared busy.
    """

    devices: tuple[str, ...]
    available: tuple[str, ...]


def offers(hardware: NodeHardware) -> dict[str, Offer]:
    """What the device plugin offers, by resource name; nothing where capacity is not published.

    `nvidia.com/gpu` is there even when no GPU is whole: the kubelet keeps a resource that was registered once, at 0.
    """
    settings = hardware.settings
    if not settings.advertise.capacity:
        return {}
    found: dict[str, list[Device]] = {GPU_RESOURCE: []}
    for index in range(settings.gpus):
        for resource, device in _offered(hardware, index):
            found.setdefault(resource, []).append(device)
    if settings.mig_strategy is MigStrategy.SINGLE and single_profile(hardware) is None:
        found = {GPU_RESOURCE: []}
    unavailable = consequences(hardware).unavailable
    result = {}
    for resource, devices in found.items():
        names = [device.name for device in devices]
        healthy = [device.name for device in devices if device.gpu not in unavailable]
        shared = settings.sharing if resource == GPU_RESOURCE else None
        if shared is None:
            result[resource] = Offer(tuple(names), tuple(healthy))
        else:
            name = SHARED_GPU_RESOURCE if shared.renamed else resource
            result[name] = Offer(_replicated(names, shared.replicas), _replicated(healthy, shared.replicas))
    return result


def _offered(hardware: NodeHardware, index: int) -> Iterator[tuple[str, Device]]:
    settings, instances = hardware.settings, hardware.gpu(index).mig
    if instances is None or settings.mig_strategy is MigStrategy.NONE:
        yield GPU_RESOURCE, Device(gpu_name(index), index)
        return
    for instance in instances:
        device = _mig_device(settings.model, index, instance)
        if settings.mig_strategy is MigStrategy.SINGLE:
            yield GPU_RESOURCE, device
        else:
            yield table_of(settings.model).profile(instance.profile).resource, device


def _replicated(names: list[str], replicas: int) -> tuple[str, ...]:
    """Every device's shares, dealt out in turn: the first shares of all devices come before any second one."""
    return tuple(f"{name}{REPLICA}{number}" for number in range(replicas) for name in names)


def single_profile(hardware: NodeHardware) -> str | None:
    """The one profile that every GPU is split into: what the strategy `single` needs.

    Returns:
        "" if no GPU is split at all, None if the layout is one that the strategy calls invalid.
    """
    settings = hardware.settings
    states = [hardware.gpu(index).mig for index in range(settings.gpus)]
    if all(state is None for state in states):
        return ""
    profiles = {instance.profile for state in states for instance in state or ()}
    return profiles.pop() if all(states) and len(profiles) == 1 else None


def device_of(share: str) -> str:
    """The device that a share is of: `gpu-0::1` is a share of gpu-0."""
    return share.partition(REPLICA)[0]
