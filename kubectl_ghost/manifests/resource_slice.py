"""ResourceSlices as NVIDIA's DRA driver publishes them: names, attributes and capacities are its own.

Source: kubernetes-sigs/dra-driver-nvidia-gpu 9593204, and slices that its code wrote for an H100 node.
"""

from __future__ import annotations

from functools import cache

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.catalogue import driver, model
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.identity import gpu_name, gpu_uuid, name_suffix, pci_addresses
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.quantity import mebibytes

API_VERSION = "resource.k8s.io/v1"


def resource_slices(hardware: NodeHardware, owner: Json) -> list[Json]:
    """The slices of one node, none where its GPUs are not offered through DRA.

    Args:
        hardware: the node's declaration.
        owner: the Node as the API server returned it; its uid goes into the owner reference, empty in a client dry run.

    One slice holds every GPU of a node: at most 128 devices, none of which has taints or counters.
    """
    if not hardware.settings.advertise.slices:
        return []
    name = hardware.node_name
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {
                "name": slice_name(name, 0),
                "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY, keys.POOL_LABEL: hardware.settings.name},
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "controller": True,
                        "kind": "Node",
                        "name": name,
                        "uid": owner["metadata"].get("uid", ""),
                    }
                ],
            },
            "spec": {
                "devices": devices(hardware),
                "driver": keys.GPU_DRIVER,
                "nodeName": name,
                "pool": {"generation": 1, "name": name, "resourceSliceCount": 1},
            },
        }
    ]


def slice_name(node_name: str, index: int) -> str:
    """`00000-gpu.nvidia.com-<node>-xxxxx`: the ending is a hash of the node's name where the driver's is random."""
    return f"{index:05d}-{keys.GPU_DRIVER}-{node_name}-{name_suffix(node_name)}"


def devices(hardware: NodeHardware) -> list[Json]:
    """Every whole GPU of the node as a device."""
    settings, name = hardware.settings, hardware.node_name
    return [
        {
            "attributes": {**fixed, "uuid": {"string": gpu_uuid(name, index)}},
            "capacity": _memory(settings.model),
            "name": gpu_name(index),
        }
        for index, fixed in enumerate(_fixed_attributes(settings.model, settings.gpus))
    ]


@cache
def _memory(model_key: str) -> Json:
    return {"memory": {"value": mebibytes(model(model_key).memory_mib)}}


@cache
def _fixed_attributes(model_key: str, gpus: int) -> list[Json]:
    """What the GPUs at one place of any such node have in common: all but the UUID. Shared, so never changed."""
    board, stack = model(model_key), driver()
    common: Json = {
        "type": {"string": "gpu"},
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
