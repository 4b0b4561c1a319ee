"""Who holds which GPU: a pure function of nodes, ResourceClaims and pods.

Two ways lead to a GPU. A claim names its devices in `status.allocation`. A pod that asks for `nvidia.com/gpu` where
the node offers it as capacity gets whichever GPUs the device plugin takes; which ones is chosen here, recorded on the
pod by whoever writes (`sync`), and read from there ever after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubectl_ghost.domain.identity import gpu_name
from kubectl_ghost.domain.keys import GPU_DRIVER, GPU_RESOURCE, GPUS_ANNOTATION, Json
from kubectl_ghost.domain.quantity import count

_FINISHED = ("Succeeded", "Failed")
GpuKey = tuple[str, str]
"""Node name and device name."""


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """A pod that has a GPU; `claim` is the ResourceClaim it came through, empty on the device-plugin path."""

    namespace: str
    pod: str
    claim: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}"


def holders(nodes: Mapping[str, int], claims: Iterable[Json], pods: Sequence[Json]) -> dict[GpuKey, list[Holder]]:
    """Every held GPU with its holders, sorted; more than one where it is shared or handed out twice.

    Args:
        nodes: for each simulated node, the number of GPUs that it offers as `nvidia.com/gpu` capacity (0: none).
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
    offering = {node_name: offered for node_name, offered in nodes.items() if offered}
    for node_name, offered in offering.items():
        for name, gpus in assignments(on_node[node_name], offered).items():
            for gpu in gpus:
                held[(node_name, gpu)].append(Holder(*name))
    return {key: sorted(found) for key, found in held.items() if found}


def is_finished(pod: Json) -> bool:
    """Whether a pod has ended: it then holds nothing."""
    return pod.get("status", {}).get("phase") in _FINISHED


def _claimed_devices(claim: Json, nodes: Mapping[str, int]) -> list[GpuKey]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return [
        (result["pool"], result["device"])
        for result in results
        if result["driver"] == GPU_DRIVER and result["pool"] in nodes and not result.get("adminAccess")
    ]


def _claim_holders(claim: Json, alive: Mapping[str, Json]) -> list[Holder]:
    reserved = claim.get("status", {}).get("reservedFor") or ()
    pods = [alive[consumer["uid"]] for consumer in reserved if consumer.get("uid") in alive]
    return [Holder(pod["metadata"]["namespace"], pod["metadata"]["name"], claim["metadata"]["name"]) for pod in pods]


def assignments(pods: Iterable[Json], offered: int) -> dict[tuple[str, str], tuple[str, ...]]:
    """Which GPUs the device plugin gave to each pod of one node: (namespace, name) -> device names.

    What is recorded on a pod stands. Pods without a record are served in the order of their age from the lowest free
    GPU upwards. The device plugin knows nothing of claims, so a claimed GPU can be given out again here: that is
    what happens on a node that offers its GPUs both ways.
    """
    asking = [(pod, wanted) for pod in pods if (wanted := requested_gpus(pod))]
    asking.sort(key=lambda item: (item[0]["metadata"].get("creationTimestamp", ""), *_name(item[0])))
    all_gpus = [gpu_name(index) for index in range(offered)]
    given: dict[tuple[str, str], tuple[str, ...]] = {}
    taken: set[str] = set()
    for pod, wanted in asking:
        recorded = set(recorded_gpus(pod))
        # A record that cannot be true (a copied manifest has one) is no record.
        if len(recorded) == wanted and recorded <= set(all_gpus) - taken:
            given[_name(pod)] = recorded_gpus(pod)
            taken |= recorded
    free = [gpu for gpu in all_gpus if gpu not in taken]
    for pod, wanted in asking:
        if _name(pod) not in given:
            given[_name(pod)], free = tuple(free[:wanted]), free[wanted:]
    return given


def recorded_gpus(pod: Json) -> tuple[str, ...]:
    """The GPUs recorded on a pod of the device-plugin path."""
    text = (pod["metadata"].get("annotations") or {}).get(GPUS_ANNOTATION, "")
    return tuple(filter(None, text.split(",")))


def requested_gpus(pod: Json) -> int:
    """How many GPUs a pod takes from its node's `nvidia.com/gpu` capacity: 0 if they come through a claim.

    As the scheduler counts: the containers and restartable init containers together, or the largest init container.
    """
    if pod.get("status", {}).get("extendedResourceClaimStatus"):
        return 0
    spec = pod.get("spec", {})
    steady = sum(_limit(container) for container in spec.get("containers", ()))
    largest = sidecars = 0
    for container in spec.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            sidecars += _limit(container)
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + _limit(container))
    return max(steady + sidecars, largest)


def _limit(container: Json) -> int:
    resources = container.get("resources", {})
    return count((resources.get("requests") or resources.get("limits") or {}).get(GPU_RESOURCE))


def _name(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
