"""Waiting until filler pods run, and saying what the scheduler says if one does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import PODS
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.identity import parent_gpu
from kubectl_ghost.domain.keys import FILLER_NAMESPACE, Json
from kubectl_ghost.manifests.fillers import place_of
from kubectl_ghost.operations.fleet import OURS

Progress = Callable[[int, int], None]
"""Called with the number of fillers that run and the number awaited."""
_TROUBLE_SECONDS = 5.0
"""How long the scheduler may refuse a filler, or another command make it anew, before it is told: what the scheduler
looks at may be a moment old."""
_POLL_SECONDS = 0.2
_LONGEST_POLL_SECONDS = 2.0
_AGAIN = "The GPUs are declared busy. To make what is missing, and wait again: run the same command, or sync."


def wait_for_fillers(reader: Reader, names: Collection[str], *, timeout: float, progress: Progress) -> None:
    """Return when all these fillers run.

    Raises:
        GhostError: if one is gone, the scheduler keeps refusing one, or they do not run in time.
    """
    deadline = time.monotonic() + timeout
    trouble: dict[str, float] = {}
    pause = _POLL_SECONDS
    while True:
        pods = _not_running(reader, names)
        waiting = [name for name in names if name in pods]
        progress(len(names) - len(waiting), len(names))
        if not waiting:
            return
        now = time.monotonic()
        for name in waiting:
            _check(name, pods[name], trouble, now, deadline)
        if now >= deadline:
            raise GhostError(
                f'timed out: {len(waiting)} of {len(names)} pods do not run yet, such as "{waiting[0]}"', _AGAIN
            )
        time.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_POLL_SECONDS)


def _not_running(reader: Reader, names: Collection[str]) -> dict[str, Json | None]:
    """Those of these pods that do not run, and None for those that are not there.

    In a large fleet most run before long: only the others are read whole, and whether any is missing at all is asked
    when none seems to be left.
    """
    listed = reader.list(
        PODS, namespace=FILLER_NAMESPACE, label_selector=OURS, field_selector="status.phase!=Running"
    ).items
    wanted = set(names)
    pending: dict[str, Json | None] = {
        pod["metadata"]["name"]: pod for pod in listed if pod["metadata"]["name"] in wanted
    }
    if pending:
        return pending
    there = reader.list(PODS, namespace=FILLER_NAMESPACE, label_selector=OURS, metadata_only=True).items
    present = {pod["metadata"]["name"] for pod in there}
    return {name: None for name in names if name not in present}


def _check(name: str, pod: Json | None, trouble: dict[str, float], now: float, deadline: float) -> None:
    """Raise if a pod has been refused by the scheduler, or missing, for a while, or is when the time is over.

    Args:
        trouble: since when each pod has been seen to be in trouble; kept up to date here.
    """
    message = _refusal(pod) if pod is not None else ""
    if pod is not None and not message:
        trouble.pop(name, None)
    elif now >= min(trouble.setdefault(name, now) + _TROUBLE_SECONDS, deadline):
        if pod is None:
            raise GhostError(f'pod "{name}" was deleted while waiting for it to run', _AGAIN)
        raise GhostError(f'the scheduler finds no place for pod "{name}": {message}', _hint(name))


def _hint(name: str) -> str:
    node, device = place_of(name)
    gpu = f"{node}/{parent_gpu(device)}"
    return f"{gpu} is declared busy and its pod waits for it. To undo that: kubectl ghost release {gpu}"


def _refusal(pod: Json) -> str:
    """What the scheduler says of a pod that it found no place for; "" if it has not refused it."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition.get("message", ""))
    return ""
