"""The Node of a piece of declared hardware."""

from __future__ import annotations

from functools import cache
from typing import Any

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.catalogue import model
from kubectl_ghost.domain.hardware import NodeHardware, PoolSettings, Taint, encode
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.gfd_labels import clique_label, gfd_labels

_KWOK_TAINT = Taint(keys.KWOK_NODE_KEY, "NoSchedule", keys.KWOK_NODE_VALUE)


def node(hardware: NodeHardware) -> Json:
    """The whole object, as it is created.

    Condition Ready is left out on purpose: kwok initialises nodes that are not Ready, and would not set phase and
    ports on one that already says it is.
    """
    settings, name = hardware.settings, hardware.node_name
    capacity = _capacity(settings)
    spec: dict[str, Any] = {"providerID": f"kwok://{name}"}
    if taints := node_taints(settings):
        spec["taints"] = taints
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": node_annotations(hardware), "labels": node_labels(hardware)},
        "spec": spec,
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def node_annotations(hardware: NodeHardware) -> dict[str, str]:
    """kwok's mark and the declaration itself."""
    return {keys.KWOK_NODE_KEY: keys.KWOK_NODE_VALUE, keys.HARDWARE_ANNOTATION: encode(hardware)}


def node_labels(hardware: NodeHardware) -> dict[str, str]:
    """The pool's labels and this node's own: host name, zone and rack. The user's come last and win over GFD's."""
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
        **gfd_labels(settings.model, settings.gpus),
        **clique_label(settings, rack),
        **_common_labels(settings),
        **own,
        **dict(settings.labels),
        keys.MANAGED_BY_LABEL: keys.MANAGED_BY,
        keys.POOL_LABEL: settings.name,
    }


@cache
def _common_labels(settings: PoolSettings) -> dict[str, str]:
    return {keys.ARCH_LABEL: model(settings.model).cpu_arch, keys.OS_LABEL: "linux"}


def node_taints(settings: PoolSettings) -> list[dict[str, str]]:
    """The pool's taints, kwok's first where the pool carries it."""
    taints = [*([_KWOK_TAINT] if settings.tainted else []), *settings.taints]
    return [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in taints
    ]


@cache
def _capacity(settings: PoolSettings) -> dict[str, str]:
    capacity = {"cpu": settings.cpu, "memory": settings.memory, "pods": str(settings.pods)}
    if settings.advertise.capacity:
        capacity[keys.GPU_RESOURCE] = str(settings.gpus)
    return capacity
