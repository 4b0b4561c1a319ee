"""What the server makes of devices with taints and counters: a feature gate that is off strips them with a 201.

Feature gates cannot be read from outside. So a slice with both is created in a server-side dry run, which stores
nothing, and what the server would have stored is compared with what was sent.
"""

from __future__ import annotations

from kubectl_ghost.cluster.errors import ApiError, Invalid
from kubectl_ghost.cluster.resources import RESOURCE_SLICES
from kubectl_ghost.cluster.writes import Writer
from kubectl_ghost.domain import keys
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.manifests.resource_slice import API_VERSION

_NAME = "kubectl-ghost-probe"


def require_device_taints(writer: Writer, node: Json) -> None:
    """Refuse to declare what needs device taints on a server that drops them.

    Args:
        node: a node of ours that the probe can belong to.

    Raises:
        GhostError: naming the feature gate.
    """
    device = {"name": "gpu-0", "taints": [{"key": keys.OCCUPIED_TAINT, "value": "true", "effect": "NoSchedule"}]}
    stored = _rehearsed(writer, node, {"devices": [device]})
    if stored is None or not (stored["spec"].get("devices") or [{}])[0].get("taints"):
        raise _off(writer, "DRADeviceTaints", "device taints")


def require_counters(writer: Writer, node: Json) -> None:
    """Refuse dynamic MIG on a server that drops shared counters.

    Raises:
        GhostError: naming the feature gate.
    """
    counters = {"name": "gpu-0-counter-set", "counters": {"memory-slice-0": {"value": "1"}}}
    stored = _rehearsed(writer, node, {"sharedCounters": [counters]})
    if stored is None or not stored["spec"].get("sharedCounters"):
        raise _off(writer, "DRAPartitionableDevices", "shared counters")


def _rehearsed(writer: Writer, node: Json, content: Json) -> Json | None:
    """What the server would store of a slice with this content; None if it refuses what is left of it."""
    name = node["metadata"]["name"]
    body = {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{_NAME}-{name}", "labels": {keys.MANAGED_BY_LABEL: keys.MANAGED_BY}},
        "spec": {
            **content,
            "driver": keys.GPU_DRIVER,
            "nodeName": name,
            "pool": {"generation": 1, "name": _NAME, "resourceSliceCount": 1},
        },
    }
    try:
        return writer.create(RESOURCE_SLICES, body, node=node, rehearse=True)
    except Invalid:
        return None


def _off(writer: Writer, gate: str, what: str) -> GhostError:
    try:
        major, minor = writer.server_version()
        where = f"Kubernetes {major}.{minor}"
    except ApiError:
        where = "this cluster"
    return GhostError(
        f"{where} drops {what} here: its feature gate {gate} is off",
        f"Switch the gate on for apiserver, scheduler and controller-manager (it is on from 1.36), or use a pool of "
        f"--advertise device-plugin. For a cluster of this tool: kubectl ghost cluster up --feature-gates {gate}=true",
    )
