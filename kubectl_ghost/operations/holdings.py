"""Reading who holds which GPU of our nodes, and which holders a change of hardware would cut off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import RESOURCE_CLAIMS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings
from kubectl_ghost.domain.holders import GpuKey, Holder, holders
from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.pods import pods_on


def read_claims(reader: Reader) -> list[Json]:
    """Every ResourceClaim; none where the server does not know the type."""
    return reader.list(RESOURCE_CLAIMS).items if reader.served(RESOURCE_CLAIMS) else []


def find_holders(
    hardware: Mapping[str, NodeHardware], claims: Iterable[Json], pods: list[Json]
) -> dict[GpuKey, list[Holder]]:
    """Every held GPU of these nodes with its holders.

    Args:
        hardware: the nodes' declarations by node name.
        claims: the cluster's ResourceClaims.
        pods: the pods on those nodes, at least.
    """
    offered = {
        name: declared.settings.gpus if declared.settings.advertise.capacity else 0
        for name, declared in hardware.items()
    }
    return holders(offered, claims, pods)


def cut_off(reader: Reader, nodes: Mapping[str, Json], settings: PoolSettings) -> list[Json]:
    """The pods that hold GPUs which these nodes would not have with such settings, or have not even now.

    That is a GPU of another model, one beyond the number, or one that is not offered the way the pod got it.
    """
    hardware = {name: hardware_of(node) for name, node in nodes.items()}
    pods = pods_on(reader, nodes)
    remaining = {gpu_name(index) for index in range(settings.gpus)}
    lost = set()
    for (node_name, gpu), found in find_holders(hardware, read_claims(reader), pods).items():
        swapped = hardware[node_name].settings.model != settings.model
        for holder in found:
            path = settings.advertise.slices if holder.claim else settings.advertise.capacity
            if swapped or gpu not in remaining or not path:
                lost.add((holder.namespace, holder.pod))
    return [pod for pod in pods if (pod["metadata"]["namespace"], pod["metadata"]["name"]) in lost]


def refuse_cut_off(reader: Reader, nodes: Mapping[str, Json], settings: PoolSettings) -> None:
    """Refuse a change of hardware that takes GPUs from pods; looks at pods only if it takes any GPU away at all.

    Raises:
        GhostError: naming the pods and the way to have them evicted.
    """
    if all(_keeps_everything(hardware_of(node).settings, settings) for node in nodes.values()):
        return
    lost = cut_off(reader, nodes, settings)
    if lost:
        names = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in lost]
        some = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
        raise GhostError(
            f'pool "{settings.name}": {len(names)} pod(s) hold GPUs that would be gone: {some}',
            "Delete those pods first, or have them evicted by add-pool with the same settings and --force.",
        )


def _keeps_everything(old: PoolSettings, new: PoolSettings) -> bool:
    return (
        old.model == new.model
        and old.gpus <= new.gpus
        and (new.advertise.slices or not old.advertise.slices)
        and (new.advertise.capacity or not old.advertise.capacity)
    )
