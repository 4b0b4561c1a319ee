"""Reading who holds which GPU of our nodes, and which holders a change of hardware would cut off."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS, RESOURCE_CLAIMS
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings
from kubectl_ghost.domain.holders import GpuKey, Holder, holders
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.pods import pods_on


def read_holders(
    reader: Reader, hardware: Mapping[str, NodeHardware], pods: list[Json] | None = None
) -> dict[GpuKey, list[Holder]]:
    """Every held GPU of these nodes with its holders.

    Args:
        hardware: the nodes' declarations by node name.
        pods: the pods of those nodes, if they have been read already.
    """
    if pods is None:
        pods = reader.list(PODS, field_selector="spec.nodeName!=").items
    claims = reader.list(RESOURCE_CLAIMS).items if reader.served(RESOURCE_CLAIMS) else []
    offered = {
        name: declared.settings.gpus if declared.settings.advertise.capacity else 0
        for name, declared in hardware.items()
    }
    return holders(offered, claims, pods)


def cut_off(
    reader: Reader, nodes: Mapping[str, Json], hardware: Mapping[str, NodeHardware], settings: PoolSettings
) -> dict[str, Json]:
    """The pods, by `namespace/name`, that hold GPUs which these nodes would no longer have with new settings.

    That is a GPU of another model, one beyond the new number, or one no longer offered the way the pod got it.
    """
    if all(_keeps_everything(declared.settings, settings) for declared in hardware.values()):
        return {}
    pods = pods_on(reader, nodes)
    remaining = {gpu_name(index) for index in range(settings.gpus)}
    lost = set()
    for (node_name, gpu), found in read_holders(reader, hardware, pods).items():
        swapped = hardware[node_name].settings.model != settings.model
        for holder in found:
            path = settings.advertise.slices if holder.claim else settings.advertise.capacity
            if swapped or gpu not in remaining or not path:
                lost.add(str(holder))
    named = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in pods}
    return {name: named[name] for name in sorted(lost)}


def _keeps_everything(old: PoolSettings, new: PoolSettings) -> bool:
    return (
        old.model == new.model
        and old.gpus <= new.gpus
        and (new.advertise.slices or not old.advertise.slices)
        and (new.advertise.capacity or not old.advertise.capacity)
    )
