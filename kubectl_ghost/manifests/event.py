"""An Event about a node, as the component that noticed a fault would write it."""

from __future__ import annotations

import hashlib

from kubectl_ghost.domain import keys
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.domain.reactions import Notice

EVENT_NAMESPACE = "default"
"""Where events about objects without a namespace stand."""


def node_event(node_name: str, subject: str, notice: Notice, moment: str) -> Json:
    """The Event of a component's notice.

    The object that it is about carries the node's name as uid, as in the events of kubelet and of
    node-problem-detector: `kubectl describe node` looks for both that and the real uid.

    Args:
        node_name: the node's.
        subject: what tells this event apart from others with the same reason: the GPU and the fault.
        moment: when it happened, RFC 3339.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": _name(node_name, subject, notice),
            "namespace": EVENT_NAMESPACE,
            "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY},
        },
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_name},
        "type": notice.type,
        "reason": notice.reason,
        "message": notice.message,
        "source": {"component": notice.component, "host": node_name},
        "reportingComponent": notice.component,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def repetition(live: Json, event: Json) -> Json:
    """Merge patch of an event that has happened again; empty if what is there tells of this time already.

    Args:
        live: the event as it is.
        event: the same event of `node_event`, as it would be new.
    """
    if (live.get("lastTimestamp") or "") >= event["lastTimestamp"]:
        return {}
    return {
        "count": (live.get("count") or 1) + 1,
        "lastTimestamp": event["lastTimestamp"],
        "message": event["message"],
    }


def _name(node_name: str, subject: str, notice: Notice) -> str:
    """The same for the same happening, so that a repetition is found: as client-go's, the object's name and a number.

    The component counts, too: two of them may give the same reason.
    """
    digest = hashlib.sha256("\n".join((node_name, subject, notice.component, notice.reason)).encode()).hexdigest()
    return f"{node_name}.{digest[:16]}"
