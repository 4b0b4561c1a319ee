"""The fleet as objects to print: pools, GPUs, the workloads that hold them and the pods that wait for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.declaration import fault_values
from kubectl_ghost.domain.devices import device_of, offers
from kubectl_ghost.domain.gpu_status import faults_on, mig_text, state_text
from kubectl_ghost.domain.guard import is_filler
from kubectl_ghost.domain.hardware import NodeHardware, Sharing
from kubectl_ghost.domain.holders import GpuKey, Holder, pod_name
from kubectl_ghost.domain.identity import gpu_name, gpu_uuid, parent_gpu, pci_addresses
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.inventory import VIEW_VERSION, Inventory


def pool_views(inventory: Inventory) -> list[Json]:
    """Every pool as an object: its settings as spec, its numbers as status."""
    views = []
    for pool, nodes in inventory.groups.items():
        names = [node["metadata"]["name"] for node in nodes]
        settings = inventory.hardware[names[0]].settings
        gpus = sum(inventory.hardware[name].settings.gpus for name in names)
        held = sum(inventory.held_on(name) for name in names)
        declared = [inventory.hardware[name] for name in names]
        created = min(node["metadata"].get("creationTimestamp", "") for node in nodes)
        views.append(
            {
                "apiVersion": VIEW_VERSION,
                "kind": "Pool",
                "metadata": {"name": pool, "creationTimestamp": created, "labels": dict(settings.labels)},
                "spec": {
                    "model": settings.model,
                    "product": model(settings.model).gfd_product,
                    "gpusPerNode": settings.gpus,
                    "advertise": settings.advertise.value,
                    "mig": settings.mig.value,
                    **({"sharing": _sharing_view(settings.sharing)} if settings.sharing else {}),
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
                    "freeGpus": sum(inventory.free_on(name) for name in names),
                    "occupiedGpus": sum(state.occupancy is not None for one in declared for _, state in one.gpus),
                    "faultyGpus": sum(_faulty(one) for one in declared),
                },
            }
        )
    return views


def _faulty(hardware: NodeHardware) -> int:
    if hardware.faults:
        return hardware.settings.gpus
    return sum(bool(state.faults) for _, state in hardware.gpus)


def _sharing_view(sharing: Sharing) -> Json:
    return {"strategy": sharing.kind.value, "replicas": sharing.replicas, "renamed": sharing.renamed}


def gpu_views(inventory: Inventory) -> list[Json]:
    """Every GPU as an object, by node and index."""
    views = []
    held = _held_by_node(inventory.holders)
    for node in inventory.in_order:
        name = node["metadata"]["name"]
        views += _node_gpus(node, inventory.hardware[name], held.get(name, {}))
    return views


_Held = Mapping[str, list[tuple[str, Holder]]]
"""GPU name -> the devices of it that are held, each with a holder."""


def _held_by_node(holders: Mapping[GpuKey, list[Holder]]) -> dict[str, dict[str, list[tuple[str, Holder]]]]:
    by_node: dict[str, dict[str, list[tuple[str, Holder]]]] = defaultdict(lambda: defaultdict(list))
    for (node_name, device), found in sorted(holders.items()):
        by_node[node_name][parent_gpu(device)] += [(device, holder) for holder in found]
    return by_node


def _holder_view(device: str, holder: Holder) -> Json:
    view = {"namespace": holder.namespace, "pod": holder.pod, "device": device}
    return {**view, **({"claim": holder.claim} if holder.claim else {})}


def _node_gpus(node: Json, hardware: NodeHardware, held: _Held) -> list[Json]:
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
                "state": state_text(hardware, index),
                "mig": mig_text(hardware, index),
                "faults": fault_values(faults_on(hardware, index)),
                "holders": [_holder_view(device, holder) for device, holder in held.get(gpu_name(index), ())],
            },
        }
        for index, address in enumerate(pci_addresses(board, settings.gpus))
    ]


def workload_views(inventory: Inventory) -> list[Json]:
    """The holders by workload: how many pods of each hold how many GPUs on which nodes, and which way."""
    pods = {pod_name(pod): pod for pod in inventory.pods}
    rows: dict[tuple[str, str], dict[str, set[object]]] = defaultdict(lambda: defaultdict(set))
    for (node_name, gpu), found in inventory.holders.items():
        for holder in found:
            row = rows[(holder.namespace, _workload(pods.get(holder.name), holder.pod))]
            row["pods"].add(holder.pod)
            row["gpus"].add((node_name, parent_gpu(gpu)))
            row["nodes"].add(node_name)
            row["via"].add("claim" if holder.claim else _resource(inventory, node_name, gpu))
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


def _resource(inventory: Inventory, node_name: str, device: str) -> str:
    """The name under which a device is counted that came by capacity."""
    hardware = inventory.hardware.get(node_name)
    if hardware is None or not (hardware.gpus or hardware.settings.sharing):
        return keys.GPU_RESOURCE
    for resource, offer in offers(hardware).items():
        if device in map(device_of, offer.devices):
            return resource
    return keys.GPU_RESOURCE


def _workload(pod: Json | None, pod_name: str) -> str:
    """What a pod belongs to: a Deployment rather than its ReplicaSet, else its controller, else itself."""
    if pod is not None and is_filler(pod):
        return "occupied by filler pods"
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
