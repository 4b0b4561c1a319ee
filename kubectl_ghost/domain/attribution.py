"""Which container uses which device of a node: what dcgm-exporter learns from the kubelet, from the objects alone.

`domain/holders.py` says which pod has a device; this is one step finer, and with what the exporter's labels need of the
claim. A claim names its devices, and containers name requests of the claim. On the device-plugin path the devices that
are recorded on a pod go to its containers in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kubectl_ghost.domain.devices import REPLICA
from kubectl_ghost.domain.holders import Offers, PodName, is_finished, pod_name, requested_devices
from kubectl_ghost.domain.keys import GPU_DRIVER, Json
from kubectl_ghost.domain.quantity import count


@dataclass(frozen=True, slots=True, order=True)
class ClaimedDevice:
    """The claim that a device came through; `pool` and `device` are the names in the ResourceSlice."""

    name: str
    namespace: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A container's hold of a device.

    `container` is empty where a pod has a claim that none of its containers names. `replica` is the number of the
    share that a time-slicing device plugin gave out, `claim` is None on the device-plugin path.
    """

    namespace: str
    pod: str
    container: str
    replica: str = ""
    claim: ClaimedDevice | None = None


Users = dict[str, tuple[tuple[Use, Json], ...]]
"""Used devices by name, each with who uses it and that pod, in a constant order."""


def uses(
    node_name: str,
    offered: Offers,
    given: Mapping[PodName, Iterable[str]],
    claims: Iterable[Json],
    pods: Iterable[Json],
) -> Users:
    """Every used device of a node.

    Args:
        node_name: the node, which is also the name of its pool of devices.
        offered: what it offers as capacity.
        given: what each pod has of that (`domain.holders.assignments`).
        claims: ResourceClaims; those that have nothing of this node are ignored.
        pods: the pods on this node; those that have ended hold nothing.
    """
    alive = {pod["metadata"]["uid"]: pod for pod in pods if not is_finished(pod)}
    found: dict[str, dict[Use, Json]] = defaultdict(dict)
    for claim in claims:
        reserved = claim.get("status", {}).get("reservedFor") or ()
        holders = [alive[consumer["uid"]] for consumer in reserved if consumer.get("uid") in alive]
        for result in _results(claim, node_name) if holders else ():
            for pod in holders:
                for use in _claim_uses(claim, result, pod):
                    found[result["device"]][use] = pod
    for pod in alive.values():
        for share, container in _dealt(pod, given.get(pod_name(pod), ()), offered):
            device, _, replica = share.partition(REPLICA)
            found[device][Use(*pod_name(pod), container, replica)] = pod
    return {device: tuple(sorted(users.items(), key=_order)) for device, users in sorted(found.items())}


def _order(item: tuple[Use, Json]) -> tuple[str, ...]:
    use, _ = item
    return use.namespace, use.pod, use.container, use.replica, use.claim.name if use.claim else ""


def _results(claim: Json, node_name: str) -> Iterator[Json]:
    """What a claim holds of a node. Admin access looks on, and holds nothing."""
    allocation = claim.get("status", {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        if result["driver"] == GPU_DRIVER and result["pool"] == node_name and not result.get("adminAccess"):
            yield result


def _claim_uses(claim: Json, result: Json, pod: Json) -> Iterator[Use]:
    metadata = claim["metadata"]
    claimed = ClaimedDevice(metadata["name"], metadata["namespace"], result["pool"], result["device"])
    containers = _containers_of_request(pod, metadata["name"], result["request"].partition("/")[0])
    for container in containers or [""]:
        yield Use(*pod_name(pod), container, claim=claimed)


def _containers_of_request(pod: Json, claim_name: str, request: str) -> list[str]:
    """The containers that a request of a claim is for.

    Init containers that end are looked at only where no other container names it: the kubelet does not list them
    (pkg/kubelet/apis/podresources/server_v1.go), and a GPU would be counted twice.
    """
    extended = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    if extended.get("resourceClaimName") == claim_name:
        mappings = extended.get("requestMappings") or ()
        return [mapping["containerName"] for mapping in mappings if mapping["requestName"] == request]
    local = _local_names(pod, claim_name)
    naming = [
        container
        for container in _containers(pod)
        for reference in container.get("resources", {}).get("claims") or ()
        if reference["name"] in local and reference.get("request", request) == request
    ]
    inits = pod.get("spec", {}).get("initContainers") or ()
    ending = {container["name"] for container in inits if container.get("restartPolicy") != "Always"}
    names = [container["name"] for container in naming]
    return [name for name in names if name not in ending] or names


def _local_names(pod: Json, claim_name: str) -> set[str]:
    """What a pod calls a claim: its own entry names it, or the status does for one that was made from a template."""
    named = pod.get("spec", {}).get("resourceClaims") or ()
    generated = pod.get("status", {}).get("resourceClaimStatuses") or ()
    return {entry["name"] for entry in (*named, *generated) if entry.get("resourceClaimName") == claim_name}


def _containers(pod: Json) -> Iterator[Json]:
    spec = pod.get("spec", {})
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _dealt(pod: Json, shares: Iterable[str], offered: Offers) -> Iterator[tuple[str, str]]:
    """A pod's shares with the container of each: they go round in the order in which the kubelet admits containers.

    What is over belongs to an init container that asked for more than all the others together.
    """
    left: Mapping[str, list[str]] = {
        resource: [share for share in shares if share in offered[resource].devices]
        for resource in requested_devices(pod)
        if resource in offered
    }
    for container in _containers(pod):
        resources = container.get("resources", {})
        asked = resources.get("requests") or resources.get("limits") or {}
        for resource, remaining in left.items():
            taken = [remaining.pop(0) for _ in range(min(count(asked.get(resource)), len(remaining)))]
            yield from ((share, container["name"]) for share in taken)
