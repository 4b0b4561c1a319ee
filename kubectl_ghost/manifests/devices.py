"""One device as NVIDIA's DRA driver describes it: a whole GPU, or a MIG instance of one."""

from __future__ import annotations

from functools import cache

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.catalogue import driver, model
from kubectl_ghost.domain.devices import Device, table_of
from kubectl_ghost.domain.hardware import MigMode, NodeHardware
from kubectl_ghost.domain.identity import gpu_uuid, pci_addresses
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.mig import MigInstance, MigProfile, mig_uuid
from kubectl_ghost.domain.quantity import mebibytes
from kubectl_ghost.manifests.counters import consumed, counter_set_name, everything, instance_capacity, whole_capacity


def device(hardware: NodeHardware, found: Device) -> Json:
    """The device without its taints. Parts of it are shared between nodes: do not change it."""
    settings, name = hardware.settings, hardware.node_name
    dynamic = settings.mig is MigMode.DYNAMIC
    if found.instance is None:
        fixed = _gpu_attributes(settings.model, settings.gpus)[found.gpu]
        made: Json = {
            "attributes": {**fixed, "uuid": {"string": gpu_uuid(name, found.gpu)}},
            "capacity": whole_capacity(settings.model) if dynamic else _memory(settings.model),
            "name": found.name,
        }
        return {**made, "consumesCounters": [everything(settings.model, found.gpu)]} if dynamic else made
    return _mig_device(hardware, found, found.instance, dynamic=dynamic)


def _mig_device(hardware: NodeHardware, found: Device, instance: MigInstance, *, dynamic: bool) -> Json:
    settings, parent = hardware.settings, gpu_uuid(hardware.node_name, found.gpu)
    profile = table_of(settings.model).profile(instance.profile)
    attributes: Json = {
        **_common_attributes(settings.model, settings.gpus)[found.gpu],
        "type": {"string": "mig"},
        "profile": {"string": profile.name},
        "parentUUID": {"string": parent},
    }
    uuid = {"string": mig_uuid(parent, profile.name, instance.start)}
    if dynamic:
        # The driver gives instances that do not exist yet no UUID; ours stands under our own domain, so that a claim
        # can still name one device.
        attributes[f"{keys.DOMAIN}/uuid"] = uuid
        counters = {"counterSet": counter_set_name(found.gpu), "counters": consumed(settings.model, instance)}
        capacity = instance_capacity(settings.model, profile.name)
        return {"attributes": attributes, "capacity": capacity, "consumesCounters": [counters], "name": found.name}
    attributes["uuid"] = uuid
    capacity = {**instance_capacity(settings.model, profile.name), **_memory_slices(profile, instance.start)}
    return {"attributes": attributes, "capacity": capacity, "name": found.name}


def _memory_slices(profile: MigProfile, start: int) -> Json:
    return {f"memorySlice{index}": {"value": "1"} for index in range(start, start + profile.size)}


@cache
def _memory(model_key: str) -> Json:
    return {"memory": {"value": mebibytes(model(model_key).memory_mib)}}


@cache
def _gpu_attributes(model_key: str, gpus: int) -> list[Json]:
    return [{**common, "type": {"string": "gpu"}} for common in _common_attributes(model_key, gpus)]


@cache
def _common_attributes(model_key: str, gpus: int) -> list[Json]:
    """What GPUs at one place of any such node, and their instances, have in common. Shared, so never changed."""
    board, stack = model(model_key), driver()
    common: Json = {
        "productName": {"string": board.nvml_name},
        "brand": {"string": stack.brand},
        "architecture": {"string": board.architecture},
        "cudaComputeCapability": {"version": f"{board.compute_capability}.0"},
        "driverVersion": {"version": semantic_version(stack.version)},
        "cudaDriverVersion": {"version": f"{stack.cuda}.0"},
    }
    if board.addressing_mode is not None:
        common["addressingMode"] = {"string": board.addressing_mode}
    return [
        {
            **common,
            "resource.kubernetes.io/pciBusID": {"string": address.bus_id},
            "resource.kubernetes.io/pcieRoot": {"string": address.root},
        }
        for address in pci_addresses(board, gpus)
    ]


def semantic_version(text: str) -> str:
    """A driver version without leading zeros, as a DRA version attribute must be: 580.105.08 is 580.105.8."""
    return ".".join(str(int(part)) for part in text.split("."))
