"""The fleet as objects to look at: pools, nodes and GPUs with who holds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.guard import is_ours
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import GpuKey, Holder
from kubectl_ghost.domain.identity import gpu_name, gpu_uuid, pci_addresses
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.fleet import OURS, Pool, hardware_of, pools_of
from kubectl_ghost.operations.holdings import find_holders, read_claims
from kubectl_ghost.operations.waiting import is_ready

VIEW_VERSION = f"{keys.DOMAIN}/v1alpha1"
"""apiVersion of the objects that exist only in this tool's output: Pool and GPU."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One look at the fleet. Nodes, claims and pods are read one after the other, so it can be a moment apart."""

    nodes: dict[str, Json]
    ready: frozenset[str]
    hardware: dict[str, NodeHardware]
    pools: dict[str, Pool]
    holders: dict[GpuKey, list[Holder]]
    pods: list[Json]
    problems: list[str]
    """A line for each node whose declaration cannot be read; it is left out of everything else."""

    def held_on(self, node_name: str) -> int:
        """How many GPUs of a node are held; none of a node that is not in this look any more."""
        if node_name not in self.hardware:
            return 0
        gpus = self.hardware[node_name].settings.gpus
        return sum((node_name, gpu_name(index)) in self.holders for index in range(gpus))

    def shared(self) -> list[GpuKey]:
        """GPUs that were handed out twice, by a claim and as `nvidia.com/gpu`."""
        return sorted(key for key, found in self.holders.items() if len({bool(holder.claim) for holder in found}) > 1)


def read_inventory(
    reader: Reader,
    *,
    selector: str | None = None,
    field_selector: str | None = None,
    chunk: int = 500,
    whole: bool = True,
) -> Inventory:
    """Read the fleet.

    Args:
        selector: further label selector on the nodes.
        field_selector: field selector on the nodes.
        whole: read the nodes whole; else their metadata, and from the server's own table which of them are Ready.
    """
    labels = f"{OURS},{selector}" if selector else OURS
    found = reader.list(
        NODES, label_selector=labels, field_selector=field_selector, chunk=chunk, metadata_only=not whole
    ).items
    nodes, hardware, problems = {}, {}, []
    for item in filter(is_ours, found):
        name = item["metadata"]["name"]
        try:
            hardware[name] = hardware_of(item)
        except GhostError as error:
            problems.append(error.message)
        else:
            nodes[name] = item
    if not nodes:
        return Inventory({}, frozenset(), {}, {}, {}, [], problems)
    if whole:
        ready = frozenset(name for name, node in nodes.items() if is_ready(node))
    else:
        rows = reader.printed(NODES, label_selector=labels, field_selector=field_selector)
        ready = frozenset(row["Name"] for row in rows if row["Status"].split(",")[0] == "Ready")
    pods = reader.list(PODS, chunk=chunk).items
    bound = [pod for pod in pods if pod.get("spec", {}).get("nodeName")]
    held = find_holders(hardware, read_claims(reader), bound)
    return Inventory(nodes, ready, hardware, pools_of(nodes.values()), held, pods, problems)


def pool_views(inventory: Inventory) -> list[Json]:
    """Every pool as an object: its settings as spec, its numbers as status."""
    views = []
    for pool in inventory.pools.values():
        settings = pool.settings
        names = [node["metadata"]["name"] for node in pool.nodes.values()]
        gpus = sum(inventory.hardware[name].settings.gpus for name in names)
        held = sum(inventory.held_on(name) for name in names)
        created = min(node["metadata"].get("creationTimestamp", "") for node in pool.nodes.values())
        views.append(
            {
                "apiVersion": VIEW_VERSION,
                "kind": "Pool",
                "metadata": {"name": pool.name, "creationTimestamp": created, "labels": dict(settings.labels)},
                "spec": {
                    "model": settings.model,
                    "product": model(settings.model).gfd_product,
                    "gpusPerNode": settings.gpus,
                    "advertise": settings.advertise.value,
                    "cpu": settings.cpu,
                    "memory": settings.memory,
                    "pods": settings.pods,
                    "zones": list(settings.zones),
                    "racks": list(settings.racks),
                },
                "status": {
                    "nodes": len(names),
                    "readyNodes": sum(name in inventory.ready for name in names),
                    "gpus": gpus,
                    "heldGpus": held,
                    "freeGpus": gpus - held,
                },
            }
        )
    return views


def gpu_views(inventory: Inventory) -> list[Json]:
    """Every GPU as an object, by node and index."""
    views = []
    for pool in inventory.pools.values():
        for node in pool.nodes.values():
            views += _node_gpus(node, inventory.hardware[node["metadata"]["name"]], inventory.holders)
    return views


def _node_gpus(node: Json, hardware: NodeHardware, holders: Mapping[GpuKey, list[Holder]]) -> list[Json]:
    name, settings = node["metadata"]["name"], hardware.settings
    board = model(settings.model)
    return [
        {
            "apiVersion": VIEW_VERSION,
            "kind": "GPU",
            "metadata": {
                "name": f"{name}/{gpu_name(index)}",
                "creationTimestamp": node["metadata"].get("creationTimestamp"),
                "labels": node["metadata"].get("labels") or {},
            },
            "spec": {
                "node": name,
                "device": gpu_name(index),
                "pool": settings.name,
                "product": board.gfd_product,
                "uuid": gpu_uuid(name, index),
                "pciBusID": address.bus_id,
                "pcieRoot": address.root,
                "memoryMiB": board.memory_mib,
            },
            "status": {
                "holders": [
                    {
                        "namespace": holder.namespace,
                        "pod": holder.pod,
                        **({"claim": holder.claim} if holder.claim else {}),
                    }
                    for holder in holders.get((name, gpu_name(index)), ())
                ]
            },
        }
        for index, address in enumerate(pci_addresses(board, settings.gpus))
    ]


def workload_views(inventory: Inventory) -> list[Json]:
    """The holders by workload: how many pods of each hold how many GPUs on which nodes, and which way."""
    pods = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in inventory.pods}
    rows: dict[tuple[str, str], dict[str, set[object]]] = defaultdict(lambda: defaultdict(set))
    for (node_name, gpu), found in inventory.holders.items():
        for holder in found:
            row = rows[(holder.namespace, _workload(pods.get((holder.namespace, holder.pod)), holder.pod))]
            row["pods"].add(holder.pod)
            row["gpus"].add((node_name, gpu))
            row["nodes"].add(node_name)
            row["via"].add("claim" if holder.claim else keys.GPU_RESOURCE)
    return [
        {
            "namespace": namespace,
            "workload": workload,
            "pods": len(row["pods"]),
            "gpus": len(row["gpus"]),
            "via": sorted(map(str, row["via"])),
            "nodes": sorted(map(str, row["nodes"])),
        }
        for (namespace, workload), row in sorted(rows.items())
    ]


def _workload(pod: Json | None, pod_name: str) -> str:
    """What a pod belongs to: a Deployment rather than its ReplicaSet, else its controller, else itself."""
    metadata = (pod or {}).get("metadata", {})
    owner = next((owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")), None)
    if owner is None:
        return f"pod/{pod_name}"
    revision = (metadata.get("labels") or {}).get("pod-template-hash")
    if owner["kind"] == "ReplicaSet" and revision and owner["name"].endswith(f"-{revision}"):
        return f"deployment/{owner['name'].removesuffix(f'-{revision}')}"
    return f"{owner['kind'].lower()}/{owner['name']}"


def waiting_views(inventory: Inventory) -> list[Json]:
    """Pods that ask for GPUs or claim devices and have no node, with what the scheduler says."""
    views = []
    for pod in inventory.pods:
        spec, status = pod.get("spec", {}), pod.get("status", {})
        if spec.get("nodeName") or status.get("phase") != "Pending" or not _wants_gpus(spec):
            continue
        conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
        metadata = pod["metadata"]
        reason = conditions.get("PodScheduled", {}).get("message") or "not looked at by the scheduler yet"
        views.append({"namespace": metadata["namespace"], "pod": metadata["name"], "reason": reason})
    return sorted(views, key=lambda view: (view["namespace"], view["pod"]))


def _wants_gpus(spec: Json) -> bool:
    containers = [*spec.get("containers", ()), *(spec.get("initContainers") or ())]
    asked = (name for container in containers for name in container.get("resources", {}).get("limits") or {})
    return bool(spec.get("resourceClaims")) or any(name.startswith("nvidia.com/") for name in asked)
