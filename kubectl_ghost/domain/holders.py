"""Who holds which GPU: a pure function of nodes, ResourceClaims and pods.

Two ways lead to a GPU. A claim names its devices in `status.allocation`. A pod that asks for `nvidia.com/gpu` where
the node offers it as capacity gets whichever GPUs the device plugin takes; which ones is chosen here, recorded on the
pod by whoever writes (`sync`), and read from there ever after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.devices import Offer, device_of
from kubectl_ghost.domain.keys import GPU_DRIVER, GPUS_ANNOTATION, Json
from kubectl_ghost.domain.quantity import count

_FINISHED = ("Succeeded", "Failed")
PodName = tuple[str, str]
"""Namespace and name of a pod."""
GpuKey = tuple[str, str]
"""Node name and device name."""


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """A pod that has a GPU; `claim` is the ResourceClaim it came through, empty on the device-plugin path."""

    namespace: str
    pod: str
    claim: str = ""

    @property
    def name(self) -> PodName:
        """The pod's namespace and name."""
        return self.namespace, self.pod

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}"


Offers = Mapping[str, Offer]
"""What a node offers as capacity: `domain.devices.offers`."""
_OURS = "nvidia.com/"


def holders(nodes: Mapping[str, Offers], claims: Iterable[Json], pods: Sequence[Json]) -> dict[GpuKey, list[Holder]]:
    """Every held device with its holders, sorted; more than one where it is shared or handed out twice.

    Args:
        nodes: for each simulated node, what it offers as capacity.
        claims: ResourceClaims of the cluster.
        pods: pods of the cluster; those on other nodes are ignored.
    """
    held: dict[GpuKey, list[Holder]] = defaultdict(list)
    alive = {pod["metadata"]["uid"]: pod for pod in pods if not is_finished(pod)}
    for claim in claims:
        for key in _claimed_devices(claim, nodes):
            held[key] += _claim_holders(claim, alive)
    on_node: dict[str, list[Json]] = defaultdict(list)
    for pod in alive.values():
        on_node[pod.get("spec", {}).get("nodeName", "")].append(pod)
    for node_name, offered in nodes.items():
        if not offered or node_name not in on_node:
            continue
        for name, devices in assignments(on_node[node_name], offered).items():
            for device in dict.fromkeys(map(device_of, devices)):
                held[(node_name, device)].append(Holder(*name))
    return {key: sorted(found) for key, found in held.items() if found}


def is_finished(pod: Json) -> bool:
    """Whether a pod has ended: it then holds nothing."""
    return pod.get("status", {}).get("phase") in _FINISHED


def _claimed_devices(claim: Json, nodes: Mapping[str, Offers]) -> list[GpuKey]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return [
        (result["pool"], result["device"])
        for result in results
        if result["driver"] == GPU_DRIVER and result["pool"] in nodes and not result.get("adminAccess")
    ]


def _claim_holders(claim: Json, alive: Mapping[str, Json]) -> list[Holder]:
    reserved = claim.get("status", {}).get("reservedFor") or ()
    pods = [alive[consumer["uid"]] for consumer in reserved if consumer.get("uid") in alive]
    return [Holder(*pod_name(pod), claim["metadata"]["name"]) for pod in pods]


def assignments(pods: Iterable[Json], offered: Offers) -> dict[PodName, tuple[str, ...]]:
    """Which devices each pod of a node has on the device-plugin path: (namespace, name) -> device names.

    What is recorded on a pod stands, also when the device has failed since. Pods without a record are served in the
    order of their age from the lowest free device upwards, of those that are available. The device plugin knows
    nothing of claims, so a claimed GPU can be given out again here: that is what happens on a node that offers its
    GPUs both ways.
    """
    asking = [(pod, wanted) for pod in pods if (wanted := requested_devices(pod))]
    asking.sort(key=lambda item: (item[0]["metadata"].get("creationTimestamp", ""), *pod_name(item[0])))
    given: dict[PodName, tuple[str, ...]] = {}
    taken: set[str] = set()
    for pod, wanted in asking:
        recorded = recorded_gpus(pod)
        # A record that cannot be true (a copied manifest has one) is no record.
        if _could_be(recorded, taken, wanted, offered):
            given[pod_name(pod)] = recorded
            taken |= set(recorded)
    for pod, wanted in asking:
        if pod_name(pod) not in given:
            free = {resource: _free(offered, resource, taken)[:number] for resource, number in wanted.items()}
            given[pod_name(pod)] = tuple(device for found in free.values() for device in found)
            taken |= set(given[pod_name(pod)])
    return given


def unrecorded(
    pods: Iterable[Json], given: Mapping[PodName, tuple[str, ...]]
) -> Iterator[tuple[Json, tuple[str, ...]]]:
    """The pods on which other devices, or none, are recorded than they have (`assignments`), with what they have."""
    for pod in pods:
        devices = given.get(pod_name(pod), ())
        if devices and recorded_gpus(pod) != devices:
            yield pod, devices


def _could_be(recorded: Sequence[str], taken: set[str], wanted: Mapping[str, int], offered: Offers) -> bool:
    devices = set(recorded) - taken
    by_resource = {name: len(devices & set(offered[name].devices)) for name in wanted if name in offered}
    return by_resource == wanted and sum(wanted.values()) == len(recorded)


def _free(offered: Offers, resource: str, taken: set[str]) -> list[str]:
    offer = offered.get(resource)
    return [device for device in offer.available if device not in taken] if offer else []


def recorded_gpus(pod: Json) -> tuple[str, ...]:
    """The devices recorded on a pod of the device-plugin path."""
    text = (pod["metadata"].get("annotations") or {}).get(GPUS_ANNOTATION, "")
    return tuple(filter(None, text.split(",")))


def record_patch(devices: Iterable[str]) -> Json:
    """The merge patch that records devices on a pod: the only thing that is ever written to a pod of somebody."""
    return {"metadata": {"annotations": {GPUS_ANNOTATION: ",".join(devices)}}}


def requested_devices(pod: Json) -> dict[str, int]:
    """How many devices of each kind a pod takes from its node's capacity; none where they come through a claim.

    As the scheduler counts: the containers and restartable init containers together, or the largest init container.
    """
    if pod.get("status", {}).get("extendedResourceClaimStatus"):
        return {}
    spec = pod.get("spec", {})
    containers = [*spec.get("containers", ()), *(spec.get("initContainers") or ())]
    resources = sorted({name for container in containers for name in _asked(container) if name.startswith(_OURS)})
    numbers = {resource: _requested(spec, resource) for resource in resources}
    return {resource: number for resource, number in numbers.items() if number}


def _requested(spec: Json, resource: str) -> int:
    steady = sum(count(_asked(container).get(resource)) for container in spec.get("containers", ()))
    largest = sidecars = 0
    for container in spec.get("initContainers") or ():
        number = count(_asked(container).get(resource))
        if container.get("restartPolicy") == "Always":
            sidecars += number
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + number)
    return max(steady + sidecars, largest)


def _asked(container: Json) -> Json:
    resources = container.get("resources", {})
    asked: Json = resources.get("requests") or resources.get("limits") or {}
    return asked


def pod_name(pod: Json) -> PodName:
    """Namespace and name."""
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
