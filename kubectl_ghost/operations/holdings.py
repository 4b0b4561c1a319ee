"""Reading who holds which GPU of our nodes, and which holders a change of hardware would cut off."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import RESOURCE_CLAIMS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.domain.devices import device_of, dra_devices, offers
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import is_filler
from kubectl_ghost.domain.hardware import MigMode, NodeHardware, PoolSettings
from kubectl_ghost.domain.holders import GpuKey, Holder, holders, pod_name
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.resettling import with_settings
from kubectl_ghost.operations.fleet import hardware_of
from kubectl_ghost.operations.pods import pods_on

_FEW_PODS = 50
"""Up to so many, their claims are asked for one by one; beyond it one list of all is less."""


def read_claims(reader: Reader) -> list[Json]:
    """Every ResourceClaim; none where the server does not know the type."""
    return reader.list(RESOURCE_CLAIMS).items if reader.served(RESOURCE_CLAIMS) else []


def claims_of(reader: Reader, pods: Iterable[Json]) -> list[Json]:
    """The ResourceClaims that these pods use, asked for one by one: for a few pods in a large cluster."""
    if not reader.served(RESOURCE_CLAIMS):
        return []
    names = sorted({(pod["metadata"]["namespace"], name) for pod in pods for name in _claim_names(pod)})
    found = run_ordered(lambda key: reader.find(RESOURCE_CLAIMS, key[1], key[0]), names)
    return [claim for claim in found if claim is not None]


def claims_for(reader: Reader, pods: list[Json]) -> list[Json]:
    """The ResourceClaims that these pods use, at least: one by one where they are few, else all there are."""
    return claims_of(reader, pods) if len(pods) <= _FEW_PODS else read_claims(reader)


def _claim_names(pod: Json) -> Iterator[str]:
    status = pod.get("status", {})
    for entry in [*(pod["spec"].get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]:
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    extended = status.get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName"):
        yield extended["resourceClaimName"]


def find_holders(
    hardware: Mapping[str, NodeHardware], claims: Iterable[Json], pods: list[Json]
) -> dict[GpuKey, list[Holder]]:
    """Every held device of these nodes with its holders.

    Args:
        hardware: the nodes' declarations by node name.
        claims: the cluster's ResourceClaims, those of these pods at least.
        pods: the pods on those nodes, at least.
    """
    used = {pod.get("spec", {}).get("nodeName") for pod in pods}
    # What a node offers matters for the pods that are on it: most nodes of a large fleet have none.
    offered = {name: offers(declared) if name in used else {} for name, declared in hardware.items()}
    return holders(offered, claims, pods)


def lost_holders(
    old: Mapping[str, NodeHardware],
    new: Mapping[str, NodeHardware],
    held: Mapping[GpuKey, Iterable[Holder]],
) -> set[Holder]:
    """The holders of devices that these nodes would not have any more, or not the same, or not offered that way."""
    lost: set[Holder] = set()
    devices = {name: _devices(hardware) for name, hardware in new.items()}
    for (node_name, device), found in held.items():
        if node_name not in new:
            continue
        by_claim, by_count = devices[node_name]
        swapped = _board(old[node_name]) != _board(new[node_name])
        for holder in found:
            if swapped or device not in (by_claim if holder.claim else by_count):
                lost.add(holder)
    return lost


def _devices(hardware: NodeHardware) -> tuple[set[str], set[str]]:
    """The names of a node's devices, as claims and as the device plugin know them."""
    counted = {device_of(share) for offer in offers(hardware).values() for share in offer.devices}
    return {device.name for device in dra_devices(hardware)}, counted


def _board(hardware: NodeHardware) -> tuple[str, MigMode]:
    return hardware.settings.model, hardware.settings.mig


def cut_off(reader: Reader, nodes: Mapping[str, Json], settings: PoolSettings) -> list[Json]:
    """The pods that hold GPUs which these nodes would not have with such settings, or have not even now.

    That is a GPU of another model, one beyond the number, or one that is not offered the way the pod got it.
    """
    old = {name: hardware_of(node) for name, node in nodes.items()}
    new = {name: with_settings(hardware, settings) for name, hardware in old.items()}
    pods = pods_on(reader, nodes)
    lost = lost_holders(old, new, find_holders(old, read_claims(reader), pods))
    names = {holder.name for holder in lost}
    # Fillers are part of the hardware: they follow it by themselves.
    cut = [pod for pod in pods if pod_name(pod) in names]
    return [pod for pod in cut if not is_filler(pod)]


def refuse_cut_off(reader: Reader, nodes: Mapping[str, Json], settings: PoolSettings) -> None:
    """Refuse a change of hardware that takes GPUs from pods; looks at pods only if it takes any GPU away at all.

    Raises:
        GhostError: naming the pods and the way to have them evicted.
    """
    if all(_keeps_everything(hardware_of(node), settings) for node in nodes.values()):
        return
    lost = cut_off(reader, nodes, settings)
    if lost:
        raise held_error(
            f'pool "{settings.name}"',
            lost,
            "Delete those pods first, or have them evicted by add-pool with the same settings and --force.",
        )


def held_error(what: str, pods: list[Json], hint: str, fate: str = "would be gone") -> GhostError:
    """The refusal to take GPUs from pods, naming some of them.

    Args:
        fate: what is to become of the GPUs.
    """
    names = ["/".join(pod_name(pod)) for pod in pods]
    some = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    return GhostError(f"{what}: {len(names)} pod(s) hold GPUs that {fate}: {some}", hint)


def node_words(names: Collection[str]) -> str:
    """A node by its name, more of them by their number."""
    return f'node "{next(iter(names))}"' if len(names) == 1 else f"{len(names)} nodes"


def _keeps_everything(hardware: NodeHardware, new: PoolSettings) -> bool:
    old = hardware.settings
    return (
        old.model == new.model
        and old.gpus <= new.gpus
        and old.mig is new.mig
        and (not hardware.gpus or old.mig_strategy is new.mig_strategy)
        and old.sharing == new.sharing
        and (new.advertise.slices or not old.advertise.slices)
        and (new.advertise.capacity or not old.advertise.capacity)
    )
