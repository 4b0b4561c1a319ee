"""Nodes that somebody else creates and that are given GPUs: their marks, and the record of what they had before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_ghost.domain.keys import ADOPTED_ANNOTATION, HARDWARE_ANNOTATION, POOL_LABEL, TEMPLATE_LABEL, Json


@dataclass(frozen=True, slots=True)
class Before:
    """What a node had before it was adopted, of everything that may be set on it: None for a key that it had not.

    `conditions` are whole conditions, without those that every kubelet reports; `unschedulable` is its cordon.
    """

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    capacity: Mapping[str, str | None]
    allocatable: Mapping[str, str | None]
    conditions: tuple[Json, ...] = ()
    unschedulable: bool = False


_DECLARED = '"adopted":"'
"""What stands in the text of every adopted node's declaration, and of no other's."""
NOTHING = Before({}, {}, {}, {})
"""For a node whose record was taken away: as if it had had nothing."""


def is_adopted(node: Json) -> bool:
    """Whether a node was somebody else's before it got GPUs.

    Its declaration says so; and where that is damaged either mark, as long as no pool's label says otherwise.
    """
    labels, annotations = _marks(node)
    if _DECLARED in annotations.get(HARDWARE_ANNOTATION, ""):
        return True
    return ADOPTED_ANNOTATION in annotations or (TEMPLATE_LABEL in labels and POOL_LABEL not in labels)


def template_of(node: Json) -> str:
    """The pool whose settings an adopted node was given; empty where somebody has taken the label off."""
    return str(_marks(node)[0].get(TEMPLATE_LABEL) or "")


def before_text(before: Before) -> str:
    """The annotation's text: the same record always gives the same bytes."""
    value: Json = {
        "labels": dict(before.labels),
        "annotations": dict(before.annotations),
        "capacity": dict(before.capacity),
        "allocatable": dict(before.allocatable),
    }
    if before.conditions:
        value["conditions"] = list(before.conditions)
    if before.unschedulable:
        value["unschedulable"] = True
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def before_of(node: Json) -> Before:
    """The record that an adopted node carries, NOTHING where it is gone or damaged: it is given back all the same."""
    return read_before(_marks(node)[1].get(ADOPTED_ANNOTATION) or "")


def read_before(text: str) -> Before:
    """The record that `before_text` wrote, NOTHING if it is no such text."""
    try:
        value = json.loads(text)
        labels, annotations, capacity, allocatable = (
            _strings(value[key]) for key in ("labels", "annotations", "capacity", "allocatable")
        )
        conditions = tuple(item for item in value.get("conditions", ()) if isinstance(item["type"], str))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NOTHING
    return Before(labels, annotations, capacity, allocatable, conditions, value.get("unschedulable") is True)


def _strings(value: Any) -> dict[str, str | None]:
    if not all(part is None or isinstance(part, str) for part in value.values()):
        raise TypeError("no strings")
    return dict(value)


def _marks(node: Json) -> tuple[Json, Json]:
    metadata = node.get("metadata", {})
    return metadata.get("labels") or {}, metadata.get("annotations") or {}
