"""Filler pods: real pods, and where GPUs are claimed their ResourceClaims, that keep declared GPUs busy.

Each is pinned to one device: through DRA by the device's UUID, on the device plugin's path by the record of which
device it has. They ask for no CPU and no memory, and their image is never pulled: kwok plays them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.devices import Device, device_of, gpu_devices, offers, table_of, whole_beside_parts
from kubectl_ghost.domain.hardware import MigMode, NodeHardware, OccupancyKind
from kubectl_ghost.domain.identity import gpu_name, gpu_uuid, parent_gpu
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.mig import mig_uuid

_IMAGE = "kubectl-ghost.dev/filler:never-pulled"
_MARKS = {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}
_REQUEST = "gpu"
_DEVICE = "-gpu-"


@dataclass(frozen=True, slots=True)
class Filler:
    """What keeps one device of a node busy.

    Attributes:
        uuid: of a device that is claimed; "" on the device plugin's path.
        own_attribute: whether the UUID stands under this tool's domain, as under dynamic MIG.
        resource: what it counts under on the device plugin's path; "" for a claimed device.
        shares: all shares of the device there, which is the device itself where it is not shared.
        priority: of the pod, in which it can be preempted.
    """

    node: str
    device: str
    uuid: str = ""
    own_attribute: bool = False
    resource: str = ""
    shares: tuple[str, ...] = ()
    priority: int = 0

    @property
    def name(self) -> str:
        """The name of the pod and of its claim: `node-0-gpu-1`."""
        return f"{self.node}-{self.device}"

    @property
    def claimed(self) -> bool:
        """Whether the device is had through a ResourceClaim."""
        return bool(self.uuid)


def fillers(hardware: NodeHardware) -> list[Filler]:
    """The fillers that a node's declaration asks for, GPU by GPU."""
    found: list[Filler] = []
    for index, state in hardware.gpus:
        if state.occupancy is not None and state.occupancy.kind is OccupancyKind.PODS:
            slices = hardware.settings.advertise.slices
            made = _claiming(hardware, index) if slices else _counted(hardware, index)
            found += (replace(filler, priority=state.occupancy.priority) for filler in made)
    return found


def _claiming(hardware: NodeHardware, index: int) -> Iterator[Filler]:
    node, parent = hardware.node_name, gpu_uuid(hardware.node_name, index)
    for device in _devices(hardware, index):
        if device.instance is None:
            yield Filler(node, device.name, parent)
        else:
            uuid = mig_uuid(parent, device.instance.profile, device.instance.start)
            yield Filler(node, device.name, uuid, own_attribute=hardware.settings.mig is MigMode.DYNAMIC)


def _devices(hardware: NodeHardware, index: int) -> list[Device]:
    """Devices that together take all of a GPU."""
    found = list(gpu_devices(hardware, index))
    if hardware.settings.mig is not MigMode.DYNAMIC:
        return found
    if whole_beside_parts(hardware.settings.model):
        return found[:1]
    table = table_of(hardware.settings.model)
    largest = [
        device
        for device in found
        if device.instance and table.profile(device.instance.profile).size == table.memory_slices
    ]
    return largest[:1]


def _counted(hardware: NodeHardware, index: int) -> Iterator[Filler]:
    for resource, offer in offers(hardware).items():
        shares: dict[str, list[str]] = {}
        for share in offer.devices:
            if parent_gpu(device_of(share)) == gpu_name(index):
                shares.setdefault(device_of(share), []).append(share)
        for device, found in shares.items():
            yield Filler(hardware.node_name, device, resource=resource, shares=tuple(found))


def place_of(name: str) -> tuple[str, str]:
    """The node and the device that a filler of this name is for."""
    node, _, device = name.rpartition(_DEVICE)
    return node, f"{_DEVICE[1:]}{device}"


def priority_class_name(priority: int) -> str:
    """`kubectl-ghost-occupancy-5`; a minus would be a second hyphen, so -5 is m5."""
    return f"{keys.FILLER_NAMESPACE}-{'m' if priority < 0 else ''}{abs(priority)}"


def namespace() -> Json:
    """Where all fillers live."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": keys.FILLER_NAMESPACE, "labels": _MARKS}}


def priority_class(priority: int) -> Json:
    """A class with this priority. Its pods preempt nobody: what takes GPUs from pods says so and has a flag."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class_name(priority), "labels": _MARKS},
        "value": priority,
        "globalDefault": False,
        "preemptionPolicy": "Never",
        "description": "Pods of kubectl ghost occupy that keep simulated GPUs busy.",
    }


def claim(filler: Filler) -> Json:
    """The claim of exactly this device."""
    domain = keys.DOMAIN if filler.own_attribute else keys.GPU_DRIVER
    attributes = f'device.attributes["{domain}"]'
    # A device without the attribute must be passed over: asking for it would be an error that ends the search.
    expression = f'"uuid" in {attributes} && {attributes}.uuid == "{filler.uuid}"'
    device_class = keys.GPU_DEVICE_CLASS if parent_gpu(filler.device) == filler.device else keys.MIG_DEVICE_CLASS
    request = {
        "deviceClassName": device_class,
        "selectors": [{"cel": {"expression": expression}}],
        "tolerations": _tolerations("NoSchedule", "NoExecute"),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _metadata(filler),
        "spec": {"devices": {"requests": [{"name": _REQUEST, "exactly": request}]}},
    }


def _only_on(node: str) -> Json:
    """By the node's name: an adopted node need not carry the label of its host name."""
    field: Json = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def pod(filler: Filler) -> Json:
    """The pod that has the device."""
    metadata = _metadata(filler)
    container: Json = {"name": "filler", "image": _IMAGE, "imagePullPolicy": "Never"}
    spec: Json = {
        "affinity": _only_on(filler.node),
        "priorityClassName": priority_class_name(filler.priority),
        "tolerations": _tolerations("NoSchedule", "PreferNoSchedule", "NoExecute"),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    if filler.claimed:
        spec["resourceClaims"] = [{"name": _REQUEST, "resourceClaimName": filler.name}]
        container["resources"] = {"claims": [{"name": _REQUEST}]}
    else:
        metadata["annotations"] = {keys.GPUS_ANNOTATION: ",".join(filler.shares)}
        container["resources"] = {"limits": {filler.resource: str(len(filler.shares))}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _metadata(filler: Filler) -> Json:
    return {"name": filler.name, "namespace": keys.FILLER_NAMESPACE, "labels": dict(_MARKS)}


def _tolerations(*effects: str) -> list[Json]:
    """Of every taint, effect by effect: without one, a toleration of NoExecute taints of devices does not hold."""
    return [{"operator": "Exists", "effect": effect} for effect in effects]
