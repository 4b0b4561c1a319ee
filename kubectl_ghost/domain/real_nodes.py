"""Which nodes run pods for real: everything else only says that they run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kubectl_ghost.domain.guard import is_simulated
from kubectl_ghost.domain.keys import OS_LABEL, Json

CONTROL_PLANE_TAINT: Final = "node-role.kubernetes.io/control-plane"
"""kubeadm's: many a small cluster has no other real node."""
_RUNTIME = re.compile(r"[\w-]+://.")
"""kubelet reports its runtime as `containerd://1.7.2`; kwok writes its own version there, without a scheme."""
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def is_real(node: Json) -> bool:
    """Whether a kubelet stands behind a node, also where a simulator does without kwok's annotation."""
    info = node.get("status", {}).get("nodeInfo") or {}
    return not is_simulated(node) and bool(_RUNTIME.match(info.get("containerRuntimeVersion") or ""))


def nodes_for_pods(nodes: Iterable[Json]) -> list[str]:
    """Names of the real Linux nodes that take new pods: workers, or where there are none those of the control plane."""
    free: list[str] = []
    of_control_plane: list[str] = []
    for node in nodes:
        if is_real(node) and _takes_pods(node):
            keeping = {taint["key"] for taint in _taints(node) if taint.get("effect") in _KEEPS_AWAY}
            if not keeping:
                free.append(node["metadata"]["name"])
            elif keeping == {CONTROL_PLANE_TAINT}:
                of_control_plane.append(node["metadata"]["name"])
    return sorted(free) or sorted(of_control_plane)


def _takes_pods(node: Json) -> bool:
    metadata = node["metadata"]
    ready = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions") or ()}.get("Ready")
    linux = (metadata.get("labels") or {}).get(OS_LABEL, "linux") == "linux"
    return ready == "True" and linux and not node["spec"].get("unschedulable") and "deletionTimestamp" not in metadata


def _taints(node: Json) -> list[Json]:
    return list(node.get("spec", {}).get("taints") or ())
