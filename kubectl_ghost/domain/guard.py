"""What this tool may write to. Every write of the cluster room asks here first.

Simulated means: the node carries kwok's annotation. Ours means: simulated, and our managed-by label is on it.
"""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ghost.domain.errors import GuardRefusal
from kubectl_ghost.domain.keys import (
    GPU_DEVICE_CLASS,
    GPU_DRIVER,
    GPUS_ANNOTATION,
    KWOK_NODE_KEY,
    KWOK_NODE_VALUE,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    MIG_DEVICE_CLASS,
    Json,
)


def is_simulated(node: Json) -> bool:
    """Whether kwok plays this node."""
    annotations = node.get("metadata", {}).get("annotations") or {}
    return annotations.get(KWOK_NODE_KEY) == KWOK_NODE_VALUE


def has_our_label(item: Json) -> bool:
    """Whether an object says that this tool manages it."""
    return (item.get("metadata", {}).get("labels") or {}).get(MANAGED_BY_LABEL) == MANAGED_BY


def is_ours(node: Json) -> bool:
    """Whether a node is simulated and managed by this tool."""
    return is_simulated(node) and has_our_label(node)


def permit(kind: str, verb: str, *, live: Json | None, body: Json | None, node: Json | None) -> None:
    """Let a write pass, or refuse it.

    Args:
        kind: the object's kind, `Node` say.
        verb: create, patch, replace or delete.
        live: the object as last read; None for a create.
        body: what is to be created or written in its place, or the merge patch; None for a delete.
        node: the node that the object belongs to, as last read: evidence for slices and pods.

    Raises:
        GuardRefusal: naming the object, if it is not the tool's to write.
    """
    check = _CHECKS.get(kind)
    if check is None or not check(verb, live, body, node):
        item = live or body or {}
        name = item.get("metadata", {}).get("name", "")
        raise GuardRefusal(
            f'refused to {verb} {kind} "{name}": it is not simulated hardware of this tool',
            "Nothing was written to it. This is a defect of kubectl-ghost: please report it.",
        )


def _node(verb: str, live: Json | None, body: Json | None, _: Json | None) -> bool:
    return _all_pass(is_ours, verb, live, body)


def _slice(verb: str, live: Json | None, body: Json | None, node: Json | None) -> bool:
    if not _all_pass(has_our_label, verb, live, body):
        return False
    if verb == "delete":
        return True
    spec = (body or {}).get("spec", {})
    if node is None or not is_ours(node) or spec.get("driver") != GPU_DRIVER:
        return False
    places = [item.get("spec", {}).get("nodeName") for item in (live, body) if item is not None]
    return all(place == node["metadata"]["name"] for place in places)


def _device_class(verb: str, live: Json | None, body: Json | None, _: Json | None) -> bool:
    names = {
        item["metadata"]["name"] for item in (live, body) if item is not None and "name" in (item.get("metadata") or {})
    }
    return names <= {GPU_DEVICE_CLASS, MIG_DEVICE_CLASS} and _all_pass(has_our_label, verb, live, body)


def _pod(verb: str, live: Json | None, body: Json | None, node: Json | None) -> bool:
    if live is None or node is None or not is_ours(node):
        return False
    if live.get("spec", {}).get("nodeName") != node["metadata"]["name"]:
        return False
    return verb == "delete" or (verb == "patch" and _records_gpus_only(body or {}))


def _records_gpus_only(patch: Json) -> bool:
    annotations = (patch.get("metadata") or {}).get("annotations") or {}
    return patch == {"metadata": {"annotations": annotations}} and set(annotations) == {GPUS_ANNOTATION}


def _all_pass(test: Callable[[Json], bool], verb: str, live: Json | None, body: Json | None) -> bool:
    """Whether what is there and what it becomes both pass; a patch may not take away the marks that it passes by."""
    if verb == "patch":
        return live is not None and test(live) and not _touches_marks(body or {})
    present = [item for item in (live, body) if item is not None]
    return bool(present) and all(map(test, present))


def _touches_marks(patch: Json) -> bool:
    metadata = patch.get("metadata", {})
    if metadata is None:
        return True
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    if labels is None or annotations is None:
        return True
    return bool(
        labels.get(MANAGED_BY_LABEL, MANAGED_BY) != MANAGED_BY
        or annotations.get(KWOK_NODE_KEY, KWOK_NODE_VALUE) != KWOK_NODE_VALUE
    )


_CHECKS = {"Node": _node, "ResourceSlice": _slice, "DeviceClass": _device_class, "Pod": _pod}
