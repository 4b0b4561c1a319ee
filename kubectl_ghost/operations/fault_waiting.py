"""Waiting for what a fault brings about: pods that go, and nodes that are no longer Ready.

Each look costs little however large the fleet is, and the looks become rarer the longer the wait takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kubectl_ghost.cluster.reads import Reader
from kubectl_ghost.cluster.resources import NODES, PODS
from kubectl_ghost.cluster.workers import run_ordered
from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json
from kubectl_ghost.operations.fault_effects import Leaving
from kubectl_ghost.operations.fleet import OURS
from kubectl_ghost.operations.selecting import Chosen
from kubectl_ghost.operations.waiting import Progress, is_ready

_FEW = 20
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_GROWTH = 1.5


def wait_left(
    reader: Reader, chosen: Sequence[Chosen], leaving: Leaving, *, timeout: float, progress: Progress
) -> None:
    """Return when none of the pods that were evicted is left.

    Raises:
        GhostError: naming one that something keeps, when the time is up.
    """

    def left() -> list[str]:
        present = {pod["metadata"]["uid"] for pod in _bound(reader, chosen)}
        return ["/".join(key) for uid, key in leaving.items() if uid in present]

    _wait(left, len(leaving), timeout, progress, 'pod "{}" was evicted and is still there')


def _bound(reader: Reader, chosen: Sequence[Chosen]) -> list[Json]:
    """The metadata of the pods on these nodes; where the nodes are many, of all pods that are bound to any."""
    selectors = [f"spec.nodeName={item.name}" for item in chosen] if len(chosen) <= _FEW else ["spec.nodeName!="]
    lists = run_ordered(
        lambda selector: reader.list(PODS, field_selector=selector, metadata_only=True).items, selectors
    )
    return [pod for found in lists for pod in found]


def wait_down(reader: Reader, names: Sequence[str], *, timeout: float, progress: Progress) -> None:
    """Return when none of these nodes is Ready.

    Raises:
        GhostError: naming one that still is when the time is up: kwok lacks the stage.
    """
    _wait(
        lambda: _still_ready(reader, names),
        len(names),
        timeout,
        progress,
        'node "{}" is still Ready: does kwok have this tool\'s stages?',
    )


def _still_ready(reader: Reader, names: Sequence[str]) -> list[str]:
    if len(names) <= _FEW:
        found = run_ordered(lambda name: reader.find(NODES, name), names)
        return [node["metadata"]["name"] for node in found if node is not None and is_ready(node)]
    wanted = set(names)
    rows = reader.printed(NODES, label_selector=OURS)
    return [row["Name"] for row in rows if row["Name"] in wanted and row["Status"].split(",")[0] == "Ready"]


def _wait(pending: Callable[[], list[str]], total: int, timeout: float, progress: Progress, message: str) -> None:
    deadline = time.monotonic() + timeout
    pause = _FIRST_PAUSE_SECONDS
    while left := pending():
        progress(total - len(left), total)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise GhostError(f"timed out: {message.format(min(left))}", "Run the same command again to go on waiting.")
        time.sleep(min(pause, remaining))
        pause = min(pause * _GROWTH, _LONGEST_PAUSE_SECONDS)
