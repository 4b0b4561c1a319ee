"""The Node of a piece of declared hardware."""

from __future__ import annotations

from functools import cache
from typing import Any

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.devices import offers
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, Taint
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import healthy_condition
from kubectl_ghost.manifests.gfd_labels import clique_label, gfd_labels
from kubectl_ghost.manifests.mig_labels import mig_labels
from kubectl_ghost.manifests.sharing_labels import sharing_labels

_KWOK_TAINT = Taint(keys.KWOK_NODE_KEY, "NoSchedule", keys.KWOK_NODE_VALUE)


def node(hardware: NodeHardware) -> Json:
    """The whole object, as it is created.

    Condition Ready is left out on purpose: kwok initialises nodes that are not Ready, and would not set phase and
    ports on one that already says it is.
    """
    name = hardware.node_name
    capacity, allocatable = node_resources(hardware)
    spec: dict[str, Any] = {"providerID": f"kwok://{name}"}
    if taints := node_taints(hardware):
        spec["taints"] = taints
    if consequences(hardware).cordon:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": node_annotations(hardware), "labels": node_labels(hardware)},
        "spec": spec,
        "status": {"allocatable": allocatable, "capacity": capacity},
    }


def node_annotations(hardware: NodeHardware) -> dict[str, str]:
    """kwok's mark, the declaration itself, and what makes kwok take the node down."""
    down: dict[str, str] = {}
    kinds = {fault.kind for fault in hardware.faults}
    if hardware.reboot is not None:
        down = {keys.NODE_DOWN_ANNOTATION: f"rebooting until {hardware.reboot.until}"}
    elif "node-down" in kinds:
        down = {keys.NODE_DOWN_ANNOTATION: "fault node-down, simulated by kubectl-ghost"}
    elif "node-unreachable" in kinds:
        down = {keys.NODE_UNREACHABLE_ANNOTATION: "fault node-unreachable, simulated by kubectl-ghost"}
    return {keys.KWOK_NODE_KEY: keys.KWOK_NODE_VALUE, keys.HARDWARE_ANNOTATION: encode(hardware), **down}


def node_labels(hardware: NodeHardware) -> dict[str, str]:
    """The pool's labels and this node's own: host name, zone and rack. The user's come last and win over GFD's.

    An adopted node gets none but those about its GPUs.
    """
    if hardware.adopted:
        return {**_gpu_labels(hardware, None), **membership_labels(hardware)}
    settings, index = hardware.settings, hardware.index
    own = {keys.HOSTNAME_LABEL: hardware.node_name}
    rack = None
    place = index
    if settings.racks:
        # A rack stands in one zone: zones are dealt out to racks, and racks to nodes.
        place = index % len(settings.racks)
        rack = settings.racks[place]
        own[keys.RACK_LABEL] = rack
    if settings.zones:
        own[keys.ZONE_LABEL] = settings.zones[place % len(settings.zones)]
    return {
        **_gpu_labels(hardware, rack),
        **_common_labels(settings),
        **own,
        **dict(settings.labels),
        **membership_labels(hardware),
    }


def membership_labels(hardware: NodeHardware) -> dict[str, str]:
    """Whose the object is and which pool it belongs to: adopted ones never match the selector of a pool's own."""
    pool_label = keys.TEMPLATE_LABEL if hardware.adopted else keys.POOL_LABEL
    return {keys.MANAGED_BY_LABEL: keys.MANAGED_BY, pool_label: hardware.settings.name}


def _gpu_labels(hardware: NodeHardware, rack: str | None) -> dict[str, str]:
    settings = hardware.settings
    return {
        **gfd_labels(settings.model, settings.gpus),
        **mig_labels(hardware),
        **sharing_labels(hardware),
        **clique_label(settings, rack),
        **dict(consequences(hardware).labels),
        **_timed_label(hardware),
    }


@cache
def _common_labels(settings: PoolSettings) -> dict[str, str]:
    return {keys.ARCH_LABEL: model(settings.model).cpu_arch, keys.OS_LABEL: "linux"}


def node_taints(hardware: NodeHardware) -> list[dict[str, str]]:
    """The pool's taints, kwok's first where the pool carries it; an adopted node has its owner's alone."""
    if hardware.adopted:
        return []
    settings = hardware.settings
    taints = [*([_KWOK_TAINT] if settings.tainted else []), *settings.taints]
    return [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in taints
    ]


def node_resources(hardware: NodeHardware) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable: the latter is without what the device plugin reports unhealthy and what is busy.

    CPUs, memory and pods of an adopted node are its owner's.
    """
    base = {} if hardware.adopted else _base_resources(hardware.settings)
    if not hardware.gpus and not hardware.faults:
        resources = {**base, **_new_resources(hardware.settings)}
        return resources, resources
    offered = offers(hardware)
    capacity = {resource: str(len(offer.devices)) for resource, offer in offered.items()}
    allocatable = {resource: str(len(offer.available)) for resource, offer in offered.items()}
    return {**base, **capacity}, {**base, **allocatable}


@cache
def _new_resources(settings: PoolSettings) -> dict[str, str]:
    offered = offers(NodeHardware(settings, 0))
    return {name: str(len(offer.devices)) for name, offer in offered.items()}


def _base_resources(settings: PoolSettings) -> dict[str, str]:
    return {"cpu": settings.cpu, "memory": settings.memory, "pods": str(settings.pods)}


def node_conditions(hardware: NodeHardware) -> list[dict[str, str]]:
    """The conditions that reacting components set, as far as they are facts: times are added by whoever writes.

    Those of faults that are over say that all is well, as the component itself would: a tool waits for that.
    """
    declared = {found.type: found for found in consequences(hardware).conditions}
    found = [declared.get(name) or healthy_condition(name) for name in sorted({*declared, *hardware.conditions})]
    return [{"type": one.type, "status": one.status, "reason": one.reason, "message": one.message} for one in found]


def _timed_label(hardware: NodeHardware) -> dict[str, str]:
    timed = hardware.reboot is not None or any(fault.until for _, fault in hardware.all_faults())
    return {keys.TIMED_LABEL: "true"} if timed else {}
