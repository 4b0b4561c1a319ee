"""Differences between what is there and what should be, as JSON merge patches.

A patch is computed three ways: what the old declaration published, what the new one should publish, what is there.
Only keys of the first two are ever touched, so labels, taints and resources of others survive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.quantity import parse_quantity
from kubectl_ghost.manifests.node import node, node_annotations, node_labels, node_taints

_OUR_RESOURCES = "nvidia.com/"


def node_patch(old: NodeHardware, new: NodeHardware, live: Json) -> Json:
    """Merge patch of a node's metadata and spec; empty if nothing differs."""
    metadata = live["metadata"]
    patch: Json = {}
    parts = {
        "labels": changed_keys(node_labels(old), node_labels(new), metadata.get("labels") or {}),
        "annotations": changed_keys(node_annotations(old), node_annotations(new), metadata.get("annotations") or {}),
    }
    if any(parts.values()):
        patch["metadata"] = {key: part for key, part in parts.items() if part}
    current = live.get("spec", {}).get("taints") or []
    wanted = _merged_taints(node_taints(old.settings), node_taints(new.settings), current)
    if wanted != current:
        patch["spec"] = {"taints": wanted or None}
    return patch


def status_patch(new: NodeHardware, live: Json) -> Json:
    """Merge patch of a node's status, to be sent to `/status`; empty if nothing differs.

    Resources under nvidia.com are this tool's on its own nodes: whatever is not declared goes, even if the write that
    should have removed it was interrupted after the declaration had changed.
    """
    patch: Json = {}
    for field, wanted in node(new)["status"].items():
        current = live.get("status", {}).get(field) or {}
        ours = {key: "" for key in current if key.startswith(_OUR_RESOURCES)}
        part = changed_keys(ours, wanted, current, equal=same_quantity)
        if part:
            patch[field] = part
    return {"status": patch} if patch else {}


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


def updated_slice(wanted: Json, live: Json) -> Json | None:
    """The live slice with everything that is ours replaced, or None if nothing differs.

    `pool.generation` stays as it is: with one slice a node there is no moment at which a pool is half written, and
    claims for all devices fail in the whole cluster while a generation is incomplete.
    """
    spec = {**wanted["spec"], "pool": {**wanted["spec"]["pool"], "generation": live["spec"]["pool"]["generation"]}}
    metadata = live["metadata"]
    labels_now = metadata.get("labels") or {}
    same_labels = not changed_keys({}, wanted["metadata"]["labels"], labels_now)
    owners = wanted["metadata"]["ownerReferences"]
    if spec == live["spec"] and same_labels and owners == metadata.get("ownerReferences"):
        return None
    return {
        **live,
        "metadata": {
            **metadata,
            "labels": {**labels_now, **wanted["metadata"]["labels"]},
            "ownerReferences": owners,
        },
        "spec": spec,
    }
