"""What this tool may write to. Every write of the cluster room asks here first.

Simulated means: the node carries kwok's annotation. Ours means: simulated, and our managed-by label is on it. A
simulated node of somebody else becomes ours by one patch alone, which notes what it had; it is never deleted, and
stops being ours by one patch that gives it back.

The metrics agent's objects are told by fixed names beside our label; they are made and deleted, never changed.
"""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ghost.domain.adoption import NOTHING, before_of, is_adopted, read_before
from kubectl_ghost.domain.agent_objects import grants_too_much, is_agents
from kubectl_ghost.domain.errors import GuardRefusal
from kubectl_ghost.domain.keys import (
    ADOPTED_ANNOTATION,
    FILLER_NAMESPACE,
    GPU_DEVICE_CLASS,
    GPU_DRIVER,
    GPUS_ANNOTATION,
    HARDWARE_ANNOTATION,
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


def is_filler(item: Json) -> bool:
    """Whether a pod or claim is there to keep GPUs busy."""
    return item.get("metadata", {}).get("namespace") == FILLER_NAMESPACE and has_our_label(item)


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
    if verb == "patch" and live is not None and body and (_adopts(live, body) or _gives_back(live, body)):
        return True
    if live is not None and is_adopted(live) and (verb != "patch" or _touches_record(live, body or {})):
        return False
    return _all_pass(is_ours, verb, live, body)


def _adopts(live: Json, patch: Json) -> bool:
    """Whether a patch marks somebody's simulated node, and notes what was there of each label that it touches."""
    labels, annotations = _changed_metadata(patch)
    if set(patch) != {"metadata"} or not is_simulated(live) or has_our_label(live):
        return False
    if before_of(live) != NOTHING and _touches_record(live, patch):
        return False
    before = read_before(annotations.get(ADOPTED_ANNOTATION) or "")
    return (
        labels.get(MANAGED_BY_LABEL) == MANAGED_BY
        and bool(annotations.get(HARDWARE_ANNOTATION))
        and KWOK_NODE_KEY not in annotations
        and set(labels) <= set(before.labels)
        and set(annotations) - {ADOPTED_ANNOTATION} <= set(before.annotations)
    )


def _gives_back(live: Json, patch: Json) -> bool:
    """Whether a patch takes every mark off an adopted node, and at most its cordon with them."""
    labels, annotations = _changed_metadata(patch)
    before = before_of(live)
    return (
        is_ours(live)
        and is_adopted(live)
        and set(patch) <= {"metadata", "spec"}
        and set(patch.get("spec", {})) <= {"unschedulable"}
        and KWOK_NODE_KEY not in annotations
        and annotations.get(ADOPTED_ANNOTATION, "") is None
        and annotations.get(HARDWARE_ANNOTATION, "") == before.annotations.get(HARDWARE_ANNOTATION)
        and labels.get(MANAGED_BY_LABEL, "") == before.labels.get(MANAGED_BY_LABEL)
    )


def _changed_metadata(patch: Json) -> tuple[Json, Json]:
    """Labels and annotations of a patch that changes no other metadata; else nothing, which no check accepts."""
    metadata = patch.get("metadata") or {}
    if not set(metadata) <= {"labels", "annotations"}:
        return {}, {}
    return metadata.get("labels") or {}, metadata.get("annotations") or {}


def _touches_record(live: Json, patch: Json) -> bool:
    """Whether a patch changes the record of what an adopted node had: without it the node cannot be given back."""
    present = live["metadata"].get("annotations") or {}
    changed = (patch.get("metadata") or {}).get("annotations") or {}
    return ADOPTED_ANNOTATION in changed and changed[ADOPTED_ANNOTATION] != present.get(ADOPTED_ANNOTATION)


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
    if _filler(verb, live, body, node) or _agents("Pod", verb, live, body):
        return True
    if live is None or node is None or not is_ours(node):
        return False
    if live.get("spec", {}).get("nodeName") != node["metadata"]["name"]:
        return False
    return verb == "delete" or (verb == "patch" and (_records_gpus_only(body or {}) or _fails_only(body or {})))


def _fails_only(patch: Json) -> bool:
    """Whether a patch says no more than that the pod has failed."""
    return set(patch) == {"status"} and patch["status"].get("phase") == "Failed"


def _filler(verb: str, live: Json | None, body: Json | None, _: Json | None) -> bool:
    """What keeps GPUs busy: our pods and claims in our namespace, made and deleted but never changed."""
    item = live if verb == "delete" else body
    if item is None or verb not in ("create", "delete"):
        return False
    return is_filler(item)


def _namespace(verb: str, live: Json | None, body: Json | None, _: Json | None) -> bool:
    if _agents("Namespace", verb, live, body):
        return True
    names = {item.get("metadata", {}).get("name") for item in (live, body) if item is not None}
    return verb in ("create", "delete") and names == {FILLER_NAMESPACE} and _all_pass(has_our_label, verb, live, body)


def _priority_class(verb: str, live: Json | None, body: Json | None, _: Json | None) -> bool:
    names = [item["metadata"].get("name", "") for item in (live, body) if item is not None]
    ours = all(name.startswith(FILLER_NAMESPACE) for name in names)
    return verb in ("create", "delete") and ours and _all_pass(has_our_label, verb, live, body)


def _event(verb: str, live: Json | None, body: Json | None, node: Json | None) -> bool:
    """Events about a node of ours: made, and counted up."""
    if node is None or not is_ours(node) or verb not in ("create", "patch"):
        return False
    about = ((live if verb == "patch" else body) or {}).get("involvedObject", {})
    return (
        about.get("kind") == "Node"
        and about.get("name") == node["metadata"]["name"]
        and _all_pass(has_our_label, verb, live, body)
    )


def _agents(kind: str, verb: str, live: Json | None, body: Json | None) -> bool:
    """The metrics agent's pod and what it needs: made and deleted."""
    item = {"create": body, "delete": live}.get(verb)
    if item is None or not has_our_label(item) or not is_agents(kind, item):
        return False
    return verb == "delete" or not grants_too_much(kind, item)


def _of_agent(kind: str) -> Callable[[str, Json | None, Json | None, Json | None], bool]:
    """The check of a kind that the tool writes for nothing but the agent."""
    return lambda verb, live, body, _: _agents(kind, verb, live, body)


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


_CHECKS = {
    "Node": _node,
    "ResourceSlice": _slice,
    "DeviceClass": _device_class,
    "Pod": _pod,
    "ResourceClaim": _filler,
    "Namespace": _namespace,
    "PriorityClass": _priority_class,
    "Event": _event,
    "ServiceAccount": _of_agent("ServiceAccount"),
    "ConfigMap": _of_agent("ConfigMap"),
    "ClusterRole": _of_agent("ClusterRole"),
    "ClusterRoleBinding": _of_agent("ClusterRoleBinding"),
}
