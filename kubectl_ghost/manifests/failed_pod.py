"""The status of a pod whose application a GPU error has ended."""

from __future__ import annotations

from kubectl_ghost.domain.keys import Json

_REASON = "PodFailed"
"""kubelet's reason on the conditions of a pod that has failed."""
_UNREADY = ("Ready", "ContainersReady")


def failed_status(pod: Json, exit_code: int, message: str, now: str) -> Json:
    """Merge patch of a pod's status: failed, each container terminated. Lists are whole, as a merge patch needs them.

    Args:
        pod: the pod as last read.
        exit_code: of every container; that of the one that had the GPU ends the others.
        message: what ended it.
        now: RFC 3339.
    """
    status = pod.get("status", {})
    present = {entry["name"]: entry for entry in status.get("containerStatuses") or ()}
    containers = [
        _terminated(container, present.get(container["name"], {}), exit_code, message, now)
        for container in pod["spec"].get("containers", ())
    ]
    return {
        "status": {
            "phase": "Failed",
            "message": message,
            "containerStatuses": containers,
            "conditions": _conditions(status.get("conditions") or [], now),
        }
    }


def _terminated(container: Json, present: Json, exit_code: int, message: str, now: str) -> Json:
    started = (present.get("state") or {}).get("running", {}).get("startedAt")
    ended = {"exitCode": exit_code, "reason": "Error", "message": message, "finishedAt": now}
    if started:
        ended["startedAt"] = started
    return {
        # What the API asks of every container status; kwok has set them once the pod ran.
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "restartCount": 0,
        **present,
        "ready": False,
        "started": False,
        "state": {"terminated": ended},
    }


def _conditions(present: list[Json], now: str) -> list[Json]:
    kept = [condition for condition in present if condition["type"] not in _UNREADY]
    before = {condition["type"]: condition for condition in present}
    return [*kept, *(_unready(kind, before.get(kind, {}), now) for kind in _UNREADY)]


def _unready(kind: str, before: Json, now: str) -> Json:
    since = before.get("lastTransitionTime", now) if before.get("status") == "False" else now
    return {"type": kind, "status": "False", "reason": _REASON, "lastProbeTime": None, "lastTransitionTime": since}
