"""ResourceSlices as NVIDIA's DRA driver publishes them: names, attributes, capacities and counters are its own.

Source: kubernetes-sigs/dra-driver-nvidia-gpu 9593204, and slices that its code wrote for an H100 node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.devices import dra_devices, gpu_devices
from kubectl_ghost.domain.faults import Effect
from kubectl_ghost.domain.hardware import MigMode, NodeHardware
from kubectl_ghost.domain.identity import name_suffix
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.slice_rules import CURRENT, SliceRules
from kubectl_ghost.manifests.counters import counter_set
from kubectl_ghost.manifests.devices import device
from kubectl_ghost.manifests.node import membership_labels

API_VERSION = "resource.k8s.io/v1"
MOST_DEVICES = 128
MOST_SPECIAL_DEVICES = 64
"""Devices of a slice in which any has taints or counters (k8s.io/api resource/v1, from Kubernetes 1.35)."""
MOST_COUNTER_SETS = 8


def resource_slices(hardware: NodeHardware, owner: Json, rules: SliceRules = CURRENT) -> list[Json]:
    """The slices of one node, none where its GPUs are not offered through DRA.

    Args:
        hardware: the node's declaration.
        owner: the Node as the API server returned it; its uid goes into the owner reference, empty in a client dry run.
        rules: what the server's version asks of slices.
    """
    if not hardware.settings.advertise.slices:
        return []
    contents = _dynamic(hardware, rules) if hardware.settings.mig is MigMode.DYNAMIC else _static(hardware, rules)
    return [_slice(hardware, owner, index, content, len(contents)) for index, content in enumerate(contents)]


def _slice(hardware: NodeHardware, owner: Json, index: int, content: Json, count: int) -> Json:
    name = hardware.node_name
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {
            "name": slice_name(name, index),
            "labels": membership_labels(hardware),
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
            **content,
            "driver": keys.GPU_DRIVER,
            "nodeName": name,
            "pool": {"generation": 1, "name": name, "resourceSliceCount": count},
        },
    }


def slice_name(node_name: str, index: int) -> str:
    """`00000-gpu.nvidia.com-<node>-xxxxx`: the ending is a hash of the node's name where the driver's is random."""
    return f"{index:05d}-{keys.GPU_DRIVER}-{node_name}-{name_suffix(node_name)}"


def _static(hardware: NodeHardware, rules: SliceRules) -> list[Json]:
    """Whole GPUs and instances that exist, in as few slices as the limits allow; one at least."""
    taints = _taints(hardware, rules)
    devices = [_tainted(device(hardware, found), taints.get(found.gpu)) for found in dra_devices(hardware)]
    most = MOST_SPECIAL_DEVICES if any("taints" in found for found in devices) else MOST_DEVICES
    return [{"devices": list(part)} for part in _parts(devices, most)] or [{"devices": []}]


def _dynamic(hardware: NodeHardware, rules: SliceRules) -> list[Json]:
    """Counters of all GPUs apart and first, then a slice for each GPU; Kubernetes 1.34 wants them together."""
    gpus = range(hardware.settings.gpus)
    taints = _taints(hardware, rules)
    sets = [counter_set(hardware, index) for index in gpus]
    devices = [
        [_tainted(device(hardware, found), taints.get(index)) for found in gpu_devices(hardware, index)]
        for index in gpus
    ]
    if rules.counters_beside_devices:
        return [{"sharedCounters": [counters], "devices": found} for counters, found in zip(sets, devices, strict=True)]
    parts = _parts(sets, MOST_COUNTER_SETS)
    return [*({"sharedCounters": list(part)} for part in parts), *({"devices": found} for found in devices)]


def _taints(hardware: NodeHardware, rules: SliceRules) -> dict[int, list[Json]]:
    """The taints of each tainted GPU, those left out that the server does not know."""
    return {
        gpu: [
            {"key": taint.key, "effect": taint.effect.value, **({"value": taint.value} if taint.value else {})}
            for taint in taints
            if rules.effect_none or taint.effect is not Effect.NONE
        ]
        for gpu, taints in consequences(hardware).taints.items()
    }


def _tainted(wanted: Json, taints: list[Json] | None) -> Json:
    return {**wanted, "taints": taints} if taints else wanted


def _parts(items: Sequence[Json], most: int) -> Iterator[Sequence[Json]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
