"""What users, controllers and remediation tools ask of a node by writing to its Node object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_ghost.domain.guard import is_filler
from kubectl_ghost.domain.hardware import NodeHardware
from kubectl_ghost.domain.holders import is_finished
from kubectl_ghost.domain.keys import MIG_CONFIG_LABEL, REBOOT_ANNOTATION, Json

PENDING = "pending"
"""State of a MIG configuration that is being made."""
KURED_ANNOTATION = "weave.works/kured-reboot-in-progress"
"""kured sets it when it is about to reboot a node (kubereboot/kured, --annotate-nodes)."""


@dataclass(frozen=True, slots=True)
class RebootSigns:
    """Annotations, and condition types that are True, by which somebody says that a node is to reboot."""

    annotations: tuple[str, ...] = (REBOOT_ANNOTATION, KURED_ANNOTATION)
    conditions: tuple[str, ...] = ()


def reboot_request(node: Json, signs: RebootSigns) -> str:
    """What asks for a reboot of this node, "" if nothing does.

    The text tells one request from the next: an annotation with its value, or a condition with the time since when.
    """
    annotations = node["metadata"].get("annotations") or {}
    for key in signs.annotations:
        if key in annotations:
            return f"{key}={annotations[key]}"
    for condition in node.get("status", {}).get("conditions") or ():
        if condition["type"] in signs.conditions and condition["status"] == "True":
            return f"{condition['type']}={condition.get('lastTransitionTime', '')}"
    return ""


def is_drained(node: Json, pods: Iterable[Json]) -> bool:
    """Whether a node is cordoned and nothing runs on it but DaemonSet, static and filler pods, which belong to it."""
    return bool(node.get("spec", {}).get("unschedulable")) and all(map(_may_stay, pods))


def _may_stay(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return is_filler(pod) or is_finished(pod) or any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners)


def mig_request(node: Json, hardware: NodeHardware) -> str | None:
    """The MIG configuration that somebody has set in the label and that has not been answered yet."""
    wanted: str | None = (node["metadata"].get("labels") or {}).get(MIG_CONFIG_LABEL)
    config = hardware.mig_config
    answered = config.name if config and config.state != PENDING else None
    return wanted if wanted and wanted != answered else None
