"""What is written to a node that somebody else created, to give it GPUs and to give it back as it was.

GPUs alone: labels of NVIDIA's components, resources under nvidia.com, conditions. CPUs, memory, taints, zones and
everything else are its owner's and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.adoption import NOTHING, Before, before_of, before_text
from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.declaration import encode
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import SENTINEL_LABELS
from kubectl_ghost.manifests.node import node_annotations, node_labels, node_resources

_RESOURCES = "nvidia.com/"
_LABELS = ("nvidia.com/", SENTINEL_LABELS, f"{keys.DOMAIN}/")
"""Prefixes of the labels that splitting, sharing and faults set later on."""
_ANNOTATIONS = (f"{keys.DOMAIN}/",)
_KUBELETS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def adoption_patch(hardware: NodeHardware, live: Json) -> Json:
    """Merge patch of the metadata of a node that is to be adopted: declaration, record and labels in one write.

    A node that was adopted before and has lost this tool's label keeps its record, and its declaration if it is there.
    """
    metadata = live["metadata"]
    present = metadata.get("annotations") or {}
    labels, annotations = node_labels(hardware), _annotations(hardware)
    if before_of(live) != NOTHING:
        record = present[keys.ADOPTED_ANNOTATION]
        labels = {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}
        annotations = {keys.HARDWARE_ANNOTATION: present.get(keys.HARDWARE_ANNOTATION) or encode(hardware)}
    else:
        record = before_text(_before(hardware, live))
    return {"metadata": {"labels": labels, "annotations": {**annotations, keys.ADOPTED_ANNOTATION: record}}}


def _before(hardware: NodeHardware, live: Json) -> Before:
    metadata, status = live["metadata"], live.get("status", {})
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    capacity, allocatable = node_resources(hardware)
    own = {key: value for key, value in annotations.items() if key != keys.ADOPTED_ANNOTATION}
    return Before(
        labels=_kept(labels, node_labels(hardware), _LABELS),
        annotations=_kept(own, _annotations(hardware), _ANNOTATIONS),
        capacity=_kept(status.get("capacity") or {}, capacity, (_RESOURCES,)),
        allocatable=_kept(status.get("allocatable") or {}, allocatable, (_RESOURCES,)),
        conditions=tuple(item for item in status.get("conditions") or () if item["type"] not in _KUBELETS),
        unschedulable=bool(live.get("spec", {}).get("unschedulable")),
    )


def _kept(live: Mapping[str, str], wanted: Iterable[str], prefixes: tuple[str, ...]) -> dict[str, str | None]:
    """What is there of the keys that are going to be set, and of all those that may be set later."""
    present = {key: value for key, value in live.items() if key.startswith(prefixes)}
    return {**{key: live.get(key) for key in wanted}, **present}


def _annotations(hardware: NodeHardware) -> dict[str, str]:
    """What the tool writes; kwok's mark was there before."""
    return {key: value for key, value in node_annotations(hardware).items() if key != keys.KWOK_NODE_KEY}


def withdrawal_patch(hardware: NodeHardware | None, live: Json) -> Json:
    """Merge patch of `/status` that takes the GPUs off a node and puts back what it had; empty if nothing differs.

    Args:
        hardware: the declaration, None if it cannot be read.
        live: the node as last read, its record still on it.
    """
    before, status = before_of(live), live.get("status", {})
    patch: Json = {}
    for field, kept in (("capacity", before.capacity), ("allocatable", before.allocatable)):
        current = status.get(field) or {}
        ours = [key for key in current if key.startswith(_RESOURCES)]
        if part := _restored(kept, ours, current):
            patch[field] = part
    present = status.get("conditions") or []
    wanted = _restored_conditions(before, set(hardware.conditions if hardware else ()), present)
    if wanted != present:
        patch["conditions"] = wanted
    return {"status": patch} if patch else {}


def _restored_conditions(before: Before, ours: set[str], live: list[Json]) -> list[Json]:
    theirs = {item["type"]: item for item in before.conditions if item["type"] in ours}
    kept = [theirs.pop(item["type"], item) for item in live if item["type"] not in ours or item["type"] in theirs]
    return [*kept, *theirs.values()]


def return_patch(hardware: NodeHardware | None, live: Json) -> Json:
    """Merge patch that gives a node back: marks, declaration and record go, and what it had comes back.

    Args:
        hardware: the declaration, None if it cannot be read.
        live: the node as last read.
    """
    before, metadata = before_of(live), live["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    our_labels = node_labels(hardware) if hardware else [key for key in labels if key.startswith(_LABELS)]
    our_annotations = (
        _annotations(hardware) if hardware else [key for key in annotations if key.startswith(_ANNOTATIONS)]
    )
    patch: Json = {
        "metadata": {
            "labels": {
                **_restored(before.labels, our_labels, labels),
                keys.MANAGED_BY_LABEL: before.labels.get(keys.MANAGED_BY_LABEL),
                keys.TEMPLATE_LABEL: before.labels.get(keys.TEMPLATE_LABEL),
            },
            "annotations": {
                **_restored(before.annotations, our_annotations, annotations),
                keys.HARDWARE_ANNOTATION: before.annotations.get(keys.HARDWARE_ANNOTATION),
                keys.ADOPTED_ANNOTATION: None,
            },
        }
    }
    if hardware is not None and consequences(hardware).cordon and not before.unschedulable:
        patch["spec"] = {"unschedulable": None}
    return patch


def _restored(before: Mapping[str, str | None], ours: Iterable[str], live: Mapping[str, str]) -> dict[str, str | None]:
    """Keys of ours go back to what they were, and so do recorded ones that are gone; what others set since stays."""
    published = set(ours)
    patch: dict[str, str | None] = {key: None for key in published if key not in before and key in live}
    for key, value in before.items():
        changed = live.get(key) != value
        if changed and (value is None or key in published or key not in live):
            patch[key] = value
    return patch
