"""What is kept of nodes, pods and claims: copies with no more in them than attribution and sensors need."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ghost.domain.keys import GPUS_ANNOTATION, HARDWARE_ANNOTATION, KWOK_NODE_KEY, MANAGED_BY_LABEL, Json
from kubectl_ghost.domain.load import LOAD_ANNOTATIONS

_KEPT_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_KEPT_POD_ANNOTATIONS = frozenset((GPUS_ANNOTATION, *LOAD_ANNOTATIONS))
_KEPT_CONTAINER = ("name", "resources", "restartPolicy")


def small_node(item: Json) -> Json:
    """Who a node is, its marks, and its declared hardware."""
    metadata = item["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    kept = {key: annotations[key] for key in (HARDWARE_ANNOTATION, KWOK_NODE_KEY) if key in annotations}
    marks = {MANAGED_BY_LABEL: labels[MANAGED_BY_LABEL]} if MANAGED_BY_LABEL in labels else {}
    return {"metadata": {**_metadata(item), "labels": marks, "annotations": kept}}


def small_pod(item: Json, *, all_labels: bool) -> Json:
    """Where a pod is, what it asks for, what it says about its load, and how it is."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    return {
        "metadata": {
            **_metadata(item),
            "annotations": {key: value for key, value in annotations.items() if key in _KEPT_POD_ANNOTATIONS},
            "labels": labels if all_labels else {},
        },
        "spec": {
            "nodeName": spec.get("nodeName", ""),
            "containers": _containers(spec.get("containers")),
            "initContainers": _containers(spec.get("initContainers")),
            "resourceClaims": spec.get("resourceClaims") or (),
        },
        "status": {
            key: status[key]
            for key in ("phase", "startTime", "resourceClaimStatuses", "extendedResourceClaimStatus")
            if key in status
        },
    }


def small_claim(item: Json) -> Json:
    """What a claim has, and for whom."""
    status = item.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    kept = [
        {key: result[key] for key in ("request", "driver", "pool", "device", "adminAccess") if key in result}
        for result in results
    ]
    reserved = [{"uid": consumer.get("uid")} for consumer in status.get("reservedFor") or ()]
    return {
        "metadata": _metadata(item),
        "status": {"allocation": {"devices": {"results": kept}}, "reservedFor": reserved} if kept else {},
    }


def _metadata(item: Json) -> Json:
    return {key: item["metadata"][key] for key in _KEPT_METADATA if key in item["metadata"]}


def _containers(containers: Iterable[Json] | None) -> tuple[Json, ...]:
    return tuple({key: item[key] for key in _KEPT_CONTAINER if key in item} for item in containers or ())
