"""Waiting until the metrics agent's pod serves, and saying what keeps it from doing so."""

from __future__ import annotations

import time
from collections.abc import Callable

from kubectl_ghost.cluster.errors import ApiError
from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import AGENT_NAME, AGENT_NAMESPACE, Json

Progress = Callable[[int, int], None]
"""Called with 0 and 1 while the pod is awaited."""
_POLL_SECONDS = 0.2
_TROUBLE_SECONDS = 15.0
"""How long a pull may fail, a container crash or the scheduler find no place before it is told: any may pass."""
_LOG_LINES = 10
_SERVE = "kubectl ghost metrics serve needs no pod"
_PULLING = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")


def wait_until_ready(reader: Reader, *, timeout: float, progress: Progress) -> Json:
    """Return the agent's pod when it is Ready, which it is once it knows the fleet.

    Raises:
        GhostError: it is gone or has ended, something keeps it from running, or it takes too long.
    """
    deadline = time.monotonic() + timeout
    since: float | None = None
    while True:
        pod = reader.find(PODS, AGENT_NAME, AGENT_NAMESPACE)
        if pod is None:
            raise GhostError(f'pod "{AGENT_NAME}" was deleted while waiting for it to become Ready')
        if is_ready(pod):
            return pod
        progress(0, 1)
        trouble, now = _trouble(pod), time.monotonic()
        since = (since or now) if trouble else None
        if _has_ended(pod) or now >= deadline or (since is not None and now >= since + _TROUBLE_SECONDS):
            raise _failure(reader, pod, trouble)
        time.sleep(_POLL_SECONDS)


def is_ready(pod: Json) -> bool:
    """Whether the agent serves."""
    conditions = pod.get("status", {}).get("conditions") or ()
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def why_over(reader: Reader, uid: str) -> str:
    """Why the agent's pod of this uid serves no longer; "" while it lives, or cannot be asked after."""
    try:
        pod = reader.find(PODS, AGENT_NAME, AGENT_NAMESPACE)
    except ApiError:
        return ""
    if pod is None or pod["metadata"]["uid"] != uid or "deletionTimestamp" in pod["metadata"]:
        return "it was deleted"
    if not _has_ended(pod):
        return ""
    return _end_of(pod)


def _has_ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _end_of(pod: Json) -> str:
    status = pod["status"]
    if status.get("reason") == "DeadlineExceeded":
        return f"its time is over (--ttl {pod['spec']['activeDeadlineSeconds']}s)"
    return f"it has ended: {status.get('message') or status.get('reason') or status['phase']}"


def _trouble(pod: Json) -> str:
    """What keeps the pod from running, as far as anybody has said so."""
    status = pod.get("status", {})
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return f"the scheduler finds no place for it: {condition.get('message', '')}"
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in _PULLING:
            return f"its image {container.get('image')} cannot be had: {waiting.get('message') or waiting['reason']}"
        if container.get("restartCount") or "terminated" in state:
            return "its container ends again and again"
        if waiting.get("message"):
            return f"{waiting.get('reason')}: {waiting['message']}"
    return ""


def _failure(reader: Reader, pod: Json, trouble: str) -> GhostError:
    what = _end_of(pod) if _has_ended(pod) else trouble or "it is not Ready in time"
    hint = f"See: kubectl -n {AGENT_NAMESPACE} describe pod {AGENT_NAME}. {_SERVE}."
    if "image" in trouble:
        hint = f"Name one that its node can pull with --image: any that has python3, 3.11 or newer. {_SERVE}."
    said = _last_words(reader)
    if said:
        what += f"; it said:\n{said}"
    return GhostError(f'pod "{AGENT_NAME}": {what}', hint)


def _last_words(reader: Reader) -> str:
    """The end of the container's log, "" if there is none."""
    try:
        path = PODS.path(AGENT_NAMESPACE, AGENT_NAME, "log")
        log = reader.transport.request("GET", path, query={"tailLines": _LOG_LINES}, accept="*/*")
    except ApiError:
        return ""
    return log.decode("utf-8", "replace").strip()
