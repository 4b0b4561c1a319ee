"""Differences between what is there and what should be, as JSON merge patches.

A patch is computed three ways: what the old declaration published, what the new one should publish, what is there.
Only keys of the first two are ever touched, so labels, taints and resources of others survive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_ghost.domain.consequences import consequences
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import MIG_CONFIG_LABEL, Json
from kubectl_ghost.domain.quantity import parse_quantity
from kubectl_ghost.manifests.node import node_annotations, node_conditions, node_labels, node_resources, node_taints

_OUR_RESOURCES = "nvidia.com/"


def node_patch(old: NodeHardware, new: NodeHardware, live: Json) -> Json:
    """Merge patch of a node's metadata and spec; empty if nothing differs."""
    metadata = live["metadata"]
    patch: Json = {}
    parts = {
        "labels": _changed_labels(old, new, metadata.get("labels") or {}),
        "annotations": changed_keys(node_annotations(old), node_annotations(new), metadata.get("annotations") or {}),
    }
    if any(parts.values()):
        patch["metadata"] = {key: part for key, part in parts.items() if part}
    if spec := _changed_spec(old, new, live.get("spec", {})):
        patch["spec"] = spec
    return patch


def _changed_labels(old: NodeHardware, new: NodeHardware, live: Mapping[str, str]) -> dict[str, str | None]:
    """Labels to set and to take away; what somebody else has written into the MIG manager's label is a request.

    It stands until it has been answered: only a change of the declaration itself overwrites it.
    """
    before, after = node_labels(old), node_labels(new)
    if before.get(MIG_CONFIG_LABEL) == after.get(MIG_CONFIG_LABEL) and MIG_CONFIG_LABEL in live:
        before.pop(MIG_CONFIG_LABEL, None)
        after.pop(MIG_CONFIG_LABEL, None)
    return changed_keys(before, after, live)


def _changed_spec(old: NodeHardware, new: NodeHardware, live: Json) -> Json:
    """Taints; and the cordon of a reacting component: put on once, and taken off if it was that which put it on."""
    patch: Json = {}
    current = live.get("taints") or []
    wanted = _merged_taints(node_taints(old), node_taints(new), current)
    if wanted != current:
        patch["taints"] = wanted or None
    before, after = consequences(old).cordon, consequences(new).cordon
    unschedulable = bool(live.get("unschedulable"))
    if after and not before and new.cordoned and not unschedulable:
        patch["unschedulable"] = True
    if before and not after and old.cordoned and unschedulable:
        patch["unschedulable"] = None
    return patch


def status_patch(new: NodeHardware, live: Json, now: str) -> Json:
    """Merge patch of a node's status, to be sent to `/status`; empty if nothing differs.

    Resources under nvidia.com are this tool's on its own nodes: whatever is not declared goes, even if the write that
    should have removed it was interrupted after the declaration had changed. For conditions the declaration remembers
    which types have been set.

    Args:
        now: the time to write into conditions that change, RFC 3339.
    """
    patch: Json = {}
    for field, wanted in zip(("capacity", "allocatable"), node_resources(new), strict=True):
        current = live.get("status", {}).get(field) or {}
        ours = {key: "" for key in current if key.startswith(_OUR_RESOURCES)}
        part = changed_keys(ours, wanted, current, equal=same_quantity)
        if part:
            patch[field] = part
    present = live.get("status", {}).get("conditions") or []
    conditions = merged_conditions(new, present, now)
    if conditions != present:
        patch["conditions"] = conditions
    return {"status": patch} if patch else {}


def merged_conditions(new: NodeHardware, live: list[Json], now: str) -> list[Json]:
    """The node's conditions: others' as they are, and ours as declared."""
    wanted = {condition["type"]: condition for condition in node_conditions(new)}
    merged = []
    for present in live:
        declared = wanted.pop(present["type"], None)
        merged.append(present if declared is None else _condition(declared, present, now))
    return [*merged, *(_condition(declared, {}, now) for declared in wanted.values())]


def _condition(declared: Mapping[str, str], present: Json, now: str) -> Json:
    if all(present.get(key) == value for key, value in declared.items()):
        return present
    same_status = present.get("status") == declared["status"]
    since = present.get("lastTransitionTime", now) if same_status else now
    return {**declared, "lastHeartbeatTime": now, "lastTransitionTime": since}


def changed_keys(
    old: Mapping[str, str],
    new: Mapping[str, str],
    live: Mapping[str, str],
    *,
    equal: Any = None,
) -> dict[str, str | None]:
    """Merge patch of a flat mapping: None removes a key that only the old declaration published."""
    same = equal or (lambda left, right: left == right)
    patch: dict[str, str | None] = {key: None for key in old if key not in new and key in live}
    patch.update({key: value for key, value in new.items() if key not in live or not same(live[key], value)})
    return patch


def same_quantity(left: str, right: str) -> bool:
    """Whether two quantities are the same number: the API server prints 2048Gi back as 2Ti."""
    try:
        return left == right or parse_quantity(left) == parse_quantity(right)
    except ValueError:
        return False


def _merged_taints(old: list[dict[str, str]], new: list[dict[str, str]], live: list[Json]) -> list[Json]:
    def identity(taint: Mapping[str, Any]) -> tuple[str, str]:
        return taint["key"], taint["effect"]

    wanted = {identity(taint): taint for taint in new}
    gone = {identity(taint) for taint in old} - set(wanted)
    merged: list[Json] = []
    for taint in live:
        key = identity(taint)
        declared = wanted.pop(key, None)
        if declared is not None and declared.get("value", "") != (taint.get("value") or ""):
            merged.append(declared)
        elif key not in gone:
            merged.append(taint)
    return [*merged, *wanted.values()]
